"""Encoded rows: a source seen through a codec, with the rows of each unit limited."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.batch import Batch
from sfumato.data.column_code import MISSING
from sfumato.data.databases import DatabaseRows
from sfumato.data.file_state import FileState
from sfumato.data.gathering import MOST_IN_MEMORY, Gathering
from sfumato.data.image_codec import ImageCodec
from sfumato.data.image_sources import image_rows
from sfumato.data.open_codes import AnyCategory
from sfumato.data.parts import EncodedPart, FlagPart, ImagePart, Part, SpooledPart, TablePart
from sfumato.data.review import Review
from sfumato.data.sources import TableRows, is_spark, let_order_last, table_rows
from sfumato.data.spelling import whole_numbers_plain
from sfumato.data.spool import Spool
from sfumato.data.table_codec import TableCodec
from sfumato.data.unit_limit import UnitLimit, UnitRows
from sfumato.data.workers import divided
from sfumato.errors import SfumatoError
from sfumato.schema import OTHER, canonical_text

ROW_BITS = 32
"""More than 2^32 rows are refused: their sums could pass 64 bits."""


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
    workers: int | None = 1

    @abstractmethod
    def __iter__(self) -> Iterator[Batch]:
        """Read the rows in batches."""

    def parts(self) -> Sequence[Iterable[Batch]]:
        """Give the rows in parts that other processes can read."""
        return [self]

    def sum(self, statistic: Summable) -> NDArray[np.int64]:
        """Give the exact sum of a statistic over all rows."""
        found = divided(partial(summed, statistic=statistic), self.parts(), self.workers)
        refuse_too_many(sum(count for count, _ in found))
        return sum((total for _, total in found), np.zeros(statistic.dim, np.int64))

    def review(self) -> Review:
        """Read everything once: say what the owner should know. Private."""
        found = Review()
        for batch in self:
            found.rows += len(batch)
        found.kept = found.rows
        return found

    def gathered(
        self, needed: Callable[[Batch], Sequence[NDArray[Any]]]
    ) -> tuple[NDArray[Any], ...]:
        """Give what is needed of every row, as arrays in the order of the rows."""
        found = self._gathering()
        for batch in self:
            found.add(needed(batch))
        return found.whole()

    def _gathering(self) -> Gathering:
        return Gathering()

    def counted_values(self, name: str) -> Counter[str]:
        """Count the rows of each value of a column, but for missing ones. Private."""
        raise SfumatoError(
            f"the values of column '{name}' can be found in tables only that are read here: list "
            "them in the schema"
        )

    def misfit_flags(self) -> PrivateRows:
        """Give rows that tell, in place of values, whether they fit the schema: 0 or 1."""
        raise SfumatoError("misfits can be counted with noise in tables only")

    def recoded(self, codec: TableCodec) -> PrivateRows:
        """Give the same rows in another code, once what is open of a schema is found."""
        raise TypeError("these rows cannot be read again")

    def keep(self) -> None:
        """Encode all rows now, where what is asked later is answered from what is kept."""

    def check(self) -> None:
        """Refuse to go on where rows that are still to be read have changed."""

    def refuse_training(self) -> None:
        """Refuse a training, where rows cannot be brought together."""

    def clear(self) -> None:
        """Remove what was kept of the rows on disk, if anything was."""

    def close(self) -> None:
        """Keep nothing, and give up what they are read from: nothing more will be asked."""
        self.clear()


class GivenRows(PrivateRows):
    """Rows that are encoded already, in memory."""

    def __init__(
        self, batches: Iterable[Batch], codec: TableCodec | ImageCodec | None = None
    ) -> None:
        self._batches = batches
        self.codec = codec

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)


class EncodedRows(PrivateRows):
    """Rows of a source as batches for statistics; opening them checks names, reading reads rows.

    Encoding a row costs far more than reading its cells, so it is done once: when rows are
    reviewed, they are kept in memory if they are few, and otherwise on disk, where there are a
    spool and several parts, or a source that is slow to read. All that is asked later is answered
    from there. Files that are read again must be as they were.
    """

    slow = False

    def __init__(
        self,
        codec: TableCodec | ImageCodec,
        *,
        limit: UnitLimit | None = None,
        workers: int | None = 1,
        spool: Spool | None = None,
        state: FileState | None = None,
    ) -> None:
        self.codec = codec
        self.workers = workers
        self._limit = limit
        self._spool = spool
        self._state = state
        self._kept: Review | None = None  # of the rows in the spool
        self._few: list[Batch] | None = None  # all rows, where they are few
        self._places: list[NDArray[np.int32]] | None = None  # ordinals, where neither has them
        self._tried_to_keep = False

    @abstractmethod
    def divide(self) -> Sequence[Part]:
        """Divide the source into parts, in the order of its rows."""

    @cached_property
    def _source(self) -> Sequence[Part]:
        return self.divide()

    def sum(self, statistic: Summable) -> NDArray[np.int64]:
        """Give the exact sum of a statistic over all rows."""
        with self._one_snapshot(self._reads):
            return super().sum(statistic)

    def gathered(
        self, needed: Callable[[Batch], Sequence[NDArray[Any]]]
    ) -> tuple[NDArray[Any], ...]:
        """Give what is needed of every row, as arrays in the order of the rows."""
        with self._one_snapshot(self._reads):
            return super().gathered(needed)

    @property
    def _reads(self) -> bool:
        """Whether the next pass reads the source, and not what was kept of it."""
        return self._few is None and self._kept is None

    @contextmanager
    def _one_snapshot(self, reads: bool = True) -> Iterator[None]:
        """See that files which are read in this pass are as they were when they were opened."""
        state = self._state if reads else None
        if state is not None:
            state.check()
        yield
        if state is not None:
            state.check()

    def check(self) -> None:
        """Refuse to go on where a file that is still to be read has changed."""
        if self._state is not None and self._reads:
            self._state.check()

    def __iter__(self) -> Iterator[Batch]:
        if self._few is not None:
            yield from self._few
        elif self._limit is None or self._kept:
            for part in self.parts():
                yield from part
        else:
            for number, whole in enumerate(self._source):
                yield from self._limited(number, (batch for batch, _ in whole.read()))

    def _limited(self, part: int, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Keep those rows of a part that are used of their units."""
        assert self._limit is not None
        ordinals, start = self._ordinals(part), 0
        for batch in batches:
            yield self._limit.kept(batch, ordinals[start : start + len(batch)])
            start += len(batch)

    def _ordinals(self, part: int) -> NDArray[np.int32]:
        """Tell which of its unit's rows each row of a part is; read all rows once to find out."""
        if self._kept:
            assert self._spool is not None
            return self._spool.ordinals(part)
        if self._places is None:
            self._places = self._put_in_order([whole.read() for whole in self._source], Review())
        return self._places[part]

    def parts(self) -> Sequence[Iterable[Batch]]:
        """Give what the spool keeps, or parts of the source; with units, they hang together."""
        if self._kept:
            assert self._spool is not None
            numbers = range(len(self._source))
            return [SpooledPart(self._spool, number, self._limit) for number in numbers]
        if self._few is None and self._limit is None:
            return [EncodedPart(part) for part in self._source]
        return [self]

    def review(self) -> Review:
        """Read everything once: count what does not fit, and keep what was read."""
        if self._kept is not None:
            return self._kept
        with self._one_snapshot():
            spool = self._spool if self.slow or len(self._source) > 1 else None
            if spool is None and len(self._source) == 1:
                return self._read_alone(self._source[0])
            if spool is None and self._limit is not None:
                found = Review()
                parts = [part.read(found) for part in self._source]
                self._places = self._put_in_order(parts, found)
                return found
            found = self._read(spool)
        if spool is not None:
            if self._limit is not None:
                parts = [spool.batches(number) for number in range(len(self._source))]
                for number, ordinals in enumerate(self._put_in_order(parts, found)):
                    spool.keep_ordinals(number, ordinals)
            self._kept = found
        return found

    def keep(self) -> None:
        """Encode all rows now, unless they are kept already."""
        if self._reads and not self._tried_to_keep:
            self._tried_to_keep = True
            self.review()

    def _read_alone(self, part: Part) -> Review:
        """Read the only part, and keep its rows in memory while they are few."""
        found, few = Review(), _Few()
        rows = ((few.add(batch), names) for batch, names in part.read(found))
        if self._limit is None:
            for _ in rows:
                pass
            found.kept = found.rows
            self._few = few.batches
        else:
            self._places = self._put_in_order([rows], found)
            self._few = None if few.batches is None else list(self._limited(0, few.batches))
        return found

    def _read(self, spool: Spool | None) -> Review:
        """Read all parts, in any order, into the spool if there is one."""
        if spool is not None:
            spool.clear()
            spool.open()
        found = Review()
        work = partial(_reviewed, spool=spool)
        for review in divided(work, list(enumerate(self._source)), self.workers):
            found.merge(review)
        found.kept = found.rows
        return found

    def _put_in_order(
        self, parts: Sequence[Iterator[tuple[Batch, pa.Array | None]]], found: Review
    ) -> list[NDArray[np.int32]]:
        """Tell, part by part, which of its unit's rows each row is; count them for a review."""
        assert self._limit is not None
        units, sizes = UnitRows(), []
        for part in parts:
            sizes.append(0)
            for batch, names in part:
                units.add(batch, names)
                sizes[-1] += len(batch)
        ordinals = units.ordinals()
        found.units, found.kept = units.counts(), int(self._limit.within(ordinals).sum())
        return np.split(ordinals, np.cumsum(sizes)[:-1])

    def _gathering(self) -> Gathering:
        return Gathering(self._spool)

    def clear(self) -> None:
        """Forget all rows, and remove the spool, also that of a run that was interrupted."""
        self._kept = self._few = self._places = None
        if self._spool is not None:
            self._spool.clear()


