"""Every public call of oklnumba with odd arguments, and what may come of it."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import dis
import fractions
import inspect
import os
import resource
import signal
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse

import oklnumba as okl
from tests.battery import LEARNERS, make

HOME = str(Path(okl.__file__).parent)
ROOM = 3 * 2**30  # bytes that a call may take beyond what the process has
CPU_SECONDS = 5.0  # that a call may take, where nothing is compiled
MOST_SECONDS = 60.0  # with what is

RNG = np.random.default_rng(0)
N = 24
X = RNG.uniform(-1.0, 1.0, (N, 2))
Y = np.where(X[:, 0] > 0.1 * RNG.standard_normal(N), 1.0, -1.0)


# ---- odd arguments ----


class Empty:
    """An object of nothing."""


ODD = {
    "None": lambda: None,
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "minus infinity": lambda: float("-inf"),
    "10 ** 30": lambda: 10**30,
    "10 ** 400": lambda: 10**400,
    "-10 ** 30": lambda: -(10**30),
    "10 ** 9": lambda: 10**9,
    "2 ** 63": lambda: 2**63,
    "-1": lambda: -1,
    "0": lambda: 0,
    "0.0": lambda: 0.0,
    "1": lambda: 1,
    "2": lambda: 2,
    "7": lambda: 7,
    "0.5": lambda: 0.5,
    "1e-300": lambda: 1e-300,
    "1e300": lambda: 1e300,
    "5e-324": lambda: 5e-324,
    "True": lambda: True,
    "False": lambda: False,
    "complex": lambda: 1j,
    "text": lambda: "x",
    "empty text": lambda: "",
    "bytes": lambda: b"",
    "empty list": lambda: [],
    "empty dict": lambda: {},
    "dict": lambda: {"a": 1},
    "empty tuple": lambda: (),
    "set": lambda: {1.0},
    "object": Empty,
    "class": lambda: Empty,
    "a class of ours": lambda: okl.Gaussian,
    "lambda": lambda: lambda *args, **kwargs: None,
    "module": lambda: np,
    "ellipsis": lambda: ...,
    "date": lambda: datetime.date(2020, 1, 1),
    "slice": lambda: slice(None),
    "range": lambda: range(3),
    "generator": lambda: (i for i in range(3)),
    "Fraction": lambda: fractions.Fraction(1, 3),
    "Decimal": lambda: decimal.Decimal("0.3"),
    "Decimal sNaN": lambda: decimal.Decimal("sNaN"),
    "float16": lambda: np.float16(0.5),
    "float32": lambda: np.float32(0.5),
    "float64": lambda: np.float64(0.5),
    "longdouble": lambda: np.longdouble("0.5"),
    "long double 1e4000": lambda: np.longdouble("1e4000"),
    "complex64": lambda: np.complex64(1.0),
    "int8": lambda: np.int8(3),
    "int64": lambda: np.int64(3),
    "uint8": lambda: np.uint8(3),
    "uint64": lambda: np.uint64(2**64 - 1),
    "bool_": lambda: np.bool_(True),
    "str_": lambda: np.str_("x"),
    "datetime64": lambda: np.datetime64("2020-01-01"),
    "timedelta64": lambda: np.timedelta64(1, "s"),
    "void": lambda: np.zeros(1, dtype=[("a", float)])[0],
    "0-d": lambda: np.array(0.5),
    "0-d of an object": lambda: np.array(None),
    "list": lambda: [0.5, 0.5],
    "list of lists": lambda: [[0.5, 0.5], [0.5, -0.5]],
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "list of text": lambda: ["a", "b"],
    "list of None": lambda: [None],
    "1-D": lambda: np.full(2, 0.5),
    "2-D": lambda: np.full((3, 2), 0.5),
    "column": lambda: np.full((N, 1), 0.5),
    "3-D": lambda: np.full((2, 2, 2), 0.5),
    "no rows": lambda: np.empty((0, 2)),
    "no columns": lambda: np.empty((3, 0)),
    "nothing": lambda: np.empty(0),
    "NaN inside": lambda: np.where(np.arange(N * 2).reshape(N, 2) == 3, np.nan, X),
    "NaN among labels": lambda: np.where(np.arange(N) == 3, np.nan, Y),
    "large inputs": lambda: X * 1e300,
    "small inputs": lambda: X * 1e-300,
    "large labels": lambda: Y * 1e300,
    "zeros": lambda: np.zeros((N, 2)),
    "zero labels": lambda: np.zeros(N),
    "repeated": lambda: np.repeat(X[:1], N, axis=0),
    "wide": lambda: np.ones((N, 5)),
    "narrow": lambda: np.ones((N, 1)),
    "integers": lambda: np.sign(X).astype(np.int8),
    "objects": lambda: X.astype(object),
    "bools": lambda: Y > 0,
    "dates": lambda: np.zeros(N, dtype="datetime64[s]"),
    "structured": lambda: np.zeros(N, dtype=[("a", float), ("b", float)]),
    "texts": lambda: np.full(N, "a"),
    "complexes": lambda: X + 1j,
    "float32 inputs": lambda: X.astype(np.float32),
    "read-only": lambda: as_read_only(X),
    "not contiguous": lambda: np.asfortranarray(np.repeat(X, 2, axis=1))[:, ::2],
    "masked": lambda: np.ma.masked_array(Y, Y > 0),
    "a matrix": lambda: X.view(np.ndarray).T,
    "sparse": lambda: scipy.sparse.csr_array(X),
    "coo": lambda: scipy.sparse.coo_array(X),
    "frame": lambda: pd.DataFrame(X, columns=["a", "b"]),
    "empty frame": lambda: pd.DataFrame(),
    "frame of text": lambda: pd.DataFrame({"a": ["x"] * N, "b": X[:, 0]}),
    "series": lambda: pd.Series(Y),
    "categorical": lambda: pd.Series(["a", "b"] * (N // 2), dtype="category"),
    "NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "path": lambda: Path("nowhere"),
    "a folder": lambda: ".",
    "kernel": lambda: okl.Gaussian(1.0),
    "features": lambda: okl.TaylorFeatures(2),
    "learner": lambda: okl.OGD(),
    "X": lambda: X.copy(),
    "y": lambda: Y.copy(),
}


def as_read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


# ---- good arguments ----


def played(cls=okl.KRLS):
    return okl.run(make(cls), X, Y)


def axes():
    return plt.figure().subplots()


def small_table():
    row = {"data": "one", "learner": "b", "setting": "", "regret": 2.0, "mean_size": 3.0}
    return okl.Table([row | {"error": "", "seed": seed} for seed in range(2)])


GOOD = {
    "X": X.copy, "y": Y.copy, "kernel": lambda: okl.Gaussian(1.0),
    "features": lambda: okl.TaylorFeatures(2),
    "kernels": lambda: [okl.Gaussian(1.0)], "learner": okl.OGD, "learners": lambda: [okl.OGD()],
    "landmarks": lambda: X[:5].copy(), "classes": lambda: [-1.0, 1.0], "lam": lambda: 0.5,
    "alpha": lambda: 0.5, "loss": lambda: "squared", "name": lambda: "magic04", "n": lambda: 20,
    "d": lambda: 2, "gamma": lambda: 0.5, "mu": lambda: 0.1, "size": lambda: 5, "m": lambda: 3,
    "gradients": X.copy, "w": lambda: np.array([0.5, 0.5]), "u": lambda: np.array([0.5, 0.5]),
    "v": lambda: np.array([0.25, 0.75]), "eta": lambda: 0.1, "p": lambda: 1.5,
    "radius": lambda: 2.0,
    "sigma": lambda: 1.0, "lipschitz": lambda: 1.0, "alpha_tilde": lambda: 0.1, "count": lambda: 3,
    "switches": lambda: 2, "share": lambda: 0.1, "predictions": lambda: 0.5 * Y,
    "experts": X.copy, "forecasts": lambda: 0.5 * Y, "final": lambda: 1.0, "lowest": lambda: 0.0,
    "dual_norms": lambda: np.ones(5), "hinge_loss": lambda: 1.0, "gap": lambda: 1.0,
    "R": lambda: 1.0, "eps": lambda: 0.1, "discount": lambda: 0.9, "Z": X.copy,
    "comparators": X.copy, "at": lambda: [5, 10], "sizes": lambda: np.arange(N) + 1,
    "alignment": lambda: 1.0, "potential": lambda: okl.oco.euclidean(), "points": X.copy,
    "relatives": lambda: np.exp(X), "A": lambda: np.eye(2),
    "game": lambda: okl.oco.LeastSquares(X, Y),
    "source": lambda: [(X, Y)], "data": lambda: {"one": (X, Y)}, "rows": lambda: [{"a": 1.0}],
    "run": played, "runs": lambda: {"one": played()}, "axes": axes, "fig": lambda: axes().figure,
    "axis": lambda: axes().xaxis, "text": lambda: "title", "low": lambda: 1.0, "high": lambda: 10.0,
    "number": lambda: 1, "table": small_table, "s": lambda: np.array([0.5, 0.2]),
    "values": X.copy, "forecast": lambda: 0.5, "x": lambda: X[0].copy(), "g": lambda: X[0].copy(),
    "path": lambda: "somewhere.npz", "t": lambda: 3, "C": lambda: 1.0, "regret_bound": lambda: 1.0,
    "column": lambda: 0, "norm": lambda: 1.0, "centers": lambda: 3, "center": lambda: [0.0, 0.0],
    "z": lambda: X[1].copy(), "transform": lambda: "default", "input_features": lambda: None,
    "delta": lambda: 0.05, "lo": lambda: -1.0, "hi": lambda: 1.0, "by": lambda: ("a",),
    "deep": lambda: True, "steps": lambda: np.ones(N), "scale": lambda: 1.0,
}  # fmt: skip
RIVER = "river regressor", "river classifier"
OWN = {  # of one call
    **{
        (f"{name}.{call}_one", "x"): lambda: {"a": 0.5, "b": -0.5}
        for name in RIVER
        for call in ("learn", "predict", "predict_proba")
    },
    **{
        (f"{name}.{call}_many", "X"): lambda: pd.DataFrame(X, columns=["a", "b"])
        for name in RIVER
        for call in ("learn", "predict", "predict_proba")
    },
    **{(f"{name}.learn_many", "y"): lambda: pd.Series(Y) for name in RIVER},
    **{(f"{name}.learn_one", "y"): lambda: 1.0 for name in RIVER},
    ("load", "path"): lambda: "learner.npz",
    ("Run.load", "path"): lambda: "run.npz",
    ("Table.load", "path"): lambda: "table.npz",
    ("taylor_bound", "features"): lambda: okl.TaylorFeatures(2),
    ("growing_bound", "features"): lambda: okl.TaylorFeatures(2),
    ("comparator", "features"): lambda: None,
    ("thin", "n"): lambda: 1000,
    ("thin", "points"): lambda: 30,
    ("rates", "points"): lambda: 30,
    ("thin_checkpoints", "points"): lambda: 30,
    ("load_data", "scale"): lambda: None,
    ("regret_vs_size", "sizes"): lambda: [5],
    ("regret_vs_size", "learners"): lambda: {"a": okl.KRLS(okl.Gaussian(1.0))},
    ("plots.regret_vs_size", "values"): lambda: "regret",
    ("size_curves", "values"): lambda: "regret",
    ("size_curves", "learners"): lambda: ["b"],
    ("sweep", "learners"): lambda: {"a": okl.KRLS(okl.Gaussian(1.0))},
    ("Loss.derivative", "y"): lambda: 1.0,
    ("Logistic.derivative", "y"): lambda: 1.0,
    ("play", "learner"): okl.OGD,
    ("greedy", "learner"): lambda: okl.KRLS(okl.Gaussian(1.0)),
    ("greedy", "n"): lambda: 2,
    ("run", "learner"): lambda: okl.KRLS(okl.Gaussian(1.0)),
    ("nystrom_size_bound", "mu"): lambda: 0.5,
    ("Table.pivot", "rows"): lambda: "a",
    ("Table.mean", "by"): lambda: ("a",),
    ("WithFeatures", "learner"): okl.OGD,
    ("MulticlassRun", "arrays"): lambda: {},
    ("MulticlassRun", "meta"): lambda: {},
    ("discounted_awv_bound", "comparators"): lambda: X[:, :].copy(),
    ("GrowingPKAWV", "features"): lambda: okl.TaylorFeatures(1),
}


def good(call, name):
    """Return a good value of an argument, a new one each time."""
    short = call.split(".")[-1]
    for key in ((call, name), (short, name)):
        if key in OWN:
            return OWN[key]()
    return GOOD[name]()


# ---- what is called ----


def in_river(learner, task):
    adapted = okl.interop.to_river(learner, **({"task": task} if task else {}))
    return adapted.learn_one({"a": 0.1, "b": 0.2}, 1.0) or adapted


OBJECTS = {cls.__name__: (lambda cls=cls: make(cls).partial_fit(X, Y)) for cls in LEARNERS} | {
    "OnlineToBatch": lambda: okl.OnlineToBatch(okl.OGD()).partial_fit(X, Y),
    "OneVsRest": lambda: okl.OneVsRest(okl.FOGD(), [-1.0, 1.0]).partial_fit(X, Y),
    "MultiOutput": lambda: okl.MultiOutput(okl.OGD()).partial_fit(X, X),
    "KORS": lambda: okl.KORS(okl.Gaussian(1.0)).fit(X),
    "UniformSampling": lambda: okl.UniformSampling(okl.Gaussian(1.0), probability=0.9).fit(X),
    "ALD": lambda: okl.ALD(okl.Gaussian(1.0)).fit(X),
    "FourierFeatures": lambda: okl.FourierFeatures(5),
    "TaylorFeatures": lambda: okl.TaylorFeatures(2),
    "NystromFeatures": lambda: okl.NystromFeatures(X[:5], okl.Gaussian(1.0)),
    "Gaussian": okl.Gaussian,
    "Laplacian": okl.Laplacian,
    "Matern": okl.Matern,
    "Linear": okl.Linear,
    "Polynomial": okl.Polynomial,
    "Standardizer": okl.Standardizer,
    "Run": played,
    "Table": lambda: okl.Table([{"a": 1.0, "learner": "b", "regret": 2.0}]),
    "Loss": lambda: okl.losses.get("squared"),
    "Logistic": lambda: okl.losses.get("logistic"),
    "Hindsight": lambda: okl.theory.Hindsight(okl.Gaussian(1.0), X, Y, 0.5),
    "Meter": lambda: okl.theory.Meter(okl.TaylorFeatures(2)),
    "LeastSquares": lambda: okl.oco.LeastSquares(X, Y),
    "Portfolio": lambda: okl.oco.Portfolio(np.exp(X)),
    "Played": lambda: okl.oco.play(okl.OGD(), okl.oco.LeastSquares(X, Y)),
    "RKHSFunction": lambda: okl.adversary.rkhs_function(okl.Gaussian(1.0), 2),
    "OnlineClassifier": lambda: okl.interop.OnlineClassifier(okl.FOGD()).fit(X, Y),
    "OnlineRegressor": lambda: okl.interop.OnlineRegressor(okl.OGD()).fit(X, Y),
    "river regressor": lambda: in_river(okl.OGD(), "regression"),
    "river classifier": lambda: in_river(okl.FOGD(), None),
    "euclidean": okl.oco.euclidean,
    "squared_p_norm": okl.oco.squared_p_norm,
    "negative_entropy": okl.oco.negative_entropy,
}
POTENTIAL = "value", "gradient", "conjugate", "mirror_map", "norm", "dual_norm"
COMPILES = okl.warm_up  # all there is, for a minute
NOT_OURS = {"count", "index", "get_metadata_routing", "plot"}  # of tuples and scikit-learn


def is_ours(function):
    return getattr(function, "__module__", "").startswith("oklnumba")


class Call:
    """One public call: a function, a constructor or a method, with the names of its arguments."""

    def __init__(self, name, function, make=None):
        self.name, self.function, self.make = name, function, make
        parameters = inspect.signature(function if make is None else function(make())).parameters
        plain = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.positional = [p.name for p in plain if p.kind is p.POSITIONAL_ONLY]
        self.arguments = [p.name for p in plain]
        self.needed = [p.name for p in plain if p.default is p.empty]

    def with_arguments(self, changed):
        """Return a call with good arguments but for the changed ones, ready to be made."""
        values = {name: good(self.name, name) for name in self.needed if name not in changed}
        values |= {name: ODD[odd]() for name, odd in changed.items()}
        called = self.function if self.make is None else self.function(self.make())
        args = [values.pop(name) for name in self.positional]
        return lambda: consume(called(*args, **values))


def consume(value):
    """Ask a generator for what it has; return all else."""
    return list(value) if inspect.isgenerator(value) else value


def modules():
    return [
        okl,
        *(getattr(okl, name) for name in okl.__all__ if inspect.ismodule(getattr(okl, name))),
    ]


def functions():
    """Yield name and function of all that is public, and the constructors."""
    seen = set()
    for module in modules():
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value) or not callable(value) or id(value) in seen:
                continue
            if value is COMPILES:
                continue
            seen.add(id(value))
            if isinstance(value, type) and (
                issubclass(value, tuple)
                or value in (okl.Run, okl.losses.Loss, okl.oco.LinearLearner)
                or value.__name__ in ("Dataset", "Played", "Potential", "RKHSFunction")
            ):
                continue  # what calls return: records, nobody makes them
            yield (
                f"{module.__name__.removeprefix('oklnumba').lstrip('.')}.{name}".lstrip("."),
                value,
            )


def methods():
    """Yield name, method by object, and how the object is made."""
    for name, made in OBJECTS.items():
        shown = made()
        public = POTENTIAL if isinstance(shown, okl.oco.Potential) else dir(type(shown))
        for method in (*public, "__call__"):
            if method in NOT_OURS or method.startswith("_") and method != "__call__":
                continue
            static = inspect.getattr_static(type(shown), method, None)
            if isinstance(static, property) or not callable(getattr(shown, method, None)):
                continue
            if is_ours(getattr(shown, method)):
                yield f"{name}.{method}", (lambda one, m=method: getattr(one, m)), made


def calls():
    """Return every public call that takes an argument."""
    found = [Call(name, function) for name, function in functions()]
    found += [Call(*method) for method in methods()]
    return [call for call in found if call.arguments]


# ---- what may come of it ----


class Hang(BaseException):
    """A call took too long."""


@contextlib.contextmanager
def watched():
    """Stop what takes long, refuse it gigabytes, and raise for NumPy's warnings."""

    def stop(*_):
        raise Hang(f"more than {MOST_SECONDS} s of the processor")

    before = signal.signal(signal.SIGPROF, stop)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    try:
        resource.setrlimit(
            resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGESIZE") + ROOM, limits[1])
        )
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGPROF, before)


