"""Low frequencies: images as the first coefficients of an orthonormal cosine transform."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.fft import idctn

# Orthonormal: brightness, red against blue, green against both.
_OPPONENT = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
_WEIGHTS = np.array([1.0, 4.0, 4.0])  # colours get half the resolution of brightness


@dataclass(frozen=True)
class LowFrequencies:
    """The `count` lowest frequencies of images of a shape; brightness before colour."""

    shape: tuple[int, int, int]
    count: int

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """The orthonormal rows that make coefficients of pixels, (count, pixels)."""
        lowest = np.argsort(self._squares, kind="stable")[: self.count]
        units = np.zeros((len(lowest), len(self._squares)))
        units[np.arange(len(lowest)), lowest] = 1
        images = idctn(units.reshape(-1, *self.shape), axes=(1, 2), norm="ortho")
        if self.shape[2] == 3:
            images = images @ _OPPONENT
        rows: NDArray[np.float64] = images.reshape(len(lowest), -1)
        return rows

    @property
    def sizes(self) -> NDArray[np.float64]:
        """The frequency of each coefficient, in half waves; a colour's counts double."""
        sizes: NDArray[np.float64] = np.sqrt(np.sort(self._squares)[: self.count])
        return sizes

    @property
    def _squares(self) -> NDArray[np.float64]:
        """The squared frequency of every coefficient that an image has."""
        height, width, channels = self.shape
        i, j = np.mgrid[:height, :width]
        squares: NDArray[np.float64] = (i**2 + j**2)[..., None] * _WEIGHTS[:channels]
        return squares.ravel()

    @property
    def radius(self) -> float:
        """The largest norm that an image's coefficients can have, pixels in [-1/2, 1/2]."""
        return 0.5 * float(np.sqrt(np.prod(self.shape)))
