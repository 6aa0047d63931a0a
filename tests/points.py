"""Sixty points and their labels, on which the theory is compared with dense linear algebra."""

import numpy as np

import oklnumba as okl
from tests import naive

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (60, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(60)
KERNEL = okl.Gaussian(0.7)
K = naive.gaussian(X, X, 0.7)
SIGNS = np.where(Y > 0, 1.0, -1.0)
