"""How a learner stands numerically: what ``learner.health()`` says, and how it is measured.

A learner names the matrices that it solves with, each as a ``Part``. Estimates cost a few sweeps
over the factor, O(m^2) for m rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from oklnumba.core.display import brief, table
from oklnumba.hot.primitives.linalg import (
    lower_product,
    solve_lower,
    solve_lower_transposed,
    solve_upper,
    solve_upper_transposed,
    upper_product,
)

UNIT = 2.0**-53  # relative rounding of one operation
SIX = 6.0  # digits; with fewer ``health`` warns
STEPS = 10  # of a power iteration
COLUMNS = 4  # of a matrix that are made anew
LARGEST_WEIGHT = 1e50  # half way, in digits, to the forecasts that end a learner


class Part(NamedTuple):
    """What there is to say of one matrix of a learner, or of its weights where it has none."""

    matrix: str  # what it is; "" where nothing is solved
    condition: float = 1.0
    drift: float | None = None
    refused: float | None = 0.0
    error: float = UNIT  # that rounding leaves in a forecast, relative to the scale of labels
    largest: float = 0.0  # weight or coefficient
    remedy: str = ""

    @property
    def digits(self) -> float:
        """Digits that are left of a forecast; infinities and NaN leave none."""
        trouble = max(self.error, self.drift or 0.0, UNIT)
        return max(-math.log10(trouble), 0.0) if trouble < math.inf else 0.0

    def within(self, whose: str) -> Part:
        """Return the part of a member."""
        return self._replace(matrix=f"{whose}: {self.matrix or 'no matrix'}")


class Health(NamedTuple):
    """How a learner stands numerically; the worst of its matrices, or of its members.

    Attributes
    ----------
    rounds : int
        Played so far.
    condition : float or None
        Largest over smallest eigenvalue of the matrix that is solved with, by power iterations on
        its factor: at most the truth up to rounding, and, for m rows, at least a ninth of it but
        for a start that has a probability of 3e-5 sqrt(m) (Dixon 1983). 1 for learners that solve
        nothing; None before any data.
    drift : float or None
        Largest difference between the factor times itself and the matrix, made anew from the data
        that the learner keeps, in a few columns, the last among them, relative to the largest entry
        of the column. None where the learner does not keep what the matrix was made of.
    refused : float or None
        Share of directions that were left out of a dictionary or a map, for they were in its span
        to rounding. None where they are not counted.
    digits : float or None
        Decimal digits that are left of a forecast for inputs like those so far, relative to the
        largest label: -log10 of the rounding of a solve with the factor at the present solution, or
        of the drift. Between -log10(1e-16 condition) and 15.95, and nearer the truth than the
        condition, which is about the worst labels. Far from all inputs so far there may be fewer.
    largest : float or None
        Largest weight or coefficient. Steps that are too long show here first.
    weakest : str
        Which matrix, or member, has the fewest digits; "" where nothing is solved.
    """

    rounds: int
    condition: float | None = None
    drift: float | None = None
    refused: float | None = None
    digits: float | None = None
    largest: float | None = None
    weakest: str = ""

    @classmethod
    def of(cls, rounds: int, parts: list[Part]) -> Self:
        """Return the health of a learner that has these parts."""
        if not parts:
            return cls(rounds)
        worst = min(parts, key=lambda part: part.digits)
        return cls(
            rounds,
            condition=max(part.condition for part in parts),
            drift=max((part.drift for part in parts if part.drift is not None), default=None),
            refused=max((part.refused for part in parts if part.refused is not None), default=None),
            digits=worst.digits,
            largest=max(part.largest for part in parts),
            weakest=worst.matrix,
        )

    def __repr__(self) -> str:
        return brief(self, **self._asdict())

    def _repr_html_(self) -> str:
        return table("health", self._asdict())


def warning(health: Health, parts: list[Part]) -> str | None:
    """Return what to tell of a learner that has lost digits or is about to diverge; None: all well.

    parts : those that ``health`` is of.
    """
    if not parts:
        return None
    worst = min(parts, key=lambda part: part.digits)
    if worst.digits < SIX:
        drift = "" if worst.drift is None else f", drift {worst.drift:.2g}"
        return (
            f"{worst.digits:.1f} of 16 digits are left of the forecasts after {health.rounds} "
            f"rounds ({worst.matrix}: condition {worst.condition:.2g}{drift}); {worst.remedy}"
        )
    heaviest = max(parts, key=lambda part: part.largest)
    if not heaviest.largest < LARGEST_WEIGHT:
        return (
            f"the largest weight is {heaviest.largest:.2g} after {health.rounds} rounds: the run "
            f"diverges; {heaviest.remedy}"
        )
    return None


# ---- estimates ----


class Factored(Protocol):
    """A positive definite matrix of ``m`` rows by its factor."""

    m: int

    def product(self, v: np.ndarray) -> np.ndarray:
        """Return the matrix times v."""

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the inverse times v."""


