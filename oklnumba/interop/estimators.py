"""scikit-learn estimators over any learner: ``fit`` plays the rows online."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, shuffle
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from oklnumba.core import checks, inputs
from oklnumba.core.params import find_parts
from oklnumba.core.schema import Schema
from oklnumba.hot.intervals import HALF_WIDTH, START, interval_rounds
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.wrapper import check_member
from oklnumba.learners.intervals import Intervals
from oklnumba.learners.lags import Lags
from oklnumba.learners.self_tuning.learner import SelfTuning
from oklnumba.protocol.class_scores import LOSSES, compute_probabilities
from oklnumba.protocol.online_to_batch import OnlineToBatch
from oklnumba.protocol.run import run
from oklnumba.protocol.runs import Run, join_runs
from oklnumba.protocol.several import MultiOutput, OneVsRest

NO_INTERVALS = (
    "return_interval and return_set need tracked errors: fit an estimator with "
    "learner=okl.Intervals(okl.SelfTuning()), or another learner in Intervals"
)
REAL_LABELS = {"multi_output": True, "y_numeric": True}


class OnlineEstimator(BaseEstimator):
    """Base of both estimators: ``learner`` has the hyper-parameters, ``learner_`` plays."""

    learner_: Learner
    _runs: list[Run]

    def __init__(
        self, learner: Learner | None = None, shuffle: bool = True, random_state: Any = None
    ):
        self.learner, self.shuffle, self.random_state = learner, shuffle, random_state

    def set_params(self, **params: Any) -> Self:
        """Set ``learner``, or hyper-parameters of it as ``learner__name``; return self."""
        nested = any(name.startswith("learner__") for name in params)
        if nested and params.get("learner", self.learner) is None:
            params["learner"] = SelfTuning()
        with self._undo_on_error():
            super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = tags.regressor_tags is not None
        kind: Any = tags.classifier_tags or tags.regressor_tags
        # Learners but SelfTuning need suitable widths and rates.
        kind.poor_score = not isinstance(self.learner, SelfTuning | None)
        return tags

    def _clone_learner(self) -> Learner:
        if isinstance(self.learner, OneVsRest | MultiOutput | OnlineToBatch):
            raise ValueError(
                f"learner is a {type(self.learner).__name__}; pass its inner learner: an estimator "
                "itself takes several classes or labels (OnlineToBatch has a fit of its own)"
            )
        return SelfTuning() if self.learner is None else check_member("learner", self.learner)

    def _validate(self, *data: ArrayLike, reset: bool = False, **options: Any) -> Any:
        """Return X, or X and y, checked by scikit-learn; errors name the column of a frame."""
        options |= {"accept_sparse": "csr", "dtype": np.float64}
        if len(data) == 2:
            checks.warn_of_order(*data)
            data = data[0], self._read_labels(data[1])
        if any(map(np.ma.is_masked, data)):
            raise ValueError("X or y has masked entries; fill or drop them first")
        try:
            with np.errstate(over="ignore"):  # overflows become infinity, which is refused
                return validate_data(self, *data, reset=reset, **options)
        except (TypeError, ValueError):
            for name, one in zip("Xy", data, strict=False):
                if inputs.is_frame(one) or isinstance(one, str):
                    inputs.as_rows(one, name=name)  # raises: it names the column, or a cure
            raise

    def _read_labels(self, y: ArrayLike) -> ArrayLike:
        return y

    @contextmanager
    def _undo_on_error(self) -> Iterator[None]:
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _order(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ordered = not checks.require_flag("shuffle", self.shuffle)
        if ordered:
            return X, y
        if find_parts(Lags, self.learner):
            raise ValueError("Lags takes the last labels as inputs: pass shuffle=False")
        return shuffle(X, y, random_state=self.random_state)

    def _play(self, player: Learner, X: np.ndarray, y: np.ndarray) -> Run:
        """Play the rounds and return them; keep the player and the run."""
        done = run(player, X, y)
        # In place: after Ctrl-C the rounds of the player stay.
        runs = self._runs if player is getattr(self, "learner_", None) else []
        runs.append(done.without_data())
        # In n calls each row is copied at most log2(n) times.
        while len(runs) > 1 and runs[-2].rounds <= runs[-1].rounds:
            runs[-2:] = [join_runs(*runs[-2:])]
        self._runs, self.learner_ = runs, player
        names = tuple(getattr(self, "feature_names_in_", ()))
        classes = tuple(getattr(self, "classes_", np.empty(0)).tolist())
        two = None if isinstance(player, OneVsRest) else classes or None  # it knows its own
        player._schema = Schema(names, classes=two) if names else None
        if done.interrupted:
            raise KeyboardInterrupt
        return done

    @property
    def feature_importances_(self) -> np.ndarray:
        """``importance`` of SelfTuning: how much forecasts depend on each column, (d,)."""
        check_is_fitted(self)
        importance = getattr(self.learner_, "importance", None)
        if importance is None:
            raise AttributeError(f"only SelfTuning has importance, not {self.learner!r}")
        return importance

    @property
    def run_(self) -> Run:
        """The online protocol of all rows since the last ``fit``."""
        check_is_fitted(self)
        self._runs = [reduce(join_runs, self._runs)]
        return self._runs[0]


def has_probabilities(estimator: OnlineEstimator) -> bool:
    """Return True if forecasts are probabilities; else raise AttributeError with the reason."""
    player = getattr(estimator, "learner_", None) or estimator._clone_learner()
    loss = player._loss().name
    if loss not in LOSSES and not isinstance(player, OneVsRest):
        cure = f"use the {' or '.join(LOSSES)} loss, or sklearn.calibration.CalibratedClassifierCV"
        raise AttributeError(f"forecasts under the {loss} loss are not probabilities; {cure}")
    return True


def read_labels(values: Any, name: str = "y") -> np.ndarray:
    """Return labels, (n,); ValueError unless there are all, all texts, all numbers or all bools."""
    if isinstance(values, inputs.Signs):  # of a stream
        values = np.array(values.decode().tolist())
    labels = column_or_1d(inputs.as_label_array(values), warn=True)
    there = inputs.find_labels(labels)
    if not there.all():
        row = int(there.argmin())
        raise ValueError(f"{name} has no label at row {row}; drop the rows without one first")
    if labels.dtype.kind in "biuU":
        return labels
    is_float = labels.dtype.kind == "f"
    plain = list(map(checks.as_plain, labels.tolist()))
    for row, label in enumerate(plain):
        one_kind = type(label) in (str, int, bool) and type(label) is type(plain[0])
        if not (label.is_integer() and abs(label) < 2.0**63 if is_float else one_kind):
            raise ValueError(
                f"Unknown label type: {name} has {label!r} ({type(label).__name__}) at row {row}; "
                "labels must be all integers, all bools or all texts, np.asarray(y).astype(str); "
                "OnlineRegressor forecasts numbers"
            )
    return labels if is_float else np.array(plain)


class OnlineClassifier(OnlineEstimator, ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier over any learner; its fit plays the rows online.

    Parameters
    ----------
    learner : Learner, optional
        Gives the hyper-parameters; it is not played itself. None: ``okl.SelfTuning()``, which
        takes raw numbers and needs no tuning. A grid search names hyper-parameters as in
        ``learner__features__sigma``. If learner is an ``Intervals``, its inner learner is trained,
        and ``predict(X, return_set=True)`` gives sets.
    shuffle : bool
        Whether ``fit`` plays the rows in random order, as is right for ``predict`` of many rows: in
        order ``SelfTuning`` learns to rely on the last labels. A stream begins with
        ``partial_fit``, which keeps the order.
    random_state : int, RandomState or None
        Seed of the shuffling.

    Attributes
    ----------
    learner_ : Learner or OneVsRest
        The trained learner. Two classes are the labels -1, for ``classes_[0]``, and +1. More
        classes, or new ones that may come (``partial_fit`` without ``classes``), need a
        ``OneVsRest``. ``learner_.save(path)`` writes it without pickle.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    run_ : Run
        The online protocol of ``fit`` and every ``partial_fit`` since, in the order played. Each
        forecast was made before its label was seen, so ``run_.mistake_rate`` is an honest error
        without a test set. It keeps 25 to 75 bytes per round.

    Notes
    -----
    - The rows are played once; with shuffle=False as by ``okl.run``, bit for bit. Then
      ``SelfTuning`` makes its members anew of all rows. Rows that are sorted by class are a drift.
    - Linear learners have no intercept: give X a column of ones, or use
      ``WithFeatures(TaylorFeatures(...), ...)``.
    - There is no ``sample_weight``: regret bounds count each round once.
    - A ``horizon`` given to the learner counts the rounds of ``partial_fit`` too.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(0, [1, 100], (1000, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same sign", "other")
    >>> model = okl.interop.OnlineClassifier(random_state=0).fit(X, y)
    >>> model.predict([[2, 150], [-2, 150]])
    array(['same sign', 'other'], dtype='<U9')
    >>> bool(model.run_.mistake_rate < 0.1)
    True
    """

    def _read_labels(self, y: ArrayLike) -> np.ndarray:
        return read_labels(y)

    def _clone_learner(self) -> Learner:
        learner = super()._clone_learner()
        return learner.learner if isinstance(learner, Intervals) else learner

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Play the rows of X, dense, sparse or a frame, with a new learner; return self.

        y : texts, integers or bools, (n,), of at least two classes.
        """
        with self._undo_on_error():
            rows, labels = self._validate(X, y, reset=True)
            check_classification_targets(labels)  # warns of many
            classes = np.unique(labels)
            if len(classes) < 2:
                cure = "if others come later use partial_fit(X, y), which accepts new ones"
                raise ValueError(f"y has 1 class, {classes.tolist()}, but needs two; {cure}")
            self._play(self._take_all(classes), *self._order(rows, labels))
            self.learner_._end_fit()
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Play more rows, in order; return self.

        classes : all labels that may ever come, (K,). None at the first call: new classes may come
        (bools have two), and forecasts are those of a ``OneVsRest`` that knew all from the start.
        """
        first = not hasattr(self, "learner_")
        if classes is not None:
            classes = np.unique(read_labels(classes, "classes"))
            valid, what = len(classes) > 1, "all labels that may ever come, at least two"
            if not first:
                valid = np.array_equal(classes, self.classes_)
                what = f"{self.classes_.tolist()} as at the first call (fit starts again)"
            checks.require(valid, "classes", classes.tolist(), f"left out, or {what}")
        with self._undo_on_error():
            rows, labels = self._validate(X, y, reset=first)
            if first and classes is None and labels.dtype.kind == "b":
                classes = np.array([False, True])
            if first and classes is not None:
                player = self._take_all(classes)
            elif first or self._grows:
                player = self._take_new(labels)
            else:
                player = self.learner_
            self._play(player, rows, labels)
        return self

    def _take_all(self, classes: np.ndarray) -> Learner:
        """Return a learner of these classes, besides which none come."""
        self.classes_, self._grows = classes, False
        player = self._clone_learner()
        return player if len(classes) == 2 else OneVsRest(player, classes.tolist())

    def _take_new(self, y: np.ndarray) -> Learner:
        """Return the learner with a class for each label, and a spare one."""
        player: Any = getattr(self, "learner_", None)
        known, text = getattr(self, "classes_", y[:0]), y.dtype.kind == "U"
        if text != (known.dtype.kind == "U"):
            so_far = f"the classes so far are {known.tolist()}"
            fault = f"y has {y.tolist()[0]!r}, but {so_far}"
            raise ValueError(f"{fault}; labels must be all texts or all numbers")
        if player is None:
            one = y.tolist()[0]
            player = OneVsRest(self._clone_learner(), [one, one + "?" if text else int(one == 0)])
        player._add_classes(y.tolist())  # those of refused calls have a place too
        first = np.unique(y, return_index=True)[1]
        self._new = first[~np.isin(y[first], known)]  # rows of classes that no set could have
        self.classes_, self._grows = np.union1d(known, y), True
        return player

    def _play(self, player: Learner, X: np.ndarray, y: np.ndarray) -> Run:
        """Play the rounds, and track the odds against the class that came."""
        first, several = player.rounds, isinstance(player, OneVsRest)
        if not first:
            self._odds, one = None, self.learner
            if isinstance(one, Intervals) and (several or player._loss().name in LOSSES):
                self._odds = one.coverage, one.eta, np.array(START)
        hint = "; begin with partial_fit, with all classes at first, or none if new ones may come"
        labels = y if self._grows else inputs.encode_labels(y, self.classes_.tolist(), hint=hint)
        done = super()._play(player, X, labels)
        if self._odds is not None:
            F = done.scores[:, self._find_outputs()] if several else done.predictions
            t, came = np.arange(len(y)), np.searchsorted(self.classes_, y)
            for row in self._new if self._grows else ():  # its class was not known before
                F[:row, came[row]] = -np.inf
            p = compute_probabilities(player._loss().name, F, first + t)[t, came]
            if self._grows:
                p[self._new] = 1.0  # not counted
            at_once, out = np.empty((0, 4)), np.empty((len(y), 2))
            interval_rounds(np.zeros(len(y)), (1.0 - p) / p, *self._odds, at_once, out)
        return done

    def _find_outputs(self) -> list[int]:
        """Return the places of ``classes_`` among those of a OneVsRest, which may have a spare."""
        names = self.learner_._output_names or []
        return [names.index(label) for label in self.classes_.tolist()]

    def _score(self, X: ArrayLike) -> np.ndarray:
        """Return the scores of the classes, (n, K), or forecasts of the second of two, (n,)."""
        check_is_fitted(self)
        X = self._validate(X)
        if isinstance(self.learner_, OneVsRest):
            return self.learner_.scores(X)[:, self._find_outputs()]
        return self.learner_.predict(X)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts for the rows of X against the present state.

        For two classes, (n,): a forecast above 0 means ``classes_[1]``; else scores, (n, K).
        """
        F = self._score(X)
        return 0.5 * (F[:, 1] - F[:, 0]) if F.shape[1:] == (2,) else F

    def predict(self, X: ArrayLike, return_set: bool = False) -> Any:
        """Return the classes forecast for the rows of X, shape (n,).

        With ``return_set``, if ``learner`` is an ``Intervals``, also sets of classes, bool of shape
        (n, K): the forecast, and each class whose probability is above a threshold. It is tracked
        so that the true class is above it in ``coverage`` of the rounds (docs/intervals.md).
        """
        F = self._score(X)
        forecast = np.argmax(F, axis=1) if F.ndim == 2 else (F > 0.0).astype(int)
        if not return_set:
            return self.classes_[forecast]
        if self._odds is None:
            raise ValueError(f"{NO_INTERVALS}, with {' or '.join(LOSSES)} loss")
        P = compute_probabilities(self.learner_._loss().name, F, self.learner_.rounds)
        sets = (1.0 - P) / P <= self._odds[2][HALF_WIDTH]
        sets[np.arange(len(F)), forecast] = True
        return self.classes_[forecast], sets

    @available_if(has_probabilities)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probabilities of the classes for the rows of X, (n, K).

        Those of several classes are of ``OneVsRest``. Of two classes, under the logistic loss a
        forecast f gives ``classes_[1]`` the probability 1 / (1 + exp(-f)); under the squared and
        the squared hinge loss (1 + f) / 2, clipped to [0, 1]; other losses have none
        (AttributeError). After n rounds no class has less than 1 / (n + K), so log losses are
        finite. The sum of (p_t - 1{y_t = +1})^2, the Brier score of two classes, is at most a
        quarter of the squared loss, or of the squared hinge loss; so are its regret bounds.
        """
        F, player = self._score(X), self.learner_
        return compute_probabilities(player._loss().name, F, player.rounds)


