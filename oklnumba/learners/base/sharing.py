"""What learners of one list compute once: features of the inputs, and factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oklnumba.core.params import same_spec, to_spec
from oklnumba.core.state import aligned_zeros
from oklnumba.hot.primitives.udu import TOGETHER

FEWEST_ROWS, MOST_ROWS = 120, 2016  # rounds played by each learner in turn: whole sweeps of udu.py
BLOCK = 2**17  # features of such rounds, which stay in the cache


def rows_of(width: int) -> int:
    """Return the rounds that each learner plays in turn, on features of this width."""
    return min(max(BLOCK // max(width, 1), FEWEST_ROWS), MOST_ROWS) // TOGETHER * TOGETHER


class SharedFeatures:
    """Blocks of features for learners with equal maps, mapped once, in the widths they take."""

    def __init__(self, write: Callable[[np.ndarray, np.ndarray], None]):
        self.write = write
        self.blocks: dict[int, np.ndarray] = {}

    def make_room(self, rows: int, width: int) -> None:
        """Have blocks of this width too."""
        self.blocks.setdefault(width, aligned_zeros(rows, width))

    def of(self, X: np.ndarray) -> dict[int, np.ndarray]:
        """Return the features of a block of inputs, by width."""
        found = {width: block[: len(X)] for width, block in self.blocks.items()}
        widest = found[max(found)]
        self.write(X, widest)
        for width, block in found.items():
            if block is not widest:
                block[:] = widest[:, :width]
        return found


def _find(spec: Any, seen: list[tuple[Any, Any]]) -> Any:
    """Return what stands beside an equal spec in a list, None if there is none."""
    return next((found for other, found in seen if same_spec(other, spec)), None)


def shared_features(learners: list[Any], rows: int) -> list[SharedFeatures | None]:
    """Return what each learner shares with those of equal features; None: it has no map."""
    shared: list[SharedFeatures | None] = []
    seen: list[tuple[Any, SharedFeatures]] = []
    for one in learners:
        if not one._feature_room:
            shared.append(None)
            continue
        arrays: dict[str, np.ndarray] = {}
        spec = to_spec(one._map_of_inputs(), arrays), arrays
        features = _find(spec, seen)
        if features is None:
            features = SharedFeatures(one._write)
            seen.append((spec, features))
        features.make_room(rows, one._feature_room)
        shared.append(features)
    return shared


def _groups(learners: list[Any], alike: list[bool], *free: str) -> list[list[int]]:
    """Return the learners, by number, in groups: those ``alike`` that differ in ``free`` only."""
    groups: list[list[int]] = []
    seen: list[tuple[Any, list[int]]] = []
    for i, one in enumerate(learners):
        if not alike[i]:
            groups.append([i])
            continue
        params = one.get_params(deep=False)
        for name in free:
            params.pop(name, None)
        arrays: dict[str, np.ndarray] = {}
        spec = to_spec([one._factor_of or type(one).__name__, *params.values()], arrays), arrays
        group = _find(spec, seen)
        if group is None:
            group = []
            groups.append(group)
            seen.append((spec, group))
        group.append(i)
    return groups


def dictionary_groups(learners: list[Any]) -> list[list[int]]:
    """Return groups of two or more on one dictionary: the others lean on the first.

    These differ in lam and the forecaster only, so that the same coins decide alike.
    """
    groups = _groups(learners, [one._leans for one in learners], "lam", "forecaster")
    return [group for group in groups if len(group) > 1]


def factor_groups(learners: list[Any]) -> list[list[int]]:
    """Return the learners, by number, in groups of one factor, whose first plays for all.

    These differ in the forecaster only. The first makes ridge forecasts, from which those of AWV
    follow to the bit; without one a group is taken apart.
    """
    found: list[list[int]] = []
    for group in _groups(learners, [one._follows for one in learners], "forecaster"):
        leads = [i for i in group if len(group) > 1 and learners[i]._ridge][:1]
        followers = [i for i in group if i not in leads]
        found += [leads + followers] if leads else [[i] for i in group]
    return found
