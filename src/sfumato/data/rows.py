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
from sfumato.data.identifiers import ordinal_cells
from sfumato.data.image_codec import ImageCodec
from sfumato.data.image_sources import image_rows
from sfumato.data.review import Review
from sfumato.data.sources import table_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError

ROW_BITS = 32
"""More than 2^32 rows are refused: their sums could pass 64 bits."""


class Mark(Protocol):
    """A digest that grows with what is read."""

    def update(self, content: bytes, /) -> None:
        """Take in more."""


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

    def review(self, mark: Mark | None = None) -> Review:
        """Read everything once: say what the owner should know, and mark what was read. Private."""
        found = Review()
        for batch in self:
            _add_to(mark, batch)
            found.rows += len(batch)
        found.kept = found.rows
        return found

    def misfit_flags(self) -> PrivateRows:
        """Give rows that tell, in place of values, whether they fit the schema: 0 or 1."""
        raise SfumatoError("misfits can be counted with noise in tables only")


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

    def review(self, mark: Mark | None = None) -> Review:
        """Read everything once, and count labels that are not listed."""
        found = Review()
        for pixels, labels in self._rows.batches():
            _add_to(mark, self.codec.encode((pixels, labels)))
            found.rows += len(pixels)
            if labels is not None:
                texts, misfits = self.codec.misfits(labels)
                found.add("class", texts, misfits)
        found.kept = found.rows
        return found


class EncodedTable(PrivateRows):
    """A private table as batches for statistics; opening it checks names, reading it reads rows.

    Where the schema names the unit of privacy, only the first `max_rows_per_unit` rows of each
    unit are kept, and rows that name none are left out: nobody could say whose they are. Which of
    a unit's rows are kept depends on no other unit, so one unit moves a sum by at most k rows.
    Where k is more than one, a column after all others tells which of its unit's rows a row is.
    """

    codec: TableCodec

    def __init__(self, data: Any, codec: TableCodec, max_rows_per_unit: int = 1) -> None:
        self.codec = codec
        self._unit = codec.schema.unit_column
        self._names = [*codec.names, *([self._unit] if self._unit else [])]
        self._rows = table_rows(data, self._names, codec.schema.csv)
        self._most = max_rows_per_unit

    def __iter__(self) -> Iterator[Batch]:
        seen: Counter[str] = Counter()
        for rows in self._rows.batches(self._names):
            yield self._encoded(rows, seen)

    def review(self, mark: Mark | None = None) -> Review:
        """Read everything once, and count what the schema has no place for."""
        found = Review()
        for rows in self._rows.batches(self._names):
            batch = self._encoded(rows, found.units)
            _add_to(mark, batch)
            found.kept += len(batch)
            found.rows += rows.num_rows
            for name, column in zip(self.codec.names, self.codec.columns, strict=True):
                array = rows.column(name)
                found.add(name, array, column.misfits(array))
        return found

    def misfit_flags(self) -> MisfitFlags:
        """Give rows that tell of each column, in place of its value, whether it fits."""
        return MisfitFlags(self)

    def flags(self) -> Iterator[Batch]:
        """Read 1 for each value that does not fit, else 0; rows of a unit are limited as ever."""
        seen: Counter[str] = Counter()
        for rows in self._rows.batches(self._names):
            flags = np.zeros((rows.num_rows, len(self.codec.names)), np.int32)
            columns = zip(self.codec.names, self.codec.columns, strict=True)
            for index, (name, column) in enumerate(columns):
                for misfit, where in column.misfits(rows.column(name)).items():
                    flags[where, index] |= misfit.usual == 0
            yield self._limited(rows, Batch(flags, np.empty((len(flags), 0), np.float32)), seen)

    def _encoded(self, rows: pa.RecordBatch, seen: Counter[str]) -> Batch:
        return self._limited(rows, self.codec.encode(rows), seen)

    def _limited(self, rows: pa.RecordBatch, batch: Batch, seen: Counter[str]) -> Batch:
        if not self._unit:
            return batch
        ordinals = _ordinals(rows.column(self._unit), seen)
        keep = (ordinals > 0) & (ordinals <= self._most)
        cells = ordinal_cells(self.codec.schema, self._most)
        if cells:
            column = np.minimum(ordinals - 1, cells - 1).astype(np.int32)
            batch = Batch(np.column_stack([batch.codes, column]), batch.numbers)
        return batch.where(keep)


class MisfitFlags(PrivateRows):
    """A table's rows, of which each value tells only whether it fits the schema: 0 or 1."""

    codec = None

    def __init__(self, table: EncodedTable) -> None:
        self._table = table

    def __iter__(self) -> Iterator[Batch]:
        return self._table.flags()


def _add_to(mark: Mark | None, batch: Batch) -> None:
    if mark is not None:
        mark.update(batch.codes.tobytes())
        mark.update(batch.numbers.tobytes())


def encoded_rows(
    data: Any, codec: TableCodec | ImageCodec, max_rows_per_unit: int = 1
) -> PrivateRows:
    """Open private data for statistics."""
    if isinstance(codec, ImageCodec):
        return EncodedImages(data, codec)
    return EncodedTable(data, codec, max_rows_per_unit)


def _ordinals(units: pa.Array, seen: Counter[str]) -> NDArray[np.int64]:
    """Tell which of its unit's rows each row is, from 1 on; 0 for rows that name no unit."""
    units = parsing.plain(units)
    exact = {pa.float16(): 2.0**11, pa.float32(): 2.0**24}.get(units.type, parsing.EXACT_FLOATS)
    if (
        pa.types.is_floating(units.type)
        and pc.any(pc.greater_equal(pc.abs(units.cast(pa.float64())), exact)).as_py()
    ):
        # A single null makes floating-point numbers of a frame's whole ones, and merges people.
        raise SfumatoError(
            "the identifier of the unit holds floating-point numbers too large to be told apart: "
            "give it as whole numbers or as text (in pandas: astype('Int64') before nulls come in)"
        )
    names = parsing.texts(units)
    missing = parsing.is_null(names).to_numpy(zero_copy_only=False)
    found = np.zeros(len(units), np.int64)
    for row, unit in enumerate(names.to_pylist()):
        if not missing[row]:
            seen[unit] += 1
            found[row] = seen[unit]
    return found
