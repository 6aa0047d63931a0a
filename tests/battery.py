"""What the battery plays: every exported learner and sampler, on streams and on bad input."""

import functools
import inspect
import json
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.core.files import read_npz
from oklnumba.learners.base.contents import get_contents
from oklnumba.learners.base.learner import Learner
from tests.checks import COMPILED

N = 600 if COMPILED else 90  # rounds of an ordinary stream
CLASSES = [getattr(okl, name) for name in okl.__all__ if isinstance(getattr(okl, name), type)]
CLASSES = [cls for cls in dict.fromkeys(CLASSES) if issubclass(cls, Learner) and cls is not Learner]
# Refit holds a model of another library, which no file takes: test_refit.py.
OUTSIDE = okl.MultiOutput, okl.OneVsRest, okl.OnlineToBatch, okl.Refit  # of other learners, or slow
LEARNERS = [cls for cls in CLASSES if cls not in OUTSIDE]
every_learner = pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)
MEMBERS = [cls for cls in LEARNERS if cls is not okl.Horizon]  # that play within another learner
every_member = pytest.mark.parametrize("cls", MEMBERS, ids=lambda cls: cls.__name__)
# ``run`` says so where features or kernels do not suit the inputs; here that is meant.
far_from_the_origin = pytest.mark.filterwarnings("ignore:the (Taylor basis|kernel)")
SAMPLERS = [value for name in okl.__all__ if hasattr(value := getattr(okl, name), "landmarks_")]


# ---- learners, their streams and their state ----


def argument(name):
    """Return a value for a constructor's argument that has no default."""
    rules = {
        "kernel": lambda: okl.Gaussian(1.0),
        "kernels": lambda: [okl.Gaussian(0.5), okl.Gaussian(2.0)],
        "features": lambda: okl.TaylorFeatures(degree=2, sigma=1.0),
        "learner": lambda: getattr(okl, "OGD", okl.FOGD)(),
        "learners": lambda: [okl.KernelAWV(okl.Gaussian(1.0), lam=lam) for lam in (1.0, 0.1)],
    }
    assert name in rules, f"no rule for the argument {name!r}: give it a default or add one here"
    return rules[name]()


class Variant(NamedTuple):
    """A learner with one hyper-parameter that is not the default."""

    cls: type
    name: str
    value: Any


def variations():
    """Return a variant of every learner for each hyper-parameter with a rule here."""
    for cls in LEARNERS:
        learner = make(cls)
        params = learner.get_params(deep=False)
        rules = {
            "lam": 1e-3 if params.get("lam") else None,
            "forecaster": "ridge",
            "max_size": 12,
            "budget": 20 if not {"sketch", "rank"} & set(params) or "threshold" in params else None,
            "loss": "squared" if learner._loss().classes else "logistic",
            # a basis that grows is nested
            "features": okl.TaylorFeatures(1, sigma=2.0)
            if "first" in params
            else okl.FourierFeatures(12),
            "domain": "simplex",
            "discount": 0.9,
            "schedule": "sqrt",
            "sampling": "weighted",
            "sampler": "ald" if "restart" in params else None,
            "share": 0.05,
            "leaf_rows": 16,
            "kind": {"sqrt": "adagrad", "aggregating": "average"}.get(params.get("kind")),
        }
        rules |= {name: not value for name, value in params.items() if isinstance(value, bool)}
        for name, value in rules.items():
            if name in params and value is not None:
                yield Variant(cls, name, value)


def make(cls, **params):
    """Return a learner with its default hyper-parameters, or a variant."""
    if isinstance(cls, Variant):
        more = {"mu": 0.05} if cls.value == "ald" else {}  # by the default hardly a point joins
        return make(cls.cls, **({cls.name: cls.value} | more | params))
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in params:
            params[name] = argument(name)
    return cls(**params)


def labels(learner, values):
    """Return labels in the domain of a learner's loss: signs, or numbers in [-1, 1]."""
    if learner._loss().classes:
        return np.where(np.asarray(values) > 0.0, 1.0, -1.0)
    return np.clip(values, -1.0, 1.0)


