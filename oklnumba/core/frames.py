"""Data frames and Arrow tables as arrays, column by column; a column that will not do is named.

pandas, polars and pyarrow are optional and never imported here: what comes from one of them can
only come where it has been imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from oklnumba.core.display import cut

LONGEST = 40  # characters of a value shown


def _is(values: Any, library: str, *classes: str) -> bool:
    """Say whether a value is of one of the classes of a library that may not be there."""
    module = sys.modules.get(library)
    found = [getattr(module, name, None) for name in classes]
    return isinstance(values, tuple(one for one in found if isinstance(one, type)))


def is_frame(values: Any) -> bool:
    """Say whether a value has named columns."""
    return (
        _is(values, "pandas", "DataFrame")
        or _is(values, "polars", "DataFrame", "LazyFrame")
        or _is(values, "pyarrow", "Table", "RecordBatch")
    )


def column_names(frame: Any) -> list[Any] | None:
    """Return the names of the columns of a frame, or of one row of it; None for anything else."""
    if _is(frame, "pandas", "Series"):
        return list(frame.index)
    if not is_frame(frame):
        return None
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def is_column(values: Any) -> bool:
    """Say whether a value is one column of a frame, or an Arrow array."""
    return _reader(values) is not None


def as_floats(values: Any, name: str) -> np.ndarray | None:
    """Return the numbers of a frame, (n, d), or of a column, (n,); None for what is neither.

    Missing values become NaN. ``name`` is what an error calls the values.

    Raises
    ------
    ValueError
        If a column holds anything but numbers.
    """
    reader = _reader(values)
    if reader is not None:
        return reader(values, name, name)
    if not is_frame(values):
        return None
    if _is(values, "polars", "LazyFrame"):
        raise ValueError(f"{name} is a lazy frame; pass {name}.collect()")
    if _is(values, "pandas", "DataFrame") and all(dtype == np.float64 for dtype in values.dtypes):
        return values.to_numpy(dtype=np.float64)
    rows, columns = values.shape
    out = np.empty((rows, columns))
    for k, (label, column) in enumerate(_columns(values)):
        reader = _reader(column)
        out[:, k] = reader(column, f"column {label!r} of {name}", f"{name}[{label!r}]")
    return out


def as_labels(values: Any) -> np.ndarray:
    """Return labels of any kind as an array; what pandas holds for a missing one becomes None."""
    if _is(values, "pandas", "Series") and not isinstance(values.dtype, np.dtype):
        return values.to_numpy(dtype=object, na_value=None)
    try:
        return np.asarray(values)
    except ValueError:  # ragged lists
        return np.asarray(None)


def as_classes(values: Any, name: str) -> Any:
    """Return what a column of classes holds, an array of integers, bools or texts, say.

    What is no column, nor a frame of one, is returned as it is.

    Raises
    ------
    ValueError
        If a label is missing.
    """
    if is_frame(values) and len(column_names(values) or ()) == 1:
        return as_classes(next(_columns(values))[1], name).reshape(-1, 1)
    of_pandas = _is(values, "pandas", "Series", "Index")
    of_pandas |= _is(values, "pandas.api.extensions", "ExtensionArray")
    if not of_pandas and not is_column(values):
        return values
    missing = np.asarray(values.isna() if of_pandas else values.is_null())
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"{name} has no label at row {row}; drop the rows without one first")
    # scikit-learn makes floats of integers and bools that might have been missing
    kind = getattr(values.dtype, "numpy_dtype", None) if of_pandas else None
    return np.asarray(values) if kind is None else values.to_numpy(dtype=kind)


def _columns(frame: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the columns of a frame with their names, which need not differ."""
    if _is(frame, "pandas", "DataFrame"):
        yield from frame.items()
    elif _is(frame, "polars", "DataFrame"):
        yield from zip(frame.columns, frame.get_columns(), strict=True)
    else:
        yield from zip(frame.column_names, frame.columns, strict=True)


