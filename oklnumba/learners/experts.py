"""Aggregation of learners: as good as the best of a grid of hyper-parameters, without choosing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oklnumba import losses
from oklnumba.checks import number, refuse_beyond, require, require_positive
from oklnumba.hot.experts import (
    AGGREGATING,
    AVERAGE,
    EXPERT_STATE,
    HEDGE,
    LEARNED,
    ML_POLY,
    TALLY,
    expert_forecast,
    experts_rounds,
    label_bound,
    write_weights,
)
from oklnumba.learners.learner import Learner, Trace
from oklnumba.params import same_spec, to_spec
from oklnumba.state import aligned_zeros

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
    require(number(share) and 0.0 <= share < 1.0, "share", share, "a number in [0, 1)")
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


class _SharedFeatures:
    """Blocks of features for learners with equal maps, mapped once, in the widths they take."""

    def __init__(self, write: Callable[[np.ndarray, np.ndarray], None]):
        self.write = write
        self.blocks: dict[int, np.ndarray] = {}

    def make_room(self, rows: int, width: int) -> None:
        """Have blocks of this width too."""
        self.blocks.setdefault(width, aligned_zeros(rows, width))

    def of(self, X: np.ndarray) -> dict[int, np.ndarray]:
        """Return the features of a block of inputs, by width."""
        found = {width: block[: len(X)] for width, block in self.blocks.items()}
        widest = found[max(found)]
        self.write(X, widest)
        for width, block in found.items():
            if block is not widest:
                block[:] = widest[:, :width]
        return found


class Experts(Learner):
    """Aggregate learners over a grid of hyper-parameters (Vovk 1998; oco Example 6, Hedge).

    Every learner plays every round; the forecast weighs theirs by exp(-eta L_i), L_i the loss of
    learner i so far. Learners with equal features map each input once.

    Parameters
    ----------
    learners : list of learners
        With one loss. Their hyper-parameters are used; they are not changed themselves.
    B : float > 0
        "aggregating" and "average": a bound on |y|. "hedge": a bound on the losses.
    kind : {"aggregating", "average", "hedge"}
        "aggregating": Vovk's aggregating algorithm for the squared loss, regret <= 2 B^2 log N
        against the best of N learners. "average": the exponentially weighted average for the
        squared loss, 8 B^2 log N. "hedge": any convex loss with values in [0, B], with a rate that
        falls with t: B (sqrt(2 T log N) + sqrt(log N / 8)).

    Raises
    ------
    ValueError
        For "aggregating" and "average" also where a label is outside [-B, B].

    Remarks
    -------
    A learner's forecasts beyond [-B, B] count as -B or B for the squared loss: it can only gain by
    that, so the bounds hold against the learners as they are. For "hedge" nothing is cut, and where
    a loss exceeds B there is no bound. Labels are checked before any learner sees them.

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
    """

    _ROWS = 128  # rounds played by each learner in turn

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
        valid = isinstance(self.learners, list | tuple) and len(self.learners) > 0
        valid = valid and all(isinstance(one, Learner) for one in self.learners)
        require(valid, "learners", self.learners, "a list of one or more oklnumba learners")
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

    def _start(self, d: int) -> None:
        learners = self._checked()
        self._kind, self._setting = expert_setting(self.kind, self.B, self.share, self._loss())
        self._experts: list[Any] = [type(one)(**one.get_params(deep=False)) for one in learners]
        for one in self._experts:
            one._begin(d)
        self._shared = self._share()
        # Apart in memory: where small arrays touch, loops over both may not run as vectors, and
        # sums round in another order.
        self._make_state(experts=len(learners), tally=TALLY)
        self._weights = aligned_zeros(len(learners))

    def _share(self) -> list[_SharedFeatures | None]:
        """Return what each learner shares with those of equal features; None: it has no map."""
        shared: list[_SharedFeatures | None] = []
        seen: list[tuple[tuple, _SharedFeatures]] = []
        for one in self._experts:
            if not one._feature_room or not hasattr(one, "features"):
                shared.append(None)
                continue
            arrays: dict[str, np.ndarray] = {}
            spec = to_spec(one.features, arrays), arrays
            features = next((found for other, found in seen if same_spec(other, spec)), None)
            if features is None:
                features = _SharedFeatures(one._write)
                seen.append((spec, features))
            features.make_room(self._ROWS, one._feature_room)
            shared.append(features)
        return shared

    def _with_features(self, X: np.ndarray) -> Iterator[tuple[Any, np.ndarray | None]]:
        """Yield each learner with its features of a block, None if it has no map."""
        ready: dict[_SharedFeatures, dict[int, np.ndarray]] = {}
        for one, features in zip(self._experts, self._shared, strict=True):
            if features is not None and features not in ready:
                ready[features] = features.of(X)
            yield one, None if features is None else ready[features][one._feature_room]

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        for start in range(0, len(X), self._ROWS):
            stop = min(start + self._ROWS, len(X))
            self._play_block(X[start:stop], y[start:stop], trace.rows(start, stop))

    def _play_block(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        forecasts = np.empty((len(X), len(self._experts)))
        trace.sizes[:] = 0
        for i, (one, Z) in enumerate(self._with_features(X)):
            own = Trace.empty(len(X), one._certified)
            try:
                if Z is None:
                    one._play(X, y, own)
                else:
                    one._play_features(Z, y, own)
            except FloatingPointError as error:
                self._broken = f"learner {i}: {error}"
                raise FloatingPointError(self._broken) from None
            forecasts[:, i] = own.predictions
            trace.sizes[:] += own.sizes
        played, status = experts_rounds(
            forecasts, y, self._kind, self._setting, self._played, self._sums, self._weights,
            trace.predictions,
        )  # fmt: skip
        self._check(status, played)
        self._played += len(X)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        weights, B = self.weights, float(label_bound(self._setting, self._sums))
        for start in range(0, len(X), self._ROWS):
            part = X[start : start + self._ROWS]
            columns = [
                one._forecast(part) if Z is None else one._forecast_features(Z)
                for one, Z in self._with_features(part)
            ]
            for t, row in enumerate(np.stack(columns, axis=1)):
                forecasts[start + t] = expert_forecast(self._kind, B, weights, row)
        return forecasts

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        for i, one in enumerate(self._experts):
            meta, arrays = one._contents()
            state[f"meta{i}"] = meta
            state |= {f"expert{i}_{name}": array for name, array in arrays.items()}
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        # Version 0.1.0 had the totals only.
        super()._restore({"squares": self._squares, "tally": self._tally} | state)
        for i, one in enumerate(self._experts):
            prefix = f"expert{i}_"
            names = [name for name in state if name.startswith(prefix)]
            arrays = {name.removeprefix(prefix): state[name] for name in names}
            one._adopt(state[f"meta{i}"], arrays)
