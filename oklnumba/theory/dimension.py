"""How large a kernel is on a stream: log det, effective dimension, leverage, alignment."""

from math import inf, log1p
from typing import Any, NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.components.features import check_features
from oklnumba.components.kernels import check_kernel
from oklnumba.core import checks, cholesky, inputs
from oklnumba.core.display import repr_fields
from oklnumba.theory.arguments import checks_arguments
from oklnumba.theory.matrix import EPS, factor_kernel, kernel_times, residual_energy


@checks_arguments()
def log_det(kernel: Any, X: ArrayLike, lam: float) -> float:
    """Return log det(K / lam + I) of the kernel matrix K of X.

    Examples
    --------
    >>> round(okl.theory.log_det(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.693147
    """
    X = inputs.as_inputs(X)
    L = factor_kernel(kernel, X, lam)
    return float(np.log(np.diag(L) ** 2 / lam).sum())


@checks_arguments()
def effective_dimension(kernel: Any, X: ArrayLike, lam: float) -> float:
    """Return tr K (K + lam I)^-1, the effective dimension of X at regularisation lam.

    Examples
    --------
    >>> round(okl.theory.effective_dimension(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.5
    """
    return float(leverage_scores(kernel, X, lam).sum())


@checks_arguments()
def leverage_scores(kernel: Any, X: ArrayLike, alpha: float) -> np.ndarray:
    """Return the ridge leverage scores (n,), the diagonal of K (K + alpha I)^-1 (kons eq. 2).

    They are in [0, 1]; their sum is the effective dimension.

    Examples
    --------
    >>> okl.theory.leverage_scores(okl.Linear(), [[1.0], [1.0]], 2.0).round(6)
    array([0.25, 0.25])
    """
    X = inputs.as_inputs(X)
    scores = 1.0 - alpha * cholesky.inverse_diagonal(factor_kernel(kernel, X, alpha))
    return np.maximum(scores, 0.0)  # rounding, where alpha is tiny


@checks_arguments()
def online_effective_dimension(kernel: Any, X: ArrayLike, alpha: float) -> float:
    """Return the sum over t of the leverage score of x_t among x_1, ..., x_t (kons Lemma 3).

    It depends on the order of the stream, and lies between the effective dimension and
    log det(K / alpha + I).

    Examples
    --------
    >>> round(okl.theory.online_effective_dimension(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.583333
    """
    X = inputs.as_inputs(X)
    L = factor_kernel(kernel, X, alpha)
    return float((1.0 - alpha / np.diag(L) ** 2).sum())


