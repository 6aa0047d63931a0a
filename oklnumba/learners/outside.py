"""Learners of other libraries: an adapter around models that learn."""

import copy
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from oklnumba.core.checks import repr_short, repr_type, require_number
from oklnumba.core.guard import locked
from oklnumba.core.inputs import as_values
from oklnumba.core.state import Stateful
from oklnumba.learners.base.learner import Learner, Trace
from oklnumba.learners.base.traits import InForce, Traits


class Foreign(Learner):
    """A learner whose state is a model of another library: pickles hold it, files do not."""

    __getstate__, __setstate__ = Stateful.__getstate__, Stateful.__setstate__

    def _export(self) -> dict[str, Any]:
        return {"whole": copy.deepcopy(self.__getstate__())}  # it may learn meanwhile

    def _restore(self, state: dict[str, Any]) -> None:
        vars(self).update(copy.deepcopy(state["whole"]))


class Outside(Foreign):
    """Plays a model of another library, or of the user, round by round.

    A forecast of None counts as 0, True and False as +1 and -1: classifiers forecast classes.
    """

    model: Any

    @property
    def _traits(self) -> Traits:  # they are slow: look at the clock often
        return Traits(run_rows=256, signs=self._choose_calls()[2], is_member=False)

    def _open(self, d: int, outputs: int = 1) -> None:
        self._width = d
        self._in_force = InForce(SimpleNamespace(), {})  # the model itself plays, not a copy

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        predict, learn = self._choose_calls()[:2]
        trace.sizes.fill(0)
        for t, label in enumerate(y.tolist()):
            trace.predictions[t] = self._forecast(X[t : t + 1], predict)[0]
            learn(X[t].copy(), label)
            self._played += 1

    @locked
    def _learn_rows(
        self, X: np.ndarray, y: np.ndarray, missed: np.ndarray, notes: np.ndarray
    ) -> None:
        if hasattr(self.model, "learn_one"):
            super()._learn_rows(X, y, missed, notes)
        else:  # as scikit-learn: a batch in one call
            self._begin(X.shape[1])
            self._choose_calls()[1](self._fill(X).copy(), y.copy())
            self._played += len(X)

    def _forecast(self, X: np.ndarray, predict: Callable | None = None) -> np.ndarray:
        predict, forecasts = predict or self._choose_calls()[0], np.empty(len(X))
        if len(X) > 1 and not hasattr(self.model, "learn_one") and self._played:
            return check_forecasts(self.model, self.model.predict(X.copy()), len(X))
        for t, x in enumerate(X):
            forecast = predict(x.copy())  # the model may keep it
            if forecast is None or isinstance(forecast, bool | np.bool_):
                forecast = 0.0 if forecast is None else 2.0 * forecast - 1.0
            forecasts[t] = require_number(f"the forecast in round {self._played + 1}", forecast)
        return forecasts

    def _choose_calls(self) -> tuple[Callable, Callable, bool]:
        """Return what forecasts x, what learns x and its label, and if labels are -1 and +1."""
        model = self.model
        if not hasattr(model, "learn_one"):  # as scikit-learn: a row at a time
            signs = "classes" in inspect.signature(model.partial_fit).parameters
            more = {"classes": [-1.0, 1.0]} if signs else {}
            fitted = hasattr(model, "n_features_in_")
            return (
                lambda x: model.predict(x[None])[0] if fitted or self._played else None,
                lambda x, y: model.partial_fit(np.atleast_2d(x), np.ravel(y), **more),
                signs,
            )
        if all(cls.__module__.split(".")[0] != "river" for cls in type(model).__mro__):
            return model.predict_one, model.learn_one, False
        steps = getattr(model, "steps", {"": model})  # of a pipeline
        signs = hasattr(list(steps.values())[-1], "predict_proba_one")
        return (
            lambda x: model.predict_one(dict(enumerate(x.tolist()))),
            lambda x, y: model.learn_one(dict(enumerate(x.tolist())), y > 0.0 if signs else y),
            signs,
        )

    def _repr_with(self, params: dict[str, Any]) -> str:
        name, text = type(self.model).__name__, repr_short(self.model)
        return text if text.startswith(name) else f"{name}()"


def check_forecasts(model: Any, forecasts: Any, n: int) -> np.ndarray:
    """Return what a model like those of scikit-learn forecasts: a finite number for each row."""
    return as_values(np.ravel(forecasts), n, f"what {type(model).__name__} forecasts", "forecast")


def can_learn(value: Any) -> bool:
    """Say whether ``okl.run`` can play an object."""
    pairs = ("predict_one", "learn_one"), ("predict", "partial_fit")
    return not isinstance(value, type) and any(all(hasattr(value, n) for n in p) for p in pairs)


def adapt(learner: Any, name: str = "learner") -> Learner:
    """Return a learner for ``okl.run``: itself, or an adapter around another object that learns."""
    if can_learn(learner):
        return learner if isinstance(learner, Learner) else Outside(learner)
    data = isinstance(learner, list | tuple) or hasattr(learner, "shape")
    hint = "; the learner comes first: okl.run(learner, X, y)" if data else ""
    raise ValueError(
        f"{name} must be an oklnumba learner such as okl.PKAWV(okl.TaylorFeatures(2)), or another "
        "object with predict_one and learn_one (or predict and partial_fit; one with fit goes into "
        f"okl.Refit), but is {repr_type(learner)}{hint}"
    )
