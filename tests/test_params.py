"""The hyper-parameters of every learner: stored, read, set, cloned and shown."""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pandas
import pytest
from sklearn.base import clone

import oklnumba as okl
from oklnumba.core.params import Params
from tests.battery import (
    assert_same_run,
    contents,
    every_learner,
    every_variant,
    make,
    plain,
    stream,
)


@every_learner
def test_clone_has_the_hyper_parameters_and_no_data(cls):
    learner = make(cls)
    X, y = stream(learner, 90)
    learner.partial_fit(X, y)
    twin = clone(learner)
    assert type(twin) is cls and repr(twin) == repr(learner)
    assert (twin.rounds, twin.size, twin.predict_one(X[0])) == (0, 0, 0.0)
    assert_same_run(okl.run(twin, X, y), plain(cls, 90)[0])
    assert learner.rounds == 90
    fresh = clone(make(cls))
    assert contents(fresh) == contents(make(cls))


@every_learner
def test_the_constructor_stores_its_arguments_and_nothing_else(cls):
    names = list(inspect.signature(cls).parameters)
    given_values = make(cls).get_params(deep=False)
    learner = cls(**given_values)
    assert vars(learner).keys() == {*names, "_lock"} and list(given_values) == names
    for name, value in given_values.items():
        assert getattr(learner, name) is value


@every_variant
def test_an_assigned_hyper_parameter_takes_effect_at_reset(case, tmp_path):
    learner, other = make(getattr(case, "cls", case)), make(case)
    X, y = stream(learner, 120)
    whole = okl.run(make(type(learner)), X, y)
    learner.partial_fit(X[:60], y[:60])
    learner.set_params(**other.get_params(deep=False))
    learner.save(tmp_path / "learner.npz")
    loaded = okl.load(tmp_path / "learner.npz")
    run = okl.run(copy.copy(learner), X[60:], y[60:])
    assert_allclose(run.predictions, whole.predictions[60:], rtol=1e-9, atol=1e-12)
    for one in (learner, loaded):  # the same blocks, so the same bits
        assert_array_equal(okl.run(one, X[60:], y[60:]).predictions, run.predictions)
    assert repr(learner) == repr(other)
    again = okl.run(learner.reset(), *stream(other, 120))
    assert_same_run(again, okl.run(other, *stream(other, 120)))


@every_learner
def test_get_and_set_params_go_round(cls):
    learner = make(cls)
    flat, deep = learner.get_params(deep=False), learner.get_params()
    assert set(flat) <= set(deep)
    for name, value in flat.items():
        if isinstance(value, Params):
            nested = {f"{name}__{inner}" for inner in value.get_params()}
            assert nested and nested <= set(deep)
    assert learner.set_params(**deep) is learner
    assert learner.get_params() == deep
    assert learner.set_params() is learner
    if "kernel" in flat:
        assert deep["kernel__sigma"] == 1.0
        learner.set_params(kernel__sigma=0.25)
        assert learner.kernel.sigma == learner.get_params()["kernel__sigma"] == 0.25
        X, y = stream(learner, 90)
        narrow = okl.run(learner, X, y)
        assert_same_run(narrow, okl.run(make(cls, kernel=okl.Gaussian(0.25)), X, y))
        assert (narrow.predictions != plain(cls, 90)[0].predictions).any()


@every_variant
def test_set_params_takes_the_params_of_another_learner(case):
    learner, other = make(getattr(case, "cls", case)), make(case)
    assert repr(learner.set_params(**other.get_params())) == repr(other)


@every_learner
def test_set_params_sets_nested_names_of_the_new_object_whatever_their_order(cls):
    learner = make(cls)
    if "kernel" in learner.__signature__.parameters:
        old, new = learner.kernel, okl.Polynomial(2)
        learner.set_params(kernel__degree=3, kernel=new)
        assert learner.kernel is new and (new.degree, old.sigma) == (3, 1.0)


