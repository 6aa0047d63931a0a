"""Kernels and streams for the AWV family."""

import numpy as np
import pytest

import oklnumba as okl

KERNELS = [
    okl.Gaussian(0.8),
    okl.Laplacian(0.7, norm=1),
    okl.Laplacian(0.7),
    okl.Matern(0.5, sigma=0.9),
    okl.Matern(1.5, sigma=0.9),
    okl.Matern(2.5, sigma=0.9),
    okl.Polynomial(3, scale=0.5, coef0=1.0),
    okl.Linear(),
]
LAMS = [1.0, 1e-3]
# Every kernel with one lam, every lam with one kernel: rows of a kernel know nothing of lam.
every_kernel = pytest.mark.parametrize(
    ("kernel", "lam"), [*((kernel, 1e-3) for kernel in KERNELS), (KERNELS[0], 1.0)], ids=repr
)


def stream(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) * X[:, -1] + 0.1 * rng.standard_normal(n)


def streams(n=150, d=2):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (n, d))
    y = np.sign(rng.standard_normal(n))
    order = np.argsort(X[:, 0])
    alternating = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return {
        "random": (X, y),
        "sorted": (X[order], np.sin(4 * X[order, 0])),
        "repeated": (X[rng.integers(0, 6, n)], y),
        "one point, alternating": (np.full((n, d), 0.3), alternating),
        "grid, alternating": (np.linspace(-1, 1, n * d).reshape(n, d), alternating),
        "growing labels": (X, y * np.linspace(0.01, 10, n)),
    }


STREAMS = streams()
