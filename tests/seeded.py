"""Noise and draws from a seed: for tests only, put in the wall's place for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray


class Seeded:
    """Draws for the wall: rounded Gaussian noise, `scale` times what it should be."""

    def __init__(self, seed: int = 0, scale: float = 1.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.scale = scale
        self.steps = 0

    def noise(self, size: int, sigma: float) -> NDArray[np.int64]:
        self.steps += 1
        return np.rint(self.scale * sigma * self.rng.standard_normal(size)).astype(np.int64)

    def chosen(self, rows: int, rate: float) -> NDArray[np.int64]:
        return np.flatnonzero(self.rng.random(rows) < rate)


class Counting(Seeded):
    """Adds 0, 1, 2, …"""

    def noise(self, size: int, sigma: float) -> NDArray[np.int64]:
        return np.arange(size)


class NoNoise(Seeded):
    """Draws rows, and adds nothing."""

    def noise(self, size: int, sigma: float) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)


@contextmanager
def drawing(random: Any) -> Iterator[Any]:
    """Let the wall draw noise and rows from this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.privacy.wall.discrete_gaussian", random.noise)
        patch.setattr("sfumato.privacy.wall.poisson_sample", random.chosen)
        yield random


@contextmanager
def seeded_entropy(seed: int) -> Iterator[None]:
    """Let the bits of which noise is made follow from a seed; all else is as for users."""
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.privacy.noise.urandom", rng.bytes)
        yield
