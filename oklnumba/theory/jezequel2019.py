"""Bounds of Jezequel, Gaillard and Rudi 2019 (pkawv): Kernel-AWV and PKAWV."""

from __future__ import annotations

from math import ceil, e, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from oklnumba import checks
from oklnumba.checks import require, require_nonnegative, require_positive
from oklnumba.kernels import Gaussian
from oklnumba.theory.dimension import effective_dimension, log_det, projection_gap


def awv_bound(kernel: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0) -> float:
    """Return lam |f|^2 + B^2 log det(I + K / lam), Kernel-AWV's bound (pkawv Prop. 1).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    lam : float > 0
    B : float >= 0
        Largest |y|.
    norm : float >= 0
        |f| of the competitor; 0 bounds the regret against the best penalised function.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.awv_bound(okl.Linear(), [[1.0], [1.0]], lam=2.0), 6)
    0.693147
    """
    require_nonnegative("B", B)
    require_nonnegative("norm", norm)
    return lam * norm**2 + B**2 * log_det(kernel, X, lam)


def pkawv_bound(
    kernel: Any,
    features: Any,
    X: ArrayLike,
    lam: float,
    B: float = 1.0,
    norm: float = 0.0,
    method: str = "exact",
) -> float:
    """Return the regret bound of PKAWV on fixed features against the whole RKHS (pkawv Theorem 3).

    lam |f|^2 + B^2 log det(I + K / lam) + (mu + lam) n mu B^2 / lam^2 with mu of
    ``projection_gap``.

    Parameters
    ----------
    kernel : Kernel
    features : TaylorFeatures or NystromFeatures
    X : array_like of shape (n, d)
    lam : float > 0
    B : float >= 0
        Largest |y|.
    norm : float >= 0
        |f| of the competitor; 0 bounds the regret against the best penalised function.
    method : {"exact", "lanczos"}
        Of ``projection_gap``.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> kernel = okl.Gaussian(1.0)
    >>> features = okl.NystromFeatures([[0.0]], kernel)
    >>> round(okl.theory.pkawv_bound(kernel, features, [[0.0], [0.0]], lam=2.0), 6)
    0.693147
    """
    mu = projection_gap(kernel, features, X, method)
    n = len(checks.as_inputs(X))
    return awv_bound(kernel, X, lam, B, norm) + (mu + lam) * n * mu * B**2 / lam**2


def log_det_bound(kernel: Any, X: ArrayLike, lam: float) -> float:
    """Return log(e + e n kappa^2 / lam) d_eff(lam), above log det(I + K / lam) (pkawv Prop. 2).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
        kappa^2 is the largest k(x, x) on it.
    lam : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.log_det_bound(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.846574
    """
    X = checks.as_inputs(X)
    kappa2 = float(kernel.diag(X).max())
    return log(e + e * len(X) * kappa2 / lam) * effective_dimension(kernel, X, lam)


def taylor_bound(
    features: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0
) -> float:
    """Return lam |f|^2 + 1.5 B^2 log det(I + K / lam), PKAWV's bound of pkawv Theorem 4.

    Against every f of the Gaussian RKHS, for Taylor features of degree ``taylor_degree`` or more.

    Parameters
    ----------
    features : TaylorFeatures
    X : array_like of shape (n, d)
    lam : float > 0
    B : float >= 0
        Largest |y|.
    norm : float >= 0
        |f| of the competitor; 0 bounds the regret against the best penalised function.

    Raises
    ------
    ValueError
        If an argument is not valid, or the degree is smaller than the theorem asks; then
        ``pkawv_bound`` holds.

    Examples
    --------
    >>> import oklnumba as okl
    >>> features = okl.TaylorFeatures(degree=8, sigma=1.0)
    >>> round(okl.theory.taylor_bound(features, [[1.0], [1.0]], lam=2.0), 6)
    1.039721
    """
    X = checks.as_inputs(X)
    center = 0.0 if features.center is None else np.asarray(features.center, dtype=float)
    radius = float(np.sqrt(np.square(X - center).sum(axis=1).max()))
    needed = taylor_degree(len(X), lam, radius, features.sigma)
    if features.degree < needed:
        raise ValueError(
            f"degree is {features.degree}, but Theorem 4 asks for {needed} on this stream; raise "
            "degree, or use pkawv_bound, which holds for any"
        )
    require_nonnegative("B", B)
    require_nonnegative("norm", norm)
    return lam * norm**2 + 1.5 * B**2 * log_det(Gaussian(features.sigma), X, lam)


