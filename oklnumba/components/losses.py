"""Convex losses of a forecast f: value, derivative, curvature and Lipschitz constant.

    squared              (y - f)^2
    absolute             |y - f|
    epsilon_insensitive  max(|y - f| - 0.1, 0)
    huber                |y - f|^2 / 2 up to |y - f| = 1, |y - f| - 1/2 beyond
    quantile(q)          max(q (y - f), (q - 1) (y - f)), 0 < q < 1; "quantile": q = 0.5
    hinge                max(1 - y f, 0)
    squared_hinge        max(1 - y f, 0)^2
    logistic             log(1 + exp(-y f))

The last three take labels -1 and +1. To change the 0.1 or the corner 1 of huber, scale the labels.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import exp, sqrt

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core.checks import refuses_overflow, repr_short, require_number, require_positive
from oklnumba.core.inputs import as_numbers
from oklnumba.core.params import field_with
from oklnumba.hot.primitives import losses as loops

__all__ = ["LOSSES", "Loss", "get"]


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True)
class Loss:
    """A loss by its name; ``get`` returns it.

    ``code`` is that of hot/primitives/losses.py, ``classes`` says if its labels must be -1 or +1.
    """

    name: str
    code: int
    classes: bool
    _values: Callable[[np.ndarray, np.ndarray], np.ndarray] = field(repr=False)
    _curvature: Callable[[float], float] = field(repr=False)
    _lipschitz: Callable[[float], float] = field(repr=False)

    def value(self, forecast: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Return the losses of forecasts at labels y, elementwise."""
        forecast, y = as_numbers(forecast, "forecast"), as_numbers(y, "y")
        return self.of_rounds(*np.broadcast_arrays(forecast, y))

    def of_rounds(self, forecasts: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the losses of rounds that have been played, without checks."""
        with np.errstate(over="ignore", under="ignore"):  # as in the compiled loops
            return self._values(forecasts.ravel(), y.ravel()).reshape(forecasts.shape)

    def derivative(self, forecast: float, y: float) -> float:
        """Return the derivative in the forecast, 0 at a kink."""
        forecast, y = require_number("forecast", forecast), require_number("y", y)
        return float(loops.loss_derivative(self.code, forecast, y))

    @refuses_overflow
    def curvature(self, C: float) -> float:
        """Return the curvature sigma of the loss on [-C, C], C > 0 (kons Assumption 2).

        The largest sigma with l(a) >= l(b) + l'(b)(a - b) + sigma/2 (l'(b)(a - b))^2; labels in
        [-C, C] for the squared loss. 0 for losses without curvature.
        """
        return float(self._curvature(require_positive("C", C)))

    @refuses_overflow
    def lipschitz(self, C: float) -> float:
        """Return the largest |l'| for forecasts (and labels, in regression) in [-C, C], C > 0."""
        return float(self._lipschitz(require_positive("C", C)))


def _squared_hinge_curvature(C: float) -> float:
    # Worst pair: b = -C and a = C for margins; a beyond the kink only where C > 1.
    return (3 * C - 1) / (8 * C * C * (1 + C)) if C > 1 else 1 / (2 * (1 + C) ** 2)


def _compiled_values(code: int, forecast: np.ndarray, y: np.ndarray) -> np.ndarray:
    values = np.empty(len(y))
    loops.loss_values(code, forecast, y, values)
    return values


def _shortfall(forecast: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.maximum(1.0 - y * forecast, 0.0)


def _huber_values(forecast: np.ndarray, y: np.ndarray) -> np.ndarray:
    apart = np.abs(y - forecast)
    return np.where(apart <= 1.0, 0.5 * apart * apart, apart - 0.5)


def _make_quantile(level: float, name: str) -> Loss:
    step = round(level * loops.LEVELS)
    if not 0 < step < loops.LEVELS:
        raise ValueError(f"loss {name!r} must have a level between 0 and 1, such as quantile(0.9)")
    q, code = step / loops.LEVELS, loops.QUANTILE + step
    values = partial(_compiled_values, code)  # compiled loops multiply by 1 / LEVELS
    return Loss(name, code, False, values, lambda C: 0.0, lambda C: max(q, 1.0 - q))


# Values in NumPy, where it has the bits of hot/primitives/losses.py: every run records them, and
# compiling takes 0.2 s.
LOSSES = {loss.name: loss for loss in (
    Loss("squared", loops.SQUARED, False,
         lambda f, y: (y - f) ** 2, lambda C: 1 / (8 * C * C), lambda C: 4 * C),
    Loss("absolute", loops.ABSOLUTE, False,
         lambda f, y: np.abs(y - f), lambda C: 0.0, lambda C: 1.0),
    Loss("epsilon_insensitive", loops.EPSILON_INSENSITIVE, False,
         lambda f, y: np.maximum(np.abs(y - f) - loops.TUBE, 0.0), lambda C: 0.0, lambda C: 1.0),
    Loss("huber", loops.HUBER, False, _huber_values,
         lambda C: 1 / (4 * C * C) if C <= 0.5 else 0.0, lambda C: min(2 * C, 1.0)),
    _make_quantile(0.5, "quantile"),
    Loss("hinge", loops.HINGE, True,
         _shortfall, lambda C: 0.0, lambda C: 1.0),
    Loss("squared_hinge", loops.SQUARED_HINGE, True,
         lambda f, y: _shortfall(f, y) ** 2, _squared_hinge_curvature, lambda C: 2 * (1 + C)),
    Loss("logistic", loops.LOGISTIC, True,
         partial(_compiled_values, loops.LOGISTIC),  # NumPy's exp has other bits elsewhere
         lambda C: exp(-C), lambda C: 1 / (1 + exp(-C))),
)}  # fmt: skip


def get(name: str) -> Loss:
    """Return the loss of that name; ValueError for a name that is not one of ``LOSSES``.

    Examples
    --------
    >>> okl.losses.get("hinge").value([0.5, -1.0], [1.0, 1.0])
    array([0.5, 2. ])
    >>> okl.losses.get("quantile(0.9)").value([0.0, 0.0], [1.0, -1.0])
    array([0.9, 0.1])
    """
    if isinstance(name, str) and name in LOSSES:
        return LOSSES[name]
    level = re.fullmatch(r"quantile\((\d*\.?\d+)\)", name) if isinstance(name, str) else None
    if level is None:
        names = ", ".join(LOSSES).replace("quantile", "quantile, quantile(0.9)")
        raise ValueError(f"loss must be one of {names}, but is {repr_short(name)}")
    return _make_quantile(float(level[1]), name)


loss_field = partial(field_with, lambda name, value: get(value).name)  # of a learner


@refuses_overflow
def kons_step(loss: str, C: float = 1.0, dimension: float = 1.0) -> float:
    """Return eta of KONS's steps eta_t = eta / sqrt(t) for losses without curvature (kons Thm 1).

    sqrt(dimension) / (L C), L the largest slope of the loss on [-C, C]. Dimension 1 is the step of
    the theorem's second case, with regret O(d_eff sqrt(n)); ``effective_dimension(kernel, X,
    alpha)`` of the stream to come gives regret O(sqrt(d_eff n)).

    Examples
    --------
    >>> okl.theory.kons_step("hinge", C=2.0), okl.theory.kons_step("hinge", C=2.0, dimension=9.0)
    (0.5, 1.5)
    """
    C = require_positive("C", C)
    dimension = require_positive("dimension", dimension)
    return sqrt(dimension) / (get(loss).lipschitz(C) * C)
