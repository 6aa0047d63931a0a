"""The base of learners on features of the inputs, which are written block by block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oklnumba.components.features import Features
from oklnumba.core.state import aligned_zeros
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.player import Trace


class OnFeatures(Learner):
    """A learner on features: inputs become rows of a buffer, then it plays these.

    A subclass calls ``_start_map`` in ``_start`` and has ``_play_features(Z, y, trace)`` and
    ``_forecast_features(Z)``, which leave Z as it is: Experts hands the same rows to several.
    """

    _ROWS = 504  # rounds whose features are kept at a time: whole sweeps of udu.py
    _written: int | None = None  # which input of single rounds has its features in the buffer

    def _start_map(self, write: Callable[[np.ndarray, np.ndarray], None], room: int) -> None:
        """Take features that ``write(X, Z)`` writes into rows of ``room`` zeros."""
        self._write, self._feature_room = write, room
        self._Z = aligned_zeros(self._ROWS, room)

    def _map_of_inputs(self) -> Features | None:
        """Return the map; None where the inputs are the features."""
        return getattr(self, "features", None)

    def _features_of(self, X: np.ndarray) -> np.ndarray:
        """Return the features of up to _ROWS inputs, in the learner's buffer."""
        Z, single = self._Z[: len(X)], self._single
        inputs = single.inputs if single is not None and X is single.X else None
        if inputs is None or inputs != self._written:  # learn_one comes after predict_one mostly
            self._write(X, Z)
            self._written = inputs
        return Z

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        if len(X) <= self._ROWS:
            self._play_features(self._features_of(X), y, trace)
            return
        for start in range(0, len(X), self._ROWS):
            rows = slice(start, min(start + self._ROWS, len(X)))
            self._play(X[rows], y[rows], trace.rows(rows.start, rows.stop))

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        if len(X) <= self._ROWS:
            return self._forecast_features(self._features_of(X))
        starts = range(0, len(X), self._ROWS)
        return np.concatenate([self._forecast(X[i : i + self._ROWS]) for i in starts])

    def _play_features(self, Z: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        raise NotImplementedError

    def _forecast_features(self, Z: np.ndarray) -> np.ndarray:
        raise NotImplementedError
