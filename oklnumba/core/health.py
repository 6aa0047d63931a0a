"""Numerical health: the condition of a learner's matrices, and the digits left of its forecasts.

Estimates cost a few sweeps over each factor, O(m^2) for m rows.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

import numpy as np

from oklnumba.core.checks import warn
from oklnumba.core.display import repr_fields
from oklnumba.hot.primitives import linalg

UNIT = 2.0**-53  # relative rounding of one operation
FEWEST_DIGITS = 6.0  # with fewer ``health`` warns
STEPS = 10  # of a power iteration
BLOCK = 512  # rows of a factor that a product copies at a time


class Part(NamedTuple):
    """One matrix of a learner: its condition, and the error of a forecast by it."""

    matrix: str  # what it is; "" where nothing is solved
    condition: float = 1.0
    error: float = UNIT  # of a forecast, relative to the scale of the labels
    remedy: str = ""

    @property
    def digits(self) -> float:
        """Decimal digits that are left of a forecast; 0 for infinities and NaN."""
        trouble = max(self.error, UNIT)
        return max(-math.log10(trouble), 0.0) if trouble < math.inf else 0.0

    def named(self, member: str) -> Self:
        """Return the part with its member's name in front."""
        return self._replace(matrix=f"{member}: {self.matrix or 'no matrix'}")


class Health(NamedTuple):
    """How a learner stands numerically: the worst of its matrices, or of its members.

    Attributes
    ----------
    rounds : int
        Played so far.
    condition : float or None
        Largest over smallest eigenvalue of the matrix that is solved with, by power iterations on
        its factor: at most the truth up to rounding, and, for m rows, at least a ninth of it with
        probability 1 - 3e-5 sqrt(m) over the start (Dixon 1983). 1 for learners that solve
        nothing; None before any data.
    digits : float or None
        Decimal digits left of a forecast for inputs like those so far, relative to the largest
        label: -log10 of the rounding of a solve at the present solution. Between
        -log10(1e-16 condition) and 15.95.
    weakest : str
        The matrix or member with the fewest digits; "" where nothing is solved.
    recent_loss, loss_before : float or None
        Of ``Monitored``, as what follows: mean loss of its last ``recent`` rounds, and before. Of
        several outputs, the one with the last alarm, or else the largest loss.
    outliers, out_of_range : float or None
        Share of the last labels that are more than 100 median deviations from their median, and of
        the last rows with an input below or above all that came before.
    alarm : int or None
        Round of the last alarm: losses had risen.
    """

    rounds: int
    condition: float | None = None
    digits: float | None = None
    weakest: str = ""
    recent_loss: float | None = None
    loss_before: float | None = None
    outliers: float | None = None
    out_of_range: float | None = None
    alarm: int | None = None

    def __repr__(self) -> str:
        shown = Health._fields[: 4 if self.recent_loss is None else None]
        return repr_fields(self, **{name: getattr(self, name) for name in shown})


def summarise(rounds: int, parts: list[Part]) -> Health:
    """Return the health of a learner with these parts; warn if it has lost digits."""
    if not parts:
        return Health(rounds)
    worst = min(parts, key=lambda part: part.digits)
    if worst.digits < FEWEST_DIGITS:
        left = f"{worst.digits:.1f} of 16 digits are left of the forecasts after {rounds} rounds"
        warn(f"{left} ({worst.matrix}: condition {worst.condition:.2g}); {worst.remedy}")
    return Health(rounds, max(part.condition for part in parts), worst.digits, worst.matrix)


# ---- estimates ----


class Factored:
    """R' diag(scales) R, R upper triangular, or L L', by the leading m rows of R or L in a buffer.

    ``lower`` : whether the factor is L.
    """

    def __init__(
        self, factor: np.ndarray, m: int, scales: np.ndarray | None = None, lower: bool = False
    ):
        self.factor, self.m, self.lower = factor, m, lower
        self.scales = np.ones(m) if scales is None else scales

    def product(self, v: np.ndarray) -> np.ndarray:
        """Return the matrix times v."""
        R, out = self.factor.T if self.lower else self.factor, np.zeros(self.m)
        for k in range(0, self.m, BLOCK):
            rows = np.triu(R[k : min(k + BLOCK, self.m), k : self.m])
            out[k:] += (self.scales[k : k + len(rows)] * (rows @ v[k:])) @ rows
        return out

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the inverse times v."""
        v = v.copy()
        solve = linalg.solve_lower if self.lower else linalg.solve_upper_transposed
        solve(self.factor, v, self.m)
        return self.half_solve(v / self.scales)

    def half_solve(self, v: np.ndarray) -> np.ndarray:
        """Return R^-1 v or L'^-1 v."""
        v = v[: self.m].copy()
        solve = linalg.solve_lower_transposed if self.lower else linalg.solve_upper
        solve(self.factor, v, self.m)
        return v


def largest_eigenvalue(apply: Callable[[np.ndarray], np.ndarray], m: int) -> float:
    """Return the largest eigenvalue of a positive definite map, by a power iteration.

    It is at most the truth; theta times it is less with probability 0.8 theta^-STEPS sqrt(m) only
    (Dixon 1983, Theorem 1: the start is Gaussian, and the last step grows the most).
    """
    v = np.random.default_rng(0).standard_normal(m)
    value = 0.0
    with np.errstate(all="ignore"):
        v /= np.linalg.norm(v)
        for _ in range(STEPS):
            v = apply(v)
            value = float(np.linalg.norm(v))
            if not 0.0 < value < math.inf:
                return math.inf
            v /= value
    return value


def measure_part(
    name: str, matrix: Factored, solutions: Iterable[np.ndarray] = (), scales: Iterable[float] = (),
    reach: float = 1.0,
) -> Part:  # fmt: skip
    """Return the part of a matrix A = T' T that forecasts are solved with.

    A forecast p.c, p = T^-T z, c the solution in these coordinates, is in error by about UNIT |T|
    |T^-1 c| |p|, since a solve is exact for a T that is off by UNIT |T|.

    ``solutions`` : T^-1 c of each output, (m,); none where the matrix has no part in forecasts.
    ``scales`` : of the labels of each output; 0 before any label.
    ``reach`` : about the largest |p|.
    """
    if matrix.m == 0:
        return NO_MATRIX
    largest = largest_eigenvalue(matrix.product, matrix.m)
    condition = largest * largest_eigenvalue(matrix.solve, matrix.m)
    errors = [UNIT]
    for solution, scale in zip(solutions, scales, strict=True):
        size = float(np.linalg.norm(solution)) * reach * math.sqrt(largest)
        errors.append(UNIT * size / float(scale) if scale > 0.0 else UNIT)
    error = max(math.inf if error != error else error for error in errors)
    return Part(name, math.inf if condition != condition else max(condition, 1.0), error)


def measure_dense_part(name: str, A: np.ndarray, power: float = 1.0) -> Part:
    """Return the part of a small dense matrix to a power, by its eigenvalues: O(d^3)."""
    values = np.linalg.eigvalsh(A)
    condition = float(values[-1] / values[0]) ** power if values[0] > 0.0 else math.inf
    return Part(name, condition, UNIT * condition)


def name_members(members: Iterable[tuple[str, list[Part]]]) -> list[Part]:
    """Return the parts of all members, each with the name of its member in front."""
    return [part.named(name) for name, parts in members for part in parts]


NO_MATRIX = Part("")  # of a learner that has weights and solves nothing
