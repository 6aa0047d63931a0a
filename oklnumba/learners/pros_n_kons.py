"""Pros-N-KONS, CON-KONS, NONS-ALD: the online Newton step on the span of a dictionary."""

from functools import partial

import numpy as np

from oklnumba.components.dictionaries import check_sampler
from oklnumba.core.arrays import aligned_zeros, round_up_to_vector
from oklnumba.core.health import Part
from oklnumba.core.params import KW_ONLY, field_in, field_with, flag, positive, random_seed
from oklnumba.hot import pros_n_kons as loops
from oklnumba.hot.newton import Step
from oklnumba.hot.primitives.jit import ATOMS, Out, enter
from oklnumba.learners.base.learner import Trace
from oklnumba.learners.base.sampled_span import SampledSpan
from oklnumba.learners.kons import Curved
from oklnumba.learners.newton import NEWTON


class ProsNKONS(
    SampledSpan[loops.ProsNKONSState, loops.Work], Curved[loops.ProsNKONSState, loops.Work]
):
    """Pros-N-KONS and CON-KONS: the online Newton step on the span of a KORS dictionary.

    Calandriello, Lazaric and Valko 2017, "Efficient second-order online kernel learning with
    adaptive embedding" (NIPS), Algorithm 1. KORS decides whether x_t joins the dictionary; then the
    projected Newton step of KONS is played in the dictionary's span, with A = alpha I + sum (eta /
    2) g g'. When the dictionary grows, Pros-N-KONS starts again (w = 0, A = alpha I), and CON-KONS
    (``restart=False``) goes on with w and A. O(m^2) time per round and 8 m (d + 3 m) bytes for m
    atoms, whatever the number of rounds.

    Parameters
    ----------
    kernel, loss, C, alpha, eta
        As in KONS with the constant schedule.
    mu, beta, eps, sampler
        Of KORS, as in NystromAWV. Or ``sampler="ald"``: x_t joins if its squared distance to the
        span is more than mu.
    restart : bool
        False: CON-KONS; with the sampler "ald" NONS-ALD of Li and Liao 2023 (ICML), whose code has
        alpha = 1, mu = 25 / n and eta = 1 / (2 C^2 + 2).
    seed : int
        Of the coins.

    Remarks
    -------
    The embedding Sigma^-1 U' k of the paper is replaced by a rotation of it, R^-T k with K = R' R:
    the same forecasts. K has 1e-14 k(x, x) added to its diagonal (NUGGET). Restarts cost much on
    short streams: each new atom brings a forecast of 0 and a fresh A.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.ProsNKONS(okl.Gaussian(1.0))
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), learner.size, learner.restarts
    (0.299, 38, 37)
    """

    _layout = loops.ProsNKONSState
    _FIRST_ROOM = 32
    _REMEDY = "raise alpha or mu, lower eta, or scale the inputs"

    _: KW_ONLY
    mu: float = positive(1.0)
    beta: float = positive(1.0)
    eps: float = field_in("(0, 1)", 0.5)
    sampler: str | float = field_with(
        partial(check_sampler, names=("kors", "kors_listed", "ald")), "kors"
    )
    restart: bool = flag(True)
    seed: int = random_seed(0)

    @property
    def restarts(self) -> int:
        """How often a new atom made w and A start again (the first atom does not count)."""
        return int(self._counts[loops.RESTARTS])

    def _advice(self, X: np.ndarray) -> str | None:
        """Say so if no point is far enough off the span to join."""
        p = self._checked_params()
        most = float(p.kernel.diag(X).max())
        if p.sampler == "ald" and p.mu >= most:
            return (
                f"mu={p.mu:g} is at least k(x, x), so hardly a point joins the dictionary and all "
                f"forecasts are about 0; take mu below {most:.3g}, such as 25 / n for n rows"
            )
        return super()._advice(X)

    def _start(self, d: int) -> None:
        p = self._hyper
        ald = p.mu if p.sampler == "ald" else 0.0
        self._growth = loops.GrowthRule(self._start_sampling(p.alpha), ald, p.alpha, p.restart)
        eta = p.eta or self._loss().curvature(p.C)
        self._step = Step(self._loss_code, 0.5 * eta, p.C)
        self._make_state(d=d, counts=3)
        self._reserve({ATOMS: 1})

    def _choose_room(self, axis: int, least: int) -> int:
        return round_up_to_vector(super()._choose_room(axis, least))

    def _make_work(self, state: loops.ProsNKONSState, rooms: dict[int, int]) -> loops.Work:
        k, b, q, p, beta, scan, a = aligned_zeros(7, rooms[ATOMS])
        return loops.Work(k, b, q, p[np.newaxis], beta[np.newaxis], scan, a)

    @property
    def _arguments(self) -> tuple:
        return self._kernel, self._growth, self._step, self._state, self._work

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        loop, coins = enter(loops.pros_n_kons_rounds), self._coins.take(len(X))
        out = Out(*trace[:2])
        self._play_loop(len(X), lambda first: loop(X, y, coins, first, *self._arguments, out))

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        loop, forecasts = enter(loops.pros_n_kons_forecasts), np.empty(len(X))
        loop(X, self._coins.next, *self._arguments, forecasts)
        return forecasts

    def _matrices(self) -> list[Part]:
        return self._measure_span(NEWTON, [self._hyper.C])
