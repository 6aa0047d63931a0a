"""Models for river: a learner that takes dicts and frames, and labels of any kind.

River names what it takes by keys; learners take rows of a fixed width. So a model has columns,
which are the keys of its first round, sorted by name: their order in a dict does not matter.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from river import base

from oklnumba.core import checks, inputs
from oklnumba.interop.probabilities import LOSSES, probabilities
from oklnumba.learners.base.learner import Learner, check_learner, clone_learner
from oklnumba.learners.self_tuning.learner import SelfTuning
from oklnumba.protocol.several import OneVsRest

TASKS = "classification", "regression"
FRAMES = "pandas", "polars"


def to_river(
    learner: Learner | OneVsRest | None = None,
    *,
    task: str = "classification",
    classes: Sequence[Hashable] | None = None,
) -> RiverClassifier | RiverRegressor:
    """Return a river model that plays a learner: for pipelines, metrics and evaluation there.

    Parameters
    ----------
    learner : Learner or OneVsRest, optional
        Its hyper-parameters are those of the model; it is not played itself. None: SelfTuning(),
        which needs neither scaling nor tuning.
    task : {"classification", "regression"}
        The squared loss serves both, so that it must be told.
    classes : sequence of at least two labels, optional
        All labels that the stream may have (and those of OneVsRest, which has its own). None: what
        comes; labels that are bool are two classes, others may become more at any round.

    Returns
    -------
    RiverClassifier or RiverRegressor
        A ``river.base.MiniBatchClassifier`` or ``MiniBatchRegressor``.

    Raises
    ------
    ValueError
        If an argument is not valid, or ``classes`` are given for regression.
    ImportError
        If river is not installed.

    Examples
    --------
    >>> import oklnumba as okl
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = okl.interop.to_river()
    >>> sites = datasets.Phishing().take(500)
    >>> accuracy = evaluate.progressive_val_score(sites, model, metrics.Accuracy())
    >>> accuracy.get() > 0.85
    True
    >>> model = okl.interop.to_river(task="regression")
    >>> approval = datasets.TrumpApproval().take(500)
    >>> evaluate.progressive_val_score(approval, model, metrics.MAE()).get() < 0.5
    True
    >>> learner = okl.FOGD(loss="logistic", seed=1)
    >>> model = preprocessing.StandardScaler() | okl.interop.to_river(learner)
    >>> for x, y in datasets.Phishing().take(100):
    ...     model.learn_one(x, y)
    >>> sorted(model.predict_proba_one(x))
    [False, True]
    """
    checks.require_choice("task", task, TASKS)
    if task == "classification":
        return RiverClassifier(learner, classes=classes)
    if classes is not None:
        raise ValueError(
            "classes are for classification; leave them out, or pass task='classification'"
        )
    return RiverRegressor(learner)


class Columns:
    """The keys of the first round, sorted by name, and the rows that dicts and frames make."""

    def __init__(self) -> None:
        self.keys: list[Hashable] = []  # none before the first round

    def row(self, x: dict[Hashable, Any]) -> np.ndarray:
        """Return the values of a dict in the order of the columns, shape (d,)."""
        if not isinstance(x, dict):
            raise ValueError(f"x must be a dict of numbers by name, but is {x!r}")
        keys = self.match(x)
        return _numbers([x[key] for key in keys], keys)

    def rows(self, X: Any) -> np.ndarray:
        """Return the rows of a frame in the order of the columns, shape (n, d)."""
        if _library(X) is None:
            raise ValueError(f"X must be a frame of {' or '.join(FRAMES)}, but is {type(X)}")
        return inputs.as_inputs(X[self.match(X.columns)])

    def match(self, found: Iterable[Hashable]) -> list[Hashable]:
        """Return the columns, where these are found; before the first round it is they."""
        found = list(found)
        if not self.keys:
            if not found or len(set(found)) < len(found):
                raise ValueError(f"x must have one number or more, each by a name, but has {found}")
            # Names of several types, 1 and "1", have an order too.
            return sorted(found, key=lambda key: (str(key), type(key).__name__))
        if len(found) == len(self.keys) and set(found) == set(self.keys):
            return self.keys
        new, missing = _without(found, self.keys), _without(self.keys, found)
        what = [f"new keys {new}"] * bool(new) + [f"no {missing}"] * bool(missing)
        raise ValueError(
            f"x has {' and '.join(what)}, but learners take the same numbers every round, here "
            f"{self.keys}: leave out new ones by river's compose.Select, write out categories by "
            "preprocessing.OneHotEncoder(categories=...), which has all of them in every round, "
            "and impute what is missing"
        )

    def keep(self, found: Iterable[Hashable]) -> None:
        """Make these the columns, if this was the first round."""
        self.keys = self.match(found)


def _library(X: Any) -> Any:
    """Return the library of a frame; None for anything else."""
    name = type(X).__module__.partition(".")[0]
    return sys.modules[name] if name in FRAMES and hasattr(X, "columns") else None


def _series(values: Any, like: Any) -> Any:
    """Return a series of the library of a frame, with its index."""
    index = {"index": like.index} if hasattr(like, "index") else {}
    return _library(like).Series(values, **index)


def _without(some: list[Hashable], others: list[Hashable]) -> list[Hashable]:
    return [key for key in some if key not in set(others)]


def _numbers(values: list[Any], keys: list[Hashable]) -> np.ndarray:
    """Return finite numbers as float64, (d,); ValueError that names the key of any other value."""
    try:
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind in "biuf" and np.isfinite(array).all():
            return array.astype(np.float64)
    except ValueError:  # a value is itself a sequence
        pass
    for key, value in zip(keys, values, strict=True):
        number = isinstance(value, numbers.Real | Decimal | np.bool_)
        if number and _finite(value):
            continue
        if number or value is None or str(value) in ("<NA>", "NaT"):
            cure = "impute it, by river's preprocessing.StatImputer say"
        else:
            cure = (
                f"write it out by river's preprocessing.OneHotEncoder(categories={{{key!r}: ...}})"
            )
        raise ValueError(
            f"x has {checks.shown(value)} under the key {key!r}, but learners take finite numbers: "
            f"{cure}, or leave it out by compose.Discard({key!r})"
        )
    return np.array([float(value) for value in values])


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


class _Model:
    """What both models have: a learner that plays, columns, and river's checks that do not fit."""

    learner: Learner | OneVsRest | None

    def _one(self) -> Learner:
        """Return a learner, or scorer, of the hyper-parameters, without data."""
        if isinstance(self.learner, OneVsRest):
            return clone_learner(self.learner.learner)
        return SelfTuning() if self.learner is None else clone_learner(self.learner)

    def _unit_test_skips(self) -> set[str]:
        """Name the checks of river in which keys come and go, which is an error here.

        A forecast from a guess of what is missing is none that a bound speaks of. In river's
        ``check_learn_many_matches_learn_one`` they come and go too.
        """
        return {
            "check_emerging_features",
            "check_disappearing_features",
            "check_radically_disappearing_features",
            "check_learn_many_matches_learn_one",
        }


