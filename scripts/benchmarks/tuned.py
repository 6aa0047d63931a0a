"""The learners of the package tuned by hand on a data set, as the scripts of the papers tune them.

Inputs are scaled, and labels of a regression too, with the whole stream: that looks ahead. The
setting is chosen with labels: on a permutation of its own of the set, or another draw of a made-up
stream; each setting plays TUNING_ROWS / 4 rows, and the best quarter of them TUNING_ROWS.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product

import numpy as np

import oklnumba as okl
from scripts.benchmarks.peers import combinations, survived
from scripts.benchmarks.streams import SETS, Stream, of_group, of_set
from scripts.common import Learner

TUNING_SEED = 1000  # of the permutation, or of the made-up stream
TUNING_ROWS = 10_000
SIGMAS = tuple(2.0**k for k in range(-2, 7, 2))
EXPONENTS = range(-3, 4)  # steps 10^(-3..3) / sqrt(T)
LAMS = (0.01, 0.1, 1.0)
BUDGET, RANK, FREQUENCIES = 400, 80, 200
MOST_MONOMIALS = 600  # else Taylor features are left out
LINEAR = {"LinearAWV", "LinearRidge", "OGD", "OGD, logistic"}  # with an intercept
HINGE_ONLY = {"POMDR", "OGD, logistic"}  # labels -1 and +1 only

Maker = Callable[[int], Learner]  # of the number of rounds
Forecasts = np.ndarray | None


def scalings(X: np.ndarray) -> dict[str, np.ndarray]:
    """Return the inputs scaled over the whole stream in the two usual ways."""
    standardised = okl.Standardizer(clip=None).fit_transform(X)
    return {"to [-1, 1]": okl.datasets.scale_to(X), "standardised": standardised}


def grids(kind: str, d: int) -> dict[str, dict[str, Maker]]:
    """Return the settings of each family, by name, and how to make the learner."""
    signs, G = kind == "classification", okl.Gaussian
    loss = {"loss": "hinge" if signs else "squared"}

    def taylor(sigma: float) -> okl.TaylorFeatures:
        return okl.TaylorFeatures(2, sigma=sigma)

    def step(exponent: int, T: int) -> float:
        return 10.0**exponent / T**0.5

    lams = partial(combinations, told="lam={lam:g}", lam=LAMS)
    steps = partial(combinations, told="step=1e{exponent}/sqrt(T)", exponent=EXPONENTS)
    curved = partial(combinations, told="sigma={sigma:g} lam={lam:g}", sigma=SIGMAS, lam=LAMS)
    moved = partial(combinations, told="sigma={sigma:g} step=1e{exponent}/sqrt(T)", sigma=SIGMAS,
                    exponent=EXPONENTS)  # fmt: skip
    found = {
        "LinearAWV": lams(lambda T, lam: okl.LinearAWV(lam)),
        "LinearRidge": lams(lambda T, lam: okl.LinearRidge(lam)),
        "OGD": steps(lambda T, exponent: okl.OGD(step(exponent, T), **loss)),
        "OGD, logistic": steps(lambda T, exponent: okl.OGD(step(exponent, T), loss="logistic")),
        "POMDR": combinations(
            lambda T, sigma: okl.POMDR(G(sigma), horizon=T), told="sigma={sigma:g}", sigma=SIGMAS),
        "PKAWV, Fourier": curved(lambda T, sigma, lam: okl.PKAWV(
            okl.FourierFeatures(FREQUENCIES, sigma=sigma), lam=lam)),
        "PKAWV, Taylor": curved(lambda T, sigma, lam: okl.PKAWV(taylor(sigma), lam=lam)),
        **{f"NystromAWV, {kind}": curved(lambda T, sigma, lam, kind=kind: okl.NystromAWV(
            G(sigma), lam=lam, max_size=BUDGET, forecaster=kind)) for kind in ("awv", "ridge")},
        "FOGD": moved(lambda T, sigma, exponent: okl.FOGD(
            eta=step(exponent, T), sigma=sigma, n_frequencies=FREQUENCIES, **loss)),
        "NOGD": moved(lambda T, sigma, exponent: okl.NOGD(
            G(sigma), eta=step(exponent, T), budget=BUDGET, rank=RANK, **loss)),
        "KernelOGD": moved(lambda T, sigma, exponent: okl.KernelOGD(
            G(sigma), eta=step(exponent, T), budget=BUDGET, **loss)),
        "BOGD": moved(lambda T, sigma, exponent: okl.BOGD(
            G(sigma), eta=step(exponent, T), budget=BUDGET, **loss)),
    }  # fmt: skip
    absent = set() if signs else HINGE_ONLY
    if taylor(1.0).size(d) > MOST_MONOMIALS:
        absent = absent | {"PKAWV, Taylor"}
    return {family: grid for family, grid in found.items() if family not in absent}


def play(
    family: str, make: Maker, X: np.ndarray, stream: Stream, rows: int | None = None
) -> Forecasts:
    """Return forecasts in the units of the labels; None where the learner's numbers overflow.

    ``X`` are the inputs, scaled; of a stream of which ``rows`` are played.
    """
    y, rows = stream.y, rows or len(stream.y)
    if family in LINEAR:
        X = np.column_stack([X, np.ones(len(X))])
    middle, half = 0.0, 1.0
    if stream.kind == "regression":  # labels scaled to [-1, 1]
        middle, half = (y.max() + y.min()) / 2.0, (y.max() - y.min()) / 2.0
    run = survived(make(rows), X[:rows], (y[:rows] - middle) / half)
    return None if run is None else middle + half * run.predictions


def clipped(forecasts: np.ndarray, stream: Stream) -> np.ndarray:
    """Return forecasts within [-1, 1], or within the labels seen so far."""
    if stream.kind == "classification":
        return np.clip(forecasts, -1.0, 1.0)
    y = stream.y[: len(forecasts)]
    low, high = np.minimum.accumulate(y), np.maximum.accumulate(y)
    out = forecasts.copy()
    out[1:] = np.clip(out[1:], low[:-1], high[:-1])
    return out


def score(forecasts: Forecasts, stream: Stream) -> float:
    """Return the share of mistakes, or the mean squared error of a regression."""
    if forecasts is None or not np.isfinite(forecasts).all():
        return np.inf
    y = stream.y[: len(forecasts)]
    if stream.kind == "classification":
        return float(np.mean(y * forecasts <= 0.0))
    return float(np.square(clipped(forecasts, stream) - y).mean())


@lru_cache(maxsize=4)
def rehearsal(group: str) -> Stream:
    """Return the stream on which a group of streams (a set, or a made-up stream) is tuned."""
    return of_set(group, TUNING_SEED) if group in SETS else next(of_group(group, TUNING_SEED))


@lru_cache(maxsize=1)
def tune(group: str, family: str) -> tuple[str, str]:
    """Return the scaling and the setting with the lowest score."""
    stream = rehearsal(group)
    inputs = scalings(stream.X)
    grid = grids(stream.kind, stream.X.shape[1])[family]
    left = list(product(inputs, grid))
    for rows in (TUNING_ROWS // 4, TUNING_ROWS):
        rows = min(rows, len(stream.y))
        scores = {
            (how, setting): score(play(family, grid[setting], inputs[how], stream, rows), stream)
            for how, setting in left
        }
        left = sorted(left, key=scores.__getitem__)[: max(3, len(left) // 4)]
    return left[0]
