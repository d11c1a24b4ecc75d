"""Csv, plain or gzipped, as batches of texts; and what is wrong with a file that is none."""

from __future__ import annotations

import codecs
import copy
import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.csv

from sfumato.data import csv_lines, workers
from sfumato.data.csv_header import is_zipped, other_format, told_delimiter, unzipped
from sfumato.data.csv_lines import LINE_END, CsvLines, LongLineError, parsed
from sfumato.errors import SfumatoError, not_read
from sfumato.schema import CsvFormat

_START = 512  # bytes that tell what a file is
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_ONE_BYTE = ("utf-8", "ascii", "iso8859", "cp125")  # encodings in which a line ends by one byte
_LONG = 1 << 20
_QUOTE_IS_OPEN = "a value holds a line break: close its quote, or remove the line break"


class CsvRows:
    """A csv file, streamed; every column arrives as text.

    An open quote makes one value of everything up to the next quote: a single row would swallow
    others. Such a value holds a line break, so each value of each column is looked at, also of
    those that nobody asked for, and a line break in any of them is refused.

    So every line feed of a file that is not refused ends a row, and the file can be cut there into
    parts, and these into pieces. A cut within a quote leaves a piece that ends in an open quote and
    a line feed: refused. Each piece is parsed as a whole, under the names of the header, so a row
    is read the same wherever in its piece it stands.
    """

    _range: tuple[int, int] | None = None  # of bytes, where only a part is read

    def __init__(self, source: Path | bytes, form: CsvFormat | None = None) -> None:
        self._source = source
        self.place = "the standard input" if isinstance(source, bytes) else str(source)
        self.form = form or CsvFormat()
        if isinstance(source, Path) and self.form.delimiter == ",":
            tabs = any(part in (".tsv", ".tab") for part in source.suffixes)
            self.form = self.form.model_copy(update={"delimiter": "\t"}) if tabs else self.form
        with self._plain_errors():
            self._skipped = self._look_at_start()
            with self._lines(unzipped(self._source)) as lines:
                header = lines.header(self._skipped)
                # In UTF-8, which is no shorter than they are in the file.
                self._passed = lines.passed + len(codecs.BOM_UTF8)
            self._written_names = parsed(header, self.form).schema.names
        self.names = [name.strip() for name in self._written_names]
        if any(mark in name for name in self.names for mark in "\r\n"):
            raise SfumatoError(f"{self.place}: a column name holds a line break; close its quote")

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns as dictionaries of texts."""
        kinds = {
            written: pa.dictionary(pa.int32(), pa.string()) if name in names else pa.binary()
            for written, name in zip(self._written_names, self.names, strict=True)
        }
        with self._plain_errors(), self._rows() as lines:
            for piece in lines.pieces():
                for batch in parsed(piece, self.form, self._written_names, kinds).to_batches():
                    if any(map(_holds_line_break, batch.columns)):
                        raise SfumatoError(f"{self.place}: {self._fault() or _QUOTE_IS_OPEN}")
                    yield batch.rename_columns(self.names).select(list(names))

    @property
    def slow(self) -> bool:
        """Whether it is a large gzipped file, which cannot be cut."""
        if isinstance(self._source, bytes) or not is_zipped(self._source):
            return False
        return self._source.stat().st_size > workers.PART_BYTES // 4

    def parts(self) -> list[CsvRows]:
        """Cut the file at ends of rows into parts of about the same size."""
        coding = codecs.lookup(self.form.encoding).name
        if isinstance(self._source, bytes) or not coding.startswith(_ONE_BYTE):
            return [self]
        with self._plain_errors(), open(self._source, "rb") as file:
            if is_zipped(self._source):
                return [self]
            size = file.seek(0, io.SEEK_END)
            ends = [0]
            while ends[-1] < size:
                # The first part has the whole header.
                least = max(workers.PART_BYTES, 0 if ends[-1] else self._passed)
                file.seek(min(ends[-1] + least, size))
                _pass_line(file)
                ends.append(file.tell())
        return [self._part(*ends) for ends in pairwise(ends)] if len(ends) > 2 else [self]

    def _part(self, start: int, end: int) -> CsvRows:
        part = copy.copy(self)
        part._range = (start, end)
        return part

    def first_kinds(self) -> pa.Schema:
        """Guess the types of the columns from the first rows."""
        with self._plain_errors(), self._rows() as lines:
            piece = next(lines.pieces(), b"\n")
            kinds = parsed(piece, self.form, self._written_names).schema.types
        return pa.schema(list(zip(self.names, kinds, strict=True)))

    @property
    def hint(self) -> str:
        """Say what to do where the columns look wrong."""
        if len(self.names) != 1:
            return ""
        for mark, spelt in ((";", ";"), ("\t", "\\t"), ("|", "|"), (",", ",")):
            if mark in self.names[0]:
                return (
                    f' The columns seem to be separated by "{spelt}": write delimiter = "{spelt}" '
                    "under [csv] in the schema, or use --delimiter."
                )
        return ""

    def _look_at_start(self) -> int:
        """Refuse what is no csv; give how many lines come before the header."""
        with unzipped(self._source) as file:
            start = file.read(_START)
        other = other_format(start)
        if other:
            raise SfumatoError(f"{self.place}: it is no csv but {other}")
        if start[:2] in _UTF_16 and not self._wide:
            raise SfumatoError(
                f'{self.place}: it is in UTF-16: write encoding = "utf-16" under [csv], or use '
                "--encoding"
            )
        delimiter = told_delimiter(start)
        if delimiter is None:
            return 0
        self.form = self.form.model_copy(update={"delimiter": delimiter})
        return 1

    @property
    def _wide(self) -> bool:
        """Whether characters are of several bytes, some of which may be zero."""
        return "16" in self.form.encoding or "32" in self.form.encoding

    @contextmanager
    def _rows(self) -> Iterator[CsvLines]:
        """Open the lines after the header."""
        with self._lines(self._bytes()) as lines:
            if self._range is None or self._range[0] == 0:
                lines.header(self._skipped)
            yield lines

    @contextmanager
    def _lines(self, raw: pa.NativeFile) -> Iterator[CsvLines]:
        with raw:
            if codecs.lookup(self.form.encoding).name in ("utf-8", "utf-8-sig"):
                yield CsvLines(raw)
            else:
                yield CsvLines(pa.transcoding_input_stream(raw, self.form.encoding, "utf-8"))

    def _bytes(self) -> pa.NativeFile:
        if self._range is None:
            return unzipped(self._source)
        assert isinstance(self._source, Path)
        with open(self._source, "rb") as file:
            file.seek(self._range[0])
            return pa.BufferReader(file.read(self._range[1] - self._range[0]))

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Say what is wrong without Arrow's message, which quotes the private row."""
        try:
            try:
                yield
            except (pa.ArrowInvalid, UnicodeError, LongLineError):
                fault = self._fault() or "it is not well-formed csv"
                raise SfumatoError(f"{self.place}: {fault}") from None
        except OSError as error:
            damaged = f"{self.place} cannot be read to its end: it is damaged"
            raise not_read(self.place, error, damaged) from None

    def _fault(self) -> str | None:
        """Look for what is wrong: its line and its kind, and no value."""
        encoding = self.form.encoding
        with unzipped(self._source) as raw:
            start = raw.read(_START)
        if not start.removeprefix(codecs.BOM_UTF8).strip():
            return "the file is empty"
        if b"\0" in start and not self._wide:
            return "it is no text file"
        with suppress(UnicodeError), self._lines(unzipped(self._source)) as lines:
            number = 1
            try:
                for piece in lines.pieces():
                    number += len(LINE_END.findall(piece))
            except LongLineError:
                return f"line {number} is longer than {csv_lines.LONGEST_LINE >> 20} MB"
        with self._text() as text:
            number = 0
            try:
                for number, _ in enumerate(text, 1):  # noqa: B007
                    pass
            except UnicodeError as error:
                if not isinstance(error, UnicodeDecodeError):  # such as a mark that is not there
                    return f"it is not in {encoding.upper()}: name another encoding (--encoding)"
                # What was read ahead of the lines lies in the piece that cannot be decoded.
                line = number + 1 + len(LINE_END.findall(error.object[: error.start]))
                return (
                    f"line {line} is not in {encoding.upper()}: name the encoding under [csv], as "
                    'in encoding = "latin-1" (or "cp1252"), or use --encoding'
                )
        with self._text() as text:
            for _ in range(self._skipped):
                text.readline()
            return _ragged(text, self.form.delimiter, self._skipped)

    @contextmanager
    def _text(self) -> Iterator[io.TextIOWrapper]:
        with unzipped(self._source) as raw:
            yield io.TextIOWrapper(raw, encoding=self.form.encoding, newline="")


