"""What every learner refuses: bad input, bad hyper-parameters, numbers that overflow."""

import copy
import functools
import itertools
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import oklnumba as okl
from tests import battery
from tests.battery import BAD_ARRAYS, BAD_X, LEARNERS, assert_same_run, contents, make, stream
from tests.checks import COMPILED, refused, troubled

# ---- bad input ----

BAD_Y = BAD_ARRAYS | {
    "None": lambda a: None,
    "one too few": lambda a: a[:-1],
    "a column": lambda a: a[:, None],
}
BAD_POINTS = BAD_ARRAYS | {"None": lambda a: None, "2-D": lambda a: a[None, :]}
BAD_LABELS = [None, np.nan, -np.inf, "text", "1.0", 1j, [1.0, 1.0], [], [[1.0, 1.0], [1.0]]]
BAD_LABELS += [10**400, np.datetime64("2020-01-01")]
OUTSIDE = [0.0, 2.0, np.nextafter(1.0, 0.0), 0]  # neither -1 nor +1
BAD_OPTIONS = {
    "time_limit": [0, -1.0, np.nan, "text"],
    "every": [0, -1.0, np.nan, "text"],
    "record": [0, -1, 1.5, True, None, "some", [1]],
    "progress": ["yes", 1, None],
    "delay": [-1, 1.5, None],
    "batch": [0, 2.5],
    "labels": ["none", True],
}
CALLS = {
    "predict": lambda learner, X, y: learner.predict(X),
    "partial_fit": lambda learner, X, y: learner.partial_fit(X, y),
    "run": lambda learner, X, y: okl.run(learner, X, y),
    "chunks": lambda learner, X, y: okl.run(learner, iter([(X, y)])),
}


def bad_calls(learner, X, y, with_widths):
    """Yield what is wrong, the argument that the message must name, and the call."""
    widths = battery.WIDTHS if with_widths else {}
    signs = OUTSIDE if learner._loss().classes else []
    bad_y = BAD_Y | {f"label {value}": battery.with_value(value) for value in signs}
    for call, play in CALLS.items():
        for name, bad in (BAD_X | widths).items():
            if (call, name) in EMPTY:
                continue
            yield f"{call}, X: {name}", "X", lambda one, b=bad, p=play: p(one, b(X), y)
        for name, bad in bad_y.items() if call != "predict" else ():
            yield f"{call}, y: {name}", "y", lambda one, b=bad, p=play: p(one, X, b(y))
    for name, bad in (BAD_POINTS | widths).items():
        yield f"predict_one, x: {name}", "x", lambda one, b=bad: one.predict_one(b(X[0]))
        yield f"learn_one, x: {name}", "x", lambda one, b=bad: one.learn_one(b(X[0]), y[0])
    for bad in [*BAD_LABELS, *signs]:
        yield f"learn_one, y: {bad}", "y", lambda one, b=bad: one.learn_one(X[0], b)
    half = np.append(y[:-1], 0.5)
    yield "hinge loss of 0.5", "y", lambda one: okl.run(one, X, half, loss="hinge")
    yield "unknown loss", "loss", lambda one: okl.run(one, X, y, loss="nonsense")
    for option, values in BAD_OPTIONS.items():
        for bad in values:
            yield option, option, lambda one, o=option, b=bad: okl.run(one, X, y, **{o: b})
    yield "a chunk of one", "pair", lambda one: okl.run(one, iter([(X,)]))


EMPTY = ("predict", "no rows"), ("chunks", "no rows"), ("chunks", "empty list")  # are skipped


def problem(call, name):
    """Return what is wrong with the error that a call raises; None if nothing is."""
    try:
        call()
    except ValueError as error:
        return None if re.search(rf"\b{name}\b", str(error)) else f"no {name} in {str(error)!r}"
    except Exception as error:
        return f"{type(error).__name__} instead of ValueError: {error}"
    return "accepted"


