"""Randomness that nobody can predict, for noisy gradients: which rows a step takes, and its noise.

Every random bit comes from the operating system, and there is no seed. The noise is exact, and the
same that releases get (`noise.py`).
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.noise import discrete_gaussian

_PIECE = 1 << 20


class Randomness(Protocol):
    """The two draws that a private step needs. Tests inject a seeded one."""

    def noise(self, size: int, sigma: float) -> NDArray[np.int64]:
        """Draw independent whole numbers of this scale."""

    def chosen(self, rows: int, rate: float) -> NDArray[np.int64]:
        """Choose each row independently with probability `rate`; give their places."""


class SystemRandomness:
    """Draws made of the operating system's entropy (os.urandom)."""

    def noise(self, size: int, sigma: float) -> NDArray[np.int64]:
        """Draw from the discrete Gaussian."""
        return discrete_gaussian(size, sigma)

    def chosen(self, rows: int, rate: float) -> NDArray[np.int64]:
        """Choose a row where 64 random bits lie below the rate: with at most that probability."""
        if rate >= 1:
            return np.arange(rows)
        below = np.uint64(int(rate * 2.0**64))
        # A piece at a time: random bits for all rows at once could take much memory.
        chosen = [
            start + np.flatnonzero(_words(min(_PIECE, rows - start)) < below)
            for start in range(0, rows, _PIECE)
        ]
        return np.concatenate([np.zeros(0, np.int64), *chosen])


def _words(count: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * count), np.uint64)
