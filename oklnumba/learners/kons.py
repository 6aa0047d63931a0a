"""The kernel online Newton step: KONS and Sketched-KONS.

After Calandriello, Lazaric and Valko 2017, "Second-order kernel online convex optimization with
adaptive sketching" (kons below).
"""

from dataclasses import KW_ONLY

import numpy as np

from oklnumba.components import losses
from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.components.losses import loss_field
from oklnumba.core import cholesky
from oklnumba.core.arrays import aligned_zeros
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.params import (
    choice,
    field_in,
    nonnegative,
    positive,
    random_seed,
    required,
    width,
)
from oklnumba.core.state import Coins, StateT, WorkT
from oklnumba.hot import kons as loops
from oklnumba.hot.primitives.dictionary import JoiningRule
from oklnumba.hot.primitives.expansion import expansion_forecasts
from oklnumba.hot.primitives.jit import ATOMS, DONE, STOPPED, Out, enter
from oklnumba.learners.base.expansion import largest_norm
from oklnumba.learners.base.growing_factor import GrowingFactor
from oklnumba.learners.base.learner import Trace
from oklnumba.learners.base.traits import Traits
from oklnumba.learners.newton import BoundedForecasts

STRETCH = 64  # rounds of a block that extend its factor row by row
BLOCK, LARGE_BLOCK = 512, 1024  # rounds of a block; the second for factors of LARGE rows
LARGE = 4096


class Curved(BoundedForecasts[StateT, WorkT]):
    """Base of learners that take their step size from the curvature of the loss."""

    _REMEDY = "raise alpha, lower eta, or scale the inputs"

    kernel: Kernel = required(check_kernel)
    _: KW_ONLY
    loss: str = loss_field("squared")
    C: float = width(1.0)
    alpha: float = positive(1.0)
    eta: float | None = positive(None)

    def _check_params(self) -> None:
        self._require_curvature("or FOGD, a first-order learner")


