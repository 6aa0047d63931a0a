"""The base of learners on the span of a dictionary that KORS samples."""

from collections.abc import Sequence

import numpy as np

from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.state import Coins
from oklnumba.hot.primitives.dictionary import RANK, JoiningRule
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.learners.base.expansion import measure_span
from oklnumba.learners.base.learner import Learner


class SampledSpan(Learner):
    """A learner with coordinates in the span of a dictionary, and a factor U' D U of A there.

    A subclass has ``Dictionary``, ``U``, ``inv_d`` and ``c`` in its state, the hyper-parameters mu,
    beta, eps, sampler and seed, and ``_ridge``: A = _ridge I in a new direction.
    """

    _INTEGERS = frozenset({"counts", "span"})
    _COINS = ("coins",)
    _SHARES_ROOM = {RANK: ATOMS}

    def _check_params(self) -> None:
        super()._check_params()
        if not isinstance(vars(self)["sampler"], str):
            why = "uniform sampling does not use it; leave it out, or take sampler='kors'"
            self._refuse_unused(why, "mu", "beta", "eps")

    def _start_sampling(self) -> JoiningRule:
        """Take the kernel and coins; return the rule by which points join."""
        p = self._hyper
        self._kernel, self._coins = p.kernel._code(), Coins(p.seed)
        uniform = 0.0 if isinstance(p.sampler, str) else p.sampler
        return JoiningRule(p.mu, p.beta, p.eps, uniform, p.sampler == "kors_listed")

    def _make_buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        buffers, old = super()._make_buffers(rooms), self._rooms[ATOMS]
        if rooms[ATOMS] > old:
            np.fill_diagonal(buffers["U"][old:, old:], 1.0)
            buffers["inv_d"][old:] = 1.0 / self._ridge
        return buffers

    def _measure_span(self, name: str, scales: Sequence[float]) -> list[Part]:
        """Return the parts of A, the kernel matrix and KORS; scales : of each output's labels."""
        rank, p = int(self._counts[RANK]), self._hyper
        matrix, atoms = Factored(self._U, rank, 1.0 / self._inv_d[:rank]), self._used("atoms").T
        ws = [matrix.half_solve(c) for c in np.atleast_2d(self._c)]
        parts = [
            measure_part(name, matrix, ws, scales),
            measure_span(p.kernel, atoms[self._used("span")], self._R, ws, scales),
        ]
        if isinstance(p.sampler, str):
            parts.append(measure_part("the matrix of KORS", Factored(self._kors, self.size)))
        return parts
