"""Compile beforehand: ``okl.warm_up`` fills the cache of compiled code, for deployments."""

import time
import warnings
from collections.abc import Iterator
from itertools import product

import numpy as np

from oklnumba.components import losses
from oklnumba.components.features import FourierFeatures, NystromFeatures, TaylorFeatures
from oklnumba.components.kernels import Gaussian, Precomputed
from oklnumba.core.checks import require_flag, warn
from oklnumba.core.display import Bar
from oklnumba.core.params import Params, clone, find_parts, list_classes
from oklnumba.hot.primitives.jit import cache_folder, has_compiled
from oklnumba.learners.awv import PKAWV
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.first_order import OGD
from oklnumba.learners.refit import Refit
from oklnumba.protocol.run import run
from oklnumba.protocol.several import MultiOutput, OneVsRest

NO_FOLDER = (
    "no folder for it is writable, set NUMBA_CACHE_DIR; or the package lies in an archive, "
    "unpack it"
)
ROWS = 130  # SelfTuning measures its first metric after round 128
BY_HAND = 3
TINY = 1e-6  # labels where those of size 1 are refused
WIDTH = 2
# What stands for an argument without a default; each of several is compiled.
LANDMARKS = np.linspace(-1, 1, 5 * WIDTH).reshape(5, WIDTH)
MAPS = TaylorFeatures(2), FourierFeatures(4), NystromFeatures(LANDMARKS, Gaussian())
GIVEN = {
    "kernel": (Gaussian(),),
    "kernels": ([Gaussian(0.5), Gaussian(2.0)],),
    "features": MAPS,
    "learner": (OGD(),),
    "learners": ([OGD(eta=0.1), OGD(eta=1.0)],),
    "classes": ((0, 1, 2),),
}
# Of classes that take less, or have more loops than their defaults play.
INSTEAD = {"GrowingPKAWV": {"features": MAPS[:1]}}
MORE = {
    "FOGD": ({"features": TaylorFeatures(2)},),
    "ExpConcaveFTRL": ({"domain": "simplex"}, {"domain": "ball", "radius": 1.0}),
    "MultiOutput": ({"learner": PKAWV(TaylorFeatures(2))},),
    "OneVsRest": ({"learner": PKAWV(TaylorFeatures(2))},),
}


def warm_up(*learners: str | Learner, progress: bool = False) -> dict[str, float]:
    """Compile what learners need to run, learn and predict, and keep it in the cache on disk.

    The cache is the folder ``NUMBA_CACHE_DIR``, or else lies beside the package or, where that is
    read-only, in the user's cache folder. Processes that find it compile nothing. A warning says so
    if no folder is writable. A wheel brings compiled code, which is only loaded then. Call it where
    a service starts: no forecast or label after it waits for a compiler.

    Parameters
    ----------
    *learners : str or learner
        Names of classes, which stand for their defaults and any feature map; or learners, which are
        left as they are. None: every learner of the package.
    progress : bool
        Show a progress bar.

    Returns
    -------
    dict of str to float
        CPU seconds by learner. Learners share code, so the first ones take longest.

    Examples
    --------
    >>> list(okl.warm_up("OGD", okl.LinearRidge(lam=0.1)))
    ['OGD', 'LinearRidge(lam=0.1, discount=1.0)']
    """
    progress = require_flag("progress", progress)
    wanted = {one if isinstance(one, str) else repr(one): one for one in learners or warmable()}
    plays = {title: list(examples(one)) for title, one in wanted.items()}
    seconds = {}
    for title, made in Bar(plays.items(), unit=" learner", disable=not progress):
        start = time.process_time()
        for learner in made:
            _play(learner)
        seconds[title] = time.process_time() - start
    if cache_folder() is None and has_compiled():
        warn(f"compiled code is not stored, so that other processes compile again: {NO_FOLDER}")
    return seconds


def warmable() -> dict[str, type[Learner]]:
    """Return the classes of learners that have compiled loops, by name."""
    classes = list_classes().items()
    return {n: c for n, c in classes if issubclass(c, Learner) and c not in (Learner, Refit)}


def examples(learner: str | Learner) -> Iterator[Learner]:
    """Yield learners without data that play all the loops of one that is named, or of a copy."""
    if isinstance(learner, Learner):
        yield clone(learner)
        return
    classes = warmable()
    if not isinstance(learner, str) or learner not in classes:
        names = ", ".join(classes)
        raise ValueError(f"no learner {learner!r}; pass the name of one; there are: {names}")
    cls = classes[learner]
    needed = [name for name, p in cls.__signature__.parameters.items() if p.default is p.empty]
    given = GIVEN | INSTEAD.get(learner, {})
    for values in product(*(given[name] for name in needed)):
        for more in ({}, *MORE.get(learner, ())):
            yield cls(**dict(zip(needed, values, strict=True)) | more)


def _make_rows(learner: Params) -> np.ndarray:
    """Return made-up inputs of the width that a learner takes; of WIDTH where it takes any."""
    rng, width = np.random.default_rng(0), WIDTH
    if kernels := find_parts(Precomputed, learner):
        return rng.integers(0, np.shape(kernels[0].K)[0], (ROWS, 1)).astype(float)
    for name, value in learner.get_params(deep=True).items():
        if name.split("__")[-1] in ("landmarks", "center", "scales") and np.ndim(value) > 0:
            width = np.shape(value)[-1]
    return rng.uniform(-1, 1, (ROWS, width))


def _play(learner: Learner) -> None:
    """Play some rounds of made-up data: in bulk, and by hand."""
    X = _make_rows(learner)
    y = np.sign(X[:, 0] + 0.1)
    if isinstance(learner, OneVsRest):
        y = np.asarray(learner.classes)[np.arange(ROWS) % len(learner.classes)]
    else:
        if isinstance(learner, MultiOutput):
            y = np.stack([y, -y], axis=1)
        try:
            learner._as_labels(y, ROWS)
        except ValueError:  # beyond a bound on labels, such as C
            y = TINY * y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kernels and features need not suit these inputs
        try:
            interrupted = run(learner, X, y).interrupted
        except Exception as error:  # as of a basis that needs other columns
            said = f"rows of {X.shape[1]} made-up columns do not suit {learner!r}: {error}"
            cure = f"play {ROWS} rows of yours by a copy of it, copy.deepcopy(learner)"
            raise ValueError(f"{said}; {cure}") from error
        if interrupted:
            raise KeyboardInterrupt
        learner.health()
    learner.predict(X)
    losses.get("logistic").value(X[:, 0], X[:, -1])  # the one loss whose values are compiled
    for t in range(BY_HAND):
        learner.predict_one(X[t])
        learner.learn_one(X[t], y[t])
    for name in ("w", "weights"):  # what else a learner computes of its state
        getattr(learner, name, None)
