"""Feature maps z(x) with z(x).z(x') equal or close to a kernel: of any basis, Fourier, Nystrom."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, sqrt
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.components.kernels import Gaussian, Kernel, check_kernel
from oklnumba.core.arrays import aligned_zeros
from oklnumba.core.checks import require, require_count
from oklnumba.core.inputs import PLAY_ROWS, as_inputs, as_point, as_rows, cut_blocks, scale_columns
from oklnumba.core.params import KW_ONLY, Params, count, field_with, random_seed, required, width
from oklnumba.core.transformers import Transformer, in_frames
from oklnumba.hot.primitives.features import fourier_block, taylor_block

MOST_MONOMIALS = 1_000_000  # more are a mistake in degree or width
Writer = Callable[[np.ndarray, np.ndarray], None]
NULL = 1e-12  # eigenvalue of a direction, against the largest, that is rounding
PASS = 32  # rows that Nystrom features map at once; their kernel values stay in the cache


class Features(Transformer, Params):
    """A feature map: ``transform(X)``, ``size(d)`` and ``captured(X)``.

    It learns nothing from data, so ``transform`` needs no ``fit``.
    """

    _requires_fit = False
    _kind = ""  # with the names of hyper-parameters in braces

    def _writer(self, d: int) -> tuple[Writer, int]:
        """Return ``write(X, out)``, which fills the first size(d) columns of out, and size(d)."""
        raise NotImplementedError

    def size(self, d: int) -> int:
        """Return the number of features for inputs of width d."""
        return self._writer(require_count("d", d, 1))[1]

    def _names_out(self, columns: list[str]) -> list[str]:
        name = type(self).__name__.removesuffix("Features").lower()
        return [f"{name}{j}" for j in range(self.size(len(columns)))]

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Check X and remember its columns; return self. y is ignored."""
        d = as_rows(X).shape[1]
        self._writer(d)
        self._remember_columns(X, d)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Check more rows, of the columns seen before; return self."""
        if not hasattr(self, "n_features_in_"):
            return self.fit(X)
        self._compare_columns(X)
        as_rows(X)
        return self

    @in_frames
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the features of the rows of X, dense or sparse, (n, d): an array (n, size(d))."""
        self._checked_params()
        return self._write_rows(self._as_points(X))

    def _as_points(self, X: ArrayLike) -> Any:
        """Return rows that the map takes, (n, d), dense or sparse; ValueError for others."""
        return as_rows(X)

    @np.errstate(under="ignore")
    def _write_rows(self, X: Any) -> np.ndarray:
        """Return the features of checked rows."""
        write, r = self._writer(X.shape[1])
        out = np.empty((X.shape[0], r))
        for rows, block in cut_blocks(X, PLAY_ROWS):
            write(block, out[rows])
        return out

    @property
    def kind(self) -> str:
        """What kind of features they are, in a few words."""
        return self._kind.format(**vars(self)) or f"features of {self!r}"

    def captured(self, X: ArrayLike) -> np.ndarray:
        """Return |z(x)|^2 / k(x, x) of each row, the share of k(x, x) in the span, shape (n,)."""
        return np.clip((self._write_rows(self._as_points(X)) ** 2).sum(axis=1), 0.0, 1.0)

    def advice(self, X: np.ndarray) -> str | None:
        """Return what to change if the map does not suit the first inputs X, else None."""
        return None


def _check_center(name: str, value: Any) -> np.ndarray:
    return as_point(value, name=name)[0]


