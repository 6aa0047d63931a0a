"""Any learner behind an online standardiser."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.components.scaling import LARGEST, Standardizer
from oklnumba.core.health import Part
from oklnumba.core.state import NoRoom, Reserving, under
from oklnumba.hot.primitives.jit import NOT_FINITE
from oklnumba.learners.base.learner import Learner, check_learner, fresh
from oklnumba.learners.base.player import Trace
from oklnumba.learners.base.saving import refuse_other


class Standardized(Learner):
    """A learner on inputs that are standardised by their own past (Welford 1962).

    Each input is brought to mean 0 and scale 1 by the mean and the deviation of the inputs before
    it, as ``Standardizer.stream`` does, then the learner plays it; the first input is 0. So widths
    of kernels and learning rates are in units of the data's own scale, without a first pass.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are used; it is not played itself.
    clip : float > 0, optional
        Of ``Standardizer``: what is further from the mean than this many scales is cut to it; None:
        nothing is.

    Remarks
    -------
    The certificate passes through: its functions are of the standardised inputs z_t, each by the
    statistics of its round, f(z_1), ..., f(z_n). Where the early statistics are far from the late
    ones, a fixed f of the inputs themselves is not among these functions.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).normal([1e6, 0.0], [1e3, 1e-3], (1000, 2))
    >>> y = np.sign((X[:, 0] - 1e6) * X[:, 1])
    >>> learner = okl.Standardized(okl.PKAWV(okl.TaylorFeatures(4, sigma=2.0)))
    >>> bool(okl.run(learner, X, y).mistakes[200:].mean() < 0.15)
    True
    """

    def __init__(self, learner: Learner, *, clip: float | None = 5.0):
        self.learner = learner
        self.clip = clip

    @property
    def _certified(self) -> bool:  # type: ignore[override]  # as the learner within
        return check_learner(self.learner)._certified

    @property
    def _several(self) -> bool:  # type: ignore[override]
        return check_learner(self.learner)._several

    @property
    def _run_rows(self) -> int:  # type: ignore[override]
        return check_learner(self.learner)._run_rows

    @property
    def size(self) -> int:
        """Size of the learner within; 0 before any data."""
        return self._inner.size if self._width is not None else 0

    def _space(self) -> str | None:
        inside = self._inner if self._width is not None else check_learner(self.learner)
        space = inside._space()
        return space and f"{space}, of standardised inputs"

    def _check_params(self) -> None:
        super()._check_params()
        check_learner(self.learner)._check_params()
        Standardizer(self.clip)

    def _loss(self) -> losses.Loss:
        return check_learner(self.learner)._loss()

    def _check_labels(self, y: np.ndarray) -> None:
        check_learner(self.learner)._check_labels(y)

    def _advice(self, X: np.ndarray) -> str | None:
        Z = Standardizer(self.clip).stream(np.clip(X, -LARGEST, LARGEST))
        return check_learner(self.learner)._advice(Z)

    def _start(self, d: int) -> None:
        self._scaler = Standardizer(self.clip)
        self._scaler._begin(d)
        self._inner = fresh(self.learner)
        self._inner._open(d, self._outputs)

    def _ahead(self, n: int) -> int:
        with Reserving(self):
            return self._inner._ahead(n)

    @property
    def _prepares(self) -> bool:  # type: ignore[override]  # as the learner is
        return self._inner._prepares

    def _prepare(self, X: np.ndarray, y: np.ndarray) -> None:
        if not self._prepares or (np.abs(X) > LARGEST).any():  # those are refused when played
            return
        before = {name: np.array(a) for name, a in self._scaler._state().items()}
        Z = self._scaler._stream(X)
        self._scaler._restore(before)
        with Reserving(self):
            self._inner._prepare(Z, y)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        beyond = (np.abs(X) > LARGEST).any(axis=1)
        if beyond.any():
            self._check(NOT_FINITE, int(np.argmax(beyond)))
        before = {name: np.array(a) for name, a in self._scaler._state().items()}
        try:
            self._inner._play(self._scaler._stream(X), y, trace)
        except FloatingPointError as error:
            self._broken = str(error)
            raise
        except NoRoom as full:
            self._scaler._restore(before)
            done = self._inner.rounds - self._played
            if done:
                self._scaler._stream(X[:done])
            self._played += done
            if full.of is self._inner:
                full.of = self
            raise
        self._played += len(X)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return self._inner._forecast(self._scaler._transform(np.clip(X, -LARGEST, LARGEST)))

    def _matrices(self) -> list[Part]:
        return self._inner._diagnose()

    def _state(self) -> dict[str, Any]:
        meta, arrays = self._inner._contents()
        state = {f"scaler_{name}": value for name, value in self._scaler._state().items()}
        return state | {"inner": meta} | {f"inner_{name}": a for name, a in arrays.items()}

    def _output_axes(self) -> dict[str, int]:
        return {f"inner_state_{n}": axis for n, axis in self._inner._output_axes().items()}

    def _refuse_others(self, state: dict[str, Any], d: int, outputs: int = 1) -> None:
        inner = check_learner(self.learner)
        inner._refuse_others(under("inner_state_", state), d, outputs)

    def _restore(self, state: dict[str, Any]) -> None:
        self._scaler._restore(under("scaler_", state))
        self._inner._adopt(state["inner"] | {"outputs": self._outputs}, under("inner_", state))
        refuse_other(self._inner, self)
