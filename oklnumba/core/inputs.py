"""X and y become arrays: what was wrong, where, and what to do, before anything has changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.core import blocks, frames
from oklnumba.core.checks import has_shape

BLOCK_ROWS = 16384  # rows looked at in one go, so that checking takes little memory


def _as_floats(values: Any, name: str) -> np.ndarray:
    """Return ``values`` as a float64 array (without a copy where it already is one)."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if blocks.is_sparse(values):
        flat = ".ravel()" if name == "y" else ""
        raise ValueError(
            f"{name} is sparse, where dense numbers are needed: pass {name}.toarray(){flat}"
        )
    floats = frames.as_floats(values, name)
    if floats is not None:
        return floats
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; fill or drop them first")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError
        if array.dtype.kind in "OSUMm":  # numbers in an object array are welcome, text is not
            if array.dtype.kind != "O" or any(isinstance(v, str | bytes) for v in array.flat):
                raise TypeError
        with np.errstate(over="ignore"):  # a long double beyond is infinity, refused later
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} must hold real numbers in a rectangular array; {_instead(values, name)}"
        ) from None


def _instead(values: Any, name: str) -> str:
    """Return what to do with what are no numbers."""
    if isinstance(values, dict):
        return f"it is a dict: pass list({name}.values()), or take okl.interop.to_river(learner)"
    if hasattr(values, "__next__"):
        return f"it is an iterator: pass np.array(list({name})), or pairs (X, y) to okl.run"
    classes = "two classes are -1 and +1, others are for okl.OneVsRest(learner, classes)"
    what = "encode text and drop ragged rows first"
    return f"{what}; {classes}" if name == "y" else what


def as_numbers(values: Any, name: str) -> np.ndarray:
    """Return numbers of any shape as a finite float64 array; ValueError for anything else."""
    array = _as_floats(values, name)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        at = ", ".join(map(str, bad[0].tolist()))
        where = f"{name}[{at}]" if at else name
        raise ValueError(f"{name} must be finite, but {where} is {array[tuple(bad[0])]}")
    return array


def _refuse_not_finite(array: np.ndarray, name: str, given: Any = None) -> None:
    """Raise where an array holds NaN or infinity, naming the first place.

    given : what the array was made of, a frame perhaps, whose column is named then.
    """
    for start in range(0, len(array), BLOCK_ROWS):
        part = array[start : start + BLOCK_ROWS]
        finite = np.isfinite(part)
        if finite.all():
            continue
        place = np.argwhere(~finite)[0]
        column = place[1] if array.ndim == 2 else None
        names = frames.column_names(given)
        label = None if names is None else names[column]
        raise _not_finite(part[tuple(place)], name, start + place[0], column, label)


def _not_finite(value: float, name: str, row: int, column: int | None, label: Any) -> ValueError:
    where = f"row {row}" + ("" if column is None else f", column {column}")
    where += "" if label is None else f" ({label!r})"
    return ValueError(f"{name} has {value} at {where}; remove or impute such values first")


def as_inputs(X: Any, width: int | None = None, name: str = "X") -> np.ndarray:
    """Return X as a float64 array of shape (n, d), n and d at least 1, all finite.

    Raises
    ------
    ValueError
        If X is not numeric, not 2-D, empty, not finite, or not ``width`` columns wide.
    """
    array = _as_floats(X, name)
    if frames.is_column(X):
        raise ValueError(
            f"{name} must be 2-D, one row a round, but is one column; pass a table that has it, "
            f"such as {name}.to_frame()"
        )
    _check_shape(array.shape, width, name)
    _refuse_not_finite(array, name, X)
    return array


def as_rows(X: Any, width: int | None = None, name: str = "X") -> Any:
    """Return X as ``as_inputs`` does, or sparse X as CSR float64: rows that ``blocks`` cuts.

    Raises
    ------
    ValueError
        As ``as_inputs``, or if 64 rows of sparse X take more than 4 GiB.
    """
    if not blocks.is_sparse(X):
        return as_inputs(X, width, name)
    _check_shape(X.shape, width, name)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, but its dtype is {X.dtype}")
    blocks.refuse_too_large(min(blocks.LEAST_ROWS, X.shape[0]), X.shape[1], name)
    rows = X.tocsr().astype(np.float64, copy=False)
    finite = np.isfinite(rows.data)
    if not finite.all():
        first = int(np.argmin(finite))
        row = int(np.searchsorted(rows.indptr, first, side="right")) - 1
        raise _not_finite(rows.data[first], name, row, rows.indices[first], None)
    return rows


