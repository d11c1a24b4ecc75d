"""Pixel levels: how many images have each level of brightness at each pixel.

An image adds 1 to exactly one level of each of its P pixels. Its vector holds P ones and zeros
otherwise: norm sqrt(P), and non-negative, so replacing it costs at most sqrt(2 P). Levels are those
of bytes, looked up in a public table, so they depend on the image alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.privacy.budget import Relation
from sfumato.privacy.statistic import Resolution, Statistic

BRIGHTEST = np.array([0, 15, 31, 63, 95, 127, 159, 191, 223, 247, 255])
"""The brightest byte of each level. Black is one of its own: backgrounds are; white nearly is."""

LEVEL_OF_BYTE = np.searchsorted(BRIGHTEST, np.arange(256)).astype(np.uint8)


@dataclass(frozen=True)
class PixelLevels(Statistic):
    """Counts of levels, pixel by pixel.

    >>> dark_and_bright = Batch(np.zeros((1, 1), np.int32), np.array([[0, 255]], np.uint8))
    >>> PixelLevels(2).read(PixelLevels(2).sum(dark_and_bright))[:, [0, -1]].tolist()
    [[1, 0], [0, 1]]
    """

    pixels: int

    @property
    def dim(self) -> int:
        return self.pixels * len(BRIGHTEST)

    @property
    def largest_entry(self) -> int:
        return 1

    def sensitivity(self, relation: Relation) -> float:
        return math.sqrt(self.pixels if relation is Relation.ADD_REMOVE else 2 * self.pixels)

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        levels = LEVEL_OF_BYTE[batch.pixels.astype(np.uint8)]
        counts = [(levels == level).sum(axis=0) for level in range(len(BRIGHTEST))]
        return np.stack(counts, axis=1).astype(np.int64).ravel()

    def read(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give a sum, or a noisy one, as (pixels, levels)."""
        return values.reshape(self.pixels, len(BRIGHTEST))

    def resolutions(self) -> tuple[Resolution, ...]:
        """Give nothing: classes are not told apart."""
        return ()

    def describe(self) -> dict[str, Any]:
        return {"pixel levels": BRIGHTEST.tolist(), "pixels": self.pixels}