class _KernelForm(
    GrowingFactor[loops.KernelFormState, loops.Work], Curved[loops.KernelFormState, loops.Work]
):
    """KONS in kernel form: coefficients on all atoms, a factor over the rounds in the inverse.

    A subclass has ``_play_some(X, y, trace)``, which plays some of the rounds, and returns how many
    and the status of the compiled loop.
    """

    _layout = loops.KernelFormState
    # Most rows that _play gets; _play_some takes BLOCK of them, from LARGE rows on LARGE_BLOCK.
    _traits = Traits(run_rows=LARGE_BLOCK, block_rows=LARGE_BLOCK)
    _FACTORED, _INSTEAD = loops.IN_A, "use SketchedKONS with a small gamma, or ProsNKONS"

    _: KW_ONLY
    schedule: str = choice(("constant", "sqrt"), "constant")
    stop: float = nonnegative(0.0)

    @property
    def R_G(self) -> float:
        """Sum of g_t^2 phi_t' A_t^-1 phi_t, the first part of the regret bound (kons Prop. 1)."""
        return float(self._state.kons.totals[loops.R_G]) if self._width is not None else 0.0

    @property
    def A_weights(self) -> np.ndarray:
        """Weights a_j of the atoms in A = alpha I + sum_j a_j phi_j phi_j', shape (size,)."""
        weights = np.zeros(self.size)
        if self._width is not None:
            kons, r = self._state.kons, int(self._counts[loops.IN_A])
            weights[kons.index[:r]] = kons.D[:r] ** 2
        return weights

    @property
    def stopped(self) -> bool:
        """Whether a Newton decrement below ``stop`` has ended the learning."""
        return bool(self._counts[loops.ENDED])

    def _check_params(self) -> None:
        if self.schedule == "constant":
            self._require_curvature("schedule='sqrt', or FOGD, a first-order learner")

    def _start(self, d: int) -> None:
        p, loss = self._hyper, self._loss()
        self._kernel, sqrt = p.kernel._code(), p.schedule == "sqrt"
        self._eta = p.eta or (losses.kons_step(p.loss, p.C) if sqrt else loss.curvature(p.C))
        self._newton = loops.Newton(self._loss_code, p.C, p.alpha, p.stop)
        self._make_state(d=d, counts=4, totals=1)

    def _choose_steps(self, n: int) -> np.ndarray:
        """Return eta_t of the next n rounds."""
        if self._hyper.schedule == "constant":
            return np.full(n, self._eta)
        return self._eta / np.sqrt(np.arange(self._played + 1.0, self._played + n + 1.0))

    def _play_some(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> tuple[int, int]:
        raise NotImplementedError

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        start, n = 0, len(X)
        while start < n and not self.stopped:
            played, status = self._play_some(X[start:], y[start:], trace.rows(start, n))
            # STOPPED ends the learning, not the run: the rows that are left are forecast below.
            self._counts[loops.ENDED] = status == STOPPED
            self._count_rounds(played, played, DONE if status == STOPPED else status)
            start += played
        if start < n:
            trace.predictions[start:], trace.sizes[start:] = self._forecast(X[start:]), self.size
            self._played += n - start

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        kons, C, forecasts = self._state.kons, self._hyper.C, np.empty(len(X))
        coefs, work = np.empty(self.size), np.empty(int(self._counts[loops.IN_A]))
        enter(loops.write_coefficients)(kons, work, coefs)
        k = np.empty(self.size)
        expansion_forecasts(X, self._kernel, kons.atoms, coefs, kons.counts, 1.0, k, forecasts)
        return forecasts.clip(-C, C)

    def _matrices(self) -> list[Part]:
        p, kons, r = self._hyper, self._state.kons, int(self._counts[loops.IN_A])
        matrix, inside = Factored(kons.L, r, lower=True), kons.atoms.T[kons.index[:r]]
        reach = largest_norm(p.kernel, inside)  # |L^-1 D k| <= |k(x, .)|
        return [measure_part("D K D + alpha I", matrix, [matrix.half_solve(kons.z)], [p.C], reach)]


class KONS(_KernelForm):
    """Kernel online Newton step (kons Algorithm 1).

    A projected Newton step in the RKHS: u_t = w_{t-1} - A_{t-1}^-1 g_{t-1} phi_{t-1}, then w_t is
    the projection of u_t onto {w : |w(x_t)| <= C} in the norm of A_{t-1}; A_t = A_{t-1} + eta_t
    g_t^2 phi_t phi_t', A_0 = alpha I, g_t the slope of the loss. Its regret against every f with
    |f| <= C on the stream is at most ``theory.kons_bound`` (Theorem 1): logarithmic in the rounds
    for losses with curvature and eta_t = sigma, O(sqrt(t)) for the others and eta_t of order
    1 / sqrt(t). Round t takes O(t^2) time; after t rounds there are 4 t^2 bytes (8 t^2 of address
    space).

    Parameters
    ----------
    kernel : Kernel
    loss : str
        "squared" (labels in [-C, C]), "squared_hinge" or "logistic" (labels -1 and +1); with
        schedule "sqrt" any of ``losses.LOSSES``.
    C : float > 0
        Forecasts are in [-C, C].
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Step size. None: the curvature sigma of the loss on [-C, C] or, with the schedule "sqrt", 1
        / (L C), L the loss's Lipschitz constant. See also ``theory.kons_step``.
    schedule : {"constant", "sqrt"}
        eta_t = eta or eta / sqrt(t).
    stop : float >= 0
        Learning ends with the first round whose decrement g_t^2 phi_t' A_t^-1 phi_t is smaller
        (section 6).

    Remarks
    -------
    ``stop`` is for batch optimisation, where all rounds have the same loss: there the excess loss
    in the last round of learning is at most sqrt(stop R / (1 - eta stop)) with R = alpha |w*|^2 +
    R_G + R_D. On an ordinary stream learning ends after the first good forecast.

    Errata 1 to 3: our kernel form holds for zero gradients too, where a projection may still move
    w. Coefficients are updated in the coordinates of the factor, where nothing of order 1 / alpha
    cancels: rounding costs about n 2e-16 / alpha for k(x, x) = 1. On sorted or drifting inputs and
    for alpha below 0.1 it costs more: forecasts overshoot, and later gradients multiply the error.

    Where a loss has its kink at the forecast C, as the hinge with C = 1, rounding decides its
    gradient at a repeated point, and may differ with the cut of a run.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> run = okl.run(okl.KONS(okl.Gaussian(1.0)), X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), int(run.sizes[-1])
    (0.057, 500)
    """

    def _play_some(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> tuple[int, int]:
        self._reserve_ahead()
        m, r = int(self._counts[ATOMS]), int(self._counts[loops.IN_A])
        n = min(len(X), BLOCK if r < LARGE else LARGE_BLOCK)
        self._reserve({ATOMS: m + n, loops.IN_A: r + n})  # may exchange self._state
        X, y, kons, eta = X[:n], y[:n], self._state.kons, self._choose_steps(n)
        block = loops.Block(
            L=np.empty((n, n)), d=np.empty(n), c=np.empty(n), z=np.empty(n), H=np.empty((n, n)),
            offsets=np.empty(n),
        )  # fmt: skip
        with cholesky.limit_threads(r, n):
            # s, H and offsets: first the rounds before the block (the table in hot/kons.py).
            enter(loops.start_block)(self._kernel, X, kons, np.empty(m), block.offsets)
            s_before = kons.L[r : r + n, :r]
            cholesky.solve_rows(kons.L, s_before, r)
            columns = np.array(X.T, order="C")  # (d, n), as atoms lie
            enter(loops.start_products)(self._kernel, X, columns, kons, block.H, block.offsets)
            cholesky.subtract_squares(s_before, block.H)
            played, status = 0, DONE
            while played < n and status == DONE:
                # Then the rounds of the block before the stretch.
                first, last = played, min(played + STRETCH, n)
                enter(loops.start_stretch)(block, first, last)
                s_block = block.L[first:last, :first]
                cholesky.solve_rows(block.L, s_block, first)
                cholesky.subtract_squares(s_block, block.H[first:last, first:last])
                played, status = enter(loops.kons_rounds)(  # the rounds of the stretch, one by one
                    y, eta, first, last, self._newton, block, kons.totals, trace.predictions
                )
        enter(loops.append_block)(X[:played], self._loss_code, block, kons, trace.sizes)
        return played, status


class SketchedKONS(_KernelForm):
    """Sketched-KONS: KONS with only some of the rounds in its inverse (kons Algorithm 3).

    After its label, round t enters A with probability p = max(min(beta tau, 1), gamma), where KORS
    estimates its leverage score tau on the rescaled points g sqrt(eta) phi; its gradient counts in
    any case. gamma = 1 is KONS; smaller gamma takes gamma^2 of the time and up to 1/gamma of the
    regret (Theorem 3, ``theory.sketched_kons_bound``). Round t takes O(t + m^2) time for m points
    in the inverse, 8 (t d + m^2) bytes.

    Parameters
    ----------
    kernel, loss, C, alpha, eta, schedule, stop
        As in KONS; the Newton decrement is that of the sketched A.
    gamma : float in (0, 1]
        Least probability.
    beta > 0, eps in (0, 1) : float
        Oversampling and accuracy of KORS.
    sampling : {"independent", "shared", "weighted"}
        "independent": KORS has other coins, and rounds in A have weight 1, as in the listing.
        "shared": one coin, with probability p, decides about both, and KORS's weight is 1/p
        (Corollary 1). "weighted": as "independent", but rounds in A have weight 1/p (section 6).
    seed : int
        Of the coins: ``[seed, 0]`` of KORS, ``[seed, 1]`` of the inverse.

    Remarks
    -------
    Errata 1 to 6 and 9: a round left out of the inverse keeps its gradient and its projection; KORS
    sees the rescaled kernel, after the label. With a shared coin Corollary 1 holds: (1 - eps) p A_t
    <= p (KORS's A) <= A, p the least probability so far, the first part with high probability for
    the beta of Theorem 2 (but see errata 61). With two coins the second part may fail.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.SketchedKONS(okl.Gaussian(1.0), gamma=0.1)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), learner.sketch_size
    (0.08, 69)
    """

    _: KW_ONLY
    gamma: float = field_in("(0, 1]", 0.1)
    beta: float = positive(1.0)
    eps: float = field_in("(0, 1)", 0.5)
    sampling: str = choice(("independent", "shared", "weighted"), "independent")
    seed: int = random_seed(0)

    @property
    def sketch_size(self) -> int:
        """Points in the inverse."""
        return int(self._counts[loops.IN_A])

    def _start(self, d: int) -> None:
        p, shared = self._hyper, self._hyper.sampling == "shared"
        rule, floor = JoiningRule(p.alpha, p.beta, p.eps), p.gamma if shared else 0.0
        self._sampling = loops.Sampling(rule, p.gamma, floor, p.sampling == "weighted")
        self._kors_coins, self._coins = Coins([p.seed, 0]), Coins([p.seed, 1])
        super()._start(d)

    def _make_work(self, state: loops.KernelFormState, rooms: dict[int, int]) -> loops.Work:
        return loops.Work(*aligned_zeros(4, max(rooms.values())))

    def _play_some(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> tuple[int, int]:
        n, loop = len(X), enter(loops.sketched_kons_rounds)
        kors_coins, coins = self._kors_coins.take(n), self._coins.take(n)
        if self._hyper.sampling == "shared":
            kors_coins = coins
        rounds = loops.Rounds(y, self._choose_steps(n), kors_coins, coins)
        rules, out = (self._kernel, self._newton, self._sampling), Out(*trace[:2])
        return self._play_with_room(lambda first: loop(
            X, rounds, first, *rules, *self._state, self._work, out
        ))  # fmt: skip
