"""What files, pickles and copies hold of a learner: JSON data and arrays."""

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from oklnumba.core.checks import repr_type
from oklnumba.core.files import refuse_damage
from oklnumba.core.params import clone, from_spec, to_spec
from oklnumba.core.schema import Schema
from oklnumba.core.state import Stateful, select_prefix
from oklnumba.learners.base.engine import Engine

LearnerT = TypeVar("LearnerT", bound=Engine)
DATA = np.ndarray | np.generic | bool | int | float | str | list | tuple | dict | set | None


def copy_without_data(learner: LearnerT) -> LearnerT:
    """Return a learner of the hyper-parameters in force, without data."""
    return type(learner)(**learner._params_in_force())


def get_contents(learner: Engine) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return everything: ``get_data``, and the hyper-parameters."""
    arrays: dict[str, np.ndarray] = {}
    fresh = learner if learner._width is None else copy_without_data(learner)
    spec = to_spec(fresh, arrays)
    meta, state = get_data(learner)
    return meta | {"spec": spec}, arrays | state


def get_data(learner: Engine) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return everything but the hyper-parameters."""
    learner._refuse_fault()
    meta: dict[str, Any] = {
        "width": learner._width,
        "rounds": learner._played,
        "late": learner._learned_late,
        "outputs": learner._outputs,
        "schema": learner._schema and learner._schema.to_json(),
    }
    arrays: dict[str, np.ndarray] = {}
    if learner._width is not None:
        classes = [one for one in type(learner).__mro__ if issubclass(one, Engine)]
        ours = next(one for one in classes if one.__module__.startswith("oklnumba."))
        if ours._start is Engine._start:  # a user's own learner
            twin = copy_without_data(learner)
            twin._open(learner._width, learner._outputs)
            refuse_undeclared(learner, twin, {*dir(ours), *Stateful.__annotations__})
        meta["state"] = {}
        for name, value in learner._export().items():
            if isinstance(value, np.ndarray):
                arrays[f"state_{name}"] = value
            else:
                meta["state"][name] = value
    return meta, arrays


def compact_arrays(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a state, factors U and sums of trees in single precision."""
    arrays = dict(arrays)
    for name, a in arrays.items():
        if name.endswith(("_U", "_sums")) and np.abs(a).max(initial=0.0) < np.finfo(np.float32).max:
            arrays[name] = a.astype(np.float32)
    return arrays


def restore_contents(learner: LearnerT, meta: dict[str, Any], arrays: Any) -> LearnerT:
    """Restore what ``get_data`` returned, with the same hyper-parameters; return the learner."""
    learner._clear()
    if meta["width"] is None:
        return learner
    try:
        learner._open(meta["width"], meta["outputs"])
        learner._played, learner._learned_late = meta["rounds"], meta.get("late", False)
        learner._restore(select_prefix("state_", arrays) | meta["state"])
        learner._schema = meta.get("schema") and Schema.from_json(meta["schema"])
    except BaseException:
        learner._clear()
        raise
    return learner


def restore_learner(
    path: str | os.PathLike, meta: dict[str, Any], arrays: Any, classes: Sequence[type]
) -> Any:
    """Return the learner that ``save`` or a checkpoint wrote, from the contents of the file."""
    with refuse_damage(path):
        learner = from_spec(meta["spec"], arrays, classes)
        if not isinstance(learner, Engine):
            raise ValueError(f"it holds {repr_type(learner)}, expected a learner")
        return restore_contents(learner, meta, arrays)


def pack(learner: Engine) -> dict[str, Any]:
    """Return hyper-parameters and state for a pickle. Closures and buffers are made again."""
    meta, arrays = get_data(learner)
    arrays = {name: np.array(a) for name, a in arrays.items()}  # others may learn meanwhile
    hyper = {} if learner._width is None else learner._params_in_force()
    in_force = {name: clone(value) for name, value in hyper.items()}  # its learners play
    params = learner.get_params(deep=False)
    return {"params": params, "in_force": in_force, "meta": meta, "arrays": arrays}


def copy_with_columns(learner: LearnerT, d: int) -> LearnerT:
    """Return a copy for inputs of d columns, as if the new columns had been 0 so far."""
    meta, arrays = get_data(learner)
    return restore_contents(copy_without_data(learner), meta | {"width": d}, arrays)


def copy_with_output(learner: LearnerT) -> LearnerT:
    """Return a copy with one more output, a copy of the last one."""
    meta, arrays = get_data(learner)
    meta["outputs"] += 1
    for name, axis in learner._output_axes().items():
        array = arrays[f"state_{name}"]
        last = array.take([-1], axis=axis)
        arrays[f"state_{name}"] = np.concatenate([array, last], axis=axis)
    return restore_contents(copy_without_data(learner), meta, arrays)


# ---- what a user's learner keeps outside of its state: a file or a copy would lose it ----


def refuse_undeclared(learner: Any, twin: Any, of_base: set[str]) -> None:
    """Raise ValueError for an attribute that ``twin``, fresh from ``_start``, has otherwise.

    of_base : attributes that the base classes restore or make again.
    """
    nested = learner._nested().values()
    own = vars(learner).keys() - of_base - learner.get_params(deep=False).keys()
    for name in sorted(own):
        value = vars(learner)[name]
        if isinstance(value, Stateful):
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
