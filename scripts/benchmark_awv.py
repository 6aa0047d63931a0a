"""Speed and memory of the AWV family, as ratios taken in one run on one machine.

Reproduces: the speed of the listings printed in Jezequel et al. 2019, appendix H.2, beside ours.
Missing: nothing of the listings; they are timed on a slice of the stream and scaled to a round.
Time: about two minutes (one with --quick, which plays a tenth of the rounds).
Data: synthetic (uniform inputs in [-1, 1]^d, noisy signs as labels).
"""

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from common import alone
from timing import least, report, row, seconds, stream, timed

import oklnumba as okl
from oklnumba.experiments.resident import Peak
from oklnumba.hot.awv import certify
from oklnumba.hot.primitives.jit import hot
from oklnumba.hot.primitives.linalg import add_multiple, dot

PRINTED = "the printed listing"
SIZES = 1000, 1024
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests import naive  # noqa: E402  (the listings live with the textbook versions)


def play_listing(learner, X: np.ndarray, y: np.ndarray, coins=None) -> np.ndarray:
    out = []
    for x, label in zip(X, y, strict=True):
        out.append(learner.predict(x, coins.random()) if coins else learner.predict(x))
        learner.update(label)
    return np.array(out)


@hot
def listing_rounds(Z, y, P, b, v, forecasts):
    """Play the printed listing, compiled: A^-1 by Sherman-Morrison, twice the work of our factor.

    Z : (n, r); y : (n,); P : (r, r), A^-1, and b : (r,), sum of y z, modified in place; v : (r,),
    workspace; forecasts : (n,), written.
    """
    r = b.shape[0]
    for t in range(y.shape[0]):
        z = Z[t]
        q = 1.0
        for i in range(r):
            v[i] = dot(P[i], z, r)
            q += v[i] * z[i]
        for i in range(r):
            add_multiple(P[i], -v[i] / q, v, r)  # A_t^-1 from A_{t-1}^-1
        forecasts[t] = 0.0
        for i in range(r):
            forecasts[t] += z[i] * dot(P[i], b, r)
        add_multiple(b, y[t], z, r)


