"""A batch model as an online learner: fitted anew on its past, again and again."""

import copy
import math
from contextlib import suppress
from typing import Any

import numpy as np

from oklnumba.core import checks
from oklnumba.core.params import KW_ONLY, count, field_with, required
from oklnumba.learners.base.learner import Trace
from oklnumba.learners.base.traits import Traits
from oklnumba.learners.outside import Foreign, check_forecasts

FIRST_FIT = 64  # rows before the first fit where the next ones come by growth


def _check_estimator(name: str, value: Any) -> Any:
    fits = all(hasattr(value, call) for call in ("fit", "predict")) and not isinstance(value, type)
    checks.require(fits, name, value, "an object with fit(X, y) and predict(X)")
    return value


def _check_growth(name: str, value: Any) -> float:
    if isinstance(value, str) and value.endswith("%"):
        with suppress(ValueError):
            value = float(value[:-1]) / 100.0
    return checks.require_positive(name, value)


class Refit(Foreign):
    """A batch model in the online protocol: fitted anew on its past every so many rows.

    Parameters
    ----------
    estimator : object with fit(X, y) and predict(X)
        Of scikit-learn, LightGBM, CatBoost and the like. A copy is fitted each time. Classifiers
        (those with ``predict_proba`` or ``decision_function``) take labels -1 and +1; the forecast
        is 2 p - 1, p the probability of +1, or the class if the model has no probabilities.
    every : int >= 1
        Rows after which the model is fitted anew.
    growth : float > 0 or text such as "15%", optional
        Fit anew when the rows have grown by this share since the last fit, in place of ``every``.
    first : int >= 1, optional
        Rows before the first fit; None: ``every``, or 64 with ``growth``. Until then the forecast
        is the mean of the labels so far.
    latest : int >= 1, optional
        Fit on this many latest rows only; None: on all.

    Remarks
    -------
    No guarantee. All rows that a fit may need stay in memory. ``save`` and checkpoints cannot hold
    a model of another library; ``pickle`` can, if the model can be pickled.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> run = okl.run(okl.Refit(Ridge(), every=100), X, X @ [1.0, -1.0])
    >>> bool(run.losses[100:].mean() < 1e-3)
    True
    """

    estimator: Any = required(_check_estimator)
    _: KW_ONLY
    every: int = count(1000, least=1)
    growth: float | str | None = field_with(_check_growth, None)
    first: int | None = count(None, least=1)
    latest: int | None = count(None, least=1)

    def _start(self, d: int) -> None:
        p = self._hyper
        self._model: Any = None  # the last one fitted
        self._past: list[tuple[np.ndarray, np.ndarray]] = []  # blocks of rows and labels
        self._label_sum = 0.0
        self._next_fit = p.first or (p.every if p.growth is None else FIRST_FIT)

    @property
    def _is_classifier(self) -> bool:
        model = self._hyper.estimator
        return any(hasattr(model, name) for name in ("predict_proba", "decision_function"))

    @property
    def _traits(self) -> Traits:
        return Traits(signs=self._is_classifier)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        trace.sizes.fill(0)
        start = 0
        while start < len(X):
            # Before the first fit the forecast changes with each label.
            together = 1 if self._model is None else self._next_fit - self._played
            rows = slice(start, min(start + together, len(X)))
            trace.predictions[rows] = self._forecast(X[rows])
            self._past.append((X[rows].copy(), y[rows].copy()))
            self._label_sum += float(y[rows].sum())
            self._played += rows.stop - start
            start = rows.stop
            if self._played >= self._next_fit:
                self._fit()

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        if self._model is None:
            return np.full(len(X), self._label_sum / max(self._played, 1))
        if hasattr(self._model, "predict_proba"):
            forecasts = 2.0 * self._model.predict_proba(X.copy())[:, 1] - 1.0
        else:
            forecasts = self._model.predict(X.copy())
        return check_forecasts(self._model, forecasts, len(X))

    def _fit(self) -> None:
        """Fit a copy of the model to the past, and say when the next fit is due."""
        p = self._hyper
        X, y = map(np.concatenate, zip(*self._past, strict=True))
        X, y = X[-(p.latest or 0) :], y[-(p.latest or 0) :]
        self._past = [(X, y)]
        rows = p.every if p.growth is None else math.ceil(p.growth * self._played)
        self._next_fit = self._played + rows
        if self._is_classifier and (y == y[0]).all():
            return  # most classifiers refuse a single class: keep the last model
        self._model = copy.deepcopy(p.estimator)
        self._model.fit(X.copy(), y.copy())  # it may write into them
