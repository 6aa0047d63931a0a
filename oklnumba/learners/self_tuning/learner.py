"""SelfTuning: the learner. The docstring of this package (__init__.py) tells a round in order."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from oklnumba.core.checks import repr_short
from oklnumba.core.guard import find_blas, finish, locked
from oklnumba.core.health import Part
from oklnumba.core.params import KW_ONLY, count, field_with, flag, random_seed
from oklnumba.core.state import Stateful
from oklnumba.hot.primitives.jit import COMPILES, enter
from oklnumba.hot.tuned.layers import LayerResults, Recalled
from oklnumba.hot.tuned.scaling import REACH, count_labels
from oklnumba.learners.base.engine import Facts
from oklnumba.learners.base.late import LateRows
from oklnumba.learners.base.learner import Learner, Trace, empty_per_round, find_needs
from oklnumba.learners.base.traits import Traits
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.ensemble import Ensemble, find_asked
from oklnumba.learners.self_tuning.forecasters import (
    Expert,
    Member,
    Player,
    check_experts,
    count_forecasts,
)
from oklnumba.learners.self_tuning.forest import AMENDED, Forest, Residuals
from oklnumba.learners.self_tuning.labels import NO_LABELS, Labels, Rounds, Trouble, check_sizes
from oklnumba.learners.self_tuning.restarts import Restarts
from oklnumba.learners.self_tuning.scales import Scales


class SelfTuning(Learner):
    """A learner without anything to tune, for the squared loss: real labels, or -1 and +1.

    Many members forecast: ridge regression and AWV with Gaussian kernels, with Laplacian kernels in
    learned metrics, and linear, also on the last 14 labels; passive-aggressive learners; gradient
    descent; extra-random trees; and the last label. Two layers of aggregation, with regressions on
    all forecasts between them, make one forecast; trees mend what it lacks. It has a guarantee, and
    beats its best member where members differ in their errors.

    After 32, 128, 512, 2048, 8192 and 32,768 rounds (after 2048 only if the past takes at most 64
    MiB) new members, made of the first three quarters of these rounds or more, replace the old
    ones, and play all rounds again. One wild label or input does no lasting harm. Memory does not
    grow after the last restart. docs/self_tuning.md says more.

    Parameters
    ----------
    budget : int >= 1
        Largest dictionary; each kernel has one in each leaf, mostly of two thirds of it. Linear
        members have one if inputs are wider. Time and memory are of order budget^2.
    seed : int
        Of the coins of KORS.
    outliers : bool
        Whether a label far from all the last ones is learned as their median, unless a member with
        lags foretold it. False where such labels are no errors: rare large events.
    experts : list of learners
        Your own models as members: learners of this package, of river, with scikit-learn's
        ``partial_fit``, or ``okl.Refit(model)``. Copies play, one for each output: ours without
        data, others as they are now. They see raw inputs, and labels as learned. Files hold ours
        only.

    Remarks
    -------
    Ours, of published parts: discounted AWV (Jacobsen and Cutkosky 2024), PA-I (Crammer et al.
    2006), the aggregating algorithm without and with fixed share (Vovk 1998, Herbster and Warmuth
    1998) for labels of unknown size (Gerchinovitz and Yu 2014), dynamic model averaging (Raftery,
    Karny and Ettler 2010) with the variance of the noise learned, ML-Poly (Gaillard, Stoltz and van
    Erven 2014), and stacking (Breiman 1996) online. The metrics are ``learned_metric`` of two
    kernels (Radhakrishnan et al. 2024), from round 128 on, for all outputs. The leaves are those of
    xRFM (Beaglehole et al. 2025), the trees those of Geurts, Ernst and Wehenkel 2006, whose means
    shrink to those of the parents and go on online; boosted ones (Friedman 2001) amend classes.

    The certificate is against the best penalised function of each member that forgets nothing, and
    against each expert: ``bound`` is for ``member``, which has the least comparator, ``guaranteed``
    for all (docs/self_tuning.md). Late labels are learned with the last labels known when their
    rows were forecast, and layers learn from what members forecast then (``ask``); from then on the
    bound is infinite. Several outputs see the last 4 labels of each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1000, (2000, 2))
    >>> y = 7.0 + np.sin(X[:, 0] / 100) * X[:, 1] + rng.normal(0, 50, 2000)
    >>> learner = okl.SelfTuning()
    >>> run = okl.run(learner, X, y)
    >>> bool(run.losses[1000:].mean() < 1.2 * 50**2)
    True
    >>> learner.importance.round(2)
    array([0.75, 0.25])
    """

    _REMEDY, _in_turn = "scale the labels", True
    _late = LateRows()  # of rows that come next
    _next_part = 0  # no work of the timetables goes on before so many rounds
    _compiles = COMPILES  # whether this process has yet to compile its loops

    budget: int = count(300, least=1)
    _: KW_ONLY
    seed: int = random_seed(0)
    outliers: bool = flag(True)
    experts: Sequence[Any] = field_with(check_experts, ())

    @property
    def _traits(self) -> Traits:
        rows, needs = settings.BLOCK_ROWS, find_needs(self._hyper.experts)
        return Traits(4, outputs_at_once=True, run_rows=2048, block_rows=rows, **needs)

    @property
    def size(self) -> int:
        """Atoms in all dictionaries together; 0 before any data."""
        return self._ensemble.size if self._width else 0

    @property
    def members(self) -> list[Member]:
        """What each member is; sigma in the units of the standardised inputs.

        Before round 32, and where all inputs are zero, there are linear members only: constants.
        """
        return list(self._ensemble_now().members)

    @property
    def weights(self) -> np.ndarray:
        """How likely each member is to be the best one now, (N,), or (K, N) for K outputs.

        By dynamic model averaging; the forecast has other weights, also negative ones.
        """
        return self._of_outputs(self._ensemble_now().layers.weights())

    @property
    def leader(self) -> Member | list[Member]:
        """The member with the largest weight; a list of them for several outputs."""
        ensemble = self._ensemble_now()
        leaders = [ensemble.members[i] for i in ensemble.layers.weights().argmax(axis=1)]
        return leaders if self._outputs > 1 else leaders[0]

    @property
    def member_losses(self) -> np.ndarray:
        """Squared losses of the members on labels as learned, (N,), or (K, N) for K outputs.

        For the first 32 rounds, before there were these members, the learner's own losses.
        """
        return self._of_outputs(self._ensemble_now().layers.member_losses())

    @property
    @locked
    def importance(self) -> np.ndarray:
        """How much forecasts depend on each input, (d,), of sum 1: by permutation.

        The mean squared change of the forecast when that input is replaced by its value in another
        row, over 256 rows, evenly spread over at most the last 32,768 rounds; with more than 64
        inputs over fewer rows, but at least 16. A forecast is made for each row and input. Changes
        of several outputs count in units of the deviations of their forecasts, and add up.
        """
        self._ensemble_now()
        X = self._restarts.sample()
        order = np.random.default_rng(self._hyper.seed).permutation(len(X))
        forecasts, changes = self._forecast(X), np.empty(X.shape[1])
        deviations, sizes = forecasts.std(axis=0), np.abs(forecasts).max(axis=0)
        differ = deviations > settings.LEAST_SPREAD * sizes
        units = np.where(differ, deviations, np.inf)  # else rounding is all that changes
        together, mixed = max(settings.BLOCK_ROWS // len(X), 1), X[order].T  # so many inputs
        for first in range(0, len(changes), together):
            some = np.arange(len(changes))[first : first + together]
            changed = np.repeat(X[None], len(some), axis=0)
            changed[some - first, :, some] = mixed[some]
            moved = self._forecast(changed.reshape(-1, X.shape[1]))
            moves = (moved.reshape(-1, *forecasts.shape) - forecasts) / units
            changes[some] = np.square(moves).mean(axis=1).reshape(len(some), -1).sum(axis=1)
        total = changes.sum()
        return changes / total if total > 0.0 else np.full(len(changes), 1.0 / len(changes))

    @property
    def outliers_replaced(self) -> int | np.ndarray:
        """How many labels were outliers, in whose place a median was learned; (K,) for K."""
        self._ensemble_now()
        return self._of_outputs(self._labels._state.replaced.copy())

    @property
    def outlier_price(self) -> float | np.ndarray:
        """What outliers cost more than the median that was learned in their place; (K,) for K.

        The sum of (y - p)^2 - (c - p)^2, p the forecast, c the median; part of the bound.
        """
        self._ensemble_now()
        return self._of_outputs(self._labels._state.price.copy())

    def _ensemble_now(self) -> Ensemble:
        if not self._ready():
            raise ValueError("there are no members yet: play a round first")
        return self._ensemble

    def _of_outputs(self, values: Any) -> Any:
        return values if self._outputs > 1 else values[0]

    def _facts(self) -> Facts:
        space = f"the space of its best member, made in round {self._restarts.last}"
        labels, loss = self._labels._state, self._residuals._state.loss.sum()
        total = loss + labels.price.sum()
        share = float(1.0 - loss / total) if total > 0.0 else 0.0
        outliers = int(labels.replaced.sum()), share
        return Facts(space, self._of_outputs(self._ensemble.best_members()), outliers)

    # ---- rounds ----

    def _check_labels(self, y: np.ndarray) -> None:
        for i, one in enumerate(self._hyper.experts if y.ndim == 1 else ()):  # each output alone
            try:
                one._as_labels(y, len(y))
            except ValueError as error:
                raise ValueError(f"expert {i}, {repr_short(one)}: {error}") from None
        if not self._played or (y.ndim == 2) == (self._outputs > 1):  # then all together
            check_sizes(y, self._labels._state.recent if self._played else None)

    def _start(self, d: int) -> None:
        if SelfTuning._compiles:
            SelfTuning._compiles = False
            compile_loops()
        p = self._hyper
        self._labels = Labels(self._outputs, p.outliers)
        kinds = settings.FOREST_LAGS if self._outputs == 1 else (0,)  # lags take K times as long
        how = settings.SHRINKAGES, p.seed, settings.TREES, settings.GROWTHS, settings.DEPTHS[0]
        self._forests = [Forest(self._outputs, lags, *how) for lags in kinds]
        self._residuals = Residuals(self._outputs, p.seed)
        self._experts = [Expert(one, i, d, self._outputs) for i, one in enumerate(p.experts)]
        players: list[Player] = [*self._forests, *self._experts]
        self._restarts = Restarts(d, self._outputs, players, p.budget, p.seed)
        find_blas()  # so that SciPy is loaded now, not in round 120, for the first metric
        scales = Scales.of_no_rounds(d, self._outputs)
        self._ensemble = finish(self._restarts.make_ensemble(scales, 0))

    @property
    def _can_widen(self) -> bool:
        return self._played < self._restarts.end

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        """Play rounds in blocks that end with each event of the schedule."""
        Y, start = np.ascontiguousarray(y).reshape(len(X), self._outputs), 0
        was_forecast, before = self._take_forecast(X), np.empty(len(X), dtype=np.int64)
        while start < len(X):
            most = self._restarts.rounds_to_stop(self._played)
            n, count = enter(count_labels)(Y[start:], most, before)
            rows, some = slice(start, start + n), trace.rows(start, start + n)
            try:
                with np.errstate(under="ignore"):
                    self._play_block(X[rows], Y[rows], before[:n], count, some, was_forecast)
            except Trouble as trouble:
                status, row = trouble.args
                self._raise_status(status, [*before[:n].tolist(), count][row + 1] - 1)
            start += n

    def _play_block(
        self, X: np.ndarray, Y: np.ndarray, before: np.ndarray, m: int, trace: Trace,
        was_forecast: bool,
    ) -> None:  # fmt: skip
        """Play 1 to BLOCK_ROWS rows, all labels at hand, each as if it came alone.

        m : how many have a label; the others, NaN, are only forecast; before : (n,), how many
        labels come before each row.
        """
        ensemble, labels, n = self._ensemble, self._labels, len(X)
        if m == 0:
            trace.predictions[:], trace.sizes[:] = self._forecast(X), self.size
            return
        learned: Any = slice(None) if m == n else np.flatnonzero(Y[:, 0] == Y[:, 0])
        limits = labels.measure(Y[learned], before, self._played)
        late = self._take_late(n)
        known_counts = before - late.missed if len(late.rows) else before  # that each row knew
        cut, known = labels.remember(Y, limits, known_counts[:0] if was_forecast else known_counts)
        rounds = Rounds(X, Y, cut, known, joins=True, was_forecast=was_forecast, learned=learned)
        if len(late.notes):
            asks = (Y[:, 0] != Y[:, 0]) & (before + self._played > 0)
            rounds = self._read_notes(late, asks, rounds)
        # Views of the trace: predictions, loss, comparator, bound, guaranteed.
        flat = trace.predictions, *trace.certificate
        out = LayerResults._make([a.reshape(Y.shape) for a in flat])
        rounds = ensemble.play(rounds, out, partial(labels.judge, limits))
        residuals = self._residuals.play(rounds, limits[REACH] * (self._restarts.last > 0), out)
        labels.add_price(Y, rounds.Y, out)
        np.add.reduce(ensemble.sizes[:, :n], axis=0, out=trace.sizes)
        if m < n:
            self._write_notes(late, asks)
        played, recorded = self._played, ensemble.lasting.recorded
        self._restarts.record(rounds, played + known_counts, recorded, residuals, played)
        self._played += m
        if self._played == self._restarts.timetable.parts[settings.RESTARTS[0]]:
            first = self._restarts.past(settings.SHORT_WINDOW)  # from before there were limits
            first.Y[:], first.cut[:] = labels.judge_first(self._played)
        if self._played >= self._next_part:
            parts = self._grow_trees(n == 1) if self._played < self._restarts.end else []
            self._ensemble = self._restarts.next_ensemble(ensemble, self._played, n == 1)
            if self._ensemble is not ensemble:
                trace.sizes[-1] = self.size
            self._next_part = min([self._restarts.timetable.next_part, *parts])
        if self._played % settings.PERIOD == 0:
            self._residuals.begin_anew(self._ensemble.end_period())

    # ---- late labels ----

    @property
    def _note_width(self) -> int:
        """The last restart, then what layers, trees, experts, spaces and, last, Residuals forecast.

        Each for K outputs.
        """
        if self._width is None:  # so it stands for the learners of the leaves of a Tree
            return 0
        of_spaces = sum(map(count_forecasts, settings.SPACES))
        members = len(self._ensemble.lasting.members) + of_spaces
        return (1 + settings.STAGES + members + AMENDED) * self._outputs

    @locked
    def _play_turns(
        self, X: np.ndarray, y: np.ndarray, learns: np.ndarray, late: LateRows, traces: list[Trace]
    ) -> None:
        if self._schema is not None and self._schema.impute:  # gaps are filled by rows learned
            super()._play_turns(X, y, learns, late, traces)
            return
        self._late = late
        trace = self._play_rows(X, np.where(learns, y, np.nan))
        asked = np.flatnonzero(~learns)
        # The size of a row that is forecast counts what is learned before the next one is.
        sizes = trace.sizes[np.append(asked[1:], len(X)) - 1]
        self._refuse_not_finite(trace.predictions[asked])
        traces.append(Trace(trace.predictions[asked], sizes))

    def _set_late(self, notes: np.ndarray, missed: np.ndarray | None = None) -> None:
        rows = np.arange(len(notes))
        self._late = LateRows(notes, rows, 0 * rows if missed is None else missed)

    def _take_late(self, n: int) -> LateRows:
        """Return the next n late rows; without notes if none come."""
        late = self._late
        if not len(late.rows):
            return SelfTuning._late
        self._late = late.cut(n)
        return late.cut(0, n)

    def _write_notes(self, late: LateRows, some: slice | np.ndarray) -> None:
        """Write the notes of some of the rounds that were forecast just now."""
        n, rows, K = len(late.rows), late.rows[some], self._outputs
        made = self._ensemble.notes(n).reshape(n, -1)[some]
        amended = self._residuals.forecasts.reshape(n, -1)[some]
        late.notes[rows, :K] = self._restarts.last
        late.notes[rows, K : K + made.shape[1]] = made
        late.notes[rows, -amended.shape[1] :] = amended

    def _read_notes(self, late: LateRows, asks: np.ndarray, rounds: Rounds) -> Rounds:
        """Return rounds with what notes say of them: of members that a restart made since, nothing.

        asks : (n,), which rounds are only forecast.
        """
        notes = late.notes[late.rows].reshape(len(late.rows), -1, self._outputs)
        last, made = np.split(notes, [1], axis=1)
        lasting = slice(settings.STAGES, settings.STAGES + len(self._ensemble.lasting.members))
        kept = np.where(last == self._restarts.last, made, np.nan)
        for some in (lasting, slice(-AMENDED, None)):
            kept[:, some] = made[:, some]
        return rounds._replace(then=Recalled(kept, find_asked(late.rows, asks)))

    def _grow_trees(self, single: bool | None) -> list[int]:
        """Grow all trees that are due, or in single rounds a part; all of them now if None.

        Returns after how many rounds the parts end on which they grow next.
        """
        last = self._residuals.forest, self._residuals.boosted
        for forest in (*self._forests, *last):
            past = partial(self._restarts.past, of_residuals=forest in last)
            forest.grow(past, self._played, single)
        return [forest.timetable.next_part for forest in (*self._forests, *last)]

    @locked
    def _end_fit(self) -> None:
        if not self._restarts.pays(self._played):
            return
        self._grow_trees(None)
        try:
            self._ensemble = self._restarts.next_ensemble(self._ensemble, self._played, None)
        except Trouble as trouble:
            self._raise_status(trouble.args[0], -1)
        if self._played % settings.PERIOD == 0:
            self._ensemble.end_period()
        self._forget_forecast()  # it was of the members before

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = empty_per_round(len(X), self._outputs)
        self._forget_forecast()  # until it is whole: Ctrl-C may come between
        rounds = Rounds(X, NO_LABELS, NO_LABELS, self._labels.know_all(len(X)))
        out = LayerResults(*[forecasts.reshape(len(X), self._outputs)] * 5)
        self._ensemble.play(rounds, out)
        self._residuals.play(rounds, np.zeros(1), out)
        late = self._take_late(len(X))
        if len(late.notes) and self._played:
            self._write_notes(late, slice(None))
        self._note_forecast(X)
        return forecasts

    # ---- health and files ----

    def _matrices(self) -> list[Part]:
        of_experts = [part for one in self._experts for part in one.find_parts()]
        return self._ensemble.find_parts() + of_experts

    def _nested(self) -> dict[str, Stateful]:
        forests = {f"forest{i}": one for i, one in enumerate(self._forests)}
        experts = {f"expert{i}": one for i, one in enumerate(self._experts)}
        others: dict[str, Any] = {"restarts": self._restarts, "labels": self._labels}
        others |= self._residuals.parts()
        return others | forests | experts | self._ensemble.parts()

    def _export(self) -> dict[str, Any]:
        state = super()._export() | self._ensemble.scales._asdict()
        return state | self._ensemble.place_atoms(state, state["restarts_inputs"])

    def _output_axes(self) -> dict[str, int]:
        of_scales = dict.fromkeys(("offsets", "signs", "difference_mean", "difference_scale"), 0)
        return super()._output_axes() | of_scales

    def _restore(self, state: dict[str, Any]) -> None:
        scales = Scales(*(state[name] for name in Scales._fields))
        # New outputs make a space with lags wider: it keeps its inputs until the next restart.
        atomless = {i for i in range(len(settings.SPACES)) if f"group{i}_U_exact" in state}
        self._ensemble = finish(self._restarts.make_ensemble(scales, state["played"], atomless))
        super()._restore(state | self._ensemble.find_atoms(state, state["restarts_inputs"]))


def compile_loops() -> None:
    """Play made-up rounds beyond the second restart, so that no round of a stream compiles."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (max(settings.RESTARTS[:2]) + 1, 2))
    learner = SelfTuning(budget=8).partial_fit(X[:-1], np.sign(X[:-1, 0]))  # signs play all loops
    learner.predict_one(X[-1])
    learner.learn_one(X[-1], X[-1, 0])
