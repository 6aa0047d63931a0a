"""Second-order kernel learning for curved losses: KORS, KONS, Sketched-KONS and Pros-N-KONS.

After Calandriello, Lazaric and Valko 2017, "Second-order kernel online convex optimization with
adaptive sketching" (kons below) and "Efficient second-order online kernel learning with adaptive
embedding" (Pros-N-KONS).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from oklnumba import factor, hotloops
from oklnumba.checks import (
    NO_CURVATURE,
    as_inputs,
    number,
    refuse_beyond,
    require,
    require_count,
    require_positive,
    require_width,
)
from oklnumba.features import NystromFeatures
from oklnumba.kernels import Kernel, kernel_code
from oklnumba.learner import Coins, Learner, Trace, aligned_zeros, grown, padded
from oklnumba.params import Params

# ---- streaming dictionaries ----


class _Sampler(Params):
    """A streaming dictionary: looks at points in order, keeps some, and never drops them.

    A subclass has ``_check()``, ``_start(d)`` where it has state of its own, and ``_play``.
    """

    _remedy = "scale the inputs"  # of points whose numbers are beyond double precision

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Look at the rows of X in order and keep some; return self.

        Parameters
        ----------
        X : array_like of shape (n, d)
        y : ignored
            So that it fits in pipelines.

        Raises
        ------
        ValueError
            If X is not valid or a hyper-parameter is outside its domain (nothing has changed then).
        FloatingPointError
            If the numbers of a point are beyond double precision; the message names it.
        """
        started = hasattr(self, "_seen")
        if started and self._broken:
            raise FloatingPointError(self._broken)
        X = np.array(as_inputs(X, len(self._atoms) if started else None), order="C")
        if not started:
            self._start(X.shape[1])
        played, kept = np.empty(len(X)), np.empty(len(X), dtype=np.int64)
        first, status = self._play(X, played, kept)
        new = np.flatnonzero(kept[:first])
        self.indices_ = np.concatenate([self.indices_, self._seen + new])
        self.probabilities_ = np.concatenate([self.probabilities_, played[new]])
        self._seen += first
        if status != hotloops.DONE:
            self._broken = (
                f"{type(self).__name__}, point {self._seen + 1}: its distance to the dictionary is "
                f"lost in double precision; {self._remedy}, and start with a new one"
            )
            raise FloatingPointError(self._broken)
        return self

    def _start(self, d: int) -> None:
        self._check()
        self._code, self._par = kernel_code(self.kernel)
        self._count = np.zeros(1, dtype=np.int64)
        self._atoms = np.zeros((d, 0))
        self._C = np.zeros((0, 0))  # upper Cholesky factor
        self._seen = 0
        self._broken = ""
        self.indices_ = np.zeros(0, dtype=np.int64)
        self.probabilities_ = np.zeros(0)

    def _check(self) -> None:
        """Refuse hyper-parameters out of range."""
        raise NotImplementedError

    def _play(self, X: np.ndarray, played: np.ndarray, kept: np.ndarray) -> tuple[int, int]:
        """Look at points; write their probabilities and whether they were kept.

        Return how many were looked at, and the status of the compiled loop.
        """
        raise NotImplementedError

    def _grow(self) -> None:
        """Double the room for atoms."""
        cap = max(32, 2 * len(self._C))
        self._atoms = grown(self._atoms, len(self._atoms), cap)
        self._C = grown(self._C, cap, cap)

    def set_params(self, **params: Any) -> Self:
        """Set hyper-parameters before any data; return self.

        Raises
        ------
        ValueError
            For an unknown name, or once points have been seen.
        """
        if params and hasattr(self, "_seen"):
            raise ValueError(
                f"this {type(self).__name__} has seen {self._seen} points with its present "
                f"{', '.join(params)}; make a new one"
            )
        super().set_params(**params)
        return self

    @property
    def size(self) -> int:
        """Points kept."""
        return int(self._count[0]) if hasattr(self, "_seen") else 0

    @property
    def landmarks_(self) -> np.ndarray:
        """The points kept, shape (m, d)."""
        if not hasattr(self, "_seen"):
            name = type(self).__name__
            raise ValueError(f"{name} has seen no data; call partial_fit(X) first")
        return self._atoms[:, : self.size].T.copy()

    def features(self, rank: int | None = None) -> NystromFeatures:
        """Return the Nystrom feature map of the points kept; ValueError if there are none."""
        if len(self.landmarks_) == 0:
            raise ValueError(
                f"{type(self).__name__} has kept no point of the {self._seen} it has seen; show it "
                "more, or let it keep more"
            )
        return NystromFeatures(self.landmarks_, self.kernel, rank)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the Nystrom features of the rows of X, shape (n, r)."""
        return self.features().transform(X)


class KORS(_Sampler):
    """Kernel online row sampling, a stand-alone streaming dictionary (kons Algorithm 2).

    Each point is kept with probability min(beta tau, 1) and weight 1/p, where tau is an estimate of
    its ridge leverage score over the dictionary (eq. 4). Kept points are never dropped. O(m^2) a
    point.

    Parameters
    ----------
    kernel : Kernel
    alpha : float > 0
        Regularisation of the leverage scores.
    beta : float > 0
        Oversampling; the theory asks 3 log(n / delta) / eps^2, practice uses 1.
    eps : float in (0, 1)
        Accuracy.
    seed : int
        Of the coins; the same seed gives the same dictionary, however the data is cut.

    Attributes
    ----------
    indices_ : ndarray of int, shape (m,)
        Rounds (from 0) whose points were kept.
    probabilities_ : ndarray of shape (m,)
        With which they were kept.
    landmarks_ : ndarray of shape (m, d)
        The points themselves.

    Remarks
    -------
    Errata 7 and 8: rounds 1..T, weight 1/p after success, 1/sqrt(p) on each side of the kernel
    matrix.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> sampler = okl.KORS(okl.Gaussian(1.0), alpha=1.0, seed=0).partial_fit(X)
    >>> bool(len(sampler.indices_) < 60), sampler.transform(X).shape[0]
    (True, 300)
    """

    _remedy = "raise alpha or scale the inputs"

    def __init__(
        self,
        kernel: Kernel,
        alpha: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.alpha = alpha
        self.beta = beta
        self.eps = eps
        self.seed = seed

    def _check(self) -> None:
        check_kors(self.alpha, "alpha", self.beta, self.eps, self.seed)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._coins = Coins(self.seed)
        self._weights = np.zeros(0)

    def _play(self, X: np.ndarray, played: np.ndarray, kept: np.ndarray) -> tuple[int, int]:
        setting = (float(self.alpha), float(self.beta), float(self.eps), np.inf)
        coins = self._coins.take(len(X))
        first = 0
        while True:
            cap = len(self._weights)
            first, status = hotloops.kors_rounds(
                X, coins, first, self._code, self._par, setting, self._count, self._atoms,
                self._weights, self._C, np.empty(cap), np.empty(cap), played, kept,
            )  # fmt: skip
            if status != hotloops.NEED_ROOM:
                return first, status
            self._grow()
            self._weights = grown(self._weights, len(self._C))


class UniformSampling(_Sampler):
    """Keep each point with the same probability: what KORS is compared with (kons section 6).

    Parameters
    ----------
    kernel : Kernel
        Of ``features`` and ``transform``.
    probability : float in (0, 1]
    seed : int
        Of the coins; the same seed gives the same dictionary, however the data is cut.

    Attributes
    ----------
    indices_ : ndarray of int, shape (m,)
        Rounds (from 0) whose points were kept.
    probabilities_ : ndarray of shape (m,)
        With which they were kept.
    landmarks_ : ndarray of shape (m, d)
        The points themselves.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> okl.UniformSampling(okl.Gaussian(1.0), probability=0.1, seed=0).partial_fit(X).size
    32
    """

    def __init__(self, kernel: Kernel, probability: float = 0.1, seed: int = 0):
        self.kernel = kernel
        self.probability = probability
        self.seed = seed

    def _check(self) -> None:
        p = self.probability
        require(number(p) and 0 < p <= 1, "probability", p, "a number in (0, 1]")
        require_count("seed", self.seed, 0)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._coins = Coins(self.seed)

    def _play(self, X: np.ndarray, played: np.ndarray, kept: np.ndarray) -> tuple[int, int]:
        played[:] = self.probability
        kept[:] = self._coins.take(len(X)) < self.probability
        self._atoms = np.hstack([self._atoms, X[kept == 1].T])
        self._count[0] = self._atoms.shape[1]
        return len(X), hotloops.DONE


class ALD(_Sampler):
    """Keep each point that is far from the span of those kept: approximate linear dependence.

    After Engel, Mannor and Meir 2004. Without randomness; the dictionary is finite on any compact
    set of inputs. O(m^2) a point.

    Parameters
    ----------
    kernel : Kernel
    threshold : float > 0
        A point is kept if the distance of k(x, .) to the span is larger.

    Attributes
    ----------
    indices_ : ndarray of int, shape (m,)
        Rounds (from 0) whose points were kept.
    probabilities_ : ndarray of shape (m,)
        Ones.
    landmarks_ : ndarray of shape (m, d)
        The points themselves.

    Remarks
    -------
    ``threshold`` is on the distance; Engel et al. have nu on its square.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> okl.ALD(okl.Gaussian(1.0), threshold=0.1).partial_fit(X).size
    15
    """

    _remedy = "raise threshold or scale the inputs"

    def __init__(self, kernel: Kernel, threshold: float = 0.1):
        self.kernel = kernel
        self.threshold = threshold

    def _check(self) -> None:
        require_positive("threshold", self.threshold)

    def _play(self, X: np.ndarray, played: np.ndarray, kept: np.ndarray) -> tuple[int, int]:
        played[:] = 1.0
        first = 0
        while True:
            first, status = hotloops.ald_rounds(
                X, first, self._code, self._par, float(self.threshold), self._count, self._atoms,
                self._C, np.empty((2, len(self._C))), kept,
            )  # fmt: skip
            if status != hotloops.NEED_ROOM:
                return first, status
            self._grow()


def check_kors(alpha: float, name: str, beta: float, eps: float, seed: int) -> None:
    """Refuse hyper-parameters of KORS that are out of range; ``name`` is what alpha is called."""
    require_positive(name, alpha)
    require_positive("beta", beta)
    require(number(eps) and 0 < eps < 1, "eps", eps, "a number in (0, 1)")
    require_count("seed", seed, 0)


# ---- the online Newton step ----


class _OnlineNewton(Learner):
    """What the learners of curved losses share: loss, C, alpha and eta."""

    _remedy = "raise alpha, lower eta, or scale the inputs"

    def _check_labels(self, y: np.ndarray) -> None:
        require_width(self.C, "C")
        if not self._loss().classes:
            refuse_beyond(y, self.C, "C", NO_CURVATURE)

    def _check_newton(self) -> None:
        """Refuse hyper-parameters out of range; set the loss's code and (C, alpha, eta)."""
        require_width(self.C, "C")
        require_positive("alpha", self.alpha)
        loss = self._loss()
        sigma = loss.curvature(self.C)
        if not sigma > 0.0:
            raise ValueError(
                f"loss={self.loss!r} has no curvature on [-C, C] with C={self.C!r}, which "
                f"{type(self).__name__} lives on: use FOGD, a first-order learner, for it, or one "
                "of the losses 'squared', 'squared_hinge', 'logistic' (and a C below the hundreds)"
            )
        if self.eta is not None:
            require_positive("eta", self.eta)
        self._code_of_loss = loss.code
        eta = sigma if self.eta is None else float(self.eta)
        self._setting: tuple[float, ...] = (float(self.C), float(self.alpha), eta)