class TaylorFeatures(Features):
    """Taylor features of the Gaussian kernel: all monomials of degree <= ``degree``.

    g_k(x) = exp(-|x|^2 / (2 sigma^2)) prod_i x_i^{k_i} / (sigma^{k_i} sqrt(k_i!)), |k| <= degree
    (pkawv eq. 6). These C(d + degree, degree) functions are orthonormal in Gaussian(sigma)'s RKHS.

    Parameters
    ----------
    degree : int >= 0
        Largest total degree M.
    sigma : float > 0
        Width of the Gaussian kernel.
    center : array_like of shape (d,), optional
        The expansion point; None: the origin. Any point gives the same kernel, but one near the
        mean of the inputs captures far more of it. Choose it before you see the labels.

    Remarks
    -------
    The paper's listing has one column per order of a monomial's factors: many more columns for the
    same kernel (errata 22). ``center`` is ours.

    Examples
    --------
    >>> features = okl.TaylorFeatures(degree=2, sigma=1.0)
    >>> features.size(18)
    190
    >>> features.transform([[0.0, 0.0]])
    array([[1., 0., 0., 0., 0., 0.]])
    >>> list(features.get_feature_names_out(["u", "v"]))
    ['1', 'u', 'v', 'u^2', 'u v', 'v^2']
    """

    LOW_SHARE = 0.1  # if less of the kernel is captured there is advice
    HEAD = 500  # inputs looked at for advice
    _kind = "Taylor features of degree {degree}"

    degree: int = count(2, least=0)
    _: KW_ONLY
    sigma: float = width(1.0)
    center: ArrayLike | None = field_with(_check_center, None)

    def size(self, d: int) -> int:
        """Return C(d + degree, degree)."""
        d, degree = require_count("d", d, 1), int(self.degree)
        r = comb(d + degree, degree)
        if r > MOST_MONOMIALS:
            raise ValueError(
                f"degree {degree} in {d} dimensions makes more than {MOST_MONOMIALS:,} Taylor "
                "features; lower the degree, or use FourierFeatures or NystromAWV"
            )
        return r

    def _names_out(self, columns: list[str]) -> list[str]:
        """Return the monomials, written as in scikit-learn's PolynomialFeatures."""
        names = []
        for k in range(int(self.degree) + 1):
            for each in combinations_with_replacement(range(len(columns)), k):
                powers = [(columns[v], each.count(v)) for v in dict.fromkeys(each)]
                parts = (name if c == 1 else f"{name}^{c}" for name, c in powers)
                names.append(" ".join(parts) or "1")
        return names

    def _writer(self, d: int) -> tuple[Writer, int]:
        r = self.size(d)
        center = np.zeros(d) if self.center is None else as_point(self.center, name="center")[0]
        if len(center) != d:
            raise ValueError(f"center has {len(center)} entries, but X has {d} columns; give {d}")
        parent, variable, ratio = _monomials(d, int(self.degree))
        sigma = float(self.sigma)
        ratio = ratio / sigma
        shifted = np.empty(d)
        rate = 0.5 / sigma**2

        def write(X: np.ndarray, out: np.ndarray) -> None:
            taylor_block(X, center, rate, parent, variable, ratio, shifted, out)

        return write, r

    @np.errstate(under="ignore")
    def advice(self, X: np.ndarray) -> str | None:
        """Return what to change if the basis captures little of the kernel, else None."""
        self._checked_params()
        share = float((self._write_rows(X[: self.HEAD]) ** 2).sum(axis=1).mean())
        if share >= self.LOW_SHARE:
            return None
        return (
            f"the Taylor basis captures only {share:.2g} of the kernel on the first inputs, so "
            "forecasts are close to 0; centre the basis, "
            "TaylorFeatures(center=X[:500].mean(axis=0)), scale the inputs to a smaller range, or "
            "raise sigma or degree"
        )


