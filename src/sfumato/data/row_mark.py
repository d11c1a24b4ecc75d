"""A mark of a set of rows: the same for the same rows, in whatever order and pieces they are read.

Each row is hashed under a secret key, and the hashes are added up, so that marks of parts add up to
the mark of the whole. The hash is multilinear modulo 2^64, twice (two rows that differ collide with
probability 2^-31 at most in each), and mixed, so that no row makes up for another.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch

_LANES = 2
_WORD = 8  # bytes
_BLOCK = 1 << 12  # rows, as many as stay in a core's own memory


class RowMark:
    """A keyed digest that grows with the rows that are added.

    >>> def rows(*values):
    ...     return Batch(np.array([values], np.int32).T, np.empty((len(values), 0), np.float32))
    >>> whole, parts = RowMark(b"key"), RowMark(b"key")
    >>> whole.add(rows(1, 2, 3)); parts.add(rows(3)); parts.add(rows(2, 1))
    >>> whole.hexdigest() == parts.hexdigest()
    True
    """

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._total = np.zeros(_LANES, np.uint64)
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Take in more rows."""
        if not len(batch):
            return
        for hashes in self._hashes(batch):
            self._total += hashes.sum(axis=1, dtype=np.uint64)
        self.rows += len(batch)

    def digests(self, batch: Batch) -> NDArray[np.uint64]:
        """Give a digest of each row, for itself."""
        return np.concatenate(
            [np.zeros(0, np.uint64), *(hashes[0] for hashes in self._hashes(batch))]
        )

    def _hashes(self, batch: Batch) -> Iterator[NDArray[np.uint64]]:
        """Give hashes, by lane and row: those that differ tell nothing of each other."""
        factors, first = self._factors(_width(batch)), self._factors(1)[0]
        hashed = _of_bytes if batch.numbers.dtype == np.uint8 else _of_columns
        for start in range(0, len(batch), _BLOCK):
            hashes = hashed(batch.where(slice(start, start + _BLOCK)), factors)
            yield mixed(hashes + first[:, None])

    def merge(self, other: RowMark) -> None:
        """Take in the rows that another mark of the same key has."""
        self._total += other._total
        self.rows += other.rows

    def hexdigest(self) -> str:
        """Give the mark as a text that tells nothing without the key."""
        content = self._total.tobytes() + self.rows.to_bytes(8, "little")
        return hmac.new(self.key, content, "sha256").hexdigest()

    def _factors(self, words: int) -> NDArray[np.uint64]:
        """Give secret odd factors, one for each word and lane."""
        seed = hmac.new(self.key, words.to_bytes(8, "little"), "sha256").digest()
        bits = np.random.Philox(key=np.frombuffer(seed[:16], np.uint64))
        return bits.random_raw(words * _LANES).reshape(words, _LANES) | np.uint64(1)


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each word (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _width(batch: Batch) -> int:
    size = sum(part.shape[1] * part.itemsize for part in (batch.codes, batch.numbers))
    return int(-(-size // _WORD))


def _of_bytes(batch: Batch, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Give the hashes of rows, from their bytes as whole words: by lane and row."""
    words = np.zeros((len(batch), len(factors)), np.uint64)
    parts = [np.ascontiguousarray(part) for part in (batch.codes, batch.numbers)]
    flat = np.concatenate([part.view(np.uint8) for part in parts if part.shape[1]], axis=1)
    words.view(np.uint8)[:, : flat.shape[1]] = flat
    return (words @ factors).T


def _of_columns(batch: Batch, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Give the same of rows that lie column by column, of which two make up a word."""
    halves = [
        np.ascontiguousarray(column).view(np.dtype("<u4"))
        for part in (batch.codes, batch.numbers)
        for column in part.T
    ]
    hashes = np.zeros((_LANES, len(batch)), np.uint64)
    for place, factor in enumerate(factors):
        word = halves[2 * place].astype(np.uint64)
        if 2 * place + 1 < len(halves):
            word |= halves[2 * place + 1].astype(np.uint64) << np.uint64(32)
        for lane in range(_LANES):
            hashes[lane] += word * factor[lane]
    return hashes
