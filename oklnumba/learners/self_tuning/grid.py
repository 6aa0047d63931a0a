"""The members of the self-tuning learner: feature maps, each with factors of several settings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oklnumba.components.kernels import Kernel
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.state import (
    Coins,
    State,
    aligned_zeros,
    make_late,
    pad_row_length,
    round_up_to_vector,
    sweep_workspace,
)
from oklnumba.hot import self_tuning as hot
from oklnumba.hot.primitives.jit import ATOMS, DONE
from oklnumba.hot.primitives.udu import TOGETHER
from oklnumba.learners.awv import TOTALS, settle
from oklnumba.learners.base.expansion import measure_span

CHOSEN = 2  # entry of a SpanMap's counts: rank of the span when it was chosen
FADED = 4.0  # a range is forgotten if recent labels fill less than one part of so many
ROWS = 512  # rounds whose coordinates and forecasts are kept at a time
# KORS of all dictionaries: alpha, beta, eps, by leverage, unlisted weights (joining_probability).
RULE = 0.1, 1.0, 0.5, 0.0, 0.0
NO_COINS = np.empty(0)  # of rounds that may not join: no coin is looked at


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
    scores: bool = False  # whether its kernel is of normal scores in place of the inputs

    def __str__(self) -> str:
        if self == Member(self.forecaster):
            return self.forecaster
        kernel = "Gaussian kernel"
        if self.metric is not None:
            kernel = f"Laplacian kernel in the metric of a {self.metric} one"
        if self.scores:
            kernel += " of normal scores"
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

    def write(self, X: np.ndarray, learn: bool, out: tuple, known: bool = False) -> None:
        """Write coordinates, and how many they are; ``out`` as in map_rounds."""
        if known:
            return
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
        "span": (hot.RANK,), "R": (hot.RANK, hot.RANK),
    }  # fmt: skip
    _INTEGERS = frozenset({"counts", "span"})
    _COINS = ("coins",)
    _SHARES_ROOM = {hot.RANK: ATOMS}

    def __init__(self, kernel: Kernel, d: int, budget: int, seed: list[int]):
        self.kernel, self._kernel = kernel, kernel._code()
        self._budget, self._seed = budget, seed
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
        return 1 + int(self._counts[hot.RANK])

    @property
    def lasting(self) -> int:
        """Coordinates that were there from the first round on."""
        return 1 + int(self._counts[CHOSEN])

    def _choose_room(self, axis: int, least: int) -> int:
        return pad_row_length(round_up_to_vector(least))

    def _make_buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        cap = rooms[ATOMS]
        rows = aligned_zeros(cap), aligned_zeros(cap), aligned_zeros(TOGETHER, cap)
        unit = aligned_zeros(cap, cap), aligned_zeros(cap)
        np.fill_diagonal(unit[0], 1.0)
        work = {"work": rows, "unit": unit}
        return super()._make_buffers(rooms) | work

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        rank = int(self._counts[hot.RANK])
        U, scales = self._unit
        R = self._R[:rank, :rank]
        scales[:rank] = 1.0 / R.diagonal()
        U[:rank, :rank] = R * scales[:rank, None]
        np.fill_diagonal(U, 1.0)

    def write(self, X: np.ndarray, learn: bool, out: tuple, known: bool = False) -> None:
        """Write coordinates, how many they are, and atoms, row by row; ``out`` as in map_rounds.

        learn : whether rows may join the dictionary; known : whether ``out`` has them from a
        forecast.
        """
        full = self.size == self._budget
        if known and full:
            return
        learn = learn and not full
        coins = self._coins.take(len(X)) if learn else NO_COINS
        setting = RULE, float(self._budget) if learn else 0.0, known
        dictionary = self._atoms, self._weights, self._kors, self._span, self._R
        require_done(
            hot.map_rounds(
                X, coins, self._kernel, setting, self._counts, dictionary, self._unit,
                self._work, out,
            )
        )  # fmt: skip

        if learn and self.size == self._budget:  # so the coins do not depend on how X was cut
            self._coins = Coins(self._seed)

    def choose(self, X: np.ndarray, out: tuple) -> None:
        """Let the dictionary choose among the rows of X."""
        if self.size < self._budget:
            self.write(X, True, out)
        self._counts[CHOSEN] = self._counts[hot.RANK]

    def measure(self, functions: list[np.ndarray], scales: list[float]) -> list[Part]:
        """Return the part of the span's matrix; functions : in its coordinates."""
        if self.columns == 1:
            return []
        spanning = self._used("atoms").T[self._used("span")]
        return [measure_span(self.kernel, spanning, self._R, [w[1:] for w in functions], scales)]


