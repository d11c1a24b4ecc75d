"""Sources: files and frames as re-iterable batches of raw rows.

A source reads; it never judges a value. What lies outside the schema is clamped or mapped by the
codec, row by row, so that no row is dropped and no error tells about a private value.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet

from sfumato.data import workers
from sfumato.data.address import Address, is_address
from sfumato.data.csv_rows import CsvRows
from sfumato.data.databases import DatabaseRows, database_rows, digest_order
from sfumato.data.frames import BATCH_ROWS, PandasRows, is_pandas
from sfumato.errors import SfumatoError, in_utf8, listing, not_read
from sfumato.schema import CsvFormat
from sfumato.storage import local

_TEXTS = (".csv", ".tsv", ".tab", ".txt")
_ENDINGS = {*_TEXTS, ".parquet", ".pq", ".npz"}
_PARQUET = b"PAR1"
PART_ROWS = 1 << 18
"""So many rows of parquet, however small, are worth a part of their own."""


class TableRows(Protocol):
    """A table that can be read again and again."""

    @property
    def names(self) -> Sequence[str]:
        """The column names."""

    @property
    def slow(self) -> bool:
        """Whether reading it again costs so much that its rows had better be kept."""

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns."""

    def parts(self) -> Sequence[TableRows]:
        """Give parts that other processes can read; itself where it cannot be divided."""


class ParquetRows:
    """Parquet files of the same columns, streamed; texts arrive as dictionaries."""

    _groups: tuple[int, ...] | None = None  # the row groups, where only some are read

    def __init__(self, *files: Path | bytes) -> None:
        self._files = files
        self.names = self.first_kinds().names
        for file in files[1:]:
            if set(_schema_of(file).names) != set(self.names):
                raise SfumatoError(f"{_place(file)} has other columns than {_place(files[0])}")

    def first_kinds(self) -> pa.Schema:
        """Give the types of the columns."""
        return _schema_of(self._files[0])

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns."""
        groups = None if self._groups is None else list(self._groups)
        for source in self._files:
            with _damage_named(source):
                texts = [f.name for f in _schema_of(source) if pa.types.is_string(f.type)]
                kept = [name for name in texts if name in names]
                with pa.parquet.ParquetFile(_opened(source), read_dictionary=kept) as file:
                    yield from file.iter_batches(
                        BATCH_ROWS, groups, columns=list(names), use_threads=False
                    )

    @property
    def slow(self) -> bool:
        """Whether it has many rows, though they may all lie together."""
        return sum(rows for source in self._files for rows, _ in _groups_of(source)) > PART_ROWS

    def parts(self) -> list[ParquetRows]:
        """Give row groups that lie together, of about the same size."""
        if isinstance(self._files[0], bytes):
            return [self]
        found = []
        for source in self._files:
            groups: list[int] = []
            rows = size = 0
            sizes = _groups_of(source)
            for group, (more_rows, more) in enumerate(sizes):
                groups.append(group)
                rows, size = rows + more_rows, size + more
                full = rows >= PART_ROWS or size >= workers.PART_BYTES
                if full or group == len(sizes) - 1:
                    found.append(self._part(source, groups))
                    groups, rows, size = [], 0, 0
        return found or [self]

    def _part(self, source: Path | bytes, groups: Sequence[int]) -> ParquetRows:
        part = copy.copy(self)
        part._files, part._groups = (source,), tuple(groups)
        return part


def _opened(source: Path | bytes) -> Any:
    return pa.BufferReader(source) if isinstance(source, bytes) else source


def _schema_of(source: Path | bytes) -> pa.Schema:
    try:
        return pa.parquet.read_schema(_opened(source))
    except (pa.ArrowException, OSError, ValueError) as error:
        damaged = f"{_place(source)} is not a parquet file, or is damaged"
        raise not_read(_place(source), error, damaged) from None


def _groups_of(source: Path | bytes) -> list[tuple[int, int]]:
    """Give the rows and the bytes of each row group."""
    with _damage_named(source), pa.parquet.ParquetFile(_opened(source)) as file:
        groups = map(file.metadata.row_group, range(file.num_row_groups))
        return [(group.num_rows, group.total_byte_size) for group in groups]


@contextmanager
def _damage_named(source: Path | bytes) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        damaged = f"{_place(source)} cannot be read to its end: it is damaged"
        raise not_read(_place(source), error, damaged) from None


def _place(source: Path | bytes) -> str:
    return "the standard input" if isinstance(source, bytes) else str(source)


class ArrowRows:
    """Anything that exports an Arrow stream: polars, DuckDB, pyarrow."""

    slow = False

    def __init__(self, frame: Any) -> None:
        # A reader can be read only once, but a method may need several passes.
        self._frame = frame.read_all() if isinstance(frame, pa.RecordBatchReader) else frame
        self.names = self._reader().schema.names

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns."""
        for batch in self._reader():
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS).select(list(names))

    def parts(self) -> list[ArrowRows]:
        """Give itself: what lies in memory is not copied to other processes."""
        return [self]

    def order_by_digest(self, names: Sequence[str]) -> None:
        """Give a relation of DuckDB, which is asked anew for each pass, an order that lasts."""
        if type(self._frame).__name__ == "DuckDBPyRelation":
            self._frame = self._frame.order(digest_order(names))

    def _reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_stream(self._frame)


