"""Speed of linear online learning, as ratios taken in one run on one machine.

Reproduces: nothing published.
Missing: nothing. Times are CPU seconds of one thread, because the machine may be shared.
Time: about two minutes (ten seconds with --quick, which plays a tenth of the rounds).
"""

import time

import numpy as np

import oklnumba as okl
from scripts.benchmarks.timing import least_times, play_one_by_one, report, row, speed, timed
from scripts.common import cpu_clock

D = 100
REPEAT = 5


def stream(n: int, d: int):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d)) / np.sqrt(d)
    return X, np.sign(X[:, 0] + X[:, 1] * X[:, 2] + 0.05 * rng.standard_normal(n))


def ogd_loop(X, y, eta: float = 0.1):
    w, out = np.zeros(X.shape[1]), np.empty(len(y))
    for t in range(len(y)):
        x = X[t]
        out[t] = x @ w
        w -= eta * 2 * (out[t] - y[t]) * x
    return out


def adagrad_loop(X, y, eta: float = 0.5, sigma: float = 1.0):
    w, G = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    S, out = np.full(X.shape[1], sigma), np.empty(len(y))
    for t in range(len(y)):
        x = X[t]
        out[t] = x @ w
        g = 2 * (out[t] - y[t]) * x
        G += g
        S += g * g
        w = -eta * G / np.sqrt(S)
    return out


def in_learner(learner, X, y):
    """Return a function that plays the rounds from the first and returns its CPU seconds."""

    def play() -> float:
        with cpu_clock():
            return okl.run(learner.reset(), X, y).seconds

    return play


def in_loop(loop, X, y):
    return lambda: timed(lambda: loop(X, y), time.thread_time)


def first_order(n: int) -> list[dict]:
    X, y = stream(n, D)
    rows = []
    for name, learner, loop in (
        ("OGD", okl.OGD(0.1), ogd_loop),
        ("AdaGrad, diagonal", okl.AdaptiveFTRL("adagrad", eta=0.5), adagrad_loop),
    ):
        found = okl.run(learner.reset(), X, y).predictions
        np.testing.assert_allclose(found, loop(X, y), rtol=1e-9, atol=1e-12)
        ours, theirs = least_times(in_learner(learner, X, y), in_loop(loop, X, y), repeat=REPEAT)
        rows.append(speed(f"{name}, d = {D}, {n:,} rounds", ours, theirs, 20, "a NumPy loop"))
        if name == "OGD":
            call = in_loop(lambda X, y: okl.run(okl.OGD(0.1), X, y), X, y)
            took, reading = least_times(call, in_loop(lambda X, y: X.sum(), X, y), repeat=REPEAT)
            what = "the whole call of okl.run, with its checks and its record"
            unit = "times the time of numpy.sum over the inputs"
            rows.append(row(what, took, took / reading, 2, unit))
    return rows


def second_order(n: int) -> list[dict]:
    """Return the time of Newton steps over that of AWV."""
    X, y = stream(n, D)
    awv, rows = in_learner(okl.LinearAWV(), X, y), []
    for learner in (okl.OnlineNewtonStep(), okl.ExpConcaveFTRL(0.1)):
        ours, theirs = least_times(in_learner(learner, X, y), awv, repeat=REPEAT)
        what = f"{type(learner).__name__}, r = {D}, {n:,} rounds"
        of = f"times the time of LinearAWV (PKAWV on the inputs), r = {D}"
        rows.append(row(what, ours, ours / theirs, 1.5, of))
    return rows


def logistic_of_river(X, y) -> None:
    from river.linear_model import LogisticRegression

    model = LogisticRegression()
    for x, label in zip(X, y, strict=True):
        model.predict_proba_one(x)
        model.learn_one(x, label)


def from_python(n: int) -> list[dict]:
    X, y = stream(n, 22)
    kernel, sketch = okl.Gaussian(1.0), okl.FourierFeatures(200)
    learners = [
        (okl.OGD(), 22, 1.05),
        (okl.FOGD(sketch), 22, 1.05),
        (okl.KRLS(kernel, threshold=0.1), 5, 1.05),
        (okl.POMDR(kernel), 5, 1.6),
        (okl.PKAWV(okl.TaylorFeatures(2)), 18, 2.1),
    ]
    ours = [
        in_loop(lambda X, y, a=a: play_one_by_one(a, X, y), [x[:d].copy() for x in X], y.tolist())
        for a, d, _ in learners
    ]
    points = [dict(enumerate(x)) for x in X.tolist()]  # river's inputs, made beforehand
    theirs = in_loop(logistic_of_river, points, (y > 0.0).tolist())
    *ours, theirs = least_times(*ours, theirs, repeat=20 * REPEAT)  # a few milliseconds each
    of = "times the time of river's LogisticRegression, d = 22"
    return [
        row(f"{type(a).__name__}, d = {d}, {a.size} features or atoms, a round from Python",
            took / n, took / theirs, goal, of)
        for (a, d, goal), took in zip(learners, ours, strict=True)
    ]  # fmt: skip


def jobs(quick: bool) -> list:
    million = 100_000 if quick else 1_000_000
    return [
        lambda: first_order(million),
        lambda: second_order(million),
        lambda: from_python(400),
    ]


if __name__ == "__main__":
    report(__doc__, "play a tenth of the rounds", jobs)