def _check_shape(shape: tuple[int, ...], width: int | None, name: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{name} must be 2-D, one row a round, but has shape {shape}; "
            f"use {name}.reshape(1, -1) for one point, {name}.reshape(-1, 1) for one feature"
        )
    if 0 in shape:
        raise ValueError(f"{name} is empty: its shape is {shape}; it needs a row and a column")
    check_width(shape[1], width, name)


def check_width(found: int, width: int | None, name: str = "X") -> None:
    """Raise where the number of columns is not that of the data seen before."""
    if width is not None and found != width:
        raise ValueError(
            f"{name} has {found} columns, but the data so far had {width}; "
            f"pass {width} columns, or start afresh with {found}"
        )


def as_point(x: Any, width: int | None = None, name: str = "x") -> np.ndarray:
    """Return one input x as a C-contiguous float64 array of shape (1, d); see as_inputs."""
    if blocks.is_sparse(x) and x.shape[: x.ndim - 1] in ((), (1,)):  # one sparse row
        x = x.toarray().ravel()
    array = _as_floats(x, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one point, a 1-D array of numbers, but has shape {array.shape}"
            + ("; for many points use predict(X) and partial_fit(X, y)" if name == "x" else "")
        )
    _check_shape((1, len(array)), width, name)
    _refuse_not_finite(array[None, :], name, x)
    return np.array(array[None, :], order="C")


def as_values(values: Any, n: int, name: str, what: str = "number") -> np.ndarray:
    """Return numbers, one a row of X, as a finite float64 array of shape (n,).

    Raises
    ------
    ValueError
        If they are not numeric, of another length or shape, or not finite.
    """
    array = _as_floats(values, name)
    if array.shape != (n,):
        names = frames.column_names(values) if frames.is_frame(values) else None
        column = f"{name}[{names[0]!r}]" if names else f"{name}.ravel()"
        hint = f"; use {column}" if array.size == n and array.ndim > 1 else ""
        raise ValueError(
            f"{name} must have shape ({n},), one {what} a row of X, but has {array.shape}{hint}"
        )
    _refuse_not_finite(array, name)
    return array


def as_labels(y: Any, n: int, classes: bool = False) -> np.ndarray:
    """Return labels as a finite float64 array of shape (n,); ``classes`` asks for -1 and +1.

    Raises
    ------
    ValueError
        If y is missing, not numeric, of another length or shape, not finite, or outside the domain.
    """
    if y is None:
        raise ValueError("labels are missing: pass y, one number for each row of X")
    array = as_values(y, n, "y", "label")
    if classes:
        outside = (array != 1.0) & (array != -1.0)
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(
                f"y has {array[row]:g} at row {row}, but this loss takes labels -1 and +1; "
                "map the two classes to them (0 and 1 by y = 2 * y - 1), or use loss='squared' for "
                "regression"
            )
    # Compiled loops take writable arrays: read-only ones would be compiled for anew.
    return np.require(array, requirements=["C", "W"])


def refuse_swapped(X: Any, y: Any) -> None:
    """Raise where X is a column and y a table of as many rows: they have changed places."""
    found, other = (one.shape if has_shape(one) else () for one in (X, y))
    if len(found) == 1 and len(other) == 2 and found[0] == other[0]:
        raise ValueError(
            f"X and y have changed places: X has shape {found} and y {other}; pass X, one row a "
            "round, then y, one label a row"
        )


def require_outputs(found: int, outputs: int) -> None:
    """Raise where a round has another number of labels than the rounds before."""
    if found != outputs:
        raise ValueError(
            f"y has {found} label{'s' if found > 1 else ''} a round, but this learner plays "
            f"{outputs} of them a round; play the OneVsRest or MultiOutput that it belongs to"
        )


def refuse_beyond(y: np.ndarray, bound: float, name: str, why: str) -> None:
    """Raise where a label is outside [-bound, bound]; ``name`` is the bound's hyper-parameter."""
    outside = np.abs(y) > bound
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"y has {float(y[row])!r} at row {row}, outside [-{name}, {name}] with {name} = "
            f"{bound!r}, {why}; raise {name} or scale the labels"
        )


NO_CURVATURE = "where the loss has the curvature that this learner uses"


def as_label(y: Any, classes: bool = False) -> np.ndarray:
    """Return one label as a float64 array of shape (1,); errors as in as_labels."""
    if y is None:
        return as_labels(y, 1)
    array = _as_floats(y, "y")
    if array.size != 1:
        raise ValueError(f"y must be one label, but has shape {array.shape}")
    return as_labels(array.reshape(1), 1, classes)
