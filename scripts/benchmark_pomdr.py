"""Speed and memory of POMDR and the first-order learners, as ratios taken in one run.

Reproduces: the speed of per-round NumPy versions of POMDR, FOGD, NOGD and BOGD beside ours; the
    NumPy loops do what the authors' R scripts do each round, vectorised over the dictionary.
Missing: the R scripts themselves; the paper's times, from another machine, are in li2023_tab2.py
    and li2023_tab4.py.
Time: about two minutes (half a minute with --quick, which plays a tenth of the rounds).
Data: ijcnn1 for POMDR (without it, synthetic data of its shape), else synthetic.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import timing
from timing import apart, row, seconds, stream

import oklnumba as okl


def numpy_pomdr(X: np.ndarray, y: np.ndarray, sigma: float, zeta: float) -> np.ndarray:
    """POMDR with the paper's settings, one round at a time in NumPy, on preallocated arrays."""
    n, d = X.shape
    U, M, B, scale = 25.0, 15, 400, 0.1
    B0, threshold, rate = math.ceil(15 * math.log(n)), 10.0 * n**-zeta, 0.5 / sigma**2
    atoms, a, inverse = np.empty((B, d)), np.zeros(B), np.zeros((B, B))
    m, norm2, segment, removed, t_bar = 0, 0.0, 0.0, False, math.inf
    out = np.empty(n)

    def kernel(rows, x):
        difference = rows - x
        return np.exp(-rate * np.einsum("ij,ij->i", difference, difference))

    for t in range(n):
        x = X[t]
        lam = U / math.sqrt(3.0 + segment) * (scale if removed else 1.0)
        last, signs = X[max(0, t - M) : t], y[max(0, t - M) : t]
        hinted = signs @ kernel(last, x) / len(last) if t else 0.0
        k = kernel(atoms[:m], x)
        own = a[:m] @ k
        out[t] = own + lam * hinted
        if y[t] * out[t] >= 1.0:
            continue
        square, delta, joins = 1.0, 1.0 - 2.0 * y[t] * hinted, True
        if t + 1 < t_bar:
            beta = inverse[:m, :m] @ k
            alpha = max(1.0 - beta @ k, 0.0)
            if m and math.sqrt(alpha) <= threshold:
                joins = False
                square = beta @ k
                inner = sum(s * (beta @ kernel(atoms[:m], r)) for r, s in zip(last, signs))  # noqa: B905
                delta = square - 2.0 * y[t] * inner / len(last)
                a[:m] += lam * y[t] * beta
            else:
                inverse[:m, :m] += np.outer(beta, beta) / alpha
                inverse[m, :m] = inverse[:m, m] = -beta / alpha
                inverse[m, m] = 1.0 / alpha
        if joins:
            atoms[m], a[m] = x, lam * y[t]
            m += 1
        norm2 += lam * lam * square + 2.0 * lam * y[t] * own
        if norm2 > U * U:
            a[:m] *= U / math.sqrt(norm2)
            norm2 = U * U
        segment += max(delta, 0.0)
        if joins and t_bar == math.inf and m == B0:
            t_bar = t + 2
        elif joins and m == B:
            half = B // 2
            for j in range(half, B):
                a[np.argmax(kernel(atoms[:half], atoms[j]))] += a[j]
            gram = np.stack([kernel(atoms[:half], z) for z in atoms[:half]])
            a[:half] *= U / math.sqrt(a[:half] @ gram @ a[:half])
            m, norm2, segment, removed = half, U * U, 0.0, True
    return out


