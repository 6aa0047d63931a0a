"""Online ridge regression and the Azoury-Warmuth-Vovk forecaster, on all of an RKHS or a subspace.

After Jezequel, Gaillard and Rudi 2019, "Efficient online learning with kernels for adversarial
large scale problems" (pkawv below).

On all of it KernelAWV and KernelRidge, whose loops are in hot/kernel_awv.py. In a subspace, on
FeatureFactor and FeatureRidge, PKAWV and the linear forecasters; the loops are in hot/awv.py.
"""

from collections.abc import Callable, Iterable
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components.dictionaries import KORS
from oklnumba.components.features import FeatureRows, Features, NystromFeatures, check_features
from oklnumba.components.kernels import Compiled, Kernel, check_kernel
from oklnumba.core import cholesky
from oklnumba.core.arrays import FEATURE_ROWS, aligned_zeros, make_pass_work, round_up_to_vector
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.params import KW_ONLY, choice, discount_factor, positive, required
from oklnumba.hot import awv as loops
from oklnumba.hot.kernel_awv import (
    KernelAWVState,
    kernel_awv_forecasts,
    kernel_awv_rounds,
    kernel_awv_rows,
)
from oklnumba.hot.primitives.factor import PassWork, finish_pending
from oklnumba.hot.primitives.jit import ATOMS, NOT_FINITE, NOT_POSITIVE, enter
from oklnumba.hot.primitives.linalg import solve_upper
from oklnumba.hot.primitives.udu import NO_DISCOUNT, Forgetting
from oklnumba.learners.base.engine import Facts
from oklnumba.learners.base.expansion import largest_norm
from oklnumba.learners.base.growing_factor import GrowingFactor
from oklnumba.learners.base.learner import Learner, Trace
from oklnumba.learners.base.linear import Game
from oklnumba.learners.base.states import OnFeatures, WithFactor
from oklnumba.learners.base.traits import Traits

FORECASTERS = "awv", "ridge"
TOTALS = 5  # running sums of the certificate, of each output (hot/awv.py)

FactorT = TypeVar("FactorT", bound=WithFactor)
FeaturesT = TypeVar("FeaturesT", bound=OnFeatures)

REMEDY = "raise lam, or scale the inputs and labels"
CERTIFIED = Traits(certificate_rows=3, outputs_at_once=True)


def make_results(n: int, outputs: int) -> loops.AWVResults:
    """Return room for the results of n rounds; nothing has grown."""
    forecasts, ridge, growth = np.zeros((3, n, outputs))
    return loops.AWVResults(forecasts, ridge, np.empty(n), growth)


def share_trace(
    totals: np.ndarray, trace: Trace, results: loops.AWVResults
) -> tuple[loops.AWVResults, loops.Certificate]:
    """Return results and a certificate whose common arrays are those of a trace (views)."""
    if len(trace.sizes) > len(results.a):  # loops do not check
        raise IndexError(f"{len(trace.sizes)} rounds; there is room for {len(results.a)}")
    arrays = trace.predictions, *trace.certificate
    forecasts, *sums = [a.reshape(-1, len(totals)) for a in arrays]
    return loops.AWVResults(forecasts, *results[1:]), loops.Certificate(totals, *sums)


def make_forgetting(discount: float, lam: float) -> Forgetting:
    """Return the discount of A = lam I + ...; without one there is no floor either."""
    return NO_DISCOUNT if discount == 1.0 else Forgetting(discount, 1.0 / discount, 1.0 / lam)


def describe_space(learner: Learner, space: str) -> Facts:
    """Return the facts that name the space of a certificate, with the discount if there is one."""
    discount = learner._hyper.discount
    return Facts(space if discount == 1.0 else f"{space}, rounds discounted by {discount:g}")


