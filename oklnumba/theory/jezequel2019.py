"""Bounds of Jezequel, Gaillard and Rudi 2019 (pkawv), for labels in [-B, B] and |f| = norm."""

from functools import partial
from math import ceil, e, log, log1p
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.components.features import TaylorFeatures
from oklnumba.components.kernels import Gaussian
from oklnumba.core import checks, cholesky, inputs
from oklnumba.hot.primitives.dictionary import NUGGET
from oklnumba.theory.arguments import checks_arguments
from oklnumba.theory.calandriello2017 import kors_size_bound
from oklnumba.theory.dimension import effective_dimension, log_det, projection_gap
from oklnumba.theory.matrix import residual_energy

NULL = 1e-12  # share of k(x, x) outside the span of other atoms that counts as rounding
BLOCK = 512  # rounds whose leverages are computed together


@checks_arguments()
def awv_bound(kernel: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0) -> float:
    """Return lam |f|^2 + B^2 log det(I + K / lam), Kernel-AWV's bound (pkawv Prop. 1).

    Examples
    --------
    >>> round(okl.theory.awv_bound(okl.Linear(), [[1.0], [1.0]], lam=2.0), 6)
    0.693147
    """
    return lam * norm**2 + B**2 * log_det(kernel, X, lam)


@checks_arguments()
def ridge_bound(kernel: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0) -> float:
    """Return lam |f|^2 + 4 B^2 log det(I + K / lam), the bound of ridge forecasts cut to [-B, B].

    After Zhdanov and Kalnishkan (2010, ALT, "An identity for kernel ridge regression"); the proof
    is in docs/awv_or_ridge.md. For labels in [-B, B].

    Examples
    --------
    >>> round(okl.theory.ridge_bound(okl.Linear(), [[1.0], [1.0]], lam=2.0), 6)
    2.772589
    """
    return awv_bound(kernel, X, lam, 2.0 * B, norm)


@checks_arguments()
def pkawv_bound(
    kernel: Any, features: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0,
    method: str = "exact",
) -> float:  # fmt: skip
    """Return the regret bound of PKAWV on fixed features against the whole RKHS (pkawv Theorem 3).

    lam |f|^2 + B^2 log det(I + K / lam) + (mu + lam) n mu B^2 / lam^2 with mu of
    ``projection_gap``, to which ``method`` is passed.

    Examples
    --------
    >>> kernel = okl.Gaussian(1.0)
    >>> features = okl.NystromFeatures([[0.0]], kernel)
    >>> round(okl.theory.pkawv_bound(kernel, features, [[0.0], [0.0]], lam=2.0), 6)
    0.693147
    """
    X = inputs.as_inputs(X)
    mu = projection_gap(kernel, features, X, method)
    return awv_bound(kernel, X, lam, B, norm) + (mu + lam) * len(X) * mu * B**2 / lam**2


@checks_arguments()
def log_det_bound(kernel: Any, X: ArrayLike, lam: float) -> float:
    """Return log(e + e n kappa^2 / lam) d_eff(lam), above log det(I + K / lam) (pkawv Prop. 2).

    kappa^2 is the largest k(x, x) on X.

    Examples
    --------
    >>> round(okl.theory.log_det_bound(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.846574
    """
    X = inputs.as_inputs(X)
    kappa2 = float(kernel.diag(X).max())
    return log(e + e * len(X) * kappa2 / lam) * effective_dimension(kernel, X, lam)


@checks_arguments(B=checks.require_positive, norm=checks.require_positive)
def bounded_kernel_lam(n: int, B: float = 1.0, norm: float = 1.0, kappa: float = 1.0) -> float:
    """Return a lam for Kernel-AWV on any inputs with k(x, x) <= kappa^2; B and norm are positive.

    It minimises lam |f|^2 + B^2 u log(e + e u) with u = n kappa^2 / lam, the regret bound of pkawv
    Propositions 1 and 2 with d_eff(lam) <= u, which any bounded kernel has (end of section 2). lam
    and the bound are O(sqrt(n log n)).

    Remarks
    -------
    log det(I + K / lam) <= u saves the logarithm: lam = B kappa sqrt(n) / norm has a regret of at
    most 2 B norm kappa sqrt(n). The paper's lam is larger.

    Examples
    --------
    >>> [round(okl.theory.bounded_kernel_lam(n), 1) for n in (100, 10_000)]
    [19.2, 239.4]
    """
    root = kappa * norm / B * n**0.5
    # The bound is stationary in u = root v where v^2 (1 + log(1 + u) + u / (1 + u)) = 1.
    v = scipy.optimize.brentq(
        lambda v: v * v * (1.0 + log1p(root * v) + root * v / (1.0 + root * v)) - 1.0, 0.0, 1.0
    )
    return kappa * B / norm * n**0.5 / v


