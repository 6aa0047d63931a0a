"""The kernel online Newton step: KONS and Sketched-KONS.

After Calandriello, Lazaric and Valko 2017, "Second-order kernel online convex optimization with
adaptive sketching" (kons below).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.components.dictionaries import check_kors
from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.components.losses import kons_step
from oklnumba.core import cholesky
from oklnumba.core.checks import (
    require,
    require_nonnegative,
    require_positive,
    require_width,
    require_within,
)
from oklnumba.core.health import Lower, Part, part_of, weights_part
from oklnumba.core.inputs import NO_CURVATURE, refuse_beyond
from oklnumba.core.state import Coins, NoRoom, aligned_zeros, check_factor, refuse_outside
from oklnumba.hot.kons import (
    MEMBERS,
    ROWS,
    clipped_forecasts,
    kons_append,
    kons_corner,
    kons_fold,
    kons_function,
    kons_rounds,
    kons_rows,
    sketched_kons_rounds,
)
from oklnumba.hot.primitives.jit import ATOMS, DONE, STOPPED
from oklnumba.hot.primitives.rows import kernel_block
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.player import Trace

SPAN = 64  # rounds of a block that grow its factor row by row


class Curved(Learner):
    """What the learners of curved losses share: loss, C, alpha and eta."""

    _REMEDY = "raise alpha, lower eta, or scale the inputs"
    _WITHOUT_CURVATURE = "FOGD, a first-order learner,"

    def _check_labels(self, y: np.ndarray) -> None:
        require_width(self.C, "C")
        if not self._loss().classes and self._loss().curvature(self.C) > 0.0:
            refuse_beyond(y, self.C, "C", NO_CURVATURE)

    def _check_params(self) -> None:
        super()._check_params()
        require_width(self.C, "C")
        require_positive("alpha", self.alpha)
        if self.eta is not None:
            require_positive("eta", self.eta)

    def _check_curvature(self) -> None:
        """Refuse a loss that has none."""
        if not self._loss().curvature(self.C) > 0.0:
            raise ValueError(
                f"loss={self.loss!r} has no curvature on [-C, C] with C={self.C!r}, which "
                f"{type(self).__name__} lives on: use {self._WITHOUT_CURVATURE} for it, or one "
                "of the losses 'squared', 'squared_hinge', 'logistic' (and a C below the hundreds)"
            )

    def _newton_step(self) -> float:
        """Return eta, by default the curvature of the loss."""
        return self._loss().curvature(self.C) if self.eta is None else float(self.eta)


class _KernelForm(Curved):
    """KONS in kernel form: coefficients on all atoms, a factor over those in the inverse."""

    _WITHOUT_CURVATURE = "schedule='sqrt', or FOGD, a first-order learner,"
    _STATE = {
        "counts": ("counts",), "totals": ("totals",), "atoms": ("d", ATOMS), "coefs": (ATOMS,),
        "index": (ROWS,), "scale": (ROWS,), "z": (ROWS,),
    }  # fmt: skip
    _INTEGERS = frozenset({"counts", "index", "members"})
    _UNBOUNDED = frozenset({"totals"})

    @property
    def R_G(self) -> float:
        """Sum of g_t' A_t^-1 g_t so far, the first part of the regret bound (kons Prop. 1)."""
        return float(self._totals[0]) if self._width is not None else 0.0

    @property
    def A_weights(self) -> np.ndarray:
        """Weights a_j of the atoms in A = alpha I + sum_j a_j phi_j phi_j', shape (size,)."""
        weights = np.zeros(self.size)
        if self._width is not None:
            weights[self._used("index")] = self._used("scale") ** 2
        return weights

    @property
    def stopped(self) -> bool:
        """Whether a Newton decrement below ``stop`` has ended the learning."""
        return self._width is not None and self._stopped

    def _check_params(self) -> None:
        super()._check_params()
        check_kernel(self.kernel)
        valid = isinstance(self.schedule, str) and self.schedule in ("constant", "sqrt")
        require(valid, "schedule", self.schedule, "'constant' or 'sqrt'")
        require_nonnegative("stop", self.stop)
        if self.schedule == "constant":
            self._check_curvature()

    def _first_step(self) -> float:
        """Return eta_1."""
        if self.schedule == "sqrt" and self.eta is None:
            return kons_step(self.loss, self.C)
        return self._newton_step()

    def _steps(self, n: int) -> np.ndarray:
        """Return eta_t of the next n rounds."""
        if self.schedule == "constant":
            return np.full(n, self._step)
        return self._step / np.sqrt(np.arange(self._played + 1.0, self._played + n + 1.0))

    def _start_kernel_form(self, d: int) -> None:
        self._kernel, self._step = self.kernel._code(), self._first_step()
        self._make_state(d=d, counts=3, totals=1)
        self._L = np.zeros((0, 0))
        self._stopped = False

    def _note(self, status: int, played: int) -> None:
        """Count rounds that were learned from; see whether they were the last, or went wrong."""
        if status != STOPPED:
            self._check(status, played)
        self._stopped = status == STOPPED
        self._played += played

    def _only_forecast(self, X: np.ndarray, trace: Trace) -> None:
        """Play the rounds after the last that was learned from."""
        trace.predictions[:] = self._forecast(X)
        trace.sizes[:] = self.size
        self._played += len(X)

    def _room(self, axis: int, least: int) -> int:
        return (
            cholesky.choose_capacity(least, self._rooms[axis])
            if axis == ROWS
            else super()._room(axis, least)
        )

    def _buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        buffers = super()._buffers(rooms)
        if rooms[ROWS] > self._rooms[ROWS]:
            instead = "use SketchedKONS with a small gamma, or ProsNKONS"
            used = min(int(self._counts[ROWS]), len(self._L))
            buffers["L"] = cholesky.grow_factor(self._L, used, rooms[ROWS], instead)
        return buffers

    @property
    def _function(self) -> tuple[np.ndarray, ...]:
        return self._atoms, self._coefs, self._index, self._scale, self._z, self._L

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        m, r = int(self._counts[ATOMS]), int(self._counts[ROWS])
        coefs, forecasts = np.empty(m), np.empty(len(X))
        kons_function(self._function, m, r, np.empty(r), coefs)
        for start in range(0, len(X), cholesky.BLOCK):
            part = X[start : start + cholesky.BLOCK]
            rows = np.empty((len(part), m))
            kernel_block(self._kernel, part, self._atoms, m, rows)
            clipped_forecasts(
                rows, coefs, float(self.C), forecasts[start : start + cholesky.BLOCK]
            )  # fmt: skip
        return forecasts

    def _matrices(self) -> list[Part]:
        r = int(self._counts[ROWS])
        if r == 0:
            return [weights_part(self._used("coefs"))]
        scale, atoms = self._used("scale"), self._used("atoms").T
        inside, matrix = atoms[self._used("index")], Lower(self._L, r)

        def column(i: int) -> np.ndarray:
            found = scale[i] * scale * self.kernel(inside, inside[i : i + 1])[:, 0]
            found[i] += float(self.alpha)
            return found

        reach = float(np.sqrt(self.kernel.diag(inside).max()))  # |L^-1 D k| <= |k(x, .)|
        solutions = [matrix.half_solve(self._z)]
        return [part_of("D K D + alpha I", matrix, solutions, [float(self.C)], column, reach)]

    def _state(self) -> dict[str, Any]:
        lower = cholesky.pack_rows(self._L, int(self._counts[ROWS]))
        return super()._state() | {"lower": lower, "stopped": self._stopped}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        r = int(self._counts[ROWS])
        cholesky.unpack_rows(check_factor(state["lower"], r, self), self._L, r)
        self._stopped = bool(state.get("stopped", False))  # version 0.1.0 never stopped

    def _check_state(self) -> None:
        refuse_outside("index", self._used("index"), 0, self.size - 1)