def pomdr(quick: bool) -> dict:
    n = 141_691
    name = "ijcnn1"
    if okl.datasets.found(name):
        data = okl.datasets.load(name, scale=None, permute=0)
        X, y = data.X, data.y
    else:
        X, y = stream(n, 22)
        name = "synthetic data of the shape of ijcnn1"
    if quick:
        X, y = X[: n // 10], y[: n // 10]
    learner = okl.POMDR(okl.Gaussian(4.0), horizon=len(X), rate_scale=0.1)
    start = time.perf_counter()
    expected = numpy_pomdr(X, y, 4.0, 2 / 3)
    theirs = time.perf_counter() - start
    run = okl.run(learner, X, y)
    # The grown inverse of the NumPy version loses digits: its rounds are ours to 1e-6.
    np.testing.assert_allclose(run.predictions, expected, rtol=0, atol=1e-6)
    ours = seconds(lambda: okl.run(learner.reset(), X, y))
    what = f"POMDR on {name}, {len(X)} rounds, budget 400"
    return row(what, ours, theirs / ours, 10, "the per-round NumPy version")


def numpy_fogd(X, y, frequencies, eta):
    w, out = np.zeros(2 * frequencies.shape[1]), np.empty(len(X))
    scale = frequencies.shape[1] ** -0.5
    for t in range(len(X)):
        phases = X[t] @ frequencies
        z = np.concatenate((np.sin(phases), np.cos(phases))) * scale
        out[t] = w @ z
        if y[t] * out[t] < 1.0:
            w += eta * y[t] * z
    return out


def fogd(n: int) -> list[dict]:
    X, y = stream(n, 22)
    learner = okl.FOGD(eta=0.01, n_frequencies=400)
    part = min(n, 10_000)
    # as FourierFeatures draws them from seed 0; the forecasts below are the same
    frequencies = np.ascontiguousarray(np.random.default_rng(0).standard_normal((400, 22)).T)
    expected = numpy_fogd(X[:part], y[:part], frequencies, 0.01)
    np.testing.assert_allclose(
        okl.run(learner, X[:part], y[:part]).predictions, expected, rtol=0, atol=1e-9
    )
    theirs = seconds(lambda: numpy_fogd(X[:part], y[:part], frequencies, 0.01)) / part
    ours = seconds(lambda: okl.run(learner.reset(), X, y), repeat=5)
    name = f"FOGD, 400 frequencies, d = 22, {n} rounds"
    rate = 1e-6 / theirs
    return [
        row(name, ours, theirs * n / ours, 14, "the per-round NumPy version"),
        row(f"the same, million rounds a second (NumPy: {rate:.3f})", ours, n / ours * 1e-6, None,
            "a million rounds a second"),
    ]  # fmt: skip


def numpy_budgeted(X, y, sigma, eta, budget, rng):
    """BOGD, one round at a time in NumPy."""
    atoms, a, m = np.empty((budget, X.shape[1])), np.zeros(budget), 0
    out = np.empty(len(X))
    for t in range(len(X)):
        difference = atoms[:m] - X[t]
        k = np.exp(np.einsum("ij,ij->i", difference, difference) / (-2.0 * sigma**2))
        out[t] = a[:m] @ k
        coin = rng.random()
        if y[t] * out[t] < 1.0:
            slot = m
            if m == budget:
                slot = int(coin * m)
                a *= m / (m - 1.0)
            else:
                m += 1
            atoms[slot], a[slot] = X[t], eta * y[t]
    return out


def bogd(n: int) -> dict:
    X, y = stream(n, 22)
    part = min(n, 10_000)
    expected = numpy_budgeted(X[:part], y[:part], 4.0, 0.1, 400, np.random.default_rng(0))
    learner = okl.BOGD(okl.Gaussian(4.0), eta=0.1, budget=400)
    np.testing.assert_allclose(
        okl.run(learner, X[:part], y[:part]).predictions, expected, rtol=0, atol=1e-9
    )
    rng = np.random.default_rng(0)
    theirs = seconds(lambda: numpy_budgeted(X[:part], y[:part], 4.0, 0.1, 400, rng)) / part
    ours = seconds(lambda: okl.run(learner.reset(), X, y))
    what = f"BOGD, budget 400, d = 22, {n} rounds"
    return row(what, ours, theirs * n / ours, None, "the per-round NumPy version")


MEMORY = """
import sys, threading, time, numpy as np, oklnumba as okl
rng = np.random.default_rng(0)
make = eval(sys.argv[2])
okl.run(make(), rng.uniform(-1, 1, (3000, 10)), rng.choice([-1.0, 1.0], 3000))
n = int(sys.argv[1])
def chunks():
    for start in range(0, n, 10_000):
        yield rng.uniform(-1, 1, (10_000, 10)), rng.choice([-1.0, 1.0], 10_000)
def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))
learner = make()
before, peak = resident(), 0.0
start = time.perf_counter()
for X, y in chunks():
    learner.partial_fit(X, y)
    peak = max(peak, resident())
print(peak - before, time.perf_counter() - start, learner.size)
"""


def memory(n: int) -> list[dict]:
    """Growth of the process over a long stream of pure noise, learner by learner (Linux)."""
    if not Path("/proc/self/status").exists():
        return []
    rows = []
    for name, make in (
        ("POMDR", "lambda: okl.POMDR(okl.Gaussian(1.0), horizon=1_000_000)"),
        ("BOGD", "lambda: okl.BOGD(okl.Gaussian(1.0))"),
        ("KernelOGD, window 400,", "lambda: okl.KernelOGD(okl.Gaussian(1.0), budget=400)"),
        ("B(AO)2KS", "lambda: okl.BAO2KS([okl.Gaussian(1.0)])"),
        ("NOGD", "lambda: okl.NOGD(okl.Gaussian(1.0))"),
        ("SkeGD", "lambda: okl.SkeGD(okl.Gaussian(1.0))"),
    ):
        found = apart(MEMORY, n, make)
        what = f"{name} {n} rounds of noise, {found[2]} atoms"
        megabytes = float(found[0])
        rows.append(row(what, float(found[1]), megabytes, 20, "MB, growth of memory", at_most=True))
    return rows


def main() -> None:
    args = timing.arguments(__doc__, "play a tenth of the rounds")
    n = 14_000 if args.quick else 141_691
    jobs = [
        lambda: [pomdr(args.quick)],
        lambda: fogd(n),
        lambda: [bogd(n)],
        lambda: memory(100_000 if args.quick else 1_000_000),
    ]
    timing.report(jobs, "benchmark_pomdr", args)


if __name__ == "__main__":
    main()
