"""The base of learners on the span of a dictionary that KORS, ALD or coins alone choose."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.state import Coins, WorkT
from oklnumba.hot.primitives.dictionary import RANK, JoiningRule
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.learners.base.expansion import measure_span
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.states import OnDictionary

SpanT = TypeVar("SpanT", bound=OnDictionary)


def _asks_kors(sampler: str | float) -> bool:
    return isinstance(sampler, str) and sampler != "ald"


class SampledSpan(Learner[SpanT, WorkT]):
    """A learner with coordinates in the span of a dictionary, and a factor U' D U of A there.

    A subclass has the hyper-parameters mu, beta, eps, sampler and seed.
    """

    @property
    def _uses_seed(self) -> bool:
        return vars(self)["sampler"] != "ald"

    def _check_params(self) -> None:
        super()._check_params()
        sampler, rest = vars(self)["sampler"], ("beta", "eps")
        if not _asks_kors(sampler):
            unused = rest if sampler == "ald" else ("mu", *rest)
            why = f"sampler={sampler!r} does not use it; leave it out, or take sampler='kors'"
            self._refuse_unused(why, *unused)

    def _start_sampling(self, pivot: float) -> JoiningRule:
        """Take the kernel and coins; return the rule by which points join.

        pivot : of A in a direction without rounds.
        """
        p, self._new_pivot = self._hyper, pivot
        self._kernel, self._coins = p.kernel._code(), Coins(p.seed)
        uniform = 0.0 if _asks_kors(p.sampler) else 1.0 if p.sampler == "ald" else p.sampler
        return JoiningRule(p.mu, p.beta, p.eps, uniform, p.sampler == "kors_listed")

    def _reserve(self, needed: dict[int, int]) -> None:
        # The rank has room where atoms have: loops look at that of atoms only.
        same_room = {RANK: needed[ATOMS]} if ATOMS in needed else {}
        super()._reserve(needed | same_room)

    def _grow(self, rooms: dict[int, int]) -> SpanT:
        state, old = super()._grow(rooms), self._rooms[ATOMS]
        if rooms[ATOMS] > old:
            np.fill_diagonal(state.factor.U[old:, old:], 1.0)
            state.factor.inv_d[old:] = 1.0 / self._new_pivot
        return state

    def _measure_span(self, name: str, scales: Iterable[float]) -> list[Part]:
        """Return the parts of A, the kernel matrix and KORS; scales : of each output's labels."""
        rank, p = int(self._counts[RANK]), self._hyper
        factor, dictionary = self._state.factor, self._state.dictionary
        matrix = Factored(factor.U, rank, 1.0 / factor.inv_d[:rank])
        atoms = dictionary.atoms[:, : self.size].T
        ws = [matrix.half_solve(c) for c in np.atleast_2d(factor.c)]
        parts = [
            measure_part(name, matrix, ws, scales),
            measure_span(p.kernel, atoms[dictionary.span[:rank]], dictionary.R, ws, scales),
        ]
        if _asks_kors(p.sampler):
            parts.append(measure_part("the matrix of KORS", Factored(dictionary.kors, self.size)))
        return parts
