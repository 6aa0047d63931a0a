"""scikit-learn estimators over any learner: one prequential pass is the fit."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from oklnumba.learners.learner import Learner, Player, fresh
from oklnumba.learners.self_tuning import SelfTuning
from oklnumba.protocol import run
from oklnumba.wrappers.several import MultiOutput, OneVsRest

__all__ = ["OnlineClassifier", "OnlineRegressor"]

CLIPPED = "squared", "squared_hinge"  # losses whose best forecast is 2 P(+1) - 1


def __dir__() -> list[str]:
    return __all__


class OnlineEstimator(BaseEstimator):
    """What classifier and regressor share: the learner that is given, and the one that plays."""

    def __init__(self, learner: Learner | None = None):
        self.learner = learner

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def _fresh(self) -> Learner:
        """Return a learner without data of the hyper-parameters that were given."""
        if self.learner is None:
            return SelfTuning()
        if isinstance(self.learner, Learner):
            return fresh(self.learner)
        name, what = type(self).__name__, self.learner
        if isinstance(what, type) and issubclass(what, Player):
            cure = f"that is a class: make one, {name}(okl.{what.__name__}(...))"
        elif isinstance(what, Player) and hasattr(what, "learner"):
            cure = f"pass the learner within, {name}({what.learner!r}): several classes or labels "
            cure += "are taken care of here"
        else:
            cure = "pass one such as okl.PKAWV(okl.TaylorFeatures(2)), or None for okl.SelfTuning()"
        raise ValueError(f"learner must be an oklnumba learner, but is {what!r}; {cure}")

    def _inputs(self, X: ArrayLike) -> np.ndarray:
        """Return the checked rows to forecast."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64)

    def _play(self, player: Player, X: np.ndarray, y: np.ndarray) -> Self:
        """Play the rounds, and keep the player and the run."""
        self.run_ = run(player, X, y)
        self.learner_ = player
        return self


def _loss(estimator: OnlineEstimator) -> str:
    """Return the name of the loss of the learner that plays, or that would."""
    player = getattr(estimator, "learner_", None) or estimator._fresh()
    return player._loss().name


def _has_probabilities(estimator: OnlineEstimator) -> bool:
    """Say whether forecasts are probabilities; AttributeError with the reason if not."""
    loss = _loss(estimator)
    if loss in (*CLIPPED, "logistic"):
        return True
    raise AttributeError(
        f"forecasts under the {loss} loss are no probabilities: take a learner with the squared, "
        "squared hinge or logistic loss, or sklearn.calibration.CalibratedClassifierCV"
    )


def _to_simplex(P: np.ndarray) -> np.ndarray:
    """Return the nearest probabilities to each row of P, (n, K), in Euclidean distance."""
    falling = -np.sort(-P, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, P.shape[1] + 1)
    last = np.count_nonzero(falling > excess, axis=1) - 1  # of the positive ones
    return np.maximum(P - np.take_along_axis(excess, last[:, None], axis=1), 0.0)


class OnlineClassifier(ClassifierMixin, OnlineEstimator):
    """A scikit-learn classifier over any learner."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start afresh and play the rows of X in order, once; return self."""
        player = self._fresh()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"y has 1 class, {classes[0]!r}, in all {len(y)} rows, but two are needed; where "
                "others come later use partial_fit(X, y, classes=[...]) with all of them"
            )
        return self._start(player, classes, X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Play the rows of X in order; return self."""
        first = not hasattr(self, "learner_")
        if classes is not None:
            classes = np.unique(classes)
        if first:
            player = self._fresh()
            if classes is None or len(classes) < 2:
                raise ValueError(
                    "classes must be passed at the first call of partial_fit, all labels that y "
                    f"may ever have, at least two, but is {classes!r}"
                )
        elif classes is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"classes are {classes.tolist()}, but were {self.classes_.tolist()} at the first "
                "call; leave them out, or call fit to start afresh"
            )
        X, y = validate_data(self, X, y, reset=first, dtype=np.float64)
        check_classification_targets(y)
        if first:
            return self._start(player, classes, X, y)
        return self._play(self.learner_, X, self._labels(self.classes_, y))

    def _start(self, player: Learner, classes: np.ndarray, X: np.ndarray, y: np.ndarray) -> Self:
        labels = self._labels(classes, y)
        several = OneVsRest(player, classes.tolist()) if len(classes) > 2 else player
        self._play(several, X, labels)
        self.classes_ = classes
        return self

    def _labels(self, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the labels that the player takes: -1 and +1 for two classes, else as they are."""
        known = np.zeros(len(y), dtype=bool)
        for name in classes:
            known |= y == name
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(
                f"y has {y[row]!r} at row {row}, which is not one of the classes "
                f"{classes.tolist()}; name all classes at the first call of partial_fit"
            )
        return np.where(y == classes[1], 1.0, -1.0) if len(classes) == 2 else y

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts for the rows of X."""
        X = self._inputs(X)
        return self.learner_.predict(X) if len(self.classes_) == 2 else self.learner_.scores(X)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the classes forecast for the rows of X."""
        F = self.decision_function(X)
        return self.classes_[(F > 0.0).astype(int) if F.ndim == 1 else np.argmax(F, axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probabilities of the classes for the rows of X."""
        F = self.decision_function(X)
        if _loss(self) == "logistic":
            return (
                np.stack([expit(-F), expit(F)], axis=1)
                if F.ndim == 1
                else softmax(log_expit(F), axis=1)
            )
        if F.ndim == 1:
            p = np.clip(0.5 + 0.5 * F, 0.0, 1.0)
            return np.stack([1.0 - p, p], axis=1)
        return _to_simplex(0.5 + 0.5 * F)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.learner is not None
        return tags


class OnlineRegressor(RegressorMixin, OnlineEstimator):
    """A scikit-learn regressor over any learner."""

    def _fresh(self) -> Learner:
        learner = super()._fresh()
        loss = learner._loss()
        if loss.classes:
            takes = "loss" in learner.get_params(deep=False)
            raise ValueError(
                f"OnlineRegressor takes learners for real labels, but {learner!r} has the "
                f"{loss.name} loss, for labels -1 and +1; "
                + ("set loss='squared'" if takes else "take okl.PKAWV or okl.SelfTuning, say")
                + ", or use OnlineClassifier for classes"
            )
        return learner

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start afresh and play the rows of X in order, once; return self."""
        player = self._fresh()
        X, y = self._checked(X, y, reset=True)
        return self._play(MultiOutput(player) if y.ndim == 2 else player, X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Play the rows of X in order; return self."""
        if not hasattr(self, "learner_"):
            return self.fit(X, y)
        X, y = self._checked(X, y, reset=False)
        return self._play(self.learner_, X, y)

    def _checked(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(
            self, X, y, reset=reset, dtype=np.float64, multi_output=True, y_numeric=True
        )
        return X, np.asarray(y, dtype=np.float64)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts for the rows of X."""
        X = self._inputs(X)
        return self.learner_.predict(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = self.learner is not None
        return tags
