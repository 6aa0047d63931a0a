"""Speed and memory of the AWV family, as ratios taken in one run on one machine.

Reproduces: the speed of PKAWV as printed in Jezequel et al. 2019, appendix H.2, next to ours.
Missing: the listing with KORS; the other plays a slice of the stream, and times are per round.
Time: about two minutes (one with --quick, which plays a tenth of the rounds).
"""

import math
import time
from functools import partial

import numba
import numpy as np

import oklnumba as okl
from scripts.benchmarks.timing import least_times, median_seconds, report, row, speed, stream, timed
from scripts.common import memory_mb, run_in_process

PRINTED = "the printed listing"  # on all ordered products: 343 and 4681, where 190 and 495 differ
NUMPY = "NumPy on the same features"


class PhiAWV:
    """PKAWV with Taylor features as appendix H.2 prints it: all ordered products, dense NumPy."""

    def __init__(self, d, sigma=1.0, lbd=1.0, M=2):
        self.b = None
        self.M, self.lbd, self.sigma = M, lbd, sigma

    def taylor_phi(self, x):
        res = np.array([1.0])
        mm = np.array([1.0])
        for k in range(1, self.M + 1):
            mm = np.outer(mm, x).flatten()
            res = np.concatenate((res, mm / (self.sigma**k * np.sqrt(math.factorial(k)))))
        return res * np.exp(-np.dot(x, x) / (2 * self.sigma**2))

    def predict(self, x):
        z = self.taylor_phi(x)
        if self.b is None:
            self.b = np.zeros(len(z))
            self.A_inv = (1 / self.lbd) * np.eye(len(z))
        v = np.dot(self.A_inv, z)
        v /= np.sqrt(1 + np.dot(z, v))
        self.A_inv -= np.outer(v, v)
        self.z = z
        return np.dot(np.dot(self.A_inv, self.b), z)

    def update(self, y):
        self.b += y * self.z


def play_listing(learner, X, y):
    out = []
    for x, label in zip(X, y, strict=True):
        out.append(learner.predict(x))
        learner.update(label)
    return np.array(out)


def play_numpy(features, X, y):
    """Play the listing in NumPy on distinct monomials."""
    Z, out = features.transform(X), np.empty(len(y))
    P, b = np.eye(Z.shape[1]), np.zeros(Z.shape[1])
    for t, z in enumerate(Z):
        v = P @ z
        P -= np.outer(v / (1.0 + z @ v), v)
        out[t] = z @ (P @ b)
        b += y[t] * z
    return out


def play_compiled(features, X, y):
    """Play the listing as it stands, compiled, on distinct monomials."""
    Z = features.transform(X)
    return listing_rounds(Z, y, np.eye(Z.shape[1]), np.zeros(Z.shape[1]))


@numba.njit(fastmath=True, error_model="numpy")
def listing_rounds(Z, y, P, b):
    """Return the forecasts of the listing: P = A^-1 by Sherman-Morrison, b the sum of y z."""
    forecasts, v, r = np.zeros(len(y)), np.empty(len(b)), len(b)
    for t in range(len(y)):
        z, share = Z[t], 1.0
        for i in range(r):
            v[i] = 0.0
            for j in range(r):
                v[i] += P[i, j] * z[j]
            share += v[i] * z[i]
        for i in range(r):
            row = 0.0
            for j in range(r):
                P[i, j] -= v[i] * v[j] / share
                row += P[i, j] * b[j]
            forecasts[t] += z[i] * row
        for i in range(r):
            b[i] += y[t] * z[i]
    return forecasts


