"""Csv, plain or gzipped, as batches of texts; and what is wrong with a file that is none."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from sfumato.errors import SfumatoError
from sfumato.schema import CsvFormat

_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_QUOTE_IS_OPEN = "a value holds a line break: close its quote, or remove the line break"


class CsvRows:
    """A csv file, streamed; every column arrives as text.

    An open quote makes one value of everything up to the next quote: a single row would swallow
    others. Such a value holds a line break, so each value of each column is looked at, also of
    those that nobody asked for, and a line break in any of them is refused.
    """

    def __init__(self, source: Path | bytes, form: CsvFormat | None = None) -> None:
        self._source = source
        self.place = "the standard input" if isinstance(source, bytes) else str(source)
        self.form = form or CsvFormat()
        if isinstance(source, Path) and self.form.delimiter == ",":
            tabs = any(part in (".tsv", ".tab") for part in source.suffixes)
            self.form = self.form.model_copy(update={"delimiter": "\t"}) if tabs else self.form
        with self._plain_errors(), self._open({}) as reader:
            self.names = reader.schema.names
        if any(mark in name for name in self.names for mark in "\r\n"):
            raise SfumatoError(f"{self.place}: a column name holds a line break; close its quote")

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns as text."""
        kinds = {name: pa.string() if name in names else pa.binary() for name in self.names}
        with self._plain_errors(), self._open(kinds) as reader:
            for batch in reader:
                for column in batch.columns:
                    if pc.any(pc.match_substring_regex(column, "[\r\n]")).as_py():
                        raise SfumatoError(f"{self.place}: {self._fault() or _QUOTE_IS_OPEN}")
                yield batch.select(list(names))

    def first_kinds(self) -> pa.Schema:
        """Guess the types of the columns from the first rows."""
        with self._plain_errors(), self._open(None) as reader:
            return reader.schema

    @property
    def hint(self) -> str:
        """Say what to do where the columns look wrong."""
        if len(self.names) != 1:
            return ""
        if self.names[0].lower().startswith("sep="):
            return " Delete the first line, 'sep=…', and name the delimiter under [csv]."
        for mark, spelt in ((";", ";"), ("\t", "\\t"), ("|", "|"), (",", ",")):
            if mark in self.names[0]:
                return (
                    f' The columns seem to be separated by "{spelt}": write delimiter = "{spelt}" '
                    "under [csv] in the schema, or use --delimiter."
                )
        return ""

    def _open(self, kinds: dict[str, pa.DataType] | None) -> pa.csv.CSVStreamingReader:
        """Open the file, with named types, or with those that the first rows seem to have."""
        typed = {} if kinds is None else {"column_types": kinds, "strings_can_be_null": False}
        return pa.csv.open_csv(
            pa.BufferReader(gzip.decompress(self._source))
            if isinstance(self._source, bytes) and self._source.startswith(_GZIP)
            else pa.BufferReader(self._source)
            if isinstance(self._source, bytes)
            else pa.input_stream(str(self._source), compression="detect"),
            read_options=pa.csv.ReadOptions(block_size=1 << 23, encoding=self.form.encoding),
            parse_options=pa.csv.ParseOptions(
                newlines_in_values=True, delimiter=self.form.delimiter
            ),
            convert_options=pa.csv.ConvertOptions(**typed),
        )

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Say what is wrong without Arrow's message, which quotes the private row."""
        try:
            yield
        except (pa.ArrowInvalid, UnicodeError):
            fault = self._fault() or "it is not well-formed csv"
            raise SfumatoError(f"{self.place}: {fault}") from None
        except (OSError, EOFError, zlib.error):
            raise SfumatoError(f"{self.place} cannot be read to its end: it is damaged") from None

    def _fault(self) -> str | None:
        """Look for what is wrong: its line and its kind, and no value."""
        encoding = self.form.encoding
        with self._bytes() as raw:
            head = raw.peek(4)[:4] if hasattr(raw, "peek") else b""
            if not head:
                return "the file is empty"
            if head[:2] in _UTF_16 and "16" not in encoding:
                return 'it is in UTF-16: write encoding = "utf-16" under [csv], or use --encoding'
            if b"\0" in head and "16" not in encoding and "32" not in encoding:
                return "it is no text file"
            number = 0
            try:
                text = io.TextIOWrapper(raw, encoding=encoding, newline="")
                for number, _ in enumerate(text, 1):  # noqa: B007
                    pass
            except UnicodeError:
                return (
                    f"after line {number} it is not in {encoding.upper()}: name the encoding under "
                    '[csv], as in encoding = "latin-1" (or "cp1252"), or use --encoding'
                )
        with self._bytes() as raw:
            text = io.TextIOWrapper(raw, encoding=encoding, newline="")
            return _ragged(text, self.form.delimiter)

    @contextmanager
    def _bytes(self) -> Iterator[io.BufferedReader]:
        with (
            io.BytesIO(self._source)
            if isinstance(self._source, bytes)
            else open(self._source, "rb") as file
        ):
            zipped = file.read(2) == _GZIP
            file.seek(0)
            plain = gzip.GzipFile(fileobj=file) if zipped else file
            yield io.BufferedReader(plain)


def _ragged(text: io.TextIOWrapper, delimiter: str) -> str | None:
    """Find the first line that has too few or too many fields, or in which a quote stays open."""
    reader = csv.reader(text, delimiter=delimiter)
    begins, fields = 1, None
    try:
        for row in reader:
            if any(mark in value for value in row for mark in "\r\n"):
                return f"line {begins}: {_QUOTE_IS_OPEN}"
            if fields is None:
                fields = len(row)
            elif row and len(row) != fields:
                return (
                    f"line {begins} has {len(row)} fields where the header has {fields}: put "
                    "quotes around values that hold the delimiter, or mend the line"
                )
            begins = reader.line_num + 1
    except csv.Error as error:
        return f"line {begins}: {error}"
    return None
