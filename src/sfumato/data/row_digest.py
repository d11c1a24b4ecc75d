"""A digest of each encoded row, by which a unit's rows are put in an order of their own.

The hash is multilinear modulo 2^64 under fixed factors, and mixed: no secret, but as good as chance
for rows that nobody made up against it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch

_WORD = 8  # bytes
_BLOCK = 1 << 12  # rows, as many as stay in a core's own memory


def row_digests(batch: Batch) -> NDArray[np.uint64]:
    """Give a digest of each row, from that row alone.

    >>> rows = Batch(np.array([[1], [2], [1]], np.int32), np.empty((3, 0), np.float32))
    >>> first, second, third = row_digests(rows)
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    hashed = _of_bytes if batch.numbers.dtype == np.uint8 else _of_columns
    factors = _factors(_width(batch) + 1)
    blocks = (batch.where(slice(at, at + _BLOCK)) for at in range(0, len(batch), _BLOCK))
    found = [mixed(hashed(block, factors[1:]) + factors[0]) for block in blocks]
    return np.concatenate([np.zeros(0, np.uint64), *found])


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each word (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _factors(words: int) -> NDArray[np.uint64]:
    """Give odd factors, one for each word."""
    return np.random.Philox(key=0).random_raw(words) | np.uint64(1)


def _width(batch: Batch) -> int:
    size = sum(part.shape[1] * part.itemsize for part in (batch.codes, batch.numbers))
    return int(-(-size // _WORD))


def _of_bytes(batch: Batch, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Give the hashes of rows, from their bytes as whole words."""
    words = np.zeros((len(batch), len(factors)), np.uint64)
    parts = [np.ascontiguousarray(part) for part in (batch.codes, batch.numbers)]
    flat = np.concatenate([part.view(np.uint8) for part in parts if part.shape[1]], axis=1)
    words.view(np.uint8)[:, : flat.shape[1]] = flat
    hashes: NDArray[np.uint64] = words @ factors
    return hashes


def _of_columns(batch: Batch, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Give the same of rows that lie column by column, of which two make up a word."""
    halves = [
        np.ascontiguousarray(column).view(np.dtype("<u4"))
        for part in (batch.codes, batch.numbers)
        for column in part.T
    ]
    hashes = np.zeros(len(batch), np.uint64)
    for place, factor in enumerate(factors):
        word = halves[2 * place].astype(np.uint64)
        if 2 * place + 1 < len(halves):
            word |= halves[2 * place + 1].astype(np.uint64) << np.uint64(32)
        hashes += word * factor
    return hashes