def nystrom_bound(
    kernel: Any,
    X: ArrayLike,
    lam: float,
    mu: float,
    size: int,
    B: float = 1.0,
    norm: float = 0.0,
) -> float:
    """Return the regret bound of Nystrom-AWV with KORS (pkawv Theorem 6).

    lam |f|^2 + B^2 d_eff(lam) log(e + e n kappa^2 / lam) + 2 B^2 (size + 1) n mu / lam, with high
    probability for beta = 12 log(n / delta) and eps = 1/2; for any beta with mu the largest
    |(I - P_t) C_t^(1/2)|^2 of the run.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    lam : float > 0
    mu : float in (0, lam]
        Of KORS.
    size : int >= 1
        Of the dictionary at the end.
    B : float >= 0
        Largest |y|.
    norm : float >= 0
        |f| of the competitor; 0 bounds the regret against the best penalised function.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.nystrom_bound(okl.Linear(), [[1.0], [1.0]], 2.0, 0.1, size=1), 6)
    1.246574
    """
    require(checks.number(mu) and 0 < mu <= lam, "mu", mu, f"a number in (0, lam] = (0, {lam!r}]")
    checks.require_count("size", size, 1)
    require_nonnegative("B", B)
    require_nonnegative("norm", norm)
    n = len(checks.as_inputs(X))
    rest = 2.0 * (size + 1) * n * mu / lam
    return lam * norm**2 + B**2 * (log_det_bound(kernel, X, lam) + rest)


class CapacityBound(NamedTuple):
    """What pkawv's corollaries 7 and 8 say, with constants.

    Attributes
    ----------
    lam, mu : float
        The parameters that they choose.
    bound : float
        The regret bound.
    """

    lam: float
    mu: float
    bound: float


def capacity_bound(
    n: int,
    m: int,
    gamma: float,
    B: float = 1.0,
    norm: float = 1.0,
    kappa: float = 1.0,
    known_inputs: bool = False,
) -> CapacityBound:
    """Return the bounds of pkawv Corollaries 7 and 8, for d_eff(lam) <= (n / lam)^gamma.

    With mu = n m^(-1/gamma), which makes dictionaries of about m atoms, and lam as the corollaries
    choose it: lam |f|^2 + B^2 (n / lam)^gamma log(e + e n kappa^2 / lam) + 2 B^2 (m + 1) n mu / lam
    (Corollary 7), or with (mu + lam) n mu B^2 / lam^2 as the last term where the inputs are known
    beforehand (Corollary 8, by Theorem 3).

    Parameters
    ----------
    n : int >= 1
        Rounds.
    m : int >= 1
        Atoms.
    gamma : float in (0, 1)
    B : float >= 0
        Largest |y|.
    norm : float >= 0
        |f| of the competitor.
    kappa : float > 0
        Square root of the largest k(x, x).
    known_inputs : bool
        Corollary 8.

    Remarks
    -------
    The corollaries hide constants and logarithms; here are those of the theorems behind them.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> found = okl.theory.capacity_bound(n=10_000, m=500, gamma=0.25)
    >>> round(found.lam, 3), round(found.bound, 1)
    (6.31, 59.4)
    """
    checks.require_count("n", n, 1)
    checks.require_count("m", m, 1)
    require(checks.number(gamma) and 0 < gamma < 1, "gamma", gamma, "a number in (0, 1)")
    require_nonnegative("B", B)
    require_nonnegative("norm", norm)
    require_positive("kappa", kappa)
    mu = n * m ** (-1.0 / gamma)
    power = -0.5 / gamma if known_inputs else 0.5 - 0.5 / gamma
    lam = max(n ** (gamma / (1.0 + gamma)), n * m**power)
    if known_inputs:
        rest = (mu + lam) * n * mu / lam**2
    else:
        rest = 2.0 * (m + 1) * n * mu / lam  # mu <= lam, as Theorem 6 asks, at any m
    dimension = (n / lam) ** gamma * log(e + e * n * kappa**2 / lam)
    return CapacityBound(lam, mu, lam * norm**2 + B**2 * (dimension + rest))


