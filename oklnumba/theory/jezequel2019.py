"""Bounds of Jezequel, Gaillard and Rudi 2019 (pkawv): Kernel-AWV and PKAWV."""

from __future__ import annotations

from math import ceil, e, log
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.components.features import TaylorFeatures, check_features
from oklnumba.components.kernels import Gaussian, kernel_code
from oklnumba.core import checks, cholesky, inputs
from oklnumba.core.checks import require, require_nonnegative, require_positive
from oklnumba.hot.primitives.dictionary import NUGGET
from oklnumba.theory.calandriello2017 import kors_size_bound
from oklnumba.theory.dimension import effective_dimension, log_det, projection_gap
from oklnumba.theory.matrix import energy_beyond

NULL = 1e-12  # share of k(x, x) outside the span of other atoms that is rounding
BLOCK = 512  # rounds whose leverages are found together


@checks.formula
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
    kernel_code(kernel)
    lam = checks.require_positive("lam", lam)
    B = require_nonnegative("B", B)
    norm = require_nonnegative("norm", norm)
    return lam * norm**2 + B**2 * log_det(kernel, X, lam)


@checks.formula
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
    kernel_code(kernel)
    check_features(features)
    lam = checks.require_positive("lam", lam)
    B = require_nonnegative("B", B)
    mu = projection_gap(kernel, features, X, method)
    n = len(inputs.as_inputs(X))
    return awv_bound(kernel, X, lam, B, norm) + (mu + lam) * n * mu * B**2 / lam**2


@checks.formula
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
    kernel_code(kernel)
    lam = checks.require_positive("lam", lam)
    X = inputs.as_inputs(X)
    kappa2 = float(kernel.diag(X).max())
    return log(e + e * len(X) * kappa2 / lam) * effective_dimension(kernel, X, lam)


@checks.formula
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
    kind = "a TaylorFeatures"
    checks.require_instance("features", features, TaylorFeatures, kind)
    check_features(features)
    lam = checks.require_positive("lam", lam)
    X = inputs.as_inputs(X)
    d = X.shape[1]
    center = 0.0 if features.center is None else inputs.as_point(features.center, d, "center")
    radius = float(np.sqrt(np.square(X - center).sum(axis=1).max()))
    needed = taylor_degree(len(X), lam, radius, features.sigma)
    if features.degree < needed:
        raise ValueError(
            f"degree is {features.degree}, but Theorem 4 asks for {needed} on this stream; raise "
            "degree, or use pkawv_bound, which holds for any"
        )
    B = require_nonnegative("B", B)
    norm = require_nonnegative("norm", norm)
    return lam * norm**2 + 1.5 * B**2 * log_det(Gaussian(features.sigma), X, lam)


@checks.formula
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
    kernel_code(kernel)
    lam = checks.require_positive("lam", lam)
    require(checks.number(mu) and 0 < mu <= lam, "mu", mu, f"a number in (0, lam] = (0, {lam!r}]")
    size = checks.require_count("size", size, 1)
    B = require_nonnegative("B", B)
    norm = require_nonnegative("norm", norm)
    n = len(inputs.as_inputs(X))
    rest = 2.0 * (size + 1) * n * mu / lam
    return lam * norm**2 + B**2 * (log_det_bound(kernel, X, lam) + rest)


class SizeBound(NamedTuple):
    """What pkawv's Proposition 5 says of a KORS dictionary.

    Attributes
    ----------
    beta : float
        The oversampling that it asks for, 12 log(n / delta).
    size : float
        3 rho beta d_onl(mu) with rho = 3, as kons Theorem 2 has it.
    printed : float
        9 d_eff(mu) log(2 n / delta)^2, as it is printed, which may be exceeded.
    """

    beta: float
    size: float
    printed: float


@checks.formula
def nystrom_size_bound(kernel: Any, X: ArrayLike, mu: float, delta: float = 0.05) -> SizeBound:
    """Return the size of KORS's dictionary by pkawv Proposition 5, and the beta that it is for.

    With this beta and eps = 1/2, with probability 1 - delta the dictionary is at most so large, and
    |(I - P_t) C_t^(1/2)|^2 <= mu at every round, which is what Theorem 6 needs.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
        In the order of the stream.
    mu : float > 0
        Of KORS (its alpha).
    delta : float in (0, 1)
        Chance of failure.

    Remarks
    -------
    Errata 12 and 59: the printed size does not follow from kons and is exceeded, so ``size`` is
    3 rho beta d_onl(mu). It holds where d_onl(mu) >= 0.03, so for any mu that is not far above n;
    below that, a single atom may be more.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> found = okl.theory.nystrom_size_bound(okl.Linear(), [[1.0], [1.0]], mu=2.0, delta=0.1)
    >>> round(found.beta, 3), round(found.size, 1), round(found.printed, 1)
    (35.949, 188.7, 61.2)
    """
    kernel_code(kernel)
    delta = checks.require_within("delta", delta, "(0, 1)")
    X = inputs.as_inputs(X)
    mu = require_positive("mu", mu)
    beta = 12.0 * log(len(X) / delta)
    printed = 9.0 * effective_dimension(kernel, X, mu) * log(2.0 * len(X) / delta) ** 2
    return SizeBound(beta, kors_size_bound(kernel, X, mu, beta, eps=0.5), printed)