@checks_arguments()
def kernel_alignment(kernel: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Return A_T = sum k(x_t, x_t) - y' K y / T, small for a kernel that suits the labels (pomdr).

    Labels are -1 and +1.

    Examples
    --------
    >>> okl.theory.kernel_alignment(okl.Linear(), [[1.0], [-1.0]], [1.0, -1.0])
    0.0
    """
    X = inputs.as_inputs(X)
    y = inputs.as_labels(y, len(X), classes=True)
    return float(kernel.diag(X).sum() - float(y @ kernel_times(kernel, X, y)) / len(X))


@checks_arguments()
def projection_gap(kernel: Any, features: Any, X: ArrayLike, method: str = "exact") -> float:
    """Return mu = lambda_max(K - F F'), the energy of the inputs outside the features' span.

    ``method`` is "exact", or "lanczos" if the kernel matrix does not fit into memory: SciPy's eigsh
    on products with K, O(n^2 d) time each and O(n r) memory; about 1e-6 too low.

    Examples
    --------
    >>> kernel = okl.Gaussian(1.0)
    >>> features = okl.NystromFeatures([[0.0], [1.0]], kernel)
    >>> abs(okl.theory.projection_gap(kernel, features, [[0.0], [1.0]])) < 1e-12
    True
    """
    X = inputs.as_inputs(X)
    checks.require_choice("method", method, ("exact", "lanczos"))
    F, n = features.transform(X), len(X)
    if method == "exact" or n < 3:
        return residual_energy(kernel, X, F)
    from scipy.sparse.linalg import LinearOperator, eigsh  # importing it takes 0.1 s

    def multiply(v: np.ndarray) -> np.ndarray:
        v = v.ravel()
        return kernel_times(kernel, X, v) - F @ (F.T @ v)

    operator = LinearOperator((n, n), matvec=multiply, dtype=float)
    start = np.random.default_rng(0).standard_normal(n)  # reproducible
    top = eigsh(operator, k=1, which="LA", tol=1e-6, v0=start, return_eigenvectors=False)
    return max(float(top[0]), 0.0)


class Reading(NamedTuple):
    """A Meter's values: log_det is log det(K / lam + I), alignment sum k(x, x) - y' K y / t.

    With the Meter's ``kernel`` log_det is at most, and log_det_above at least, that of the kernel,
    with a margin for rounding.
    """

    rounds: int
    effective_dimension: float
    log_det: float
    alignment: float
    log_det_above: float = inf


class Meter:
    """Streaming effective dimension, log det and kernel alignment of a kernel given by features.

    Exact for the kernel z(x).z(x') of the features. For the kernel that Taylor or Nystrom features
    approximate it is an estimate from below (``features.captured`` is the part that they hold); for
    Fourier features the estimate is unbiased. O(r^2) time per round and O(r^2) memory.

    Parameters
    ----------
    kernel : Kernel, optional
        The kernel in whose RKHS the features are orthonormal (Taylor, Nystrom). Then its log det
        has bounds after millions of rows: with P the projection on the features' span, by Fischer's
        inequality it exceeds log_det by at most n log(1 + sum |(I - P) phi|^2 / (n lam)).

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    >>> meter = okl.theory.Meter(okl.FourierFeatures(50), lam=1.0)
    >>> parts = [slice(0, 1000), slice(1000, 3000)]
    >>> [meter.partial_fit(X[part], X[part, 0]).read().rounds for part in parts]
    [1000, 3000]
    """

    def __init__(self, features: Any, lam: float = 1.0, kernel: Any = None):
        self.features = check_features("features", features)
        self.lam = checks.require_positive("lam", lam)
        self.kernel = kernel if kernel is None else check_kernel("kernel", kernel)
        self._width: int | None = None
        self._rounds, self._trace, self._outside = 0, 0.0, inf if kernel is None else 0.0
        self._moments = self._labels = np.zeros(())  # become sums of z z' and of y z

    @checks.refuses_overflow
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add rounds, X (n, d) and y (n,); return self. After an error nothing has changed."""
        X = inputs.as_inputs(X, self._width)
        y = inputs.as_labels(y, len(X))
        Z = self.features.transform(X)
        trace, outside = float((Z**2).sum()), self._outside
        if self.kernel is not None:
            outside += max(float(self.kernel.diag(X).sum()) - trace, 0.0)
        sums = self._moments + Z.T @ Z, self._labels + y @ Z, self._trace + trace, outside
        self._moments, self._labels, self._trace, self._outside = sums
        self._width, self._rounds = X.shape[1], self._rounds + len(Z)
        return self

    def __repr__(self) -> str:
        return repr_fields(self, features=self.features, lam=self.lam, rounds=self._rounds)

    def read(self) -> Reading:
        """Return the measures of all rounds so far; ValueError before the first."""
        if not self._rounds:
            raise ValueError("the meter has no rounds yet; call partial_fit(X, y) first")
        eigenvalues = np.maximum(scipy.linalg.eigvalsh(self._moments), 0.0) / self.lam
        aligned = float(self._labels @ self._labels) / self._rounds
        rest = self._rounds * log1p(self._outside / (self._rounds * self.lam))
        # Rounding of each eigenvalue: many are 0, and at a small lam their rounding adds up.
        off = EPS * (len(eigenvalues) + 256 + self._rounds / 256) * self._trace / self.lam
        off *= self.kernel is not None  # else log_det is an estimate
        return Reading(
            self._rounds,
            float((eigenvalues / (1.0 + eigenvalues)).sum()),
            float(np.log1p(np.maximum(eigenvalues - off, 0.0)).sum()),
            self._trace - aligned,
            float(np.log1p(eigenvalues + off).sum()) + rest,
        )
