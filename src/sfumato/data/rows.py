"""Encoded rows: a source seen through a codec, with the rows of each unit limited."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.image_sources import image_rows
from sfumato.data.sources import table_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError

ROW_BITS = 38
"""More than 2^38 rows are refused: their sums could pass 64 bits."""

# Where fewer values than this share are missing or listed, the schema is probably wrong.
_MATCHING = 0.1


class Summable(Protocol):
    """A statistic, as far as rows need to know it."""

    @property
    def dim(self) -> int:
        """The length of the sum."""

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        """Add up a batch."""


class PrivateRows(ABC):
    """Encoded private rows, wherever they live: read again and again, or summed where they are.

    The curator asks for sums, reviews and, for trainings, the rows themselves. Sums are of
    integers, so rows that live in several places may be summed there and their sums added up.
    """

    codec: TableCodec | ImageCodec | None

    @abstractmethod
    def __iter__(self) -> Iterator[Batch]:
        """Read the rows in batches."""

    def sum(self, statistic: Summable) -> NDArray[np.int64]:
        """Give the exact sum of a statistic over all rows."""
        total = np.zeros(statistic.dim, np.int64)
        count = 0
        for batch in self:
            count += len(batch)
            if count > 1 << ROW_BITS:
                raise SfumatoError("the data have more rows than a 64-bit sum can hold")
            total += statistic.sum(batch)
        return total

    def review(self) -> tuple[int, list[str]]:
        """Read everything once: count the rows, and say what their owner should know. Private."""
        return sum(len(batch) for batch in self), []


class GivenRows(PrivateRows):
    """Rows that are encoded already, in memory."""

    def __init__(
        self, batches: Iterable[Batch], codec: TableCodec | ImageCodec | None = None
    ) -> None:
        self._batches = batches
        self.codec = codec

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)


class EncodedImages(PrivateRows):
    """A private image set as batches for statistics."""

    codec: ImageCodec

    def __init__(self, data: Any, codec: ImageCodec) -> None:
        self._rows = image_rows(data, codec.images)
        self.codec = codec

    def __iter__(self) -> Iterator[Batch]:
        return map(self.codec.encode, self._rows.batches())


class EncodedTable(PrivateRows):
    """A private table as batches for statistics; opening it checks names, reading it reads rows.

    Where the schema names the unit of privacy, only the first `max_rows_per_unit` rows of each
    unit are kept, and rows that name none are left out: nobody could say whose they are. Which of
    a unit's rows are kept depends on no other unit, so one unit moves a sum by at most k rows.
    """

    codec: TableCodec

    def __init__(self, data: Any, codec: TableCodec, max_rows_per_unit: int = 1) -> None:
        self.codec = codec
        self._unit = codec.schema.unit_column
        self._names = [*codec.names, *([self._unit] if self._unit else [])]
        self._rows = table_rows(data, self._names)
        self._most = max_rows_per_unit

    def __iter__(self) -> Iterator[Batch]:
        seen: Counter[str] = Counter()
        for rows in self._rows.batches(self._names):
            yield self._encoded(rows, seen)

    def review(self) -> tuple[int, list[str]]:
        """Read everything once: count the rows, and find categories that match almost nothing."""
        seen: Counter[str] = Counter()
        count, raw = 0, 0
        matched: Counter[str] = Counter()
        columns = dict(zip(self.codec.names, self.codec.columns, strict=True))
        for rows in self._rows.batches(self._names):
            count += len(self._encoded(rows, seen))
            raw += rows.num_rows
            for name, column in columns.items():
                matched[name] += column.matched(rows.column(name))
        return count, [
            f"PRIVATE: column '{name}': {matched[name]} of {raw} values are missing or match a "
            "listed one; check how the schema spells its values"
            for name in columns
            if matched[name] < _MATCHING * raw
        ]

    def _encoded(self, rows: pa.RecordBatch, seen: Counter[str]) -> Batch:
        batch = self.codec.encode(rows)
        if not self._unit:
            return batch
        return batch.where(_first_of_each(rows.column(self._unit), seen, self._most))


def encoded_rows(
    data: Any, codec: TableCodec | ImageCodec, max_rows_per_unit: int = 1
) -> PrivateRows:
    """Open private data for statistics."""
    if isinstance(codec, ImageCodec):
        return EncodedImages(data, codec)
    return EncodedTable(data, codec, max_rows_per_unit)


def _first_of_each(units: pa.Array, seen: Counter[str], most: int) -> NDArray[np.bool_]:
    units = parsing.plain(units)
    if (
        pa.types.is_floating(units.type)
        and pc.any(pc.greater_equal(pc.abs(units.cast(pa.float64())), parsing.EXACT_FLOATS)).as_py()
    ):
        # A single null makes floating-point numbers of a frame's whole ones, and merges people.
        raise SfumatoError(
            "the identifier of the unit holds floating-point numbers too large to be told apart: "
            "give it as whole numbers or as text (in pandas: astype('Int64') before nulls come in)"
        )
    names = parsing.texts(units)
    missing = parsing.is_null(names).to_numpy(zero_copy_only=False)
    keep = np.zeros(len(units), bool)
    for row, unit in enumerate(names.to_pylist()):
        if not missing[row]:
            seen[unit] += 1
            keep[row] = seen[unit] <= most
    return keep
