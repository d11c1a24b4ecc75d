"""pandas frames as Arrow arrays, without letting one row decide how others are read.

A column of a plain type has that type in Arrow, too. A column of Python objects has none: Arrow
would guess one from all values together, so that a single odd value could change the others. Such
a column is taken only if all its values are of one kind, and is given that kind's type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import SfumatoError

BATCH_ROWS = 1 << 16

_TYPES: dict[str, pa.DataType] = {
    "text": pa.string(),
    "bytes": pa.binary(),
    "booleans": pa.bool_(),
    "whole numbers": pa.int64(),
    "floating-point numbers": pa.float64(),
    "decimals": pa.string(),
    "dates": pa.date32(),
}


def is_pandas(data: Any) -> bool:
    """Tell a pandas frame, without importing pandas."""
    kind = type(data)
    return kind.__module__.split(".")[0] == "pandas" and kind.__name__ == "DataFrame"


class PandasRows:
    """A pandas frame, converted piece by piece."""

    slow = False

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = [str(name) for name in frame.columns]

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns."""
        columns = [self._frame.iloc[:, self.names.index(name)] for name in names]
        kinds = [
            _kind(name, column.array) if _is_object(column) else None
            for name, column in zip(names, columns, strict=True)
        ]
        for start in range(0, len(self._frame), BATCH_ROWS):
            piece = slice(start, start + BATCH_ROWS)
            arrays = [
                _array(name, column.iloc[piece], kind)
                for name, column, kind in zip(names, columns, kinds, strict=True)
            ]
            yield pa.record_batch(arrays, names=list(names))

    def parts(self) -> list[PandasRows]:
        """Give itself: what lies in memory is not copied to other processes."""
        return [self]


def _is_object(column: Any) -> bool:
    """Tell a column of Python objects; categories are what their values are."""
    return bool(column.dtype == object or column.dtype.name == "category")


def _kind(name: str, values: Any) -> str | None:
    """Give the one kind of all values but nulls; refuse a mixture."""
    kinds = {_kind_of(value) for value in values} - {None}
    if len(kinds) > 1 or "something else" in kinds:
        held = " and ".join(sorted(str(kind) for kind in kinds))
        raise SfumatoError(
            f"column '{name}' is a pandas column of objects that holds {held}: convert it to one "
            "type, for example with astype(str), astype('Int64') or pandas.to_datetime"
        )
    return kinds.pop() if kinds else None


def _kind_of(value: Any) -> str | None:
    if _is_null(value):
        return None
    if isinstance(value, str):
        return "text"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, Integral):
        return "whole numbers"
    if isinstance(value, float | np.floating):
        return "floating-point numbers"
    if isinstance(value, Decimal):
        return "decimals"
    return "dates" if type(value) is date else "something else"


def _is_null(value: Any) -> bool:
    """Tell None, NaN and pandas' own marks of a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating) and bool(value != value)


def _digits(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _array(name: str, column: Any, kind: str | None) -> pa.Array:
    try:
        if _is_object(column):
            values = [None if _is_null(value) else value for value in column.array]
            if kind == "decimals":
                values = [None if value is None else _digits(value) for value in values]
            return pa.array(values, _TYPES[kind] if kind else pa.string())
        array = pa.Array.from_pandas(column)
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError, ValueError):
        raise SfumatoError(
            f"column '{name}' holds values that cannot be read: convert it to text or numbers"
        ) from None
