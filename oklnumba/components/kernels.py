"""RKHS kernels: hyper-parameters and a code; the loops are in hot/primitives/rows.py."""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core.checks import number, require
from oklnumba.core.inputs import as_inputs, as_rows, cut_blocks, make_dense
from oklnumba.core.params import (
    Params,
    count,
    field_with,
    find_parts,
    nonnegative,
    positive,
    required,
    width,
)
from oklnumba.hot.primitives import rows as loops
from oklnumba.hot.primitives.elementary import FAR

ROWS, COLUMNS = 128, 512  # of a block of a kernel matrix, which stays in the cache
FEWEST_INPUTS = 32  # needed to judge a width
FAR_APART, ALIKE = 1e-24, 1.0 - 1e-12  # values of radial kernels: ten widths away, rounding of 1
SYMMETRIC = 1e-9  # of the largest entry, by which a kernel's matrix may differ from its transpose
HIDES_LAM = 1e15  # if k(x, x) is larger, adding lam = 1 changes nothing in double precision
SMOOTHNESS = {0.5: loops.LAPLACIAN, 1.5: loops.MATERN_3_2, 2.5: loops.MATERN_5_2}  # code by nu


class Kernel(Params):
    """A kernel k(x, z): call it for a matrix of values, ``diag`` for k(x, x).

    A kernel of your own is a subclass whose ``evaluate(X, Z)`` returns k(X[i], Z[j]), (n, m). It
    works in KernelAWV, KernelRidge and ``NystromFeatures``, so in all learners on features. Other
    loops are compiled for the kernels of oklnumba (docs/your_own_kernel.md).
    """

    @property
    def _scales(self) -> np.ndarray | None:
        """Scales of the inputs, in a Metric."""
        return None

    def _check_points(self, X: Any) -> None:
        """Raise ValueError for rows that the kernel does not have, (n, d), maybe sparse."""

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> np.ndarray:
        """Return the kernel matrix k(X[i], Z[j]), (n, m), of dense or sparse rows.

        Z is X itself if None; the matrix is then exactly symmetric.

        Examples
        --------
        >>> okl.Gaussian(sigma=1.0)([[0.0], [1.0]], [[0.0]]).round(4)
        array([[1.    ],
               [0.6065]])
        """
        check_kernel("kernel", self)
        X = as_rows(X)
        Z = X if Z is None else as_rows(Z, name="Z")
        self._check_points(X)
        self._check_points(Z)
        if Z.shape[1] != X.shape[1]:
            raise ValueError(
                f"Z has {Z.shape[1]} columns, but X has {X.shape[1]}; pass points of one width"
            )
        n, m = X.shape[0], Z.shape[0]
        out = np.empty((n, m))
        for columns, z in cut_blocks(Z, COLUMNS, self._scales):
            atoms = np.array(z.T, order="C")
            for rows, x in cut_blocks(X, ROWS, self._scales):
                part = np.empty((len(x), len(z)))
                self._write_block(x, atoms, len(z), part)
                out[rows, columns] = part
        return out

    def diag(self, X: ArrayLike) -> np.ndarray:
        """Return k(X[i], X[i]) for X of shape (n, d), as an array of shape (n,)."""
        check_kernel("kernel", self)
        X = as_rows(X)
        self._check_points(X)
        out = np.empty(X.shape[0])
        for rows, x in cut_blocks(X, COLUMNS, self._scales):
            self._write_diagonal(x, out[rows])
        return out

    def evaluate(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return k(X[i], Z[j]), (n, m), of rows (n, d) and (m, d); a subclass has this method."""
        raise ValueError(f"{type(self).__name__} needs a method evaluate(X, Z)")

    def _write_block(self, X: np.ndarray, atoms: np.ndarray, m: int, out: np.ndarray) -> None:
        """Write k(x_i, atom_j), (n, m). X : (n, d); atoms : (d, cap)."""
        call = f"{type(self).__name__}.evaluate(X, Z)"
        try:
            points = X.copy(), atoms[:, :m].T.copy("K")  # it may write into them
            values = np.asarray(self.evaluate(*points), dtype=np.float64)
        except (ValueError, TypeError, IndexError) as error:
            how = "X (n, d) and Z (m, d) are many points, not two"
            raise ValueError(f"{call} failed: {error}; {how}") from error
        good = values.shape == (len(X), m) and bool(np.isfinite(values).all())
        what = f"finite numbers of shape {(len(X), m)}, k(X[i], Z[j]) for all rows"
        require(good, call, values, what)
        out[: len(X), :m] = values

    def _write_diagonal(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write k(x_i, x_i), (n,). X : (n, d)."""
        for i, x in enumerate(X):
            self._write_block(x[None], x[:, None], 1, out[i : i + 1, None])

    def _code(self) -> tuple[int, np.ndarray]:
        """Return the kernel's code and numbers for the hot loops."""
        raise ValueError(
            f"{self!r} is a kernel of your own, which compiled loops cannot call; use KernelAWV, "
            "KernelRidge, okl.NystromFeatures(landmarks, kernel) in PKAWV or WithFeatures, or "
            "okl.Precomputed(kernel.evaluate(X, X))"
        )

    def advice(self, X: np.ndarray) -> str | None:
        """Return what to change if the kernel does not suit the first inputs X, else None."""
        X = as_rows(X)
        largest = float(self.diag(X).max())
        if X.shape[0] < FEWEST_INPUTS or not largest > HIDES_LAM:
            return None
        return (
            f"the kernel's k(x, x) is up to {largest:.2g} on the first inputs, so large that "
            "lam = 1 is lost in rounding; scale the inputs, okl.datasets.scale_to(X)"
        )


class Compiled(Kernel):
    """A kernel of the hot loops."""

    def _write_block(self, X: np.ndarray, atoms: np.ndarray, m: int, out: np.ndarray) -> None:
        loops.kernel_block(self._code(), X, atoms, m, out)

    def _write_diagonal(self, X: np.ndarray, out: np.ndarray) -> None:
        loops.kernel_diags(self._code(), X, out)


class _Radial(Compiled):
    """A function of |x - z| / sigma that falls from 1 to 0."""

    norm = 2

    def _evaluate(self, distances: np.ndarray) -> np.ndarray:
        """Return k at these distances by NumPy, which compiles nothing."""
        code, numbers = self._code()
        powers = distances**2 if code == loops.GAUSSIAN else distances
        s = np.minimum(numbers[loops.RATE] * powers, FAR)
        factor = {loops.MATERN_3_2: 1.0 + s, loops.MATERN_5_2: 1.0 + s + s * s / 3.0}.get(code, 1.0)
        return factor * np.exp(-s)

    @np.errstate(over="ignore", under="ignore")
    def advice(self, X: np.ndarray) -> str | None:
        """Return what to change if k is 0 or 1 between nearly all first inputs X, else None."""
        sigma = self._checked_params().sigma
        X = make_dense(as_rows(X))
        if len(X) < FEWEST_INPUTS:
            return None
        distances, apart = np.zeros((len(X), len(X))), np.empty(X.shape)
        for i in range(1, len(X)):  # each pair once
            D = np.subtract(X[:i], X[i], out=apart[:i])
            sums = np.abs(D).sum(axis=1) if self.norm == 1 else np.einsum("ij,ij->i", D, D)
            distances[i, :i] = sums ** (1.0 / self.norm)
        distances = np.maximum(distances, distances.T)
        different = distances > 0.0
        if not different.any():
            return None
        K = self._evaluate(distances)
        alike = K[different].min() > ALIKE
        np.fill_diagonal(K, 0.0)
        isolated = (K.max(axis=1) < FAR_APART).mean() >= 0.9  # they have no neighbour
        if not (alike or isolated):
            return None
        value = "1 between all" if alike else "0 between nearly all"
        median = float(np.median(distances[different]))
        cure = "scale the inputs, okl.datasets.scale_to(X)"
        if 1e-100 <= median <= 1e100:  # what a width may be
            cure = f"take sigma about {median:.2g}, or {cure}"
        return (
            f"the kernel is {value} of the first inputs, up to rounding, so nothing can be learnt: "
            f"sigma is {sigma:.3g}, their median distance {median:.3g}; {cure}"
        )


class Gaussian(_Radial):
    """Gaussian kernel exp(-|x - z|^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma : float > 0
        Width, in the unit of the inputs.

    Examples
    --------
    >>> float(okl.Gaussian(sigma=2.0)([[0.0, 0.0]], [[2.0, 0.0]])[0, 0].round(6))
    0.606531
    """

    sigma: float = width(1.0)

    def _code(self) -> tuple[int, np.ndarray]:
        return loops.GAUSSIAN, np.array([0.5 / float(self.sigma) ** 2, 0.0, 0.0])


def _check_norm(name: str, value: Any) -> int:
    require(number(value) and value in (1, 2), name, value, "1 or 2")
    return int(value)


class Laplacian(_Radial):
    """Laplacian kernel exp(-|x - z| / sigma).

    Parameters
    ----------
    sigma : float > 0
        Width, in the unit of the inputs.
    norm : {1, 2}
        Of the distance |x - z|: 2 is Euclidean; 1 is the sum of the distances in each input, as in
        ``laplacian_kernel`` of scikit-learn. On tables 1 is often better: like trees, it looks at
        inputs one by one.

    Examples
    --------
    >>> float(okl.Laplacian(sigma=1.0)([[0.0]], [[2.0]])[0, 0].round(6))
    0.135335
    """

    sigma: float = width(1.0)
    _: KW_ONLY
    norm: int = field_with(_check_norm, 2)

    def _code(self) -> tuple[int, np.ndarray]:
        code = loops.LAPLACIAN if self.norm == 2 else loops.LAPLACIAN_L1
        return code, np.array([1.0 / float(self.sigma), 0.0, 0.0])


def _check_smoothness(name: str, value: Any) -> float:
    require(number(value) and value in SMOOTHNESS, name, value, "0.5, 1.5 or 2.5")
    return float(value)


class Matern(_Radial):
    """Matern kernel of smoothness nu = 1/2, 3/2 or 5/2, with s = sqrt(2 nu) |x - z| / sigma.

    It is exp(-s), (1 + s) exp(-s) and (1 + s + s^2/3) exp(-s), in this order.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}
        Functions in the space have about nu derivatives. Other values need a Bessel function.
    sigma : float > 0
        Width, in the unit of the inputs.

    Examples
    --------
    >>> float(okl.Matern(nu=1.5, sigma=1.0)([[0.0]], [[1.0]])[0, 0].round(6))
    0.483358
    """

    nu: float = field_with(_check_smoothness, 1.5)
    _: KW_ONLY
    sigma: float = width(1.0)

    def _code(self) -> tuple[int, np.ndarray]:
        nu = float(self.nu)
        return SMOOTHNESS[nu], np.array([np.sqrt(2.0 * nu) / float(self.sigma), 0.0, 0.0])


class Polynomial(Compiled):
    """Polynomial kernel (scale x.z + coef0)^degree.

    Parameters
    ----------
    degree : int >= 1
    scale : float > 0
    coef0 : float >= 0
        Negative values would not give a positive kernel.

    Examples
    --------
    >>> float(okl.Polynomial(degree=2)([[1.0]], [[3.0]])[0, 0])
    16.0
    """

    degree: int = count(2, least=1)
    _: KW_ONLY
    scale: float = positive(1.0)
    coef0: float = nonnegative(1.0)

    def _code(self) -> tuple[int, np.ndarray]:
        return loops.POLYNOMIAL, np.array([self.scale, self.coef0, self.degree], dtype=float)


class Linear(Compiled):
    """Linear kernel x.z.

    Examples
    --------
    >>> float(okl.Linear()([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])
    11.0
    """

    def _code(self) -> tuple[int, np.ndarray]:
        return loops.LINEAR, np.zeros(3)


def _check_matrix(name: str, value: Any) -> np.ndarray:
    K = as_inputs(value, name=name)
    require(K.shape[0] == K.shape[1], name, value, "a square matrix of kernel values, (n, n)")
    apart = np.abs(K - K.T).max()
    require(apart <= SYMMETRIC * np.abs(K).max(), name, value, f"symmetric; K - K' is {apart:.3g}")
    require(K.diagonal().min() >= 0.0, name, value, "without negative entries on its diagonal")
    return K


class Precomputed(Compiled):
    """A kernel by its matrix: points are indices, k(i, j) = K[i, j].

    For strings, graphs and other objects that are not vectors. Every learner on kernels takes it; X
    has one column, the row of each point in K.

    Parameters
    ----------
    K : array_like of shape (n, n)
        Symmetric and positive semidefinite. It is stored with a saved learner.

    Examples
    --------
    >>> words = ["spam", "spare", "spade", "online", "kernel"]
    >>> letters = [set(word) for word in words]
    >>> K = np.array([[len(a & b) for b in letters] for a in letters], dtype=float)
    >>> learner = okl.KernelAWV(okl.Precomputed(K)).partial_fit([[0], [3], [4]], [1.0, -1.0, -1.0])
    >>> learner.predict([[1], [2]]).round(2)
    array([0.08, 0.09])
    """

    K: ArrayLike = required(_check_matrix)

    def _code(self) -> tuple[int, np.ndarray]:
        K = np.asarray(self.K, dtype=np.float64)
        return loops.MATRIX, np.concatenate([[float(len(K))], K.ravel()])

    def _check_points(self, X: Any) -> None:
        n, values = np.shape(self.K)[0], X.data if hasattr(X, "tocsr") else X
        good = (values >= 0) & (values < n) & (values == np.floor(values))
        if X.shape[1] != 1 or not good.all():
            columns = X.shape[1]
            wrong = f"{columns} columns" if columns != 1 else f"{values[~good].flat[0]:g}"
            raise ValueError(
                f"X has {wrong}; with okl.Precomputed(K) X has one column, a row of K for each "
                f"point: integers from 0 to {n - 1}"
            )

    def advice(self, X: np.ndarray) -> str | None:
        """Return None: there is no width to judge."""
        return None


def refuse_precomputed(value: Any, who: str) -> None:
    """Raise ValueError if a value has a kernel on indices: ``who`` changes the inputs."""
    if find_parts(Precomputed, value):
        fault = f"{who} changes inputs, which for okl.Precomputed(K) are the rows of points in K"
        raise ValueError(f"{fault}; leave {who} out")


def check_kernel(name: str, kernel: Any) -> Kernel:
    """Return a kernel; ValueError for anything else, or hyper-parameters out of range."""
    domain = "an oklnumba kernel such as okl.Gaussian(sigma=1.0), or of a class from okl.Kernel"
    require(isinstance(kernel, Kernel), name, kernel, domain)
    kernel._checked_params()
    return kernel


def kernel_code(kernel: Any) -> tuple[int, np.ndarray]:
    """Return a kernel's code and numbers for the hot loops; ValueError for anything else."""
    return check_kernel("kernel", kernel)._code()


def compute_gradients(kernel: Kernel, X: np.ndarray, Z: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the gradients of sum_j A_jk k(x, Z[j]) at the rows of X, (K, n, d)."""
    code, numbers = kernel_code(kernel)
    rate = numbers[loops.RATE]
    require(code != loops.MATRIX, "kernel", kernel, "a function of vectors, which has gradients")
    if code in (loops.LINEAR, loops.POLYNOMIAL):  # slopes dk / d(x.z)
        scale, coef0, degree = numbers if code == loops.POLYNOMIAL else (1.0, 0.0, 1.0)
        slopes = degree * scale * (scale * (X @ Z.T) + coef0) ** (degree - 1.0)
        return np.array([(slopes * a) @ Z for a in A.T])
    if code == loops.LAPLACIAN_L1:  # slopes -dk / d|x_i - z_i|; at the kink, 0
        slopes, out = kernel(X, Z), np.empty((A.shape[1], *X.shape))
        slopes *= -rate
        for a, gradients in zip(A.T, out, strict=True):
            loops.sign_sums(X, np.ascontiguousarray(Z.T), slopes * a, gradients)
        return out
    factor, falling = {  # slopes -(dk / dr) / r
        loops.GAUSSIAN: (2.0 * rate, kernel),
        loops.LAPLACIAN: (rate**2, kernel),  # over s; at the kink, s = 0, 0
        loops.MATERN_3_2: (rate**2, Laplacian(1.0 / rate)),
        loops.MATERN_5_2: (rate**2 / 3.0, Matern(1.5, sigma=np.sqrt(3.0) / rate)),
    }[code]
    K = falling(X, Z)
    if code == loops.LAPLACIAN:
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            K = np.where(K < 1.0, K / -np.log(K), 0.0)
    K *= factor
    middle = Z.mean(axis=0)  # near the origin no digits are lost
    weights = (K * a for a in A.T)
    return np.array([W @ (Z - middle) - W.sum(axis=1)[:, None] * (X - middle) for W in weights])
