"""What every learner refuses: bad input, bad hyper-parameters, numbers that overflow."""

from __future__ import annotations

import copy
import functools
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import oklnumba as okl
from tests.battery import (
    BAD_ARRAYS,
    BAD_VALUES,
    BAD_X,
    LEARNERS,
    POSITIVE,
    WIDTHS,
    assert_same_run,
    bad_values,
    contents,
    every_learner,
    far_from_the_origin,
    make,
    plain,
    saved,
    stream,
    with_value,
)
from tests.compiled import COMPILED

# ---- bad input ----


BAD_Y = BAD_ARRAYS | {
    "None": lambda a: None,
    "one too few": lambda a: a[:-1],
    "one too many": lambda a: np.append(a, a[-1]),
    "a column": lambda a: a[:, None],
    "a row": lambda a: a[None, :],
}
BAD_POINTS = BAD_ARRAYS | {"None": lambda a: None, "2-D": lambda a: a[None, :]}
BAD_LABELS = {  # for learn_one
    "None": None,
    "NaN": np.nan,
    "infinity": -np.inf,
    "text": "text",
    "a number as text": "1.0",
    "complex": 1j,
    "two": [1.0, 1.0],
    "none at all": [],
    "ragged": [[1.0, 1.0], [1.0]],
    "a number too large for a double": 10**400,
    "a date": np.datetime64("2020-01-01"),
}
OUTSIDE = {"zero": 0.0, "two": 2.0, "almost one": np.nextafter(1.0, 0.0), "0 for -1": 0}
X_CALLS = {
    "predict": lambda learner, X, y: learner.predict(X),
    "partial_fit": lambda learner, X, y: learner.partial_fit(X, y),
    "run": lambda learner, X, y: okl.run(learner, X, y),
    "run on chunks": lambda learner, X, y: okl.run(learner, iter([(X, y)])),
}
Y_CALLS = {name: call for name, call in X_CALLS.items() if name != "predict"}
POINT_CALLS = {
    "predict_one": lambda learner, x, y: learner.predict_one(x),
    "learn_one": lambda learner, x, y: learner.learn_one(x, y),
}


class Refusals:
    """Plays bad input to a learner; each must raise, name the culprit and change nothing."""

    def __init__(self, learner):
        self.learner = learner
        self.before = contents(learner)
        self.problems = []

    def refused(self, what, culprit, call):
        try:
            call(self.learner)
        except ValueError as error:
            message = str(error)
            if not re.search(rf"\b{culprit}\b", message):
                self.problems.append(f"{what}: the message does not name {culprit}: {message!r}")
        except Exception as error:
            self.problems.append(f"{what}: {type(error).__name__} instead of ValueError: {error}")
        else:
            self.problems.append(f"{what}: accepted")
        if contents(self.learner) != self.before:
            self.problems.append(f"{what}: the learner has changed")

    def play_all(self, X, y, with_widths):
        learner = self.learner
        bad_X = BAD_X | (WIDTHS if with_widths else {})
        bad_points = BAD_POINTS | (WIDTHS if with_widths else {})
        bad_y, bad_labels = dict(BAD_Y), dict(BAD_LABELS)
        if learner._loss().classes:
            bad_y |= {f"label {name}": with_value(value) for name, value in OUTSIDE.items()}
            bad_labels |= OUTSIDE
        for name, bad in bad_X.items():
            for call, play in X_CALLS.items():
                self.refused(f"{call}, X: {name}", "X", lambda one, b=bad, p=play: p(one, b(X), y))
        for name, bad in bad_y.items():
            for call, play in Y_CALLS.items():
                if name == "None" and call == "run on chunks":
                    continue  # tested below: (X, None) is a pair
                self.refused(f"{call}, y: {name}", "y", lambda one, b=bad, p=play: p(one, X, b(y)))
        for name, bad in bad_points.items():
            for call, play in POINT_CALLS.items():
                self.refused(
                    f"{call}, x: {name}", "x", lambda one, b=bad, p=play: p(one, b(X[0]), y[0])
                )
        for name, bad in bad_labels.items():
            self.refused(f"learn_one, y: {name}", "y", lambda one, b=bad: one.learn_one(X[0], b))
        self.refused("run on chunks, y: None", "y", lambda one: okl.run(one, [(X, None)]))
        self.refused("learn_one without y", "y", lambda one: one.learn_one(X[0]))
        self.refused("partial_fit without y", "y", lambda one: one.partial_fit(X))
        self.refused("run without y", "y", lambda one: okl.run(one, X))
        half = y.copy()
        half[3] = 0.5
        self.refused("hinge loss of 0.5", "y", lambda one: okl.run(one, X, half, loss="hinge"))
        self.refused("unknown loss", "loss", lambda one: okl.run(one, X, y, loss="nonsense"))
        for bad in (0, -1.0, np.nan, "text"):
            self.refused(
                f"time_limit {bad}",
                "time_limit",
                lambda one, b=bad: okl.run(one, X, y, time_limit=b),
            )
            self.refused(f"every {bad}", "every", lambda one, b=bad: okl.run(one, X, y, every=b))
        self.refused("a chunk of one", "pair", lambda one: okl.run(one, iter([(X,)])))
        self.refused("no pairs", "pair", lambda one: okl.run(one, iter([X[0], y[0]])))
        return self.problems