def play_compiled(features: okl.TaylorFeatures, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Play the listing as it stands, compiled, on distinct monomials."""
    Z = features.transform(X)
    r = Z.shape[1]
    forecasts = np.empty(len(Z))
    listing_rounds(Z, y, np.eye(r), np.zeros(r), np.empty(r), forecasts)
    return forecasts


def taylor(d: int, degree: int, n: int, slice_rounds: int, goal: float) -> list[dict]:
    """PKAWV against the printed listing, whose forecasts must be the same."""
    X, y = stream(n, d)
    # Taylor features of degree 2 hold little of the kernel here; speed does not care.
    features = okl.TaylorFeatures(degree, sigma=3.0)
    small, expected = (X[:slice_rounds], y[:slice_rounds]), []

    def listed() -> None:
        expected.append(play_listing(naive.PhiAWV(d, sigma=3.0, M=degree), *small))

    listing = seconds(listed, repeat=1) / slice_rounds
    compiled = seconds(lambda: play_compiled(features, *small)) / slice_rounds
    for found in (
        okl.run(okl.PKAWV(features), *small).predictions,
        play_compiled(features, *small),
    ):
        np.testing.assert_allclose(found, expected[0], rtol=0, atol=1e-10)
    bulk = seconds(lambda: okl.run(okl.PKAWV(features), X, y))
    r = features.size(d)
    name = f"PKAWV d={d} M={degree} (r={r})"
    return [
        row(f"{name}, run of {n} rounds", bulk, listing * n / bulk, goal, PRINTED),
        row(f"{name}, the listing compiled, a round", compiled, listing / compiled, None, PRINTED),
    ]


def nystrom(sigma: float, n: int) -> dict:
    """NystromAWV with its KORS against the printed listing on the same coins."""
    X, y = stream(n, 4)
    kernel = okl.Gaussian(sigma)

    learner = naive.NystromListing(4, lambda a, b: np.exp(-((a - b) @ (a - b)) / (2 * sigma**2)))
    start = time.perf_counter()
    expected = play_listing(learner, X, y, np.random.default_rng(0))
    theirs = time.perf_counter() - start
    run = okl.run(okl.NystromAWV(kernel), X, y)
    # Later the block inverse of the listing's KORS has lost its digits: its coins fall otherwise.
    np.testing.assert_allclose(run.predictions[:200], expected[:200], rtol=0, atol=1e-6)
    ours = seconds(lambda: okl.run(okl.NystromAWV(kernel), X, y))
    name = f"NystromAWV with KORS, {n} rounds, {run.sizes[-1]} atoms at the end"
    return row(name, ours, theirs / ours, 100, "the printed listing, slips corrected")


def certificate(n: int) -> dict:
    """What the certificate costs: its compiled pass against the whole run."""
    X, y = stream(n, 18)
    run = okl.run(okl.PKAWV(okl.TaylorFeatures(2, sigma=3.0)), X, y)
    out = [np.empty((n, 1)) for _ in range(3)]
    shrinks, growth = np.full(n, 1.01), np.zeros((n, 1))
    Y, forecasts = y.reshape(n, 1), run.predictions.reshape(n, 1)

    def once():
        certify(Y, forecasts, shrinks, growth, 1.0, np.zeros((1, 6)), tuple(out))

    cost = seconds(once)
    name = f"certificate of {n} rounds, PKAWV r=190"
    return row(name, cost, 100 * cost / run.seconds, 2, "percent of the run", at_most=True)


def discount(n: int) -> dict:
    """What a discount costs PKAWV."""
    X, y = stream(n, 18)
    features = okl.TaylorFeatures(2, sigma=3.0)
    plays = [
        lambda g=g: okl.PKAWV(features, discount=g).partial_fit(X, y) for g in (1, 2 ** (-1 / 500))
    ]
    plain, discounted = least(*(partial(timed, f, time.process_time) for f in plays), repeat=15)
    name = f"PKAWV r=190 with a discount, run of {n} rounds"
    return row(name, discounted, discounted / plain, 1.05, "CPU time without", at_most=True)


def stride(n: int) -> dict:
    """A factor whose rows would lie a multiple of 4096 bytes apart, against one whose do not."""
    rng = np.random.default_rng(0)
    runs = [(rng.uniform(-1, 1, (n, r)) / np.sqrt(r), rng.choice([-1.0, 1.0], n)) for r in SIZES]
    plays = [partial(okl.run, okl.LinearAWV(), *run) for run in runs]
    times = least(*(partial(timed, f, time.process_time) for f in plays), repeat=7)
    ratio = times[1] / times[0] * (SIZES[0] / SIZES[1]) ** 2
    name = f"LinearAWV, r = {SIZES[1]}, run of {n} rounds"
    what = f"CPU time of r = {SIZES[0]}, for each number of the factor"
    return row(name, times[1], ratio, 1.05, what, at_most=True)


def classes(n: int, K: int = 10) -> dict:
    """OneVsRest on one factor against a learner for each class, whose scores must be the same."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, n)
    X = 0.3 * rng.standard_normal((n, 64)) + rng.uniform(-1, 1, (K, 64))[y]
    learner = okl.PKAWV(okl.FourierFeatures(100, sigma=6.0))
    several = okl.OneVsRest(learner, classes=range(K))

    def apart() -> np.ndarray:
        runs = [okl.run(learner.reset(), X, np.where(y == k, 1.0, -1.0)) for k in range(K)]
        return np.stack([run.predictions for run in runs], axis=1)

    np.testing.assert_array_equal(okl.run(several, X, y).scores, apart())
    ours, theirs = seconds(lambda: okl.run(several.reset(), X, y)), seconds(apart)
    name = f"OneVsRest(PKAWV) of {K} classes, d=64, r=200, run of {n} rounds"
    return row(name, ours, theirs / ours, None, f"{K} learners")


def above_the_data(n: int) -> int | None:
    """Return the peak memory of a run above the data, bytes; None where that is not told."""
    (X, y), learner = stream(n, 18), okl.PKAWV(okl.TaylorFeatures(2, sigma=3.0))
    okl.run(learner, X[:600], y[:600])  # compiles
    with Peak() as peak:
        okl.run(learner.reset(), X, y)
    return peak.rise


def memory(n: int) -> list[dict]:
    """Peak memory of a PKAWV run above the data, in a process of its own (Linux)."""
    name, what = f"PKAWV r=190, run of {n} rounds", "MB above the data, peak"
    rise = alone(above_the_data, n)
    return [] if rise is None else [row(name, np.nan, rise / 2**20, 400, what, at_most=True)]


def jobs(quick: bool) -> list:
    million = 100_000 if quick else 1_000_000
    return [
        lambda: taylor(18, 2, million, 300, 45),
        lambda: taylor(8, 4, million // 50, 8, 2000),
        lambda: [nystrom(sigma, 1000) for sigma in (1.6, 1.0)],
        lambda: [certificate(million)],
        lambda: [stride(500 if quick else 2000)],
        lambda: memory(million),
        lambda: [discount(million // 10), classes(million // 50)],
    ]


if __name__ == "__main__":
    report(__doc__, "play a tenth of the rounds", jobs)
