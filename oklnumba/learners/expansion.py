"""The base of learners whose function is sum_j a_j k(atom_j, .)."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba import losses
from oklnumba.checks import require, require_count, require_nonnegative
from oklnumba.hot.expansion import expansion_forecasts
from oklnumba.hot.jit import NEED_ROOM
from oklnumba.kernels import Kernel, kernel_code
from oklnumba.learners.learner import Learner, Trace, grown


class Expansion(Learner):
    """A learner whose function is sum_j a_j k(atom_j, .): what all of them share.

    A subclass calls ``_start_expansion`` in ``_start`` and has ``_rounds``, which plays rows from
    one on and may ask for room; ``_ints[0]`` counts the atoms.
    """

    _FIRST = 64  # atoms that buffers have room for at first
    _factor = 1.0  # of all coefficients
    _fixed_loss: str | None = None  # where the algorithm has one loss only
    _REMEDY = "lower eta, or scale the inputs and labels"

    def _loss(self) -> losses.Loss:
        return losses.get(self._fixed_loss) if self._fixed_loss else super()._loss()

    @property
    def size(self) -> int:
        """Atoms that are stored; 0 before any data."""
        return int(self._ints[0]) if self._width is not None else 0

    @property
    def atoms(self) -> np.ndarray:
        """The dictionary, shape (m, d); the order is that of ``coefficients``."""
        if self._width is None:
            return np.zeros((0, 0))
        return self._atoms[:, : int(self._ints[0])].T.copy()

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients of the atoms, shape (m,)."""
        if self._width is None:
            return np.zeros(0)
        return self._factor * self._a[: int(self._ints[0])]

    @property
    def norm(self) -> float:
        """The RKHS norm of the function, from its definition: O(m^2) time."""
        if self.size == 0:
            return 0.0
        a, atoms = self.coefficients, self.atoms
        return float(np.sqrt(max(a @ self.kernel(atoms) @ a, 0.0)))

    def _start_expansion(
        self, d: int, kernel: Kernel, largest: float, ints: int = 1, reals: int = 1
    ) -> None:
        self._code, self._par = kernel_code(kernel)
        self._largest = largest  # atoms, inf where there is no budget
        self._ints = np.zeros(ints, dtype=np.int64)
        self._reals = np.zeros(reals)
        self._atoms, self._a = np.zeros((d, 0)), np.zeros(0)
        self._make_room(int(min(self._FIRST, largest)))

    def _make_room(self, cap: int) -> None:
        """Enlarge the buffers to ``cap`` atoms; subclasses with more buffers add theirs."""
        self._atoms = grown(self._atoms, len(self._atoms), cap)
        self._a = grown(self._a, cap)
        self._work = np.zeros((2, cap))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        first, status = self._rounds(X, y, 0, trace)
        while status == NEED_ROOM:
            self._make_room(int(min(2 * len(self._a), self._largest)))
            first, status = self._rounds(X, y, first, trace)
        self._check(status, first, self._REMEDY)
        self._played += len(X)

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        """Play rows from ``first`` on; return the rows played, and a status."""
        raise NotImplementedError

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        expansion_forecasts(
            X, self._code, self._par, self._atoms, self._a, int(self._ints[0]),
            self._factor, self._work[0],
            forecasts,
        )  # fmt: skip
        return forecasts

    def _state(self) -> dict[str, Any]:
        m = int(self._ints[0])
        return {
            "atoms": self._atoms[:, :m],
            "a": self._a[:m],
            "ints": self._ints,
            "reals": self._reals,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._ints[:], self._reals[:] = state["ints"], state["reals"]
        m = len(state["a"])
        if m > len(self._a):
            self._make_room(m)
        self._atoms[:, :m], self._a[:m] = state["atoms"], state["a"]


def check_lam(lam: Any, eta: float) -> None:
    """Raise ValueError unless lam is a regularisation for which a step shrinks, and no more."""
    require_nonnegative("lam", lam)
    require(eta * lam < 1.0, "lam", lam, f"less than 1 / eta = {1.0 / eta:g}")


def check_budget(budget: Any) -> float:
    """Return a budget, infinity for None; ValueError where it is less than 2."""
    if budget is None:
        return np.inf
    require_count("budget", budget, 2)
    return float(budget)
