"""The base of learners whose function is sum_j a_j k(atom_j, .)."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.core.checks import require, require_count, require_nonnegative
from oklnumba.core.health import Part, weights_part
from oklnumba.core.state import aligned_zeros
from oklnumba.hot.primitives.expansion import expansion_forecasts
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.matrices import span_part


class Expansion(Learner):
    """A learner whose function is sum_j a_j k(atom_j, .): what all of them share.

    A subclass calls ``_start_expansion`` in ``_start``, and in ``_play`` its compiled loop, which
    asks for room for one more atom where the buffers are full.
    """

    _STATE = {"atoms": ("d", ATOMS), "a": (ATOMS,), "counts": ("counts",), "sums": ("sums",)}
    _OLD_NAMES = {"counts": "ints", "sums": "reals"}
    _REMEDY = "lower eta, or scale the inputs and labels"

    kernel: Kernel
    _factor = 1.0  # of all coefficients
    _fixed_loss: str | None = None  # where the algorithm has one loss only

    def _loss(self) -> losses.Loss:
        return losses.get(self._fixed_loss) if self._fixed_loss else super()._loss()

    def _check_params(self) -> None:
        super()._check_params()
        check_kernel(self.kernel)

    @property
    def atoms(self) -> np.ndarray:
        """The dictionary, shape (m, d); the order is that of ``coefficients``."""
        return self._used("atoms").T.copy() if self._width is not None else np.zeros((0, 0))

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients of the atoms, shape (m,)."""
        return self._factor * self._used("a") if self._width is not None else np.zeros(0)

    @property
    def norm(self) -> float:
        """The RKHS norm of the function, from its definition: O(m^2) time."""
        if self.size == 0:
            return 0.0
        a, atoms = self.coefficients, self.atoms
        return float(np.sqrt(max(a @ self.kernel(atoms) @ a, 0.0)))

    def _start_expansion(
        self, d: int, largest: float, counts: int = 1, sums: int = 1, **lengths: int
    ) -> None:
        """Make the state for at most ``largest`` atoms, infinity where there is no budget."""
        self._kernel = self.kernel._code()
        self._largest = largest
        self._make_state(d=d, counts=counts, sums=sums, **lengths)
        self._reserve({ATOMS: 1})

    def _room(self, axis: int, least: int) -> int:
        return int(min(super()._room(axis, least), self._largest))

    def _buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        # Three rows as wide as the atoms, or the inputs.
        work = aligned_zeros(3, max(rooms[ATOMS], len(self._atoms)))
        return super()._buffers(rooms) | {"work": work}

    def _matrices(self) -> list[Part]:
        return [weights_part(self.coefficients)]

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        loop, single = expansion_forecasts, self._single
        if single is None or X is not single.X:
            forecasts = np.empty(len(X))
        else:
            loop, forecasts = single.entered(loop), single.trace.predictions
        loop(
            X, self._kernel, (self._atoms, self._a), self._counts, self._factor, self._work,
            forecasts,
        )  # fmt: skip
        return forecasts


class OnSpan(Expansion):
    """An expansion with a factor ``_R`` of the kernel matrix of its first ``_factored`` atoms."""

    @property
    def _factored(self) -> int:
        return int(self._counts[ATOMS])

    def _matrices(self) -> list[Part]:
        m = self._factored
        if m == 0:
            return super()._matrices()
        R, atoms = self._R[:m, :m], self.atoms
        w = R @ self.coefficients  # of norm |f|, which is the scale of forecasts
        scale = float(np.linalg.norm(w)) * float(np.sqrt(self.kernel.diag(atoms).max()))
        return [span_part(self.kernel, atoms, self._R, [w], [scale])]


def check_lam(lam: Any, eta: float) -> None:
    """Raise ValueError unless lam is a regularisation for which a step shrinks, and no more."""
    require_nonnegative("lam", lam)
    require(eta * lam < 1.0, "lam", lam, f"less than 1 / eta = {1.0 / eta:g}")


def check_budget(budget: Any) -> None:
    """Raise ValueError for a budget less than 2; None is none."""
    if budget is not None:
        require_count("budget", budget, 2)
