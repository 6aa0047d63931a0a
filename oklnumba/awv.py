"""Online ridge regression and the Azoury-Warmuth-Vovk forecaster, on all of an RKHS or a subspace.

After Jezequel, Gaillard and Rudi 2019, "Efficient online learning with kernels for adversarial
large scale problems" (pkawv below).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from oklnumba import factor, hotloops
from oklnumba.checks import require, require_count, require_positive
from oklnumba.features import Features, NystromFeatures, TaylorFeatures, check_features
from oklnumba.kernels import Kernel, kernel_code
from oklnumba.kons import KORS, check_kors
from oklnumba.learner import Coins, Learner, Trace, aligned_zeros, grown, padded

RAISE_LAM = "raise lam, or scale the inputs and labels"


class _Ridge(Learner):
    """What AWV and ridge learners share: running totals of the certificate."""

    _certified = True
    _ridge = 0.0  # 1.0 for ridge forecasts

    def _certify(
        self, y: np.ndarray, shrinks: np.ndarray, growth: np.ndarray, trace: Trace
    ) -> None:
        hotloops.certify(
            y, trace.predictions, shrinks, growth, self._totals,
            trace.loss, trace.comparator, trace.bound,
        )  # fmt: skip

    def _start_totals(self) -> None:
        self._totals = np.array([0.0, 0.0, 0.0, 0.0, 0.0, self._ridge])

    def _check_forecaster(self) -> None:
        valid = self.forecaster in ("awv", "ridge")
        require(valid, "forecaster", self.forecaster, "'awv' or 'ridge'")
        self._ridge = float(self.forecaster == "ridge")


class KernelAWV(_Ridge):
    """Exact Kernel-AWV (pkawv section 2, eq. 3).

    f_t = argmin_f sum_{s<t} (y_s - f(x_s))^2 + lam |f|^2 + f(x_t)^2 over the whole RKHS, forecast
    f_t(x_t). Its regret against every f is at most lam |f|^2 + B^2 log det(I + K / lam)
    (Proposition 1), without knowing a bound B on the labels beforehand.

    One row of a Cholesky factor a round: O(t^2) time, and 4 t^2 bytes in all after t rounds (8 t^2
    of address space). Whole runs go at the speed of BLAS-3.

    Parameters
    ----------
    kernel : Kernel
    lam : float > 0
        Regularisation.

    Remarks
    -------
    As published. With m the ridge forecast and s = lam + k(x,x) - k'(K + lam I)^-1 k, the forecast
    is m lam / s.

    Examples
    --------
    >>> import oklnumba as okl
    >>> learner = okl.KernelAWV(okl.Gaussian(sigma=1.0), lam=1.0)
    >>> _ = learner.partial_fit([[0.0], [1.0]], [1.0, -1.0])
    >>> round(learner.predict_one([0.0]), 6)
    0.194822
    """

    _run_rows = 1024

    def __init__(self, kernel: Kernel, lam: float = 1.0):
        self.kernel = kernel
        self.lam = lam

    @property
    def size(self) -> int:
        """Atoms in the dictionary: all inputs so far."""
        return self._played

    def _start(self, d: int) -> None:
        require_positive("lam", self.lam)
        self._lam = float(self.lam)
        self._code, self._par = kernel_code(self.kernel)
        self._L = np.empty((0, 0))
        self._u = np.empty(0)
        self._past = np.empty((d, 0))
        self._start_totals()

    def _reserve(self, rows: int) -> None:
        """Make room for ``rows`` rounds. Pages of L that no row reaches are never touched."""
        old = len(self._u)
        if rows <= old:
            return
        capacity = factor.capacity(rows, old)
        self._L = factor.grown(self._L, self._played, capacity, "use PKAWV or NystromAWV")
        self._u = grown(self._u, capacity)
        self._past = grown(self._past, self._past.shape[0], capacity)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._reserve(self._played + len(X))
        for start in range(0, len(X), factor.BLOCK):
            stop = min(start + factor.BLOCK, len(X))
            with factor.threads(self._played, stop - start):
                self._play_block(X[start:stop], y[start:stop], trace.rows(start, stop))

    def _play_block(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        t, b = self._played, len(X)
        self._past[:, t : t + b] = X.T
        hotloops.kernel_awv_rows(self._code, self._par, X, self._past, t, self._lam, self._L)
        if b == 1:
            status = 0 if hotloops.cholesky_row(self._L, t) > 0.0 else 1
        else:
            columns = factor.solve_rows(self._L, self._L[t : t + b, :t], t)
            # Above the diagonal the buffer is not written.
            corner = np.asfortranarray(np.tril(self._L[t : t + b, t : t + b]))
            if t:
                corner = scipy.linalg.blas.dsyrk(
                    -1.0, columns.T, beta=1.0, c=corner, lower=1, overwrite_c=1
                )
            corner, status = scipy.linalg.lapack.dpotrf(corner, lower=1, overwrite_a=1)
            self._L[t : t + b, t : t + b] = corner
        if status:
            self._check(hotloops.NOT_POSITIVE, status - 1, RAISE_LAM)
        shrinks = np.empty(b)
        hotloops.kernel_awv_labels(
            self._L, self._u, y, t, self._lam, self._ridge, trace.predictions, shrinks
        )
        finite = np.isfinite(trace.predictions) & np.isfinite(shrinks)
        if not finite.all():
            self._check(hotloops.NOT_FINITE, int(np.argmin(finite)), RAISE_LAM)
        trace.sizes[:] = np.arange(t + 1, t + b + 1)
        self._certify(y, shrinks, np.zeros(b), trace)
        self._played = t + b

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        t = self._played
        forecasts = np.empty(len(X))
        for start in range(0, len(X), factor.BLOCK):
            part = X[start : start + factor.BLOCK]
            rows = np.empty((len(part), t))
            hotloops.kernel_block(self._code, self._par, part, self._past, t, rows)
            with factor.threads(t, len(part)):
                factor.solve_rows(self._L, rows, t)
            corners = np.empty(len(part))
            hotloops.kernel_diags(self._code, self._par, part, corners)
            hotloops.kernel_awv_forecasts(
                rows, corners, self._L, self._u, t, self._lam, self._ridge,
                forecasts[start : start + factor.BLOCK],
            )  # fmt: skip
        return forecasts

    def _state(self) -> dict[str, Any]:
        t = self._played
        return {
            "lower": factor.packed(self._L, t), "u": self._u[:t], "past": self._past[:, :t],
            "totals": self._totals,
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        t = len(state["u"])
        self._reserve(t)
        factor.unpack(state["lower"], self._L, t)
        self._u[:t] = state["u"]
        self._past[:, :t] = state["past"]
        self._totals = state["totals"]


class KernelRidge(KernelAWV):
    """Online kernel ridge regression: f_t = argmin_f sum_{s<t} (y_s - f(x_s))^2 + lam |f|^2.

    The classical forecaster that Kernel-AWV is compared with (pkawv section 2); time and memory as
    there. No regret bound holds without a bound on its forecasts.

    Parameters
    ----------
    kernel : Kernel
    lam : float > 0
        Regularisation.

    Remarks
    -------
    As published.

    Examples
    --------
    >>> import oklnumba as okl
    >>> learner = okl.KernelRidge(okl.Gaussian(sigma=1.0), lam=1.0)
    >>> _ = learner.partial_fit([[0.0], [1.0]], [1.0, -1.0])
    >>> round(learner.predict_one([0.0]), 6)
    0.282367
    """

    _ridge = 1.0


class PKAWV(_Ridge):
    """PKAWV: the AWV forecaster on the span of fixed features (pkawv Algorithm 1, eq. 4).

    With Taylor features of degree M its regret is at most 1.5 times the bound of Kernel-AWV for M
    of order log(n / lam) (Theorem 4); with any projection, Theorem 3 adds (mu + lam) n mu B^2 /
    lam^2.

    O(r^2) time a round for r features, O(r^2) memory for any number of rounds. A run over arrays
    sweeps the factor once for several rounds and gives the same bits as one round at a time.

    Parameters
    ----------
    features : Features
        TaylorFeatures, FourierFeatures or NystromFeatures.
    lam : float > 0
        Regularisation.
    forecaster : {"awv", "ridge"}
        "ridge" leaves out the term f(x_t)^2: online ridge regression on the features.

    Remarks
    -------
    The inverse A^-1 of the listing is replaced by the factor U' D U of A: half the work, no drift,
    and small lam is safe. Errata 21: the forecast uses A_t, which includes x_t.

    Examples
    --------
    >>> import oklnumba as okl
    >>> learner = okl.PKAWV(okl.TaylorFeatures(degree=3, sigma=1.0), lam=1.0)
    >>> _ = learner.partial_fit([[0.0], [1.0]], [1.0, -1.0])
    >>> round(learner.predict_one([0.0]), 4)
    0.1933
    """

    _ROWS = 512  # rounds whose features are kept at a time
    LOW_SHARE = 0.1  # below this captured share of the kernel ``run`` warns
    HEAD = 500  # inputs looked at for that

    def __init__(self, features: Features, lam: float = 1.0, forecaster: str = "awv"):
        self.features = features
        self.lam = lam
        self.forecaster = forecaster

    @classmethod
    def known_inputs(
        cls,
        kernel: Kernel,
        X: ArrayLike,
        lam: float = 1.0,
        mu: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        forecaster: str = "awv",
        seed: int = 0,
    ) -> PKAWV:
        """Return PKAWV on a KORS dictionary of inputs known beforehand (Corollary 8).

        The inputs are used without their labels; then play the stream on the learner that is
        returned.

        Parameters
        ----------
        kernel : Kernel
        X : array_like of shape (n, d)
            All inputs of the stream to come.
        lam, mu, beta, eps, forecaster, seed
            As in PKAWV and KORS (alpha := mu).

        Examples
        --------
        >>> import numpy as np, oklnumba as okl
        >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> learner = okl.PKAWV.known_inputs(okl.Gaussian(1.0), X)
        >>> run = okl.run(learner, X, X[:, 0] * X[:, 1])
        >>> bool(run.sizes[0] == run.sizes[-1] < 60)
        True
        """
        sampler = KORS(kernel, alpha=mu, beta=beta, eps=eps, seed=seed).partial_fit(X)
        features = NystromFeatures(sampler.landmarks_, kernel)
        return cls(features, lam=lam, forecaster=forecaster)

    @property
    def size(self) -> int:
        """Number of features; 0 before any data."""
        return self._r if self._width is not None else 0

    def _start(self, d: int) -> None:
        require_positive("lam", self.lam)
        self._check_forecaster()
        self._write, self._r = check_features(self.features)._writer(d)
        r = padded(self._r)
        try:
            self._U = aligned_zeros(r, r)
        except MemoryError:
            raise MemoryError(
                f"PKAWV keeps a factor of {r} x {r} numbers, which does not fit in memory; "
                "take fewer features: a lower degree, a smaller rank"
            ) from None
        np.fill_diagonal(self._U, 1.0)
        self._inv_d = np.full(r, 1.0 / float(self.lam))
        self._c = np.zeros(r)
        self._work = aligned_zeros(2 * hotloops.TOGETHER + 1, r)
        self._Z = aligned_zeros(self._ROWS, r)
        self._start_totals()

    def _features_of(self, X: np.ndarray) -> np.ndarray:
        """Return the padded features of up to _ROWS inputs, in the learner's buffer."""
        Z = self._Z[: len(X)]
        self._write(X, Z)
        return Z

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        trace.sizes[:] = self._r
        for start in range(0, len(X), self._ROWS):
            stop = min(start + self._ROWS, len(X))
            part = trace.rows(start, stop)
            Z = self._features_of(X[start:stop])
            shrinks = np.empty(stop - start)
            played, status = hotloops.awv_rounds(
                Z, y[start:stop], self._U, self._inv_d, self._c, self._work, self._ridge,
                part.predictions, shrinks,
            )  # fmt: skip
            self._check(status, played, RAISE_LAM)
            self._certify(y[start:stop], shrinks, np.zeros(stop - start), part)
            self._played += stop - start

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        for start in range(0, len(X), self._ROWS):
            Z = self._features_of(X[start : start + self._ROWS])
            hotloops.awv_forecasts(
                Z, self._U, self._inv_d, self._c, self._work, self._ridge,
                forecasts[start : start + self._ROWS],
            )  # fmt: skip
        return forecasts

    def _advice(self, X: np.ndarray) -> str | None:
        if not isinstance(self.features, TaylorFeatures):
            return None
        share = float(self.features.captured(X[: self.HEAD]).mean())
        if share >= self.LOW_SHARE:
            return None
        return (
            f"the Taylor basis holds only {share:.2g} of the kernel on the first inputs, so the "
            "learner is close to forecasting 0: centre the basis, "
            "TaylorFeatures(center=X[:500].mean(axis=0)), or scale the inputs to a smaller range, "
            "or raise sigma or degree"
        )

    def _state(self) -> dict[str, Any]:
        return {"U": self._U, "inv_d": self._inv_d, "c": self._c, "totals": self._totals}

    def _restore(self, state: dict[str, Any]) -> None:
        self._U[:] = state["U"]
        self._inv_d, self._c, self._totals = state["inv_d"], state["c"], state["totals"]


