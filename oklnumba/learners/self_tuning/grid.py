"""The members of the self-tuning learner: feature maps, each with factors of several settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from oklnumba.components.kernels import Kernel
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.state import (
    Coins,
    State,
    aligned_zeros,
    pad_row_length,
    round_up_to_vector,
    sweep_workspace,
)
from oklnumba.hot.awv import awv_certified_rounds, awv_forecasts
from oklnumba.hot.primitives.jit import ATOMS, DONE
from oklnumba.hot.primitives.udu import TOGETHER
from oklnumba.hot.self_tuning import (
    DESCENT,
    PASSIVE_AGGRESSIVE,
    RANK,
    coordinate_forecasts,
    coordinate_rounds,
    map_rounds,
)
from oklnumba.learners.awv import TOTALS
from oklnumba.learners.base.expansion import measure_span

CHOSEN = 2  # entry of a SpanMap's counts: rank of the span when it was chosen
ROWS = 512  # rounds whose coordinates and forecasts are kept at a time
# KORS of all dictionaries: alpha, beta, eps, by leverage, unlisted weights (joining_probability).
RULE = 0.1, 1.0, 0.5, 0.0, 0.0


class Trouble(Exception):
    """A compiled loop ended with this status, not DONE, after so many rounds."""


def require_done(ended: tuple[int, int], before: int = 0) -> None:
    """Raise Trouble unless a loop, which began after ``before`` rounds, has played to its end."""
    played, status = ended
    if status != DONE:
        raise Trouble(status, before + played)


class Setting(NamedTuple):
    """The hyper-parameters of a factor."""

    lam: float
    half_life: float | None  # rounds; None: nothing is forgotten

    @property
    def discount(self) -> float:
        """The factor on the past, each round."""
        return 1.0 if self.half_life is None else 2.0 ** (-1.0 / self.half_life)

    @property
    def inverses(self) -> tuple[float, float]:
        """1 / discount and 1 / lam, as awv_rounds takes them."""
        return 1.0 / self.discount, 1.0 / self.lam


class Member(NamedTuple):
    """One forecaster of SelfTuning, in the units of the standardised inputs."""

    # "ridge", "awv", "passive-aggressive", "gradient descent" or "last label"
    forecaster: str
    sigma: float | None = None  # width of its kernel; None: linear in the inputs
    lam: float | None = None
    half_life: float | None = None  # in rounds; None: it forgets nothing
    C: float | None = None  # aggressiveness
    step: float | None = None
    # Of the learned metric of its Laplacian kernel: the kernel whose gradients gave it; None: no
    # metric, a Gaussian kernel.
    metric: str | None = None

    def __str__(self) -> str:
        if self == Member(self.forecaster):
            return self.forecaster
        kernel = "Gaussian kernel"
        if self.metric is not None:
            kernel = f"Laplacian kernel in the metric of a {self.metric} one"
        kind = "linear" if self.sigma is None else f"{kernel}, sigma = {self.sigma:.3g}"
        if self.C is not None:
            return f"{self.forecaster}, {kind}, C = {self.C:g}"
        if self.step is not None:
            return f"{self.forecaster}, {kind}, step = {self.step:g}"
        memory = "no forgetting" if self.half_life is None else f"half-life {self.half_life} rounds"
        return f"{self.forecaster}, {kind}, lam = {self.lam:g}, {memory}"


class LinearMap(State):
    """The inputs themselves, after a 1 for the intercept."""

    size = 0

    def __init__(self, d: int):
        self.columns = self.lasting = d + 1
        self.room = round_up_to_vector(d + 1)

    def write(self, X: np.ndarray, learn: bool, out: tuple) -> None:
        """Write coordinates, and how many they are; ``out`` as in map_rounds."""
        Z, columns, _ = out
        Z[: len(X), 0] = 1.0
        Z[: len(X), 1 : self.columns] = X
        columns[:] = self.room

    def choose(self, X: np.ndarray, out: tuple) -> None:
        """Do nothing: there is no dictionary."""

    def measure(self, functions: list[np.ndarray], scales: list[float]) -> list[Part]:
        """Return nothing: no matrix makes the coordinates."""
        return []


class SpanMap(State):
    """Coordinates in the span of a dictionary by KORS of bounded size, after a 1.

    A point that joins in the midst of rounds adds its direction from the next round on. As that
    coordinate is 0 before, only the ``lasting`` ones are functions of the input.
    """

    _STATE = {
        "counts": ("counts",), "atoms": ("d", ATOMS), "weights": (ATOMS,), "kors": (ATOMS, ATOMS),
        "span": (RANK,), "R": (RANK, RANK),
    }  # fmt: skip
    _INTEGERS = frozenset({"counts", "span"})
    _COINS = ("coins",)
    _SHARES_ROOM = {RANK: ATOMS}

    def __init__(self, kernel: Kernel, d: int, budget: int, seed: list[int]):
        self.kernel, self._kernel = kernel, kernel._code()
        self._budget = budget
        self._coins = Coins(seed)
        self._make_state(d=d, counts=3)
        self._reserve({ATOMS: budget})
        self.room = round_up_to_vector(budget + 1)

    @property
    def size(self) -> int:
        """Atoms in the dictionary."""
        return int(self._counts[ATOMS])

    @property
    def columns(self) -> int:
        """Coordinates: the 1, and the rank of the span."""
        return 1 + int(self._counts[RANK])

    @property
    def lasting(self) -> int:
        """Coordinates that were there from the first round on."""
        return 1 + int(self._counts[CHOSEN])

    def _choose_room(self, axis: int, least: int) -> int:
        return pad_row_length(round_up_to_vector(least))

    def _make_buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        cap = rooms[ATOMS]
        rows = aligned_zeros(cap), aligned_zeros(cap), aligned_zeros(2 * TOGETHER, cap)
        unit = aligned_zeros(cap, cap), aligned_zeros(cap)
        np.fill_diagonal(unit[0], 1.0)
        work = {"work": (*rows, aligned_zeros(TOGETHER)), "unit": unit}
        return super()._make_buffers(rooms) | work

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        rank = int(self._counts[RANK])
        U, scales = self._unit
        R = self._R[:rank, :rank]
        scales[:rank] = 1.0 / R.diagonal()
        U[:rank, :rank] = R * scales[:rank, None]
        np.fill_diagonal(U, 1.0)

    def write(self, X: np.ndarray, learn: bool, out: tuple) -> None:
        """Write coordinates, how many they are, and atoms, row by row; ``out`` as in map_rounds.

        learn : whether rows may join the dictionary.
        """
        coins = self._coins.take(len(X)) if learn else np.ones(len(X))
        setting = RULE, float(self._budget) if learn else 0.0
        dictionary = self._atoms, self._weights, self._kors, self._span, self._R
        require_done(
            map_rounds(
                X, coins, self._kernel, setting, self._counts, dictionary, self._unit,
                self._work, out,
            )
        )  # fmt: skip

    def choose(self, X: np.ndarray, out: tuple) -> None:
        """Let the dictionary choose among the rows of X."""
        if self.size < self._budget:
            self.write(X, True, out)
        else:
            self._coins.take(len(X))  # as if it had looked at them
        self._counts[CHOSEN] = self._counts[RANK]

    def measure(self, functions: list[np.ndarray], scales: list[float]) -> list[Part]:
        """Return the part of the span's matrix; functions : in its coordinates."""
        if self.columns == 1:
            return []
        spanning = self._used("atoms").T[self._used("span")]
        return [measure_span(self.kernel, spanning, self._R, [w[1:] for w in functions], scales)]