@every_learner
@pytest.mark.parametrize("rounds", [0, 1, 40])
def test_bad_input_is_refused_by_every_call_and_changes_nothing(cls, rounds, tmp_path):
    learner, twin = make(cls), make(cls)
    X, y = stream(learner, 80)
    for one in (learner, twin):
        if rounds:
            one.partial_fit(X[:rounds], y[:rounds])
    problems = Refusals(learner).play_all(X[40:46], y[40:46], with_widths=rounds > 0)
    assert not problems, "\n".join(problems)
    assert saved(learner, tmp_path / "a") == saved(twin, tmp_path / "b")
    assert_same_run(okl.run(learner, X[rounds:], y[rounds:]), okl.run(twin, X[rounds:], y[rounds:]))
    assert contents(learner) == contents(twin)


@every_learner
def test_the_message_says_where_the_bad_value_is(cls):
    learner = make(cls)
    X, y = stream(learner, 40)
    X[17, 2], y[23] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"X.*nan.*row 17.*column 2"):
        learner.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y.*inf.*row 23"):
        learner.partial_fit(np.abs(np.nan_to_num(X)), y)


@every_learner
def test_a_bad_pair_ends_a_stream_after_the_good_ones(cls):
    learner, twin = make(cls), make(cls)
    X, y = stream(learner, 90)
    twin.partial_fit(X[:40], y[:40])
    for bad in ((X[:, :2], y), (X[:0], y[:0]), (np.full((3, 3), np.nan), y[:3]), (X, y[1:]), X):
        learner = make(cls)
        pairs = iter([(X[:40], y[:40]), bad, (X[40:], y[40:])])
        with pytest.raises(ValueError, match=r"\bX\b|\by\b|pair"):
            okl.run(learner, pairs)
        assert learner.rounds == 40 and contents(learner) == contents(twin)


# ---- hyper-parameters out of range ----


def hyper_parameters():
    for cls in LEARNERS:
        for name, value in make(cls).get_params().items():
            if bad_values(name.split("__")[-1], value):
                yield pytest.param(cls, name, id=f"{cls.__name__}-{name}")


def part(learner, name):
    """Return the object that has a hyper-parameter, and its own name for it."""
    *outer, last = name.split("__")
    return functools.reduce(getattr, outer, learner), last


def construct(learner, name, value):
    """Make the object that has a hyper-parameter anew, with this value."""
    one, last = part(learner, name)
    return type(one)(**(one.get_params(deep=False) | {last: value}))


WAYS = {
    "constructor": construct,
    "set_params": lambda learner, name, value: learner.set_params(**{name: value}),
}


