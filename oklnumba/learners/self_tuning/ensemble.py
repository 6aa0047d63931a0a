"""What each restart makes: scales, members in groups, and the layers that weigh them.

All forecasts of a block lie in one array, ``_results.forecasts``: groups write into their rows of
it, and the layers read it. There they count from ``scales.offsets``, the middle of each output's
labels (0 for -1 and +1), as the labels of groups and layers do. Members with lags learn changes
from the last label instead, which is added to their forecasts.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from oklnumba.components.kernels import Gaussian, Kernel, Laplacian, Linear
from oklnumba.core.guard import run_together
from oklnumba.core.health import Part, name_members
from oklnumba.core.old_state import OldState as State
from oklnumba.core.paced import Paced
from oklnumba.hot.experts import LARGEST
from oklnumba.hot.primitives.jit import bind
from oklnumba.hot.tuned.layers import LayerResults
from oklnumba.hot.tuned.space import Results
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.labels import Known, Past, Rounds
from oklnumba.learners.self_tuning.layers import Layers, find_keys
from oklnumba.learners.self_tuning.members import Group, Member, name_forecasters
from oklnumba.learners.self_tuning.regressions import NO_LABELS, Workspaces, make_rows
from oklnumba.learners.self_tuning.scales import Scales, find_scores
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, Space


def make_kernel(space: Space, scales: Scales) -> Kernel:
    """Return the kernel of a space, in the units of the scaled inputs."""
    if space.kernel == "linear":
        return Linear()
    sigma = scales.sigma(space)
    return Gaussian(sigma) if space.kernel == "Gaussian" else Laplacian(sigma, norm=1)


class Ensemble(State):
    """Members on the scales of one restart, and the layers that weigh them, for K labels a round.

    lasting : members that no restart makes anew, trees and experts: they play outside, and their
    forecasts are recorded; members : what each one is; groups : the members by space; lost : the
    losses of experts, which the certificate names.
    """

    _STATE = {"lost": ("experts", "outputs")}

    def __init__(self, scales: Scales, lasting: list[Member]):
        self.scales, self._lasting, self.replayed = scales, lasting, 0
        self._are_experts = np.array([one.expert is not None for one in lasting], dtype=bool)
        self._make_state(experts=int(self._are_experts.sum()), outputs=len(scales.offsets))

    def make_members(self, budget: int, horizon: float, seed: list[int]) -> Paced[None]:
        """Make the members; ``horizon`` : the round of the next restart, for room."""
        scales, outputs = self.scales, len(self.scales.offsets)
        spaces = [one for one in settings.SPACES if scales.median or one.kernel == "linear"]
        # Rows of forecasts: of each group in turn, the one with lags at last; of lasting members;
        # the last label. Rows of certificates: of each group's regressions; of experts.
        cuts = np.cumsum([0, *(space.forecasts for space in spaces)])
        certificate_cuts = np.cumsum([0, *(len(space.ridges) for space in spaces)])
        lag_rows = sum(space.forecasts for space in spaces if space.lags)
        self._lag_rows = slice(cuts[-1] - lag_rows, cuts[-1])
        self._lasting_rows = slice(cuts[-1], cuts[-1] + len(self._lasting))
        count = self._lasting_rows.stop + 1
        self._results = Results(
            np.zeros((count, BLOCK_ROWS, outputs)),
            np.zeros((certificate_cuts[-1] + len(self._lost), 3, BLOCK_ROWS, outputs)),
            np.zeros((len(spaces), BLOCK_ROWS), dtype=np.int64),
        )
        self.groups, names, arguments = [], [], []
        workspaces = Workspaces(lambda: bind(make_rows(BLOCK_ROWS, arguments)))  # of threads
        for i, space in enumerate(spaces):
            kernel, tree = make_kernel(space, scales), scales.tree(space)
            has_atoms = len(tree.scales) > budget or space.kernel != "linear"
            size = int(min(space.max_size, budget, horizon)) if has_atoms else 0
            results = Results(
                self._results.forecasts[cuts[i] : cuts[i + 1]],
                self._results.certificates[certificate_cuts[i] : certificate_cuts[i + 1]],
                self._results.sizes[i],
            )
            how = scales.signs, results, workspaces
            group = Group(space, kernel, tree, size, [*seed, space.seed], *how)
            self.groups.append(group)
            arguments.append(group.arguments)
            names += name_forecasters(space, getattr(kernel, "sigma", None))
            yield
        names += [*self._lasting, Member("last label")]
        self.members = [name for name in names if name is not None]
        rows = np.array([i for i, name in enumerate(names) if name is not None])
        have_proof = [one.half_life is None and not s.lags for s in spaces for one in s.ridges]
        experts = certificate_cuts[-1] + np.arange(len(self._lost))
        certified = np.append(np.flatnonzero(have_proof), experts)
        self.layers = Layers(self._results, rows, certified, outputs)

    @property
    def sizes(self) -> np.ndarray:
        """Atoms of each group after each round of the last block, (groups, BLOCK_ROWS)."""
        return self._results.sizes

    def free_members(self) -> None:
        """Free the members; the layers remain."""
        self.groups, self._views = [], []

    # ---- rounds ----

    def _find_views(self, X: np.ndarray, known: Known) -> None:
        """Find keys of inputs, for ``play_layers``, and what each group sees of them: its view.

        Views are x standardised, its normal scores, or x standardised and the last labels.
        """
        scales, Z = self.scales, self.scales.transform(X)
        self._keys = find_keys(X[:, : len(scales.mean)])  # columns that came later wait here, too
        scores = find_scores(Z, scales.knots, scales.scores) if scales.median else Z
        with_lags = scales.add_lags(Z, known)
        spaces = [group.space for group in self.groups]
        views = [with_lags if one.lags else scores if one.normal_scores else Z for one in spaces]
        self._views = list(zip(self.groups, views, strict=True))

    def play_lags(self, rounds: Rounds) -> np.ndarray:
        """Play the members with lags, whose labels are cut; return their forecasts, (E, n, K).

        They come first: their forecasts tell which labels are outliers for all others.
        """
        if not rounds.was_forecast:  # else the views are those of the forecast
            self._find_views(rounds.X, rounds.known)
        changes, n = rounds.known.change_to(rounds.cut), len(rounds.X)
        for group, view in self._views:
            if group.space.lags:
                group.play(view, changes, rounds.joins, rounds.was_forecast)
        self._add_last(rounds.known.last)
        return self._results.forecasts[self._lag_rows, :n] + self.scales.offsets

    def _add_last(self, last: np.ndarray) -> None:
        """Write the last labels, (n, K), and add them to the changes that were just foretold."""
        n, forecasts = len(last), self._results.forecasts
        base = np.subtract(last, self.scales.offsets, out=forecasts[-1, :n])
        forecasts[self._lag_rows, :n] += base

    def play_others(self, rounds: Rounds, forest_calls: Sequence[Callable] = ()) -> list[Any]:
        """Play the other groups in the same rounds; return the results of the calls.

        In blocks of many rounds forests and the leaves of all groups play in threads.
        """
        Y, n = rounds.Y - self.scales.offsets, len(rounds.X)
        views = [(group, view) for group, view in self._views if not group.space.lags]
        views.sort(key=lambda pair: pair[0].space.metric is not None)  # small calls come last
        calls = [group.calls(view, Y, rounds.joins, rounds.was_forecast) for group, view in views]
        results = run_together([*forest_calls, *chain(*calls)], n)
        for group, _ in views:
            group.finish(n, learns=True)
        return results[: len(forest_calls)]

    def play_layers(self, rounds: Rounds, out: LayerResults) -> None:
        """Play the layers on what all members have just forecast."""
        self._write_recorded(rounds.recorded)
        if self._are_experts.any():
            self._certify_experts(rounds)
        offsets = self.scales.offsets
        self.layers.play(self._keys, rounds.Y - offsets, offsets, out)

    def _write_recorded(self, recorded: np.ndarray) -> None:
        """Write the forecasts of lasting members, (n, E, K), beside those of the groups."""
        forecasts = recorded.swapaxes(0, 1) - self.scales.offsets
        self._results.forecasts[self._lasting_rows, : len(recorded)] = forecasts

    def _certify_experts(self, rounds: Rounds) -> None:
        """Write the losses of experts, as comparators too, behind the regressions' certificates."""
        losses = np.square(rounds.recorded[:, self._are_experts] - rounds.Y[:, None])
        losses[0] += self._lost
        losses = np.add.accumulate(losses)
        self._lost[:] = losses[-1]
        # The bounds stay 0.
        certificates = self._results.certificates[-len(self._lost) :, :2, : len(losses)]
        certificates[:] = losses.swapaxes(0, 1)[:, None]

    def forecast(self, X: np.ndarray, known: Known, recorded: np.ndarray, out: np.ndarray) -> None:
        """Write the forecasts of single rounds, (n, K), with those ``recorded``, (n, E, K)."""
        self._find_views(X, known)
        self._write_recorded(recorded)
        for group, view in self._views:
            group.play(view, NO_LABELS, joins=False)
        self._add_last(known.last)
        results = LayerResults(*[out] * 5)  # only the predictions are written
        self.layers.play(self._keys, NO_LABELS, self.scales.offsets, results)

    def end_period(self) -> None:
        """Forget what labels no longer fill: the range of the layers, and the unit of PA-I's C."""
        recent = self.layers.end_period(self.scales.signs)
        for group in self.groups:
            group.shrink_units(recent)

    # ---- the past ----

    def choose(self, rounds: Rounds) -> None:
        """Let the dictionaries choose among up to BLOCK_ROWS inputs."""
        self._find_views(rounds.X, rounds.known)
        open_views = [pair for pair in self._views if not pair[0].is_full]
        calls = [group.calls(view, NO_LABELS, joins=True) for group, view in open_views]
        run_together([*chain(*calls)], len(rounds.X))
        for group in self.groups:
            group.end_choice()

    def replay(self, past: Past, joins: bool, rows: int) -> Paced[None]:
        """Play the rounds of the past that were not replayed yet, so many rows at a time.

        Members and layers learn them anew; trees and experts do not play: what they forecast at the
        time was recorded.
        """
        while self.replayed < len(past.X):
            start = self.replayed
            if start > 0 and start % settings.PERIOD == 0:
                self.end_period()
            # Few at first between single rounds: a leaf's factors get memory in its first one.
            size = rows if rows == BLOCK_ROWS else min(rows, 2 + start // 16)
            end = start // settings.PERIOD * settings.PERIOD + settings.PERIOD
            stop = min(start + size, end, len(past.X))
            rounds = past.rounds(slice(start, stop))._replace(joins=joins)
            self.play_lags(rounds)
            self.play_others(rounds)
            self.play_layers(rounds, LayerResults(*np.empty((5, *rounds.Y.shape))))
            self.replayed = stop
            yield

    # ---- what members are and lost, and saving ----

    @property
    def size(self) -> int:
        """Atoms in all dictionaries together."""
        return sum(group.size for group in self.groups)

    def weights(self) -> np.ndarray:
        """Return the posterior of the members in the next round, (K, N)."""
        return np.stack([self.layers.posterior(k) for k in range(len(self.scales.offsets))])

    def best_members(self) -> list[str]:
        """Return who has the least comparator in each output's certificate."""
        awv = [one for one in self.members if one.forecaster == "awv" and not one.lags]
        certified = [*awv, *(one for one in self.members if one.expert is not None)]
        return [str(certified[i]) for i in self.layers._best]

    def find_parts(self) -> list[Part]:
        """Return the parts of all matrices."""
        scales = self.layers._tally[:, 0, LARGEST]  # the largest label of each output
        parts = [(f"group {g}", group.find_parts(scales)) for g, group in enumerate(self.groups)]
        return name_members([*parts, ("layers", self.layers.find_parts())])

    def parts(self) -> dict[str, State]:
        """Return everything with a state, by name."""
        groups = {f"group{g}": group for g, group in enumerate(self.groups)}
        return {"ensemble": self, "layers": self.layers} | groups