class _Few:
    """Batches, as long as they are few."""

    def __init__(self) -> None:
        self.batches: list[Batch] | None = []
        self._bytes = 0

    def add(self, batch: Batch) -> Batch:
        self._bytes += batch.codes.nbytes + batch.numbers.nbytes
        if self._bytes > MOST_IN_MEMORY:
            self.batches = None
        elif self.batches is not None:
            self.batches.append(batch)
        return batch


class EncodedImages(EncodedRows):
    """A private image set as batches for statistics."""

    codec: ImageCodec

    def __init__(
        self, data: Any, codec: ImageCodec, workers: int | None = 1, spool: Path | None = None
    ) -> None:
        state = FileState(data)
        self._rows = image_rows(data, codec.images)
        kept = Spool(spool, codec.classes) if spool else None
        super().__init__(codec, workers=workers, spool=kept, state=state)

    def divide(self) -> list[ImagePart]:
        """Divide the images."""
        return [ImagePart(rows, self.codec) for rows in self._rows.parts()]


class EncodedTable(EncodedRows):
    """A private table as batches for statistics.

    Where the schema names the unit of privacy, its rows are limited (`UnitLimit`).
    """

    codec: TableCodec

    def __init__(
        self,
        data: Any,
        codec: TableCodec,
        max_rows_per_unit: int = 1,
        workers: int | None = 1,
        spool: Path | None = None,
    ) -> None:
        unit = codec.schema.unit_column
        names = [*codec.declared, *([unit] if unit else [])]
        state = FileState(data)
        self._rows = table_rows(data, names, codec.schema.csv)
        self.slow = self._rows.slow
        if unit:
            let_order_last(self._rows, names)
        super().__init__(
            codec,
            limit=UnitLimit(codec.schema, max_rows_per_unit) if unit else None,
            workers=workers,
            spool=Spool(spool, codec.most_cells) if spool else None,
            state=state,
        )
        self._counted: dict[str, Counter[str]] = {}

    def recoded(self, codec: TableCodec) -> EncodedTable:
        """Give the same rows in another code: read anew, from the source that is open."""
        other = copy.copy(self)
        other.codec, other._counted = codec, {}
        other._spool = self._spool and Spool(self._spool.place, codec.most_cells)
        other._kept = other._few = other._places = None
        other._tried_to_keep = False
        other.__dict__.pop("_source", None)
        return other

    def divide(self) -> list[TablePart]:
        """Divide the table."""
        return [TablePart(rows, self.codec) for rows in self._rows.parts()]

    def clear(self) -> None:
        super().clear()
        self._counted = {}

    def close(self) -> None:
        super().close()
        if isinstance(self._rows, DatabaseRows):
            self._rows.close()

    def counted_values(self, name: str) -> Counter[str]:
        """Count the rows of each value of a column, but for missing ones. Private.

        All columns whose values are open are counted in one pass. Values are told apart as a schema
        that lists them would; words that stand for what is not listed, or missing, are no values.
        """
        if name not in self._counted:
            open_columns = zip(self.codec.names, self.codec.columns, strict=True)
            names = {name, *(each for each, code in open_columns if isinstance(code, AnyCategory))}
            with self._one_snapshot():
                self._counted = self._counts(sorted(names))
        return self._counted[name]

    def _counts(self, names: Sequence[str]) -> dict[str, Counter[str]]:
        counts: dict[str, Counter[str]] = {name: Counter() for name in names}
        for number, part in enumerate(self._source):
            assert isinstance(part, TablePart)
            start = 0
            for rows in part.raw():
                used = np.ones(len(rows), bool)
                if self._limit is not None:
                    ordinals = self._ordinals(number)[start : start + len(rows)]
                    used = self._limit.within(ordinals)
                    start += len(rows)
                    if len(used) != len(rows):
                        raise SfumatoError("the data have other rows than when they were opened")
                for name, found in counts.items():
                    _count(rows.column(name), used, found)
        for found in counts.values():
            refuse_too_many(found.total())
            for no_value in ("", OTHER, MISSING):
                found.pop(no_value, None)
        return counts

    def misfit_flags(self) -> MisfitFlags:
        """Give rows that tell of each column, in place of its value, whether it fits."""
        return MisfitFlags(
            self.codec, limit=self._limit, workers=self.workers, state=self._state, rows=self._rows
        )


