"""Tables in Spark: encoded and summed inside the executors, so that no row reaches the driver.

Each partition gives one partial sum, and partial sums are added up in a tree. They are results of
tasks, not accumulators, which count a task twice that is tried again. pyspark is imported by
whoever makes the frame; executors need sfumato beside it.
"""

from __future__ import annotations

import operator
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.data.parts import FlagPart, TablePart
from sfumato.data.review import Review
from sfumato.data.rows import PrivateRows, Summable, refuse_too_many, summed
from sfumato.data.sources import refuse_missing
from sfumato.data.table_codec import TableCodec
from sfumato.data.unit_limit import UnitLimit
from sfumato.errors import SfumatoError

_FOUND = "found binary"
_ENCODED = "unit string, row binary, codes binary, numbers binary"
_OUR_ERROR = re.compile(r"^(?:sfumato\.errors\.)?SfumatoError: (.*)$", re.MULTILINE)
_NOT_THERE = re.compile(r"No module named '(sfumato|numpy|pyarrow|pydantic|pandas)\b")

Found = Any


def spark_frame(text: str) -> Any:
    """Open parquet at a path or an address that Spark knows, or else a table of its catalogue."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SfumatoError(
            "to read with Spark, the package pyspark is needed: pip install 'sfumato[spark]'"
        ) from None
    if SparkSession.getActiveSession() is None:
        # Else executors run whatever python3 is on PATH, which need not have sfumato.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        session = SparkSession.builder.getOrCreate()
        return session.read.parquet(text) if "/" in text else session.table(text)
    except Exception as error:
        line = (str(error).strip().splitlines() or ["Spark does not start"])[0]
        raise SfumatoError(f"cannot read {text} with Spark: {line}") from None


class SparkRows(PrivateRows):
    """A Spark frame, summed where its rows lie.

    Of each unit, `max_rows_per_unit` rows are kept: those that come first by a digest of the unit,
    the encoded row and, of rows that are alike in both, which of them it is. That depends neither
    on other units nor on the order of rows, which Spark does not know (`UnitRows` does the same).
    """

    codec: TableCodec

    def __init__(
        self, frame: Any, codec: TableCodec, max_rows_per_unit: int = 1, flags: bool = False
    ) -> None:
        unit = codec.schema.unit_column
        self.codec = codec
        self._names = [*codec.declared, *([unit] if unit else [])]
        refuse_missing(frame.columns, self._names)
        self._frame = frame
        self._most = max_rows_per_unit
        self._flags = flags
        self._limit = UnitLimit(codec.schema, max_rows_per_unit) if unit else None

    def __iter__(self) -> Iterator[Batch]:
        self.refuse_training()
        return iter(())

    def refuse_training(self) -> None:
        """Refuse: rows stay in the executors."""
        raise SfumatoError(
            "a training needs all rows in one place, and those of Spark stay in its executors: "
            "use a method of releases, or write the table to parquet"
        )

    def sum(self, statistic: Summable) -> NDArray[np.int64]:
        """Give the exact sum of a statistic over all rows."""
        found = self._gathered(partial(_sum, statistic=statistic), _added)
        count, total = found or (0, np.zeros(statistic.dim, np.int64))
        refuse_too_many(count)
        return np.asarray(total)

    def review(self) -> Review:
        """Count what does not fit, inside the executors, without quoting a value."""
        codec, names = self.codec, self._names
        found = _tree(
            self._selected.mapInArrow(partial(_reviewed, codec=codec, names=names), _FOUND), _merged
        )
        review: Review = found or Review()
        review.kept = self._gathered(_count, operator.add) or 0
        return review

    def recoded(self, codec: TableCodec) -> SparkRows:
        """Give the same frame in another code."""
        return SparkRows(self._frame, codec, self._most)

    def misfit_flags(self) -> SparkRows:
        """Give rows that tell, in place of values, whether they fit the schema: 0 or 1."""
        return SparkRows(self._frame, self.codec, self._most, flags=True)

    @property
    def _selected(self) -> Any:
        return self._frame.select(*(f"`{name.replace('`', '``')}`" for name in self._names))

    def _gathered(
        self, work: Callable[[Iterator[Batch]], Found], merge: Callable[[Found, Found], Found]
    ) -> Found | None:
        """Let each partition work on its rows, limited where they have units, and merge."""
        part = FlagPart if self._flags else TablePart
        read = partial(_encoded, part=part, codec=self.codec, names=self._names)
        if self._limit is None:
            return _tree(self._selected.mapInArrow(partial(_worked, read, work), _FOUND), merge)
        rows = self._selected.mapInArrow(partial(_shuffled, read), _ENCODED)
        told_apart = rows.where("unit IS NOT NULL").selectExpr(
            "*", "row_number() OVER (PARTITION BY unit, row ORDER BY row) AS place"
        )
        numbered = told_apart.selectExpr(
            "codes",
            "numbers",
            "row_number() OVER (PARTITION BY unit ORDER BY "
            "sha2(concat(encode(concat(CAST(place AS STRING), ' ', unit), 'UTF-8'), row), 256), "
            "row) AS ordinal",
        )
        kept = numbered.where(f"ordinal <= {self._most}")
        columns = len(self.codec.declared if self._flags else self.codec.names)
        again = partial(_unshuffled, limit=self._limit, columns=columns)
        return _tree(kept.mapInArrow(partial(_worked, again, work), _FOUND), merge)


class _Arrived:
    """Batches that came to an executor, as a source."""

    slow = False

    def __init__(self, batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> None:
        self.names = names
        self._batches = batches

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return (
            batch.rename_columns(list(self.names)).select(list(names)) for batch in self._batches
        )

    def parts(self) -> list[_Arrived]:
        return [self]


def _encoded(
    batches: Iterator[pa.RecordBatch],
    part: type[TablePart],
    codec: TableCodec,
    names: Sequence[str],
) -> Iterator[tuple[Batch, pa.Array | None]]:
    return part(_Arrived(batches, names), codec).read()


def _worked(
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[Batch, Any]]],
    work: Callable[[Iterator[Batch]], Found],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Give what was found in a partition, as one row."""
    yield _packed(work(batch for batch, _ in read(batches)))


