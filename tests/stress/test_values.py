"""Numbers that are too large to forecast from, and hyper-parameters assigned in mid-stream."""

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core.params import Params
from tests.battery import contents
from tests.stress.players import PLAYERS, data

every_player = pytest.mark.parametrize("name", PLAYERS)


def begun(name):
    one = PLAYERS[name]()
    X, y = data(one, 60)
    return one.partial_fit(X, y), X, y


@every_player
def test_forecasts_far_out_are_finite_or_refused(name):
    """As learning does; the learner is as it was, for the other rows forecast as before."""
    one, X, _ = begun(name)
    before, expected = contents(one), one.predict(X[:4])
    for value in (1e300, -1e300, 1e200, 1e155, 1.7e308):
        far = X[:4].copy()
        far[1] = value
        calls = [lambda: one.predict(far)]  # noqa: B023
        if not isinstance(one, okl.OnlineToBatch):
            calls.append(lambda: one.predict_one(far[1]))  # noqa: B023
        for call in calls:
            try:
                assert np.isfinite(np.asarray(call(), dtype=float)).all()
            except FloatingPointError:
                pass
    assert contents(one) == before
    np.testing.assert_array_equal(one.predict(X[:4]), expected)


def hyper_parameters(one):
    """Yield (object, name, value) of an object and of those within."""
    for name, value in one.get_params(deep=False).items():
        yield one, name, value
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Params):
                yield from hyper_parameters(part)


def another(value):
    """Return a value of the same type, or an object."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 + 1
    return f"{value}x" if isinstance(value, str) else object()


@every_player
def test_no_hyper_parameter_is_assigned_in_mid_stream(name):
    one, X, _ = begun(name)
    before, expected = contents(one), one.predict(X[:4])
    tried = 0
    for owner, key, value in hyper_parameters(one):
        with pytest.raises(ValueError, match=r"reset\(\)"):
            setattr(owner, key, another(value))
        setattr(owner, key, value)  # the same one
        tried += 1
    assert tried or not one.get_params()
    assert contents(one) == before
    np.testing.assert_array_equal(one.predict(X[:4]), expected)
