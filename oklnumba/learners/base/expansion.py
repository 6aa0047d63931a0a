"""The base of learners whose function is sum_j alpha_j k(x_j, .)."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

import numpy as np

from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.core.arrays import aligned_zeros
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.params import required
from oklnumba.hot.primitives.expansion import expansion_forecasts
from oklnumba.hot.primitives.jit import ATOMS, Out, enter
from oklnumba.learners.base.learner import Learner, Trace
from oklnumba.learners.base.states import OfExpansion, OfSpan, WithRow

StateT = TypeVar("StateT", bound=OfExpansion)
WorkT = TypeVar("WorkT", bound=WithRow)
SpanT = TypeVar("SpanT", bound=OfSpan)


class Expansion(Learner[StateT, WorkT]):
    """A learner whose function is sum_j alpha_j k(x_j, .) over the atoms x_j of a dictionary.

    A subclass has ``_loop`` of hot/, and the NamedTuples of its state and its workspace. In
    ``_start`` it calls ``_start_expansion``. The loop asks for room where the buffers are full.
    """

    _work_layout: ClassVar[Any]  # the NamedTuple of the workspace
    _loop: ClassVar[Callable[..., tuple[int, int]]]
    _forecasts: ClassVar[Callable[..., None]] = staticmethod(expansion_forecasts)
    _REMEDY = "lower eta, or scale the inputs and labels"

    kernel: Kernel = required(check_kernel)

    @property
    def atoms(self) -> np.ndarray:
        """The dictionary, shape (m, d); the order is that of ``coefficients``."""
        if self._width is None:
            return np.zeros((0, 0))
        return self._state.atoms[:, : int(self._counts[ATOMS])].T.copy()

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients of the atoms, shape (m,)."""
        if self._width is None:
            return np.zeros(0)
        return self._factor * self._state.alpha[: int(self._counts[ATOMS])]

    @property
    def _factor(self) -> float:
        """The factor of all coefficients."""
        return 1.0

    @property
    def norm(self) -> float:
        """The RKHS norm of the function, from its definition: O(m^2) time."""
        if self.size == 0:
            return 0.0
        alpha = self.coefficients
        return float(np.sqrt(max(alpha @ self._hyper.kernel(self.atoms) @ alpha, 0.0)))

    def _start_expansion(
        self, d: int, rules: Any, max_size: float = np.inf, counts: int = 1, **lengths: int
    ) -> None:
        """Make the state for at most ``max_size`` atoms; the loop takes ``rules``."""
        self._rules = rules
        self._kernel, self._max_size = self._hyper.kernel._code(), max_size
        self._make_state(d=d, counts=counts, **lengths)
        self._reserve({ATOMS: 1})

    def _choose_room(self, axis: int, least: int) -> int:
        return int(min(super()._choose_room(axis, least), self._max_size))

    def _make_work(self, state: StateT, rooms: dict[int, int]) -> WorkT:
        width = max(rooms[ATOMS], *self._lengths.values())
        return self._work_layout(*aligned_zeros(len(self._work_layout._fields), width))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        loop, rules, out = enter(self._loop), self._rules, Out(*trace[:2])
        beside = self._beside_labels(len(X))
        self._play_loop(len(X), lambda first: loop(
            X, y, *beside, first, self._kernel, rules, self._state, self._work, out,
        ))  # fmt: skip

    def _beside_labels(self, n: int) -> tuple:
        """Return what the loop takes beside the labels of n rounds, such as coins."""
        return ()

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        single, loop = self._single, self._forecasts
        if X is single.X:
            loop, out = enter(loop), single.trace.predictions
        else:
            out = np.empty(len(X))
        state, k = self._state, self._work.k
        loop(X, self._kernel, state.atoms, state.alpha, state.counts, self._factor, k, out)
        return out


class OnSpan(Expansion[SpanT, WorkT]):
    """An expansion with a factor R of the kernel matrix of its first ``_factored`` atoms."""

    @property
    def _factored(self) -> int:
        return self.size

    def _matrices(self) -> list[Part]:
        m, kernel, R = self._factored, self._hyper.kernel, self._state.R
        w = R[:m, :m] @ self.coefficients[:m]  # of norm |f|, which is the scale of forecasts
        scale = float(np.linalg.norm(w)) * largest_norm(kernel, self.atoms)
        return [measure_span(kernel, self.atoms[:m], R, [w], [scale])]


def largest_norm(kernel: Kernel, points: np.ndarray) -> float:
    """Return the largest |k(x, .)| of points, (m, d), and so of |R^-T k(x, points)|; 0 of none."""
    return float(np.sqrt(kernel.diag(points).max())) if len(points) else 0.0


def measure_span(
    kernel: Kernel, atoms: np.ndarray, R: np.ndarray, functions: Iterable[np.ndarray],
    scales: Iterable[float],
) -> Part:  # fmt: skip
    """Return the part of R' R = K of atoms, (m, d); functions of each output are in R^-T k."""
    matrix, reach = Factored(R, len(atoms)), largest_norm(kernel, atoms)
    solutions = [matrix.half_solve(w) for w in functions]
    return measure_part("the kernel matrix of the dictionary", matrix, solutions, scales, reach)
