"""The first line of a csv file: names only, which tell how the file is written."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

_LONGEST = 1 << 20


def header_line(path: Path) -> bytes:
    """Read the first line of a csv file, plain or gzipped."""
    with pa.input_stream(str(path), compression="detect") as file:
        start: bytes = file.read(_LONGEST)
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