class _KernelNewton(_OnlineNewton):
    """KONS in kernel form: coefficients on all atoms, a factor over those in the inverse."""

    def _start_newton(self, d: int) -> None:
        self._check_newton()
        self._code, self._par = kernel_code(self.kernel)
        self._counts = np.zeros(3, dtype=np.int64)  # atoms, rows of the factor, KORS's dictionary
        self._atoms = np.zeros((d, 0))
        self._coefs = np.zeros(0)
        self._L = np.zeros((0, 0))
        self._index = np.zeros(0, dtype=np.int64)
        self._scale = self._z = np.zeros(0)
        self._totals = np.zeros(1)

    @property
    def size(self) -> int:
        """Rounds kept: all, but for those with neither loss nor projection (squared hinge)."""
        return int(self._counts[0]) if self._width is not None else 0

    @property
    def R_G(self) -> float:
        """Sum of g_t' A_t^-1 g_t so far, the first part of the regret bound (kons Prop. 1)."""
        return float(self._totals[0]) if self._width is not None else 0.0

    def _reserve(self, atoms: int, rows: int) -> None:
        """Make room for atoms and for rows of the factor."""
        if atoms > len(self._coefs):
            cap = max(atoms, 64, 2 * len(self._coefs))
            self._atoms = grown(self._atoms, len(self._atoms), cap)
            self._coefs = grown(self._coefs, cap)
        old = len(self._z)
        if rows > old:
            cap = factor.capacity(rows, old)
            instead = "use SketchedKONS with a small gamma, or ProsNKONS"
            self._L = factor.grown(self._L, int(self._counts[1]), cap, instead)
            self._index, self._scale = grown(self._index, cap), grown(self._scale, cap)
            self._z = grown(self._z, cap)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        m, r = int(self._counts[0]), int(self._counts[1])
        coefs, forecasts = np.empty(m), np.empty(len(X))
        C = self._setting[0]
        hotloops.kons_function(
            self._coefs, self._index, self._scale, self._L, self._z, m, r, np.empty(r), coefs
        )
        for start in range(0, len(X), factor.BLOCK):
            part = X[start : start + factor.BLOCK]
            rows = np.empty((len(part), m))
            hotloops.kernel_block(self._code, self._par, part, self._atoms, m, rows)
            hotloops.clipped_forecasts(rows, coefs, C, forecasts[start : start + factor.BLOCK])
        return forecasts

    def _state(self) -> dict[str, Any]:
        m, r, _ = self._counts
        return {
            "counts": self._counts, "atoms": self._atoms[:, :m], "coefs": self._coefs[:m],
            "index": self._index[:r], "scale": self._scale[:r], "z": self._z[:r],
            "lower": factor.packed(self._L, r), "totals": self._totals,
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        m, r, _ = (int(v) for v in state["counts"])
        self._reserve(m, r)
        self._counts, self._totals = state["counts"], state["totals"]
        self._atoms[:, :m], self._coefs[:m] = state["atoms"], state["coefs"]
        self._index[:r], self._scale[:r] = state["index"], state["scale"]
        self._z[:r] = state["z"]
        factor.unpack(state["lower"], self._L, r)


class KONS(_KernelNewton):
    """Kernel online Newton step (kons Algorithm 1).

    A projected Newton step in the whole RKHS: u_t = w_{t-1} - A_{t-1}^-1 g_{t-1}, then w_t is the
    projection of u_t onto {w : |w(x_t)| <= C} in the norm of A_{t-1}; A_t = A_{t-1} + eta g_t g_t'
    and A_0 = alpha I. For losses with curvature its regret against every f with |f| <= C on the
    stream is at most that of ``theory.kons_bound``, logarithmic in the rounds (Theorem 1).

    O(t^2) time a round and 4 t^2 bytes after t rounds (8 t^2 of address space); with the squared
    hinge, rounds with neither loss nor projection are not kept. Whole runs go at the speed of
    BLAS-3.

    Parameters
    ----------
    kernel : Kernel
    loss : {"squared", "squared_hinge", "logistic"}
        Squared: labels in [-C, C]; the others: labels -1 and +1.
    C : float > 0
        Forecasts are in [-C, C].
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Step size; None: the curvature sigma of the loss on [-C, C], as the theory asks.

    Remarks
    -------
    Errata 1 to 3: the kernel form here holds for zero gradients too; these add nothing to the
    inverse, but a projection may still move w. It is that of the corrected coefficients, brought up
    to date in the coordinates of the factor, where nothing of order 1 / alpha cancels: forecasts
    are exact to about what rounding the kernel's values costs, n 2e-16 / alpha for k(x, x) = 1.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> run = okl.run(okl.KONS(okl.Gaussian(1.0)), X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), int(run.sizes[-1])
    (0.057, 500)
    """

    _ROWS = 384  # rounds a block: its own part grows with their square, a round
    _run_rows = 3 * _ROWS

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "squared",
        C: float = 1.0,
        alpha: float = 1.0,
        eta: float | None = None,
    ):
        self.kernel = kernel
        self.loss = loss
        self.C = C
        self.alpha = alpha
        self.eta = eta

    def _start(self, d: int) -> None:
        self._start_newton(d)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        for start in range(0, len(X), self._ROWS):
            stop = min(start + self._ROWS, len(X))
            with factor.threads(int(self._counts[1]), stop - start):
                self._play_block(X[start:stop], y[start:stop], trace.rows(start, stop))

    def _play_block(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        m, r, b = int(self._counts[0]), int(self._counts[1]), len(X)
        self._reserve(m + b, r + b)
        rows, solved = np.empty((b, m)), np.empty((b, r))
        hotloops.kernel_block(self._code, self._par, X, self._atoms, m, rows)
        hotloops.kons_scale_rows(rows, self._index, self._scale, solved)
        columns = factor.solve_rows(self._L, solved, r)
        H = np.empty((b, b))
        hotloops.kernel_block(self._code, self._par, X, np.array(X.T, order="C"), b, H)
        if r:  # symmetric: BLAS sees the lower triangle of rows as an upper one of columns
            scipy.linalg.blas.dsyrk(-1.0, columns.T, beta=1.0, c=H.T, lower=0, overwrite_c=1)
        offsets = np.empty(b)
        hotloops.kons_offsets(rows, self._coefs, solved, self._z, offsets)
        block, d, c, z = np.empty((b, b)), np.empty(b), np.empty(b), np.empty(b)
        played, status = hotloops.kons_rounds(
            H, offsets, y, self._code_of_loss, self._setting, self._totals, block, d, c, z,
            trace.predictions,
        )  # fmt: skip
        self._check(status, played, self._remedy)
        hotloops.kons_append(
            X, self._code_of_loss, solved, block, d, c, z, self._counts, self._atoms, self._coefs,
            self._index, self._scale, self._L, self._z, trace.sizes,
        )  # fmt: skip
        self._played += b


class SketchedKONS(_KernelNewton):
    """Sketched-KONS: KONS whose inverse sees only some of the rounds (kons Algorithm 3).

    After its label round t enters A with probability max(min(beta tau, 1), gamma), tau an estimate
    of its leverage score by an independent run of KORS on the rescaled points g sqrt(eta) phi. Its
    gradient counts in any case. With gamma = 1 it is KONS; smaller gamma takes gamma^2 of the time
    and up to 1/gamma of the regret (Theorem 3, ``theory.sketched_kons_bound``).

    O(t + m^2) time a round for m points in the inverse, 8 (t d + m^2) bytes.

    Parameters
    ----------
    kernel : Kernel
    loss : {"squared", "squared_hinge", "logistic"}
        Squared: labels in [-C, C]; the others: labels -1 and +1.
    C : float > 0
        Forecasts are in [-C, C].
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Step size; None: the curvature sigma of the loss on [-C, C], as the theory asks.
    gamma : float in (0, 1]
        Least probability.
    beta : float > 0
        Oversampling of KORS.
    eps : float in (0, 1)
        Accuracy of KORS.
    seed : int
        Of the coins: ``[seed, 0]`` of KORS, ``[seed, 1]`` of the inverse.

    Remarks
    -------
    Errata 1 to 6 and 9: a round left out of the inverse keeps its gradient and its projection; two
    coins a round, as in the listing; KORS sees the rescaled kernel, after the label.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.SketchedKONS(okl.Gaussian(1.0), gamma=0.1)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), learner.sketch_size
    (0.08, 69)
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "squared",
        C: float = 1.0,
        alpha: float = 1.0,
        eta: float | None = None,
        gamma: float = 0.1,
        beta: float = 1.0,
        eps: float = 0.5,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.loss = loss
        self.C = C
        self.alpha = alpha
        self.eta = eta
        self.gamma = gamma
        self.beta = beta
        self.eps = eps
        self.seed = seed

    @property
    def sketch_size(self) -> int:
        """Points in the inverse."""
        return int(self._counts[1]) if self._width is not None else 0

    def _start(self, d: int) -> None:
        check_kors(self.alpha, "alpha", self.beta, self.eps, self.seed)
        gamma = self.gamma
        require(number(gamma) and 0 < gamma <= 1, "gamma", gamma, "a number in (0, 1]")
        self._start_newton(d)
        self._setting += (float(self.gamma), float(self.beta), float(self.eps))
        self._kors_coins, self._coins = Coins([self.seed, 0]), Coins([self.seed, 1])
        self._members = np.zeros(0, dtype=np.int64)
        self._weights = np.zeros(0)
        self._dictionary = np.zeros((0, 0))
        self._work = np.zeros((4, 0))

    def _make_room(self, atoms: int, rows: int, members: int) -> None:
        """Make room for atoms, for rows of the factor, and for KORS's dictionary."""
        self._reserve(atoms, rows)
        if members > len(self._weights):
            cap = max(members, 32, 2 * len(self._weights))
            self._members, self._weights = grown(self._members, cap), grown(self._weights, cap)
            self._dictionary = grown(self._dictionary, cap, cap)
        width = max(len(self._coefs), len(self._z), len(self._weights))
        if width > self._work.shape[1]:
            self._work = aligned_zeros(4, width)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        kors_coins, coins = self._kors_coins.take(len(X)), self._coins.take(len(X))
        first = 0
        while True:
            first, status = hotloops.sketched_kons_rounds(
                X, y, kors_coins, coins, first, self._code, self._par, self._code_of_loss,
                self._setting, self._counts, self._totals, self._atoms, self._coefs, self._index,
                self._scale, self._L, self._z, self._members, self._weights, self._dictionary,
                self._work, trace.predictions, trace.sizes,
            )  # fmt: skip
            if status != hotloops.NEED_ROOM:
                break
            self._make_room(*(int(v) + 1 for v in self._counts))
        self._check(status, first, self._remedy)
        self._played += len(X)

    def _state(self) -> dict[str, Any]:
        k = self._counts[2]
        return super()._state() | {
            "members": self._members[:k], "weights": self._weights[:k],
            "dictionary": self._dictionary[:k, :k],
            "kors_coins": self._kors_coins.state(), "coins": self._coins.state(),
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        m, r, k = (int(v) for v in state["counts"])
        self._make_room(m, r, k)
        super()._restore(state)
        self._members[:k], self._weights[:k] = state["members"], state["weights"]
        self._dictionary[:k, :k] = state["dictionary"]
        self._kors_coins.restore(state["kors_coins"])
        self._coins.restore(state["coins"])


class ProsNKONS(_OnlineNewton):
    """Pros-N-KONS and CON-KONS: the online Newton step on the span of a KORS dictionary.

    After Calandriello, Lazaric and Valko 2017 (NIPS), Algorithm 1. KORS decides whether x_t joins
    the dictionary; then the projected Newton step of KONS is played in the dictionary's span, with
    A = alpha I + sum (eta / 2) g g'. When the dictionary grows, Pros-N-KONS starts again (w = 0,
    A = alpha I), and CON-KONS (``restart=False``) goes on with w and A.

    O(m^2) time a round and 8 m (d + 3 m) bytes for m atoms, whatever the number of rounds.

    Parameters
    ----------
    kernel : Kernel
    loss : {"squared", "squared_hinge", "logistic"}
        Squared: labels in [-C, C]; the others: labels -1 and +1.
    C : float > 0
        Forecasts are in [-C, C].
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Curvature that is used; None: the curvature sigma of the loss on [-C, C].
    mu : float > 0
        Regularisation (alpha) of KORS: the accuracy of the subspace.
    beta : float > 0
        Oversampling of KORS.
    eps : float in (0, 1)
        Accuracy of KORS.
    restart : bool
        False: CON-KONS.
    seed : int
        Of KORS's coins.

    Remarks
    -------
    The embedding of the paper, Sigma^-1 U' k, is replaced by R^-T k with K = R' R, which differs by
    a rotation, grows by one entry an atom, and leaves all forecasts as they are. Restarts hurt much
    on short streams: a forecast of 0 and a fresh A for each new atom.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.ProsNKONS(okl.Gaussian(1.0))
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), learner.size, learner.restarts
    (0.299, 38, 37)
    >>> con_kons = okl.ProsNKONS(okl.Gaussian(1.0), restart=False)
    >>> round(okl.run(con_kons, X, np.sin(3 * X[:, 0])).mean_loss, 3)
    0.07
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "squared",
        C: float = 1.0,
        alpha: float = 1.0,
        eta: float | None = None,
        mu: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        restart: bool = True,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.loss = loss
        self.C = C
        self.alpha = alpha
        self.eta = eta
        self.mu = mu
        self.beta = beta
        self.eps = eps
        self.restart = restart
        self.seed = seed

    @property
    def size(self) -> int:
        """Atoms in the dictionary."""
        return int(self._counts[0]) if self._width is not None else 0

    @property
    def restarts(self) -> int:
        """How often a new atom made w and A start again (the first atom does not count)."""
        return int(self._counts[2]) if self._width is not None else 0

    def _start(self, d: int) -> None:
        self._check_newton()
        check_kors(self.mu, "mu", self.beta, self.eps, self.seed)
        require(isinstance(self.restart, bool), "restart", self.restart, "True or False")
        self._setting += (
            float(self.mu), float(self.beta), float(self.eps), float(self.restart)
        )  # fmt: skip
        self._code, self._par = kernel_code(self.kernel)
        self._coins = Coins(self.seed)
        self._counts = np.zeros(3, dtype=np.int64)  # atoms, rank of their span, restarts
        self._atoms = np.zeros((d, 0))
        self._weights = self._inv_d = self._c = np.zeros(0)
        self._span = np.zeros(0, dtype=np.int64)
        self._dictionary = self._R = self._U = np.zeros((0, 0))
        self._reserve(32)

    def _reserve(self, atoms: int) -> None:
        """Make room for atoms."""
        old = len(self._weights)
        if atoms <= old:
            return
        cap = padded(max(atoms, 2 * old))
        self._atoms = grown(self._atoms, len(self._atoms), cap)
        self._weights, self._c = grown(self._weights, cap), grown(self._c, cap)
        self._span = grown(self._span, cap)
        self._dictionary, self._R = grown(self._dictionary, cap, cap), grown(self._R, cap, cap)
        self._U = grown(self._U, cap, cap)
        np.fill_diagonal(self._U[old:, old:], 1.0)
        self._inv_d = grown(self._inv_d, cap)
        self._inv_d[old:] = 1.0 / float(self.alpha)
        self._work = aligned_zeros(7, cap)

    def _arrays(self) -> tuple:
        """Return the arguments of the compiled loops from ``setting`` to ``work``."""
        return (
            self._setting, self._counts, self._atoms, self._weights, self._dictionary, self._span,
            self._R, self._U, self._inv_d, self._c, self._work,
        )  # fmt: skip

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        coins = self._coins.take(len(X))
        first = 0
        while True:
            first, status = hotloops.pros_n_kons_rounds(
                X, y, coins, first, self._code, self._par, self._code_of_loss, *self._arrays(),
                trace.predictions, trace.sizes,
            )  # fmt: skip
            if status != hotloops.NEED_ROOM:
                break
            self._reserve(self.size + 1)
        self._check(status, first, "raise alpha or mu, lower eta, or scale the inputs")
        self._played += len(X)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        hotloops.pros_n_kons_forecasts(
            X, self._coins.next, self._code, self._par, *self._arrays(), forecasts
        )
        return forecasts

    def _state(self) -> dict[str, Any]:
        m, rank, _ = self._counts
        return {
            "counts": self._counts, "atoms": self._atoms[:, :m], "weights": self._weights[:m],
            "dictionary": self._dictionary[:m, :m], "span": self._span[:rank],
            "R": self._R[:rank, :rank], "U": self._U[:rank, :rank], "inv_d": self._inv_d[:rank],
            "c": self._c[:rank], "coins": self._coins.state(),
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        m, rank, _ = (int(v) for v in state["counts"])
        self._reserve(m)
        self._counts = state["counts"]
        self._atoms[:, :m], self._weights[:m] = state["atoms"], state["weights"]
        self._dictionary[:m, :m] = state["dictionary"]
        self._span[:rank], self._R[:rank, :rank] = state["span"], state["R"]
        self._U[:rank, :rank] = state["U"]
        self._inv_d[:rank], self._c[:rank] = state["inv_d"], state["c"]
        self._coins.restore(state["coins"])
