"""Exact linear maps of pixels: the same bits wherever a row stands in a batch.

A product of floating-point matrices may round a row differently when its neighbours change, and a
rounded value on the edge between two cells would then fall to the other side: one row would move
others. So pixels are taken as the whole numbers that they are, and weights are rounded to whole
numbers. Then every product and partial sum is an integer below 2^53, exact in doubles in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError

_WEIGHT_STEPS = 2.0**28  # per unit of a pixel's weight
_STEPS = 2.0**12  # per unit of a coordinate
_REACH = 2.0**9  # coordinates are clamped to this size
MOST_COLUMNS = 1 << 13
"""So many numbers are added up in one go; beyond, numpy cuts rows by where they lie in a matrix."""


@dataclass(frozen=True, eq=False)
class ExactMap:
    """Coordinates ``(pixels - 255 offset) @ weights`` on a fixed grid, pixels from 0 to 255."""

    weights: NDArray[np.float64]  # (pixels, dim)
    offset: NDArray[np.float64]  # (dim,), subtracted from the product

    @classmethod
    def of(cls, weights: NDArray[np.float64], offset: NDArray[np.float64]) -> ExactMap:
        """Round the weights of pixels in [0, 1] and the offset of their product to the grid.

        Weights above 1 per step of a pixel would leave the range of exact sums; they are clamped.
        """
        per_step = np.clip(weights / 255, -1.0, 1.0)
        return cls(np.rint(per_step * _WEIGHT_STEPS), np.rint(offset * _WEIGHT_STEPS))

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return int(self.weights.shape[1])

    def __call__(self, batch: Batch) -> NDArray[np.float64]:
        """Give the coordinates of each row, multiples of 2^-12."""
        product = batch.pixels @ self.weights - self.offset
        return on_steps(product / _WEIGHT_STEPS)

    def describe(self) -> dict[str, Any]:
        """Give a digest of the map."""
        return {"exact": digest(self.weights, self.offset)}


def on_steps(coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round coordinates to the grid on which further products are exact."""
    return np.clip(np.rint(coordinates * _STEPS) / _STEPS, -_REACH, _REACH)


def squared_lengths(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the squared length of each row: the same bits in any batch, also where it is rounded.

    How terms are ordered must follow from their number alone. It does for rows of `MOST_COLUMNS`
    at most that lie in one piece each; in matrices that lie column by column, a row alone would be
    added up in another order than one of several.
    """
    if vectors.shape[1] > MOST_COLUMNS:
        raise SfumatoError(f"vectors of more than {MOST_COLUMNS:,} numbers cannot be measured")
    if vectors.strides[1] != vectors.itemsize:
        vectors = np.ascontiguousarray(vectors)
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors))


def digest(*arrays: NDArray[Any]) -> str:
    """Give a short name that changes with any bit of the arrays."""
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return sha256(content).hexdigest()[:16]