class KONS(_KernelForm):
    """Kernel online Newton step (kons Algorithm 1).

    A projected Newton step in the whole RKHS: u_t = w_{t-1} - A_{t-1}^-1 g_{t-1}, then w_t is the
    projection of u_t onto {w : |w(x_t)| <= C} in the norm of A_{t-1}; A_t = A_{t-1} + eta_t g_t
    g_t' and A_0 = alpha I. Its regret against every f with |f| <= C on the stream is at most that
    of ``theory.kons_bound`` (Theorem 1): logarithmic in the rounds for losses with curvature and
    eta_t = sigma, of order sqrt(t) for the others and eta_t of order 1 / sqrt(t).

    O(t^2) time a round and 4 t^2 bytes after t rounds (8 t^2 of address space); with the hinges and
    the epsilon-insensitive loss, rounds with neither loss nor projection are not kept. Whole runs
    go at the speed of BLAS-3.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        With the constant schedule one with curvature, "squared", "squared_hinge" or "logistic";
        with "sqrt" any of ``losses.LOSSES``. Squared: labels in [-C, C]; hinges and logistic:
        labels -1 and +1.
    C : float > 0
        Forecasts are in [-C, C].
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Step size; None: what the theory asks, the curvature sigma of the loss on [-C, C] or, with
        the schedule "sqrt", 1 / (L C), L being the loss's Lipschitz constant. The step of an oracle
        that knows the effective dimension is ``theory.kons_step(loss, C, dimension)``.
    schedule : {"constant", "sqrt"}
        eta_t = eta or eta / sqrt(t).
    stop : float >= 0
        The first round whose Newton decrement g_t' A_t^-1 g_t is below is the last to learn from
        (section 6); later rounds only forecast. 0: never.

    Remarks
    -------
    Section 6 has the stop for batch optimisation, where the loss stays the same: there the excess
    loss at the last round learned from is at most sqrt(stop R / (1 - eta stop)) with R = alpha
    |w*|^2 + R_G + R_D. On an ordinary stream it ends the learning at the first round that happens
    to be well forecast.

    Where a loss has its kink at a forecast of exactly C (the hinge with C = 1, the absolute loss
    with labels of size C), the gradient of a repeated point there is a matter of rounding, and so
    may depend on how a run is cut.

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
    >>> absolute = okl.KONS(okl.Gaussian(1.0), loss="absolute", schedule="sqrt")
    >>> round(okl.run(absolute, X, np.sin(3 * X[:, 0])).mean_loss, 3)
    0.151
    """

    _ROWS = 512  # rounds a block; twice as many where the factor has _LARGE rows
    _LARGE = 4096
    _run_rows = 2 * _ROWS

    def __init__(
        self,
        kernel: Kernel,
        *,
        loss: str = "squared",
        C: float = 1.0,
        alpha: float = 1.0,
        eta: float | None = None,
        schedule: str = "constant",
        stop: float = 0.0,
    ):
        self.kernel = kernel
        self.loss = loss
        self.C = C
        self.alpha = alpha
        self.eta = eta
        self.schedule = schedule
        self.stop = stop

    def _expect(self, n: int) -> None:
        cholesky.reserve_rows(self, ROWS, n)

    def _start(self, d: int) -> None:
        self._setting = float(self.C), float(self.alpha), float(self.stop)
        self._start_kernel_form(d)

    def _block(self, n: int) -> int:
        """Return how many of n rounds make a block: where it ends decides about the last bits."""
        large = int(self._counts[ROWS]) >= self._LARGE
        return min(n, 2 * self._ROWS if large else self._ROWS)

    def _ahead(self, n: int) -> int:
        if self._stopped:
            return n
        b = self._block(n)
        self._reserve({ATOMS: int(self._counts[ATOMS]) + b, ROWS: int(self._counts[ROWS]) + b})
        return b

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        n, start = len(X), 0
        while start < n and not self._stopped:
            stop = start + self._block(n - start)
            with cholesky.limit_threads(int(self._counts[ROWS]), stop - start):
                start += self._play_block(X[start:stop], y[start:stop], trace.rows(start, stop))
        if start < n:
            self._only_forecast(X[start:], trace.rows(start, n))

    def _play_block(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> int:
        """Return how many rounds were played; fewer than there are where the last one stops."""
        m, r, b = int(self._counts[ATOMS]), int(self._counts[ROWS]), len(X)
        self._ahead(b)
        offsets, H = np.empty(b), np.empty((b, b))
        kons_rows(self._kernel, X, self._function, self._counts, np.empty(m), offsets)
        solved = self._L[r : r + b, :r]
        cholesky.solve_rows(self._L, solved, r)
        columns = np.array(X.T, order="C")
        kons_corner(self._kernel, X, columns, self._L, self._z, r, H, offsets)
        cholesky.subtract_squares(solved, H)
        block = np.empty((b, b)), np.empty(b), np.empty(b), np.empty(b)
        played, status = self._play_spans(H, offsets, y, block, trace.predictions)
        self._note(status, played)
        loss, sizes = self._loss_code, trace.sizes
        kons_append(X[:played], loss, block, self._counts, self._function, sizes)
        return played

    def _play_spans(
        self, H: np.ndarray, offsets: np.ndarray, y: np.ndarray, block: tuple, out: np.ndarray
    ) -> tuple[int, int]:
        """Play the rounds of a block, a few at a time; return (rounds played, status)."""
        L, steps, b = block[0], self._steps(len(y)), len(y)
        played, status = 0, DONE
        while played < b and status == DONE:
            first, last = played, min(played + SPAN, b)
            kons_fold(H, offsets, block, first, last)
            cholesky.solve_rows(L, L[first:last, :first], first)
            cholesky.subtract_squares(L[first:last, :first], H[first:last, first:last])
            played, status = kons_rounds(
                H, offsets, y, steps, self._loss_code, self._setting, self._totals, block,
                (first, last), out,
            )  # fmt: skip
        return played, status


class SketchedKONS(_KernelForm):
    """Sketched-KONS: KONS whose inverse sees only some of the rounds (kons Algorithm 3).

    After its label round t enters A with probability p = max(min(beta tau, 1), gamma), tau an
    estimate of its leverage score by a run of KORS on the rescaled points g sqrt(eta) phi. Its
    gradient counts in any case. With gamma = 1 it is KONS; smaller gamma takes gamma^2 of the time
    and up to 1/gamma of the regret (Theorem 3, ``theory.sketched_kons_bound``).

    O(t + m^2) time a round for m points in the inverse, 8 (t d + m^2) bytes.

    Parameters
    ----------
    kernel : Kernel
    loss : str
    C : float > 0
    alpha : float > 0
    eta : float > 0, optional
    schedule : {"constant", "sqrt"}
    stop : float >= 0
        As for KONS; the decrement is that of the sketched A.
    gamma : float in (0, 1]
        Least probability.
    beta : float > 0
        Oversampling of KORS.
    eps : float in (0, 1)
        Accuracy of KORS.
    sampling : {"independent", "shared", "weighted"}
        "independent": KORS has coins of its own, and rounds in A have weight 1, as in the listing.
        "shared": one coin a round, with probability p, decides about both; KORS's weight is 1/p
        then (section 5, Corollary 1). "weighted": as "independent", but rounds in A have weight 1/p
        (A^w of section 6): A is unbiased, R_D may be large, and there is no theorem.
    seed : int
        Of the coins: ``[seed, 0]`` of KORS, ``[seed, 1]`` of the inverse.

    Remarks
    -------
    Errata 1 to 6 and 9: a round left out of the inverse keeps its gradient and its projection; KORS
    sees the rescaled kernel, after the label. With a shared coin A is the unweighted counterpart of
    KORS's dictionary, and Corollary 1 holds: (1 - eps) p A_t <= p (KORS's A) <= A, p the least of
    the probabilities so far, the first part with high probability for the beta of Theorem 2 (but
    see errata 61). With two coins the second part may fail.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.SketchedKONS(okl.Gaussian(1.0), gamma=0.1)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), learner.sketch_size
    (0.08, 69)
    """

    _STATE = _KernelForm._STATE | {
        "members": (MEMBERS,), "weights": (MEMBERS,), "kors": (MEMBERS, MEMBERS),
    }  # fmt: skip
    _COINS = ("kors_coins", "coins")
    _OLD_NAMES = {"kors": "dictionary"}

    def __init__(
        self,
        kernel: Kernel,
        *,
        loss: str = "squared",
        C: float = 1.0,
        alpha: float = 1.0,
        eta: float | None = None,
        schedule: str = "constant",
        stop: float = 0.0,
        gamma: float = 0.1,
        beta: float = 1.0,
        eps: float = 0.5,
        sampling: str = "independent",
        seed: int = 0,
    ):
        self.kernel = kernel
        self.loss = loss
        self.C = C
        self.alpha = alpha
        self.eta = eta
        self.schedule = schedule
        self.stop = stop
        self.gamma = gamma
        self.beta = beta
        self.eps = eps
        self.sampling = sampling
        self.seed = seed

    @property
    def sketch_size(self) -> int:
        """Points in the inverse."""
        return int(self._counts[ROWS]) if self._width is not None else 0

    def _check_params(self) -> None:
        super()._check_params()
        check_kors(self.alpha, "alpha", self.beta, self.eps, self.seed)
        gamma = self.gamma
        require_within("gamma", gamma, "(0, 1]")
        ways = ("independent", "shared", "weighted")
        valid = isinstance(self.sampling, str) and self.sampling in ways
        require(valid, "sampling", self.sampling, "'independent', 'shared' or 'weighted'")

    def _start(self, d: int) -> None:
        gamma = self.gamma
        floor = gamma if self.sampling == "shared" else 0.0  # KORS's least probability
        weighted = self.sampling == "weighted"
        values = (self.C, self.alpha, gamma, self.beta, self.eps, floor, weighted, self.stop)
        self._setting = tuple(float(value) for value in values)
        self._kors_coins, self._coins = Coins([self.seed, 0]), Coins([self.seed, 1])
        self._start_kernel_form(d)
        self._work = np.zeros((4, 0))

    def _buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        return super()._buffers(rooms) | {"work": aligned_zeros(4, max(rooms.values()))}

    def _check_state(self) -> None:
        super()._check_state()
        refuse_outside("members", self._used("members"), 0, self.size - 1)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        n, played = len(X), 0
        kors_coins, coins = self._kors_coins.take(n), self._coins.take(n)
        shared = self.sampling == "shared"
        if not self._stopped:
            rounds = y, self._steps(n), coins if shared else kors_coins, coins
            loss, out = self._loss_code, (trace.predictions, trace.sizes, self._totals)
            try:
                played, status = self._with_room(
                    lambda first: sketched_kons_rounds(
                        X, rounds, first, self._kernel, loss, self._setting, self._counts,
                        self._function, (self._members, self._weights, self._kors), self._work, out,
                    )
                )  # fmt: skip
            except NoRoom as full:
                self._played_only(full.first, n)
                raise
            self._note(status, played)
        if played < n:
            self._only_forecast(X[played:], trace.rows(played, n))