SKLEARN = {"validate_data", "check_classification_targets"}  # our estimators leave it to them
TOLD = (
    NotImplementedError,
    ValueError,
    TypeError,
    FloatingPointError,
    ImportError,
    MemoryError,
    OSError,
)


def fault(call, changed):
    """Make a call; return what is wrong with the outcome, "" for a value or an error of ours."""
    wrong, seconds = outcome(call, changed)
    if not wrong and seconds > CPU_SECONDS:  # again: what it needs is compiled now
        wrong, seconds = outcome(call, changed)
        wrong = wrong or (f"took {seconds:.1f} s" if seconds > CPU_SECONDS else "")
    return wrong


def outcome(call, changed):
    """Make a call; return what is wrong with its outcome, and its seconds."""
    made, start = call.with_arguments(changed), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of plots that are closed
        wrong = told(made)
        plt.close("all")
    return wrong, time.process_time() - start


def told(made):
    """Make a call; return what is wrong with the error it raises, "" for a good one or a value."""
    try:
        with watched():
            made()
    except Exception as error:
        trace = error.__traceback__
        frames: list = []
        while trace is not None:
            frames.append(trace)
            trace = trace.tb_next
        last = frames[-1]
        code, file = last.tb_frame.f_code, last.tb_frame.f_code.co_filename
        raised = code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]
        ours = isinstance(error, TOLD) and raised and file.startswith(HOME) and str(error)
        shape = isinstance(error, TypeError) and file == __file__  # of the call itself
        system = isinstance(error, OSError) and error.filename is not None
        theirs = isinstance(error, ValueError | TypeError) and any(
            f.tb_frame.f_code.co_name in SKLEARN for f in frames
        )  # scikit-learn's own words, which its estimator checks ask for
        if ours or shape or system or theirs:
            return ""
        place = next(
            (f"{Path(f.tb_frame.f_code.co_filename).name}:{f.tb_lineno}" for f in reversed(frames)
             if f.tb_frame.f_code.co_filename.startswith(HOME)), "outside",
        )  # fmt: skip
        return f"{place}: {type(error).__name__}: {str(error)[:150]}"
    except Hang as hang:
        return f"Hang: {hang}"
    return ""


def prepare(folder):
    """Write the files that calls of good arguments read."""
    okl.OGD().partial_fit(X, Y).save(folder / "learner.npz")
    played().save(folder / "run.npz")
    okl.Table([{"a": 1.0, "learner": "b", "regret": 2.0}]).save(folder / "table.npz")


def drawn(rng, found, odds=None):
    """Return a call and its odd arguments, drawn: one mostly, two or three now and then."""
    call = found[rng.integers(len(found))]
    count = min(1 + rng.geometric(0.7) - 1, len(call.arguments)) or 1
    names = rng.choice(call.arguments, size=count, replace=False)
    keys = list(ODD) if odds is None else odds
    return call, {str(name): keys[rng.integers(len(keys))] for name in names}
