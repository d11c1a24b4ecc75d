"""Fingerprints: which rows the answers in a folder were made from, so that others are noticed.

A fingerprint is a digest under a random key. Both lie in a file beside the answers that only its
owner may read. It is private: whoever holds it can try out guesses of the whole data set.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.data.row_mark import RowMark
from sfumato.errors import SfumatoError
from sfumato.storage import write_whole


class Fingerprints:
    """The fingerprints of all rows that one question was ever asked about, oldest first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.known: list[str] = []
        key = secrets.token_hex(32)
        try:
            if path.exists():
                kept: dict[str, Any] = json.loads(path.read_text())
                key, self.known = kept["key"], list(kept["known"])
            self._key = bytes.fromhex(key)
        except (OSError, ValueError, KeyError, TypeError):
            raise SfumatoError(
                f"cannot read {path}, which tells whose answers lie beside it: delete it to use "
                "them for the data as they are now"
            ) from None

    def taken(self, read: Callable[[RowMark], object]) -> str:
        """Give the fingerprint of all rows that `read` adds to a mark."""
        mark = RowMark(self._key)
        read(mark)
        return mark.hexdigest()

    def add(self, fingerprint: str) -> None:
        """Keep a fingerprint, where nobody else may read it."""
        if fingerprint not in self.known:
            self.known.append(fingerprint)
            content = json.dumps({"key": self._key.hex(), "known": self.known})
            write_whole(self._path, content.encode(), private=True)
