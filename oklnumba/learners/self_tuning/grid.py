"""The members of the self-tuning learner: coordinates, each with factors of several settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    zero_pages,
)
from oklnumba.hot import self_tuning as hot
from oklnumba.hot.awv import LATE
from oklnumba.hot.primitives.jit import ATOMS, DONE, entry
from oklnumba.hot.primitives.udu import TOGETHER
from oklnumba.learners.awv import TOTALS, settle
from oklnumba.learners.base.expansion import measure_span

FADED = 4.0  # a range is forgotten if recent labels fill less than one part of so many
ROWS = 512  # rounds whose coordinates and forecasts are kept at a time
ENTRIES: dict[Callable, Callable] = {}  # machine code of the loops of groups
NO_COINS = np.empty(0)  # of rounds that may not join: no coin is looked at


class Trouble(Exception):
    """A compiled loop ended with this status, not DONE, after so many rounds."""


def require_done(ended: tuple[int, int]) -> None:
    """Raise Trouble unless a loop has played to its end."""
    played, status = ended
    if status != DONE:
        raise Trouble(status, played)


def call(loop: Callable, *arguments: Any) -> Any:
    """Call a loop of groups without looking at types, which are the same for all groups."""
    if loop not in ENTRIES:
        ENTRIES[loop] = entry(loop, arguments)
    return ENTRIES[loop](*arguments)


class Setting(NamedTuple):
    """The hyper-parameters of a factor."""

    lam: float
    half_life: float | None  # rounds; None: nothing is forgotten

    def numbers(self) -> tuple[float, float, float]:
        """Return 1 / discount, 1 / lam and the discount: the factor on the past, each round."""
        discount = 1.0 if self.half_life is None else 2.0 ** (-1.0 / self.half_life)
        return 1.0 / discount, 1.0 / self.lam, discount


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


class SpanMap(State):
    """Coordinates in the span of a dictionary by KORS of bounded size, after a 1; one in each leaf.

    The inputs themselves if ``budget`` is 0. A point that joins in the midst of rounds adds its
    direction from the next round on. As that coordinate is 0 before, only those that were chosen
    at first are functions of the input.
    """

    _STATE = {
        "counts": ("leaves", "counts"), "atoms": ("leaves", "d", "cap"),
        "weights": ("leaves", "cap"), "kors": ("leaves", "cap", "cap"), "span": ("leaves", "cap"),
        "R": ("leaves", "cap", "cap"),
    }  # fmt: skip
    _INTEGERS = frozenset({"counts", "span"})
    _SPARSE = frozenset({"atoms", "kors", "R"})
    _COINS = ("coins",)

    def __init__(self, kernel: Kernel, d: int, budget: int, seed: list[int], leaves: int = 1):
        self.kernel, self._budget, self._seed = kernel, budget, seed
        self._coins, self._full = Coins(seed), budget == 0
        cap = pad_row_length(round_up_to_vector(budget))
        self._make_state(leaves=leaves, counts=3, d=d, cap=cap)
        self._counts[:, hot.RANK :] = 0 if budget else d
        self._unit = zero_pages(leaves, cap, cap), aligned_zeros(leaves, cap)
        self.room = round_up_to_vector((budget or d) + 1)
        dictionary = self._atoms, self._weights, self._kors, self._span, self._R
        work = aligned_zeros(cap), aligned_zeros(cap), aligned_zeros(TOGETHER, cap)
        self.arguments = kernel._code(), budget, self._counts, dictionary, self._unit, work

    @property
    def size(self) -> int:
        """Atoms in the dictionaries of all leaves."""
        return int(self._counts[:, ATOMS].sum())

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        for (_, rank, _), R, U, scales in zip(self._counts, self._R, *self._unit, strict=True):
            if self._budget:
                scales[:rank] = 1.0 / R.diagonal()[:rank]
                U[:rank, :rank] = R[:rank, :rank] * scales[:rank, None]

    def toss(self, n: int) -> np.ndarray:
        """Return the coins of n rounds; none if all dictionaries are full."""
        return NO_COINS if self._full else self._coins.take(n)

    def end_block(self, chosen: bool = False) -> None:
        """Note what a block has changed; ``chosen`` : these were the atoms to begin with."""
        if chosen:
            self._counts[:, hot.CHOSEN] = self._counts[:, hot.RANK]
        if not self._full and self.size == self._budget * len(self._counts):
            self._full = True
            self._coins = Coins(self._seed)  # so they do not depend on how X was cut

    def measure(self, leaf: int, functions: list[np.ndarray], scales: list[float]) -> list[Part]:
        """Return the part of the span's matrix; functions : in its coordinates."""
        if self._counts[leaf, ATOMS] == 0:
            return []
        spanning = self._atoms[leaf].T[self._span[leaf, : self._counts[leaf, hot.RANK]]]
        return [
            measure_span(self.kernel, spanning, self._R[leaf], [w[1:] for w in functions], scales)
        ]