def stream(learner, n=N, seed=0):
    """Return an ordinary noisy stream of n rounds."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    values = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 2] + 0.2 * rng.standard_normal(n)
    return X, labels(learner, values)


@functools.cache
def plain(cls, n=N):
    """Return the run of a fresh learner over the ordinary stream, and its contents afterwards."""
    learner = make(cls)
    return okl.run(learner, *stream(learner, n)), contents(learner)


def in_pieces(X, y, cut, upto):
    """Yield the rounds before ``upto`` in pieces; there a stream with more of them breaks off."""
    for start in range(0, upto, cut):
        rows = slice(start, min(start + cut, upto))
        yield X[rows], y[rows]
    if upto < len(y):
        raise OSError("the stream broke off")


def contents(learner):
    """Return all that save writes, as something that can be compared."""
    meta, arrays = get_contents(learner)
    return json.dumps(meta), {n: (str(a.dtype), a.shape, a.tobytes()) for n, a in arrays.items()}


def saved(learner, path):
    """Return what save writes, read back from the file."""
    learner.save(path)
    meta, arrays = read_npz(path)
    return meta, {n: (str(a.dtype), a.shape, a.tobytes()) for n, a in arrays.items()}


def by_hand(learner, X, y):
    """Play the protocol with predict_one and learn_one."""
    forecasts, sizes = [], []
    for x, label in zip(X, y, strict=True):
        forecasts.append(learner.predict_one(x))
        learner.learn_one(x, label)
        sizes.append(learner.size)
    return np.array(forecasts), np.array(sizes)


def proofs(certificate):
    """Return the arrays of a certificate by name."""
    parts = certificate._asdict().items()
    return {name: part for name, part in parts if isinstance(part, np.ndarray)}


def assert_same_proofs(got, expected, at=...):
    """A certificate, or that of some rounds or one output of it, is another one to the bit."""
    assert (got is None) == (expected is None)
    for name, values in proofs(expected).items() if expected is not None else ():
        assert_array_equal(getattr(got, name)[at], values, err_msg=name)


def assert_same_run(got, expected):
    """All that two runs recorded, but for the time, is the same to the bit."""
    for name in ("predictions", "losses", "sizes", "checkpoints"):
        assert_array_equal(getattr(got, name), getattr(expected, name), err_msg=name)
    assert_array_equal(got.mistakes, expected.mistakes)
    assert_array_equal(got.intervals, expected.intervals)
    assert (got.loss, got.rounds) == (expected.loss, expected.rounds)
    assert got.learner.split(" of Schema")[0] == expected.learner.split(" of Schema")[0]
    assert_same_proofs(got.certificate, expected.certificate)
    if got.certificate is not None:
        assert got.certificate.space == expected.certificate.space
        assert got.certificate.member == expected.certificate.member
        assert got.certificate.rounds == expected.certificate.rounds


def assert_close_run(got, expected):
    """Forecasts agree to rounding, and dictionaries are the same."""
    assert_allclose(got.predictions, expected.predictions, rtol=1e-9, atol=1e-12)
    assert_array_equal(got.sizes, expected.sizes)
    if expected.certificate is not None:
        for name, values in proofs(expected.certificate).items():
            assert_allclose(getattr(got.certificate, name), values, rtol=1e-8, atol=1e-10)


CASES = [pytest.param(cls, id=cls.__name__) for cls in LEARNERS]
CASES += [
    pytest.param(v, id=f"{v.cls.__name__}-{v.name}", marks=pytest.mark.slow) for v in variations()
]
every_variant = pytest.mark.parametrize("case", CASES)
CERTIFIED = [param for param in CASES if make(param.values[0])._traits.certificate_rows]
# These change numbers, but not what a learner keeps, so that they are saved and copied alike.
NUMBERS = "lam", "loss"
STATES = [param for param in CASES if param.id.split("-")[-1] not in NUMBERS]
every_state = pytest.mark.parametrize("case", STATES)


def rounds(case):
    """Return N, or less for what is slow; test_self_tuning.py and test_tree.py play it on."""
    slow = okl.SelfTuning, okl.Tree, okl.FrequentKONS
    return min(N, 320) if isinstance(make(case), slow) else N


# ---- streams that are hard ----


def hard_stream(name, learner, n):
    rng = np.random.default_rng(5)
    X, y = stream(learner, n, seed=5)
    if name.startswith("repeated"):
        X, y = np.repeat(X[:1], n, axis=0), y if "other labels" in name else np.repeat(y[:1], n)
    elif name == "zero":
        X = np.zeros_like(X)
    elif name == "alternating":
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
        X = np.repeat(X[: n // 2], 2, axis=0)[:n]
    elif name == "sorted":
        X, y = np.sort(X, axis=0), np.sort(y)
    elif name == "close":
        X = X[:1] + 1e-7 * X / np.sqrt(3)
    elif name == "spread":
        X = X * 10.0 ** np.array([-8.0, 0.0, 6.0])
    elif name == "far":
        X = X + 1e6
    else:
        assert name == "wide" and n >= 10
        X = rng.standard_normal((n, 40))
    parameters = learner.__signature__.parameters.keys()
    kernelised = {"kernel", "kernels", "features", "learners"} & parameters
    if not kernelised:  # a linear learner sees these inputs as they are: keep them bounded
        X = X / max(1.0, np.sqrt((X**2).sum(axis=1).max()))
    return X, y


HARD = (
    "repeated", "repeated with other labels", "zero", "alternating", "sorted", "close", "spread",
    "far", "wide",
)  # fmt: skip


# Learners with their defaults on all of them, variants on what is hard for each in its own way.
ON_HARD_STREAMS = [
    pytest.param(*case.values, name, id=f"{case.id}-{name}", marks=case.marks)
    for case in CASES
    for name in (HARD if isinstance(case.values[0], type) else ("alternating", "spread", "wide"))
]


# ---- whatever holds the data ----


def read_only(a, path):
    a = a.copy()
    a.flags.writeable = False
    return a


def mapped(a, path):
    np.save(path, a)
    return np.load(path, mmap_mode="r")


HOLDERS = {
    "read-only": read_only,
    "memory-mapped": mapped,
    "Fortran": lambda a, path: np.asfortranarray(a),
    "strided": lambda a, path: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a, path: a[::-1].copy()[::-1],
    "lists": lambda a, path: a.tolist(),
    "objects": lambda a, path: a.astype(object),
    "big-endian": lambda a, path: a.astype(">f8"),
}


# ---- bad input ----


def with_value(value, dtype=float):
    def changed(a):
        a = a.astype(dtype)
        a[(len(a) // 2,) + (0,) * (a.ndim - 1)] = value
        return a

    return changed


def ragged(a):
    return [*a.tolist()[:-1], [0.5] * 7]


BAD_ARRAYS = {  # for X, for y and for one point x
    "NaN": with_value(np.nan),
    "infinity": with_value(np.inf),
    "minus infinity": with_value(-np.inf),
    "None inside": with_value(None, object),
    "strings": lambda a: a.astype(str),
    "bytes": lambda a: a.astype(bytes),
    "text in an object array": with_value("text", object),
    "numbers as text in an object array": with_value("1.0", object),
    "a list with text": lambda a: [*a.tolist()[:-1], "text"],
    "complex": lambda a: a.astype(complex),
    "complex in an object array": with_value(1j, object),
    "dates": lambda a: np.zeros(a.shape, dtype="datetime64[s]"),
    "ragged": ragged,
    "a number too large for a double": with_value(10**400, object),
    "sparse": lambda a: scipy.sparse.csr_array(np.atleast_2d(with_value(np.nan)(a))),
    "a dictionary": lambda a: {"a": a},
    "text": lambda a: "text",
    "one number": lambda a: 0.5,
    "empty list": lambda a: [],
    "no rows": lambda a: a[:0],
    "3-D": lambda a: a.reshape(-1, 1, 1),
}
BAD_X = BAD_ARRAYS | {
    "None": lambda a: None,
    "1-D": lambda a: a[0],
    "no columns": lambda a: a[:, :0],
}
WIDTHS = {"one column less": lambda a: a[..., :-1], "one more": lambda a: np.repeat(a, 2, axis=-1)}


# ---- hyper-parameters out of range ----


NAN, INF = float("nan"), float("inf")
NO_NUMBER = [NAN, True, "text", None, [1.0], 1j]
CHOICE = ["nonsense", "", 3, None, ["squared"]]
OBJECT = ["text", 3, None, object()]
BAD_VALUES = {  # by the check that stands beside the hyper-parameter
    "require_choice": CHOICE,
    "require_flag": [0, 1, "yes", None],
    "require_seed": [-1, 0.5, INF, *NO_NUMBER],
    "check_kernel": OBJECT,
    "check_features": OBJECT,
    **dict.fromkeys(("check_kernels", "_check_learners"), [*OBJECT, [], [3]]),
    "check_p": [-1.0, 0.5, *NO_NUMBER],
    "_check_center": ["text", NAN],
    "_check_seasons": ["text", 1, 2.5, [24, 0]],
}


def domain(part, name):
    """Return the check of a hyper-parameter, what it is given, and whether None is allowed."""
    (one,) = (one for one in fields(part) if one.name == name)
    check = one.metadata["check"]
    given = getattr(check, "keywords", {})
    return getattr(check, "func", check).__name__, given, one.metadata["optional"]


def bad_values(part, name):
    """Return values that the domain of a hyper-parameter does not have."""
    check, given, optional = domain(part, name)
    if check == "require_within":
        low, high = map(float, given["interval"][1:-1].split(","))
        ends = zip((low, high), given["interval"][:: len(given["interval"]) - 1], strict=True)
        values = [end for end, bracket in ends if bracket in "()"]
        beyond = np.nextafter((low, high), (-INF, INF)).tolist()
        values += [*beyond, -INF, INF, *NO_NUMBER]
    elif check == "require_count":
        values = [given["least"] - 1, -1, given["least"] + 0.5, INF, *NO_NUMBER]
    else:
        is_word = isinstance(getattr(part, name), str)
        values = BAD_VALUES.get(check, CHOICE if is_word else OBJECT)
    return [value for value in values if not (optional and value is None)]
