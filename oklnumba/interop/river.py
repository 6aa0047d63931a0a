"""Learners as river models: inputs are dicts or frames, labels anything hashable.

River names inputs by keys, which come and go; learners take rows. The columns of a model are the
keys of its first round, sorted by name, then those that came later.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from river import base

from oklnumba.core import checks, inputs
from oklnumba.core.schema import as_named_numbers
from oklnumba.learners.base.contents import copy_with_columns
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.wrapper import check_member
from oklnumba.learners.self_tuning.learner import SelfTuning
from oklnumba.protocol.class_scores import compute_probabilities
from oklnumba.protocol.several import OneVsRest

FRAMES = "pandas", "polars"
Keys = dict[Hashable, None]  # in the order of the columns
MAX_NAMED = 20  # ignored new keys in warnings; further ones are ignored silently


def to_river(
    learner: Learner | None = None, *, task: str = "classification",
    classes: Sequence[Hashable] | None = None,
) -> RiverClassifier | RiverRegressor:  # fmt: skip
    """Return a river model that plays a learner: for pipelines, metrics and evaluation there.

    Parameters
    ----------
    learner : Learner, optional
        Gives the hyper-parameters; it is not played itself. None: SelfTuning().
    task : {"classification", "regression"}
    classes : sequence of at least two labels, optional
        All labels that may come. None: two if the first is a bool, else new ones at any round.

    Returns
    -------
    RiverClassifier or RiverRegressor
        A ``river.base.MiniBatchClassifier`` or ``MiniBatchRegressor``.

    Remarks
    -------
    A missing key counts as 0. So does a new key in a forecast, before a round with it is learned.
    A round before the first key is not learned. Some learners ignore keys that come later, with a
    warning (docs/for_river_users.md). Classes may be anything hashable but fractions; probabilities
    are as in ``OnlineClassifier.predict_proba``, or a NotImplementedError. Errors for values or
    labels change nothing.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = okl.interop.to_river()
    >>> sites = datasets.Phishing().take(500)
    >>> accuracy = evaluate.progressive_val_score(sites, model, metrics.Accuracy())
    >>> accuracy.get() > 0.85
    True
    """
    checks.require_choice("task", task, ("classification", "regression"))
    if task == "classification":
        return RiverClassifier(learner, classes=classes)
    if classes is not None:
        raise ValueError("classes are for classification; leave out classes, or task")
    return RiverRegressor(learner)


def _library(X: Any) -> Any:
    """Return the module of a frame's library; None for anything else."""
    name = type(X).__module__.partition(".")[0]
    return sys.modules[name] if name in FRAMES and hasattr(X, "columns") else None


def _name_cure(value: Any, key: Hashable) -> str:
    """Return what to do about a value that is not a finite number."""
    cure = "use river's preprocessing.OneHotEncoder()"
    if inputs.is_gap(value) or isinstance(value, float) or str(value) == "NaT":
        cure = "pass None for it and " * (value is not None)  # which alone is imputed
        cure += f"use river's preprocessing.StatImputer(({key!r}, stats.Mean()))"
    elif isinstance(value, datetime.date):  # and with a time
        cure = "take numbers of it, such as the hour or the weekday"
    return f"; {cure}, or compose.Discard({key!r})"