class RiverRegressor(_Model, base.MiniBatchRegressor):
    """A regressor of river that plays a learner; ``to_river(learner, task="regression")``.

    Parameters
    ----------
    learner : Learner, optional
        Its hyper-parameters; it is not played itself. None: SelfTuning().

    Remarks
    -------
    Columns are the keys of the first round, sorted by name; later rounds have the same ones, in any
    order. Forecasts are 0 before any data. Rounds in bulk and one by one agree as the learner's do.

    Examples
    --------
    >>> import oklnumba as okl
    >>> model = okl.interop.to_river(okl.KernelRidge(okl.Gaussian(1.0)), task="regression")
    >>> model.predict_one({"a": 1.0, "b": 0})
    0.0
    >>> model.learn_one({"a": 1.0, "b": 0}, 3.0)
    >>> round(model.predict_one({"b": 0, "a": 1.0}), 3)
    1.5
    """

    def __init__(self, learner: Learner | None = None):
        self.learner = check_learner(learner) if learner is not None else None
        self._player = self._one()
        if self._player._loss().classes:
            raise ValueError(
                f"the {self._player._loss().name} loss is for classes; take loss='squared' for "
                "regression, or task='classification'"
            )
        self._columns = Columns()

    def learn_one(self, x: dict, y: float) -> None:
        """Play a round.

        Parameters
        ----------
        x : dict of number by name
        y : number

        Raises
        ------
        ValueError
            If x lacks a key of the first round, has a new one or no number, or y is none (nothing
            has changed then).
        """
        self._player.learn_one(self._columns.row(x), y)
        self._columns.keep(x)

    def learn_many(self, X: Any, y: Any) -> None:
        """Play the rows of a frame in order, labels y; the same as ``learn_one`` for each."""
        self._player.partial_fit(self._columns.rows(X), y)
        self._columns.keep(X.columns)

    def predict_one(self, x: dict) -> float:
        """Return the forecast; 0.0 before any data."""
        return self._player.predict_one(self._columns.row(x))

    def predict_many(self, X: Any) -> Any:
        """Return the forecasts of the rows of a frame, as a series of its kind."""
        return _series(self._player.predict(self._columns.rows(X)), X)


