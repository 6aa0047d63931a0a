"""What ``_play`` and ``_forecast`` of a user's class are given, and what they must return."""

import functools
from inspect import isfunction
from typing import Any

import numpy as np


def guard_methods(cls: type) -> None:
    """Guard ``_play`` and ``_forecast`` of a class, if they were written outside the package.

    They get copies of blocks, since X and y may be arrays of the user or be played by others too.
    A single round has buffers of its own, and is not checked, for speed.
    """
    for name, guard in (("_play", _guard_play), ("_forecast", _guard_forecast)):
        method = getattr(cls, name)
        of_user = isfunction(method) and not method.__module__.startswith("oklnumba.")
        if of_user and not hasattr(method, "__wrapped__"):  # nor guarded in a base class
            setattr(cls, name, guard(method))


def _guard_play(play: Any) -> Any:
    @functools.wraps(play)
    def guarded(self: Any, X: np.ndarray, y: np.ndarray, trace: Any) -> None:
        if X is self._single.X:
            return play(self, X, y, trace)
        before, mine = self._played, f"{type(self).__name__}._play"
        trace.predictions.fill(np.nan)
        trace.sizes.fill(0)
        play(self, X.copy(), y.copy(), trace)
        missing = np.isnan(trace.predictions).reshape(len(X), -1).any(axis=1)
        if missing.any():
            fault = f"{mine} has no forecast for round {before + int(missing.argmax()) + 1}"
            raise FloatingPointError(f"{fault}: it must write numbers into trace.predictions")
        labelled = int((y == y).reshape(len(X), -1).all(axis=1).sum())  # others are not learned
        if self._played != before + labelled:
            self._fault = ValueError(
                f"{mine} counted {self._played - before} of {labelled} rounds: it must add len(X) "
                "to self._played"
            )
            raise self._fault

    return guarded


def _guard_forecast(forecast: Any) -> Any:
    @functools.wraps(forecast)
    def guarded(self: Any, X: np.ndarray) -> np.ndarray:
        if X is self._single.X:
            return forecast(self, X)
        forecasts = np.asarray(forecast(self, X.copy()))
        shape = (len(X),) if self._outputs == 1 else (len(X), self._outputs)
        if forecasts.shape != shape:
            fault = f"{type(self).__name__}._forecast returns shape {forecasts.shape}"
            raise ValueError(f"{fault} for {len(X)} rows, it must return {shape}")
        return forecasts

    return guarded