class Upper:
    """R' R, or R' diag(scales) R, for an upper triangular R, the leading m rows of a buffer."""

    def __init__(self, R: np.ndarray, m: int, scales: np.ndarray | None = None):
        self.R, self.m = R, m
        self.scales = np.ones(m) if scales is None else scales

    def product(self, v: np.ndarray) -> np.ndarray:
        """Return the matrix times v."""
        out = np.empty(self.m)
        upper_product(self.R, self.scales, v, out, self.m)
        return out

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the inverse times v."""
        v = v.copy()
        solve_upper_transposed(self.R, v, self.m)
        v /= self.scales
        solve_upper(self.R, v, self.m)
        return v

    def half_solve(self, v: np.ndarray) -> np.ndarray:
        """Return R^-1 v."""
        v = v[: self.m].copy()
        solve_upper(self.R, v, self.m)
        return v


class Lower:
    """L L' for a lower triangular L, the leading m rows of a buffer."""

    def __init__(self, L: np.ndarray, m: int):
        self.L, self.m = L, m

    def product(self, v: np.ndarray) -> np.ndarray:
        """Return the matrix times v."""
        out = np.empty(self.m)
        lower_product(self.L, v, np.empty(self.m), out, self.m)
        return out

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the inverse times v."""
        v = v.copy()
        solve_lower(self.L, v, self.m)
        solve_lower_transposed(self.L, v, self.m)
        return v

    def half_solve(self, v: np.ndarray) -> np.ndarray:
        """Return L'^-1 v."""
        v = v[: self.m].copy()
        solve_lower_transposed(self.L, v, self.m)
        return v


def top(apply: Callable[[np.ndarray], np.ndarray], m: int) -> float:
    """Return the largest eigenvalue of a positive definite map, by a power iteration.

    It is at most the truth; theta times it is less with probability 0.8 theta^-STEPS sqrt(m) only
    (Dixon 1983, Theorem 1, for the start is Gaussian, and the last step grows the most).
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


def drifted(matrix: Factored, column: Callable[[int], np.ndarray]) -> float:
    """Return how far some columns of a matrix are from those made anew; see ``Health.drift``."""
    found = 0.0
    for i in np.unique(np.linspace(0, matrix.m - 1, COLUMNS).astype(int)):
        unit, truth = np.zeros(matrix.m), column(int(i))
        unit[i] = 1.0
        with np.errstate(all="ignore"):
            far = np.abs(matrix.product(unit) - truth).max() / np.abs(truth).max()
        found = max(found, float(far)) if far == far else math.inf
    return found


def part_of(
    name: str,
    matrix: Factored,
    solutions: Iterable[np.ndarray] = (),
    scales: Iterable[float] = (),
    column: Callable[[int], np.ndarray] | None = None,
    reach: float = 1.0,
) -> Part:
    """Return the part of a matrix A = T' T that forecasts are solved with.

    A forecast p.c, p = T^-T z, c the solution in these coordinates, is in error by about UNIT |T|
    |T^-1 c| |p|, for a solve is exact for a T that is off by UNIT |T|.

    Parameters
    ----------
    name : str
    matrix : Factored
    solutions : ndarrays of shape (m,)
        T^-1 c of each output; none where the matrix has no part in forecasts.
    scales : floats
        Of the labels of each output; 0 where nothing is known of it yet.
    column : callable, optional
        Makes column i of A anew.
    reach : float
        About the largest |p|.
    """
    largest = top(matrix.product, matrix.m)
    condition = largest * top(matrix.solve, matrix.m)
    errors, weights = [UNIT], [0.0]
    for solution, scale in zip(solutions, scales, strict=True):
        size = float(np.linalg.norm(solution)) * reach * math.sqrt(largest)
        errors.append(UNIT * size / float(scale) if scale > 0.0 else UNIT)
        weights.append(float(np.abs(solution).max(initial=0.0)))
    return Part(
        name,
        condition=known(max(condition, 1.0)),
        drift=None if column is None else drifted(matrix, column),
        error=max(known(error) for error in errors),
        largest=max(known(weight) for weight in weights),
    )


def known(value: float) -> float:
    """Return a value, infinity for NaN."""
    return value if value == value else math.inf


def dense_part(name: str, A: np.ndarray, power: float = 1.0) -> Part:
    """Return the part of a small matrix to a power, whose rounds take O(d^3) as this does."""
    values = np.linalg.eigvalsh(A)
    condition = float(values[-1] / values[0]) ** power if values[0] > 0.0 else math.inf
    return Part(name, condition=condition, error=UNIT * condition)


def weights_part(*weights: np.ndarray, **told: Any) -> Part:
    """Return the part of a learner that solves nothing, but has weights."""
    sizes = (float(np.abs(one).max(initial=0.0)) for one in weights)
    return Part("", largest=max(sizes, default=0.0), **told)


def of_members(members: Iterable[tuple[str, list[Part]]]) -> list[Part]:
    """Return the parts of all members, each with the name of its member."""
    return [part.within(name) for name, parts in members for part in parts]
