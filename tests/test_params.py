"""The hyper-parameters of every learner: stored, read, set, cloned and shown."""

from __future__ import annotations

import inspect

import pytest
from sklearn.base import clone

import oklnumba as okl
from oklnumba.params import Params
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
    assert vars(learner) == given_values and list(given_values) == names
    for name, value in given_values.items():
        assert getattr(learner, name) is value
    strange = object()
    bare = cls.__new__(cls)
    cls.__init__(bare, **dict.fromkeys(names, strange))
    assert vars(bare) == dict.fromkeys(names, strange)


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
    if "kernel" in learner._param_names():
        old, new = learner.kernel, okl.Polynomial(2)
        learner.set_params(kernel__degree=3, kernel=new)
        assert learner.kernel is new and (new.degree, old.sigma) == (3, 1.0)


@every_learner
def test_set_params_refuses_unknown_names_and_changes_nothing_then(cls):
    learner = make(cls)
    names = learner._param_names()
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
def test_set_params_after_data_is_refused(cls):
    learner = make(cls)
    X, y = stream(learner, 40)
    learner.partial_fit(X, y)
    before = contents(learner)
    for name, value in learner.get_params().items():
        with pytest.raises(ValueError, match="reset"):
            learner.set_params(**{name: value})
    assert contents(learner) == before
    learner.reset().set_params(**learner.get_params())


@every_learner
def test_repr_is_one_readable_line(cls):
    learner = make(cls)
    shown = repr(learner)
    assert (
        "\n" not in shown and shown.startswith(f"{cls.__name__}(") and "object at 0x" not in shown
    )
    for name in learner._param_names():
        assert f"{name}=" in shown
    assert repr(eval(shown, vars(okl).copy())) == shown
    X, y = stream(learner, 40)
    assert repr(learner.partial_fit(X, y)) == shown
