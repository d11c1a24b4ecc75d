"""Parts of a data set, which several processes can read, each by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from sfumato.data.batch import Batch
from sfumato.data.distinct import Distinct
from sfumato.data.image_codec import ImageCodec
from sfumato.data.image_sources import ImageRows
from sfumato.data.review import Review
from sfumato.data.sources import TableRows
from sfumato.data.spool import Spool
from sfumato.data.table_codec import TableCodec
from sfumato.data.unit_limit import UnitLimit, unit_names


class Part(Protocol):
    """A part of a data set that other processes can read."""

    def read(self, found: Review | None = None) -> Iterator[tuple[Batch, pa.Array | None]]:
        """Read rows, with the names of their units; add what does not fit to a review."""


@dataclass(frozen=True)
class ImagePart:
    """A part of an image set."""

    rows: ImageRows
    codec: ImageCodec

    def read(self, found: Review | None = None) -> Iterator[tuple[Batch, None]]:
        """Read images, and count labels that are not listed."""
        for pixels, labels in self.rows.batches():
            if found is not None:
                found.rows += len(pixels)
                if labels is not None:
                    texts, misfits = self.codec.misfits(labels)
                    found.add("class", Distinct(texts), misfits)
            yield self.codec.encode((pixels, labels)), None


@dataclass(frozen=True)
class TablePart:
    """A part of a table."""

    rows: TableRows
    codec: TableCodec

    def read(self, found: Review | None = None) -> Iterator[tuple[Batch, pa.Array | None]]:
        """Read rows, and count what the schema has no place for."""
        for rows in self.raw():
            if found is not None:
                found.rows += rows.num_rows
            yield self.codec.encode(rows, found), self.units(rows)

    def raw(self) -> Iterator[pa.RecordBatch]:
        """Read what the codec asks for, and the unit."""
        unit = self.codec.schema.unit_column
        return self.rows.batches([*self.codec.declared, *([unit] if unit else [])])

    def units(self, rows: pa.RecordBatch) -> pa.Array | None:
        """Give the name of each row's unit."""
        unit = self.codec.schema.unit_column
        return None if unit is None else unit_names(rows.column(unit))


class FlagPart(TablePart):
    """A part of a table, of which each value tells only whether it fits the schema: 0 or 1."""

    def read(self, found: Review | None = None) -> Iterator[tuple[Batch, pa.Array | None]]:
        """Read 1 for each value that does not fit, else 0."""
        for rows in self.raw():
            flags = np.zeros((rows.num_rows, len(self.codec.declared)), np.int32)
            for name, values, misfits in self.codec.misfits(rows):
                index = self.codec.declared.index(name)
                for misfit, where in misfits.items():
                    flags[values.spread(where), index] |= misfit.usual == 0
            yield Batch(flags, np.empty((len(flags), 0), np.float32)), self.units(rows)


@dataclass(frozen=True)
class SpooledPart:
    """A part whose rows are kept on disk, and limited already."""

    spool: Spool
    number: int
    limit: UnitLimit | None

    def __iter__(self) -> Iterator[Batch]:
        batches = (batch for batch, _ in self.spool.batches(self.number))
        if self.limit is None:
            yield from batches
            return
        ordinals, start = self.spool.ordinals(self.number), 0
        for batch in batches:
            yield self.limit.kept(batch, ordinals[start : start + len(batch)])
            start += len(batch)


@dataclass(frozen=True)
class EncodedPart:
    """The rows of a part, without their units."""

    part: Part

    def __iter__(self) -> Iterator[Batch]:
        return (batch for batch, _ in self.part.read())
