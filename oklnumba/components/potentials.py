"""Regularisers, their conjugates, mirror maps and norms (oco)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core import inputs
from oklnumba.core.checks import refuses_overflow, require, require_positive, require_within
from oklnumba.core.display import repr_fields
from oklnumba.hot.first_order import p_norm_map
from oklnumba.hot.primitives.linalg import entropy_map, project_ball

ON_SIMPLEX = 1e-9  # how far a point may be off the simplex, relative to its scale


def as_vector(values: ArrayLike, name: str, width: int | None = None) -> np.ndarray:
    """Return one finite vector as a float64 array of shape (d,); ValueError for anything else."""
    return inputs.as_point(values, width, name)[0]


def check_simplex(w: ArrayLike, scale: float = 1.0, name: str = "w") -> np.ndarray:
    """Return w (d,), a point of the simplex {w >= 0, sum w = scale}; ValueError if it is not."""
    w, scale = as_vector(w, name), require_positive("scale", scale)
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


@dataclass(frozen=True, repr=False)
class Potential:
    """A strongly convex regulariser Phi (oco sections 1.5 and 2.1).

    Attributes
    ----------
    name : str
    value : callable
        Phi(w); ValueError outside the domain.
    conjugate, mirror_map : callable
        Phi*(s) = max_w <s, w> - Phi(w) and its gradient, the maximiser.
    strength : float
        Phi is strength-strongly convex in ``norm``.
    norm, dual_norm : callable

    Examples
    --------
    >>> phi = okl.oco.negative_entropy(eta=1.0)
    >>> phi.mirror_map([0.0, 0.0]), round(phi.conjugate([0.0, 0.0]), 6)
    (array([0.5, 0.5]), 0.693147)
    """

    name: str
    value: Callable[[ArrayLike], float]
    conjugate: Callable[[ArrayLike], float]
    mirror_map: Callable[[ArrayLike], np.ndarray]
    strength: float
    norm: Callable[[ArrayLike], float]
    dual_norm: Callable[[ArrayLike], float]

    def __repr__(self) -> str:
        return repr_fields(self, name=self.name, strength=self.strength)


def _define(
    name: str, strength: float, p: float, value: Callable, conjugate: Callable, mirror_map: Callable
) -> Potential:
    """Return the potential of these functions, strongly convex in the p-norm."""
    q = dual_exponent(p)
    value, conjugate, mirror_map = map(refuses_overflow, (value, conjugate, mirror_map))
    norms = lambda w: p_norm(w, p), lambda g: p_norm(g, q)
    return Potential(name, value, conjugate, mirror_map, strength, *norms)


def _as_exponent(p: float) -> float:
    return require_within("p", p, "[1, inf]", "a number >= 1, or infinity")


@refuses_overflow
def p_norm(w: ArrayLike, p: float) -> float:
    """Return |w|_p, p >= 1 or infinity."""
    w, p = as_vector(w, "w"), _as_exponent(p)
    largest = float(np.abs(w).max())  # taken out of the powers, which would leave double precision
    return largest * float(np.linalg.norm(w / largest, p)) if largest > 0.0 else 0.0


def dual_exponent(p: float) -> float:
    """Return q with 1/p + 1/q = 1; |.|_q is the dual norm of |.|_p (oco Example 1)."""
    p = _as_exponent(p)
    return 1.0 if p == inf else inf if p == 1 else p / (p - 1.0)


@refuses_overflow
def euclidean(eta: float = 1.0, radius: float | None = None) -> Potential:
    """Return |w|^2 / (2 eta), on a ball if ``radius`` is given (oco Example 6.2, 6.3)."""
    eta = require_positive("eta", eta)
    radius = check_radius(radius)

    def mirror_map(s: ArrayLike) -> np.ndarray:
        w = eta * as_vector(s, "s")
        project_ball(w, radius, len(w))
        return w

    def conjugate(s: ArrayLike) -> float:
        w = mirror_map(s)
        return float(as_vector(s, "s") @ w - w @ w / (2 * eta))

    def value(w: ArrayLike) -> float:
        w = as_vector(w, "w")
        inside = np.linalg.norm(w) <= radius * (1 + ON_SIMPLEX)
        require(inside, "w", w, f"in the ball of radius {radius:g}")
        return float(w @ w / (2 * eta))

    name = f"|w|^2 / (2 {eta:g})" + (f" on the ball of radius {radius:g}" if radius < inf else "")
    return _define(name, 1.0 / eta, 2, value, conjugate, mirror_map)


@refuses_overflow
def squared_p_norm(eta: float = 1.0, p: float = 1.5) -> Potential:
    """Return |w|_p^2 / (2 eta), 1 < p <= 2 (oco section 2.3, item 3)."""
    eta = require_positive("eta", eta)
    p = check_p("p", p)
    q = dual_exponent(p)

    def mirror_map(s: ArrayLike) -> np.ndarray:
        s = as_vector(s, "s")
        w = np.empty(len(s))
        p_norm_map(-s, eta, p, w, len(w))
        return w

    return _define(
        f"|w|_{p:g}^2 / (2 {eta:g})", (p - 1.0) / eta, p, lambda w: p_norm(w, p) ** 2 / (2 * eta),
        lambda s: eta * p_norm(s, q) ** 2 / 2, mirror_map,
    )  # fmt: skip


@refuses_overflow
def negative_entropy(eta: float = 1.0, scale: float = 1.0) -> Potential:
    """Return sum w_i log(w_i) / eta on the simplex {w >= 0, sum w = scale} (oco Example 6.1)."""
    eta = require_positive("eta", eta)
    scale = require_positive("scale", scale)

    def value(w: ArrayLike) -> float:
        w = check_simplex(w, scale)
        return float((w * np.log(np.where(w > 0, w, 1.0))).sum() / eta)

    def conjugate(s: ArrayLike) -> float:
        s = as_vector(s, "s")
        top = s.max()
        return float(scale * (top + (log(np.exp(eta * (s - top)).sum()) - log(scale)) / eta))

    def mirror_map(s: ArrayLike) -> np.ndarray:
        s = as_vector(s, "s")
        w = np.empty(len(s))
        entropy_map(-s, eta, scale, w, len(w))
        return w

    name = f"entropy / {eta:g} on the simplex of sum {scale:g}"
    return _define(name, 1.0 / (eta * scale), 1, value, conjugate, mirror_map)


def check_radius(radius: float | None) -> float:
    """Return a radius, infinity for None; ValueError unless it is positive."""
    return inf if radius is None else require_positive("radius", radius)


def check_p(name: str, p: float) -> float:
    """Return p as a float; ValueError unless 1 < p <= 2, where |w|_p^2 is strongly convex."""
    return require_within(name, p, "(1, 2]", "a number with 1 < p <= 2")