class Factor(State):
    """The factor U' D U of discounted ridge regression; AWV and ridge forecasts for K labels."""

    _STATE = {
        "U": ("r", "r"), "inv_d": ("r",), "c": ("outputs", "r"), "totals": ("outputs", "totals"),
    }  # fmt: skip
    _UNBOUNDED = frozenset({"totals"})
    _PADDED = frozenset({"U"})

    def __init__(self, room: int, outputs: int, setting: Setting):
        self._make_state(r=room, outputs=outputs, totals=TOTALS)
        np.fill_diagonal(self._U, 1.0)
        self._inv_d[:] = 1.0 / setting.lam
        self._discount = setting.discount
        factor = self._U, self._inv_d, self._c
        self._arguments = factor, setting.inverses, sweep_workspace(self._U), 0.0

    def play(
        self, Z: np.ndarray, Y: np.ndarray, r: int, own: int, out: tuple, proof: tuple
    ) -> tuple[int, int]:
        """Play rounds on r coordinates, ``own`` of them for the comparator.

        Returns (rounds, status). ``out`` and ``proof`` as in awv_certified_rounds: of the AWV
        forecasts.
        """
        return awv_certified_rounds(
            Z, Y, r, *self._arguments, own, self._discount, self._totals, out, proof
        )

    def forecast(self, Z: np.ndarray, r: int, out: tuple) -> None:
        """Write the forecasts of single rounds."""
        awv_forecasts(Z, r, *self._arguments, out)

    def solve(self, r: int) -> tuple[Factored, list[np.ndarray]]:
        """Return the matrix of r coordinates, and the ridge estimates."""
        matrix = Factored(self._U, r, 1.0 / self._inv_d[:r])
        return matrix, [matrix.half_solve(c) for c in self._c]


