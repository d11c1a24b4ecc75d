"""The beginning of a csv file: names only, which tell how the file is written."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import pyarrow as pa

from sfumato.errors import not_read

_LONGEST = 1 << 20
_GZIP = b"\x1f\x8b"
_OTHERS = {
    rb"PK\x03\x04|\xd0\xcf\x11\xe0": "an Excel workbook or an archive: save its table as csv",
    rb"PAR1[\x00-\x08\x0e-\x1f]": "a parquet file: let its name end in .parquet",
    rb'\{\s*"|\[\s*[\[{]': "JSON: write its records as csv or parquet",
    rb"<(\?xml|!doctype|html|table)": "HTML or XML: save its table as csv",
}
_DELIMITER_LINE = rb"(?i)(?:\xef\xbb\xbf)?\"?sep=([^\r\n])\"?[\r\n]"


def unzipped(source: Path | bytes) -> pa.NativeFile:
    """Open a file, or the bytes of one; whether it is gzipped, it tells itself."""
    return pa.input_stream(_given(source), compression="gzip" if is_zipped(source) else None)


def is_zipped(source: Path | bytes) -> bool:
    """Tell from its first bytes whether a file is gzipped."""
    with pa.input_stream(_given(source), compression=None) as file:
        return bool(file.read(2) == _GZIP)


def _given(source: Path | bytes) -> memoryview | str:
    return memoryview(source) if isinstance(source, bytes) else str(source)


def other_format(start: bytes) -> str | None:
    """Tell from the first bytes of a file that it is something else than csv.

    >>> other_format(b'{"age": 3}')
    'JSON: write its records as csv or parquet'
    """
    begins = start.removeprefix(codecs.BOM_UTF8).lstrip()
    found = (what for marks, what in _OTHERS.items() if re.match(marks, begins, re.IGNORECASE))
    return next(found, None)


def told_delimiter(start: bytes) -> str | None:
    """Give the delimiter that a first line for spreadsheets names, where there is one.

    >>> told_delimiter(b"sep=;\\r\\nage;town\\r\\n")
    ';'
    """
    found = re.match(_DELIMITER_LINE, start)
    return found[1].decode("latin-1") if found else None


def header_line(path: Path) -> bytes:
    """Read the first line of a csv file, plain or gzipped."""
    try:
        with unzipped(path) as file:
            start: bytes = file.read(_LONGEST)
    except OSError as error:
        raise not_read(path, error, f"{path} cannot be read to its end: it is damaged") from None
    return start.splitlines()[0] if start else b""


def likely_format(header: bytes) -> dict[str, str]:
    """Guess what differs from a csv file with commas in UTF-8, as settings of a schema.

    >>> likely_format("name;größe".encode("latin-1"))
    {'delimiter': ';', 'encoding': 'latin-1'}
    """
    guessed = {}
    delimiter = likely_delimiter(header.decode("latin-1"))
    if delimiter != ",":
        guessed["delimiter"] = delimiter
    try:
        header.decode()
    except UnicodeDecodeError:
        guessed["encoding"] = "latin-1"
    return guessed


def likely_delimiter(header: str) -> str:
    """Give the mark that divides the names most often, outside of quotes.

    >>> likely_delimiter('id;"name, first";town')
    ';'
    """
    bare = re.sub(r'"[^"]*"', "", header)
    return max(",;\t|", key=bare.count)