def prepare_ridges(
    settings: tuple[Setting, ...], U: np.ndarray, inv_d: np.ndarray, c: np.ndarray,
    totals: np.ndarray,
) -> tuple:  # fmt: skip
    """Return ridge regressions as group_rounds takes them."""
    numbers = np.array([(*one.inverses, one.discount) for one in settings])
    factors = U, inv_d, c, make_late((len(settings),), U.shape[-1])
    return numbers, factors, totals, sweep_workspace(U[0])


def settle_ridges(ridges: tuple) -> None:
    """Take rounds that wait for the next pass over U into it, and into inv_d."""
    numbers, (U, inv_d, c, (widths, kept)), *_ = ridges
    for i, one in enumerate(numbers):
        settle((U[i], inv_d[i], c[i], (widths[i], kept[i])), (one[0], one[1]))


def prepare_rules(
    rates: tuple[float, ...], steps: tuple[float, ...], signs: np.ndarray, weights: np.ndarray,
    largest: np.ndarray,
) -> tuple:  # fmt: skip
    """Return first-order rules as group_rounds takes them."""
    rules = [hot.PASSIVE_AGGRESSIVE] * len(rates) + [hot.DESCENT] * len(steps)
    codes = np.array(rules, dtype=np.int64)
    return codes, np.array([*rates, *steps], dtype=float), signs, weights, largest


