"""Anyone's learner in ``okl.run``: an adapter around models that are no ``okl.Learner``."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from oklnumba.core.checks import shown
from oklnumba.core.params import describe
from oklnumba.core.state import State
from oklnumba.learners.base.learner import Learner, Trace


class Outside(Learner):
    """Plays a model of another library, or of the user, round by round.

    A round calls ``predict_one(x)`` and ``learn_one(x, y)`` with x an array of shape (d,), for
    models of river a dict by column number; or ``predict`` and ``partial_fit`` with one row, as
    scikit-learn's estimators have them. Classifiers of both libraries take labels -1 and +1. A
    forecast None, or that of an estimator without data, counts as 0, True and False as +1 and -1.
    """

    _can_be_member = False
    _run_rows = 256  # such models are slow: look at the clock often
    __getstate__, __setstate__ = State.__getstate__, State.__setstate__

    model: Any

    def _open(self, d: int, outputs: int = 1) -> None:
        self._width, self._hyper = d, SimpleNamespace()  # the model itself plays, not a copy

    @property
    def _of_river(self) -> bool:
        return any(cls.__module__.split(".")[0] == "river" for cls in type(self.model).__mro__)

    @property
    def _classifies(self) -> bool:
        if self._of_river:
            steps = getattr(self.model, "steps", {"": self.model})  # of a pipeline
            return hasattr(list(steps.values())[-1], "predict_proba_one")
        by_rows = not hasattr(self.model, "learn_one")
        return by_rows and "classes" in inspect.signature(self.model.partial_fit).parameters

    def _as_labels(self, y: Any, n: int, signs: bool = False) -> np.ndarray:
        return super()._as_labels(y, n, signs or self._classifies)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        predict, learn = self._calls()
        for t, label in enumerate(y.tolist()):
            x = X[t].copy()  # the model may keep it
            trace.predictions[t] = self._as_forecast(predict(x))
            learn(x, label)
            size = getattr(self.model, "size", 0)
            trace.sizes[t] = size if isinstance(size, int) else 0
            self._played += 1

    def _calls(self) -> tuple[Callable, Callable]:
        """Return functions that forecast x, and that learn x and its label."""
        model, classifies = self.model, self._classifies
        if self._of_river:

            def learn(x: np.ndarray, y: float) -> None:
                model.learn_one(dict(enumerate(x.tolist())), y > 0.0 if classifies else y)

            return lambda x: model.predict_one(dict(enumerate(x.tolist()))), learn
        if hasattr(model, "learn_one"):
            return model.predict_one, model.learn_one
        classes = {"classes": [-1.0, 1.0]} if classifies else {}
        return self._predict_row, lambda x, y: model.partial_fit(x[None], [y], **classes)

    def _predict_row(self, x: np.ndarray) -> Any:
        try:
            return self.model.predict(x[None])[0]
        except ValueError as error:
            if type(error).__name__ == "NotFittedError":  # scikit-learn's
                return None
            raise

    def _as_forecast(self, found: Any) -> float:
        if found is None or isinstance(found, bool | np.bool_):
            return 0.0 if found is None else 1.0 if found else -1.0
        try:
            forecast = float(found)
        except (TypeError, ValueError):
            forecast = math.nan
        if not math.isfinite(forecast):
            raise ValueError(
                f"{type(self.model).__name__} forecast {shown(found)} in round {self._played + 1}; "
                "it must be a finite number"
            )
        return forecast

    def __repr__(self) -> str:
        name, text = type(self.model).__name__, shown(self.model)
        return text if text.startswith(name) else f"{name}()"


def can_learn(value: Any) -> bool:
    """Say whether ``okl.run`` can play an object."""
    pairs = ("predict_one", "learn_one"), ("predict", "partial_fit")
    whole = any(all(hasattr(value, name) for name in pair) for pair in pairs)
    return whole and not isinstance(value, type)


def adapt(learner: Any) -> Learner:
    """Return a learner for ``okl.run``: itself, or an adapter around another object that learns."""
    if isinstance(learner, Learner):
        return learner
    if can_learn(learner):
        return Outside(learner)
    data = isinstance(learner, list | tuple) or hasattr(learner, "shape")
    hint = "; the learner comes first: okl.run(learner, X, y)" if data else ""
    raise ValueError(
        "learner must be an oklnumba learner such as okl.PKAWV(okl.TaylorFeatures(2)), OneVsRest, "
        "MultiOutput or OnlineToBatch around one, or an object with predict_one and learn_one (or "
        f"predict and partial_fit), but is {describe(learner)}{hint}"
    )