# The last one first: while nothing is compiled, test_all_learners.py compiles from the first on.
@pytest.mark.parametrize("cls", LEARNERS[::-1], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("rounds", [0, 40])
def test_bad_input_is_refused_by_every_call_and_changes_nothing(cls, rounds):
    learner, twin = make(cls), make(cls)
    X, y = stream(learner, 80)
    for one in (learner, twin):
        if rounds:
            one.partial_fit(X[:rounds], y[:rounds])
    before, problems = contents(twin), []
    calls = bad_calls(learner, X[40:46], y[40:46], with_widths=rounds > 0)
    for method, some in itertools.groupby(calls, lambda call: call[0].partition(",")[0]):
        for what, name, call in some:
            found = problem(lambda: call(learner), name)  # noqa: B023
            problems += [f"{what}: {found}"] if found else []
        assert contents(learner) == before, f"the learner has changed in {method}"
    assert not problems, "\n".join(problems)
    assert_same_run(okl.run(learner, X[rounds:], y[rounds:]), okl.run(twin, X[rounds:], y[rounds:]))
    assert contents(learner) == contents(twin)


# ---- hyper-parameters out of range ----


def part_of(learner, name):
    """Return the object that has a hyper-parameter, and its name there."""
    *outer, last = name.split("__")
    return functools.reduce(getattr, outer, learner), last


def hyper_parameters(positive=False):
    for cls in LEARNERS:
        learner = make(cls)
        for name in learner.get_params():
            if (
                not positive
                or battery.domain(*part_of(learner, name))[1].get("interval") == "(0, inf)"
            ):
                yield pytest.param(cls, name, id=f"{cls.__name__}-{name}")


@pytest.mark.parametrize("cls, name", list(hyper_parameters()))
def test_a_hyper_parameter_out_of_range_is_refused_wherever_it_is_given(cls, name):
    learner = make(cls)
    X, y = stream(learner, 90)
    part, last = part_of(learner, name)
    params, own, problems = learner.get_params(), part.get_params(deep=False), []
    attributes = set(vars(learner))
    for bad in battery.bad_values(part, last):
        ways = {
            "constructor": lambda b=bad: type(part)(**(own | {last: b})),
            "set_params": lambda b=bad: learner.set_params(**{name: b}),
        }
        found = {way: problem(call, last) for way, call in ways.items()}
        assert learner.get_params() == params
        setattr(part, last, bad)  # refused at the first round, and can be repaired
        found["partial_fit"] = problem(lambda: learner.partial_fit(X, y), last)
        found["learn_one"] = problem(lambda: learner.learn_one(X[0], y[0]), last)
        found["run"] = problem(lambda: okl.run(learner, X, y), last)
        problems += [f"{last}={bad!r}, {way}: {text}" for way, text in found.items() if text]
        assert set(vars(learner)) - {"_first_labels", "_schema"} == attributes  # no state
        setattr(part, last, params[name])
    assert not problems, "\n".join(problems)
    assert_same_run(okl.run(learner, X, y), battery.plain(cls, 90)[0])


BY_STEP = okl.OGD()
BY_STEP.eta = -1.0
HINGE = [okl.FOGD(), okl.FOGD(eta=1.0)]
CONFLICTS = [  # values that do not go together, and what the message says
    (okl.OGD, {"schedule": "strong"}, r"\blam\b"),
    (okl.OGD, {"schedule": "strong", "lam": 1.0, "eta": 0.5}, "eta=0.5 would be ignored"),
    (okl.AdaptiveFTRL, {"sigma": 2.0}, "sigma=2.0 would be ignored"),
    (okl.ExpConcaveFTRL, {"domain": "ball"}, "radius"),
    (okl.ExpConcaveFTRL, {"radius": 1.0}, "radius=1.0 would be ignored"),
    (okl.OnlineNewtonStep, {"loss": "hinge"}, r"\beta\b"),
    (okl.SketchedONS, {"loss": "absolute"}, r"\beta\b"),
    (okl.PNorm, {"p": 2.5}, r"\bp\b"),
    (okl.WithFeatures, {"learner": okl.OGD}, r"\blearner\b"),
    (okl.POMDR, {"budget": 21}, "budget must be even, for"),
    (okl.POMDR, {"switch_size": 20, "budget": 20}, "switch_size.* budget = 20"),
    (okl.KernelOGD, {"eta": 0.5, "lam": 2.0}, "lam must be less than"),
    (okl.NOGD, {"budget": 10, "rank": 11}, "rank must be at most budget = 10"),
    (okl.SkeGD, {"budget": 50}, "columns must be at most budget = 50"),
    (okl.SkeGD, {"sketch": 301}, "sketch must be a multiple of blocks = 4"),
    (okl.SkeGD, {"rank": 61}, "rank must be at most sketch and columns"),
    (okl.NystromAWV, {"sampler": "uniform"}, "sampler must be"),
    (okl.NystromAWV, {"sampler": True}, "sampler must be"),
    (okl.ProsNKONS, {"sampler": 1.5}, "sampler must be"),
    (okl.ProsNKONS, {"sampler": 0.5, "mu": 2.0}, "mu=2.0 would be ignored"),
    (okl.ProsNKONS, {"sampler": "ald", "beta": 2.0}, "beta=2.0 would be ignored"),
    (okl.NystromAWV, {"sampler": "ald"}, "sampler must be"),
    (okl.ProsNKONS, {"loss": "hinge"}, "loss='hinge' has no curvature.*FOGD"),
    (okl.KONS, {"loss": "hinge"}, "loss='hinge' has no curvature.*FOGD"),
    (okl.SketchedKONS, {"loss": "absolute"}, "loss='absolute' has no curvature.*FOGD"),
    (okl.BAO2KS, {"kernels": [okl.Gaussian()] * 2, "beta": 1.5}, "beta=1.5 would be ignored"),
    (okl.BAO2KS, {"kernels": [okl.Gaussian(), 3]}, "kernels must be an oklnumba kernel.* but is 3"),
    (okl.Experts, {"learners": [okl.FOGD(), okl.LinearAWV()]}, "one loss"),
    (okl.Experts, {"learners": HINGE}, "hedge"),
    (okl.Experts, {"learners": [BY_STEP]}, "eta"),
    (okl.Experts, {"learners": HINGE, "kind": "hedge", "B": None}, "an upper bound on the loss"),
    (okl.Experts, {"learners": HINGE, "kind": "mlpoly", "share": 0.1}, "share must be 0"),
    (okl.Experts, {"learners": HINGE, "kind": "mlpoly", "B": 2.0}, "B=2.0 would be ignored"),
]  # fmt: skip


@pytest.mark.parametrize("cls, params, message", CONFLICTS, ids=lambda one: repr(one)[:60])
def test_values_that_do_not_go_together_are_refused(cls, params, message):
    refused(message, make, cls, **params)
    assigned = make(cls)
    vars(assigned).update(params)
    X, y = stream(make(cls), 20)
    refused(message, lambda: assigned.partial_fit(X, np.sign(y)))
    assert assigned.size == 0 == assigned.rounds


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@pytest.mark.parametrize("value", [1e-300, 1e300])
@pytest.mark.parametrize("cls, name", list(hyper_parameters(positive=True)))
@battery.far_from_the_origin
@pytest.mark.filterwarnings("ignore:alpha=.* no point reaches")
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


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@battery.every_member  # Horizon forecasts rounds later
@pytest.mark.parametrize("size", [1e100, 1e308])
@battery.far_from_the_origin
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
    calls = [lambda play=play: play(learner, X, y) for play in CALLS.values()]
    calls += [lambda: learner.predict_one(X[0]), lambda: learner.learn_one(X[0], y[0])]
    calls += [lambda: learner.save(tmp_path / "a.npz"), lambda: pickle.dumps(learner)]
    for call in [*calls, lambda: copy.deepcopy(learner)]:
        troubled(found[0], call)
    assert not (tmp_path / "a.npz").exists()
    assert_array_equal(okl.run(learner.reset(), X[:20], y[:20]).predictions, start)