def make_room(forecasts: int, ridges: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return forecasts and proofs of up to ROWS rounds, for group_rounds."""
    return np.zeros((forecasts, ROWS, outputs)), np.zeros((ridges, 3, ROWS, outputs))


class Group(State):
    """A map, and the ridge regressions, PA-I learners and descents on its coordinates.

    ``forecasts``, of shape (2 ridges + rules, ROWS, K), holds the ridge and AWV forecasts of each
    regression in turn, then those of PA-I and of descent. AWV forecasts of regressions that forget
    belong to no member: they never led, and have no certificate. ``proofs``, (ridges, 3, ROWS, K),
    holds loss, comparator and bound of the AWV forecasts; ``sizes`` the atoms after each round.
    ``use_room`` says where these two are.

    signs : (K,), 1 where labels are -1 and +1, else 0; rates : C of PA-I; steps : of descent.
    """

    _STATE = {
        "U": ("ridges", "r", "r"), "inv_d": ("ridges", "r"), "c": ("ridges", "outputs", "r"),
        "totals": ("ridges", "outputs", "totals"), "weights": ("rules", "outputs", "r"),
        "largest": ("rules", "outputs"),
    }  # fmt: skip
    _UNBOUNDED = frozenset({"totals"})
    _PADDED = frozenset({"U"})

    def __init__(
        self,
        points: LinearMap | SpanMap,
        settings: tuple[Setting, ...],
        signs: np.ndarray,
        rates: tuple[float, ...] = (),
        steps: tuple[float, ...] = (),
    ):
        self.map, self.settings, self.rates, self.steps = points, settings, rates, steps
        ridges, rules, outputs, r = len(settings), len(rates) + len(steps), len(signs), points.room
        self._make_state(ridges=ridges, rules=rules, outputs=outputs, r=r, totals=TOTALS)
        self._U[:, np.arange(r), np.arange(r)] = 1.0
        self._inv_d[:] = 1.0 / np.array([one.lam for one in settings])[:, None]
        self._arguments = (
            prepare_ridges(settings, self._U, self._inv_d, self._c, self._totals),
            prepare_rules(rates, steps, signs, self._weights, self._largest),
        )
        self.forecasters, self.outputs = 2 * ridges + rules, outputs
        self._workspace = np.zeros(ROWS), np.zeros((ROWS, outputs))
        self._columns = np.zeros(ROWS, dtype=np.int64)
        self.sizes = np.zeros(ROWS, dtype=np.int64)
        self._coordinates = aligned_zeros(ROWS, r), self._columns, self.sizes

    def use_room(self, forecasts: np.ndarray, proofs: np.ndarray) -> None:
        """Write into these arrays from now on."""
        self.forecasts, self.proofs = forecasts, proofs
        self._out = forecasts, *self._workspace, proofs

    @property
    def size(self) -> int:
        """Atoms in the dictionary."""
        return self.map.size

    def parts(self) -> list[State]:
        """Return everything with a state."""
        return [self.map, self]

    def shrink_units(self, recent: np.ndarray) -> None:
        """Take ``recent``, (K,), for the largest label of PA-I where that is far larger."""
        self._largest[:] = np.where(recent < self._largest / FADED, recent, self._largest)

    def describe_members(self, like: Member) -> list[Member]:
        """Return what the members are; like : with the kernel, which all of them share."""
        found = [
            like._replace(forecaster=name, lam=one.lam, half_life=one.half_life)
            for one in self.settings
            for name in ("ridge", "awv")
        ]
        found += [like._replace(forecaster="passive-aggressive", C=C) for C in self.rates]
        found += [like._replace(forecaster="gradient descent", step=step) for step in self.steps]
        return [found[i] for i in self.members]

    @property
    def members(self) -> list[int]:
        """Which of the forecasts are those of members."""
        fading = {2 * i + 1 for i, one in enumerate(self.settings) if one.half_life is not None}
        return [i for i in range(self.forecasters) if i not in fading]

    @property
    def static(self) -> list[int]:
        """Which regressions forget nothing, and have a certificate."""
        return [i for i, one in enumerate(self.settings) if one.half_life is None]

    def choose(self, X: np.ndarray) -> None:
        """Let the dictionary choose among up to ROWS inputs."""
        self.map.choose(X, self._coordinates)

    def play(self, X: np.ndarray, Y: np.ndarray, learn: bool, known: bool) -> None:
        """Write the forecasts of up to ROWS rounds, then learn them.

        known : whether ``forecast`` has just had the only one.
        """
        self.map.write(X, learn, self._coordinates, known)
        Z, columns, _ = self._coordinates
        require_done(hot.group_rounds(Z, columns, Y, self.map.lasting, *self._arguments, self._out))

    def forecast(self, X: np.ndarray) -> None:
        """Write the forecasts of up to ROWS single rounds; nothing is learned."""
        self.map.write(X, False, self._coordinates)
        Z, columns, _ = self._coordinates
        hot.group_forecasts(Z, columns, len(X), *self._arguments, self._out)

    def _settle(self) -> None:
        settle_ridges(self._arguments[0])

    def measure(self, scales: np.ndarray) -> list[Part]:
        """Return the parts of its matrices; scales : (K,), of the labels."""
        self._settle()
        found, functions, r = [], [], self.map.columns
        for U, inv_d, c, setting in zip(self._U, self._inv_d, self._c, self.settings, strict=True):
            matrix = Factored(U, r, 1.0 / inv_d[:r])
            estimates = [matrix.half_solve(one) for one in c]
            part = measure_part("lam I + sum z z'", matrix, estimates, scales)
            found.append(part.within(f"lam = {setting.lam:g}"))
            functions += estimates
        return found + self.map.measure(functions, list(scales) * len(self.settings))
