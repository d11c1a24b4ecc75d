"""A csv file's text in UTF-8, in pieces of whole lines: where one piece ends changes no row."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv

from sfumato.schema import CsvFormat

PIECE_BYTES = 1 << 23
"""A file is parsed in pieces of about this size. What is found does not depend on it."""
LONGEST_LINE = 1 << 24
"""Longer lines are refused: a piece, which lies in memory, holds at least one line."""
LINE_END = re.compile(rb"\r\n?|\n")


class LongLineError(Exception):
    """A line is longer than `LONGEST_LINE`."""


class CsvLines:
    """A stream of lines that end by a line feed, a carriage return, or both.

    Each piece can be parsed for itself: a row of several lines is refused anyway (`csv_rows`).
    """

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._left = b""
        self.passed = 0  # bytes that the header and what is before it take

    def header(self, skipped: int) -> bytes:
        """Pass so many lines, then empty ones, and give the next one, the header."""
        line = self._line().removeprefix(codecs.BOM_UTF8)
        while line and (skipped > 0 or not line.strip(b"\r\n")):
            skipped -= 1
            line = self._line()
        return line

    def _line(self) -> bytes:
        while True:
            end = LINE_END.search(self._left)
            # After a carriage return at the end, a line feed may come.
            if end and (end.end() < len(self._left) or end[0].endswith(b"\n")):
                break
            if not self._more():
                break
        length = end.end() if end else len(self._left)
        line, self._left = self._left[:length], self._left[length:]
        self.passed += length
        return line

    def pieces(self) -> Iterator[bytes]:
        """Give the lines that are left."""
        more = True
        while more:
            end = self._left.rfind(b"\n") + 1 or self._left.rfind(b"\r", 0, -1) + 1
            if end:
                piece, self._left = self._left[:end], self._left[end:]
                yield piece
            more = self._more()
        if self._left:
            yield self._left

    def _more(self) -> bool:
        """Read on, where no whole line is left; refuse the first one if it is too long.

        The others are not, being shorter than what is read at once.
        """
        more = self._stream.read(PIECE_BYTES)
        self._left += more
        if len(self._left) > LONGEST_LINE:
            end = LINE_END.search(self._left)
            if (end.start() if end else len(self._left)) > LONGEST_LINE:
                raise LongLineError
        return bool(more)


def parsed(
    lines: bytes,
    form: CsvFormat,
    names: list[str] | None = None,
    kinds: dict[str, pa.DataType] | None = None,
) -> pa.Table:
    """Parse whole lines at once, with the names of the first one, and types that they seem to have.

    Or with names and types that are given.
    """
    typed = {} if kinds is None else {"column_types": kinds, "strings_can_be_null": False}
    return pa.csv.read_csv(
        pa.BufferReader(_guarded(lines)),
        read_options=pa.csv.ReadOptions(
            block_size=len(lines) + len(codecs.BOM_UTF8) + 1,  # one block
            column_names=names,
            use_threads=False,  # cores are kept busy by parts
        ),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, delimiter=form.delimiter),
        convert_options=pa.csv.ConvertOptions(**typed),
    )


def _guarded(piece: bytes) -> bytes:
    """Let a row keep a byte order mark at its start: Arrow takes away one that begins a piece."""
    return codecs.BOM_UTF8 + piece if piece.startswith(codecs.BOM_UTF8[:1]) else piece
