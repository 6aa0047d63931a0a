"""What a user's learner keeps outside of its state: a file or a copy would lose it."""

from typing import Any

import numpy as np

from oklnumba.core.state import State

DATA = np.ndarray | np.generic | bool | int | float | str | list | tuple | dict | set | None


def refuse_undeclared(learner: Any, twin: Any, of_base: set[str]) -> None:
    """Raise ValueError for an attribute that ``twin``, fresh from ``_start``, has otherwise.

    of_base : attributes that the base classes restore or make again.
    """
    nested = learner._nested().values()
    own = vars(learner).keys() - of_base - learner.get_params(deep=False).keys()
    for name in sorted(own):
        value = vars(learner)[name]
        if isinstance(value, State):
            lost = all(value is not one for one in nested)
        else:
            lost = not _is_same(value, vars(twin).get(name))
        if lost:
            raise ValueError(
                f"{type(learner).__name__} keeps {name}, which a file or a copy would lose: put "
                "arrays and counts into the NamedTuple of the state (_layout), inner learners into "
                "_nested(), and workspace into _work"
            )


def _is_same(value: Any, other: Any) -> bool:
    """Say whether data are equal; kernels, functions and the like are made again by ``_start``."""
    if isinstance(value, np.ndarray):
        return np.array_equal(value, other, equal_nan=value.dtype.kind == "f")
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_is_same, value, other))
    return not isinstance(value, DATA) or value == other