@checks.formula
def growing_bound(
    kernel: Any,
    X: ArrayLike,
    y: ArrayLike,
    lam: float,
    sizes: ArrayLike,
    features: Any = None,
    norm: float = 0.0,
) -> float:
    """Return the regret bound of PKAWV on subspaces that grow, against the RKHS (pkawv Theorem 9).

    lam |f|^2 + sum_t y_t^2 <A~_t^-1 P_t phi_t, P_t phi_t> + sum_t (mu_t + lam) t mu_t B^2 / lam^2
    with A~_t = P_t C_t P_t + lam I, mu_t = |(P_{t+1} - P_t) C_t^(1/2)|^2, P_{n+1} = I and B the
    largest |y|. For any dictionary that grows, however it was sampled.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    lam : float > 0
    sizes : array_like of int, shape (n,)
        Size of the space in which each round's forecast was made, never less than the one before.
        For NystromAWV ``run.sizes``, for GrowingPKAWV the size before the round.
    features : TaylorFeatures or NystromFeatures, optional
        The space of round t is spanned by the first sizes[t] of them. None: by k(x_s, .) for the
        rounds s <= t in which sizes grew, by one.
    norm : float >= 0
        |f| of the competitor; 0 bounds the regret against the best penalised function.

    Remarks
    -------
    Errata 23: corrected by its proof; the printed form lacks lam |f|^2 and a factor 1 / lam.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> X, y = [[0.0], [1.0], [0.0]], [1.0, -1.0, 1.0]
    >>> round(okl.theory.growing_bound(okl.Gaussian(1.0), X, y, lam=1.0, sizes=[1, 2, 2]), 4)
    1.2594
    """
    if features is not None:
        check_features(features)
    kernel_code(kernel)
    X = inputs.as_inputs(X)
    y = inputs.as_labels(y, len(X))
    lam = require_positive("lam", lam)
    norm = require_nonnegative("norm", norm)
    Z, ranks = _nested_coordinates(kernel, X, np.asarray(sizes), features)
    last = Z[:, : ranks[-1]]
    bound = lam * norm**2 + float(y**2 @ _leverages(Z, ranks, lam))
    for t in [*np.flatnonzero(np.diff(ranks)) + 1, len(X)]:  # where P_{t+1} is not P_t
        if t < len(X):
            mu = np.linalg.norm(Z[:t, ranks[t - 1] : ranks[t]], 2) ** 2
        else:
            mu = energy_beyond(kernel, X, last)
        bound += (mu + lam) * t * mu * np.abs(y).max() ** 2 / lam**2
    return float(bound)


