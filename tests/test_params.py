"""The hyper-parameters of every learner: stored, read, set, cloned and shown."""

import copy

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.core.params import Params
from tests.battery import assert_same_run, contents, every_learner, every_variant, make, stream
from tests.checks import refused


@every_learner
def test_the_constructor_stores_its_arguments_and_nothing_else(cls):
    names = list(cls.__signature__.parameters)
    given = make(cls).get_params(deep=False)
    learner = cls(**given)
    assert vars(learner).keys() == {*names, "_lock"} and list(given) == names
    assert all(getattr(learner, name) is value for name, value in given.items())


@every_variant
def test_an_assigned_hyper_parameter_takes_effect_at_reset(case, tmp_path):
    learner, other = make(getattr(case, "cls", case)), make(case)
    X, y = stream(learner, 120)
    whole = okl.run(make(type(learner)), X, y)
    learner.partial_fit(X[:60], y[:60])
    learner.set_params(**other.get_params())
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
            assert {f"{name}__{inner}" for inner in value.get_params()} <= set(deep)
    assert learner.set_params(**deep) is learner is learner.set_params()
    assert learner.get_params() == deep
    if "kernel" in flat:
        learner.set_params(kernel__sigma=0.25)
        assert learner.kernel.sigma == learner.get_params()["kernel__sigma"] == 0.25
        narrow = okl.run(learner, *stream(learner, 90))
        expected = okl.run(make(cls, kernel=okl.Gaussian(0.25)), *stream(learner, 90))
        assert_same_run(narrow, expected)
        old, new = learner.kernel, okl.Polynomial(2)  # nested names are those of the new object
        learner.set_params(kernel__degree=3, kernel=new)
        assert learner.kernel is new and (new.degree, old.sigma) == (3, 0.25)


@every_learner
def test_set_params_refuses_unknown_names_and_changes_nothing_then(cls):
    learner = make(cls)
    names, shown = learner.__signature__.parameters, repr(learner)
    numbers = [n for n in names if isinstance(getattr(learner, n), int | float)][:1]
    unknown = [{"nonsense": 1}, {"nonsense__sigma": 1}, {"_width": 3}]
    unknown += [{f"{n}__nonsense": 1} for n in names]
    unknown += [{n: 0.5, "nonsense": 1} for n in numbers]
    unknown += [{n: 0.5, f"{m}__nonsense": 1} for n in numbers for m in names if m != n]
    for params in unknown:
        refused("nonsense|_width|has no hyper-parameters", learner.set_params, **params)
        assert repr(learner) == shown, params


@every_learner
def test_repr_is_one_readable_line(cls):
    learner = make(cls)
    shown = repr(learner)
    assert "\n" not in shown and shown.startswith(f"{cls.__name__}(")
    assert all(f"{name}=" in shown for name in learner.__signature__.parameters)
    assert repr(eval(shown, vars(okl).copy())) == shown
    assert repr(learner.partial_fit(*stream(learner, 40))) == shown


POINTS = stream(make(okl.POMDR), 60)
LANDMARKS = POINTS[0][:5]


def on_landmarks(given):
    return okl.PKAWV(okl.NystromFeatures(given, okl.Gaussian()))


HOLDING = {  # what is given, the learner that is made of it, and how its owner changes it later
    "classes": (lambda: [-1, 1], lambda v: okl.OneVsRest(okl.OGD(), v), lambda v: v.append(2)),
    "array of classes": (
        lambda: np.array([-1, 1]), lambda v: okl.OneVsRest(okl.OGD(), v), lambda v: v.fill(7)
    ),
    "column of classes": (
        lambda: pandas.Series([-1, 1]),
        lambda v: okl.OneVsRest(okl.OGD(), v),
        lambda v: v.update([7, 8]),
    ),
    "learners of learners": (
        lambda: [okl.OGD(0.1), okl.OGD(1.0)],
        lambda v: okl.Standardized(okl.Experts([okl.Experts(v, B=None)], B=None)),
        lambda v: v.pop(),
    ),
    "kernels": (
        lambda: [okl.Gaussian(0.5), okl.Gaussian(2.0)], okl.BAO2KS, lambda v: v.pop()
    ),
    "center": (
        lambda: np.zeros(3),
        lambda v: okl.PKAWV(okl.TaylorFeatures(2, center=v)),
        lambda v: v.fill(1.0),
    ),
    "landmarks": (LANDMARKS.copy, on_landmarks, lambda v: v.fill(0.5)),
    "lists of landmarks": (LANDMARKS.tolist, on_landmarks, lambda v: v[0].reverse()),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDING)
def test_what_a_learner_was_made_of_may_change_and_it_does_not(name, tmp_path):
    given, make_learner, change = HOLDING[name]
    given, (X, y) = given(), POINTS
    learner, before = make_learner(given), repr(given)
    learner.partial_fit(X[:40], y[:40])
    expected, state = learner.predict(X), contents(learner)
    change(given)
    assert repr(given) != before
    assert contents(learner) == state
    learner.save(tmp_path / "one.npz")
    for one in (learner, copy.deepcopy(learner), okl.load(tmp_path / "one.npz")):
        assert_array_equal(one.predict(X), expected)
    learner.partial_fit(X[40:], y[40:])
    again = HOLDING[name][0]  # a checkpoint goes on with a fresh learner of the same lists
    whole = okl.run(make_learner(again()), X, y)
    okl.run(make_learner(again()), X[:40], y[:40], checkpoint=tmp_path / "run.npz")
    run = okl.run(make_learner(again()), X, y, checkpoint=tmp_path / "run.npz")
    assert_array_equal(run.predictions, whole.predictions)