def _shuffled(
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[Batch, pa.Array]]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Give encoded rows with their units, to be brought together."""
    for batch, units in read(batches):
        codes, numbers = _bytes(batch.codes), _bytes(batch.numbers)
        row = [one + other for one, other in zip(codes, numbers, strict=True)]
        yield pa.record_batch(
            {
                "unit": units,
                "row": pa.array(row, pa.binary()),
                "codes": pa.array(codes, pa.binary()),
                "numbers": pa.array(numbers, pa.binary()),
            }
        )


def _bytes(matrix: NDArray[Any]) -> list[bytes]:
    return [row.tobytes() for row in np.ascontiguousarray(matrix)]


def _unshuffled(
    batches: Iterator[pa.RecordBatch], limit: UnitLimit, columns: int
) -> Iterator[tuple[Batch, None]]:
    for rows in batches:
        codes, numbers, ordinals = (rows.column(place) for place in range(3))
        plain = Batch(
            np.frombuffer(b"".join(codes.to_pylist()), np.int32).reshape(len(rows), columns),
            np.frombuffer(b"".join(numbers.to_pylist()), np.float32).reshape(len(rows), -1)
            if len(rows)
            else np.empty((0, 0), np.float32),
        )
        yield limit.kept(plain, ordinals.to_numpy(zero_copy_only=False)), None


def _sum(batches: Iterator[Batch], statistic: Summable) -> tuple[int, NDArray[np.int64]]:
    return summed([batches], statistic)


def _count(batches: Iterator[Batch]) -> int:
    return sum(map(len, batches))


def _reviewed(
    batches: Iterator[pa.RecordBatch], codec: TableCodec, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    found = Review()
    for _ in TablePart(_Arrived(batches, names), codec).read(found):
        pass
    for column in found.columns.values():
        column.examples.clear()
    yield _packed(found)


def _added(one: Found, other: Found) -> Found:
    return one[0] + other[0], one[1] + other[1]


def _merged(one: Found, other: Found) -> Found:
    one.merge(other)
    return one


def _packed(found: Found) -> pa.RecordBatch:
    return pa.record_batch({"found": pa.array([pickle.dumps(found)], pa.binary())})


def _joined(
    batches: Iterator[pa.RecordBatch], merge: Callable[[Found, Found], Found]
) -> Iterator[pa.RecordBatch]:
    packed = [each for batch in batches for each in batch.column(0).to_pylist()]
    if packed:
        yield _packed(_reduced(packed, merge))


def _reduced(packed: Sequence[bytes], merge: Callable[[Found, Found], Found]) -> Found:
    found = pickle.loads(packed[0])
    for each in packed[1:]:
        found = merge(found, pickle.loads(each))
    return found


def _tree(frame: Any, merge: Callable[[Found, Found], Found]) -> Found | None:
    """Merge what partitions found: some of them together in the executors, the rest here."""
    try:
        # Spark puts as many of them together as make up a usual partition.
        nodes = frame.selectExpr("found", "spark_partition_id() AS node").repartition("node")
        some = nodes.select("found").mapInArrow(partial(_joined, merge=merge), _FOUND)
        packed = [bytes(row[0]) for row in some.collect()]
    except Exception as error:
        raise SfumatoError(_why(error)) from None
    return _reduced(packed, merge) if packed else None


def _why(error: Exception) -> str:
    """Say why a job failed. What Spark says could quote a private value: only known words of it."""
    told, lacking = _OUR_ERROR.search(str(error)), _NOT_THERE.search(str(error))
    if told:
        return f"Spark: {told[1]}"
    if lacking:
        return (
            f"Spark's executors cannot import {lacking[1]}: install sfumato in the Python that "
            "they run, and name that one in the variable PYSPARK_PYTHON"
        )
    return f"Spark: a job failed ({type(error).__name__}), see Spark's own log"
