"""The members of SelfTuning: spaces, each with ridge regressions and rules on its coordinates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oklnumba.components.kernels import Kernel
from oklnumba.core.health import Part
from oklnumba.core.state import (
    Coins,
    State,
    aligned_zeros,
    pad_row_length,
    round_up_to_vector,
    zero_pages,
)
from oklnumba.hot import self_tuning as hot
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.hot.primitives.udu import TOGETHER
from oklnumba.learners.awv import TOTALS
from oklnumba.learners.base.expansion import measure_span
from oklnumba.learners.self_tuning.ridges import (
    call,
    make_results,
    make_ridges,
    measure_ridges,
    require_done,
    settle_ridges,
)
from oklnumba.learners.self_tuning.scales import Tree
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, FILLED, Space

NO_COINS = np.empty(0)  # of rounds whose inputs may not join


class Member(NamedTuple):
    """One forecaster of SelfTuning, in the units of the standardised inputs."""

    # "ridge", "awv", "passive-aggressive", "gradient descent" or "last label"
    forecaster: str
    sigma: float | None = None  # width of its kernel; None: linear in the inputs
    lam: float | None = None
    half_life: float | None = None  # in rounds; None: it forgets nothing
    C: float | None = None  # aggressiveness
    step: float | None = None
    # The kernel whose gradients gave the metric of its Laplacian kernel; None: a Gaussian kernel
    # without a metric.
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


def name_forecasters(space: Space, sigma: float | None) -> list[Member | None]:
    """Return who makes each forecast of a group.

    These are the ridge and the AWV forecast of each regression in turn, then PA-I and descent.
    None: AWV forecasts of regressions that forget never led, and have no certificate.
    """
    like, names = Member("", sigma, metric=space.metric, scores=space.normal_scores), []
    for lam, half_life in space.ridges:
        ridge = like._replace(forecaster="ridge", lam=lam, half_life=half_life)
        names += [ridge, ridge._replace(forecaster="awv") if half_life is None else None]
    names += [like._replace(forecaster="passive-aggressive", C=C) for C in space.aggressiveness]
    return names + [like._replace(forecaster="gradient descent", step=step) for step in space.steps]


class Spans(State):
    """The span of a dictionary in each leaf, by KORS of bounded size; coordinates after a 1.

    The inputs themselves if ``max_size`` is 0. A point that joins in the midst of rounds adds its
    direction from the next round on. That coordinate is 0 in the rounds before, so only the
    coordinates that were chosen at first are functions of the input.
    """

    _STATE = {
        "counts": ("leaves", "counts"), "atoms": ("leaves", "d", "cap"),
        "weights": ("leaves", "cap"), "kors": ("leaves", "cap", "cap"), "span": ("leaves", "cap"),
        "R": ("leaves", "cap", "cap"),
    }  # fmt: skip
    _INTEGERS = frozenset({"counts", "span"})
    _SPARSE = frozenset({"atoms", "kors", "R"})
    _COINS = ("coins",)

    def __init__(self, kernel: Kernel, d: int, max_size: int, seed: list[int], leaves: int):
        self.kernel, self._max_size, self._seed = kernel, max_size, seed
        self._coins, self._full = Coins(seed), max_size == 0
        cap = pad_row_length(round_up_to_vector(max_size))
        self._make_state(leaves=leaves, counts=3, d=d, cap=cap)
        self._counts[:, hot.RANK :] = 0 if max_size else d
        self._unit = zero_pages(leaves, cap, cap), aligned_zeros(leaves, cap)
        self.columns = round_up_to_vector((max_size or d) + 1)
        dictionary = self._atoms, self._weights, self._kors, self._span, self._R
        work = aligned_zeros(cap), aligned_zeros(cap), aligned_zeros(TOGETHER, cap)
        self.arguments = kernel._code(), max_size, self._counts, dictionary, self._unit, work

    @property
    def size(self) -> int:
        """Atoms in the dictionaries of all leaves."""
        return int(self._counts[:, ATOMS].sum())

    def rank(self, leaf: int) -> int:
        """Return the number of coordinates in a leaf, without the 1."""
        return int(self._counts[leaf, hot.RANK])

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        for (_, rank, _), R, U, scales in zip(self._counts, self._R, *self._unit, strict=True):
            if self._max_size:
                scales[:rank] = 1.0 / R.diagonal()[:rank]
                U[:rank, :rank] = R[:rank, :rank] * scales[:rank, None]

    def toss(self, n: int) -> np.ndarray:
        """Return the coins of n rounds; none if all dictionaries are full."""
        return NO_COINS if self._full else self._coins.take(n)

    def end_block(self, chosen: bool = False) -> None:
        """Note whether all dictionaries are full; ``chosen`` : these are the first atoms."""
        if chosen:
            self._counts[:, hot.CHOSEN] = self._counts[:, hot.RANK]
        if not self._full and self.size == self._max_size * len(self._counts):
            self._full = True
            self._coins = Coins(self._seed)  # so they do not depend on how X was cut

    def measure(self, leaf: int, functions: list[np.ndarray], scales: list[float]) -> list[Part]:
        """Return the part of a leaf's kernel matrix; functions : in its coordinates."""
        if self._counts[leaf, ATOMS] == 0:
            return []
        atoms = self._atoms[leaf].T[self._span[leaf, : self.rank(leaf)]]
        return [measure_span(self.kernel, atoms, self._R[leaf], [w[1:] for w in functions], scales)]