class NystromAWV(_Ridge):
    """PKAWV on a growing Nystrom subspace, chosen by KORS (pkawv Algorithm 2, section 3.2).

    At round t KORS decides whether x_t joins the dictionary; the forecast is that of AWV on the
    span of the dictionary, x_t included if it joined, over all past rounds.

    O(m^2) time a round for m atoms, and O(t m) once for each new atom: the column over past rounds
    needs the past, 8 t (m + d) bytes for coordinates and inputs. ``max_size`` bounds it: once the
    dictionary has that size nothing of the past is kept, and memory and time stay flat.

    Parameters
    ----------
    kernel : Kernel
    lam : float > 0
        Regularisation of the regressor.
    mu : float > 0
        Regularisation (alpha) of KORS: the accuracy of the subspace. Theorem 6 wants mu <= lam.
    beta : float > 0
        Oversampling of KORS.
    eps : float in (0, 1)
        Accuracy of KORS.
    forecaster : {"awv", "ridge"}
    max_size : int >= 1, optional
        Largest dictionary.
    seed : int
        Of KORS's coins.

    Remarks
    -------
    Errata 16 to 20: weights 1/sqrt(p) on each side, mu apart from lam, labels (Y_{t-1}, 0), and x_t
    may enter before its own forecast. In place of cholup on K'K + lam K_mm we use coordinates in
    which K_mm is the identity, which are far better conditioned. An atom that lies in the span to
    rounding (NULL_DIRECTION in hotloops.py) counts in KORS and in ``size`` and adds no direction.
    The certificate is against the best function of the present space on each prefix; its bound adds
    what each growth of the space took off that function's loss.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> run = okl.run(okl.NystromAWV(okl.Gaussian(1.0), seed=0), X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), int(run.sizes[-1])
    (0.074, 38)
    """

    def __init__(
        self,
        kernel: Kernel,
        lam: float = 1.0,
        mu: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        forecaster: str = "awv",
        max_size: int | None = None,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.lam = lam
        self.mu = mu
        self.beta = beta
        self.eps = eps
        self.forecaster = forecaster
        self.max_size = max_size
        self.seed = seed

    @property
    def size(self) -> int:
        """Atoms in the dictionary."""
        return int(self._counts[1]) if self._width is not None else 0

    def _start(self, d: int) -> None:
        require_positive("lam", self.lam)
        check_kors(self.mu, "mu", self.beta, self.eps, self.seed)
        self._check_forecaster()
        if self.max_size is not None:
            require_count("max_size", self.max_size, 1)
        self._code, self._par = kernel_code(self.kernel)
        largest = np.inf if self.max_size is None else float(self.max_size)
        self._setting = tuple(
            float(v) for v in (self.lam, self.mu, self.beta, self.eps, largest, self._ridge)
        )
        self._coins = Coins(self.seed)
        self._counts = np.zeros(3, dtype=np.int64)  # rounds kept, dictionary size, rank of its span
        self._atoms = np.zeros((d, 0))
        self._weights = np.zeros(0)
        self._span = np.zeros(0, dtype=np.int64)
        self._C = self._R = self._U = np.zeros((0, 0))
        self._inv_d = self._c = np.zeros(0)
        self._past = np.zeros((d, 0))
        self._labels = np.zeros(0)
        self._Phi = np.zeros((0, 0))
        self._start_totals()
        self._reserve_atoms(32)
        self._reserve_rounds(256)

    def _reserve_atoms(self, size: int) -> None:
        """Make room for ``size`` atoms and one more, which a pure forecast may need."""
        old = len(self._weights)
        if size + 1 <= old:
            return
        cap = padded(max(size + 1, old * 3 // 2))
        self._atoms = grown(self._atoms, len(self._atoms), cap)
        self._weights = grown(self._weights, cap)
        self._span = grown(self._span, cap)
        self._C, self._R = grown(self._C, cap, cap), grown(self._R, cap, cap)
        self._U = grown(self._U, cap, cap)
        np.fill_diagonal(self._U[old:, old:], 1.0)
        self._inv_d = grown(self._inv_d, cap)
        self._inv_d[old:] = 1.0 / float(self.lam)
        self._c = grown(self._c, cap)
        self._Phi = grown(self._Phi, len(self._Phi), cap)
        self._work = aligned_zeros(8, cap)

    def _reserve_rounds(self, rounds: int) -> None:
        """Make room for the past of ``rounds`` rounds, while the dictionary may still grow."""
        if rounds <= len(self._labels):
            return
        cap = max(rounds, 2 * len(self._labels))
        self._past = grown(self._past, len(self._past), cap)
        self._labels = grown(self._labels, cap)
        self._Phi = grown(self._Phi, cap, self._Phi.shape[1])
        self._column = np.empty(cap)

    def _arrays(self) -> tuple:
        """Return the arguments of the compiled loops from ``code`` to ``column``."""
        return (
            self._code, self._par, self._setting, self._counts, self._atoms, self._weights, self._C,
            self._span, self._R, self._past, self._labels, self._Phi, self._U, self._inv_d, self._c,
            self._work, self._column,
        )  # fmt: skip

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        n = len(X)
        coins = self._coins.take(n)
        shrinks, growth = np.empty(n), np.zeros(n)
        first = 0
        while True:
            first, status = hotloops.nystrom_awv_rounds(
                X, y, coins, first, *self._arrays(), trace.predictions, trace.sizes, shrinks, growth
            )
            if status != hotloops.NEED_ROOM:
                break
            self._reserve_atoms(int(self._counts[1]) + 1)
            self._reserve_rounds(int(self._counts[0]) + 1)
        self._check(status, first, RAISE_LAM)
        if self.size == self.max_size and len(self._labels) > 1:
            self._drop_past()
        self._certify(y, shrinks, growth, trace)
        self._played += n

    def _drop_past(self) -> None:
        """Free what only a growing dictionary needs."""
        self._counts[0] = 0
        self._past = np.zeros((len(self._past), 1))
        self._labels = np.zeros(1)
        self._Phi = np.zeros((1, self._Phi.shape[1]))
        self._column = np.empty(1)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        self._reserve_atoms(int(self._counts[1]) + 1)
        forecasts = np.empty(len(X))
        hotloops.nystrom_awv_forecasts(X, self._coins.next, *self._arrays(), forecasts)
        return forecasts

    def _state(self) -> dict[str, Any]:
        t, m, rank = self._counts
        return {
            "counts": self._counts, "atoms": self._atoms[:, :m], "weights": self._weights[:m],
            "span": self._span[:rank], "C": self._C[:m, :m], "R": self._R[:rank, :rank],
            "U": self._U[:rank, :rank], "inv_d": self._inv_d[:rank], "c": self._c[:rank],
            "past": self._past[:, :t], "labels": self._labels[:t], "Phi": self._Phi[:t, :rank],
            "totals": self._totals, "coins": self._coins.state(),
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        t, m, rank = (int(v) for v in state["counts"])
        self._reserve_atoms(m)
        self._reserve_rounds(t)
        self._counts = state["counts"]
        self._atoms[:, :m], self._weights[:m] = state["atoms"], state["weights"]
        self._span[:rank] = state["span"]
        self._C[:m, :m], self._R[:rank, :rank] = state["C"], state["R"]
        self._U[:rank, :rank] = state["U"]
        self._inv_d[:rank], self._c[:rank] = state["inv_d"], state["c"]
        self._past[:, :t], self._labels[:t] = state["past"], state["labels"]
        self._Phi[:t, :rank] = state["Phi"]
        self._totals = state["totals"]
        self._coins.restore(state["coins"])