def prepare_ridges(
    settings: tuple[Setting, ...], U: np.ndarray, inv_d: np.ndarray, c: np.ndarray,
    totals: np.ndarray,
) -> tuple:  # fmt: skip
    """Return ridge regressions of several leaves as ridge_rounds takes them."""
    numbers = np.array([one.numbers() for one in settings])
    inv_d[:] = numbers[:, 1:2]
    factors = U, inv_d, c, make_late(U.shape[:2], U.shape[-1])
    return numbers, factors, totals, sweep_workspace(U[0, 0])


def settle_ridges(ridges: tuple) -> None:
    """Take rounds that wait for the next pass over U into it, and into inv_d."""
    numbers, (U, inv_d, c, (widths, kept)), *_ = ridges
    for at in zip(*widths[..., LATE].nonzero(), strict=True):
        settle((U[at], inv_d[at], c[at], (widths[at], kept[at])), tuple(numbers[at[1], :2]))


def measure_ridges(
    names: list[str], ridges: tuple, leaf: int, r: int, scales: Sequence[float]
) -> tuple[list[Part], list[np.ndarray]]:
    """Return the parts of a leaf's matrices, of r columns, and the functions that they give."""
    parts, functions, (U, inv_d, c, _) = [], [], ridges[1]
    for i, name in enumerate(names):
        unit = U[leaf, i, :r, :r].copy()
        np.fill_diagonal(unit, 1.0)  # which no round reads or writes
        matrix = Factored(unit, r, 1.0 / inv_d[leaf, i, :r])
        estimates = [matrix.half_solve(one) for one in c[leaf, i]]
        parts.append(measure_part("lam I + sum z z'", matrix, estimates, scales).within(name))
        functions += estimates
    return parts, functions


