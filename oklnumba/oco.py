"""Linear online convex optimisation: follow the regularised leader and its relatives.

After Zhang 2019, "CSC 665: Online convex optimization" (oco below). Every learner has two faces:

- the game: ``reset(d)``, then each round plays ``w`` and ``update(g)`` takes a (sub)gradient of the
  round's loss at it. Any convex losses will do.
- the learner of this package's protocol: features x, label y, forecast w.x, loss l(w.x, y), whose
  gradient l'(w.x, y) x closes the round; compiled, through ``okl.run``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba import checks, hotloops, losses
from oklnumba.awv import PKAWV
from oklnumba.checks import number, require, require_count, require_positive
from oklnumba.features import Features, check_features
from oklnumba.learner import Learner, Trace, aligned_zeros, padded

ON_SIMPLEX = 1e-9  # how far a point may be off the simplex, relative to its scale
RULES = "lower eta, or scale the inputs and labels"


def as_vector(values: ArrayLike, name: str, width: int | None = None) -> np.ndarray:
    """Return one finite vector as a float64 array of shape (d,); ValueError for anything else."""
    return checks.as_point(values, width, name)[0]


def check_simplex(w: ArrayLike, scale: float = 1.0, name: str = "w") -> np.ndarray:
    """Return a point of the simplex {w >= 0, sum w = scale}.

    Raises
    ------
    ValueError
        If w is not a finite vector, or outside the simplex by more than rounding.
    """
    w = as_vector(w, name)
    if w.min() < -ON_SIMPLEX * scale:
        raise ValueError(
            f"{name} is outside the simplex: it has {w.min():g} at column {int(w.argmin())}; "
            "entries must be at least 0"
        )
    if abs(w.sum() - scale) > ON_SIMPLEX * scale:
        raise ValueError(
            f"{name} is outside the simplex: it sums to {w.sum():.12g}, not {scale:g}; divide it "
            "by its sum"
        )
    return np.maximum(w, 0.0)


# ---- potentials: regularisers, their conjugates and mirror maps ----


@dataclass(frozen=True)
class Potential:
    """A strongly convex regulariser Phi (oco sections 1.5 and 2.1).

    Attributes
    ----------
    name : str
    value, gradient : callable
        Phi(w) and its gradient; ValueError outside the domain.
    conjugate, mirror_map : callable
        Phi*(s) = max_w <s, w> - Phi(w) and its gradient, the maximiser.
    strength : float
        Phi is strength-strongly convex in ``norm``.
    norm, dual_norm : callable

    Examples
    --------
    >>> from oklnumba import oco
    >>> phi = oco.negative_entropy(eta=1.0)
    >>> phi.mirror_map([0.0, 0.0]), round(phi.conjugate([0.0, 0.0]), 6)
    (array([0.5, 0.5]), 0.693147)
    """

    name: str
    value: Callable[[ArrayLike], float]
    gradient: Callable[[ArrayLike], np.ndarray]
    conjugate: Callable[[ArrayLike], float]
    mirror_map: Callable[[ArrayLike], np.ndarray]
    strength: float
    norm: Callable[[ArrayLike], float]
    dual_norm: Callable[[ArrayLike], float]


def p_norm(w: ArrayLike, p: float) -> float:
    """Return |w|_p, p >= 1 or infinity."""
    return float(np.linalg.norm(as_vector(w, "w"), p))


def dual_exponent(p: float) -> float:
    """Return q with 1/p + 1/q = 1; |.|_q is the dual norm of |.|_p (oco Example 1)."""
    require(number(p) and p >= 1 or p == inf, "p", p, "a number >= 1, or infinity")
    return 1.0 if p == inf else inf if p == 1 else p / (p - 1.0)


def mahalanobis_norm(w: ArrayLike, A: np.ndarray) -> float:
    """Return sqrt(w' A w), whose dual norm is that of A^-1 (oco Example 1)."""
    w = as_vector(w, "w", len(A))
    return sqrt(max(float(w @ A @ w), 0.0))


def euclidean(eta: float = 1.0, radius: float | None = None) -> Potential:
    """Return |w|^2 / (2 eta), on a ball if ``radius`` is given (oco Example 6.2, 6.3)."""
    require_positive("eta", eta)
    radius = _radius(radius)

    def inside(w: ArrayLike) -> np.ndarray:
        w = as_vector(w, "w")
        if np.linalg.norm(w) > radius * (1 + ON_SIMPLEX):
            raise ValueError(
                f"w is outside the ball: its norm is {np.linalg.norm(w):g}, the radius {radius:g}"
            )
        return w

    def mirror_map(s: ArrayLike) -> np.ndarray:
        w = eta * as_vector(s, "s")
        hotloops.project_ball(w, radius, len(w))
        return w

    def conjugate(s: ArrayLike) -> float:
        w = mirror_map(s)
        return float(as_vector(s, "s") @ w - w @ w / (2 * eta))

    return Potential(
        f"|w|^2 / (2 {eta:g})" + (f" on the ball of radius {radius:g}" if radius < inf else ""),
        lambda w: float(inside(w) @ inside(w) / (2 * eta)),
        lambda w: inside(w) / eta,
        conjugate,
        mirror_map,
        1.0 / eta,
        lambda w: p_norm(w, 2),
        lambda g: p_norm(g, 2),
    )


def squared_p_norm(eta: float = 1.0, p: float = 1.5) -> Potential:
    """Return |w|_p^2 / (2 eta), 1 < p <= 2 (oco section 2.3, item 3)."""
    require_positive("eta", eta)
    _check_p(p)
    q = dual_exponent(p)

    def mirror_map(s: ArrayLike) -> np.ndarray:
        s = as_vector(s, "s")
        w = np.empty(len(s))
        hotloops.p_norm_map(-s, float(eta), float(p), w, len(w))
        return w

    def gradient(w: ArrayLike) -> np.ndarray:
        w = as_vector(w, "w")
        largest = np.abs(w).max()
        if largest == 0.0:
            return w
        scaled = w / largest
        norm = np.linalg.norm(scaled, p)
        return largest * norm ** (2 - p) * np.sign(w) * np.abs(scaled) ** (p - 1) / eta

    return Potential(
        f"|w|_{p:g}^2 / (2 {eta:g})",
        lambda w: p_norm(w, p) ** 2 / (2 * eta),
        gradient,
        lambda s: eta * p_norm(s, q) ** 2 / 2,
        mirror_map,
        (p - 1.0) / eta,
        lambda w: p_norm(w, p),
        lambda g: p_norm(g, q),
    )


def negative_entropy(eta: float = 1.0, scale: float = 1.0) -> Potential:
    """Return sum w_i log(w_i) / eta on the simplex {w >= 0, sum w = scale} (oco Example 6.1)."""
    require_positive("eta", eta)
    require_positive("scale", scale)

    def value(w: ArrayLike) -> float:
        w = check_simplex(w, scale)
        return float((w * np.log(np.where(w > 0, w, 1.0))).sum() / eta)

    def gradient(w: ArrayLike) -> np.ndarray:
        w = check_simplex(w, scale)
        if w.min() <= 0.0:
            raise ValueError(f"w has 0 at column {int(w.argmin())}; the entropy is smooth inside")
        return (np.log(w) + 1.0) / eta

    def mirror_map(s: ArrayLike) -> np.ndarray:
        s = as_vector(s, "s")
        w = np.empty(len(s))
        hotloops.entropy_map(-s, float(eta), float(scale), w, len(w))
        return w

    def conjugate(s: ArrayLike) -> float:
        s = as_vector(s, "s")
        top = s.max()
        return float(scale * (top + (log(np.exp(eta * (s - top)).sum()) - log(scale)) / eta))

    return Potential(
        f"entropy / {eta:g} on the simplex of sum {scale:g}",
        value,
        gradient,
        conjugate,
        mirror_map,
        1.0 / (eta * scale),
        lambda w: p_norm(w, 1),
        lambda g: p_norm(g, inf),
    )


def bregman(potential: Potential, u: ArrayLike, v: ArrayLike) -> float:
    """Return D(u, v) = Phi(u) - Phi(v) - <grad Phi(v), u - v> (oco Definition 5).

    Examples
    --------
    >>> from oklnumba import oco
    >>> oco.bregman(oco.euclidean(eta=1.0), [3.0, 4.0], [0.0, 0.0])
    12.5
    """
    step = as_vector(u, "u") - as_vector(v, "v", len(as_vector(u, "u")))
    return float(potential.value(u) - potential.value(v) - potential.gradient(v) @ step)


# ---- the two faces ----


class LinearLearner(Learner):
    """A point w in R^d for each round; the base of this module's learners.

    A subclass writes ``_begin_rounds`` (check hyper-parameters, make the state), ``_rounds`` (the
    compiled loop), ``_point`` and ``_ARRAYS``, the names of its state.
    """

    _ARRAYS: tuple[str, ...] = ()
    _remedy = RULES
    _w: np.ndarray

    def reset(self, d: int | None = None) -> Self:
        """Go back to no data, or start a game in R^d; return self.

        Parameters
        ----------
        d : int >= 1, optional
            Number of coordinates; None: given by the first gradient or input.

        Raises
        ------
        ValueError
            If d or a hyper-parameter is out of range.
        """
        if d is not None:
            require_count("d", d, 1)
        super().reset()
        if d is not None:
            self._begin(int(d))
        return self

    @property
    def w(self) -> np.ndarray:
        """The point played now, shape (d,)."""
        if not super()._ready():
            raise ValueError("there is no point yet: call reset(d) first")
        return self._point()

    def update(self, g: ArrayLike) -> Self:
        """Close the round with a subgradient of its loss at ``w``; return self.

        Parameters
        ----------
        g : array_like of shape (d,)

        Raises
        ------
        ValueError
            If g is not one finite vector of width d (nothing has changed then).
        FloatingPointError
            If the next point is beyond double precision.
        """
        g = checks.as_point(g, self._width, "g")
        self._begin(g.shape[1])
        self._close(g, np.zeros(1), hotloops.LINEAR_LOSS, np.empty(1))
        return self

    @property
    def size(self) -> int:
        """Number of weights; 0 before any data."""
        return self._width or 0

    def _loss_code(self) -> int:
        return self._loss().code

    def _close(self, X: np.ndarray, y: np.ndarray, code: int, forecasts: np.ndarray) -> None:
        """Play rounds and count them; trouble is an error."""
        played, status = self._rounds(X, y, code, forecasts)
        self._check(status, played, self._remedy)
        if not self._finite():
            self._check(hotloops.NOT_FINITE, len(X) - 1, self._remedy)
        self._played += len(X)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        first = self._played == 0
        trace.sizes[:] = X.shape[1]
        self._close(X, y, self._loss_code(), trace.predictions)
        if first:  # as predict_one had it, though a simplex starts in its centre
            trace.predictions[0] = 0.0

    def _ready(self) -> bool:
        return super()._ready() and self._played > 0

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        hotloops.product_rows(X, self._point(), forecasts)
        return forecasts

    def _start(self, d: int) -> None:
        self._loss()
        self._begin_rounds(d)

    def _state(self) -> dict[str, Any]:
        return {name: getattr(self, f"_{name}") for name in self._ARRAYS}

    def _restore(self, state: dict[str, Any]) -> None:
        for name in self._ARRAYS:
            getattr(self, f"_{name}")[...] = state[name]

    def _begin_rounds(self, d: int) -> None:
        raise NotImplementedError

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, code: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        raise NotImplementedError

    def _point(self) -> np.ndarray:
        return self._w.copy()

    def _finite(self) -> bool:
        return bool(np.isfinite(self._w).all())


def _radius(radius: float | None) -> float:
    """Return a radius, infinity for None."""
    if radius is None:
        return inf
    require_positive("radius", radius)
    return float(radius)


def _check_p(p: float) -> None:
    require(number(p) and 1.0 < p <= 2.0, "p", p, "a number with 1 < p <= 2")


# ---- first-order learners ----


class _FirstOrder(LinearLearner):
    """Learners whose round takes O(d): one compiled loop, several update rules."""

    _ARRAYS = ("clock", "w", "G", "S")
    _rule: int | None = hotloops.GRADIENT_STEP  # None: not a rule of the compiled loop

    def _settings(self) -> dict[int, float]:
        """Check the hyper-parameters; return those that the loop takes."""
        raise NotImplementedError

    def _begin_rounds(self, d: int) -> None:
        self._par = np.zeros(8)
        self._par[hotloops.RADIUS] = inf
        for place, value in self._settings().items():
            self._par[place] = float(value)
        self._clock = np.zeros(2)
        # Apart in memory, so that sums round alike wherever the arrays lie.
        self._w, self._G, self._S = (aligned_zeros(d) for _ in range(3))

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, code: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        return hotloops.first_order_rounds(
            X, y, code, self._rule, self._par, self._clock, self._w, self._G, self._S, forecasts
        )


class OGD(_FirstOrder):
    """Online gradient descent, w <- Proj(w - eta_t g) (oco sections 2.3 and 3, Theorem 5).

    Parameters
    ----------
    eta : float > 0
        Step size.
    schedule : {"constant", "sqrt", "strong"}
        eta_t = eta, eta / sqrt(t) or 1 / (lam t).
    lam : float > 0, optional
        Strong convexity of the losses, for the schedule "strong".
    radius : float > 0, optional
        Radius of the Euclidean ball of the projection; None: none.
    loss : str
        A loss of losses.py, for the learner face.

    Remarks
    -------
    With a constant step and no projection this is FTRL with |w|^2 / (2 eta). With a projection the
    point itself is projected; LazyOGD projects the sum of gradients instead. The learner face with
    the schedule "strong" plays lam |w|^2 / 2 + l(w.x, y), which is lam-strongly convex (oco section
    3's example; with the hinge loss it is Pegasos); l alone is not.

    Examples
    --------
    >>> import oklnumba as okl
    >>> game = okl.OGD(eta=0.5).reset(2)
    >>> game.update([1.0, 0.0]).w
    array([-0.5,  0. ])
    """

    def __init__(
        self,
        eta: float = 0.1,
        schedule: str = "constant",
        lam: float | None = None,
        radius: float | None = None,
        loss: str = "squared",
    ):
        self.eta = eta
        self.schedule = schedule
        self.lam = lam
        self.radius = radius
        self.loss = loss

    def _settings(self) -> dict[int, float]:
        require_positive("eta", self.eta)
        powers = {"constant": 0.0, "sqrt": 0.5, "strong": 1.0}
        valid = isinstance(self.schedule, str) and self.schedule in powers
        require(valid, "schedule", self.schedule, "'constant', 'sqrt' or 'strong'")
        if self.lam is not None or self.schedule == "strong":
            require_positive("lam", self.lam)
        return {
            hotloops.ETA: self.eta,
            hotloops.POWER: powers[self.schedule],
            hotloops.LAM: self.lam or 0.0,
            hotloops.RADIUS: _radius(self.radius),
            hotloops.DECAY: (self.lam or 0.0) if self.schedule == "strong" else 0.0,
        }


class LazyOGD(_FirstOrder):
    """Online gradient descent with lazy projection: w = Proj(-eta sum g) (oco Example 6.3).

    FTRL with |w|^2 / (2 eta) on a ball.

    Parameters
    ----------
    eta : float > 0
        Step size.
    radius : float > 0
        Of the Euclidean ball.
    loss : str
        A loss of losses.py, for the learner face.

    Remarks
    -------
    As published, for a ball.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.LazyOGD(eta=1.0, radius=1.0).update([3.0, -4.0]).w
    array([-0.6,  0.8])
    """

    _rule = hotloops.LAZY_BALL

    def __init__(self, eta: float = 0.1, radius: float = 1.0, loss: str = "squared"):
        self.eta = eta
        self.radius = radius
        self.loss = loss

    def _settings(self) -> dict[int, float]:
        require_positive("eta", self.eta)
        require_positive("radius", self.radius)
        return {hotloops.ETA: self.eta, hotloops.RADIUS: self.radius}


class PNorm(_FirstOrder):
    """The p-norm algorithm: FTRL with |w|_p^2 / (2 eta) (oco section 2.3, item 3).

    Between gradient descent (p = 2) and, for p near 1, an algorithm for sparse comparators.

    Parameters
    ----------
    eta : float > 0
        Step size.
    p : float, 1 < p <= 2
        2 log(d) / (2 log(d) - 1) suits comparators of small 1-norm.
    loss : str
        A loss of losses.py, for the learner face.

    Remarks
    -------
    As published; the tuned step is (B/R) sqrt((p-1)/(2T)) (errata 44).

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.PNorm(eta=1.0, p=2.0).update([3.0, -4.0]).w
    array([-3.,  4.])
    """

    _rule = hotloops.P_NORM

    def __init__(self, eta: float = 0.1, p: float = 1.5, loss: str = "squared"):
        self.eta = eta
        self.p = p
        self.loss = loss

    def _settings(self) -> dict[int, float]:
        require_positive("eta", self.eta)
        _check_p(self.p)
        return {hotloops.ETA: self.eta, hotloops.P: self.p}


class ExponentiatedGradient(_FirstOrder):
    """Exponentiated gradient, or Hedge: FTRL with the entropy on a simplex (oco section 2.3).

    w_i = scale exp(-eta sum g_i) / Z. As a game on losses of experts it is Hedge, and the name
    ``Hedge`` is this class.

    Parameters
    ----------
    eta : float > 0
        Step size.
    scale : float > 0
        The simplex is {w >= 0, sum w = scale}.
    loss : str
        A loss of losses.py, for the learner face.

    Remarks
    -------
    oco Example 6.1 leaves the normalisation out. The learner face reports the forecast 0 in the
    first round, as every learner here does before any data; the update of that round is at the
    centre of the simplex, so that w is the point of the game. Negative weights: give the features
    (x, -x).

    Examples
    --------
    >>> import oklnumba as okl
    >>> game = okl.ExponentiatedGradient(eta=1.0).reset(2)
    >>> game.w, game.update([0.0, 1.0]).w.round(4)
    (array([0.5, 0.5]), array([0.7311, 0.2689]))
    """

    _rule = hotloops.ENTROPY

    def __init__(self, eta: float = 0.1, scale: float = 1.0, loss: str = "squared"):
        self.eta = eta
        self.scale = scale
        self.loss = loss

    def _settings(self) -> dict[int, float]:
        require_positive("eta", self.eta)
        require_positive("scale", self.scale)
        return {hotloops.ETA: self.eta, hotloops.SCALE: self.scale}

    def _begin_rounds(self, d: int) -> None:
        super()._begin_rounds(d)
        self._w[:] = self._par[hotloops.SCALE] / d


Hedge = ExponentiatedGradient


class AdaptiveFTRL(_FirstOrder):
    """FTRL with adaptive regularisation, w_t = -A_{t-1}^-1 sum g (oco section 2.5, Corollary 1).

    Parameters
    ----------
    kind : {"sqrt", "gradient", "adagrad", "adagrad_full"}
        A_t is sqrt(t + 1) I / eta; sqrt(sigma + sum |g|^2) I / eta; (sigma I + diag sum g g')^{1/2}
        / eta; or the same with the full matrix, whose round takes O(d^3).
    eta : float > 0
        Step size.
    sigma : float > 0
        At least the largest |g|^2 (of a coordinate, for "adagrad") for the cleanest bounds.
    loss : str
        A loss of losses.py, for the learner face.

    Remarks
    -------
    As published; with known bounds the step for "sqrt" is eta = B/R (errata 45).

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.AdaptiveFTRL("adagrad", eta=1.0, sigma=1.0).update([1.0, -2.0]).w.round(4)
    array([-0.7071,  0.8944])
    """

    _RULES = {
        "sqrt": hotloops.SQRT_STEPS,
        "gradient": hotloops.LENGTH_STEPS,
        "adagrad": hotloops.ADAGRAD,
        "adagrad_full": None,
    }

    def __init__(
        self, kind: str = "sqrt", eta: float = 0.5, sigma: float = 1.0, loss: str = "squared"
    ):
        self.kind = kind
        self.eta = eta
        self.sigma = sigma
        self.loss = loss

    def _settings(self) -> dict[int, float]:
        valid = isinstance(self.kind, str) and self.kind in self._RULES
        require(valid, "kind", self.kind, "'sqrt', 'gradient', 'adagrad' or 'adagrad_full'")
        require_positive("eta", self.eta)
        require_positive("sigma", self.sigma)
        self._rule = self._RULES[self.kind]
        return {hotloops.ETA: self.eta, hotloops.SIGMA: self.sigma}

    def _begin_rounds(self, d: int) -> None:
        super()._begin_rounds(d)
        if self._rule is None:
            self._S = float(self.sigma) * np.eye(d)

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, code: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        if self._rule is not None:
            return super()._rounds(X, y, code, forecasts)
        # An eigendecomposition a round: the loop around it need not be compiled.
        eta = float(self.eta)
        for t in range(len(X)):
            forecasts[t] = hotloops.dot(X[t], self._w, X.shape[1])
            if not np.isfinite(forecasts[t]):
                return t, hotloops.NOT_FINITE
            slope = hotloops.round_derivative(code, float(forecasts[t]), float(y[t]))
            if slope == 0.0:
                continue
            with np.errstate(all="ignore"):
                g = slope * X[t]
                self._G += g
                self._S += np.outer(g, g)
            if not np.isfinite(self._S).all():
                return t, hotloops.NOT_FINITE
            values, vectors = np.linalg.eigh(self._S)
            root = np.sqrt(np.maximum(values, self.sigma))
            self._w[:] = -eta * (vectors @ ((self._G @ vectors) / root))
        return len(X), hotloops.DONE


class StronglyConvexFTRL(_FirstOrder):
    """FTRL for lam-strongly convex losses (oco section 3, Theorem 4).

    w_t = (sum_{s<t} w_s - sum_{s<t} g_s / lam) / t: logarithmic regret without a step size.

    Parameters
    ----------
    lam : float > 0
        Strong convexity of the losses.
    loss : str
        A loss of losses.py, for the learner face. With the squared loss, which is not Lipschitz,
        points can grow without bound where lam is far below |x|^2.

    Remarks
    -------
    As published. The learner face plays lam |w|^2 / 2 + l(w.x, y), which is lam-strongly convex
    (with the hinge loss the notes' example of a support vector machine); l alone is not.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.StronglyConvexFTRL(lam=1.0).update([1.0, -2.0]).w
    array([-0.5,  1. ])
    """

    _rule = hotloops.STRONGLY_CONVEX
    _remedy = "raise lam, or scale the inputs and labels"

    def __init__(self, lam: float = 1.0, loss: str = "hinge"):
        self.lam = lam
        self.loss = loss

    def _settings(self) -> dict[int, float]:
        require_positive("lam", self.lam)
        return {hotloops.LAM: self.lam, hotloops.DECAY: self.lam}


class Perceptron(_FirstOrder):
    """The Perceptron: w moves by eta y x at a mistake (oco section 2.4, Theorem 2).

    Parameters
    ----------
    eta : float > 0
        Step size; it scales w and changes no forecast's sign.

    Remarks
    -------
    Labels are -1 and +1; y w.x <= 0 is a mistake, so the first round is one. Runs record the hinge
    loss. Errata 43: the bound without a margin is (L(w) + |w|^2 / (2 eta)) / (1 - eta R^2).

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.Perceptron().partial_fit([[1.0, 2.0], [1.0, 1.0]], [1.0, 1.0]).w
    array([1., 2.])
    """

    _rule = hotloops.GRADIENT_STEP

    def __init__(self, eta: float = 1.0):
        self.eta = eta

    def _loss(self) -> losses.Loss:
        return losses.get("hinge")

    def _loss_code(self) -> int:
        return hotloops.MISTAKE_LOSS

    def _settings(self) -> dict[int, float]:
        require_positive("eta", self.eta)
        return {hotloops.ETA: self.eta}


class Winnow(Perceptron):
    """Winnow: w on the simplex is multiplied by exp(eta y x) at a mistake (oco section 2.4).

    Its mistakes grow with the logarithm of d where a sparse w separates the data.

    Parameters
    ----------
    eta : float > 0
        Step size; 1 / (2 R^2) for inputs with |x|_inf <= R.

    Remarks
    -------
    Labels are -1 and +1; runs record the hinge loss. Errata 42: the bound for data with margin 1 is
    4 R^2 log d, not 2 R^2 log d. The forecast 0 is reported for the first round; see
    ExponentiatedGradient. Whether that round is a mistake is decided at the centre of the simplex.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.Winnow(eta=1.0).partial_fit([[0.0, -1.0]], [1.0]).w.round(4)
    array([0.7311, 0.2689])
    """

    _rule = hotloops.ENTROPY

    def __init__(self, eta: float = 0.5):
        self.eta = eta

    def _settings(self) -> dict[int, float]:
        return super()._settings() | {hotloops.SCALE: 1.0}

    def _begin_rounds(self, d: int) -> None:
        super()._begin_rounds(d)
        self._w[:] = 1.0 / d


# ---- second-order learners ----


class _Newton(LinearLearner):
    """Learners with A = A_0 + eta sum g g' as a factor U' D U: O(d^2) a round."""

    _ARRAYS = ("U", "inv_d", "c")
    _C = inf
    _ROWS = 512  # rounds whose padded inputs are kept at a time

    def _begin_factor(self, d: int, start: float, rate: float) -> None:
        """Start at A = start I and w = 0."""
        r = padded(d)
        self._U = aligned_zeros(r, r)
        np.fill_diagonal(self._U, 1.0)
        self._inv_d = np.full(r, 1.0 / start)
        self._c = np.zeros(r)
        self._rate = float(rate)
        self._work = aligned_zeros(2 * hotloops.TOGETHER + 1, r)
        self._small = np.zeros((hotloops.TOGETHER + 5, hotloops.SMALL))
        self._Z = aligned_zeros(self._ROWS, r)

    def _padded(self, X: np.ndarray) -> np.ndarray:
        Z = self._Z[: len(X)]
        Z[:, : X.shape[1]] = X
        return Z

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, code: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        # Gradients alone do not say where the next x will lie: a game has no slab to project on.
        C = inf if code == hotloops.LINEAR_LOSS else self._C
        for start in range(0, len(X), self._ROWS):
            stop = min(start + self._ROWS, len(X))
            played, status = hotloops.newton_rounds(
                self._padded(X[start:stop]), y[start:stop], code, self._rate, C,
                self._U, self._inv_d, self._c, self._work, self._small, forecasts[start:stop],
            )  # fmt: skip
            if status != hotloops.DONE:
                return start + played, status
        return len(X), hotloops.DONE

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        for start in range(0, len(X), self._ROWS):
            Z = self._padded(X[start : start + self._ROWS])
            hotloops.newton_forecasts(
                Z,
                self._C,
                self._U,
                self._inv_d,
                self._c,
                self._work,
                forecasts[start : start + self._ROWS],
            )
        return forecasts

    def _point(self) -> np.ndarray:
        w = self._c.copy()
        hotloops.solve_upper(self._U, w, len(w))
        return w[: self._width].copy()

    def _finite(self) -> bool:
        return bool(np.isfinite(self._c).all() and np.isfinite(self._inv_d).all())


class OnlineNewtonStep(_Newton):
    """The online Newton step, projected on |w.x_t| <= C (kons Algorithm 1 with features for phi).

    w <- w - A^-1 g with A = alpha I + sum eta g g'; before the forecast w is projected, in the norm
    of A, on the slab of points that forecast within [-C, C]. O(d^2) time and memory. Its game face
    has no projection: a gradient does not tell the next x.

    Parameters
    ----------
    loss : str
        A loss of losses.py.
    C : float > 0
        Bound on forecasts.
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Weight of a gradient in A; None: the curvature of the loss on [-C, C].

    Remarks
    -------
    KONS in the primal: with a linear kernel they make the same forecasts. A is kept as U' D U,
    which neither drifts nor needs a matrix inverse. The exp-concave FTRL of oco Theorem 6 over the
    whole space is the same recursion without the projection.

    Examples
    --------
    >>> import oklnumba as okl
    >>> learner = okl.OnlineNewtonStep().partial_fit([[1.0], [1.0], [1.0]], [0.5, 0.5, 0.5])
    >>> round(learner.predict_one([1.0]), 4)
    0.6607
    """

    _remedy = "raise alpha, or scale the inputs and labels"

    def __init__(
        self,
        loss: str = "squared",
        C: float = 1.0,
        alpha: float = 1.0,
        eta: float | None = None,
    ):
        self.loss = loss
        self.C = C
        self.alpha = alpha
        self.eta = eta

    def _check_labels(self, y: np.ndarray) -> None:
        _check_newton_labels(self, y)

    def _begin_rounds(self, d: int) -> None:
        eta = _newton_rate(self)
        self._C = float(self.C)
        self._begin_factor(d, float(self.alpha), eta)


def _check_newton_labels(learner: Any, y: np.ndarray) -> None:
    """Refuse labels where the squared loss has not the curvature that the step uses."""
    require_positive("C", learner.C)
    if learner._loss().name == "squared":
        checks.refuse_beyond(y, learner.C, "C", checks.NO_CURVATURE)


def _newton_rate(learner: Any) -> float:
    """Check C, alpha and eta; return eta, by default the curvature of the loss."""
    require_positive("C", learner.C)
    require_positive("alpha", learner.alpha)
    if learner.eta is not None:
        require_positive("eta", learner.eta)
        return float(learner.eta)
    curvature = learner._loss().curvature(float(learner.C))
    if not (curvature > 0.0 and np.isfinite(curvature)):
        raise ValueError(
            f"the {learner.loss} loss has no usable curvature on [-C, C] at C = {learner.C!r}: "
            "give eta, or take another loss or C"
        )
    return curvature


class ExpConcaveFTRL(_Newton):
    """FTRL for exp-concave losses, a form of the online Newton step (oco section 4, Theorem 6).

    w_t minimises sum_{s<t} <g_s, w> + alpha~ L^2 |w|^2 / 2 + sum_{s<t} alpha~ (g_s.(w - w_s))^2 / 2
    over the domain.

    Parameters
    ----------
    alpha_tilde : float > 0
        min(1 / (16 B L), alpha / 2) for alpha-exp-concave losses on a domain of radius B.
    lipschitz : float > 0
        L, a bound on |g|.
    domain : {"all", "ball", "simplex"}
        The whole space, a Euclidean ball, or {w >= 0, sum w = 1}.
    radius : float > 0, optional
        Of the ball.
    loss : str
        A loss of losses.py, for the learner face.

    Remarks
    -------
    Errata 46: the first term has alpha~, not alpha; and the theorem needs points in the domain,
    which only "ball" and "simplex" guarantee. There the quadratic is minimised exactly each round,
    in O(d^3): by Newton's method for the multiplier of the ball, by an active set on the simplex.
    On the simplex the forecast 0 is reported for the first round; see ExponentiatedGradient.

    Examples
    --------
    >>> import oklnumba as okl
    >>> game = okl.ExpConcaveFTRL(alpha_tilde=1.0, lipschitz=1.0, domain="simplex").reset(2)
    >>> game.w, game.update([0.0, 1.0]).w.round(4)
    (array([0.5, 0.5]), array([0.8333, 0.1667]))
    """

    _DOMAINS = {
        "all": hotloops.ALL_SPACE,
        "ball": hotloops.BALL,
        "simplex": hotloops.SIMPLEX,
    }
    _remedy = "raise lipschitz or alpha_tilde, or scale the inputs and labels"

    def __init__(
        self,
        alpha_tilde: float = 0.1,
        lipschitz: float = 1.0,
        domain: str = "all",
        radius: float | None = None,
        loss: str = "squared",
    ):
        self.alpha_tilde = alpha_tilde
        self.lipschitz = lipschitz
        self.domain = domain
        self.radius = radius
        self.loss = loss

    def _begin_rounds(self, d: int) -> None:
        require_positive("alpha_tilde", self.alpha_tilde)
        require_positive("lipschitz", self.lipschitz)
        lipschitz = float(self.lipschitz)
        require(1e-150 < lipschitz < 1e150, "lipschitz", lipschitz, "between 1e-150 and 1e150")
        start = lipschitz**2
        valid = isinstance(self.domain, str) and self.domain in self._DOMAINS
        require(valid, "domain", self.domain, "'all', 'ball' or 'simplex'")
        if self.radius is not None or self.domain == "ball":
            require_positive("radius", self.radius)
        self._domain = self._DOMAINS[self.domain]
        if self._domain == hotloops.ALL_SPACE:
            self._begin_factor(d, start * float(self.alpha_tilde), float(self.alpha_tilde))
            return
        self._ARRAYS = ("A", "b", "w")
        self._bound = _radius(self.radius)
        self._A = start * np.eye(d)
        self._b = np.zeros(d)
        self._w = np.full(d, 1.0 / d if self.domain == "simplex" else 0.0)
        self._index = np.arange(d)
        self._R = np.zeros((d, d))
        self._v, self._u = np.zeros(d), np.zeros(d)

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, code: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        if self._domain == hotloops.ALL_SPACE:
            return super()._rounds(X, y, code, forecasts)
        return hotloops.exp_concave_rounds(
            X, y, code, 1.0 / float(self.alpha_tilde), self._domain, self._bound, self._A,
            self._b, self._w, self._index, self._R, self._v, self._u, forecasts,
        )  # fmt: skip

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        if self._domain == hotloops.ALL_SPACE:
            return super()._forecast(X)
        return LinearLearner._forecast(self, X)

    def _point(self) -> np.ndarray:
        return super()._point() if self._domain == hotloops.ALL_SPACE else self._w.copy()

    def _finite(self) -> bool:
        return super()._finite() if self._domain == hotloops.ALL_SPACE else True


class SketchedONS(LinearLearner):
    """The online Newton step with a frequent-directions sketch of A (kons; Luo et al. 2016).

    A = alpha I + S' S with at most 2 rank rows in S: O(rank d) time a round and memory. When S is
    full, it keeps its ``rank`` leading directions, less the square of the next singular value.

    Parameters
    ----------
    rank : int >= 1
        Directions kept by the sketch.
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Weight of a gradient in A; None: the curvature of the loss on [-C, C].
    C : float > 0
        Bound on forecasts, as in OnlineNewtonStep.
    loss : str
        A loss of losses.py.

    Remarks
    -------
    With gradients in a subspace of dimension at most ``rank`` it is OnlineNewtonStep. Luo et al.
    shrink every round with a buffer of rank rows, or every rank rounds as here.

    Examples
    --------
    >>> import oklnumba as okl
    >>> learner = okl.SketchedONS(rank=2).partial_fit([[1.0], [1.0], [1.0]], [0.5, 0.5, 0.5])
    >>> round(learner.predict_one([1.0]), 4)
    0.6607
    """

    _ARRAYS = ("S", "R", "w", "used")
    _remedy = "raise alpha, or scale the inputs and labels"

    def __init__(
        self,
        rank: int = 10,
        alpha: float = 1.0,
        eta: float | None = None,
        C: float = 1.0,
        loss: str = "squared",
    ):
        self.rank = rank
        self.alpha = alpha
        self.eta = eta
        self.C = C
        self.loss = loss

    def _check_labels(self, y: np.ndarray) -> None:
        _check_newton_labels(self, y)

    def _begin_rounds(self, d: int) -> None:
        require_count("rank", self.rank, 1)
        self._rate = _newton_rate(self)
        rows = 2 * int(self.rank)
        self._S, self._R = np.zeros((rows, d)), np.zeros((rows, rows))
        self._w = np.zeros(d)
        self._used = np.zeros(1, dtype=np.int64)
        self._small, self._u = np.zeros((2, rows)), np.zeros(d)

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, code: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        C = inf if code == hotloops.LINEAR_LOSS else float(self.C)
        done = 0
        while True:
            played, status = hotloops.sketched_newton_rounds(
                X[done:], y[done:], code, float(self.alpha), self._rate, C, self._S, self._R,
                self._w, self._used, self._small, self._u, forecasts[done:],
            )  # fmt: skip
            done += played
            if status != hotloops.NEED_ROOM:
                return done, status
            self._shrink()

    def _shrink(self) -> None:
        """Make room in the sketch: frequent directions, from the small matrix S S'."""
        square, vectors = np.linalg.eigh(self._S @ self._S.T)
        square, vectors = np.maximum(square[::-1], 0.0), vectors[:, ::-1]
        rank = int(self.rank)
        kept = square[:rank] - square[rank]
        # Directions that are null to rounding are dropped, and with them division by 0.
        m = int((kept > 1e-15 * square[0]).sum())
        weights = np.sqrt(kept[:m] / square[:m])
        self._S[:m] = (vectors[:, :m] * weights).T @ self._S
        self._S[m:] = 0.0
        self._R[:] = 0.0
        self._R[range(m), range(m)] = np.sqrt(float(self.alpha) + kept[:m])
        self._used[0] = m

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return np.clip(super()._forecast(X), -float(self.C), float(self.C))


class _Inputs(Features):
    """The identity: inputs as their own features."""

    def size(self, d: int) -> int:
        return d

    def _writer(self, d: int):
        def write(X: np.ndarray, out: np.ndarray) -> None:
            out[: len(X), :d] = X

        return write, d


class LinearAWV(PKAWV):
    """The Azoury-Warmuth-Vovk forecaster on the inputs themselves (pkawv section 2; oco section 4).

    argmin_w sum_{s<t} (y_s - w.x_s)^2 + lam |w|^2 + (w.x_t)^2 at x_t; O(d^2) a round. Its regret
    against every w is at most lam |w|^2 + B^2 log det(I + K / lam).

    Parameters
    ----------
    lam : float > 0
        Regularisation.

    Remarks
    -------
    PKAWV with the identity for features; WithFeatures lifts it. Its point depends on x_t, which a
    gradient does not tell: ``w`` is the ridge estimate so far, and ``update(g)`` is refused.

    Examples
    --------
    >>> import oklnumba as okl
    >>> learner = okl.LinearAWV(lam=1.0).learn_one([1.0], 1.0)
    >>> learner.w, round(learner.predict_one([1.0]), 4)
    (array([0.5]), 0.3333)
    """

    features = _Inputs()
    forecaster = "awv"

    def __init__(self, lam: float = 1.0):
        self.lam = lam

    def reset(self, d: int | None = None) -> Self:
        """Go back to no data, or start in R^d; return self; ValueError if d is no count."""
        if d is not None:
            require_count("d", d, 1)
        super().reset()
        if d is not None:
            self._begin(int(d))
        return self

    @property
    def w(self) -> np.ndarray:
        """The ridge estimate from the rounds so far, shape (d,)."""
        if not self._ready():
            raise ValueError("there is no point yet: call reset(d) first")
        w = self._c.copy()
        hotloops.solve_upper(self._U, w, len(w))
        return w[: self._width].copy()

    def update(self, g: ArrayLike) -> Self:
        """Refuse: least squares needs x and y, and a gradient is only their product.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            f"{type(self).__name__} needs x and y, which the gradient g does not tell; use "
            "learn_one(x, y), or play g with OnlineNewtonStep or ExpConcaveFTRL"
        )


class LinearRidge(LinearAWV):
    """Online ridge regression on the inputs themselves (pkawv section 2; oco section 4).

    argmin_w sum_{s<t} (y_s - w.x_s)^2 + lam |w|^2; O(d^2) a round.

    Parameters
    ----------
    lam : float > 0
        Regularisation.

    Remarks
    -------
    As published; see LinearAWV. No regret bound holds without a bound on the forecasts.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.LinearRidge(lam=1.0).learn_one([1.0], 1.0).predict_one([1.0])
    0.5
    """

    forecaster = "ridge"


# ---- the lift ----


class WithFeatures(Learner):
    """A linear learner on features of the inputs: a kernel learner in an explicit space (oco).

    FOGD is WithFeatures(FourierFeatures(...), OGD(...)) and PKAWV is
    WithFeatures(TaylorFeatures(...), LinearAWV(...)): the same forecasts.

    Parameters
    ----------
    features : Features
        TaylorFeatures, FourierFeatures or NystromFeatures.
    learner : learner of this module
        Its hyper-parameters are used; it is not changed itself.

    Remarks
    -------
    The bounds of the linear learner hold in the space of the features, against functions w.z(x).

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.WithFeatures(okl.TaylorFeatures(degree=2), okl.AdaptiveFTRL("adagrad"))
    >>> bool(okl.run(learner, X, X[:, 0] * X[:, 1]).losses[-100:].mean() < 0.02)
    True
    """

    _ROWS = 512  # rounds whose features are kept at a time
    LOW_SHARE, HEAD, _advice = PKAWV.LOW_SHARE, PKAWV.HEAD, PKAWV._advice

    def __init__(self, features: Features, learner: LinearLearner | LinearAWV):
        self.features = features
        self.learner = learner

    @property
    def _certified(self) -> bool:  # type: ignore[override]  # as the learner within
        return bool(getattr(self.learner, "_certified", False))

    @property
    def size(self) -> int:
        """Number of features; 0 before any data."""
        return self._inner.size if self._width is not None else 0

    @property
    def w(self) -> np.ndarray:
        """The weights of the features, shape (r,)."""
        if not self._ready():
            raise ValueError("there are no weights yet: play a round first")
        return self._inner.w

    def _linear(self) -> LinearLearner | LinearAWV:
        if not isinstance(self.learner, LinearLearner | LinearAWV):
            raise ValueError(
                "learner must be a linear learner of oklnumba.oco such as OGD(), "
                f"but is {self.learner!r}"
            )
        return self.learner

    def _loss(self) -> losses.Loss:
        return self._linear()._loss()

    def _check_labels(self, y: np.ndarray) -> None:
        self._linear()._check_labels(y)

    def _start(self, d: int) -> None:
        learner = self._linear()
        self._write, r = check_features(self.features)._writer(d)
        self._inner = type(learner)(**learner.get_params(deep=False))
        self._inner._begin(r)
        self._Z = aligned_zeros(self._ROWS, r)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._inner._played = self._played
        for start in range(0, len(X), self._ROWS):
            stop = min(start + self._ROWS, len(X))
            Z = self._Z[: stop - start]
            self._write(X[start:stop], Z)
            try:
                self._inner._play(Z, y[start:stop], trace.rows(start, stop))
            except FloatingPointError as error:
                self._broken = str(error)
                raise
            self._played += stop - start

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        self._inner._played = self._played
        forecasts = np.zeros(len(X))
        if self._played == 0:
            return forecasts
        for start in range(0, len(X), self._ROWS):
            Z = self._Z[: len(X[start : start + self._ROWS])]
            self._write(X[start : start + self._ROWS], Z)
            forecasts[start : start + self._ROWS] = self._inner._forecast(Z)
        return forecasts

    def _state(self) -> dict[str, Any]:
        return self._inner._state()

    def _restore(self, state: dict[str, Any]) -> None:
        self._inner._restore(state)


# ---- ready games ----


class Portfolio:
    """Sequential investing against the best constant rebalanced portfolio (oco section 4).

    A round plays shares w on the simplex; its loss is -log(c_t.w), so that wealth is the
    exponential of minus the loss.

    Parameters
    ----------
    relatives : array_like of shape (n, d)
        c_t: the price of each asset at the end of round t over that at its start; above 0.

    Examples
    --------
    >>> from oklnumba import oco
    >>> game = oco.Portfolio([[2.0, 0.5], [0.5, 2.0]])
    >>> game.best(), game.wealth([[0.5, 0.5], [0.5, 0.5]])
    (array([0.5, 0.5]), array([1.25  , 1.5625]))
    """

    def __init__(self, relatives: ArrayLike):
        relatives = checks.as_inputs(relatives, name="relatives")
        if relatives.min() <= 0.0:
            row, column = np.argwhere(relatives <= 0.0)[0]
            raise ValueError(
                f"relatives has {relatives[row, column]:g} at row {row}, column {column}; "
                "price relatives must be above 0"
            )
        self.relatives = relatives
        self.rounds, self.d = relatives.shape

    def loss(self, t: int, w: ArrayLike) -> float:
        """Return -log(c_t.w); ValueError for a w outside the simplex."""
        return -log(self.relatives[t] @ check_simplex(w))

    def gradient(self, t: int, w: ArrayLike) -> np.ndarray:
        """Return the gradient -c_t / (c_t.w)."""
        return -self.relatives[t] / (self.relatives[t] @ check_simplex(w))

    def losses(self, w: ArrayLike) -> np.ndarray:
        """Return the losses of one constant w, shape (n,)."""
        return -np.log(self.relatives @ check_simplex(w))

    def wealth(self, points: ArrayLike) -> np.ndarray:
        """Return the wealth after each round of shares w_1, ..., w_n from 1 at the start."""
        points = checks.as_inputs(points, self.d, "points")
        growth = np.einsum("td,td->t", self.relatives[: len(points)], points)
        for w in points:
            check_simplex(w, name="points")
        return np.cumprod(growth)

    def best(self) -> np.ndarray:
        """Return the best constant rebalanced portfolio in hindsight, to about 1e-9 a round.

        Newton's method, each step minimising the quadratic model on the simplex.
        """
        w = np.full(self.d, 1.0 / self.d)
        index, R = np.arange(self.d), np.zeros((self.d, self.d))
        v, u = np.zeros(self.d), np.zeros(self.d)
        for _ in range(hotloops.MOST_STEPS):
            growth = self.relatives @ w
            ratios = self.relatives / growth[:, None]
            gradient, hessian = -ratios.sum(axis=0), ratios.T @ ratios
            # A little of the identity: assets may be copies of each other.
            hessian[np.diag_indices(self.d)] += 1e-10 * hessian.trace() / self.d
            target = w.copy()
            hotloops.quadratic_on_simplex(hessian, hessian @ w - gradient, index, target, R, v, u)
            step = target - w
            gap = -float(gradient @ step)
            if gap <= 1e-12 * self.rounds:
                break
            size, value = 1.0, -np.log(growth).sum()
            while -np.log(self.relatives @ (w + size * step)).sum() > value - 1e-4 * size * gap:
                size /= 2
                if size < 1e-12:
                    return w
            w = w + size * step
        return w


class LeastSquares:
    """Online least squares, f_t(w) = (w.x_t - y_t)^2 / 2 (oco section 4).

    Parameters
    ----------
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    radius : float > 0, optional
        The comparator's ball; None: the whole space.

    Examples
    --------
    >>> from oklnumba import oco
    >>> oco.LeastSquares([[1.0], [1.0]], [0.0, 1.0]).best()
    array([0.5])
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, radius: float | None = None):
        self.X = checks.as_inputs(X)
        self.y = checks.as_labels(y, len(self.X))
        self.radius = _radius(radius)
        self.rounds, self.d = self.X.shape

    def loss(self, t: int, w: ArrayLike) -> float:
        """Return (w.x_t - y_t)^2 / 2."""
        return float((self.X[t] @ as_vector(w, "w", self.d) - self.y[t]) ** 2 / 2)

    def gradient(self, t: int, w: ArrayLike) -> np.ndarray:
        """Return (w.x_t - y_t) x_t."""
        return (self.X[t] @ as_vector(w, "w", self.d) - self.y[t]) * self.X[t]

    def losses(self, w: ArrayLike) -> np.ndarray:
        """Return the losses of one constant w, shape (n,)."""
        return (self.X @ as_vector(w, "w", self.d) - self.y) ** 2 / 2

    def best(self) -> np.ndarray:
        """Return the least squares solution (of least norm) in the ball, in hindsight."""
        w = np.linalg.lstsq(self.X, self.y, rcond=None)[0]
        if np.linalg.norm(w) <= self.radius:
            return w
        values, vectors = np.linalg.eigh(self.X.T @ self.X)
        values, target = np.maximum(values, 0.0), vectors.T @ (self.X.T @ self.y)

        def excess(mu: float) -> float:
            return float(np.linalg.norm(target / (values + mu)) - self.radius)

        high = float(np.linalg.norm(target)) / self.radius
        mu = scipy.optimize.brentq(excess, high * 1e-16, high, xtol=1e-300)
        return vectors @ (target / (values + mu))