class _Model:
    """Base of both models: ``learner`` has the hyper-parameters, ``_player`` plays."""

    learner: Learner | None
    _player: Any  # a learner
    _predict: Callable[[np.ndarray], object]
    _keys: Keys = {}  # of the columns; none before the first round
    _ignored: frozenset[Hashable] = frozenset()  # new keys that a warning has named

    def _clone_learner(self) -> Learner:
        return SelfTuning() if self.learner is None else check_member("learner", self.learner)

    def _make_row(self, x: dict[Hashable, Any]) -> tuple[Keys, np.ndarray]:
        """Return the keys of the columns, and the values of a dict in their order, (d,)."""
        checks.require(isinstance(x, dict), "x", x, "a dict of numbers by name")
        keys = self._keys if x.keys() <= self._keys.keys() else self._match(x)
        row = as_named_numbers([x.get(key, 0.0) for key in keys], keys, _name_cure)
        return keys, row if keys else np.zeros(1)  # SNARIMAX begins with an empty dict

    def _make_rows(self, X: Any) -> tuple[Keys, np.ndarray]:
        """Return the keys of the columns, and the rows of a frame in their order, (n, d)."""
        checks.require(_library(X), "X", X, f"a frame of {' or '.join(FRAMES)}")
        keys, given = self._match(X.columns), {*X.columns}
        rows, here = np.zeros((len(X), len(keys))), [key in given for key in keys]
        if any(here) and len(X):
            rows[:, here] = inputs.as_inputs(X[[key for key in keys if key in given]])
        return keys, rows

    def _match(self, given: Iterable[Hashable]) -> Keys:
        """Return the keys of the columns, with new ones if the player can use them."""
        given = list(given)
        if not (given or self._keys) or len(set(given)) < len(given):
            raise ValueError(f"x needs one or more numbers under different keys, but has {given}")
        new = [key for key in given if key not in self._keys and key not in self._ignored]
        if new and self._keys and not self._player._can_widen:
            if len(self._ignored) < MAX_NAMED:
                self._ignored |= set(new)
                learner = type(getattr(self._player, "learner", self._player)).__name__
                checks.warn(
                    f"ignoring new keys {checks.repr_value(new)}: {learner} accepts no new keys "
                    "(SelfTuning: after its last restart); give all keys in the first round, 0 for "
                    "missing values, or use a linear learner or one on a kernel"
                )
            return self._keys
        # Keys of several types, 1 and "1", are sorted too.
        new.sort(key=lambda key: (str(key), type(key).__name__))
        return self._keys | dict.fromkeys(new)

    def _encode(self, y: Any, n: int) -> Any:
        """Return the labels of n rows as the player takes them."""
        return y

    def _widen(self, d: int) -> Any:
        """Return the player for rows of d columns: a copy if it has fewer, which were 0 so far."""
        one = self._player
        return one if one._width in (None, d) else copy_with_columns(one, d)

    def _learned(self, rows: np.ndarray) -> np.ndarray:
        """Return the columns that the player has learned: in forecasts new ones count as 0."""
        return rows[..., : self._player._width]

    def learn_one(self, x: dict, y: Any, w: int = 1) -> None:
        """Play a round, w times: inputs by key, and a label."""
        for _ in range(checks.require_count("w", w, 0)):
            keys, row = self._make_row(x)
            if keys:
                self._player._check_points(row[None])  # before a new class has a place
                (label,) = self._encode([y], 1)
                self._player = self._widen(len(row)).learn_one(row, label)
                self._keys = keys

    def learn_many(self, X: Any, y: Any) -> None:
        """Play the rows of a frame in order, as ``learn_one`` for each."""
        if hasattr(y, "columns"):
            raise ValueError(f"y must be a series, but is a frame; use y[{list(y.columns)[0]!r}]")
        checks.warn_of_order(X, y)
        keys, rows = self._make_rows(X)
        if len(rows):
            self._player._check_points(rows)
            labels = self._encode(y, len(rows))
            self._player = self._widen(rows.shape[1]).partial_fit(rows, labels)
            self._keys = keys

    def predict_many(self, X: Any) -> Any:
        """Return the forecasts, or classes, for the rows of a frame, as a series of its library."""
        values = self._predict(self._make_rows(X)[1])
        index = {"index": X.index} if hasattr(X, "index") else {}
        return _library(X).Series(values, **index)


class RiverRegressor(_Model, base.MiniBatchRegressor):
    """A river regressor that plays a learner; ``to_river`` makes it."""

    def __init__(self, learner: Learner | None = None):
        self.learner = learner
        self._player = self._clone_learner()

    def _predict(self, rows: np.ndarray) -> np.ndarray:
        return self._player.predict(self._learned(rows))

    def predict_one(self, x: dict) -> float:
        """Return the forecast; 0.0 before any data."""
        return self._player.predict_one(self._learned(self._make_row(x)[1]))


