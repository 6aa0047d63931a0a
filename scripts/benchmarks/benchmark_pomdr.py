"""Speed and memory of POMDR and the first-order learners, as ratios taken in one run.

Reproduces: the speed of NumPy versions, vectorised over the dictionary, of the authors' R scripts.
Missing: the R scripts; the paper's times, from another machine, are in li2023_tab2 and li2023_tab4.
Time: about two minutes (half a minute with --quick). ijcnn1, or synthetic data of its shape.
"""

import math
import time
from pathlib import Path

import numpy as np

import oklnumba as okl
from scripts.benchmarks.timing import median_seconds, report, row, speed, stream
from scripts.common import memory_mb, run_in_process

KERNEL = okl.Gaussian(4.0)


def compare(what: str, learner, loop, X, y, goal: float, atol: float = 1e-09):
    """Return the row of a learner next to a NumPy loop, which must forecast alike."""
    expected = []
    theirs = median_seconds(lambda: expected.append(loop(X, y)))
    forecasts = okl.run(learner, X, y).predictions
    np.testing.assert_allclose(forecasts, expected[0], rtol=0, atol=atol)
    ours = median_seconds(lambda: okl.run(learner.reset(), X, y))
    return speed(what, ours, theirs, goal, "the per-round NumPy version")


def numpy_pomdr(X, y, sigma: float, zeta: float):
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
    X, y = stream(141_691, 22)
    name = "synthetic data of the shape of ijcnn1"
    if okl.datasets.found("ijcnn1"):
        data = okl.datasets.load("ijcnn1", scale=None, permute=0)
        X, y, name = data.X, data.y, "ijcnn1"
    n = len(y) // 10 if quick else len(y)
    learner = okl.POMDR(KERNEL, horizon=n, rate_scale=0.1)
    # The grown inverse of the NumPy version loses digits: its rounds are ours to 1e-6.
    return compare(f"POMDR on {name}, {n} rounds, budget 400", learner,
                    lambda X, y: numpy_pomdr(X, y, 4.0, 2 / 3), X[:n], y[:n], 10,
                    atol=1e-6)  # fmt: skip


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


def fogd(n: int) -> dict:
    X, y = stream(n, 22)
    learner = okl.FOGD(eta=0.01, n_frequencies=400)
    # as FourierFeatures draws them from seed 0
    frequencies = np.ascontiguousarray(np.random.default_rng(0).standard_normal((400, 22)).T)
    return compare(f"FOGD, 400 frequencies, d = 22, {n} rounds", learner,
                    lambda X, y: numpy_fogd(X, y, frequencies, 0.01), X, y, 14)  # fmt: skip


def wide(n: int) -> list[dict]:
    """Rounds in bulk, which share passes over the dictionary, beside one to a call; d = 2000."""
    rows, kernel, (X, y) = [], okl.Gaussian(22.0), stream(n, 2000)
    for learner in (
        okl.POMDR(kernel, switch_size=1),
        okl.FOGD(sigma=45.0),
        okl.KernelAWV(kernel),
        okl.NystromAWV(kernel, max_size=300),
    ):

        def alone(learner=learner) -> None:
            learner.reset()
            for t in range(n):
                learner.partial_fit(X[t : t + 1], y[t : t + 1])

        slow = median_seconds(alone)
        took = median_seconds(lambda learner=learner: okl.run(learner.reset(), X, y))
        what = f"{type(learner).__name__}, d = 2000, {n} rounds"
        rows.append(speed(what, took, slow, 2, "the same rounds, one to a call"))
    return rows


def growth(learner, n: int):
    rng = np.random.default_rng(0)

    def noise(rows: int):
        return rng.uniform(-1, 1, (rows, 10)), rng.choice([-1.0, 1.0], rows)

    okl.run(learner, *noise(3000))
    learner.reset()
    before, peak, start = memory_mb("VmRSS"), 0.0, time.perf_counter()
    for _ in range(0, n, 10_000):
        learner.partial_fit(*noise(10_000))
        peak = max(peak, memory_mb("VmRSS"))
    return peak - before, time.perf_counter() - start, learner.size


def memory(n: int) -> list[dict]:
    """Growth of the process over a long stream of pure noise, learner by learner (Linux)."""
    rows, kernel = [], okl.Gaussian(1.0)
    for name, learner in (
        ("POMDR", okl.POMDR(kernel, horizon=1_000_000)),
        ("BOGD", okl.BOGD(kernel)),
        ("KernelOGD, window 400,", okl.KernelOGD(kernel, budget=400)),
        ("B(AO)2KS", okl.BAO2KS([kernel])),
        ("NOGD", okl.NOGD(kernel)),
        ("SkeGD", okl.SkeGD(kernel)),
    ):
        if Path("/proc/self/status").exists():
            megabytes, took, atoms = run_in_process(growth, learner, n)
            what = f"{name} {n} rounds of noise, {atoms} atoms"
            rows.append(row(what, took, megabytes, 20, "MB, growth of memory"))
    return rows


def jobs(quick: bool) -> list:
    n = 14_000 if quick else 141_691
    return [
        lambda: [pomdr(quick)],
        lambda: [fogd(n)],
        lambda: memory(100_000 if quick else 1_000_000),
        lambda: wide(200 if quick else 1000),
    ]


if __name__ == "__main__":
    report(__doc__, "play a tenth of the rounds", jobs)