@checks_arguments()
def taylor_bound(
    features: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0
) -> float:
    """Return lam |f|^2 + 1.5 B^2 log det(I + K / lam), PKAWV's bound of pkawv Theorem 4.

    Against every f of the Gaussian RKHS, for Taylor features of degree ``taylor_degree`` or more;
    ValueError if the degree is smaller, where only ``pkawv_bound`` holds.

    Examples
    --------
    >>> features = okl.TaylorFeatures(degree=8, sigma=1.0)
    >>> round(okl.theory.taylor_bound(features, [[1.0], [1.0]], lam=2.0), 6)
    1.039721
    """
    X = inputs.as_inputs(X)
    checks.require(isinstance(features, TaylorFeatures), "features", features, "a TaylorFeatures")
    d = X.shape[1]
    center = 0.0 if features.center is None else inputs.as_point(features.center, d, "center")
    radius = float(np.sqrt(np.square(X - center).sum(axis=1).max()))
    needed = taylor_degree(len(X), lam, radius, features.sigma)
    if features.degree < needed:
        raise ValueError(
            f"degree is {features.degree}, but Theorem 4 needs {needed} on this stream; raise "
            "degree, or use pkawv_bound, which holds for any degree"
        )
    return lam * norm**2 + 1.5 * B**2 * log_det(Gaussian(features.sigma), X, lam)


@checks_arguments()
def nystrom_bound(
    kernel: Any, X: ArrayLike, lam: float, mu: float, size: int, B: float = 1.0, norm: float = 0.0,
) -> float:  # fmt: skip
    """Return the regret bound of Nystrom-AWV with KORS (pkawv Theorem 6).

    lam |f|^2 + B^2 d_eff(lam) log(e + e n kappa^2 / lam) + 2 B^2 (size + 1) n mu / lam, with high
    probability for beta = 12 log(n / delta) and eps = 1/2; for any beta with mu the largest
    |(I - P_t) C_t^(1/2)|^2 of the run. mu <= lam; ``size`` is the size of the final dictionary.

    Examples
    --------
    >>> round(okl.theory.nystrom_bound(okl.Linear(), [[1.0], [1.0]], 2.0, 0.1, size=1), 6)
    1.246574
    """
    X = inputs.as_inputs(X)
    checks.require(mu <= lam, "mu", mu, f"a number in (0, lam] = (0, {lam!r}]")
    projected = 2.0 * (size + 1) * len(X) * mu / lam
    return lam * norm**2 + B**2 * (log_det_bound(kernel, X, lam) + projected)


class SizeBound(NamedTuple):
    """pkawv's Proposition 5 on a KORS dictionary.

    ``beta`` is the oversampling, 12 log(n / delta); ``size`` is 3 rho beta d_onl(mu) with rho = 3,
    from kons Theorem 2; ``printed`` is 9 d_eff(mu) log(2 n / delta)^2, which may be exceeded.
    """

    beta: float
    size: float
    printed: float