def rates(gamma: float, points: int = 201) -> dict[str, np.ndarray]:
    """Return the exponents of pkawv Figure 1: regret n^b with a dictionary of n^a atoms.

    For d_eff(lam) <= (n / lam)^gamma and lam tuned, from Corollaries 7 and 8 and eq. (8). Where a
    larger dictionary would make a rate worse, a smaller one is used.

    Parameters
    ----------
    gamma : float in (0, 1)
    points : int >= 2
        Values of a, from 0 to 1.

    Returns
    -------
    dict of ndarray, each of shape (points,)
        "a", and b of "PKAWV", "PKAWV (beforehand features)", "Sketched-KONS", "Pros-N-KONS".

    Remarks
    -------
    Errata 57: the text says that Pros-N-KONS cannot beat 4 gamma / (1 + gamma)^2. The form that it
    gives in eq. (8), minimised over lam, goes down to gamma (3 + gamma) / (1 + gamma)^2, which is
    lower; here is the minimum. The published level is that of Table 1's dictionary, a = 2 gamma
    (1 - gamma) / (1 + gamma)^2.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> found = okl.theory.rates(0.25, points=3)
    >>> found["PKAWV"].round(3)
    array([1.  , 0.25, 0.2 ])
    """
    require(checks.number(gamma) and 0 < gamma < 1, "gamma", gamma, "a number in (0, 1)")
    checks.require_count("points", points, 2)
    a = np.linspace(0.0, 1.0, points)
    best = gamma / (1.0 + gamma)
    # Pros-N-KONS: max(a + l, a + gamma (1 - l), 2 - a / gamma - l) at its best l = log_n lam, which
    # is where two of the three lines cross.
    crossings = (
        np.full(points, best),
        1.0 - a * (1.0 + 1.0 / gamma) / 2.0,
        (2.0 - gamma - a * (1.0 + 1.0 / gamma)) / (1.0 - gamma),
    )
    restarts = np.min(
        [np.max([a + x, a + gamma * (1.0 - x), 2.0 - a / gamma - x], axis=0) for x in crossings],
        axis=0,
    )
    curves = {
        "PKAWV": np.maximum(best, 1.0 + a / 2.0 - a / (2.0 * gamma)),
        "PKAWV (beforehand features)": np.maximum(best, 1.0 - a / (2.0 * gamma)),
        "Sketched-KONS": (1.0 - a + gamma) / (1.0 + gamma),
        "Pros-N-KONS": restarts,
    }
    return {"a": a} | {k: np.minimum.accumulate(np.minimum(b, 1.0)) for k, b in curves.items()}


def taylor_degree(n: int, lam: float, radius: float, sigma: float) -> int:
    """Return the degree M = ceil(max(8 R^2 / sigma^2, 2 log(n / min(lam, 1)))) of pkawv Theorem 4.

    With Taylor features of this degree PKAWV has a regret of at most lam |f|^2 + 1.5 B^2 log det(I
    + K / lam). In practice far smaller degrees do: see ``features.captured``.

    Parameters
    ----------
    n : int >= 1
        Rounds.
    lam : float > 0
    radius : float >= 0
        Largest |x - center|.
    sigma : float > 0
        Width of the Gaussian kernel.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.taylor_degree(n=1000, lam=1.0, radius=1.0, sigma=1.0)
    14
    """
    checks.require_count("n", n, 1)
    require_positive("lam", lam)
    require_nonnegative("radius", radius)
    checks.require_width(sigma)
    return ceil(max(8.0 * (radius / sigma) ** 2, 2.0 * log(n / min(lam, 1.0))))
