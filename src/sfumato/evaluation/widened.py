"""A schema that has a place for the real values as they are, for synthetic rows to be held against.

A model's own schema may have lost some of them: bounds that noise cut short, values that few rows
have. Judged through it, real rows would be bent to what the model can say. What is made here
follows from real rows, and is as private as they are.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.sources import table_rows
from sfumato.data.spelling import Spellings
from sfumato.errors import SfumatoError
from sfumato.schema import OTHER, Categorical, Column, Datetime, Numeric, Schema, canonical_text

_MOST_VALUES = 200  # that are added to a category: those that most rows have
_TAILS = 0.001  # of the numbers may lie beyond the bounds on either side: a stray code is no range


def widened(schema: Schema, real: Any) -> Schema:
    """Give the schema with bounds and values that hold nearly all real rows, without constraints.

    >>> import pyarrow as pa
    >>> schema = Schema(columns={"sick": Numeric(low=0, high=0, integer=True)})
    >>> widened(schema, pa.table({"sick": [0, 1, 1]})).columns["sick"].high
    1.0
    """
    plain = schema.unconstrained
    wanted = Numeric | Datetime | Categorical
    columns = {name: each for name, each in plain.modelled.items() if isinstance(each, wanted)}
    numbers: dict[str, list[NDArray[np.float64]]] = {name: [] for name in columns}
    unlisted: dict[str, Counter[str]] = {name: Counter() for name in columns}
    for batch in table_rows(real, list(columns), schema.csv).batches(list(columns)):
        for name, column in columns.items():
            array = batch.column(name)
            if isinstance(column, Categorical):
                unlisted[name].update(_unlisted(column, parsing.texts(array)))
            elif isinstance(column, Numeric):
                numbers[name].append(parsing.numbers(array, column.decimal, column.thousands))
            elif isinstance(column, Datetime):
                numbers[name].append(parsing.seconds(array, column.format, column.zone))
    wide = {name: _holding(each, numbers[name], unlisted[name]) for name, each in columns.items()}
    return plain.model_copy(update={"columns": plain.columns | wide})


def _unlisted(column: Categorical, texts: Any) -> dict[str, int]:
    """Count values that are not listed, but for missing ones."""
    told = ~parsing.is_null(texts).to_numpy(zero_copy_only=False)
    told &= Spellings(column.values).find(texts).is_null().to_numpy(zero_copy_only=False)
    found: Counter[str] = Counter()
    for each in texts.filter(told).value_counts().to_pylist():
        found[canonical_text(each["values"])] += each["counts"]
    return {value: count for value, count in found.items() if value not in ("", OTHER)}


def _holding(column: Column, parts: list[NDArray[np.float64]], unlisted: Counter[str]) -> Column:
    """Give a column with room for numbers, or for the values that most rows have."""
    if isinstance(column, Categorical):
        values = [value for value, _ in unlisted.most_common(_MOST_VALUES)]
        return _changed(column, values=(*column.values, *values))
    assert isinstance(column, Numeric | Datetime)
    found = np.concatenate([np.zeros(0), *parts])
    found = found[np.isfinite(found)]
    if not len(found):
        return column
    low: Any
    high: Any
    low, high = np.quantile(found, [_TAILS, 1 - _TAILS], method="inverted_cdf")
    if isinstance(column, Datetime):
        low, high = np.array([low, high]).astype("datetime64[s]").tolist()
    else:
        step = column.step or (1.0 if column.integer else None)
        low = math.floor(low / step) * step if step else float(low)
        high = math.ceil(high / step) * step if step else float(high)
    return _changed(column, low=min(low, column.low), high=max(high, column.high))


def _changed(column: Column, **settings: Any) -> Column:
    """Give the column with other settings, or as it is if it cannot have them."""
    try:
        changed: Column = type(column)(**dict(column) | settings)
        return changed
    except (ValueError, SfumatoError):
        return column
