"""Who forecasts in SelfTuning: spaces (members.py), trees and experts, and the last label."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, NamedTuple, Protocol

import numpy as np

from oklnumba.core.state import State
from oklnumba.hot.primitives.jit import Array
from oklnumba.learners.self_tuning.labels import Rounds
from oklnumba.learners.self_tuning.settings import STAGES, Space


class Member(NamedTuple):
    """One forecaster of SelfTuning, in the units of the standardised inputs."""

    # "ridge", "awv", "passive-aggressive", "gradient descent", "trees", "expert" or "last label"
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
    lags: bool = False  # whether it sees the last labels, and adds its forecast to the last one
    shrinkage: float | None = None  # of trees: rounds of its parent that a node counts as
    expert: str | None = None  # which expert of the user it is

    def __str__(self) -> str:
        if self == Member(self.forecaster):
            return self.forecaster
        if self.expert is not None:
            return self.expert
        if self.shrinkage is not None:
            return f"{self.forecaster}{' with lags' * self.lags}, shrinkage {self.shrinkage:g}"
        kernel = "Gaussian kernel"
        if self.metric is not None:
            kernel = f"Laplacian kernel in the metric of a {self.metric} one"
        if self.scores:
            kernel += " of normal scores"
        kind = "linear" if self.sigma is None else f"{kernel}, sigma = {self.sigma:.3g}"
        kind += " with lags" if self.lags else ""
        if self.C is not None:
            return f"{self.forecaster}, {kind}, C = {self.C:g}"
        if self.step is not None:
            return f"{self.forecaster}, {kind}, step = {self.step:g}"
        memory = "no forgetting" if self.half_life is None else f"half-life {self.half_life} rounds"
        return f"{self.forecaster}, {kind}, lam = {self.lam:g}, {memory}"


def name_forecasters(space: Space, sigma: float | None) -> list[Member | None]:
    """Return who makes each forecast: ridge and AWV of each regression in turn, PA-I, descent.

    None: AWV forecasts of regressions that forget never led, and have no certificate.
    """
    metric, scores, lags = space.metric, space.normal_scores, space.lags
    nobody = Member("", sigma, metric=metric, scores=scores, lags=lags)
    names: list[Member | None] = []
    for lam, half_life in space.ridges:
        ridge = nobody._replace(forecaster="ridge", lam=lam, half_life=half_life)
        awv = None if space.lags or half_life else ridge._replace(forecaster="awv")
        names += [ridge, awv]
    names += [nobody._replace(forecaster="passive-aggressive", C=C) for C in space.aggressiveness]
    return names + [nobody._replace(forecaster="gradient descent", step=s) for s in space.steps]


def count_forecasts(space: Space) -> int:
    """Return how many names those are."""
    return 2 * len(space.ridges) + len(space.aggressiveness) + len(space.steps)


class Forecaster:
    """Some members, which forecast each round, then learn it, in an ensemble.

    members : who makes each of its forecasts; None: nobody. Forecasts count from ``offsets``, (K,).
    """

    members: list[Member | None]

    def calls(self, rounds: Rounds) -> list[Callable[[], None]]:
        """Return calls that play up to BLOCK_ROWS rounds, for threads; then ``finish``."""
        return []

    def finish(self, rounds: Rounds) -> None:
        """Write what is known when all calls have ended."""


def recall(forecasts: np.ndarray, made: np.ndarray) -> None:
    """Write in place of forecasts, (n, E, K), those that were made at the time, if known."""
    if len(made):
        np.copyto(forecasts, made, where=made == made)


class LastLabel(Forecaster):
    """The last label; forecasts : (1, BLOCK_ROWS, K), where to write it."""

    def __init__(self, offsets: np.ndarray, forecasts: np.ndarray):
        self.members, self._offsets, self._forecasts = [Member("last label")], offsets, forecasts

    def finish(self, rounds: Rounds) -> None:
        """Write the last labels."""
        self._forecasts[0, : len(rounds.X)] = rounds.known.last - self._offsets


class Player(Protocol):
    """A forest, or an expert of the user."""

    members: list[Member]
    plays_in_threads: bool

    def play(self, rounds: Rounds) -> np.ndarray:
        """Return the forecasts of n rounds, (n, E, K), each before its label is learned."""


class Losses(NamedTuple):
    """The state of Lasting."""

    lost: Annotated[Array, "experts", "outputs"]  # by experts, which the certificate names


class Lasting(State[Losses, None], Forecaster):
    """Trees and experts, which no restart makes anew; in a replay, what they forecast at the time.

    recorded : (n, E, K), what they have just forecast. forecasts, certificates : where to write,
    for BLOCK_ROWS rounds.
    """

    _layout = Losses

    def __init__(
        self, players: Sequence[Player], offsets: np.ndarray, forecasts: np.ndarray,
        certificates: np.ndarray,
    ):  # fmt: skip
        self._players, self._offsets, self._forecasts = players, offsets, forecasts
        self._certificates, self._parts = certificates, [np.empty(0)] * len(players)
        members = [member for one in players for member in one.members]
        self._experts = np.flatnonzero([one.expert is not None for one in members])
        self.members = [*members]
        self._make_state(experts=len(certificates), outputs=len(offsets))

    def calls(self, rounds: Rounds) -> list[Callable[[], None]]:
        """Return calls of trees; experts play in this thread."""
        calls: list[Callable[[], None]] = []
        for i, one in enumerate(self._players if rounds.recorded is None else ()):
            if one.plays_in_threads:
                calls.append(partial(self._play, i, rounds))
            else:
                self._play(i, rounds)
        return calls

    def _play(self, i: int, rounds: Rounds) -> None:
        self._parts[i] = self._players[i].play(rounds)

    def finish(self, rounds: Rounds) -> None:
        """Write the forecasts, and the losses of experts: as comparators too; the bounds stay 0."""
        recorded = rounds.recorded
        if recorded is None:
            recorded = np.concatenate(self._parts, axis=1)
            recall(recorded, rounds.made[:, STAGES : STAGES + len(self.members)])
        self.recorded = recorded
        self._forecasts[:, : len(rounds.X)] = self.recorded.swapaxes(0, 1) - self._offsets
        lost = self._state.lost
        if rounds.learns and len(lost):
            losses = np.square(self.recorded[:, self._experts] - rounds.Y[:, None])
            losses[0] += lost
            losses = np.add.accumulate(losses)
            lost[:] = losses[-1]
            self._certificates[:, :2, : len(losses)] = losses.swapaxes(0, 1)[:, None]