@lru_cache(maxsize=16)
def _monomials(d: int, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each monomial its parent, the coordinate that multiplies it, and the ratio.

    A monomial is a sorted list of coordinates; its parent lacks the last one, v. If v occurs c
    times, the weight 1 / sqrt(k!) is that of the parent times 1 / sqrt(c).
    """
    parent, variable, ratio = [0], [0], [1.0]
    places: dict[tuple[int, ...], int] = {(): 0}  # of the monomials one degree lower
    for k in range(1, degree + 1):
        first, level = len(parent), list(combinations_with_replacement(range(d), k))
        for each in level:
            parent.append(places[each[:-1]])
            variable.append(each[-1])
            ratio.append(1.0 / sqrt(each.count(each[-1])))
        places = {each: first + i for i, each in enumerate(level)}
    return np.array(parent), np.array(variable), np.array(ratio)


class FourierFeatures(Features):
    """Random Fourier features of the Gaussian kernel (Rahimi and Recht 2007; FOGD, Lu et al. 2016).

    z(x) = n^{-1/2} (sin u_1.x, ..., sin u_n.x, cos u_1.x, ..., cos u_n.x) with u_j ~ N(0, I /
    sigma^2), so that z(x).z(x) = 1 and E z(x).z(x') is the Gaussian kernel.

    Parameters
    ----------
    n_frequencies : int >= 1
        There are twice as many features.
    sigma : float > 0
        Width of the Gaussian kernel.
    seed : int
        The same seed and width d give the same features.

    Remarks
    -------
    The span is not a subspace of the RKHS. ``captured`` is always 1, so it says nothing about the
    approximation; its error is about 1 / sqrt(n_frequencies).

    Examples
    --------
    >>> z = okl.FourierFeatures(n_frequencies=50, sigma=2.0, seed=1).transform([[0.5, -1.0]])
    >>> z.shape, float((z @ z.T)[0, 0].round(12))
    ((1, 100), 1.0)
    """

    _kind = "Fourier features of sigma = {sigma:g}"

    n_frequencies: int = count(400, least=1)
    _: KW_ONLY
    sigma: float = width(1.0)
    seed: int = random_seed(0)

    def size(self, d: int) -> int:
        """Return 2 n_frequencies."""
        require_count("d", d, 1)
        return 2 * self.n_frequencies

    def advice(self, X: np.ndarray) -> str | None:
        """Return the advice of the Gaussian kernel about the first inputs."""
        return Gaussian(self.sigma).advice(X)

    def _frequencies(self, d: int) -> tuple[np.ndarray, float]:
        """Return the frequencies, (d, n_frequencies), and the scale of the features."""
        n = self.size(d) // 2
        rng = np.random.default_rng(self.seed)
        normal = rng.standard_normal((n, d)).T
        return np.divide(normal, float(self.sigma), out=aligned_zeros(d, n)), 1.0 / sqrt(n)

    def _names_out(self, columns: list[str]) -> list[str]:
        n = self.size(len(columns)) // 2
        return [f"fourier_{wave}{j}" for wave in ("sin", "cos") for j in range(n)]

    def _writer(self, d: int) -> tuple[Writer, int]:
        return self._writer_of(*self._frequencies(d))

    def _writer_of(self, frequencies: np.ndarray, scale: float):
        def write(X: np.ndarray, out: np.ndarray) -> None:
            fourier_block(X, frequencies, scale, out)

        return write, 2 * frequencies.shape[1]


def leading_eigenvectors(
    matrix: np.ndarray, rank: int | None, null: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues above ``null`` times the largest, falling, and vectors."""
    values, vectors = scipy.linalg.eigh(matrix)
    order = np.argsort(values)[::-1][:rank]
    order = order[values[order] > null * max(values[order[0]], 0.0)]
    return values[order], vectors[:, order]


def _invert_root(Q: np.ndarray, rank: int | None = None) -> np.ndarray:
    """Return V Lambda^{-1/2} of the leading directions of Q = V Lambda V' that are not null."""
    values, vectors = leading_eigenvectors(Q, rank, NULL)
    return np.ascontiguousarray(vectors / np.sqrt(values))


def _check_landmarks(name: str, value: Any) -> np.ndarray:
    points = not isinstance(value, Kernel)
    require(points, name, value, "points, (m, d): okl.NystromFeatures(landmarks, kernel)")
    return np.array(as_inputs(value, name=name), order="C")


class NystromFeatures(Features):
    """Nystrom features: coordinates in the span of the kernel at given landmarks.

    z(x) = Lambda^{-1/2} V' k_m(x) with K_mm = V Lambda V', without null directions. So z(x).z(x')
    is the inner product of the projections of k(x, .) and k(x', .) on the span.

    Parameters
    ----------
    landmarks : array_like of shape (m, d)
    kernel : Kernel
    rank : int >= 1, optional
        Keep only the ``rank`` leading directions (None: all that are not null).

    Remarks
    -------
    A direction is null if its eigenvalue is at most 1e-12 times the largest, which is rounding.

    Examples
    --------
    >>> features = okl.NystromFeatures([[0.0], [1.0]], okl.Gaussian(1.0))
    >>> features.captured([[0.0], [0.5], [9.0]]).round(3)
    array([1.  , 0.97, 0.  ])
    """

    landmarks: ArrayLike = required(_check_landmarks)
    kernel: Kernel = required(check_kernel)
    _: KW_ONLY
    rank: int | None = count(None, least=1)

    def _as_points(self, X: ArrayLike) -> Any:
        rows = as_rows(X)
        self.kernel._check_points(rows)
        return rows

    def _writer(self, d: int) -> tuple[Writer, int]:
        landmarks = np.ascontiguousarray(as_inputs(self.landmarks, name="landmarks"))
        if landmarks.shape[1] != d:
            raise ValueError(
                f"X has {d} columns, but the landmarks have {landmarks.shape[1]}; pass points of "
                "one width"
            )
        weights = _invert_root(self.kernel(landmarks), self.rank)
        if weights.shape[1] == 0:
            raise ValueError("the kernel is zero at all landmarks; choose others")
        write_block, scales = self.kernel._write_block, self.kernel._scales
        atoms = np.ascontiguousarray(scale_columns(landmarks, scales).T)
        m, r = weights.shape
        rows = np.empty((PASS, m))

        def write(X: np.ndarray, out: np.ndarray) -> None:
            for start in range(0, len(X), PASS):
                part = scale_columns(X[start : start + PASS], scales)
                write_block(part, atoms, m, rows)
                out[start : start + PASS, :r] = rows[: len(part)] @ weights

        return write, r

    @property
    def kind(self) -> str:
        """What kind of features they are, in a few words."""
        return f"Nystrom features of {np.shape(self.landmarks)[0]} landmarks"

    def advice(self, X: np.ndarray) -> str | None:
        """Return the advice of the kernel about the first inputs."""
        return check_kernel("kernel", self.kernel).advice(X)

    def captured(self, X: ArrayLike) -> np.ndarray:
        """Return |z(x)|^2 / k(x, x) of each row, in [0, 1], shape (n,)."""
        total = self.kernel.diag(X)
        share = (np.asarray(self.transform(X)) ** 2).sum(axis=1) / np.where(total > 0.0, total, 1.0)
        return np.clip(np.where(total > 0.0, share, 1.0), 0.0, 1.0)


def _check_basis(name: str, value: Any) -> Any:
    require(callable(value), name, value, "a function of X, (n, d), that returns (n, r) numbers")
    return value


def _check_gram(name: str, value: Any) -> Any:
    if callable(value):  # its matrix is checked with the first inputs, which have d
        return value
    Q, domain = as_inputs(value, name=name), "a Gram matrix, (r, r), positive semi-definite"
    symmetric = Q.shape[0] == Q.shape[1] and np.allclose(Q, Q.T, 0.0, 1e-9 * np.abs(Q).max())
    values = scipy.linalg.eigvalsh(Q) if symmetric else np.array([-1.0])
    require(values[0] >= -1e-9 * values[-1] < 0.0, name, value, domain)
    return Q


class BasisFeatures(Features):
    """Features of any basis g_1, ..., g_r of an RKHS: z(x) = Q^{-1/2} g(x) (pkawv eq. 37).

    Q_ij = <g_i, g_j> makes their coordinates orthonormal, so that |w|^2 is |f|^2 for f = w.z.

    Parameters
    ----------
    basis : callable
        Takes inputs (n, d) and returns g_1, ..., g_r of each row, (n, r).
    gram : array_like of shape (r, r), or callable
        Q, or a function of the width d that returns it.

    Remarks
    -------
    For PKAWV on any basis chosen before the stream, pkawv Theorem 3 holds with mu = |(I - P)
    C_n^{1/2}|^2 (``theory.pkawv_bound``). Theorem 4 is about monomials (TaylorFeatures), Corollary
    8 about g_j = k(x_j, .) at atoms that KORS keeps of all inputs (``PKAWV.known_inputs``),
    Corollary 7 about a span that grows with the stream (NystromAWV).

    Here z = Lambda^{-1/2} V' g with Q = V Lambda V', without null directions. This is a rotation of
    Q^{-1/2} g, so the forecasts are equal. Functions cannot be saved.

    Examples
    --------
    >>> features = okl.BasisFeatures(lambda X: np.hstack([X, 3 * X]), [[1.0, 3.0], [3.0, 9.0]])
    >>> features.transform([[2.0]])  # the two are one direction, g(x) = x
    array([[2.]])
    """

    basis: Callable = required(_check_basis)
    gram: ArrayLike | Callable = required(_check_gram)

    def _writer(self, d: int) -> tuple[Writer, int]:
        gram = self.gram(d) if callable(self.gram) else self.gram
        weights = _invert_root(_check_gram("gram", gram))

        def write(X: np.ndarray, out: np.ndarray) -> None:
            rows = as_inputs(self.basis(X.copy()), name="basis(X)")  # it may write into X
            shape = len(X), len(weights)
            if rows.shape != shape:
                raise ValueError(f"basis(X) has shape {rows.shape}, but gram asks for {shape}")
            out[:, : weights.shape[1]] = rows @ weights

        return write, weights.shape[1]


def check_features(name: str, features: Any) -> Features:
    """Return a feature map; ValueError for anything else, or hyper-parameters out of range."""
    domain = (
        "an oklnumba feature map such as okl.TaylorFeatures(degree=2) (with a kernel take "
        "NystromAWV or KernelAWV)"
    )
    require(isinstance(features, Features), name, features, domain)
    features._checked_params()
    return features


@dataclass
class FeatureRows:
    """The features of the last block of inputs."""

    write: Writer  # write(X, Z) writes the features of X into Z
    rows: np.ndarray  # (most rows of a block, r), zero beyond the features
    shared: bool = False  # whether who plays the learner writes them, before each block

    def of(self, X: np.ndarray, written: bool = False) -> np.ndarray:
        """Return the features of a block, a view; ``written``: the last call was with this X."""
        if len(X) > len(self.rows):  # loops do not look
            raise IndexError(f"a block of {len(X)} rows; there is room for {len(self.rows)}")
        Z = self.rows[: len(X)]
        if not (written or self.shared):
            self.write(X, Z)
        return Z
