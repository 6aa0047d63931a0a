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
    axes_of,
    pad_row_length,
    round_up_to_vector,
    zero_pages,
)
from oklnumba.hot.primitives.dictionary import RANK
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.hot.primitives.udu import TOGETHER
from oklnumba.hot.tuned import members as hot
from oklnumba.hot.tuned.coordinates import CHOSEN, Block, Spans, Tree
from oklnumba.hot.tuned.rules import DESCENT, PASSIVE_AGGRESSIVE, Rules
from oklnumba.learners.awv import TOTALS
from oklnumba.learners.base.expansion import measure_span
from oklnumba.learners.self_tuning.ridges import (
    make_results,
    make_ridges,
    measure_ridges,
    play,
    settle_ridges,
)
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, FILLED, Space

NO_COINS = np.empty(0)  # of rounds whose points may not join


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


class Dictionaries(State):
    """A dictionary by KORS of bounded size in each leaf, and coordinates in its span, after a 1.

    The inputs themselves if ``max_size`` is 0. Only the coordinates of the points that were chosen
    at first are functions of the input: those of later points are 0 in the rounds before.
    """

    _STATE = axes_of(Spans)
    _INTEGERS = frozenset({"counts", "span"})
    _SPARSE = frozenset({"atoms", "kors", "R"})
    _COINS = ("coins",)

    def __init__(self, kernel: Kernel, d: int, max_size: int, seed: list[int], leaves: int):
        self.kernel, self._max_size, self._seed = kernel, max_size, seed
        self._coins, self._full = Coins(seed), max_size == 0
        cap = pad_row_length(round_up_to_vector(max_size))
        self._make_state(leaves=leaves, counts=3, d=d, cap=cap)
        self._counts[:, RANK:] = 0 if max_size else d
        self.columns = round_up_to_vector((max_size or d) + 1)
        self.spans = Spans(
            kernel._code(), max_size, *[getattr(self, f"_{name}") for name in self._STATE],
            zero_pages(leaves, cap, cap), aligned_zeros(leaves, cap), aligned_zeros(cap),
            aligned_zeros(cap), aligned_zeros(TOGETHER, cap),
        )  # fmt: skip

    @property
    def size(self) -> int:
        """Atoms in all leaves."""
        return int(self._counts[:, ATOMS].sum())

    def rank(self, leaf: int) -> int:
        """Return the number of coordinates in a leaf, without the 1."""
        return int(self._counts[leaf, RANK])

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        for leaf, R in enumerate(self._R if self._max_size else ()):
            rank, U, scales = self.rank(leaf), self.spans.U[leaf], self.spans.scales[leaf]
            scales[:rank] = 1.0 / R.diagonal()[:rank]
            U[:rank, :rank] = R[:rank, :rank] * scales[:rank, None]

    def toss(self, n: int) -> np.ndarray:
        """Return the coins of n rounds; none if all dictionaries are full."""
        return NO_COINS if self._full else self._coins.take(n)

    def end_block(self, chosen: bool = False) -> None:
        """Note whether all dictionaries are full; ``chosen`` : these are the first atoms."""
        if chosen:
            self._counts[:, CHOSEN] = self._counts[:, RANK]
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

    results, sizes : where forecasts, certificates and atoms go, of BLOCK_ROWS rounds; signs :
    (K,), 1 where labels are -1 and +1, else 0.
    """

    _STATE = axes_of(hot.Ridges, Rules, hot.Sums)
    _UNBOUNDED = frozenset({"totals", "latest", "total"})
    _PADDED = _SPARSE = frozenset({"U"})

    def __init__(
        self, space: Space, dictionaries: Dictionaries, tree: Tree, signs: np.ndarray,
        results: hot.Results, sizes: np.ndarray,
    ):  # fmt: skip
        self.space, self.dictionaries = space, dictionaries
        K, r, n, leaves = len(signs), dictionaries.columns, BLOCK_ROWS, len(tree.columns) + 1
        rates = *space.aggressiveness, *space.steps
        self._make_state(
            leaves=leaves, ridges=len(space.ridges), rules=len(rates), outputs=K, r=r,
            totals=TOTALS, sums=3,
        )  # fmt: skip
        self._U[0] = 0.0  # so that one leaf alone gets its memory now, not in its first round
        order, leaf, columns, atoms, self._unread = np.zeros((5, n), dtype=np.int64)
        codes = [PASSIVE_AGGRESSIVE] * len(space.aggressiveness) + [DESCENT] * len(space.steps)
        self._members = hot.Members(
            tree, dictionaries.spans,
            Block(
                order, leaf, np.zeros(leaves, dtype=np.int64), aligned_zeros(n, len(tree.scales)),
                np.zeros((n, K)), np.zeros(n), aligned_zeros(n, r), columns, atoms,
            ),
            make_ridges(space.ridges, self._U, self._inv_d, self._c, self._totals),
            Rules(
                np.array(codes, dtype=np.int64), np.array(rates, dtype=float), signs, self._w,
                self._max_label,
            ),
            hot.Sums(self._latest, self._total),
            make_results(space.forecasts, len(space.ridges), K), results, sizes,
        )  # fmt: skip

    def shrink_units(self, recent: np.ndarray) -> None:
        """Take ``recent``, (K,), for the largest label of PA-I where that is far larger."""
        unit = self._max_label
        unit[:] = np.where(recent < unit / FILLED, recent, unit)

    def choose(self, X: np.ndarray) -> None:
        """Let the dictionaries choose among up to BLOCK_ROWS inputs."""
        coins, full = self.dictionaries.toss(len(X)), self._members
        if len(coins):
            nobody = full._replace(
                ridges=full.ridges._replace(forgetting=full.ridges.forgetting[:0]),
                rules=full.rules._replace(codes=full.rules.codes[:0]),
                sorted=hot.Results(*[a[:0] for a in full.sorted]), sizes=self._unread,
            )  # fmt: skip
            labels = np.zeros((len(X), len(full.rules.signs)))
            play(hot.member_rounds, X, labels, coins, True, False, nobody)
        self.dictionaries.end_block(chosen=True)

    def play(self, X: np.ndarray, Y: np.ndarray, joins: bool, is_forecast_point: bool) -> None:
        """Write the forecasts of up to BLOCK_ROWS rounds, then learn them.

        joins : whether points may join dictionaries; is_forecast_point : whether ``forecast`` has
        just had the only one.
        """
        coins = self.dictionaries.toss(len(X)) if joins else NO_COINS
        play(hot.member_rounds, X, Y, coins, True, is_forecast_point, self._members)
        self.dictionaries.end_block()

    def forecast(self, X: np.ndarray) -> None:
        """Write the forecasts of up to BLOCK_ROWS single rounds; nothing is learned."""
        play(hot.member_rounds, X, self._members.block.Y, NO_COINS, False, False, self._members)

    def _settle(self) -> None:
        settle_ridges(self._members.ridges)

    def measure(self, scales: np.ndarray) -> list[Part]:
        """Return the parts of its matrices; scales : (K,), of the labels."""
        self._settle()
        parts, names = [], [f"lam = {one.lam:g}" for one in self.space.ridges]
        for leaf in range(len(self._U)):
            r = self.dictionaries.rank(leaf) + 1
            some, functions = measure_ridges(names, self._members.ridges, leaf, r, scales)
            some += self.dictionaries.measure(leaf, functions, list(scales) * len(names))
            parts += [part.named(f"leaf {leaf}") for part in some] if len(self._U) > 1 else some
        return parts