class KernelAWV(GrowingFactor[KernelAWVState, None]):
    """Exact Kernel-AWV (pkawv section 2, eq. 3).

    f_t = argmin_f sum_{s<t} (y_s - f(x_s))^2 + lam |f|^2 + f(x_t)^2 over the RKHS, forecast
    f_t(x_t). Its regret against every f is at most lam |f|^2 + B^2 log det(I + K / lam) for labels
    in [-B, B], without knowing B beforehand (Proposition 1).

    O(t^2) time per round, 4 t^2 bytes after t rounds (8 t^2 of address space).

    Parameters
    ----------
    kernel : Kernel
    lam : float > 0
        Regularisation.

    Remarks
    -------
    As published. The forecast is that of ridge regression times lam / s, s = lam + k(x, x) - k'(K +
    lam I)^-1 k. It shrinks at new points, and more the smaller lam is: where labels have little
    noise, KernelRidge loses far less (docs/awv_or_ridge.md).

    Examples
    --------
    >>> learner = okl.KernelAWV(okl.Gaussian(sigma=1.0), lam=1.0)
    >>> _ = learner.partial_fit([[0.0], [1.0]], [1.0, -1.0])
    >>> round(learner.predict_one([0.0]), 6)
    0.194822
    """

    _layout = KernelAWVState
    _REMEDY = REMEDY
    _traits = CERTIFIED._replace(run_rows=1024, block_rows=cholesky.BLOCK)
    _forecaster = "awv"
    _INSTEAD = "use PKAWV or NystromAWV"

    kernel: Kernel = required(check_kernel)
    _: KW_ONLY
    lam: float = positive(1.0)

    def _start(self, d: int) -> None:
        self._lam, kernel = self._hyper.lam, self._hyper.kernel
        self._kernel = kernel._code() if isinstance(kernel, Compiled) else None
        self._is_ridge = self._forecaster == "ridge"
        self._make_state(outputs=self._outputs, totals=TOTALS, d=d, counts=1)
        self._one_round = make_results(1, self._outputs)

    def _facts(self) -> Facts:
        return Facts(f"the RKHS of {self._params_in_force()['kernel']!r}")

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._reserve_ahead()
        t, b = self._played, len(X)
        self._reserve({ATOMS: t + b + 1})  # the last one is for single forecasts
        results = self._one_round if b == 1 else make_results(b, self._outputs)
        out, certificate = share_trace(self._state.totals, trace, results)
        if bad_row := self._write_rows(X):
            self._raise_status(NOT_POSITIVE, bad_row - 1)
        Y = y.reshape(b, self._outputs)
        play = enter(kernel_awv_rounds)
        play(self._state.L, self._state.u, Y, t, self._lam, self._is_ridge, out)
        finite = np.isfinite(out.forecasts).all(axis=1) & np.isfinite(out.a)
        if not finite.all():
            self._raise_status(NOT_FINITE, int(np.argmin(finite)))
        trace.sizes[:] = np.arange(t + 1, t + b + 1)
        enter(loops.certify)(Y, 0, b, self._is_ridge, out, 1.0, certificate)
        self._played = self._counts[ATOMS] = t + b

    def _write_rows(self, X: np.ndarray) -> int:
        """Write inputs and rows of L behind those of the past, unless a forecast did.

        Returns which row, counted from 1, has a pivot that is not positive; 0 if none has.
        """
        if self._take_forecast(X):
            return 0
        t, b = self._played, len(X)
        past, L = self._state.past, self._state.L
        past[:, t : t + b] = X.T
        with cholesky.limit_threads(t, b):
            if self._kernel is not None:
                kernel_awv_rows(self._kernel, X, past, t, self._lam, L)
            else:
                self._evaluate_rows(X)
            return cholesky.append_rows(L, t, b)

    def _evaluate_rows(self, X: np.ndarray) -> None:
        """Write the rows of a user's kernel into L, as kernel_awv_rows does."""
        t, values = self._played, np.empty((len(X), self._played + len(X)))
        self._hyper.kernel._write_block(X, self._state.past, values.shape[1], values)
        for i, row in enumerate(values, start=t):
            self._state.L[i, : i + 1] = row[: i + 1]
            self._state.L[i, i] += self._lam

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        t, n, lam = self._played, len(X), self._lam
        forecasts = np.empty((n, self._outputs))
        if n == 1 and t < self._rooms[ATOMS] and not self._write_rows(X):
            # A trial round behind those in use. Its label 0 reaches only u_t, which the next round
            # overwrites; the input and its row of L stay if x is the same.
            Y, out = np.zeros_like(forecasts), self._one_round._replace(forecasts=forecasts)
            play = enter(kernel_awv_rounds)
            play(self._state.L, self._state.u, Y, t, lam, self._is_ridge, out)
            self._note_forecast(X)
        else:
            rows, deltas = np.empty((n, t)), np.empty(n)
            self._hyper.kernel._write_block(X, self._state.past, t, rows)
            with cholesky.limit_threads(t, n):
                cholesky.solve_rows(self._state.L, rows, t)
            self._hyper.kernel._write_diagonal(X, deltas)
            kernel_awv_forecasts(rows, deltas, self._state.u, t, lam, self._is_ridge, forecasts)
        return forecasts if self._outputs > 1 else forecasts[:, 0]

    def _matrices(self) -> list[Part]:
        state, t = self._state, self._played
        matrix, past = Factored(state.L, t, lower=True), state.past[:, :t].T
        reach = largest_norm(self._hyper.kernel, past)  # |L^-1 k| <= |k(x, .)|
        solutions = [matrix.half_solve(u) for u in state.u]
        scales = state.totals[:, loops.LARGEST]
        return [measure_part("K + lam I", matrix, solutions, scales, reach)]


