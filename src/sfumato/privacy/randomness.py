"""Randomness that nobody can predict, for noisy gradients: floating point, but no seed.

Exact discrete noise (`noise.py`) is too slow for a hundred thousand numbers in each of a thousand
steps. Here every random bit comes from the operating system, and only the arithmetic is that of
floating point. What is drawn is rounded to a grid far coarser than doubles before it meets a
private value (`dpsgd.py`), so that no bit of it can tell about that value. The tail ends at 12
sigma, beyond which a Gaussian lies with a probability of 1e-33.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_TAU = 2 * np.pi
_PIECE = 1 << 20


class Randomness(Protocol):
    """The two draws that a private step needs. Tests inject a seeded one."""

    def normal(self, size: int) -> NDArray[np.float64]:
        """Draw independent standard normals."""

    def chosen(self, rows: int, rate: float) -> NDArray[np.int64]:
        """Choose each row independently with probability `rate`; give their places."""


class SystemRandomness:
    """Draws made of the operating system's entropy (os.urandom)."""

    def normal(self, size: int) -> NDArray[np.float64]:
        """Draw by Box and Muller's method."""
        pairs = -(-size // 2)
        bits = _words(3 * pairs) >> 11  # as many as a double holds
        high, low, turn = bits[:pairs], bits[pairs : 2 * pairs], bits[2 * pairs :]
        uniform = high * 2.0**-53 + (low + 1) * 2.0**-106  # fine near zero, and never zero
        radius = np.sqrt(-2 * np.log(uniform))
        angle = turn * (_TAU * 2.0**-53)
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]

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
