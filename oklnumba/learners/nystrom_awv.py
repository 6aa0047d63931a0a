"""AWV and ridge regression on a growing Nystrom subspace (pkawv Algorithm 2)."""

from dataclasses import KW_ONLY
from typing import NamedTuple

import numpy as np

from oklnumba.components.dictionaries import sampler_field
from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.core import arrays
from oklnumba.core.arrays import FEATURE_ROWS, aligned_zeros
from oklnumba.core.health import Part
from oklnumba.core.params import (
    choice,
    count,
    discount_factor,
    field_in,
    positive,
    random_seed,
    required,
)
from oklnumba.hot import nystrom_awv as loops
from oklnumba.hot.awv import LARGEST
from oklnumba.hot.primitives.dictionary import NUGGET, Points
from oklnumba.hot.primitives.factor import finish_pending
from oklnumba.hot.primitives.jit import ATOMS, enter
from oklnumba.hot.primitives.rows import PASS_ROWS
from oklnumba.learners import awv
from oklnumba.learners.base.engine import Facts, Trace, empty_per_round
from oklnumba.learners.base.sampled_span import SampledSpan

MOST_DIRECTIONS = 120  # of one sample_rounds, before AWV plays its rounds


class Work(NamedTuple):
    """The arguments of the loops: parts of ``_state`` and workspace, put together when it grows."""

    space: loops.Space
    model: loops.Model
    Z: np.ndarray  # as in Sampled, with ``sizes`` of a trace
    ranks: np.ndarray


