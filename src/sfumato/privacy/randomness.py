"""Randomness that nobody can predict, for noisy gradients: floating point, but no seed.

Exact discrete noise (`noise.py`) is too slow for a hundred thousand numbers in each of a thousand
steps. Here every random bit comes from the operating system, and only the arithmetic is that of
floating point: the noise's tail ends at 8.5 sigma, and which doubles can occur may depend on the
private value (Mironov 2012). The certificate says so.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_TAU = 2 * np.pi


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
        bits = _words(2 * pairs) >> 11  # as many as a double holds
        radius = np.sqrt(-2 * np.log((bits[:pairs] + 1) * 2.0**-53))  # never the log of zero
        angle = bits[pairs:] * (_TAU * 2.0**-53)
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]

    def chosen(self, rows: int, rate: float) -> NDArray[np.int64]:
        """Choose a row where 64 random bits lie below the rate: with at most that probability."""
        if rate >= 1:
            return np.arange(rows)
        return np.flatnonzero(_words(rows) < np.uint64(int(rate * 2.0**64)))


def _words(count: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * count), np.uint64)