class KernelRidge(KernelAWV):
    """Online kernel ridge regression: f_t = argmin_f sum_{s<t} (y_s - f(x_s))^2 + lam |f|^2.

    Time and memory as of KernelAWV (pkawv section 2). Cut to [-B, B], where labels are, its regret
    is at most lam |f|^2 + 4 B^2 log det(I + K / lam) (``theory.ridge_bound``).

    Parameters
    ----------
    kernel, lam
        As in KernelAWV.

    Remarks
    -------
    As published.

    Examples
    --------
    >>> learner = okl.KernelRidge(okl.Gaussian(sigma=1.0), lam=1.0)
    >>> _ = learner.partial_fit([[0.0], [1.0]], [1.0, -1.0])
    >>> round(learner.predict_one([0.0]), 6)
    0.282367
    """

    _forecaster = "ridge"


class FeatureFactor(Learner[FactorT, PassWork]):
    """A learner in the coordinates of some features, with a factor of A.

    A = U' D U = lam I + the sum of the rounds' weighted z z'.
    """

    @property
    def size(self) -> int:
        """Number of features; 0 before any data."""
        return self._r if self._width is not None else 0

    def _start_factor(
        self, writer: tuple[Callable, int], discount: float = 1.0, **lengths: int
    ) -> None:
        """Make the state for a feature map's ``_writer``; ``lengths`` are those of other arrays."""
        (write, self._r), lam = writer, self._hyper.lam
        columns = self._columns = round_up_to_vector(self._r)  # zeros follow the last feature
        try:
            self._make_state(outputs=self._outputs, r=columns, pending=2, **lengths)
        except MemoryError as error:
            raise MemoryError(
                f"a factor of {columns} x {columns} numbers does not fit in memory ({error}); take "
                "fewer features: a lower degree, a smaller rank"
            ) from None
        np.fill_diagonal(self._state.factor.U, 1.0)
        self._state.factor.inv_d[:] = 1.0 / lam
        self._work = make_pass_work(self._state.factor.U)
        self._features = FeatureRows(write, aligned_zeros(FEATURE_ROWS, columns))
        self._forgetting = make_forgetting(discount, lam)

    def _settle(self) -> None:
        finish_pending(self._state.factor, self._forgetting, self._work)

    def _measure_factor(self, scales: Iterable[float]) -> list[Part]:
        """Return the part of A; scales : of each output's forecasts."""
        self._settle()
        r, factor = self._r, self._state.factor
        matrix = Factored(factor.U, r, 1.0 / factor.inv_d[:r])
        solutions = [matrix.half_solve(c) for c in factor.c]
        return [measure_part("lam I + sum z z'", matrix, solutions, scales)]


