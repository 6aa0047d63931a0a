"""Aggregation of learners: as good as the best of a grid of hyper-parameters, without choosing."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.components.features import FeatureRows
from oklnumba.core.arrays import FEATURE_ROWS, aligned_zeros
from oklnumba.core.checks import require
from oklnumba.core.guard import run_together
from oklnumba.core.health import Part, name_members
from oklnumba.core.inputs import refuse_beyond
from oklnumba.core.params import KW_ONLY, choice, clone, field_in, positive, required, to_spec
from oklnumba.core.state import Stateful
from oklnumba.hot import experts as loops
from oklnumba.learners.base.learner import Learner, Trace, find_needs
from oklnumba.learners.base.traits import Traits
from oklnumba.learners.base.wrapper import check_learner, set_late

KINDS = {
    "aggregating": loops.AGGREGATING, "average": loops.AVERAGE, "hedge": loops.HEDGE,
    "mlpoly": loops.ML_POLY,
}  # fmt: skip


def _check_learners(name: str, value: Any) -> list[Learner]:
    valid = isinstance(value, list | tuple) and len(value) > 0
    require(valid, name, value, "a list of one or more learners, such as [okl.FOGD(), okl.KRLS(k)]")
    return clone([check_learner(f"{name}[{i}]", one) for i, one in enumerate(value)])


def group_equal_features(learners: Sequence[Any]) -> list[list[Any]]:
    """Return the learners that have equal features, in groups of two or more."""
    groups: dict[Any, list[Any]] = {}
    for learner in learners:
        if (features := learner._feature_map()) is not None:
            arrays: dict[str, np.ndarray] = {}
            spec, room = json.dumps(to_spec(features, arrays)), learner._features.rows.shape[1]
            key = spec, room, *(a.tobytes() for a in arrays.values())
            groups.setdefault(key, []).append(learner)
    return [group for group in groups.values() if len(group) > 1]


class Experts(Learner[loops.ExpertsState, np.ndarray]):
    """Aggregate learners over a grid of hyper-parameters (Vovk 1998; oco Example 6, Hedge).

    Every learner plays every round; the forecast weighs theirs by exp(-eta L_i), L_i the loss of
    learner i so far. Learners with equal feature maps share the features of a block. AWV, ridge and
    FOGD learners play side by side on all cores; the bits do not depend on that.

    Parameters
    ----------
    learners : list of N learners
        With one loss. Their hyper-parameters are used; they are not changed themselves.
    B : float > 0 or None
        "aggregating" and "average": a bound on |y|; None: the largest |y| so far, to which the
        forecasts of the learners are cut (Gerchinovitz and Yu 2014), for at most 2 max y^2 more
        regret (theory.experts_bound). "hedge": a bound on the losses. "mlpoly" needs none.
    kind : {"aggregating", "average", "hedge", "mlpoly"}
        "aggregating": Vovk's aggregating algorithm for the squared loss, regret <= 2 B^2 log N
        against the best learner. "average": the exponentially weighted average for the squared
        loss, 8 B^2 log N. "hedge": any convex loss with values in [0, B], with a rate that falls
        with t: B (sqrt(2 T log N) + sqrt(log N / 8)). "mlpoly": ML-Poly (Gaillard, Stoltz and van
        Erven 2014), any convex loss, weights (R_i)_+ / (max r^2 + sum r_i^2) with R_i the sum of
        r_i = l'(p) (p - f_i); about sqrt(N log(T) sum r_i^2), theory.mlpoly_bound.
    share : float in [0, 1)
        Fixed share (Herbster and Warmuth 1998): after each round w_i <- (1 - share) w_i + share /
        N. It bounds the regret against sequences of learners that switch k times, best for a share
        of about k / T (theory.fixed_share_bound). Not for "mlpoly", which has no such bound.

    Remarks
    -------
    For the squared loss, forecasts of a learner beyond [-B, B] count as -B or B: it can only gain
    by that, so the bounds hold against the learners as they are. For "hedge" nothing is cut, and
    where a loss exceeds B there is no bound.

    With B=None the forecast is 0 until the first label other than 0, and in the update of the
    weights a label larger than all before it counts as the largest before it. "mlpoly" forecasts
    the mean where no R_i is positive. Its max r^2 is the largest so far, as in the authors' R
    package opera; the paper has losses in [0, 1] and 1 for max r^2.

    Take "aggregating" with a small share for bounded labels, "mlpoly" for labels with outliers.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> grid = [okl.KernelAWV(okl.Gaussian(s), lam=0.1) for s in (0.1, 1.0, 10.0)]
    >>> run = okl.run(okl.Experts(grid), X, y)
    >>> best = min(okl.run(one, X, y).losses.sum() for one in grid)
    >>> bool(run.losses.sum() <= best + 2 * np.log(3))
    True
    """

    _layout = loops.ExpertsState
    _REMEDY = "lower the learners' steps, or scale the labels"

    learners: Sequence[Learner] = required(_check_learners)
    _: KW_ONLY
    B: float | None = positive(1.0, optional=True)
    kind: str = choice(KINDS, "aggregating")
    share: float = field_in("[0, 1)", 0.0)

    @property
    def size(self) -> int:
        """The sum of the learners' sizes; 0 before any data."""
        return sum(one.size for one in self._experts) if self._width is not None else 0

    @property
    def _traits(self) -> Traits:
        learners = self._hyper.learners
        rows = min(FEATURE_ROWS, *(one._traits.block_rows for one in learners))
        return Traits(block_rows=rows, **find_needs(learners))

    @property
    def weights(self) -> np.ndarray:
        """The weights of the learners in the next round, shape (N,)."""
        if not self._ready():
            raise ValueError("there are no weights yet: play a round first")
        weights = aligned_zeros(len(self._experts))
        loops.write_weights(self._rule, self._played, self._state, weights)
        return weights

    def _loss(self) -> losses.Loss:
        return self._hyper.learners[0]._loss()

    def _advice(self, X: np.ndarray) -> str | None:
        advice = [one._advice(X) for one in self.learners]
        return advice[0] if all(advice) else None  # one learner that suits is enough

    def _check_labels(self, y: np.ndarray) -> None:
        p = self._hyper
        for one in p.learners:
            one._check_labels(y)
        if p.kind in ("aggregating", "average") and p.B is not None:
            refuse_beyond(y, p.B, "B", "the bound on |y| of this aggregation")

    def _check_params(self) -> None:
        names = sorted({one._loss().name for one in self.learners})
        if len(names) > 1:
            raise ValueError(f"learners must have one loss, but have {', '.join(names)}")
        fits = self.kind not in ("aggregating", "average") or names == ["squared"]
        domain = f"'mlpoly' or 'hedge' for the {names[0]} loss of these learners"
        require(fits, "kind", self.kind, domain)
        domain = "an upper bound on the loss of one round for kind='hedge' ('mlpoly' needs none)"
        require(self.kind != "hedge" or self.B is not None, "B", self.B, domain)
        if self.kind == "mlpoly":
            if self.B is not None:
                self._refuse_unused("kind='mlpoly' needs no bound; leave it out", "B")
            domain = "0 for kind='mlpoly', which has no tracking bound"
            require(self.share == 0.0, "share", self.share, domain)

    def _start(self, d: int) -> None:
        p = self._hyper
        self._experts = p.learners
        for one in self._experts:
            one._open(d)
        loss, B = p.learners[0]._loss().code, loops.LEARNED if p.B is None else p.B
        self._rule = loops.Aggregation(KINDS[p.kind], loss, B, p.share)
        self._shared = []  # the features that several learners share
        for group in group_equal_features(self._experts):
            one = group[0]._features
            room = aligned_zeros(FEATURE_ROWS, one.rows.shape[1])
            rows = FeatureRows(one.write, room, shared=True)
            self._shared.append(rows)
            for learner in group:
                learner._features = rows
        aside = [[i] for i, one in enumerate(self._experts) if one._traits.in_threads]
        others = [i for i, one in enumerate(self._experts) if not one._traits.in_threads]
        self._parts = [*aside, others] if others else aside  # each is played by one thread
        self._make_state(experts=len(self._experts), tally=loops.TALLY)
        self._work = aligned_zeros(len(self._experts))  # their weights

    def _write_features(self, X: np.ndarray) -> None:
        for features in self._shared:
            features.write(X, features.of(X))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._write_features(X)
        traces = [one._trace(len(X)) for one in self._experts]

        def play_learners(numbers: list[int]) -> None:
            for i in numbers:
                one = self._experts[i]
                try:
                    one._play_inside(X, y, traces[i])
                except FloatingPointError as error:
                    raise FloatingPointError(f"learner {i}: {error}") from None

        run_together([partial(play_learners, part) for part in self._parts], len(X))
        F = np.stack([inner.predictions for inner in traces], axis=1)
        trace.sizes[:] = sum(inner.sizes for inner in traces)
        out = loops.Aggregates(trace.predictions, np.empty(len(X)))
        self._count_rounds(len(X), *loops.experts_rounds(
            F, y, True, self._rule, self._played, self._state, self._work, out,
        ))  # fmt: skip

    @property
    def _note_width(self) -> int:
        return sum(one._note_width for one in self._hyper.learners)

    def _set_late(self, notes: np.ndarray, missed: np.ndarray | None = None) -> None:
        set_late(self._hyper.learners, notes, missed)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        self._write_features(X)
        F = np.stack([one._forecast_inside(X) for one in self._experts], axis=1)
        forecasts, nothing = np.empty(len(X)), np.empty(0)
        rule, out = self._rule, loops.Aggregates(forecasts, nothing)
        loops.experts_rounds(F, nothing, False, rule, self._played, self._state, self._work, out)
        return forecasts

    @property
    def _in_turn(self) -> bool:
        return any(one._in_turn for one in self.learners)

    @property
    def _can_widen(self) -> bool:
        return all(one._can_widen for one in self._hyper.learners)

    def _matrices(self) -> list[Part]:
        members = enumerate(self._experts)
        return name_members((f"learner {i}", one._diagnose()) for i, one in members)

    def _nested(self) -> dict[str, Stateful]:
        return {f"expert{i}": one for i, one in enumerate(self._experts)}