class Group(State):
    """The members of a space, in each leaf of its tree.

    The certificate of a regression is the sum of the certificates of its leaves, against a function
    in each of them. ``write_to`` says where forecasts (forecasters, BLOCK_ROWS, K), certificates
    (ridges, 3, BLOCK_ROWS, K): loss, comparator and bound of the AWV forecasts, and sizes
    (BLOCK_ROWS,), the atoms in all leaves, go.

    signs : (K,), 1 where labels are -1 and +1, else 0.
    """

    _STATE = {
        "U": ("leaves", "ridges", "r", "r"), "inv_d": ("leaves", "ridges", "r"),
        "c": ("leaves", "ridges", "outputs", "r"),
        "totals": ("leaves", "ridges", "outputs", "totals"),
        "weights": ("leaves", "rules", "outputs", "r"), "largest": ("leaves", "rules", "outputs"),
        "latest": ("leaves", "ridges", "sums", "outputs"), "total": ("ridges", "sums", "outputs"),
    }  # fmt: skip
    _UNBOUNDED = frozenset({"totals", "latest", "total"})
    _PADDED = _SPARSE = frozenset({"U"})

    def __init__(self, space: Space, spans: Spans, tree: Tree, signs: np.ndarray):
        self.space, self.spans, outputs, r = space, spans, len(signs), spans.columns
        rates = *space.aggressiveness, *space.steps
        kinds = [hot.PASSIVE_AGGRESSIVE] * len(space.aggressiveness) + [hot.DESCENT] * len(rates)
        self._make_state(
            leaves=tree.leaves, ridges=len(space.ridges), rules=len(rates), outputs=outputs, r=r,
            totals=TOTALS, sums=3,
        )  # fmt: skip
        self._U[0] = 0.0  # so that one leaf alone gets its memory now, not in its first round
        self._sums = self._latest, self._total
        integers = np.zeros((5, BLOCK_ROWS), dtype=np.int64)
        columns, sizes, ends = *integers[:2], np.zeros(tree.leaves, dtype=np.int64)
        sorting = *tree, integers[2:4], ends, aligned_zeros(BLOCK_ROWS, len(tree.scales))
        places = sorting, spans.arguments, (aligned_zeros(BLOCK_ROWS, r), columns, sizes)
        numbers, *factors = make_ridges(
            space.ridges, self._U, self._inv_d, self._c, self._totals
        )  # fmt: skip
        codes = np.array(kinds[: len(rates)], dtype=np.int64)
        labels = np.zeros((BLOCK_ROWS, outputs)), np.zeros(BLOCK_ROWS)
        rules = np.array(rates, dtype=float), signs, self._weights, self._largest
        forecasts, certificates = make_results(space.forecasts, len(space.ridges), outputs)
        work = np.zeros(BLOCK_ROWS), np.zeros((BLOCK_ROWS, outputs))

        def pack(ridges: int, rows: int) -> tuple:
            results = forecasts[:rows], *work, certificates[:ridges]
            return (
                *places, (numbers[:ridges], *factors), (codes[: rows - 2 * ridges], *rules),
                (*labels, results),
            )  # fmt: skip

        self._arguments = pack(len(space.ridges), space.forecasts)
        # Without regressions and rules, only the dictionaries play.
        nobody = forecasts[:0], certificates[:0], integers[4]
        self._choosing = *pack(0, 0), self._sums, nobody

    def write_to(self, forecasts: np.ndarray, certificates: np.ndarray, sizes: np.ndarray) -> None:
        """Write into these arrays from now on."""
        self._out = forecasts, certificates, sizes

    def shrink_units(self, recent: np.ndarray) -> None:
        """Take ``recent``, (K,), for the largest label of PA-I where that is far larger."""
        self._largest[:] = np.where(recent < self._largest / FILLED, recent, self._largest)

    def choose(self, X: np.ndarray) -> None:
        """Let the dictionaries choose among up to BLOCK_ROWS inputs."""
        coins = self.spans.toss(len(X))
        if len(coins):
            labels = np.zeros((len(X), self._total.shape[-1]))
            require_done(call(hot.group_rounds, X, labels, coins, (True, False), *self._choosing))
        self.spans.end_block(chosen=True)

    def play(self, X: np.ndarray, Y: np.ndarray, joins: bool, is_forecast_point: bool) -> None:
        """Write the forecasts of up to BLOCK_ROWS rounds, then learn them.

        joins : whether inputs may join dictionaries; is_forecast_point : whether ``forecast`` has
        just had the only one.
        """
        coins = self.spans.toss(len(X)) if joins else NO_COINS
        flags = len(coins) > 0, is_forecast_point
        require_done(
            call(hot.group_rounds, X, Y, coins, flags, *self._arguments, self._sums, self._out)
        )
        self.spans.end_block()

    def forecast(self, X: np.ndarray) -> None:
        """Write the forecasts of up to BLOCK_ROWS single rounds; nothing is learned."""
        call(hot.group_forecasts, X, *self._arguments, self._out[0])

    def _settle(self) -> None:
        settle_ridges(self._arguments[3])

    def measure(self, scales: np.ndarray) -> list[Part]:
        """Return the parts of its matrices; scales : (K,), of the labels."""
        self._settle()
        parts, names = [], [f"lam = {one.lam:g}" for one in self.space.ridges]
        for leaf in range(len(self._U)):
            r = self.spans.rank(leaf) + 1
            some, functions = measure_ridges(names, self._arguments[3], leaf, r, scales)
            some += self.spans.measure(leaf, functions, list(scales) * len(names))
            parts += [part.within(f"leaf {leaf}") for part in some] if len(self._U) > 1 else some
        return parts
