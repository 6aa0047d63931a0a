"""Experts of the user in SelfTuning: learners that no restart makes anew."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oklnumba.core import checks
from oklnumba.core.health import Part, name_members
from oklnumba.core.params import clone
from oklnumba.core.state import select_prefix
from oklnumba.learners.base.learner import Learner, check_learner
from oklnumba.learners.outside import Outside, adapt
from oklnumba.learners.self_tuning.forecasters import Member
from oklnumba.learners.self_tuning.labels import Rounds


def check_experts(name: str, value: Any) -> Sequence[Learner]:
    """Return experts as learners: copies, those of this package without data."""
    listed = isinstance(value, list | tuple)
    what = "a list of learners, such as [okl.Refit(model, growth='15%')]"
    checks.require(listed, name, value, what)
    learners = [adapt(one, f"{name}[{i}]") for i, one in enumerate(value)]
    for i, one in enumerate(learners):
        if not isinstance(one, Outside):
            check_learner(one, f"{name}[{i}]")
    return type(value)(clone(learners))  # a tuple stays one in files


def check_labels(experts: Sequence[Learner], y: np.ndarray) -> None:
    """Refuse labels that an expert refuses."""
    for i, one in enumerate(experts):
        try:
            one._as_labels(y, len(y))
        except ValueError as error:
            raise ValueError(f"expert {i}, {checks.repr_short(one)}: {error}") from None


class Expert:
    """An expert: one learner for all outputs, or one for each."""

    plays_in_threads = False

    def __init__(self, learner: Learner, number: int, d: int, outputs: int):
        self.name = f"expert {number}, {checks.repr_short(learner)}"
        self.members = [Member("expert", expert=self.name)]
        count = 1 if learner._traits.outputs_at_once else outputs
        self.learners = [learner, *(clone(learner) for _ in range(count - 1))]
        for one in self.learners:
            one._open(d, outputs // count)

    # ---- rounds ----

    def play(self, rounds: Rounds) -> np.ndarray:
        """Return the forecasts of n rounds, (n, 1, K), each before its label is learned, if any."""
        X, Y = rounds.X, rounds.Y
        F = np.empty((len(X), 1, rounds.known.last.shape[1]))
        for one, outputs in self._shares(F.shape[2]):
            if not rounds.learns:
                F[:, 0, outputs] = one._forecast_inside(X)
                continue
            trace = one._trace(len(X))
            try:
                one._play_inside(X, Y[:, outputs].copy(), trace)
            except (ValueError, FloatingPointError) as error:
                raise FloatingPointError(f"{self.name}: {error}") from None
            F[:, 0, outputs] = trace.predictions
        first = self.learners[0].rounds - len(X) + 1 if rounds.learns else 0
        self._refuse_not_finite(F, "in round" if rounds.learns else "for row", first)
        return F

    def _shares(self, outputs: int) -> Iterator[tuple[Learner, Any]]:
        """Return each learner and its outputs."""
        if len(self.learners) == outputs:
            return zip(self.learners, range(outputs), strict=True)
        return zip(self.learners, [slice(None)], strict=True)

    def _refuse_not_finite(self, F: np.ndarray, where: str, first: int) -> None:
        finite = np.isfinite(F).all(axis=(1, 2))
        if not finite.all():
            raise FloatingPointError(
                f"{self.name}: the forecast {where} {first + int(finite.argmin())} is not finite; "
                "scale its inputs and labels, or leave this expert out"
            )

    # ---- health and files ----

    def find_parts(self) -> list[Part]:
        """Return the parts of the learners' matrices."""
        return name_members([(self.name, one._diagnose()) for one in self.learners])

    def _export(self) -> dict[str, Any]:
        named = enumerate(self.learners)
        return {f"{k}_{key}": value for k, one in named for key, value in one._export().items()}

    def _restore(self, state: dict[str, Any]) -> None:
        last: dict[str, Any] = {}
        for k, one in enumerate(self.learners):  # an output that came since is like the last one
            last = select_prefix(f"{k}_", state) or last
            one._restore(last)

    def _output_axes(self) -> dict[str, int]:
        axes = self.learners[0]._output_axes() if self.learners[0]._traits.outputs_at_once else {}
        return {f"0_{key}": axis for key, axis in axes.items()}