@pytest.mark.parametrize("cls, name", list(hyper_parameters()))
def test_a_hyper_parameter_out_of_range_is_refused_where_it_is_given(cls, name):
    learner = make(cls)
    before, problems = learner.get_params(), []
    for bad in bad_values(name.split("__")[-1], before[name]):
        for way, call in WAYS.items():
            try:
                call(learner, name, bad)
            except ValueError as error:
                if not re.search(rf"\b{name.split('__')[-1]}\b", str(error)):
                    problems.append(f"{name}={bad!r}, {way}: not named in {str(error)!r}")
            except Exception as error:
                problems.append(f"{name}={bad!r}, {way}: {type(error).__name__}: {error}")
            else:
                problems.append(f"{name}={bad!r}, {way}: accepted")
            if learner.get_params() != before:
                problems.append(f"{name}={bad!r}, {way}: something is left of the attempt")
                learner = make(cls)
                before = learner.get_params()
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("cls, name", list(hyper_parameters()))
def test_a_hyper_parameter_assigned_out_of_range_is_refused_and_can_be_repaired(cls, name):
    learner = make(cls)
    X, y = stream(learner, 90)
    one, last = part(learner, name)
    good = getattr(one, last)
    problems = []
    for bad in bad_values(last, good):
        setattr(one, last, bad)
        for first_use in ("partial_fit", "learn_one", "run"):
            try:
                if first_use == "learn_one":
                    learner.learn_one(X[0], y[0])
                else:
                    X_CALLS[first_use](learner, X, y)
            except ValueError as error:
                if not re.search(rf"\b{last}\b", str(error)):
                    problems.append(f"{name}={bad!r}, {first_use}: not named in {str(error)!r}")
            except Exception as error:
                problems.append(f"{name}={bad!r}, {first_use}: {type(error).__name__}: {error}")
            else:
                problems.append(f"{name}={bad!r}, {first_use}: accepted")
            if learner.rounds or any(attribute.startswith("_") for attribute in vars(learner)):
                problems.append(f"{name}={bad!r}, {first_use}: something is left of the attempt")
                learner.reset()
    learner.set_params(**{name: good})
    assert not problems, "\n".join(problems)
    assert_same_run(okl.run(learner, X, y), plain(cls, 90)[0])


POSITIVES = [
    p for p in hyper_parameters() if BAD_VALUES.get(p.values[1].split("__")[-1]) is POSITIVE
]


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@pytest.mark.parametrize("value", [1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300])
@pytest.mark.parametrize("cls, name", POSITIVES)
@far_from_the_origin
def test_extreme_hyper_parameters_work_or_say_what_to_change(cls, name, value):
    learner = make(cls)
    X, y = stream(learner, 60)
    try:
        learner.set_params(**{name: value})
        forecasts = np.append(okl.run(learner, X, y).predictions, learner.predict(X))
    except (ValueError, FloatingPointError) as error:
        assert re.search(rf"\b{name.split('__')[-1]}\b|round \d+", str(error))
    else:
        assert np.isfinite(forecasts).all()


# ---- numerical trouble ----


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@every_learner
@pytest.mark.parametrize("size", [1e100, 1e160, 1e308])
@far_from_the_origin
def test_an_overflow_is_an_error_that_names_the_round_and_stays_until_reset(cls, size, tmp_path):
    learner = make(cls)
    params = learner.__signature__.parameters
    if "kernel" in params:
        learner.set_params(kernel=okl.Polynomial(3))
    elif "features" in params and cls is not okl.GrowingPKAWV:
        learner.set_params(features=okl.FourierFeatures(10))
    X, y = stream(learner, 60)
    start = okl.run(learner, X[:20], y[:20]).predictions
    huge = X.copy()
    huge[25:] *= size
    try:
        run = okl.run(learner, huge[20:], y[20:])
    except FloatingPointError as error:
        found = re.search(r"round (\d+)", str(error))
        assert found and 26 <= int(found[1]) <= 60 and "reset" in str(error)
    else:
        assert np.isfinite(run.predictions).all()
        return
    learner.save(tmp_path / "learner.npz")
    for broken in (learner, okl.load(tmp_path / "learner.npz"), copy.deepcopy(learner)):
        for call in X_CALLS.values():
            with pytest.raises(FloatingPointError, match=found[0]):
                call(broken, X, y)
        for call in POINT_CALLS.values():
            with pytest.raises(FloatingPointError, match=found[0]):
                call(broken, X[0], y[0])
    assert_array_equal(okl.run(learner.reset(), X[:20], y[:20]).predictions, start)
