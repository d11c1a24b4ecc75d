"""Encoded rows: a source seen through a codec, with the rows of each unit limited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import casting
from sfumato.codec import Batch, Codec
from sfumato.images import ImageCodec, image_rows
from sfumato.sources import table_rows


class EncodedImages:
    """A private image set as batches for statistics."""

    def __init__(self, data: Any, codec: ImageCodec) -> None:
        self._rows = image_rows(data, codec.images)
        self._codec = codec

    def __iter__(self) -> Iterator[Batch]:
        return map(self._codec.encode, self._rows.batches())


class EncodedTable:
    """A private table as batches for statistics; opening it checks names, reading it reads rows.

    Where the schema names the unit of privacy, only the first `max_rows_per_unit` rows of each
    unit are kept, and rows that name none are left out: nobody could say whose they are. Which of
    a unit's rows are kept depends on no other unit, so one unit moves a sum by at most k rows.
    """

    def __init__(self, data: Any, codec: Codec, max_rows_per_unit: int = 1) -> None:
        self._codec = codec
        self._unit = codec.schema.unit_column
        self._names = [*codec.names, *([self._unit] if self._unit else [])]
        self._rows = table_rows(data, self._names)
        self._most = max_rows_per_unit

    def __iter__(self) -> Iterator[Batch]:
        seen: Counter[str] = Counter()
        for rows in self._rows.batches(self._names):
            batch = self._codec.encode(rows)
            if self._unit:
                batch = batch.where(_first_of_each(rows.column(self._unit), seen, self._most))
            yield batch


def encoded_rows(
    data: Any, codec: Codec | ImageCodec, max_rows_per_unit: int = 1
) -> EncodedTable | EncodedImages:
    """Open private data for statistics."""
    if isinstance(codec, ImageCodec):
        return EncodedImages(data, codec)
    return EncodedTable(data, codec, max_rows_per_unit)


def _first_of_each(units: pa.Array, seen: Counter[str], most: int) -> NDArray[np.bool_]:
    names = casting.texts(units)
    missing = casting.is_null(names).to_numpy(zero_copy_only=False)
    keep = np.zeros(len(units), bool)
    for row, unit in enumerate(names.to_pylist()):
        if not missing[row]:
            seen[unit] += 1
            keep[row] = seen[unit] <= most
    return keep
