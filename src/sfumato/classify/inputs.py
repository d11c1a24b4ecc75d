"""Inputs: the public map from a row's point to the vector that linear maps see, and back.

Each row's inputs follow from that row and the schema alone, and linearly up to a row's own scale,
so that a weight on inputs can be shown as a weight on pixels or on a table's features. They are
multiples of 2^-16, and the same bits wherever a row stands in a batch: sums over pixels are sums of
whole numbers below 2^53, exact in any order, and everything else is done number by number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.modelling.spaces import ImageSpace, PointSpace, TableSpace
from sfumato.schema import canonical_text

INPUT_BITS = 16

_CONTRAST = 10.0  # the length of every image, so that clipping treats all alike
_SMALLEST = 1e-6

Floats = NDArray[np.float32]


class Inputs(ABC):
    """What linear maps see of a row."""

    space: PointSpace

    @property
    @abstractmethod
    def size(self) -> int:
        """The length of the vector."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """A name for each feature of a point; empty for pixels."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """A bound on the length of any row's vector."""

    @abstractmethod
    def __call__(self, batch: Batch) -> Floats:
        """Give the vectors of encoded rows, on the grid."""

    @abstractmethod
    def features(self, batch: Batch) -> Floats:
        """Give the values on which `back` puts weights: a map's value is their product, summed."""

    @abstractmethod
    def back(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Give weights on features for weights on inputs (in the last axis)."""


@dataclass(frozen=True, eq=False)
class TableInputs(Inputs):
    """A table's points, with numbers from -1 to 1 and categories as they are, one-hot."""

    space: TableSpace

    @property
    def size(self) -> int:
        return self.space.size + sum(self.space.blocks)

    @cached_property
    def names(self) -> tuple[str, ...]:
        codec = self.space.codec
        numbers, categories, flags = [], [], []
        for name, cells in zip(codec.names, codec.columns, strict=True):
            if not cells.is_category:
                numbers.append(name)
                flags += [f"{name} is there", f"{name} is missing"] if cells.nullable else []
            elif name != self.space.target:
                categories += [f"{name} = {canonical_text(v)}" for v in cells.meanings]
        return (*numbers, *categories, *flags)

    @property
    def reach(self) -> float:
        return math.sqrt(self.size)

    def __call__(self, batch: Batch) -> Floats:
        points = self.space.from_batch(batch)
        numbers = points[:, : self.space.size]
        numbers[:] = 2 * np.clip(numbers, 0, 1) - 1
        return _on_grid(points)

    def features(self, batch: Batch) -> Floats:
        return self(batch)

    def back(self, weights: NDArray[Any]) -> NDArray[Any]:
        return weights


@dataclass(frozen=True, eq=False)
class ImageInputs(Inputs):
    """Images with their mean taken off and their contrast made equal, in low frequencies.

    `frequencies` cosines along each axis are kept (None: all): the noise falls on fewer weights
    then, and on smooth patterns only. The basis is public, like the paper's random projections.
    """

    space: ImageSpace
    frequencies: int | None

    @property
    def size(self) -> int:
        rows, columns = self._bases
        return len(rows) * len(columns) * self.space.codec.shape[2]

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    @property
    def reach(self) -> float:
        return 1.1 * _CONTRAST  # the rounded cosines are orthonormal within much less than that

    def __call__(self, batch: Batch) -> Floats:
        """Take cosines of whole pixels, then take off the mean and scale to the contrast.

        With N pixels p, the squared length of p less its mean is (N Σp² - (Σp)²) / N.
        """
        shape = self.space.codec.shape
        pixels = batch.pixels
        count, whole = pixels.shape[1], pixels.astype(np.int64)
        total, squares = whole.sum(axis=1), (whole * whole).sum(axis=1)
        lengths = np.sqrt((count * squares - total * total) / count)
        scale = _CONTRAST / np.maximum(lengths, 255 * _SMALLEST)
        (rows, columns), bits = self._bases, self._cosine_bits
        rows, columns = np.rint(rows * 2.0**bits), np.rint(columns * 2.0**bits)
        images = pixels.reshape(-1, *shape)
        kept = np.einsum("nhwc,ah,bw->nabc", images, rows, columns, optimize=True)
        ones = np.multiply.outer(rows.sum(axis=1), columns.sum(axis=1))[..., None]
        centred = kept - (total / count)[:, None, None, None] * ones
        scaled = centred * (scale[:, None, None, None] * 2.0 ** (-2 * bits))
        return _on_grid(scaled.reshape(len(images), self.size))

    def features(self, batch: Batch) -> Floats:
        centred = batch.unit - batch.unit.mean(axis=1, keepdims=True)
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        return np.asarray(centred * (_CONTRAST / np.maximum(lengths, _SMALLEST)), np.float32)

    def back(self, weights: NDArray[Any]) -> NDArray[Any]:
        rows, columns = self._bases
        grid = weights.reshape(*weights.shape[:-1], len(rows), len(columns), -1)
        return np.asarray(np.einsum("...abc,ah,bw->...hwc", grid, rows, columns, optimize=True))

    @property
    def _cosine_bits(self) -> int:
        """How finely cosines are rounded: so that sums over all pixels stay below 2^52."""
        height, width, _ = self.space.codec.shape
        return (52 - 8 - math.ceil(math.log2(height * width)) - 2) // 2

    @cached_property
    def _bases(self) -> tuple[Floats, Floats]:
        height, width, _ = self.space.codec.shape
        return _cosines(height, self.frequencies), _cosines(width, self.frequencies)


def inputs_of(space: PointSpace, frequencies: int | None) -> Inputs:
    """Give the inputs for rows of this space."""
    if isinstance(space, ImageSpace):
        return ImageInputs(space, frequencies)
    assert isinstance(space, TableSpace)
    return TableInputs(space)


def _on_grid(inputs: NDArray[Any]) -> Floats:
    """Round to the grid; 24 bits hold whatever lies within 2^8."""
    steps = np.rint(np.nan_to_num(inputs.astype(np.float64)) * 2.0**INPUT_BITS)
    steps = np.clip(steps, -(2**24), 2**24)
    return np.asarray(steps * 2.0**-INPUT_BITS, np.float32)


def _cosines(size: int, frequencies: int | None) -> Floats:
    """Give the lowest cosines over so many pixels, orthonormal, as rows."""
    places = (np.arange(size) + 0.5) / size
    basis = np.cos(np.pi * np.outer(np.arange(frequencies or size)[:size], places))
    return np.asarray(basis / np.linalg.norm(basis, axis=1, keepdims=True), np.float32)
