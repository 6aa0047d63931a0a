"""Linear learners whose round takes O(d): the FTRL family, Perceptron and Winnow.

After Zhang 2019, "CSC 665: Online convex optimization" (oco below); and coin betting.
"""

from math import inf
from typing import ClassVar

import numpy as np

from oklnumba.components.losses import loss_field
from oklnumba.components.potentials import check_p
from oklnumba.core.checks import require_positive
from oklnumba.core.health import Part, measure_dense_part
from oklnumba.core.params import KW_ONLY, choice, field_with, positive
from oklnumba.hot import coin_betting
from oklnumba.hot import first_order as loops
from oklnumba.hot.primitives.jit import DIVERGED, DONE, LARGEST_FORECAST, NOT_FINITE, enter
from oklnumba.hot.primitives.linalg import dot, product_rows
from oklnumba.hot.primitives.losses import MISTAKE_LOSS, round_derivative
from oklnumba.learners.base.linear import EitherLearner, LinearLearner

# Of t in the step, for a schedule of OGD.
POWERS = {"constant": 0.0, "sqrt": 0.5, "strong": 1.0, "gradient": loops.OF_LENGTHS}


class _FirstOrder(LinearLearner[loops.LeaderState, None]):
    """Learners whose round takes O(d): one compiled loop, several rules, ``_rule``."""

    _layout = loops.LeaderState
    _rule: ClassVar[int]  # its code

    def _choose_steps(self) -> loops.Steps:
        """Return the rule and the hyper-parameters that the loop takes."""
        given = vars(self._hyper)
        taken = {name: float(given[name]) for name in loops.Steps._fields[1:] if name in given}
        return loops.Steps(self._rule, **taken)

    def _start(self, d: int) -> None:
        self._steps = self._choose_steps()
        self._make_state(clock=2, d=d)
        if self._steps.rule == loops.ENTROPY:  # the first point is the centre of the simplex
            self._state.w[:] = self._steps.scale / d

    def _rounds(self, X: np.ndarray, y: np.ndarray, loss: int, out: np.ndarray) -> tuple[int, int]:
        loop = enter(loops.first_order_rounds)
        return loop(X, y, loss, self._steps, self._state, out)


class OGD(_FirstOrder):
    """Online gradient descent, w <- Proj(w - eta_t g) (oco sections 2.3 and 3, Theorem 5).

    Parameters
    ----------
    eta : float > 0
        Step size, of all schedules but "strong".
    schedule : {"constant", "sqrt", "strong", "gradient"}
        eta_t = eta, eta / sqrt(t), 1 / (lam t) or eta / sqrt(sum_{s<=t} |g_s|^2). The last is the
        mirror descent of oco's footnote 1, for gradients of any scale. Its bound,
        ``theory.gradient_steps_bound``, needs a radius.
    lam : float > 0, optional
        Strong convexity of the losses, for the schedule "strong" only.
    radius : float > 0, optional
        Of the Euclidean ball to project on; None: no projection.
    loss : str
        A loss of losses.py; the game face has no use for it.

    Remarks
    -------
    With a constant step and no projection this is FTRL with |w|^2 / (2 eta). The learner face with
    the schedule "strong" plays lam |w|^2 / 2 + l(w.x, y), which is lam-strongly convex (example of
    oco section 3; Pegasos with the hinge loss); l alone is not.

    Examples
    --------
    >>> game = okl.OGD(eta=0.5).reset(2)
    >>> game.update([1.0, 0.0]).w
    array([-0.5,  0. ])
    """

    _rule = loops.GRADIENT_STEP
    _REMEDY = "lower eta (with schedule='strong' raise lam), or scale the inputs and labels"

    eta: float = positive(0.1)
    _: KW_ONLY
    schedule: str = choice(POWERS, "constant")
    lam: float | None = positive(None)
    radius: float | None = positive(None)
    loss: str = loss_field("squared")

    def _check_params(self) -> None:
        if self.schedule == "strong":
            require_positive("lam", self.lam)
            why = "the steps of schedule='strong' are 1 / (lam t); set lam instead"
            self._refuse_unused(why, "eta")
        else:
            self._refuse_unused("it is for schedule='strong'; leave it out", "lam")

    def _choose_steps(self) -> loops.Steps:
        p = self._hyper
        lam, power = p.lam or 0.0, POWERS[p.schedule]  # lam is None but for "strong"
        return loops.Steps(self._rule, p.eta, power, lam, radius=p.radius or inf, decay=lam)