class FeatureRidge(FeatureFactor[FeaturesT]):
    """AWV and ridge regression in the coordinates of some features; the factor U' D U of A."""

    _REMEDY = REMEDY
    _traits = CERTIFIED._replace(in_threads=True, block_rows=FEATURE_ROWS)

    def _start_forecaster(self, forecaster: str) -> None:
        """Take the forecaster, and make room for what rounds write."""
        self._is_ridge = forecaster == "ridge"
        self._single_arguments: tuple | None = None  # those of single rounds
        self._results = make_results(FEATURE_ROWS, self._outputs)

    def _arguments(self, trace: Trace) -> tuple:
        """Return what both loops take after features and labels; for a forecast, drop the last.

        Those of single rounds are made once: their trace and all arrays stay the same.
        """
        is_single = trace is self._single.trace
        if is_single and self._single_arguments is not None:
            return self._single_arguments
        trace.sizes.fill(self._r)
        stretch = loops.Stretch(0, len(trace.sizes), self._columns, self._columns)
        factor, forgetting, work = self._state.factor, self._forgetting, self._work
        out, certificate = share_trace(self._state.totals, trace, self._results)
        arguments = stretch, factor, forgetting, work, self._is_ridge, out, certificate
        if is_single:
            self._single_arguments = arguments
        return arguments

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        Z, Y = self._features.of(X, self._take_forecast(X)), y.reshape(len(y), self._outputs)
        play = enter(loops.awv_rounds)
        self._count_rounds(len(X), *play(Z, Y, *self._arguments(trace)))

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        single = self._single.trace  # None before the first single round
        trace = single if len(X) == 1 and single is not None else self._trace(len(X))
        Z = self._features.of(X, self._take_forecast(X))
        self._note_forecast(X)
        enter(loops.awv_forecasts)(Z, *self._arguments(trace)[:-1])
        return trace.predictions

    def _matrices(self) -> list[Part]:
        return self._measure_factor(self._state.totals[:, loops.LARGEST])


class PKAWV(FeatureRidge[loops.FeatureState]):
    """PKAWV: the AWV forecaster on the span of fixed features (pkawv Algorithm 1, eq. 4).

    With Taylor features of degree M its regret is at most 1.5 times the bound of Kernel-AWV for M
    of order log(n / lam) (Theorem 4); with any projection, Theorem 3 adds (mu + lam) n mu B^2 /
    lam^2 (``theory.pkawv_bound``).

    O(r^2) time per round and memory for r features.

    Parameters
    ----------
    features : Features
        TaylorFeatures, FourierFeatures, NystromFeatures or BasisFeatures.
    lam : float > 0
        Regularisation.
    forecaster : {"awv", "ridge"}
        "ridge" leaves out the term f(x_t)^2: online ridge regression on the features.
    discount : float in (0, 1]
        Weight of a round in the next one's past, in all sums: 2 ** (-1 / h) for a half-life of h
        rounds; 1 forgets nothing.

    Remarks
    -------
    The inverse A^-1 of the listing is replaced by the factor U' D U of A: half the work, no drift,
    and small lam is safe. Errata 21: the forecast uses A_t, which includes x_t. Where labels have
    little noise, "ridge" loses less (docs/awv_or_ridge.md).

    With ``discount`` g < 1 this is the discounted Vovk-Azoury-Warmuth forecaster of Jacobsen and
    Cutkosky (2024, ICML, "Online linear regression in dynamic environments via discounting"), for
    streams that drift: A_t = g A_{t-1} + z_t z_t', b likewise, and the certificate is of the
    discounted sums. Ours is the floor: after each discount the pivots D_k of A = U' D U are raised
    to lam; else lam g^t would fall below the smallest double. That adds the penalty (lam - D_k)
    (u_k.w - c_k)^2, u_k the row of U, which vanishes at the present estimate and depends on the
    order of the features; ``theory.discounted_awv_bound``, on the dynamic regret, counts these.

    Examples
    --------
    >>> learner = okl.PKAWV(okl.TaylorFeatures(degree=3, sigma=1.0), lam=1.0)
    >>> _ = learner.partial_fit([[0.0], [1.0]], [1.0, -1.0])
    >>> round(learner.predict_one([0.0]), 4)
    0.1933
    """

    _layout = loops.FeatureState

    features: Features = required(check_features)
    _: KW_ONLY
    lam: float = positive(1.0)
    forecaster: str = choice(FORECASTERS, "awv")
    discount: float = discount_factor(1.0)

    @classmethod
    def known_inputs(
        cls, kernel: Kernel, X: ArrayLike, lam: float = 1.0, mu: float = 1.0, beta: float = 1.0,
        eps: float = 0.5, forecaster: str = "awv", seed: int = 0, discount: float = 1.0,
    ) -> Self:  # fmt: skip
        """Return PKAWV on a KORS dictionary of all inputs X of the stream to come (Corollary 8).

        X is (n, d); the others are as in PKAWV and KORS (alpha := mu).

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> run = okl.run(okl.PKAWV.known_inputs(okl.Gaussian(1.0), X), X, X[:, 0] * X[:, 1])
        >>> bool(run.sizes[0] == run.sizes[-1] < 60)
        True
        """
        sampler = KORS(kernel, alpha=mu, beta=beta, eps=eps, seed=seed).partial_fit(X)
        features = NystromFeatures(sampler.landmarks_, kernel)
        return cls(features, lam=lam, forecaster=forecaster, discount=discount)

    def _start(self, d: int) -> None:
        p = self._hyper
        self._start_factor(p.features._writer(d), p.discount, totals=TOTALS)
        self._start_forecaster(p.forecaster)

    def _feature_map(self) -> Features:
        return self._hyper.features

    def _facts(self) -> Facts:
        return describe_space(self, f"the {self._r} {self._hyper.features.kind}")