class RiverClassifier(_Model, base.MiniBatchClassifier):
    """A classifier of river that plays a learner; ``to_river(learner)``.

    Two classes are played by one learner, as -1 and +1. More, and those that are not known to be
    two, by ``OneVsRest`` over the classes so far and one class more, which has not come yet: a new
    class starts from that one's scorer. So forecasts are those of ``OneVsRest`` that had known all
    classes from the start (but among those seen), to the bit.

    Parameters
    ----------
    learner : Learner or OneVsRest, optional
        Its hyper-parameters; it is not played itself. None: SelfTuning().
    classes : sequence of at least two labels, optional
        All that the stream may have. None: those that come, [False, True] where the first is a
        bool. Naming two spares two of three scorers.

    Remarks
    -------
    Columns are the keys of the first round, sorted by name; later rounds have the same ones, in any
    order. Before any data, ``predict_one`` is None and there are no probabilities, unless the
    classes are named. Rounds in bulk and one by one agree as the learner's do.

    Probabilities are (1 + f) / 2, cut to [0, 1], of forecasts f by the squared and squared hinge
    loss (of several classes: the nearest ones to these numbers), and 1 / (1 + exp(-f)) by the
    logistic one (of several classes: divided by their sum). Other losses have none:
    NotImplementedError, as river has it.

    Examples
    --------
    >>> import oklnumba as okl
    >>> model = okl.interop.to_river(okl.PKAWV(okl.FourierFeatures(50)))
    >>> for colour, label in [(1.0, "red"), (5.0, "green"), (9.0, "blue")] * 3:
    ...     model.learn_one({"colour": colour}, label)
    >>> model.predict_one({"colour": 5.5})
    'green'
    """

    def __init__(
        self,
        learner: Learner | OneVsRest | None = None,
        *,
        classes: Sequence[Hashable] | None = None,
    ):
        self.learner = learner
        self.classes = classes
        self._columns = Columns()
        self._codes: dict[Hashable, int] = {}  # the classes so far and their places
        self._player: Learner | OneVsRest | None = None
        several = isinstance(learner, OneVsRest)
        if several and classes is not None:
            raise ValueError("this OneVsRest has its classes; leave the argument classes out")
        self._loss = self._one()._loss().name
        if several or classes is not None:
            self._name(learner.classes if several else classes, several)

    @property
    def _multiclass(self) -> bool:
        named = self.learner.classes if isinstance(self.learner, OneVsRest) else self.classes
        return named is None or len(named) > 2

    # ---- classes ----

    def _name(self, classes: Sequence[Hashable], several: bool) -> None:
        """Take these for all the classes there will be."""
        what = "at least two different labels"
        labels = checks.require_different("classes", classes, 2, what)
        labels = [_label(label) for label in labels]
        self._open = False
        self._codes = {label: code for code, label in enumerate(labels)}
        two = len(labels) == 2 and not several
        self._player = self._one() if two else OneVsRest(self._one(), range(len(labels)))

    def _known(self, labels: list[Hashable]) -> np.ndarray:
        """Return the places of labels among the classes, which grow by new ones."""
        two = self._player is None and any(isinstance(label, bool) for label in labels)
        known = [False, True] if two else self._codes
        new = [label for label in dict.fromkeys(labels) if label not in known]
        if new and (two or (self._player is not None and not self._open)):
            raise ValueError(
                f"y is {new[0]!r}, which is not one of the classes {list(known)}; name all "
                "classes when you make the model: to_river(learner, classes=[...])"
            )
        if two:
            self._name(known, several=False)
        if new and self._player is None:
            self._open = True
            self._player = OneVsRest(self._one(), range(len(new) + 1))
        elif new:
            for _ in new:
                self._player._add_class(len(self._player.classes))
        for label in new:
            self._codes[label] = len(self._codes)
        return np.array([self._codes[label] for label in labels])

    def _learn(self, rows: np.ndarray, labels: Iterable[Any]) -> None:
        """Play rounds, labels as they come."""
        several = isinstance(labels, Iterable) and not isinstance(labels, str)
        several = several and (not checks.has_shape(labels) or len(labels.shape) == 1)
        checks.require(several, "y", labels, "labels, one a row of X")
        labels = [_label(label) for label in labels]
        if len(labels) != len(rows):
            raise ValueError(f"y must have {len(rows)} labels, one a row of X, has {len(labels)}")
        codes = self._known(labels)
        two = not isinstance(self._player, OneVsRest)
        self._player.partial_fit(rows, 2.0 * codes - 1.0 if two else codes)

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores of the classes so far, (n, K)."""
        if isinstance(self._player, OneVsRest):
            return self._player.scores(rows)[:, : len(self._codes)]
        forecasts = self._player.predict(rows)
        return np.stack([-forecasts, forecasts], axis=1)

    def _probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes so far, (n, K)."""
        if self._loss not in LOSSES:
            raise NotImplementedError(
                f"forecasts by the {self._loss} loss are no probabilities; take a learner with the "
                "squared, squared hinge or logistic loss, or a metric of labels"
            )
        if not self._codes:
            return np.zeros((len(rows), 0))
        return probabilities(self._loss, self._scores(rows))

    def _predicted(self, rows: np.ndarray) -> list[Hashable | None]:
        """Return the class of the largest score, the first one on ties; None without classes."""
        if not self._codes:
            return [None] * len(rows)
        labels = list(self._codes)
        return [labels[code] for code in self._scores(rows).argmax(axis=1)]

    # ---- what river calls ----

    def learn_one(self, x: dict, y: Hashable) -> None:
        """Play a round.

        Parameters
        ----------
        x : dict of number by name
        y : label
            bool, str, int or anything hashable; no fraction, which is for regression.

        Raises
        ------
        ValueError
            If x lacks a key of the first round, has a new one or no number, or y is missing, a
            fraction, or not one of the classes where these are named (nothing has changed then).
        """
        self._learn(self._columns.row(x)[None], [y])
        self._columns.keep(x)

    def learn_many(self, X: Any, y: Any) -> None:
        """Play the rows of a frame in order, labels y; the same as ``learn_one`` for each."""
        self._learn(self._columns.rows(X), y)
        self._columns.keep(X.columns)

    def predict_one(self, x: dict) -> Hashable | None:
        """Return the class that is forecast; None before there are classes."""
        return self._predicted(self._columns.row(x)[None])[0]

    def predict_many(self, X: Any) -> Any:
        """Return the classes forecast for the rows of a frame, as a series of its kind."""
        return _series(self._predicted(self._columns.rows(X)), X)

    def predict_proba_one(self, x: dict) -> dict[Hashable, float]:
        """Return the probability of each class so far; NotImplementedError where there is none."""
        found = self._probabilities(self._columns.row(x)[None])[0]
        return dict(zip(self._codes, found.tolist(), strict=True))

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probabilities for the rows of a frame, as a frame with a column a class.

        Names of columns are the classes; polars has them as text.
        """
        P, library = self._probabilities(self._columns.rows(X)), _library(X)
        if hasattr(X, "index"):
            return library.DataFrame(P, columns=list(self._codes), index=X.index)
        return library.DataFrame({str(label): P[:, k] for label, k in self._codes.items()})


def _label(y: Any) -> Hashable:
    """Return a label as Python's own type; ValueError for what is no label."""
    y = y.item() if isinstance(y, np.generic) else y
    try:
        valid = isinstance(y, Hashable) and y is not None and bool(y == y)
    except (TypeError, ValueError, ArithmeticError):  # pandas' NA, a decimal's NaN
        valid = False
    checks.require(valid, "y", y, "a label")
    if isinstance(y, float) and not y.is_integer():
        raise ValueError(f"y is {y!r}, which is no class; for regression: task='regression'")
    return y