class LazyOGD(_FirstOrder):
    """Online gradient descent with lazy projection: w = Proj(-eta sum g) (oco Example 6.3).

    Parameters
    ----------
    eta, loss
        As in OGD.
    radius : float > 0
        Of the Euclidean ball.

    Remarks
    -------
    As published: FTRL with |w|^2 / (2 eta), on a ball.

    Examples
    --------
    >>> okl.LazyOGD(eta=1.0, radius=1.0).update([3.0, -4.0]).w
    array([-0.6,  0.8])
    """

    _rule = loops.LAZY_BALL

    eta: float = positive(0.1)
    _: KW_ONLY
    radius: float = positive(1.0)
    loss: str = loss_field("squared")


class PNorm(_FirstOrder):
    """The p-norm algorithm: FTRL with |w|_p^2 / (2 eta) (oco section 2.3, item 3).

    Gradient descent for p = 2; for p near 1 it suits sparse comparators.

    Parameters
    ----------
    eta, loss
        As in OGD.
    p : float, 1 < p <= 2
        2 log(d) / (2 log(d) - 1) suits comparators of small 1-norm.

    Remarks
    -------
    As published; the tuned step is (B/R) sqrt((p-1)/(2T)) (errata 44).

    Examples
    --------
    >>> okl.PNorm(eta=1.0, p=2.0).update([3.0, -4.0]).w
    array([-3.,  4.])
    """

    _rule = loops.P_NORM

    eta: float = positive(0.1)
    _: KW_ONLY
    p: float = field_with(check_p, 1.5)
    loss: str = loss_field("squared")


class ExponentiatedGradient(_FirstOrder):
    """Exponentiated gradient, or Hedge: FTRL with the entropy on a simplex (oco section 2.3).

    w_i = scale exp(-eta sum g_i) / Z. As a game on losses of experts it is Hedge; ``Hedge`` is this
    class.

    Parameters
    ----------
    eta, loss
        As in OGD.
    scale : float > 0
        The simplex is {w >= 0, sum w = scale}.

    Remarks
    -------
    oco Example 6.1 leaves the normalisation out. The learner face reports the forecast 0 in the
    first round, whose update is at the centre of the simplex, the point of the game. For negative
    weights give the features (x, -x).

    Examples
    --------
    >>> game = okl.ExponentiatedGradient(eta=1.0).reset(2)
    >>> game.w, game.update([0.0, 1.0]).w.round(4)
    (array([0.5, 0.5]), array([0.7311, 0.2689]))
    """

    _rule = loops.ENTROPY

    eta: float = positive(0.1)
    _: KW_ONLY
    scale: float = positive(1.0)
    loss: str = loss_field("squared")


Hedge = ExponentiatedGradient


class _AdaptiveSteps(_FirstOrder):
    """A_t a multiple of the identity, or diagonal."""

    rule: int
    eta: float
    sigma: float

    def _choose_steps(self) -> loops.Steps:
        return loops.Steps(self.rule, eta=self.eta, sigma=self.sigma)