class LinearAWV(Game[loops.FeatureState, PassWork], FeatureRidge[loops.FeatureState]):
    """The Azoury-Warmuth-Vovk forecaster on the inputs themselves (pkawv section 2; oco section 4).

    argmin_w sum_{s<t} (y_s - w.x_s)^2 + lam |w|^2 + (w.x_t)^2 at x_t; O(d^2) per round. Its regret
    against every w is at most lam |w|^2 + B^2 log det(I + K / lam).

    Parameters
    ----------
    lam, discount
        As in PKAWV.

    Remarks
    -------
    PKAWV with the identity for features. Its point depends on x_t, which a gradient does not tell:
    ``w`` is the ridge estimate so far, and ``update(g)`` is refused.

    Examples
    --------
    >>> learner = okl.LinearAWV(lam=1.0).learn_one([1.0], 1.0)
    >>> learner.w, round(learner.predict_one([1.0]), 4)
    (array([0.5]), 0.3333)
    """

    _layout = loops.FeatureState
    _forecaster, _can_widen = "awv", True

    lam: float = positive(1.0)
    _: KW_ONLY
    discount: float = discount_factor(1.0)

    def _start(self, d: int) -> None:
        def write(X: np.ndarray, out: np.ndarray) -> None:
            out[: len(X), :d] = X

        self._start_factor((write, d), self._hyper.discount, totals=TOTALS)
        self._start_forecaster(self._forecaster)

    def _facts(self) -> Facts:
        return describe_space(self, f"the linear functions of {self.size} inputs")

    @property
    def w(self) -> np.ndarray:
        """The ridge estimate from the rounds so far, shape (d,)."""
        if not self._ready():
            raise ValueError("there is no point yet: call reset(d) first")
        w = self._state.factor.c.copy()
        for row in w:
            solve_upper(self._state.factor.U, row, len(row))
        return (w if self._outputs > 1 else w[0])[..., : self._width].copy()

    def update(self, g: ArrayLike) -> None:
        """Raise ValueError: least squares needs x and y, a gradient is only their product."""
        raise ValueError(
            f"{type(self).__name__} needs x and y, which the gradient g does not tell; use "
            "learn_one(x, y), or play g with OnlineNewtonStep or ExpConcaveFTRL"
        )


class LinearRidge(LinearAWV):
    """Online ridge regression on the inputs themselves (pkawv section 2; oco section 4).

    argmin_w sum_{s<t} (y_s - w.x_s)^2 + lam |w|^2; O(d^2) per round.

    Parameters
    ----------
    lam, discount
        As in LinearAWV.

    Remarks
    -------
    As published, but for the discount (see PKAWV). Bound as of KernelRidge.

    Examples
    --------
    >>> okl.LinearRidge(lam=1.0).learn_one([1.0], 1.0).predict_one([1.0])
    0.5
    """

    _forecaster = "ridge"