class NystromAWV(SampledSpan[loops.NystromAWVState, Work]):
    """PKAWV on a growing Nystrom subspace, chosen by KORS (pkawv Algorithm 2, section 3.2).

    At round t KORS decides whether x_t joins the dictionary; the forecast is that of AWV on the
    span of the dictionary, x_t included if it joined, over all past rounds.

    A round takes O(m^2) time for m atoms, and a new atom O(t m), for its column over t past rounds.
    That column needs the past, 8 t (m + d) bytes of coordinates and inputs. Once the dictionary has
    ``max_size`` atoms the past is freed, and memory and time stay flat.

    Parameters
    ----------
    kernel : Kernel
    lam, forecaster, discount
        As in PKAWV. KORS forgets nothing.
    mu > 0, beta > 0, eps in (0, 1) : float
        Regularisation (alpha), oversampling and accuracy of KORS. The smaller mu, the closer the
        subspace comes to the RKHS; Theorem 6 wants mu <= lam.
    sampler : {"kors", "kors_listed"} or float in (0, 1]
        What joins the dictionary. "kors_listed" has the weights 1/p on both sides of the printed
        code (errata 16) and so smaller dictionaries; a number is the probability of uniform
        sampling, which does not use mu, beta and eps.
    max_size : int >= 1, optional
        Largest dictionary.
    seed : int
        Of the coins.

    Remarks
    -------
    Errata 16 to 20: weights 1/sqrt(p) on each side, mu apart from lam, labels (Y_{t-1}, 0), and x_t
    may enter before its forecast. In place of cholup on K'K + lam K_mm we use coordinates in
    which K_mm is the identity, which are far better conditioned. 1e-14 k(x, x) is added to the
    diagonal of K_mm (NUGGET), so that nearly coincident atoms, as in time series, cost no digits;
    an atom that is no further off the span counts in ``size`` and adds no direction. The
    certificate is against the best function of the present space, nugget included, on each prefix
    (without it differences of near atoms may fit far better); its bound adds what each growth of
    the space took off that function's loss.

    With ``discount`` < 1 as in PKAWV, on a space that grows: the column of a new direction over the
    past has the weights discount^(t - s) of the coming round t. The direction, with coordinate v,
    adds the penalty lam v^2, as if it had stood at the floor all the time; penalties of earlier
    floors do not involve v. So A is exact in every round, and the forecast is the argmin of the
    discounted loss over the whole past with the penalties so far.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> run = okl.run(okl.NystromAWV(okl.Gaussian(1.0), seed=0), X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), int(run.sizes[-1])
    (0.074, 38)
    """

    _layout = loops.NystromAWVState
    _REMEDY = awv.REMEDY
    _traits = awv.CERTIFIED._replace(in_threads=True, block_rows=FEATURE_ROWS)

    kernel: Kernel = required(check_kernel)
    _: KW_ONLY
    lam: float = positive(1.0)
    mu: float = positive(1.0)
    beta: float = positive(1.0)
    eps: float = field_in("(0, 1)", 0.5)
    forecaster: str = choice(awv.FORECASTERS, "awv")
    sampler: str | float = sampler_field("kors")
    max_size: int | None = count(None, least=1)
    seed: int = random_seed(0)
    discount: float = discount_factor(1.0)

    def _start(self, d: int) -> None:
        p = self._hyper
        self._joining = self._start_sampling(p.lam)
        self._forgetting = awv.make_forgetting(p.discount, p.lam)
        self._results = awv.make_results(FEATURE_ROWS, self._outputs)
        self._is_ridge = p.forecaster == "ridge"
        self._make_state(outputs=self._outputs, totals=awv.TOTALS, d=d, counts=3, pending=2)
        self._reserve({ATOMS: 1, loops.PAST: 1})

    def _facts(self) -> Facts:
        span = f"the span of the {self.size} atoms of the dictionary, to a nugget of {NUGGET:g}"
        return awv.describe_space(self, span)

    def _choose_room(self, axis: int, least: int) -> int:
        if axis == loops.PAST:
            return super()._choose_room(axis, least)
        # By half only, for Phi has this many numbers for each round of the past.
        room = arrays.round_up_to_vector(max(least, 40, self._rooms[axis] * 3 // 2))
        return arrays.pad_row_length(room)

    def _make_work(self, state: loops.NystromAWVState, rooms: dict[int, int]) -> Work:
        cap, max_size = rooms[ATOMS], float(self._hyper.max_size or np.inf)
        points = Points(np.zeros(3, dtype=np.int64), *aligned_zeros(3, PASS_ROWS, cap))
        rounds, played = np.zeros((2, MOST_DIRECTIONS), dtype=np.int64)
        directions = loops.Directions(
            rounds, played, np.zeros(MOST_DIRECTIONS), aligned_zeros(MOST_DIRECTIONS, cap),
            gains=np.zeros((MOST_DIRECTIONS, self._outputs)),
            points=aligned_zeros(PASS_ROWS, len(state.dictionary.atoms)),
            columns=aligned_zeros(PASS_ROWS, rooms[loops.PAST]),
            weights=aligned_zeros(rooms[loops.PAST]),
        )  # fmt: skip
        space = loops.Space(
            self._kernel, self._joining, max_size, self._hyper.discount,
            dictionary=state.dictionary, past=state.past, points=points,
            probability=np.zeros(1), v=aligned_zeros(cap), directions=directions,
        )  # fmt: skip
        model = loops.Model(
            self._hyper.lam, self._is_ridge, self._forgetting,
            factor=state.factor, work=arrays.make_pass_work(state.factor.U),
        )  # fmt: skip
        ranks = np.zeros(FEATURE_ROWS + 1, dtype=np.int64)
        return Work(space, model, aligned_zeros(FEATURE_ROWS, cap), ranks)

    def _exchange(self, state: loops.NystromAWVState, rooms: dict[int, int]) -> None:
        super()._exchange(state, rooms)
        self._forget_forecast()  # space.points is new: it does not hold what a forecast wrote

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        n = len(X)
        Y, coins = y.reshape(n, self._outputs), self._coins.take(n)
        # The totals stay as arrays grow.
        out, certificate = awv.share_trace(self._state.totals, trace, self._results)
        play = enter(loops.nystrom_awv_rounds)

        def rounds(first: int) -> tuple[int, int]:
            space, model, Z, ranks = self._work
            sampled = loops.Sampled(Z, ranks, trace.sizes)
            was_forecast = self._take_forecast(X)  # once: in a second call the point is new
            return play(X, Y, first, coins, was_forecast, space, sampled, model, out, certificate)

        self._play_loop(n, rounds)  # makes room when asked, and calls it again
        if self.size == self._hyper.max_size and self._rooms[loops.PAST] > 0:
            self._free(loops.PAST)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        self._reserve({ATOMS: self.size + 1})  # borrow_direction may write one more column
        forecasts = empty_per_round(len(X), self._outputs)
        self._forget_forecast()  # until it is whole: Ctrl-C may come between
        columns = forecasts.reshape(len(X), self._outputs)
        forecast = enter(loops.nystrom_awv_forecasts)
        forecast(X, self._coins.next, self._work.space, self._work.model, columns)
        self._note_forecast(X)
        return forecasts

    def _settle(self) -> None:
        model = self._work.model
        finish_pending(model.factor, model.forgetting, model.work)

    def _matrices(self) -> list[Part]:
        self._settle()
        return self._measure_span("lam I + sum z z'", self._state.totals[:, LARGEST])
