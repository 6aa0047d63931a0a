"""Who forecasts in SelfTuning: names of all members; trees and experts, as Lasting plays them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np

from oklnumba.core import checks
from oklnumba.core.health import Part, name_members
from oklnumba.core.inputs import cut_runs
from oklnumba.core.params import clone
from oklnumba.core.state import Stateful, select_prefix
from oklnumba.hot.primitives.jit import Array
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.wrapper import check_learner
from oklnumba.learners.outside import Outside, adapt
from oklnumba.learners.self_tuning.labels import Rounds, Views
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


def recall(forecasts: np.ndarray, rounds: Rounds, columns: slice) -> None:
    """Write in place of forecasts of late rows, (n, E, K), those made at the time, if known."""
    made, asked = rounds.then
    if len(made := made[:, columns]):
        np.copyto(forecasts, made, where=made == made)
    late = np.flatnonzero(asked >= 0)
    forecasts[late] = forecasts[asked[late]]


class Player(Protocol):
    """A forest, or an expert of the user."""

    members: list[Member]
    plays_in_threads: bool
    forecasts: np.ndarray  # of the last rounds, (n, E, K)

    def play(self, rounds: Rounds) -> Any:
        """Write the forecasts of n rounds, each before its label is learned."""


class Losses(NamedTuple):
    """The state of Lasting."""

    lost: Annotated[Array, "experts", "outputs"]  # by experts, which the certificate names


class Lasting(Stateful[Losses, None]):
    """Trees and experts, which no restart makes anew; in a replay, what they forecast at the time.

    recorded : (n, E, K), what they have just forecast.
    """

    _layout = Losses
    forecasts: np.ndarray  # (members, ROW_ROOM, K), from offsets: where it writes, as groups do
    certificates: np.ndarray  # (experts, 3, ROW_ROOM, K)

    def __init__(self, players: Sequence[Player], offsets: np.ndarray):
        self._players, self._offsets = players, offsets
        members = [member for one in players for member in one.members]
        self._experts = np.flatnonzero([one.expert is not None for one in members])
        self.members, self.certified = [*members], [members[i] for i in self._experts]
        self._make_state(experts=len(self._experts), outputs=len(offsets))

    def calls(self, rounds: Rounds, views: Views) -> list[Callable[[], None]]:
        """Return calls of trees; experts play in this thread."""
        calls: list[Callable[[], None]] = []
        for one in self._players if rounds.recorded is None else ():
            if one.plays_in_threads:
                calls.append(partial(one.play, rounds))
            else:
                one.play(rounds)
        return calls

    def finish(self, rounds: Rounds) -> None:
        """Write the forecasts, and the losses of experts: as comparators too; the bounds stay 0."""
        recorded = rounds.recorded
        if recorded is None:
            recorded = np.concatenate([one.forecasts for one in self._players], axis=1)
            if len(rounds.then.asked):
                recall(recorded, rounds, slice(STAGES, STAGES + len(self.members)))
        self.recorded = recorded
        written = self.forecasts[:, : len(rounds.X)]
        np.subtract(recorded.swapaxes(0, 1), self._offsets, out=written)
        lost = self._state.lost
        if len(rounds.Y) and len(lost):
            losses = np.square(self.recorded[:, self._experts] - rounds.Y[:, None])
            losses[losses != losses] = 0.0  # of rows without a label
            losses[0] += lost
            losses = np.add.accumulate(losses)
            lost[:] = losses[-1]
            self.certificates[:, :2, : len(losses)] = losses.swapaxes(0, 1)[:, None]


# ---- experts of the user: learners that no restart makes anew ----


def check_experts(name: str, value: Any) -> Sequence[Learner]:
    """Return experts as learners: copies, those of this package without data."""
    listed = isinstance(value, list | tuple)
    what = "a list of learners, such as [okl.Refit(model, growth='15%')]"
    checks.require(listed, name, value, what)
    learners = [adapt(one, f"{name}[{i}]") for i, one in enumerate(value)]
    for i, one in enumerate(learners):
        if not isinstance(one, Outside):
            check_learner(f"{name}[{i}]", one)
    return type(value)(clone(learners))  # a tuple stays one in files


class Expert:
    """An expert: one learner for all outputs, or one for each."""

    plays_in_threads = False

    def __init__(self, learner: Learner, number: int, d: int, outputs: int):
        self.name = f"expert {number}, {checks.repr_short(learner)}"
        self.members = [Member("expert", expert=self.name)]
        count = 1 if learner._traits.outputs_at_once else outputs
        self.learners = [learner, *(clone(learner) for _ in range(count - 1))]
        for one in self.learners:
            one._open(d, outputs // count)

    def play(self, rounds: Rounds) -> None:
        """Write the forecasts of n rounds, (n, 1, K), each before its label is learned, if any."""
        F = self.forecasts = np.empty((len(rounds.X), 1, rounds.known.last.shape[1]))
        there = np.zeros(len(F), dtype=bool)
        there[rounds.learned] = len(rounds.Y) > 0
        for rows in cut_runs(there):
            self._play_run(rounds.X[rows], rounds.Y[rows], bool(there[rows.start]), F[rows])

    def _play_run(self, X: np.ndarray, Y: np.ndarray, learns: bool, F: np.ndarray) -> None:
        for one, outputs in self._shares(F.shape[2]):
            if not learns:
                F[:, 0, outputs] = one._forecast_inside(X)
                continue
            trace = one._trace(len(X))
            try:
                one._play_inside(X, Y[:, outputs].copy(), trace)
            except (ValueError, FloatingPointError) as error:
                raise FloatingPointError(f"{self.name}: {error}") from None
            F[:, 0, outputs] = trace.predictions
        first = self.learners[0].rounds - len(X) + 1 if learns else 0
        self._refuse_not_finite(F, "in round" if learns else "for row", first)

    def _shares(self, outputs: int) -> Iterator[tuple[Learner, Any]]:
        """Return each learner and its outputs."""
        if len(self.learners) == outputs:
            return zip(self.learners, range(outputs), strict=True)
        return zip(self.learners, [slice(None)], strict=True)

    def _refuse_not_finite(self, F: np.ndarray, where: str, first: int) -> None:
        finite = np.isfinite(F).all(axis=(1, 2))
        if not finite.all():
            raise FloatingPointError(
                f"{self.name}: the forecast {where} {first + int(finite.argmin())} is not finite; "
                "scale its inputs and labels, or leave this expert out"
            )

    def find_parts(self) -> list[Part]:
        """Return the parts of the learners' matrices."""
        return name_members([(self.name, one._diagnose()) for one in self.learners])

    def _export(self) -> dict[str, Any]:
        named = enumerate(self.learners)
        return {f"{k}_{key}": value for k, one in named for key, value in one._export().items()}

    def _restore(self, state: dict[str, Any]) -> None:
        last: dict[str, Any] = {}
        for k, one in enumerate(self.learners):  # an output that came since is like the last one
            last = select_prefix(f"{k}_", state) or last
            one._restore(last)

    def _output_axes(self) -> dict[str, int]:
        axes = self.learners[0]._output_axes() if self.learners[0]._traits.outputs_at_once else {}
        return {f"0_{key}": axis for key, axis in axes.items()}