def _reader(column: Any) -> Callable[[Any, str, str], np.ndarray] | None:
    """Return what makes an array of a column; None for what is no column."""
    if _is(column, "pandas", "Series"):
        return _pandas_floats
    if _is(column, "polars", "Series"):
        return _polars_floats
    if _is(column, "pyarrow", "Array", "ChunkedArray"):
        return _arrow_floats
    if hasattr(column, "to_numpy") and _is(column, "pandas", "Index"):
        return lambda index, where, code: _pandas_floats(index.to_series(), where, code)
    return None


def _pandas_floats(column: Any, where: str, code: str) -> np.ndarray:
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return column.to_numpy(dtype=np.float64)
    if hasattr(dtype, "categories"):
        raise _categories(where, code)
    kind = getattr(dtype, "kind", "O")
    if kind in "mM" or hasattr(dtype, "freq"):
        raise _dates(where, f"{code}.dt.hour")
    if kind == "c":
        raise _no_numbers(column, where, dtype)
    if kind == "O":
        _refuse_text(column, where)
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError):
        raise _no_numbers(column, where, dtype) from None


def _polars_floats(column: Any, where: str, code: str) -> np.ndarray:
    polars, dtype = sys.modules["polars"], column.dtype
    if dtype.is_numeric() or dtype in (polars.Boolean, polars.Null):
        return column.cast(polars.Float64).to_numpy()
    if dtype.is_temporal():
        raise _dates(where, f"{code}.dt.hour()")
    if dtype in (polars.Categorical, polars.Enum):
        raise _categories(where, code)
    _refuse_text(column, where)
    raise _no_numbers((), where, dtype)


def _arrow_floats(column: Any, where: str, code: str) -> np.ndarray:
    import pyarrow
    from pyarrow import types

    kind = column.type
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if types.is_null(kind) or any(is_kind(kind) for is_kind in numeric):
        floats = column.cast(pyarrow.float64(), safe=False)  # "safe" refuses integers over 2^53
        return floats.to_numpy(zero_copy_only=False)
    if types.is_temporal(kind):
        raise _dates(where, f"pyarrow.compute.hour({code})")
    if types.is_dictionary(kind):
        raise _categories(where, code)
    _refuse_text(column.to_pylist(), where)
    raise _no_numbers((), where, kind)


def _refuse_text(column: Iterable, where: str) -> None:
    for row, value in enumerate(column):
        if isinstance(value, str | bytes):
            place = f"row {row}"
            if _is(column, "pandas", "Series") and isinstance(column.index[row], str):
                place = repr(column.index[row])  # one row of a frame: its index names the columns
            raise ValueError(
                f"{where} holds text, {cut(repr(value), LONGEST)} at {place}: {_cure(where)}"
            )


def _cure(where: str) -> str:
    if where == "y":
        return (
            "make the two classes -1 and +1, or take OneVsRest(learner, classes=[...]), which "
            "takes texts"
        )
    return "drop it, or encode it as numbers first (one column a category, say)"


def _categories(where: str, code: str) -> ValueError:
    return ValueError(
        f"{where} is categorical, and the codes of categories are no numbers: {_cure(where)}; "
        f"where the categories are numbers pass {code} as floats"
    )


def _dates(where: str, example: str) -> ValueError:
    return ValueError(
        f"{where} holds dates or times: drop it, or take numbers of it, such as {example}"
    )


def _no_numbers(column: Iterable, where: str, dtype: Any) -> ValueError:
    """Return the error of a column with a value that makes no float."""
    for row, value in enumerate(column):
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            if value is not None and str(value) not in ("<NA>", "NaT"):
                what = f"{cut(repr(value), LONGEST)} at row {row}, which is no real number"
                return ValueError(f"{where} has {what}: {_cure(where)}")
    return ValueError(f"{where} holds {dtype}, no real numbers: {_cure(where)}")
