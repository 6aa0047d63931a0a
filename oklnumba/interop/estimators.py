"""scikit-learn estimators over any learner: one prequential pass is the fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from oklnumba.core.checks import require
from oklnumba.core.inputs import as_classes, as_label_array, as_rows, is_frame
from oklnumba.interop.probabilities import LOSSES, probabilities
from oklnumba.learners.base.learner import Learner, clone_learner
from oklnumba.learners.self_tuning.learner import SelfTuning
from oklnumba.protocol.run import run
from oklnumba.protocol.several import MultiOutput, OneVsRest

__all__ = ["OnlineClassifier", "OnlineRegressor"]


def __dir__() -> list[str]:
    return __all__


class OnlineEstimator(BaseEstimator):
    """What classifier and regressor share: the learner that is given, and the one that plays."""

    learner: Learner | None

    def set_params(self, **params: Any) -> Self:
        """Set ``learner``, or ``learner__name`` of the learner that was given; return self.

        Raises
        ------
        ValueError
            For a name that is no hyper-parameter, or is one of a learner that was not given.
        """
        nested = [name for name in params if name.startswith("learner__")]
        if nested and params.get("learner", self.learner) is None:
            name = type(self).__name__
            raise ValueError(
                f"{nested[0]} cannot be set, for learner is None, which stands for "
                f"okl.SelfTuning(): give the learner to be set, {name}(okl.SelfTuning()), say"
            )
        return super().set_params(**params)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fresh(self) -> Learner:
        """Return a learner without data of the hyper-parameters that were given."""
        what, name = self.learner, type(self).__name__
        if what is None:
            return SelfTuning()
        if isinstance(what, Learner) and what._can_be_member:
            return clone_learner(what)
        cure = "pass one such as okl.PKAWV(okl.TaylorFeatures(2)), or None for okl.SelfTuning()"
        if isinstance(what, type) and issubclass(what, Learner):
            cure = f"make one of that class, {name}(okl.{what.__name__}(...))"
        elif isinstance(what, Learner):
            cure = f"pass the learner within: {name} sees to several classes or labels itself"
        raise ValueError(f"learner must be an oklnumba learner, but is {what!r}; {cure}")

    def _validated(self, *data: ArrayLike, reset: bool = False, **options: Any) -> Any:
        """Return X, or X and y, as scikit-learn checks them; a column that will not do is named."""
        options |= {"accept_sparse": "csr", "dtype": np.float64}
        try:
            with np.errstate(over="ignore"):  # what is beyond is infinity, and refused as that
                return validate_data(self, *data, reset=reset, **options)
        except (TypeError, ValueError):
            if is_frame(data[0]):
                as_rows(data[0])  # raises where it is the frame, and says where in it
            raise
        except ArithmeticError as error:  # of integers and decimals that no float holds
            raise ValueError(
                f"X or y has a number beyond double precision: {error}; scale it, or leave it out"
            ) from error

    @contextmanager
    def _as_before_on_error(self) -> Iterator[None]:
        """Take back all attributes where the block raises."""
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _play(self, player: Learner, X: np.ndarray, y: np.ndarray) -> Self:
        """Play the rounds; keep the player and the run."""
        player._as_labels(y, X.shape[0])  # here, so that errors do not speak of a stream
        done = run(player, [(X, y)])  # in a chunk: the run does not hold the data
        if done.interrupted:  # half a fit is none
            raise KeyboardInterrupt
        self.run_, self.learner_, self._made_of = done, player, repr(self.learner)
        return self

    def _playing(self) -> Learner:
        """Return the player so far, or raise ValueError where another ``learner`` is given now."""
        before = getattr(self, "_made_of", repr(self.learner))
        if before != repr(self.learner):
            raise ValueError(
                f"learner is now {self.learner!r}, but {before} has played so far; "
                "call fit to start afresh, or set it back"
            )
        return self.learner_


def has_probabilities(estimator: OnlineClassifier) -> bool:
    """Say whether its forecasts are probabilities; AttributeError with the reason if not."""
    player = getattr(estimator, "learner_", None) or estimator._fresh()
    loss = player._loss().name
    if loss not in LOSSES:
        raise AttributeError(
            f"forecasts under the {loss} loss are no probabilities: take a learner with the "
            f"{' or '.join(LOSSES)} loss, or sklearn.calibration.CalibratedClassifierCV"
        )
    return True


def check_label_type(labels: np.ndarray, name: str = "y") -> np.ndarray:
    """Return labels, or raise ValueError unless they are numbers, bools or texts, of one type.

    What an array of objects holds, integers or bools, becomes an array of these.
    """
    require(labels.ndim == 1, name, labels, "a 1-D array of labels")
    kind, other = labels.dtype.kind, np.zeros(len(labels), dtype=bool)
    if kind == "O":
        kinds = np.array([kind_of(label) for label in labels] or ["U"])
        kind, other = str(kinds[0]), kinds != kinds[0]
    if kind not in "biufU" or other.any():
        row = int(np.argmax(other))
        label = labels.tolist()[row]
        raise ValueError(
            f"Unknown label type: {name} has {label!r} ({type(label).__name__}) at row {row}; "
            "labels must be all texts, all integers or all bools: drop rows without a label, or "
            "make texts of them, y.astype(str)"
        )
    if labels.dtype.kind == "O" and kind in "bi":
        return labels.astype(bool if kind == "b" else np.int64)
    return labels


def kind_of(label: object) -> str:
    """Return the letter NumPy has for a label among objects: a text, a bool, an integer; or "O"."""
    if isinstance(label, str):
        return "U"
    if isinstance(label, bool | np.bool_):
        return "b"
    whole = isinstance(label, int | np.integer) and -(2**63) <= label < 2**63
    return "i" if whole else "O"


class OnlineClassifier(ClassifierMixin, OnlineEstimator):
    """A classifier of scikit-learn over any learner; its fit is one pass, forecast by forecast.

    Parameters
    ----------
    learner : Learner, optional
        Its hyper-parameters are used; it is not played itself. None: ``okl.SelfTuning()``, which
        takes raw numbers and needs no tuning. Its own are ``learner__name``, nested to any depth
        as in ``learner__features__sigma``.

    Attributes
    ----------
    learner_ : Learner or OneVsRest
        The learner that has played: for two classes on the labels -1, for ``classes_[0]``, and +1;
        for more a ``OneVsRest``. ``learner_.save(path)`` writes it without pickle.
    classes_ : ndarray of shape (K,)
        The classes, sorted.
    run_ : Run
        The online protocol of ``fit``, or of the last ``partial_fit``: each forecast was made
        before its label was seen, so ``run_.mistake_rate`` is an honest error, without a test set,
        and ``run_.certificate`` has the regret. It does not hold the data.
    n_features_in_ : int
        Width of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns, where X had some.

    Notes
    -----
    - The rows are played in their order, once; a fit is ``okl.run`` of a fresh learner, to the bit.
      Sort by time what came in time, and shuffle what is sorted by class.
    - Linear learners have no intercept: give X a column of ones, or take
      ``WithFeatures(TaylorFeatures(...), ...)``.
    - Sparse rows are made dense block by block, never all at once.
    - No ``sample_weight``: a round is a row, and the regret bounds count each once.
    - The tag ``poor_score`` is set for any learner but the self-tuning one: what others reach in
      one pass is for their scales, widths and rates to decide, which are the user's.
    - A learner that was given a fixed number of rounds (``horizon``) counts those of
      ``partial_fit`` too.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).normal(0, [1, 100], (1000, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same sign", "other")
    >>> model = okl.interop.OnlineClassifier().fit(X, y)
    >>> model.predict([[2, 150], [-2, 150]])
    array(['same sign', 'other'], dtype='<U9')
    >>> bool(model.run_.mistake_rate < 0.1)
    True
    """

    def __init__(self, learner: Learner | None = None):
        self.learner = learner

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start afresh and play the rows of X in their order, once; return self.

        Parameters
        ----------
        X : array_like, frame or scipy.sparse of shape (n, d)
        y : array_like of shape (n,)
            Texts, integers or bools, of at least two classes.

        Raises
        ------
        ValueError
            If X, y or ``learner`` is not valid; the estimator is as before then.
        FloatingPointError
            If the numbers of a round are beyond double precision.
        """
        with self._as_before_on_error():
            player = self._fresh()
            X, y = self._validated(X, as_classes(y, "y"), reset=True)
            with np.errstate(invalid="ignore"):  # labels that no integer holds
                y = check_label_type(y)
                check_classification_targets(y)
            classes = np.unique(y)
            if len(classes) < 2:
                raise ValueError(
                    f"y has 1 class, {classes.tolist()[0]!r} in all rows, but must have two; where "
                    "others come later use partial_fit(X, y, classes=[...]) with all of them"
                )
            return self._start(player, classes, X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on: play the rows of X in their order; return self.

        Parameters
        ----------
        X : array_like, frame or scipy.sparse of shape (n, d)
        y : array_like of shape (n,)
        classes : array_like of shape (K,)
            All labels that may ever come; only needed at the first call, without a ``fit`` before.

        Raises
        ------
        ValueError
            If X, y or ``learner`` is not valid, y has a label that is not in ``classes``, or
            ``classes`` are missing at the first call or others later; the estimator is as before
            then.
        FloatingPointError
            If the numbers of a round are beyond double precision.
        """
        first = not hasattr(self, "learner_")
        if classes is not None:
            classes = as_label_array(as_classes(classes, "classes"))
            classes = np.unique(check_label_type(classes, "classes"))
        if first and (classes is None or len(classes) < 2):
            raise ValueError(
                "the first call of partial_fit needs classes, all labels that may ever come, at "
                f"least two; they are {classes if classes is None else classes.tolist()}"
            )
        if not first and classes is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"classes are {classes.tolist()}, but were {self.classes_.tolist()} at the first "
                "call; leave them out, or call fit to start afresh"
            )
        with self._as_before_on_error():
            X, y = self._validated(X, as_classes(y, "y"), reset=first)
            y = check_label_type(y)
            if first:
                return self._start(self._fresh(), classes, X, y)
            return self._play(self._playing(), X, self._labels(y))

    def _start(self, player: Learner, classes: np.ndarray, X: np.ndarray, y: np.ndarray) -> Self:
        self.classes_ = classes
        several = len(classes) > 2
        return self._play(
            OneVsRest(player, classes.tolist()) if several else player, X, self._labels(y)
        )

    def _labels(self, y: np.ndarray) -> np.ndarray:
        """Return the labels that the player takes: -1 and +1 for two classes, else as they are."""
        known = np.zeros(len(y), dtype=bool)
        for label in self.classes_:
            known |= y == label
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(
                f"y has {y.tolist()[row]!r} at row {row}, which is not one of the classes "
                f"{self.classes_.tolist()}; the first call of partial_fit names all classes"
            )
        return np.where(y == self.classes_[1], 1.0, -1.0) if len(self.classes_) == 2 else y

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts for the rows of X, each on its own against the present state.

        Parameters
        ----------
        X : array_like, frame or scipy.sparse of shape (n, d)

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            For two classes one forecast, above 0 for ``classes_[1]``; else one for each class.

        Raises
        ------
        ValueError
            If X is not valid, or its columns are not those of the fit; NotFittedError before any.
        """
        check_is_fitted(self)
        X = self._validated(X)
        return self.learner_.predict(X) if len(self.classes_) == 2 else self.learner_.scores(X)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the classes forecast for the rows of X, (n,), as ``decision_function`` has them.

        Raises
        ------
        ValueError
            As in ``decision_function``.
        """
        F = self.decision_function(X)
        return self.classes_[np.argmax(F, axis=1) if F.ndim == 2 else (F > 0.0).astype(int)]

    @available_if(has_probabilities)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probabilities of the classes for the rows of X, (n, K).

        Of a forecast f under the logistic loss that of ``classes_[1]`` is 1 / (1 + exp(-f)), and of
        several classes these, divided by their sum. Under the squared loss it is (1 + f) / 2,
        clipped to [0, 1], and for several classes the nearest point of the simplex.

        Raises
        ------
        ValueError
            As in ``decision_function``.
        AttributeError
            Under another loss, whose forecasts are no probabilities; ``hasattr`` says so before.

        Notes
        -----
        Under the squared loss the Brier score sum_t (p_t - 1{y_t = +1})^2 of these forecasts in a
        run is at most a quarter of the run's squared loss, since to clip only takes them nearer to
        the labels; so regret bounds for the squared loss hold for Brier scores, divided by 4. The
        same is true of the simplex and the sum over the classes, and of the squared hinge loss,
        which is not below the squared loss of the clipped forecast.
        """
        F = self.decision_function(X)
        scores = np.stack([-F, F], axis=1) if F.ndim == 1 else F
        return probabilities(self.learner_._loss().name, scores)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not isinstance(self.learner, SelfTuning | None)
        return tags


class OnlineRegressor(RegressorMixin, OnlineEstimator):
    """A regressor of scikit-learn over any learner; its fit is one pass, forecast by forecast.

    Parameters
    ----------
    learner : Learner, optional
        With a loss for real labels. Its hyper-parameters are used; it is not played itself. None:
        ``okl.SelfTuning()``, which takes raw numbers and needs no tuning. Its own are
        ``learner__name``, nested to any depth as in ``learner__features__sigma``.

    Attributes
    ----------
    learner_ : Learner or MultiOutput
        The learner that has played; for labels of shape (n, K) a ``MultiOutput``.
        ``learner_.save(path)`` writes it without pickle.
    run_ : Run
        The online protocol of ``fit``, or of the last ``partial_fit``: each forecast was made
        before its label was seen, so ``run_.mean_loss`` is an honest error, without a test set, and
        ``run_.certificate`` has the regret. It does not hold the data.
    n_features_in_ : int
        Width of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns, where X had some.

    Notes
    -----
    - As in ``OnlineClassifier``: the rows are played in their order, once; no ``sample_weight``;
      linear learners have no intercept; ``poor_score`` is set for any but the self-tuning learner.
    - Labels are not scaled. The self-tuning learner shifts them to their middle; for others take
      ``sklearn.compose.TransformedTargetRegressor``, or bring them to a range that suits the
      learner's ``C``, ``B`` and ``eta``.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    >>> model = okl.interop.OnlineRegressor(okl.PKAWV(okl.TaylorFeatures(3), lam=0.1))
    >>> model.fit(X, np.sin(2 * X[:, 0]) + X[:, 1]).predict([[0.5, 0.5]]).round(1)
    array([1.3])
    >>> print(f"regret {model.run_.certificate.regret[-1]:.1f}")
    regret 13.4
    """

    def __init__(self, learner: Learner | None = None):
        self.learner = learner

    def _fresh(self) -> Learner:
        learner = super()._fresh()
        loss = learner._loss()
        if not loss.classes:
            return learner
        named = [name for name in learner.get_params() if name.split("__")[-1] == "loss"]
        cure = f"set {named[0]}='squared'" if named else "take another, okl.SelfTuning(), say"
        raise ValueError(
            f"OnlineRegressor takes learners for real labels, but the {loss.name} loss of "
            f"{learner!r} is for labels -1 and +1; {cure}, or use OnlineClassifier for classes"
        )

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start afresh and play the rows of X in their order, once; return self.

        Parameters
        ----------
        X : array_like, frame or scipy.sparse of shape (n, d)
        y : array_like of shape (n,) or (n, K)
            Real labels, one or K a row.

        Raises
        ------
        ValueError
            If X, y or ``learner`` is not valid; the estimator is as before then.
        FloatingPointError
            If the numbers of a round are beyond double precision.
        """
        with self._as_before_on_error():
            player = self._fresh()
            X, y = self._validated(X, y, reset=True, multi_output=True, y_numeric=True)
            return self._play(MultiOutput(player) if y.ndim == 2 else player, X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Go on: play the rows of X in their order; return self.

        Parameters
        ----------
        X : array_like, frame or scipy.sparse of shape (n, d)
        y : array_like of shape (n,) or (n, K)

        Raises
        ------
        ValueError
            As in ``fit``, or if rows have another number of labels than before.
        FloatingPointError
            If the numbers of a round are beyond double precision.
        """
        if not hasattr(self, "learner_"):
            return self.fit(X, y)
        with self._as_before_on_error():
            X, y = self._validated(X, y, multi_output=True, y_numeric=True)
            return self._play(self._playing(), X, y)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts for the rows of X, (n,) or (n, K), each on its own.

        Raises
        ------
        ValueError
            If X is not valid, or its columns are not those of the fit; NotFittedError before any.
        """
        check_is_fitted(self)
        X = self._validated(X)
        return self.learner_.predict(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = not isinstance(self.learner, SelfTuning | None)
        return tags