class OnlineRegressor(OnlineEstimator, RegressorMixin, BaseEstimator):
    """A scikit-learn regressor over any learner; its fit plays the rows online.

    Parameters
    ----------
    learner, shuffle, random_state
        As in ``OnlineClassifier``, with a loss for real labels. With an ``Intervals``,
        ``predict(X, return_interval=True)`` gives intervals.

    Attributes
    ----------
    learner_, run_, n_features_in_, feature_names_in_
        As in ``OnlineClassifier``; for labels of shape (n, K) ``learner_`` is a ``MultiOutput``.
        The honest error is ``run_.settled_mean_loss``.

    Notes
    -----
    The notes of ``OnlineClassifier`` hold here too. Labels are not scaled: for learners other than
    ``SelfTuning`` use ``sklearn.compose.TransformedTargetRegressor``, or scale them to a range that
    suits ``C``, ``B`` and ``eta``.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    >>> learner = okl.PKAWV(okl.TaylorFeatures(3), lam=0.1)
    >>> model = okl.interop.OnlineRegressor(learner, shuffle=False)
    >>> model.fit(X, np.sin(2 * X[:, 0]) + X[:, 1]).predict([[0.5, 0.5]]).round(1)
    array([1.3])
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Play the rows of X with a new learner; return self. y : real labels, (n,) or (n, K)."""
        with self._undo_on_error():
            self._play(None, *self._order(*self._validate(X, y, reset=True, **REAL_LABELS)))
            self.learner_._end_fit()
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Play more rows, in order; return self. Arguments and errors as in ``fit``."""
        with self._undo_on_error():
            player = getattr(self, "learner_", None)
            self._play(player, *self._validate(X, y, reset=player is None, **REAL_LABELS))
        return self

    def _play(self, player: Learner | None, X: np.ndarray, y: np.ndarray) -> Run:
        if player is None:
            player = self._clone_learner()
            player = MultiOutput(player) if y.ndim == 2 else player
        y = y.astype(np.float64) if y.dtype == bool else y  # 0 and 1, as in metrics
        return super()._play(player, X, y)

    def predict(self, X: ArrayLike, return_interval: bool = False) -> Any:
        """Return the forecasts for the rows of X against the present state, (n,) or (n, K).

        With ``return_interval``, if ``learner`` is an ``Intervals``, also these, (n, 2), (n, K, 2).
        """
        check_is_fitted(self)
        player = self.learner_
        forecasts = player.predict(self._validate(X))
        if not return_interval:
            return forecasts
        if player._half_width is None:
            raise ValueError(NO_INTERVALS)
        return forecasts, player._intervals_around(forecasts)
