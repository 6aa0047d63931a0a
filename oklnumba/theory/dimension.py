"""How large a kernel is on a stream: log det, effective dimension, leverage, alignment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.components.features import check_features
from oklnumba.components.kernels import kernel_code
from oklnumba.core import checks, cholesky, inputs
from oklnumba.core.checks import require_positive
from oklnumba.core.display import brief
from oklnumba.theory.matrix import energy_beyond, factor_of, kernel_times


@checks.formula
def log_det(kernel: Any, X: ArrayLike, lam: float) -> float:
    """Return log det(K / lam + I) of the kernel matrix K of X.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    lam : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.log_det(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.693147
    """
    kernel_code(kernel)
    lam = checks.require_positive("lam", lam)
    L = factor_of(kernel, X, lam)
    return float(np.log(np.diag(L) ** 2 / lam).sum())


@checks.formula
def effective_dimension(kernel: Any, X: ArrayLike, lam: float) -> float:
    """Return tr K (K + lam I)^-1, the effective dimension of X at regularisation lam.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    lam : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.effective_dimension(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.5
    """
    kernel_code(kernel)
    lam = checks.require_positive("lam", lam)
    return float(leverage_scores(kernel, X, lam).sum())


@checks.formula
def leverage_scores(kernel: Any, X: ArrayLike, alpha: float) -> np.ndarray:
    """Return the ridge leverage scores, the diagonal of K (K + alpha I)^-1 (kons eq. 2).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    alpha : float > 0

    Returns
    -------
    ndarray of shape (n,)
        In [0, 1); their sum is the effective dimension.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.leverage_scores(okl.Linear(), [[1.0], [1.0]], 2.0).round(6)
    array([0.25, 0.25])
    """
    kernel_code(kernel)
    alpha = require_positive("alpha", alpha)
    return 1.0 - alpha * cholesky.inverse_diagonal(factor_of(kernel, X, alpha))


@checks.formula
def online_effective_dimension(kernel: Any, X: ArrayLike, alpha: float) -> float:
    """Return the sum over t of the leverage score of x_t among x_1, ..., x_t (kons Lemma 3).

    Between the effective dimension and log det(K / alpha + I).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
        In the order of the stream, on which it depends.
    alpha : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.online_effective_dimension(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.583333
    """
    kernel_code(kernel)
    alpha = require_positive("alpha", alpha)
    L = factor_of(kernel, X, alpha)
    return float((1.0 - alpha / np.diag(L) ** 2).sum())


@checks.formula
def kernel_alignment(kernel: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Return A_T = sum k(x_t, x_t) - y' K y / T, small for a kernel that suits the labels (pomdr).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
        Labels -1 and +1.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.kernel_alignment(okl.Linear(), [[1.0], [-1.0]], [1.0, -1.0])
    0.0
    """
    kernel_code(kernel)
    X = inputs.as_inputs(X)
    y = inputs.as_labels(y, len(X), classes=True)
    return float(kernel.diag(X).sum() - float(y @ kernel_times(kernel, X, y)) / len(X))


@checks.formula
def projection_gap(kernel: Any, features: Any, X: ArrayLike, method: str = "exact") -> float:
    """Return mu = lambda_max(K - F F'), the energy of the inputs outside the features' span.

    Parameters
    ----------
    kernel : Kernel
    features : TaylorFeatures or NystromFeatures
        Coordinates in an orthonormal basis of a subspace of the kernel's RKHS.
    X : array_like of shape (n, d)
    method : {"exact", "lanczos"}
        "lanczos": SciPy's eigsh on products with K, O(n^2 d) time each and O(n r) memory, for
        streams whose kernel matrix does not fit; relative error about 1e-6, from below.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> kernel = okl.Gaussian(1.0)
    >>> features = okl.NystromFeatures([[0.0], [1.0]], kernel)
    >>> abs(okl.theory.projection_gap(kernel, features, [[0.0], [1.0]])) < 1e-12
    True
    """
    check_features(features)
    checks.require_choice("method", method, ("exact", "lanczos"))
    X = inputs.as_inputs(X)
    kernel_code(kernel)
    F = features.transform(X)
    n = len(X)
    if method == "exact" or n < 3:
        return energy_beyond(kernel, X, F)
    from scipy.sparse.linalg import LinearOperator, eigsh  # a tenth of a second to import

    def product(v: np.ndarray) -> np.ndarray:
        v = v.ravel()
        return kernel_times(kernel, X, v) - F @ (F.T @ v)

    operator = LinearOperator((n, n), matvec=product, dtype=float)
    start = np.random.default_rng(0).standard_normal(n)  # the same answer every time
    top = eigsh(operator, k=1, which="LA", tol=1e-6, v0=start, return_eigenvectors=False)
    return max(float(top[0]), 0.0)


class Reading(NamedTuple):
    """What a Meter shows after some rounds.

    Attributes
    ----------
    rounds : int
    effective_dimension : float
    log_det : float
        log det(K / lam + I).
    alignment : float
        A_t = sum k(x, x) - y' K y / t.
    """

    rounds: int
    effective_dimension: float
    log_det: float
    alignment: float


class Meter:
    """Streaming effective dimension, log det and kernel alignment, of a kernel given by features.

    Exact for the kernel z(x).z(x') of the features: an estimate, from below, for the kernel that
    Taylor or Nystrom features are a part of (``features.captured`` says how large a part), and
    without bias in the kernel for Fourier features. O(r^2) a round and O(r^2) memory.

    Parameters
    ----------
    features : Features
    lam : float > 0
        Regularisation.

    Attributes
    ----------
    history : list of Reading
        One for each piece that ``follow`` passed on.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    >>> meter = okl.theory.Meter(okl.FourierFeatures(50), lam=1.0)
    >>> run = okl.run(okl.PKAWV(okl.TaylorFeatures(2)), meter.follow(X, X[:, 0], every=1000))
    >>> [reading.rounds for reading in meter.history]
    [1000, 2000, 3000]
    """

    def __init__(self, features: Any, lam: float = 1.0):
        check_features(features)
        lam = require_positive("lam", lam)
        self.features = features
        self.lam = lam
        self.history: list[Reading] = []
        self._moments: np.ndarray | None = None
        self._width: int | None = None

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Meter:
        """Take in rounds; return self.

        Parameters
        ----------
        X : array_like of shape (n, d)
        y : array_like of shape (n,)

        Raises
        ------
        ValueError
            If the data is not valid (nothing has changed then).
        """
        X = inputs.as_inputs(X, self._width)
        y = inputs.as_labels(y, len(X))
        Z = self.features.transform(X)
        if self._moments is None:
            self._width, r = X.shape[1], Z.shape[1]
            self._moments, self._labels = np.zeros((r, r)), np.zeros(r)
            self._rounds, self._trace = 0, 0.0
        self._add(Z, y)
        return self

    @checks.formula
    def _add(self, Z: np.ndarray, y: np.ndarray) -> None:
        moments, labels = self._moments + Z.T @ Z, self._labels + y @ Z
        trace = self._trace + float(np.square(Z).sum())
        self._moments, self._labels, self._trace = moments, labels, trace
        self._rounds += len(Z)

    def __repr__(self) -> str:
        seen = 0 if self._moments is None else self._rounds
        return brief(self, features=self.features, lam=self.lam, rounds=seen)

    def read(self) -> Reading:
        """Return what the rounds so far amount to.

        Raises
        ------
        ValueError
            Before any rounds.
        """
        if self._moments is None:
            raise ValueError("the meter has seen no rounds; call partial_fit(X, y) first")
        eigenvalues = np.maximum(scipy.linalg.eigvalsh(self._moments), 0.0) / self.lam
        aligned = float(self._labels @ self._labels) / self._rounds
        return Reading(
            self._rounds,
            float((eigenvalues / (1.0 + eigenvalues)).sum()),
            float(np.log1p(eigenvalues).sum()),
            self._trace - aligned,
        )

    def follow(
        self, X: ArrayLike, y: ArrayLike | None = None, every: int = 1000
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield a stream in pieces, for ``okl.run``, and take a reading after each.

        Parameters
        ----------
        X : array_like of shape (n, d), or iterable of pairs (X, y)
        y : array_like of shape (n,), optional
            None if X is an iterable of pairs.
        every : int >= 1
            Rounds a piece, of arrays.

        Raises
        ------
        ValueError
            If the data is not valid.
        """
        every = checks.require_count("every", every, 1)
        pieces: Any = X
        if y is not None:
            rows = inputs.as_inputs(X)
            labels = inputs.as_labels(y, len(rows))
            cuts = range(0, len(rows), every)
            pieces = ((rows[i : i + every], labels[i : i + every]) for i in cuts)
        checks.require(
            isinstance(pieces, Iterable) and not checks.has_shape(pieces),
            "X",
            X,
            "an iterable of pairs, where y is None",
        )
        for piece in pieces:
            pair = isinstance(piece, tuple | list) and len(piece) == 2
            checks.require(pair, "X", piece, "an iterable of pairs (X, y), where y is None")
            yield piece
            self.history.append(self.partial_fit(*piece).read())
