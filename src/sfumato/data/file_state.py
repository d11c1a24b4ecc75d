"""The state of files: whether they are still what they were when a run opened them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.data.address import is_address
from sfumato.errors import SfumatoError


class FileState:
    """Size, time and place of each file of a data set.

    Answers about files that are written to meanwhile would be about two data sets, which no reader
    of a certificate expects. Frames and databases, which are read in one snapshot, have none;
    files that come into a folder later are not read.
    """

    def __init__(self, data: Any) -> None:
        named = isinstance(data, str | Path) and not is_address(str(data))
        self._files = {path: _seen(path) for path in _files(Path(data))} if named else {}

    def check(self) -> None:
        """Refuse to go on where a file has changed."""
        for path, seen in self._files.items():
            if _seen(path) != seen:
                raise SfumatoError(
                    f"{path} has changed since this run opened it: run again when nobody writes to "
                    "it"
                )


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (each for each in path.rglob("*") if each.is_file())
    elif path.exists():
        yield path


def _seen(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
