"""Any learner behind an online standardiser."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.components.scaling import LARGEST, Standardizer
from oklnumba.core.health import Part
from oklnumba.core.params import positive
from oklnumba.core.state import select_prefix
from oklnumba.hot.primitives.jit import NOT_FINITE
from oklnumba.learners.base.learner import Learner, Trace, from_learner, learner_field


class Standardized(Learner):
    """A learner on inputs that are standardised by their own past (Welford 1962).

    Each input is brought to mean 0 and scale 1 by the mean and the deviation of the inputs before
    it, without outliers, as ``Standardizer.stream`` does, then the learner plays it; the first
    input is 0. So kernel widths and learning rates are in units of the data's own scale, without a
    first pass.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are used; it is not played itself.
    clip : float > 0, optional
        Inputs further than this many scales from the mean are cut to it; None: no cut.

    Remarks
    -------
    The certificate passes through: its functions are of the standardised inputs z_t, each by the
    statistics of its round, f(z_1), ..., f(z_n). Where the early statistics are far from the late
    ones, a fixed f of the inputs themselves is not among these functions.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal([1e6, 0.0], [1e3, 1e-3], (1000, 2))
    >>> y = np.sign((X[:, 0] - 1e6) * X[:, 1])
    >>> learner = okl.Standardized(okl.PKAWV(okl.TaylorFeatures(4, sigma=2.0)))
    >>> bool(okl.run(learner, X, y).mistakes[200:].mean() < 0.15)
    True
    """

    learner: Learner = learner_field()
    _: KW_ONLY
    clip: float | None = positive(5.0, optional=True)

    _certified = from_learner("_certified")
    _several = from_learner("_several")
    _in_threads = from_learner("_in_threads")
    _can_widen = from_learner("_can_widen")
    _run_rows = from_learner("_run_rows")
    _block_rows = from_learner("_block_rows")

    @property
    def _inner(self) -> Learner:
        """The learner within; before any data the one that was given."""
        return self._in_force.learner

    @property
    def size(self) -> int:
        """Size of the learner within; 0 before any data."""
        return self._inner.size if self._width is not None else 0

    def _space(self) -> str | None:
        space = self._inner._space()
        return space and f"{space}, of standardised inputs"

    def _member(self) -> str | list[str] | None:
        return self._inner._member()

    def _loss(self) -> losses.Loss:
        return self._inner._loss()

    def _check_labels(self, y: np.ndarray) -> None:
        self._inner._check_labels(y)

    def _advice(self, X: np.ndarray) -> str | None:
        Z = Standardizer(self.clip).stream(np.clip(X, -LARGEST, LARGEST))
        return self._inner._advice(Z)

    def _start(self, d: int) -> None:
        p = self._hyper
        self._scaler = Standardizer(p.clip)
        self._scaler._begin(d)
        p.learner._open(d, self._outputs)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        beyond = (np.abs(X) > LARGEST).any(axis=1)
        if beyond.any():
            self._raise_status(NOT_FINITE, int(np.argmax(beyond)))
        self._inner._play(self._scaler._stream(X), y, trace)
        self._played += len(X)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return self._inner._forecast(self._scaler._transform(np.clip(X, -LARGEST, LARGEST)))

    def _matrices(self) -> list[Part]:
        return self._inner._diagnose()

    def _state(self) -> dict[str, Any]:
        parts = {"scaler": self._scaler, "inner": self._inner}
        return {f"{p}_{n}": a for p, one in parts.items() for n, a in one._state().items()}

    def _output_axes(self) -> dict[str, int]:
        return {f"inner_{name}": axis for name, axis in self._inner._output_axes().items()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._scaler._restore(select_prefix("scaler_", state))
        self._inner._played = self._played
        self._inner._restore(select_prefix("inner_", state))