class _FullAdaGrad(LinearLearner[loops.FullState, None]):
    """A_t = (sigma I + sum g g')^{1/2} / eta: an eigendecomposition per round."""

    _layout = loops.FullState

    eta: float
    sigma: float

    def _start(self, d: int) -> None:
        self._make_state(d=d)
        np.fill_diagonal(self._state.S, self.sigma)

    def _rounds(self, X: np.ndarray, y: np.ndarray, loss: int, out: np.ndarray) -> tuple[int, int]:
        # With O(d^3) per round the loop around it need not be compiled.
        for t, x in enumerate(X):
            out[t] = dot(x, self._state.w, len(x))
            if not abs(out[t]) < LARGEST_FORECAST:
                return t, DIVERGED
            slope = round_derivative(loss, float(out[t]), float(y[t]))
            if slope != 0.0 and not self._learn(slope, x):
                return t, NOT_FINITE
        return len(X), DONE

    def _matrices(self) -> list[Part]:
        # Its root is inverted.
        return [measure_dense_part("(sigma I + sum g g')^(1/2)", self._state.S, 0.5)]

    def _learn(self, slope: float, x: np.ndarray) -> bool:
        """Take w to -A_t^-1 G_t (oco section 2.5, full matrices); False after an overflow."""
        w, G, S = self._state
        with np.errstate(all="ignore"):
            g = slope * x
            G += g
            S += np.outer(g, g)
        if not np.isfinite(S).all():
            return False
        values, vectors = np.linalg.eigh(S)
        root = np.sqrt(np.maximum(values, self.sigma))
        w[:] = -self.eta * (vectors @ ((G @ vectors) / root))
        return True


class AdaptiveFTRL(EitherLearner):
    """FTRL with adaptive regularisation, w_t = -A_{t-1}^-1 sum g (oco section 2.5, Corollary 1).

    Parameters
    ----------
    kind : {"sqrt", "gradient", "adagrad", "adagrad_full"}
        A_t is sqrt(t + 1) I / eta; sqrt(sigma + sum |g|^2) I / eta; (sigma I + diag sum g g')^{1/2}
        / eta; or the same with the full matrix, whose round takes O(d^3).
    eta, loss
        As in OGD.
    sigma : float > 0
        At least the largest |g|^2 (of a coordinate, for "adagrad") for the cleanest bounds; not
        for "sqrt".

    Remarks
    -------
    As published; if bounds are given the step for "sqrt" is eta = B/R (errata 45).

    Examples
    --------
    >>> okl.AdaptiveFTRL("adagrad", eta=1.0, sigma=1.0).update([1.0, -2.0]).w.round(4)
    array([-0.7071,  0.8944])
    """

    _RULES = {"sqrt": loops.SQRT_STEPS, "gradient": loops.LENGTH_STEPS, "adagrad": loops.ADAGRAD}

    kind: str = choice((*_RULES, "adagrad_full"), "sqrt")
    _: KW_ONLY
    eta: float = positive(0.5)
    sigma: float = positive(1.0)
    loss: str = loss_field("squared")

    def _check_params(self) -> None:
        if self.kind == "sqrt":
            self._refuse_unused("kind='sqrt' has no use for it; leave it out", "sigma")

    def _choose(self) -> LinearLearner:
        p = self._hyper
        if p.kind == "adagrad_full":
            return _FullAdaGrad(p.eta, p.sigma)
        return _AdaptiveSteps(self._RULES[p.kind], p.eta, p.sigma)


class StronglyConvexFTRL(_FirstOrder):
    """FTRL for lam-strongly convex losses (oco section 3, Theorem 4): no step size.

    w_t = (sum_{s<t} w_s - sum_{s<t} g_s / lam) / t, with logarithmic regret.

    Parameters
    ----------
    lam : float > 0
        Strong convexity of the losses.
    loss : str
        As in OGD. With the squared loss, which is not Lipschitz, points can grow without bound
        where lam is far below |x|^2.

    Remarks
    -------
    As published. The learner face is that of OGD with the schedule "strong".

    Examples
    --------
    >>> okl.StronglyConvexFTRL(lam=1.0).update([1.0, -2.0]).w
    array([-0.5,  1. ])
    """

    _rule = loops.STRONGLY_CONVEX
    _REMEDY = "raise lam, or scale the inputs and labels"

    lam: float = positive(1.0)
    _: KW_ONLY
    loss: str = loss_field("hinge")

    def _choose_steps(self) -> loops.Steps:
        return super()._choose_steps()._replace(decay=self._hyper.lam)