@every_learner
def test_set_params_refuses_unknown_names_and_changes_nothing_then(cls):
    learner = make(cls)
    names = learner.__signature__.parameters
    shown = repr(learner)
    numbers = [n for n in names if isinstance(getattr(learner, n), int | float)]
    unknown = [{"nonsense": 1}, {"nonsense__sigma": 1}, {"_width": 3}]
    unknown += [{f"{n}__nonsense": 1} for n in names]
    unknown += [{n: 0.5, "nonsense": 1} for n in numbers[:1]]
    unknown += [{n: 0.5, f"{m}__nonsense": 1} for n in numbers[:1] for m in names if m != n]
    for params in unknown:
        with pytest.raises(ValueError, match="nonsense|_width"):
            learner.set_params(**params)
        assert repr(learner) == shown, params


@every_learner
def test_repr_is_one_readable_line(cls):
    learner = make(cls)
    shown = repr(learner)
    assert (
        "\n" not in shown and shown.startswith(f"{cls.__name__}(") and "object at 0x" not in shown
    )
    for name in learner.__signature__.parameters:
        assert f"{name}=" in shown
    assert repr(eval(shown, vars(okl).copy())) == shown
    X, y = stream(learner, 40)
    assert repr(learner.partial_fit(X, y)) == shown


def holding(name):
    """Return a learner made of something that can change, and how its owner changes it later."""
    X, _ = stream(make(okl.POMDR), 20)
    if name == "classes":
        given = [-1, 1]
        return okl.OneVsRest(okl.OGD(0.1), given), given, lambda: given.append(2)
    if name == "array of classes":
        given = np.array([-1, 1])
        return okl.OneVsRest(okl.OGD(0.1), given), given, lambda: given.fill(7)
    if name == "column of classes":
        given = pandas.Series([-1, 1])
        return okl.OneVsRest(okl.OGD(0.1), given), given, lambda: given.update([7, 8])
    if name == "learners":
        given = [okl.OGD(0.1), okl.OGD(1.0)]
        return okl.Experts(given, B=None), given, lambda: given.pop()
    if name == "learners of learners":
        given = [okl.OGD(0.1), okl.OGD(1.0)]
        outer = [okl.Experts(given, B=None)]
        return okl.Standardized(okl.Experts(outer, B=None)), given, lambda: given.pop()
    if name == "kernels":
        given = [okl.Gaussian(0.5), okl.Gaussian(2.0)]
        return okl.BAO2KS(given), given, lambda: given.pop()
    if name == "center":
        given = np.zeros(X.shape[1])
        return okl.PKAWV(okl.TaylorFeatures(2, center=given)), given, lambda: given.fill(1.0)
    if name == "lists of landmarks":
        given = X[:5].tolist()
        features = okl.NystromFeatures(given, okl.Gaussian())
        return okl.PKAWV(features), given, lambda: given[0].reverse()
    given = X[:5].copy()
    given = given[:] if name == "view of landmarks" else given
    features = okl.NystromFeatures(given, okl.Gaussian())
    return okl.PKAWV(features), given, lambda: given.fill(0.5)


HOLDING = [
    "classes", "array of classes", "column of classes", "learners", "learners of learners",
    "kernels", "center", "landmarks", "view of landmarks", "lists of landmarks",
]  # fmt: skip


@pytest.mark.parametrize("name", HOLDING)
def test_what_a_learner_was_made_of_may_change_and_it_does_not(name, tmp_path):
    learner, given, change = holding(name)
    before = repr(given)
    X, y = stream(make(okl.POMDR), 60)
    learner.partial_fit(X[:40], y[:40])
    expected, kept = learner.predict(X), contents(learner)
    change()
    assert repr(given) != before
    assert contents(learner) == kept
    learner.save(tmp_path / "one.npz")
    for one in (learner, copy.deepcopy(learner), okl.load(tmp_path / "one.npz")):
        np.testing.assert_array_equal(one.predict(X), expected)
    learner.partial_fit(X[40:], y[40:])


@pytest.mark.parametrize("name", HOLDING)
def test_a_run_goes_on_with_a_fresh_learner_of_the_same_lists(name, tmp_path):
    X, y = stream(make(okl.POMDR), 60)
    whole = okl.run(holding(name)[0], X, y)
    okl.run(holding(name)[0], X[:40], y[:40], checkpoint=tmp_path / "run.npz")
    again = holding(name)[0]
    run = okl.run(again, X[40:], y[40:], checkpoint=tmp_path / "run.npz", resume=True)
    np.testing.assert_array_equal(run.predictions, whole.predictions)