@checks_arguments()
def nystrom_size_bound(kernel: Any, X: ArrayLike, mu: float, delta: float = 0.05) -> SizeBound:
    """Return the size of KORS's dictionary by pkawv Proposition 5, and the beta for it.

    With this beta, eps = 1/2 and mu as its alpha, with probability 1 - delta the dictionary has at
    most this size, and |(I - P_t) C_t^(1/2)|^2 <= mu at every round, as Theorem 6 needs.

    Remarks
    -------
    Errata 12 and 59: the printed size does not follow from kons and is exceeded, so ``size`` is
    3 rho beta d_onl(mu). It holds if d_onl(mu) >= 0.03, so for any mu that is not far above n.

    Examples
    --------
    >>> bound = okl.theory.nystrom_size_bound(okl.Linear(), [[1.0], [1.0]], mu=2.0, delta=0.1)
    >>> round(bound.beta, 3), round(bound.size, 1), round(bound.printed, 1)
    (35.949, 188.7, 61.2)
    """
    X = inputs.as_inputs(X)
    beta = 12.0 * log(len(X) / delta)
    printed = 9.0 * effective_dimension(kernel, X, mu) * log(2.0 * len(X) / delta) ** 2
    return SizeBound(beta, kors_size_bound(kernel, X, mu, beta, eps=0.5), printed)


@checks_arguments()
def growing_bound(
    kernel: Any, X: ArrayLike, y: ArrayLike, lam: float, sizes: ArrayLike, features: Any = None,
    norm: float = 0.0,
) -> float:  # fmt: skip
    """Return the regret bound of PKAWV on subspaces that grow, against the RKHS (pkawv Theorem 9).

    lam |f|^2 + sum_t y_t^2 <A~_t^-1 P_t phi_t, P_t phi_t> + sum_t (mu_t + lam) t mu_t B^2 / lam^2
    with A~_t = P_t C_t P_t + lam I, mu_t = |(P_{t+1} - P_t) C_t^(1/2)|^2, P_{n+1} = I and B the
    largest |y|. For any dictionary that grows, however it was sampled.

    Parameters
    ----------
    sizes : array_like of int, shape (n,)
        Size of the space in which each round's forecast was made, never less than the one before.
        For NystromAWV ``run.sizes``, for GrowingPKAWV the size before the round.
    features : TaylorFeatures or NystromFeatures, optional
        The space of round t is spanned by the first sizes[t] of them. None: by k(x_s, .) for the
        rounds s <= t in which sizes grew, by one.

    Remarks
    -------
    Errata 23: corrected by its proof; the printed form lacks lam |f|^2 and a factor 1 / lam.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [0.0]], [1.0, -1.0, 1.0]
    >>> round(okl.theory.growing_bound(okl.Gaussian(1.0), X, y, lam=1.0, sizes=[1, 2, 2]), 4)
    1.2594
    """
    X = inputs.as_inputs(X)
    y = inputs.as_labels(y, len(X))
    Z, ranks = _find_coordinates(kernel, X, np.asarray(sizes), features)
    bound = lam * norm**2 + float(y**2 @ _compute_leverages(Z, ranks, lam))
    for t in [*np.flatnonzero(np.diff(ranks)) + 1, len(X)]:  # where P_{t+1} is not P_t
        if t < len(X):
            mu = float(np.linalg.norm(Z[:t, ranks[t - 1] : ranks[t]], 2)) ** 2
        else:
            mu = residual_energy(kernel, X, Z[:, : ranks[-1]])
        bound += (mu + lam) * t * mu * np.abs(y).max() ** 2 / lam**2
    return float(bound)