@dataclass(frozen=True)
class Played:
    """What a game leaves behind.

    Attributes
    ----------
    points, gradients : ndarray of shape (n, d)
    losses : ndarray of shape (n,)
    """

    points: np.ndarray
    gradients: np.ndarray
    losses: np.ndarray
    game: Any

    def regret(self, w: ArrayLike | None = None) -> np.ndarray:
        """Return the regret after each round against w; None: the best w of the whole game."""
        w = self.game.best() if w is None else w
        return np.cumsum(self.losses - self.game.losses(w)[: len(self.losses)])


def play(learner: LinearLearner, game: Portfolio | LeastSquares) -> Played:
    """Play a game from its first round with the learner's game face.

    Parameters
    ----------
    learner : LinearLearner
        Is reset first.
    game : object with rounds, d, loss(t, w), gradient(t, w), losses(w) and best()

    Examples
    --------
    >>> import oklnumba as okl
    >>> game = okl.oco.Portfolio([[2.0, 0.5], [0.5, 2.0]])
    >>> okl.oco.play(okl.Hedge(eta=0.1), game).regret().round(4)
    array([0.    , 0.0366])
    """
    points, gradients = np.empty((2, game.rounds, game.d))
    values = np.empty(game.rounds)
    learner.reset(game.d)
    for t in range(game.rounds):
        points[t] = learner.w
        values[t] = game.loss(t, points[t])
        gradients[t] = game.gradient(t, points[t])
        learner.update(gradients[t])
    return Played(points, gradients, values, game)


def online_to_batch(points: ArrayLike) -> np.ndarray:
    """Return the average of the points w_1, ..., w_T that were played (oco section 3).

    On independent draws of a convex loss its expected loss is at most that of the best w, plus the
    expected regret over T.

    Parameters
    ----------
    points : array_like of shape (T, d)

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> from oklnumba import oco
    >>> oco.online_to_batch([[0.0, 1.0], [1.0, 1.0]])
    array([0.5, 1. ])
    """
    return checks.as_inputs(points, name="points").mean(axis=0)