def table_rows(data: Any, names: Sequence[str] = (), form: CsvFormat | None = None) -> TableRows:
    """Open a table and check, before anything is spent, that it has the named columns."""
    rows = _open_table(data, form)
    refuse_missing(rows.names, names, getattr(rows, "hint", ""))
    return rows


def let_order_last(rows: TableRows, names: Sequence[str]) -> None:
    """Let all passes see the same order of rows, where they come from a database.

    Files and frames have an order of their own.
    """
    if isinstance(rows, DatabaseRows):
        rows.by_digest = True
    elif isinstance(rows, ArrowRows):
        rows.order_by_digest(names)


def refuse_missing(there: Sequence[str], names: Sequence[str], hint: str = "") -> None:
    """Refuse data without a column, or with two of its name."""
    counts = Counter(there)
    for name in names:
        if counts[name] > 1:
            raise SfumatoError(f"the data have two columns of the same name: '{name}'")
        if name not in counts:
            raise SfumatoError(
                f"the data have no column '{name}'; remove it from the schema or rename it "
                f"(columns: {listing(there)}).{hint}"
            )


def _open_table(data: Any, form: CsvFormat | None) -> TableRows:
    """Open a file, a folder of parquet, a table of a database, the bytes of a file, or a frame."""
    if is_pandas(data):
        return PandasRows(data)
    if hasattr(data, "__arrow_c_stream__"):
        return ArrowRows(data)
    if isinstance(data, bytes):
        return ParquetRows(data) if data.startswith(_PARQUET) else CsvRows(data, form)
    if is_address(data):
        return database_rows(data)
    if not isinstance(data, str | Path):
        raise SfumatoError(
            f"cannot read a table from a {type(data).__name__}: give a path or a frame"
        )
    path = _existing(data)
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
        if not files:
            raise SfumatoError(
                f"{path} is a folder without .parquet files, and the schema is that of a table"
            )
        return ParquetRows(*files)
    endings = "".join(path.suffixes).lower().removesuffix(".gz")
    if endings.endswith(_TEXTS):
        return CsvRows(path, form)
    if endings.endswith((".parquet", ".pq")):
        return ParquetRows(path)
    raise SfumatoError(
        f"cannot tell what {path} is: a table ends in .csv, .tsv, .csv.gz or .parquet"
    )


def is_spark(data: Any) -> bool:
    """Tell a Spark frame, without importing pyspark."""
    kind = type(data)
    return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"


def _existing(data: str | Path) -> Path:
    """Give the path, or say that nothing is there."""
    in_utf8(str(data))
    path = local(data)
    if not path.exists():
        raise SfumatoError(f"there is no file {data}")
    return path


def source_name(data: Any) -> str:
    """Name where data come from by text: addresses without passwords, paths in full, or nothing.

    >>> source_name("postgresql://ann:secret@host/base?table=visits")
    'postgresql://ann@host/base?table=visits'
    """
    if not isinstance(data, str | Path):
        return ""
    return Address.of(str(data)).told if is_address(data) else str(Path(data).resolve())


def dataset_name(data: Any) -> str:
    """Give the name under which a data set is kept in the ledger unless the owner names it."""
    if not isinstance(data, str | Path):
        return "unnamed"
    if is_address(data):
        return Address.of(str(data)).name
    name = Path(data).resolve().name.removesuffix(".gz")
    return Path(name).stem if Path(name).suffix in _ENDINGS else name