class RiverClassifier(_Model, base.MiniBatchClassifier):
    """A river classifier that plays a learner; ``to_river`` makes it.

    If two classes are named, one learner plays them as -1 and +1. Else a ``OneVsRest`` plays the
    classes so far and one spare class, with which the next new class starts. So forecasts are, to
    the bit, those of a ``OneVsRest`` that knew all classes from the start, among those so far.
    """

    _fixed = False  # whether no new classes may come

    def __init__(
        self, learner: Learner | None = None, *, classes: Sequence[Hashable] | None = None
    ):
        self.learner, self.classes = learner, classes
        self._codes: dict[Hashable, int] = {}  # the classes so far and their places
        self._player = OneVsRest(self._clone_learner(), [0, 1])
        if classes is not None:
            self._fix_classes(classes)

    @property
    def _multiclass(self) -> bool:
        return self.classes is None or len(self.classes) > 2

    def _fix_classes(self, classes: Sequence[Hashable]) -> None:
        what = "at least two different labels"
        labels = checks.require_different("classes", classes, 2, what)
        self._codes = {_as_label(label): code for code, label in enumerate(labels)}
        self._fixed = True
        self._player = self._clone_learner()
        if len(labels) > 2:
            self._player = OneVsRest(self._player, range(len(labels)))

    def _encode(self, y: Iterable[Any], n: int) -> np.ndarray:
        """Return the places of labels among the classes, -1 and +1 of two; new classes come in."""
        labels = [_as_label(label) for label in y]
        if len(labels) != n:
            raise ValueError(f"y must have {n} labels, one per row of X; it has {len(labels)}")
        bools = not self._codes and any(isinstance(label, bool) for label in labels)
        classes = [False, True] if bools else self._codes
        new = [label for label in dict.fromkeys(labels) if label not in classes]
        if new and (bools or self._fixed):
            fault = f"y is {new[0]!r}, which is not one of the classes {list(classes)}"
            raise ValueError(f"{fault}; name all at first: to_river(learner, classes=[...])")
        if bools:
            self._fix_classes([False, True])
        for label in new:
            code = self._codes[label] = len(self._codes)
            self._player._add_classes([code])
        codes = np.array([self._codes[label] for label in labels])
        return codes if isinstance(self._player, OneVsRest) else 2.0 * codes - 1.0

    def _score(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores of the classes so far, (n, K), or (n,) of two that were named."""
        rows = self._learned(rows)
        if isinstance(self._player, OneVsRest):
            return self._player.scores(rows)[:, : len(self._codes)]
        return self._player.predict(rows)

    def _predict_proba(self, rows: np.ndarray) -> np.ndarray:
        if not self._codes:
            return np.zeros((len(rows), 0))
        player = self._player
        return compute_probabilities(player._loss().name, self._score(rows), player.rounds)

    def _predict(self, rows: np.ndarray) -> list[Hashable | None]:
        """Return the classes of the largest scores, the first on ties; None before any class."""
        if not self._codes:
            return [None] * len(rows)
        labels, scores = list(self._codes), self._score(rows)
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
        return [labels[code] for code in codes]

    def predict_one(self, x: dict) -> Hashable | None:  # type: ignore[override]
        """Return the class forecast; None before the first class."""
        return self._predict(self._make_row(x)[1][None])[0]

    def predict_proba_one(self, x: dict) -> dict[Hashable, float]:  # type: ignore[override]
        """Return the probability of each class so far."""
        P = self._predict_proba(self._make_row(x)[1][None])[0]
        return dict(zip(self._codes, P.tolist(), strict=True))

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probabilities for the rows of a frame, as a frame with a column per class."""
        P, library = self._predict_proba(self._make_rows(X)[1]), _library(X)
        if hasattr(X, "index"):
            return library.DataFrame(P, columns=list(self._codes), index=X.index)
        return library.DataFrame({str(label): P[:, k] for label, k in self._codes.items()})


def _as_label(y: Any) -> Hashable:
    """Return a label as a Python object; ValueError for missing, unhashable and fractional ones."""
    y = checks.as_plain(y)
    try:
        valid = isinstance(y, Hashable) and y is not None and bool(y == y)
    except (TypeError, ValueError, ArithmeticError):  # pandas' NA, a decimal's NaN
        valid = False
    checks.require(valid, "y", y, "a label")
    if isinstance(y, float) and not y.is_integer():
        raise ValueError(f"y is {y!r}, a fraction; for regression pass task='regression'")
    return y