class CoinBetting(LinearLearner[coin_betting.CoinState, None]):
    """Gradient steps without a step size (Orabona and Pal 2016, Algorithm 1). O(d) per round.

    w is a share of a wealth, bet on where the gradients go. The regret against every u at once is
    of order |u| L sqrt(n log(n |u|)), that of OGD with the best step for |u| but for the logarithm
    (``theory.coin_betting_bound``).

    Parameters
    ----------
    lipschitz : float > 0, optional
        L, a bound on |g|; a longer gradient is an error. None: the largest |g| so far. It is 1 for
        features with |z| = 1 and the hinge, absolute or logistic loss.
    wealth : float > 0
        At the start. The loss against u = 0 is at most L times this, up to rounding: 1e-16 of the
        largest wealth, which may be huge where gradients agreed for long.
    loss : str
        As in OGD; for a bound beforehand one that is Lipschitz.

    Remarks
    -------
    Rounds without a gradient are not counted. With lipschitz=None a gradient longer than all those
    before counts as one of their length L_t, which costs at most (|g_t| - L_t) (|w_t| + |u|), as in
    Cutkosky 2019; without the constraint on |w_t| of that paper it can be large.

    Examples
    --------
    >>> okl.CoinBetting().update([1.0, 0.0]).update([0.0, 1.0]).w.round(4)
    array([-0.3333, -0.3333])
    """

    _layout = coin_betting.CoinState
    _REMEDY = "leave lipschitz out if it is given, or scale the inputs and labels"

    lipschitz: float | None = positive(None)
    _: KW_ONLY
    wealth: float = positive(1.0)
    loss: str = loss_field("hinge")

    def _start(self, d: int) -> None:
        L, wealth = self._hyper.lipschitz, self._hyper.wealth
        self._max_length = inf if L is None else L * (1.0 + 1e-9)  # lengths have rounding
        self._make_state(sums=4, d=d)
        sums = self._state.sums
        sums[coin_betting.HINT], sums[coin_betting.WEALTH] = L or 0.0, wealth

    def _rounds(self, X: np.ndarray, y: np.ndarray, loss: int, out: np.ndarray) -> tuple[int, int]:
        loop = enter(coin_betting.coin_betting_rounds)
        return loop(X, y, loss, self._hyper.wealth, self._max_length, self._state, out)

    def _point(self) -> np.ndarray:
        return self._state.sums[coin_betting.FACTOR] * self._state.S

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        product_rows(X, self._state.S, forecasts)
        return self._state.sums[coin_betting.FACTOR] * forecasts  # in this order, as in a round


class _MistakeDriven(_FirstOrder):
    """Learners that move at a mistake only (oco section 2.4, Algorithm 2)."""

    _loss_code, _fixed_loss = MISTAKE_LOSS, "hinge"


class Perceptron(_MistakeDriven):
    """The Perceptron: w moves by eta y x at a mistake (oco section 2.4, Theorem 2).

    Parameters
    ----------
    eta : float > 0
        Step size; it scales w and changes no forecast's sign, rounding near 0 apart.

    Remarks
    -------
    Labels are -1 and +1; y w.x <= 0 is a mistake, so the first round is one. Runs record the hinge
    loss. Errata 43: the bound without a margin is (L(w) + |w|^2 / (2 eta)) / (1 - eta R^2).

    Examples
    --------
    >>> okl.Perceptron().partial_fit([[1.0, 2.0], [1.0, 1.0]], [1.0, 1.0]).w
    array([1., 2.])
    """

    _rule = loops.GRADIENT_STEP

    eta: float = positive(1.0)


class Winnow(_MistakeDriven):
    """Winnow: w on the simplex is multiplied by exp(eta y x) at a mistake (oco section 2.4).

    Its mistakes grow with the logarithm of d where a sparse w separates the data.

    Parameters
    ----------
    eta : float > 0
        Step size; 1 / (2 R^2) for inputs with |x|_inf <= R.

    Remarks
    -------
    Labels are -1 and +1; runs record the hinge loss. Errata 42: the bound for data with margin 1 is
    4 R^2 log d, not 2 R^2 log d. In the first round the forecast 0 is reported, but whether it is a
    mistake is decided at the centre of the simplex.

    Examples
    --------
    >>> okl.Winnow(eta=1.0).partial_fit([[0.0, -1.0]], [1.0]).w.round(4)
    array([0.7311, 0.2689])
    """

    _rule = loops.ENTROPY

    eta: float = positive(0.5)