def _pass_line(file: IO[bytes]) -> None:
    """Go on to the end of a line, however long: some files end no line by a line feed."""
    while piece := file.readline(_LONG):
        if piece.endswith(b"\n"):
            return


def _holds_line_break(column: pa.Array) -> bool:
    values = column.dictionary if pa.types.is_dictionary(column.type) else column
    content = values.buffers()[2]
    if content is None:
        return False
    # A batch of the reader has its buffers for itself.
    held = np.frombuffer(content, np.uint8)
    return bool(((held == ord("\n")) | (held == ord("\r"))).any())


def _ragged(text: io.TextIOWrapper, delimiter: str, skipped: int) -> str | None:
    """Find the first line that has too few or too many fields, or in which a quote stays open."""
    reader = csv.reader(text, delimiter=delimiter)
    begins, fields, rows = 1 + skipped, 0, 0
    try:
        for row in reader:
            if any(mark in value for value in row for mark in "\r\n"):
                return f"line {begins}: {_QUOTE_IS_OPEN}"
            fields = fields or len(row)
            if row and len(row) != fields:
                return (
                    f"line {begins} has {len(row)} fields where the header has {fields}: put "
                    "quotes around values that hold the delimiter, or mend the line"
                )
            rows += bool(row)
            begins = reader.line_num + 1 + skipped
    except csv.Error as error:
        return f"line {begins}: {error}"
    return None if rows > 1 else "it has a header and no rows"