def make_room(forecasts: int, ridges: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return forecasts and proofs of up to ROWS rounds."""
    return np.zeros((forecasts, ROWS, outputs)), np.zeros((ridges, 3, ROWS, outputs))


class Metric(NamedTuple):
    """Scales of the inputs, and a tree that splits them so scaled, of one leaf at least."""

    scales: np.ndarray  # (d,)
    columns: np.ndarray  # (leaves - 1,): node i has the children 2 i + 1 and 2 i + 2,
    thresholds: np.ndarray  # (leaves - 1,): the second if this input is larger

    @classmethod
    def plain(cls, d: int) -> Metric:
        """Return the one that changes nothing, with one leaf."""
        return cls(np.ones(d), np.empty(0, dtype=np.int64), np.empty(0))

    @property
    def leaves(self) -> int:
        """How many leaves the tree has, a power of 2."""
        return len(self.columns) + 1


class Group(State):
    """The ridge regressions, PA-I learners and descents on the coordinates of a map.

    In each leaf of a tree, if its metric has one: then the certificate is the sum of those of the
    leaves, against a function in each of them.

    ``use_room`` says where forecasts, (2 ridges + rules, ROWS, K), go: the ridge and AWV forecasts
    of each regression in turn, then those of PA-I and of descent. AWV forecasts of regressions that
    forget belong to no member: they never led, and have no certificate. Proofs, (ridges, 3, ROWS,
    K), are loss, comparator and bound of the AWV forecasts; sizes (ROWS,) the atoms in all leaves.

    signs : (K,), 1 where labels are -1 and +1, else 0; rates : C of PA-I; steps : of descent.
    """

    _STATE = {
        "U": ("leaves", "ridges", "r", "r"), "inv_d": ("leaves", "ridges", "r"),
        "c": ("leaves", "ridges", "outputs", "r"),
        "totals": ("leaves", "ridges", "outputs", "totals"),
        "weights": ("leaves", "rules", "outputs", "r"), "largest": ("leaves", "rules", "outputs"),
        "latest": ("leaves", "ridges", "proof", "outputs"), "total": ("ridges", "proof", "outputs"),
    }  # fmt: skip
    _UNBOUNDED = frozenset({"totals", "latest", "total"})
    _PADDED = _SPARSE = frozenset({"U"})

    def __init__(
        self, points: SpanMap, metric: Metric, settings: tuple[Setting, ...], signs: np.ndarray,
        rates: tuple[float, ...] = (), steps: tuple[float, ...] = (),
    ):  # fmt: skip
        self.map, self.settings, self.rates, self.steps = points, settings, rates, steps
        outputs, r, firsts = len(signs), points.room, len(rates) + len(steps)
        self._make_state(
            leaves=metric.leaves, ridges=len(settings), rules=firsts, outputs=outputs, r=r,
            totals=TOTALS, proof=3,
        )  # fmt: skip
        self._U[0] = 0.0  # so that one leaf alone gets its memory now, not in its first round
        self.forecasters, self._proven = 2 * len(settings) + firsts, (self._latest, self._total)
        integers = np.zeros((5, ROWS), dtype=np.int64)
        columns, sizes, ends = *integers[:2], np.zeros(metric.leaves, dtype=np.int64)
        tree = *metric, integers[2:4], ends, aligned_zeros(ROWS, len(metric.scales))
        places = tree, points.arguments, (aligned_zeros(ROWS, r), columns, sizes)
        numbers, *factors = prepare_ridges(settings, self._U, self._inv_d, self._c, self._totals)
        kinds = [hot.PASSIVE_AGGRESSIVE] * len(rates) + [hot.DESCENT] * len(steps)
        codes, own = np.array(kinds, dtype=np.int64), (np.zeros((ROWS, outputs)), np.zeros(ROWS))
        rules = np.array([*rates, *steps], dtype=float), signs, self._weights, self._largest
        made, certified = make_room(self.forecasters, len(settings), outputs)
        work = np.zeros(ROWS), np.zeros((ROWS, outputs))

        def pack(ridges: int, rows: int) -> tuple:
            found = made[:rows], *work, certified[:ridges]
            return (
                *places, (numbers[:ridges], *factors), (codes[: rows - 2 * ridges], *rules),
                (*own, found),
            )  # fmt: skip

        self._arguments = pack(len(settings), self.forecasters)
        # Without regressions and rules, only the dictionaries play.
        self._choosing = *pack(0, 0), self._proven, (made[:0], certified[:0], integers[4])

    def use_room(self, forecasts: np.ndarray, proofs: np.ndarray, sizes: np.ndarray) -> None:
        """Write into these arrays from now on."""
        self._out = forecasts, proofs, sizes

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
        """Let the dictionaries choose among up to ROWS inputs."""
        coins = self.map.toss(len(X))
        if len(coins):
            labels = np.zeros((len(X), self._total.shape[-1]))
            require_done(call(hot.group_rounds, X, labels, coins, (True, False), *self._choosing))
        self.map.end_block(chosen=True)

    def play(self, X: np.ndarray, Y: np.ndarray, learn: bool, known: bool) -> None:
        """Write the forecasts of up to ROWS rounds, then learn them.

        learn : whether inputs may join dictionaries; known : whether ``forecast`` has just had the
        only one.
        """
        coins = self.map.toss(len(X)) if learn else NO_COINS
        setting = len(coins) > 0, known
        arguments = *self._arguments, self._proven, self._out
        require_done(call(hot.group_rounds, X, Y, coins, setting, *arguments))
        self.map.end_block()

    def forecast(self, X: np.ndarray) -> None:
        """Write the forecasts of up to ROWS single rounds; nothing is learned."""
        call(hot.group_forecasts, X, *self._arguments, self._out[0])

    def _settle(self) -> None:
        settle_ridges(self._arguments[3])

    def measure(self, scales: np.ndarray) -> list[Part]:
        """Return the parts of its matrices; scales : (K,), of the labels."""
        self._settle()
        parts = [
            (leaf, part)
            for leaf in range(len(self._U))
            for part in self._measure_leaf(leaf, scales)
        ]
        return [part.within(f"leaf {leaf}") if len(self._U) > 1 else part for leaf, part in parts]

    def _measure_leaf(self, leaf: int, scales: np.ndarray) -> list[Part]:
        names = [f"lam = {one.lam:g}" for one in self.settings]
        r = int(self.map.arguments[2][leaf, hot.RANK]) + 1
        found, functions = measure_ridges(names, self._arguments[3], leaf, r, scales)
        return found + self.map.measure(leaf, functions, list(scales) * len(self.settings))
