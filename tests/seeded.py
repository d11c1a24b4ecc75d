"""Noise and draws from a seed: for tests only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.noise import Sampler


def seeded_noise(seed: int = 0) -> Sampler:
    """Rounded Gaussian noise."""
    rng = np.random.default_rng(seed)
    return lambda size, sigma: np.rint(rng.normal(0, sigma, size)).astype(np.int64)


class Seeded:
    """Draws for private steps, with noise `scale` times what it should be."""

    def __init__(self, seed: int = 0, scale: float = 1.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.scale = scale
        self.steps = 0

    def noise(self, size: int, sigma: float) -> NDArray[np.int64]:
        self.steps += 1
        return np.rint(self.scale * sigma * self.rng.standard_normal(size)).astype(np.int64)

    def chosen(self, rows: int, rate: float) -> NDArray[np.int64]:
        return np.flatnonzero(self.rng.random(rows) < rate)