class FirstOrder(State):
    """A linear learner on coordinates: PA-I (Crammer et al. 2006) or gradient descent.

    PA-I has the hinge loss where labels are -1 and +1, else the absolute loss; descent the logistic
    loss, else the squared loss. rate : C of PA-I, the step of descent.
    """

    _STATE = {"weights": ("outputs", "r"), "largest": ("outputs",)}

    def __init__(self, room: int, signs: np.ndarray, rule: int, rate: float):
        self._make_state(r=room, outputs=len(signs))
        self._rule, self._rate, self._signs = rule, rate, signs

    def play(self, Z: np.ndarray, columns: np.ndarray, Y: np.ndarray, out: np.ndarray) -> None:
        """Play rounds on coordinates, and write their forecasts."""
        require_done(
            coordinate_rounds(
                Z, columns, Y, self._rule, self._rate, self._signs, self._weights, self._largest,
                out,
            )
        )  # fmt: skip

    def forecast(self, Z: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        """Write the forecasts of single rounds."""
        coordinate_forecasts(Z, columns, self._rule, self._signs, self._weights, out)


class Group:
    """A map, and the factors, PA-I learners and descents on its coordinates.

    ``forecasts``, of shape (2 factors + others, ROWS, K), holds the ridge and AWV forecasts of each
    factor in turn, then those of PA-I and of descent. AWV forecasts of factors that forget belong
    to no member: they never led, and have no certificate. ``sizes`` : atoms after each round.

    signs : (K,), 1 where labels are -1 and +1, else 0; rates : C of PA-I; steps : of descent.
    """

    def __init__(
        self,
        points: LinearMap | SpanMap,
        settings: tuple[Setting, ...],
        signs: np.ndarray,
        rates: tuple[float, ...] = (),
        steps: tuple[float, ...] = (),
    ):
        self.map, self.settings, self.rates, self.steps = points, settings, rates, steps
        room, outputs = points.room, len(signs)
        self.factors = [Factor(room, outputs, setting) for setting in settings]
        self.first_order = [
            *(FirstOrder(room, signs, PASSIVE_AGGRESSIVE, C) for C in rates),
            *(FirstOrder(room, signs, DESCENT, step) for step in steps),
        ]
        count = 2 * len(settings) + len(self.first_order)
        self.forecasts = np.zeros((count, ROWS, outputs))
        self._static = [i for i, one in enumerate(settings) if one.half_life is None]
        fading = {2 * i + 1 for i in range(len(settings)) if i not in self._static}
        self._members = [i for i in range(count) if i not in fading]
        self._shrinks = np.zeros((len(settings), ROWS))
        self._proofs = np.zeros((len(settings), 3, ROWS, outputs))
        self._growth = np.zeros((ROWS, outputs))  # what late coordinates take off the comparator
        self._Z = aligned_zeros(ROWS, room)
        self._columns = np.zeros(ROWS, dtype=np.int64)
        self.sizes = np.zeros(ROWS, dtype=np.int64)

    @property
    def size(self) -> int:
        """Atoms in the dictionary."""
        return self.map.size

    def parts(self) -> list[State]:
        """Return everything with a state."""
        return [self.map, *self.factors, *self.first_order]

    def describe_members(self, sigma: float | None, metric: str | None = None) -> list[Member]:
        """Return what the members are; sigma : width of the kernel, None if linear."""
        found = [Member(name, sigma, *one) for one in self.settings for name in ("ridge", "awv")]
        found += [Member("passive-aggressive", sigma, C=C) for C in self.rates]
        found += [Member("gradient descent", sigma, step=step) for step in self.steps]
        return [found[i]._replace(metric=metric) for i in self._members]

    def choose(self, X: np.ndarray) -> None:
        """Let the dictionary choose among up to ROWS inputs."""
        self.map.choose(X, (self._Z, self._columns, self.sizes))

    def play(self, X: np.ndarray, Y: np.ndarray, learn: bool) -> None:
        """Write the forecasts of up to ROWS rounds, then learn them."""
        n = len(X)
        self.map.write(X, learn, (self._Z, self._columns, self.sizes))
        self._growth[:n] = 0.0
        for start, stop, r in self._stretches(n):
            own = min(self.map.lasting, r)
            for i, factor in enumerate(self.factors):
                out = *self._out(i, start, stop), self._growth[start:stop]
                proof = tuple(part[start:stop] for part in self._proofs[i])
                ended = factor.play(self._Z[start:stop], Y[start:stop], r, own, out, proof)
                require_done(ended, start)
        for one, out in zip(self.first_order, self.forecasts[2 * len(self.factors) :], strict=True):
            one.play(self._Z[:n], self._columns[:n], Y, out[:n])

    def forecast(self, X: np.ndarray) -> None:
        """Write the forecasts of up to ROWS single rounds; nothing is learned."""
        n = len(X)
        self.map.write(X, False, (self._Z, self._columns, self.sizes))
        for start, stop, r in self._stretches(n):
            for i, factor in enumerate(self.factors):
                factor.forecast(self._Z[start:stop], r, self._out(i, start, stop))
        for one, out in zip(self.first_order, self.forecasts[2 * len(self.factors) :], strict=True):
            one.forecast(self._Z[:n], self._columns[:n], out[:n])

    def member_forecasts(self, n: int) -> np.ndarray:
        """Return the forecasts of the members in the last n rounds, (members, n, K)."""
        return self.forecasts[self._members, :n]

    def certificates(self, n: int) -> np.ndarray:
        """Return loss, comparator and bound of the AWV forecasts in the last n rounds.

        Of the factors that forget nothing: (factors, 3, n, K).
        """
        return self._proofs[self._static, :, :n]

    def _out(self, i: int, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ridge, awv = self.forecasts[2 * i], self.forecasts[2 * i + 1]
        return awv[start:stop], ridge[start:stop], self._shrinks[i, start:stop]

    def _stretches(self, n: int) -> Iterator[tuple[int, int, int]]:
        """Yield (start, stop, columns) of rounds with equally many coordinates.

        Rounding depends on how many they are, so this must not depend on how the stream is cut.
        """
        columns, cuts = self._columns[:n], [0, n]
        if n > 1:  # NumPy takes a tenth of the time of a single round to find no cut
            cuts[1:1] = (np.flatnonzero(np.diff(columns)) + 1).tolist()
        for start, stop in zip(cuts[:-1], cuts[1:], strict=True):
            yield start, stop, int(columns[start])

    def measure(self, scales: np.ndarray) -> list[Part]:
        """Return the parts of its matrices; scales : (K,), of the labels."""
        found, functions = [], []
        for setting, factor in zip(self.settings, self.factors, strict=True):
            matrix, estimates = factor.solve(self.map.columns)
            part = measure_part("lam I + sum z z'", matrix, estimates, scales)
            found.append(part.within(f"lam = {setting.lam:g}"))
            functions += estimates
        return found + self.map.measure(functions, list(scales) * len(self.factors))
