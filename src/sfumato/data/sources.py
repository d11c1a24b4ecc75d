"""Sources: files and frames as re-iterable batches of raw rows.

A source reads; it never judges a value. What lies outside the schema is clamped or mapped by the
codec, row by row, so that no row is dropped and no error tells about a private value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from sfumato.data.frames import BATCH_ROWS, PandasRows, is_pandas
from sfumato.errors import SfumatoError

_ENDINGS = {".csv", ".parquet", ".pq", ".npz"}


class TableRows(Protocol):
    """A table that can be read again and again."""

    @property
    def names(self) -> Sequence[str]:
        """The column names."""

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns."""


class CsvRows:
    """A csv file, plain or gzipped, streamed; every column arrives as text.

    An open quote makes one value of everything up to the next quote: a single row would swallow
    others. Such a value holds a line break, so each value of each column is looked at, also of
    those that nobody asked for, and a line break in any of them is refused.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open({}) as reader:
            self.names = reader.schema.names
        if any(mark in name for name in self.names for mark in "\r\n"):
            raise SfumatoError(f"{path}: a column name holds a line break; close its quote")

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns as text."""
        kinds = {name: pa.string() if name in names else pa.binary() for name in self.names}
        with self._plain_errors(), self._open(kinds) as reader:
            for batch in reader:
                for column in batch.columns:
                    if pc.any(pc.match_substring_regex(column, "[\r\n]")).as_py():
                        raise SfumatoError(
                            f"{self.path}: a value holds a line break; close its quote or remove it"
                        )
                yield batch.select(list(names))

    def _open(self, kinds: dict[str, pa.DataType]) -> pa.csv.CSVStreamingReader:
        with self._plain_errors():
            return pa.csv.open_csv(
                pa.input_stream(str(self.path), compression="detect"),
                read_options=pa.csv.ReadOptions(block_size=1 << 23),
                parse_options=pa.csv.ParseOptions(newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types=kinds, strings_can_be_null=False
                ),
            )

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Say what is wrong without Arrow's message, which quotes the private row."""
        try:
            yield
        except pa.ArrowInvalid:
            raise SfumatoError(
                f"{self.path} is empty or not well-formed csv: every row needs as many fields as "
                "the header, in UTF-8"
            ) from None
        except OSError:
            raise SfumatoError(f"{self.path} cannot be read to its end: it is damaged") from None


class ParquetRows:
    """A parquet file, streamed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.names = pa.parquet.read_schema(path).names
        except (pa.ArrowInvalid, OSError) as error:
            raise SfumatoError(f"cannot read {path} as parquet: {error}") from None

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns."""
        try:
            with pa.parquet.ParquetFile(self.path) as file:
                yield from file.iter_batches(BATCH_ROWS, columns=list(names))
        except (pa.ArrowException, OSError):
            raise SfumatoError(f"{self.path} cannot be read to its end: it is damaged") from None


class ArrowRows:
    """Anything that exports an Arrow stream: polars, DuckDB, pyarrow."""

    def __init__(self, frame: Any) -> None:
        # A reader can be read only once, but a method may need several passes.
        self._frame = frame.read_all() if isinstance(frame, pa.RecordBatchReader) else frame
        self.names = self._reader().schema.names

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns."""
        for batch in self._reader():
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS).select(list(names))

    def _reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_stream(self._frame)


def table_rows(data: Any, names: Sequence[str] = ()) -> TableRows:
    """Open a table and check, before anything is spent, that it has the named columns."""
    rows = _open_table(data)
    twice = [name for name, count in Counter(rows.names).items() if count > 1]
    if twice:
        raise SfumatoError(f"the data have two columns of the same name: '{twice[0]}'")
    for name in names:
        if name not in rows.names:
            raise SfumatoError(
                f"the data have no column '{name}'; remove it from the schema or rename it "
                f"(columns: {', '.join(rows.names)})"
            )
    return rows


def _open_table(data: Any) -> TableRows:
    """Open a path to csv, csv.gz or parquet, or a frame."""
    if is_pandas(data):
        return PandasRows(data)
    if hasattr(data, "__arrow_c_stream__"):
        return ArrowRows(data)
    if not isinstance(data, str | Path):
        raise SfumatoError(f"cannot read a table from a {type(data).__name__}")
    path = _existing(data)
    suffixes = "".join(path.suffixes).lower()
    if suffixes.endswith((".csv", ".csv.gz")):
        return CsvRows(path)
    if suffixes.endswith((".parquet", ".pq")):
        return ParquetRows(path)
    raise SfumatoError(f"cannot tell what {path} is: a table ends in .csv, .csv.gz or .parquet")


def _existing(data: str | Path) -> Path:
    """Give the path, or say that nothing is there."""
    path = Path(data)
    if not path.exists():
        raise SfumatoError(f"there is no file {data}")
    return path


def source_name(data: Any) -> str:
    """Name where data come from by text: an address as it is, a path in full, a frame by nothing.

    >>> source_name("postgresql://host/base")
    'postgresql://host/base'
    """
    if not isinstance(data, str | Path):
        return ""
    text = str(data)
    return text if "://" in text else str(Path(text).resolve())


def dataset_name(data: Any) -> str:
    """Give the name under which a data set is kept in the ledger unless the owner names it."""
    if not isinstance(data, str | Path):
        return "unnamed"
    name = Path(data).resolve().name.removesuffix(".gz")
    return Path(name).stem if Path(name).suffix in _ENDINGS else name