def taylor(d: int, degree: int, n: int, slice_rounds: int, goal: float) -> list[dict]:
    """PKAWV against the printed listing, whose forecasts must be the same."""
    X, y = stream(n, d)
    # Taylor features of degree 2 hold little of the kernel here; speed does not care.
    features = okl.TaylorFeatures(degree, sigma=3.0)
    small, expected = (X[:slice_rounds], y[:slice_rounds]), []

    def listed() -> None:
        expected.append(play_listing(PhiAWV(d, sigma=3.0, M=degree), *small))

    listing = median_seconds(listed, repeat=1) / slice_rounds
    plays = play_numpy, play_compiled
    forecasts = [okl.run(okl.PKAWV(features), *small).predictions]
    forecasts += [play(features, *small) for play in plays]
    rounds = X[:1000], y[:1000]
    numpy, compiled = (median_seconds(lambda p=p: p(features, *rounds)) / 1000 for p in plays)
    for found in forecasts:
        np.testing.assert_allclose(found, expected[0], rtol=0, atol=1e-10)
    bulk = median_seconds(lambda: okl.run(okl.PKAWV(features), X, y))
    r = features.size(d)
    name = f"PKAWV d={d} M={degree} (r={r})"
    return [
        speed(f"{name}, run of {n} rounds", bulk, numpy * n, None, NUMPY),
        speed(f"{name}, the same", bulk, listing * n, goal, PRINTED),
        speed(f"{name}, NumPy, a round", numpy, listing, None, PRINTED),
        speed(f"{name}, the listing compiled, a round", compiled, listing, None, PRINTED),
    ]


def certificate(n: int) -> dict:
    """What the certificate, with the losses, costs: a run with every round of them or none."""
    (X, y), learner = stream(n, 18), okl.PKAWV(okl.TaylorFeatures(2, sigma=3.0))
    plays = [lambda r=r: okl.run(learner.reset(), X, y, record=r) for r in ("none", "all")]
    none, every = least_times(*(partial(timed, f, time.process_time) for f in plays), repeat=15)
    name, percent = f"certificate of {n} rounds, PKAWV r=190", 100 * (every - none) / none
    return row(name, every - none, percent, 2, "percent of the run")


def classes(n: int, K: int = 10) -> dict:
    """OneVsRest on one factor against a learner for each class, with the same forecasts."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, n)
    X = 0.3 * rng.standard_normal((n, 64)) + rng.uniform(-1, 1, (K, 64))[y]
    learner = okl.PKAWV(okl.FourierFeatures(100, sigma=6.0))
    several = okl.OneVsRest(learner, classes=range(K))

    def apart():
        for k in range(K):
            okl.run(learner.reset(), X, np.where(y == k, 1.0, -1.0))

    okl.run(several, X, y), apart()
    scores = several.learners_[0].predict(X[:100])
    np.testing.assert_array_equal(scores[:, -1], learner.predict(X[:100]))  # of the last class
    ours, theirs = median_seconds(lambda: okl.run(several.reset(), X, y)), median_seconds(apart)
    name = f"OneVsRest(PKAWV) of {K} classes, d=64, r=200, run of {n} rounds"
    return speed(name, ours, theirs, None, f"{K} learners")


def above_the_data(n: int) -> float:
    (X, y), learner = stream(n, 18), okl.PKAWV(okl.TaylorFeatures(2, sigma=3.0))
    okl.run(learner, X[:600], y[:600])  # compiles
    before = memory_mb()
    okl.run(learner.reset(), X, y)
    return memory_mb() - before


def memory(n: int) -> list[dict]:
    name, what = f"PKAWV r=190, run of {n} rounds", "MB above the data, peak"
    return [row(name, np.nan, run_in_process(above_the_data, n), 400, what)]


def jobs(quick: bool) -> list:
    million = 100_000 if quick else 1_000_000
    return [
        lambda: taylor(18, 2, million, 300, 45),
        lambda: taylor(8, 4, million // 50, 8, 2000),
        lambda: [certificate(million // 10)],
        lambda: memory(million),
        lambda: [classes(million // 50)],
    ]


if __name__ == "__main__":
    report(__doc__, "play a tenth of the rounds", jobs)
