"""Gathering: what a training needs of all rows, in memory or, where that is too much, on disk."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.spool import Spool

MOST_IN_MEMORY = 1 << 28
"""More bytes than this go to disk, where there is a spool."""


class Gathering:
    """Arrays with one entry for each row, to which batches are added one after the other.

    Large ones lie in files of the spool, which only their owner may read, and are mapped into
    memory: a training that takes few rows at a time holds no more than those.

    >>> found = Gathering()
    >>> found.add([np.zeros((2, 3)), np.ones(2)]); found.add([np.zeros((1, 3)), np.ones(1)])
    >>> [array.shape for array in found.whole()]
    [(3, 3), (3,)]
    """

    def __init__(self, spool: Spool | None = None) -> None:
        self._spool = spool
        self._parts: list[Sequence[NDArray[Any]]] = []
        self._bytes = 0
        self._files: list[IO[bytes]] = []
        self._kinds: list[tuple[np.dtype[Any], tuple[int, ...]]] = []
        self._open = ExitStack()

    def add(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Take in what is needed of more rows."""
        arrays = [np.ascontiguousarray(array) for array in arrays]
        self._parts.append(arrays)
        self._bytes += sum(array.nbytes for array in arrays)
        if self._spool is not None and self._bytes > MOST_IN_MEMORY:
            self._write(self._spool)

    def _write(self, spool: Spool) -> None:
        spool.open()
        with spool.plain_errors():
            for part in self._parts:
                if not self._files:
                    self._kinds = [(array.dtype, array.shape[1:]) for array in part]
                    self._files = [
                        self._open.enter_context(spool.new_file(f"gathered-{place}"))
                        for place in range(len(part))
                    ]
                for file, array in zip(self._files, part, strict=True):
                    file.write(array.data)
        self._parts.clear()

    def whole(self) -> tuple[NDArray[Any], ...]:
        """Give all that was gathered; nothing can be added after this."""
        if not self._files:
            return tuple(np.concatenate(arrays) for arrays in zip(*self._parts, strict=True))
        assert self._spool is not None
        self._write(self._spool)
        with self._spool.plain_errors():
            self._open.close()
            return tuple(
                np.memmap(self._spool.path(f"gathered-{place}"), kind, "c").reshape(-1, *shape)
                for place, (kind, shape) in enumerate(self._kinds)
            )
