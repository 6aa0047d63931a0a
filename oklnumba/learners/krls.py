"""Kernel recursive least squares on an ALD dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.checks import require_nonnegative
from oklnumba.hot.krls import krls_rounds
from oklnumba.kernels import Kernel
from oklnumba.learners.expansion import Expansion
from oklnumba.learners.learner import Trace
from oklnumba.state import grown


class KRLS(Expansion):
    """Kernel recursive least squares with ALD (Engel, Mannor and Meir 2004).

    x_t joins the dictionary where its squared distance to the span is more than ``threshold``; the
    coefficients are those of least squares over all past points, each projected on the span that
    there was in its round.

    O(m d + m^2) time a round for m atoms; the dictionary stays finite on bounded inputs.

    Parameters
    ----------
    kernel : Kernel
    threshold : float >= 0
        nu of the paper, a squared distance in the RKHS.

    Remarks
    -------
    The inverse of the kernel matrix and the matrix P of the paper are replaced by two triangular
    factors, in coordinates in which the kernel matrix is the identity: the same coefficients, and
    no digits lost. An empty dictionary accepts any point. No regulariser, as published.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.KRLS(okl.Gaussian(1.0), threshold=0.001)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]) * X[:, 1])
    >>> bool(run.mean_loss < 0.01), learner.size < 60
    (True, True)
    """

    _fixed_loss = "squared"
    _REMEDY = "raise threshold, or scale the inputs and labels"

    def __init__(self, kernel: Kernel, threshold: float = 0.01):
        self.kernel = kernel
        self.threshold = threshold

    def _start(self, d: int) -> None:
        require_nonnegative("threshold", self.threshold)
        self._R, self._Q, self._z = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)
        self._start_expansion(d, self.kernel, np.inf)

    def _make_room(self, cap: int) -> None:
        super()._make_room(cap)
        self._R, self._Q = grown(self._R, cap, cap), grown(self._Q, cap, cap)
        self._z = grown(self._z, cap)

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        return krls_rounds(
            X, y, first, self._kernel, float(self.threshold), self._ints, self._atoms,
            self._a, self._R, self._Q, self._z, self._work, trace.predictions, trace.sizes,
        )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        m = self._ints[0]
        return super()._state() | {"R": self._R[:m, :m], "Q": self._Q[:m, :m], "z": self._z[:m]}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        m = len(state["z"])
        self._R[:m, :m], self._Q[:m, :m], self._z[:m] = state["R"], state["Q"], state["z"]