def _find_coordinates(
    kernel: Any, X: np.ndarray, sizes: np.ndarray, features: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates of the inputs in nested spaces, and the dimension of each round's space.

    The basis is orthonormal; its first vectors span the earlier spaces.
    """
    integers = sizes.shape == (len(X),) and sizes.dtype.kind in "iu"
    checks.require(integers, "sizes", sizes, f"{len(X)} integers, one per round")
    growth = np.diff(sizes.astype(np.int64), prepend=0)
    checks.require((growth >= 0).all(), "sizes", sizes, "counts that never fall")
    if features is not None:
        Z = features.transform(X)
        r = Z.shape[1]
        checks.require(sizes[-1] <= r, "sizes", sizes, f"counts of at most {r} features")
        return Z, sizes
    checks.require(growth.max() <= 1, "sizes", sizes, "counts that grow by at most one per round")
    atoms = X[growth > 0]
    K = kernel(atoms) if len(atoms) else np.empty((0, 0))
    K[np.diag_indices_from(K)] *= 1.0 + NUGGET  # atoms that nearly coincide cost no digits
    basis: list[int] = []
    L, rank_of = np.zeros_like(K), [0]  # Gram-Schmidt in the order of the stream
    for j in range(len(atoms)):
        r = len(basis)
        row = scipy.linalg.solve_triangular(L[:r, :r], K[basis, j], lower=True) if r else K[:0, j]
        delta = K[j, j] - row @ row
        if delta > NULL * K[j, j]:
            L[r, :r], L[r, r] = row, delta**0.5
            basis.append(j)
        rank_of.append(len(basis))
    if not basis:
        return np.zeros((len(X), 0)), np.zeros(len(X), dtype=int)
    r = len(basis)
    Z = scipy.linalg.solve_triangular(L[:r, :r], kernel(atoms[basis], X), lower=True).T
    return Z, np.array(rank_of)[sizes]


def _compute_leverages(Z: np.ndarray, ranks: np.ndarray, lam: float) -> np.ndarray:
    """Return z' A_t^-1 z of each round, A_t = sum_{s<=t} z z' + lam I in the space of round t."""
    out = np.empty(len(Z))
    cuts = np.unique([*np.flatnonzero(np.diff(ranks)) + 1, *range(0, len(Z), BLOCK), len(Z)])
    for start, stop in zip(cuts, cuts[1:], strict=False):
        past, rows = Z[:start, : ranks[start]], Z[start:stop, : ranks[start]]
        L = cholesky.factor_matrix(past.T @ past + lam * np.eye(ranks[start]))
        half = scipy.linalg.solve_triangular(L, rows.T, lower=True)
        shrinks = np.eye(len(rows)) + half.T @ half
        pivots = np.diag(np.linalg.cholesky(shrinks)) ** 2  # 1 + z' A_{t-1}^-1 z
        out[start:stop] = 1.0 - 1.0 / pivots
    return out


class CapacityBound(NamedTuple):
    """The lam and mu that pkawv's corollaries 7 and 8 choose, and the regret bound there."""

    lam: float
    mu: float
    bound: float


@checks_arguments(gamma="(0, 1)", known_inputs=checks.require_flag)
def capacity_bound(
    n: int, m: int, gamma: float, B: float = 1.0, norm: float = 1.0, kappa: float = 1.0,
    known_inputs: bool = False,
) -> CapacityBound:  # fmt: skip
    """Return the bounds of pkawv Corollaries 7 and 8, for d_eff(lam) <= (n / lam)^gamma.

    With mu = n m^(-1/gamma), which makes dictionaries of about m atoms, and lam as the corollaries
    choose it: lam |f|^2 + B^2 (n / lam)^gamma log(e + e n kappa^2 / lam) + 2 B^2 (m + 1) n mu / lam
    (Corollary 7), or with (mu + lam) n mu B^2 / lam^2 as the last term where the inputs are known
    beforehand (Corollary 8, by Theorem 3).

    Parameters
    ----------
    n, m, gamma : int >= 1, int >= 1 and float in (0, 1)
        Rounds, atoms, and the exponent.
    kappa : float > 0
        Square root of the largest k(x, x).
    known_inputs : bool
        For Corollary 8.

    Remarks
    -------
    The corollaries hide constants and logarithms; these are those of the theorems behind them.

    Examples
    --------
    >>> bound = okl.theory.capacity_bound(n=10_000, m=500, gamma=0.25)
    >>> round(bound.lam, 3), round(bound.bound, 1)
    (6.31, 59.4)
    """
    mu = n * m ** (-1.0 / gamma)
    power = -0.5 / gamma if known_inputs else 0.5 - 0.5 / gamma
    lam = max(n ** (gamma / (1.0 + gamma)), n * m**power)
    term = (mu + lam) / lam if known_inputs else 2.0 * (m + 1)  # mu <= lam, as Theorem 6 asks
    projected = term * n * mu / lam
    dimension = (n / lam) ** gamma * log(e + e * n * kappa**2 / lam)
    return CapacityBound(lam, mu, lam * norm**2 + B**2 * (dimension + projected))


@checks_arguments(gamma="(0, 1)", points=partial(checks.require_count, least=2))
def rates(gamma: float, points: int = 201) -> dict[str, np.ndarray]:
    """Return the exponents of pkawv Figure 1: regret n^b with a dictionary of n^a atoms.

    For d_eff(lam) <= (n / lam)^gamma and tuned lam, from Corollaries 7 and 8 and eq. (8). If a
    larger dictionary would make a rate worse, a smaller one is used.

    Returns
    -------
    dict of ndarray, each of shape (points,)
        "a" from 0 to 1, and b of "PKAWV", "PKAWV (beforehand features)", "Sketched-KONS" and
        "Pros-N-KONS".

    Remarks
    -------
    Errata 57: the text says that Pros-N-KONS cannot beat 4 gamma / (1 + gamma)^2. The minimum of
    eq. (8) over lam, which this function returns, is lower: gamma (3 + gamma) / (1 + gamma)^2.

    Examples
    --------
    >>> okl.theory.rates(0.25, points=3)["PKAWV"].round(3)
    array([1.  , 0.25, 0.2 ])
    """
    a = np.linspace(0.0, 1.0, points)
    best = gamma / (1.0 + gamma)
    # Pros-N-KONS: max(a + l, a + gamma (1 - l), 2 - a / gamma - l) at the best l = log_n lam, where
    # two of the three lines cross.
    crossings = (
        np.full(points, best),
        1.0 - a * (1.0 + 1.0 / gamma) / 2.0,
        (2.0 - gamma - a * (1.0 + 1.0 / gamma)) / (1.0 - gamma),
    )
    lines = [[a + x, a + gamma * (1.0 - x), 2.0 - a / gamma - x] for x in crossings]
    curves = {
        "PKAWV": np.maximum(best, 1.0 + a / 2.0 - a / (2.0 * gamma)),
        "PKAWV (beforehand features)": np.maximum(best, 1.0 - a / (2.0 * gamma)),
        "Sketched-KONS": (1.0 - a + gamma) / (1.0 + gamma),
        "Pros-N-KONS": np.max(lines, axis=1).min(axis=0),
    }
    return {"a": a} | {k: np.minimum.accumulate(np.minimum(b, 1.0)) for k, b in curves.items()}


@checks_arguments(radius=checks.require_nonnegative, sigma=checks.require_width)
def taylor_degree(n: int, lam: float, radius: float, sigma: float) -> int:
    """Return the degree M = ceil(max(8 R^2 / sigma^2, 2 log(n / min(lam, 1)))) of pkawv Theorem 4.

    With Taylor features of this degree PKAWV has a regret of at most lam |f|^2 + 1.5 B^2 log det(I
    + K / lam). In practice far smaller degrees do: see ``features.captured``.

    R = ``radius`` >= 0 is the largest |x - center|, sigma > 0 the width of the Gaussian kernel.

    Examples
    --------
    >>> okl.theory.taylor_degree(n=1000, lam=1.0, radius=1.0, sigma=1.0)
    14
    """
    return ceil(max(8.0 * (radius / sigma) ** 2, 2.0 * log(n / min(lam, 1.0))))


@checks_arguments(radius=checks.require_nonnegative, sigma=checks.require_width)
def gaussian_dimension_bound(n: int, d: int, lam: float, radius: float, sigma: float) -> float:
    """Return 3 (6 + 41 R^2 / (2 d sigma^2) + 3 log(n / lam) / d)^d, above d_eff(lam).

    Of the Gaussian kernel, for any inputs in the ball (pkawv section 3.1, after Altschuler, Bach,
    Rudi and Niles-Weed 2019). It shows the order (log n)^d; as an estimate it is far too large.

    R = ``radius`` >= 0 is the largest |x - center| for any center, sigma > 0 the width. For lam > n
    it is the value at lam = n, as d_eff falls in lam.

    Examples
    --------
    >>> round(okl.theory.gaussian_dimension_bound(n=1000, d=1, lam=1.0, radius=1.0, sigma=1.0), 1)
    141.7
    """
    spread = 41.0 * (radius / sigma) ** 2 / (2.0 * d)
    return 3.0 * (6.0 + spread + 3.0 * max(log(n / lam), 0.0) / d) ** d