class MisfitFlags(EncodedRows):
    """A table's rows, of which each value tells only whether it fits the schema: 0 or 1."""

    codec: TableCodec

    def __init__(self, codec: TableCodec, *, rows: TableRows, **shared: Any) -> None:
        self._rows = rows
        super().__init__(codec, **shared)

    def divide(self) -> list[FlagPart]:
        """Divide the table."""
        return [FlagPart(rows, self.codec) for rows in self._rows.parts()]


def _count(column: pa.Array, used: NDArray[np.bool_], found: Counter[str]) -> None:
    """Count the values of those rows of a column that are used."""
    texts = whole_numbers_plain(parsing.texts(column))
    told = used & ~parsing.is_null(texts).to_numpy(zero_copy_only=False)
    for each in texts.filter(pa.array(told)).value_counts().to_pylist():
        found[canonical_text(each["values"])] += each["counts"]


def summed(parts: Sequence[Iterable[Batch]], statistic: Summable) -> tuple[int, NDArray[np.int64]]:
    """Count the rows of parts, and add them up."""
    total = np.zeros(statistic.dim, np.int64)
    count = 0
    for part in parts:
        for batch in part:
            count += len(batch)
            refuse_too_many(count)
            total += statistic.sum(batch)
    return count, total


def refuse_too_many(rows: int) -> None:
    """Refuse more rows than sums can hold."""
    if rows > 1 << ROW_BITS:
        raise SfumatoError("the data have more rows than a 64-bit sum can hold")


def _reviewed(parts: Sequence[tuple[int, Part]], spool: Spool | None) -> Review:
    found = Review()
    for number, part in parts:
        rows = part.read(found)
        if spool is not None:
            spool.keep(number, rows)
        else:
            for _ in rows:
                pass
    return found


def encoded_rows(
    data: Any,
    codec: TableCodec | ImageCodec,
    max_rows_per_unit: int = 1,
    workers: int | None = 1,
    spool: Path | None = None,
) -> PrivateRows:
    """Open private data for statistics; encoded rows may be kept in the folder `spool`."""
    if isinstance(codec, ImageCodec):
        return EncodedImages(data, codec, workers, spool)
    if is_spark(data):
        from sfumato.data.spark import SparkRows

        return SparkRows(data, codec, max_rows_per_unit)
    return EncodedTable(data, codec, max_rows_per_unit, workers, spool)