def _nested_coordinates(
    kernel: Any, X: np.ndarray, sizes: np.ndarray, features: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates of the inputs in a basis of the last space, and how many each space has.

    The basis is orthonormal, and its first vectors are one of each earlier space.
    """
    counts = sizes.shape == (len(X),) and sizes.dtype.kind in "iu"
    require(counts, "sizes", sizes, f"{len(X)} integers, one a round")
    growth = np.diff(sizes.astype(np.int64), prepend=0)
    require((growth >= 0).all(), "sizes", sizes, "counts that never fall")
    if features is not None:
        Z = check_features(features).transform(X)
        require(sizes[-1] <= Z.shape[1], "sizes", sizes, f"counts of at most {Z.shape[1]} features")
        return Z, sizes
    require(growth.max() <= 1, "sizes", sizes, "counts that grow by one at most, of a dictionary")
    atoms = X[growth > 0]
    K = kernel(atoms) if len(atoms) else np.empty((0, 0))
    K[np.diag_indices_from(K)] *= 1.0 + NUGGET  # atoms that nearly coincide cost no digits
    L, kept, rank_of = np.zeros_like(K), [], [0]  # Gram-Schmidt in the order of the stream
    for j in range(len(atoms)):
        r = len(kept)
        row = scipy.linalg.solve_triangular(L[:r, :r], K[kept, j], lower=True) if r else K[:0, j]
        rest = K[j, j] - row @ row
        if rest > NULL * K[j, j]:
            L[r, :r], L[r, r] = row, rest**0.5
            kept.append(j)
        rank_of.append(len(kept))
    if not kept:
        return np.zeros((len(X), 0)), np.zeros(len(X), dtype=int)
    r = len(kept)
    Z = scipy.linalg.solve_triangular(L[:r, :r], kernel(atoms[kept], X), lower=True).T
    return Z, np.array(rank_of)[sizes]


def _leverages(Z: np.ndarray, ranks: np.ndarray, lam: float) -> np.ndarray:
    """Return z' A_t^-1 z of each round, A_t = sum_{s<=t} z z' + lam I in the space of round t."""
    out = np.empty(len(Z))
    cuts = np.unique([*np.flatnonzero(np.diff(ranks)) + 1, *range(0, len(Z), BLOCK), len(Z)])
    for start, stop in zip(cuts, cuts[1:], strict=False):
        past, rows = Z[:start, : ranks[start]], Z[start:stop, : ranks[start]]
        L = cholesky.cholesky(past.T @ past + lam * np.eye(ranks[start]))
        half = scipy.linalg.solve_triangular(L, rows.T, lower=True)
        shrinks = np.eye(len(rows)) + half.T @ half
        pivots = np.diag(np.linalg.cholesky(shrinks)) ** 2  # 1 + z' A_{t-1}^-1 z
        out[start:stop] = 1.0 - 1.0 / pivots
    return out


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


@checks.formula
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
    n = checks.require_count("n", n, 1)
    m = checks.require_count("m", m, 1)
    gamma = checks.require_within("gamma", gamma, "(0, 1)")
    B = require_nonnegative("B", B)
    norm = require_nonnegative("norm", norm)
    kappa = require_positive("kappa", kappa)
    known_inputs = checks.require_flag("known_inputs", known_inputs)
    mu = n * m ** (-1.0 / gamma)
    power = -0.5 / gamma if known_inputs else 0.5 - 0.5 / gamma
    lam = max(n ** (gamma / (1.0 + gamma)), n * m**power)
    if known_inputs:
        rest = (mu + lam) * n * mu / lam**2
    else:
        rest = 2.0 * (m + 1) * n * mu / lam  # mu <= lam, as Theorem 6 asks, at any m
    dimension = (n / lam) ** gamma * log(e + e * n * kappa**2 / lam)
    return CapacityBound(lam, mu, lam * norm**2 + B**2 * (dimension + rest))


@checks.formula
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
    gamma = checks.require_within("gamma", gamma, "(0, 1)")
    points = checks.require_count("points", points, 2)
    checks.require_memory(f"{points} points of six curves", 6 * 8 * points)
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


@checks.formula
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
    n = checks.require_count("n", n, 1)
    lam = require_positive("lam", lam)
    radius = require_nonnegative("radius", radius)
    sigma = checks.require_width(sigma)
    return ceil(max(8.0 * (radius / sigma) ** 2, 2.0 * log(n / min(lam, 1.0))))


@checks.formula
def gaussian_dimension_bound(n: int, d: int, lam: float, radius: float, sigma: float) -> float:
    """Return 3 (6 + 41 R^2 / (2 d sigma^2) + 3 log(n / lam) / d)^d, above d_eff(lam).

    Of the Gaussian kernel, whatever the inputs in the ball (pkawv section 3.1, after Altschuler,
    Bach, Rudi and Niles-Weed 2019). It shows the order (log n)^d and is no estimate: it is at least
    3 * 6^d.

    Parameters
    ----------
    n : int >= 1
        Rounds.
    d : int >= 1
        Width of the inputs.
    lam : float > 0
    radius : float >= 0
        Largest |x - center|, any center.
    sigma : float > 0
        Width of the kernel.

    Remarks
    -------
    For lam > n, where the logarithm is negative, the value at lam = n: d_eff falls in lam.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.gaussian_dimension_bound(n=1000, d=1, lam=1.0, radius=1.0, sigma=1.0), 1)
    141.7
    """
    n = checks.require_count("n", n, 1)
    d = checks.require_count("d", d, 1)
    lam = require_positive("lam", lam)
    radius = require_nonnegative("radius", radius)
    sigma = checks.require_width(sigma)
    spread = 41.0 * (radius / sigma) ** 2 / (2.0 * d)
    return 3.0 * (6.0 + spread + 3.0 * max(log(n / lam), 0.0) / d) ** d
