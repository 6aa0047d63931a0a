"""Aggregation of learners: as good as the best of a grid of hyper-parameters, without choosing."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.core.checks import number, require, require_positive, require_within
from oklnumba.core.health import Part, of_members
from oklnumba.core.inputs import refuse_beyond
from oklnumba.core.params import anew, told
from oklnumba.core.state import Reserving, aligned_zeros, under
from oklnumba.core.threads import together
from oklnumba.hot.experts import (
    AGGREGATING,
    AVERAGE,
    EXPERT_STATE,
    HEDGE,
    LEARNED,
    ML_POLY,
    TALLY,
    expert_forecasts,
    experts_rounds,
    label_bound,
    write_weights,
)
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.player import Trace
from oklnumba.learners.base.saving import refuse_other
from oklnumba.learners.base.sharing import (
    SharedFeatures,
    dictionary_groups,
    factor_groups,
    rows_of,
    shared_features,
)

KINDS = {
    "aggregating": AGGREGATING,
    "average": AVERAGE,
    "hedge": HEDGE,
    "mlpoly": ML_POLY,
}


def expert_setting(kind: str, B: float | None, share: float, loss: losses.Loss) -> tuple:
    """Return the kind and the setting that the compiled loops take, or raise ValueError.

    Parameters
    ----------
    kind, B, share
        As in Experts.
    loss : Loss
        Of the experts.
    """
    valid = isinstance(kind, str) and kind in KINDS
    require(valid, "kind", kind, "'aggregating', 'average', 'hedge' or 'mlpoly'")
    require_within("share", share, "[0, 1)")
    if kind in ("aggregating", "average") and loss.name != "squared":
        raise ValueError(
            f"kind {kind!r} is for the squared loss, but the learners have the {loss.name} loss; "
            "take kind='mlpoly' or kind='hedge'"
        )
    if kind == "hedge" and B is None:
        raise ValueError(
            "kind 'hedge' needs B, a bound on the losses; B=None is the largest |y| so far, which "
            "is none: give B, or take kind='mlpoly', which needs no bound"
        )
    if kind == "mlpoly" and share > 0.0:
        raise ValueError(
            f"share must be 0 for kind 'mlpoly', but is {share!r}: no tracking bound of ML-Poly is "
            "known; take kind='aggregating', 'average' or 'hedge'"
        )
    if B is not None:
        require(number(B) and B > 0, "B", B, "a number > 0, or None")
    return KINDS[kind], (loss.code, LEARNED if B is None else float(B), float(share))


class Experts(Learner):
    """Aggregate learners over a grid of hyper-parameters (Vovk 1998; oco Example 6, Hedge).

    Every learner plays every round; the forecast weighs theirs by exp(-eta L_i), L_i the loss of
    learner i so far. Learners with equal features map each input once; NystromAWV that differ in
    lam and the forecaster only keep one dictionary, for its coins depend on neither (on mu they
    do); those that differ in the forecaster only, "awv" and "ridge" or LinearAWV and LinearRidge,
    keep one factor. AWV and ridge learners on features or dictionaries play side by side on all
    cores, to the same bits.

    Parameters
    ----------
    learners : list of N learners
        With one loss. Their hyper-parameters are used; they are not changed themselves.
    B : float > 0 or None
        "aggregating" and "average": a bound on |y|; None: the largest |y| so far, to which the
        forecasts of the learners are cut (Gerchinovitz and Yu 2014). "hedge": a bound on the
        losses. "mlpoly" needs none, and refuses any but 1 and None.
    kind : {"aggregating", "average", "hedge", "mlpoly"}
        "aggregating": Vovk's aggregating algorithm for the squared loss, regret <= 2 B^2 log N
        against the best learner. "average": the exponentially weighted average for the squared
        loss, 8 B^2 log N. "hedge": any convex loss with values in [0, B], with a rate that falls
        with t: B (sqrt(2 T log N) + sqrt(log N / 8)). "mlpoly": ML-Poly (Gaillard, Stoltz and van
        Erven 2014), any convex loss, no bound needed, weights (R_i)_+ / (max r^2 + sum r_i^2) with
        R_i the sum of r_i = l'(p) (p - f_i); about sqrt(N log(T) sum r_i^2), theory.mlpoly_bound.
        None of B adds at most 2 max y^2 to the first two: theory.experts_bound.
    share : float in [0, 1)
        Fixed share (Herbster and Warmuth 1998): after each round w_i <- (1 - share) w_i + share /
        N. With it the regret is bounded against sequences of learners that switch k times:
        2 B^2 (log N + k log(N / share) + (T - 1 - k) log(1 / (1 - share))), about best for a share
        of k / T; theory.fixed_share_bound. Not for "mlpoly", for which no such bound is known.

    Raises
    ------
    ValueError
        Where the learners have several losses, or one that the kind does not take, or an argument
        is not valid. For "aggregating" and "average" with a B, also
        where a label is outside [-B, B].
    FloatingPointError
        Where a learner has numerical trouble; the message says which.

    Remarks
    -------
    A learner's forecasts beyond [-B, B] count as -B or B for the squared loss: it can only gain by
    that, so the bounds hold against the learners as they are. For "hedge" nothing is cut, and where
    a loss exceeds B there is no bound. Labels are checked before any learner sees them.

    With B=None the forecast is 0 until a label is not, and a label beyond all before it counts as
    the largest before it in the update of the weights: what that leaves out adds up to the 2 max
    y^2. Weights are kept as logarithms: with a share a learner comes back from any loss. "mlpoly"
    forecasts the mean where no R_i is positive; the paper has losses in [0, 1] and 1 for max r^2,
    the authors' R package opera the largest so far, as here.

    Which: "aggregating" with a small share for bounded labels; "mlpoly" for labels with outliers.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> grid = [okl.KernelAWV(okl.Gaussian(s), lam=0.1) for s in (0.1, 1.0, 10.0)]
    >>> run = okl.run(okl.Experts(grid), X, y)
    >>> best = min(okl.run(one, X, y).losses.sum() for one in grid)
    >>> bool(run.losses.sum() <= best + 2 * np.log(3))
    True

    Under noise small steps are better, until the sign changes: with a share large ones take over.

    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.uniform(-1, 1, (600, 2)), 0.3 * rng.standard_normal(600)
    >>> y = np.where(np.arange(600) < 300, X[:, 0], -X[:, 0]) + noise
    >>> steps = [okl.OGD(0.01), okl.OGD(1.0)]
    >>> for share in (0.0, 0.01):
    ...     run = okl.run(okl.Experts(steps, B=None, share=share), X, y)
    ...     print(round(run.losses[300:].sum()))
    113
    78
    """

    _STATE = EXPERT_STATE
    _REMEDY = "lower the learners' steps, or scale the labels"

    def __init__(
        self,
        learners: list,
        *,
        B: float | None = 1.0,
        kind: str = "aggregating",
        share: float = 0.0,
    ):
        self.learners = learners
        self.B = B
        self.kind = kind
        self.share = share

    @property
    def size(self) -> int:
        """The sum of the learners' sizes; 0 before any data."""
        return sum(one.size for one in self._experts) if self._width is not None else 0

    @property
    def weights(self) -> np.ndarray:
        """The weights of the learners in the next round, shape (N,).

        Raises
        ------
        ValueError
            Before any data.
        """
        if not self._ready():
            raise ValueError("there are no weights yet: play a round first")
        weights = aligned_zeros(len(self._totals))
        write_weights(self._kind, self._setting, self._played, self._sums, weights)
        return weights

    @property
    def _sums(self) -> tuple[np.ndarray, ...]:
        return self._totals, self._squares, self._tally

    def _checked(self) -> list[Learner]:
        if not isinstance(self.learners, list | tuple) or not self.learners:
            raise ValueError(
                "learners must be a list of one or more oklnumba learners, such as "
                f"[okl.FOGD(eta=0.1), okl.FOGD(eta=1.0)], but is {told(self.learners)}"
            )
        for i, one in enumerate(self.learners):
            if not isinstance(one, Learner):
                raise ValueError(
                    f"learners must be oklnumba learners, but learners[{i}] is {told(one)}"
                )
        return list(self.learners)

    def _loss(self) -> losses.Loss:
        found = {one._loss().name: one._loss() for one in self._checked()}
        if len(found) > 1:
            raise ValueError(f"learners must have one loss, but have {', '.join(sorted(found))}")
        return next(iter(found.values()))

    def _advice(self, X: np.ndarray) -> str | None:
        told = [one._advice(X) for one in self._checked()]
        return told[0] if all(told) else None  # one that suits is enough

    def _check_labels(self, y: np.ndarray) -> None:
        for one in self._checked():
            one._check_labels(y)
        if self.kind in ("hedge", "mlpoly") or self.B is None:
            return
        require_positive("B", self.B)
        refuse_beyond(y, self.B, "B", "the bound on |y| that the aggregation is told")

    def _check_params(self) -> None:
        super()._check_params()
        for one in self._checked():
            one._check_params()
        expert_setting(self.kind, self.B, self.share, self._loss())
        if self.kind == "mlpoly" and self.B is not None:
            self._refuse_ignored("kind='mlpoly' needs no bound; leave it out", "B")

    def _start(self, d: int) -> None:
        learners = self._checked()
        self._kind, self._setting = expert_setting(self.kind, self.B, self.share, self._loss())
        self._experts: list[Any] = anew(learners)
        for one in self._experts:
            one._open(d)
        self._rows = rows_of(max(one._feature_room for one in self._experts))
        self._shared = shared_features(self._experts, self._rows)
        self._dictionaries = dictionary_groups(self._experts)
        self._lean()
        groups = factor_groups(self._experts)
        aside = [[group] for group in groups if self._experts[group[0]]._in_threads]
        in_turn = [group for group in groups if not self._experts[group[0]]._in_threads]
        self._parts = [*aside, in_turn] if in_turn else aside  # each is played by one thread
        # Apart in memory: where small arrays touch, loops over both may not run as vectors, and
        # sums round in another order.
        self._make_state(experts=len(learners), tally=TALLY)
        self._weights = aligned_zeros(len(learners))
        self._traces: list[Trace] = []  # of the last block, for another of the same length

    def _lean(self) -> None:
        """Let learners on one dictionary have it together."""
        for lead, *others in self._dictionaries:
            for i in others:
                self._experts[i]._lean_on(self._experts[lead])

    def _features(self, X: np.ndarray) -> list[np.ndarray | None]:
        """Return the features of a block for each learner, None if it has no map."""
        ready: dict[SharedFeatures, dict[int, np.ndarray]] = {}
        for shared in self._shared:
            if shared is not None and shared not in ready:
                ready[shared] = shared.of(X)
        return [
            None if shared is None else ready[shared][one._feature_room]
            for one, shared in zip(self._experts, self._shared, strict=True)
        ]

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        start = 0
        while start < len(X):
            stop = start + self._ahead(min(self._rows, len(X) - start))
            self._prepare(X[start:stop], y[start:stop])
            self._play_block(X[start:stop], y[start:stop], trace.rows(start, stop))
            start = stop

    def _ahead(self, n: int) -> int:
        with Reserving(self):  # all have room before any of them plays
            return min(one._ahead(n) for one in self._experts)

    @property
    def _prepares(self) -> bool:  # type: ignore[override]  # as one of the learners
        return any(one._prepares for one in self._experts)

    def _prepare(self, X: np.ndarray, y: np.ndarray) -> None:
        with Reserving(self):
            for one in self._experts:
                one._prepare(X, y)

    def _play_block(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        Z: list[Any] = self._features(X)
        together([partial(self._see, group, X, y, Z) for group in self._dictionaries], len(X))
        if not self._traces or len(self._traces[0].sizes) != len(X):
            self._traces = [Trace.empty(len(X), one._certified) for one in self._experts]
        traces = self._traces
        calls = [partial(self._play_groups, part, X, y, Z, traces) for part in self._parts]
        try:
            together(calls, len(X))
        except FloatingPointError as error:
            self._broken = str(error)
            raise
        forecasts = np.stack([own.predictions for own in traces], axis=1)
        trace.sizes[:] = sum(own.sizes for own in traces)
        played, status = experts_rounds(
            forecasts, y, self._kind, self._setting, self._played, self._sums, self._weights,
            (trace.predictions, np.empty(len(X))),
        )  # fmt: skip
        self._check(status, played)
        self._played += len(X)

    def _see(self, group: list[int], X: np.ndarray, y: np.ndarray, Z: list[Any]) -> None:
        """Let a dictionary see a block, for the learners on it to play."""
        seen = self._experts[group[0]]._shared_rows(X, y)
        for i in group:
            Z[i] = seen

    def _play_groups(
        self,
        groups: list[list[int]],
        X: np.ndarray,
        y: np.ndarray,
        Z: list[Any],
        traces: list[Trace],
    ) -> None:
        """Let the first of each group play a block, and the others follow."""
        for lead, *others in groups:
            one = self._experts[lead]
            try:
                if Z[lead] is None:
                    one._play(X, y, traces[lead])
                else:
                    one._play_features(Z[lead], y, traces[lead])
            except FloatingPointError as error:
                raise FloatingPointError(f"learner {lead}: {error}") from None
            for i in others:
                self._experts[i]._follow(one, y, traces[lead], traces[i])

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        weights, B = self.weights, float(label_bound(self._setting, self._sums))
        for start in range(0, len(X), self._rows):
            part = X[start : start + self._rows]
            columns = [
                one._forecast(part) if Z is None else one._forecast_features(Z)
                for one, Z in zip(self._experts, self._features(part), strict=True)
            ]
            out = forecasts[start : start + self._rows]
            expert_forecasts(self._kind, B, weights, np.stack(columns, axis=1), out)
        return forecasts

    def _matrices(self) -> list[Part]:
        members = enumerate(self._experts)
        return of_members((f"learner {i}", one._diagnose()) for i, one in members)

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        for i, one in enumerate(self._experts):
            meta, arrays = one._contents()
            state[f"meta{i}"] = meta
            state |= {f"expert{i}_{name}": array for name, array in arrays.items()}
        return state

    def _refuse_others(self, state: dict[str, Any], d: int, outputs: int = 1) -> None:
        super()._refuse_others(state, d, outputs)
        for i, one in enumerate(self._checked()):
            one._refuse_others(under(f"expert{i}_state_", state), d, outputs)

    def _restore(self, state: dict[str, Any]) -> None:
        # Version 0.1.0 had the totals only.
        super()._restore({"squares": self._squares, "tally": self._tally} | state)
        for i, one in enumerate(self._experts):
            one._adopt(state[f"meta{i}"], under(f"expert{i}_", state))
            refuse_other(one, self)
        self._lean()
