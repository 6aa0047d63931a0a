"""Sixty points and their labels, for dense linear algebra; and kernels of all kinds."""

import numpy as np

import oklnumba as okl
from tests.reference import naive

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (60, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(60)
KERNEL = okl.Gaussian(0.7)
K = naive.gaussian(X, X, 0.7)
SIGNS = np.where(Y > 0, 1.0, -1.0)
KERNELS = [
    okl.Gaussian(0.7),
    okl.Laplacian(1.3),
    okl.Laplacian(1.3, norm=1),
    okl.Matern(0.5, sigma=0.9),
    okl.Matern(1.5, sigma=0.9),
    okl.Matern(2.5, sigma=1.7),
    okl.Polynomial(1, scale=0.5, coef0=0.0),
    okl.Polynomial(3, scale=0.5, coef0=0.7),
    okl.Linear(),
]
