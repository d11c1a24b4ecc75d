"""Inputs: the public map from a row's point to the vector that linear maps see, and back.

Each row's inputs follow from that row and the schema alone, and linearly up to a row's own scale,
so that a weight on inputs can be shown as a weight on pixels or on a table's features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import OTHER, CategoryCells
from sfumato.codec import Batch
from sfumato.generators.layout import ImageLayout, Layout, TableLayout
from sfumato.schema import Value, canonical_text

MISSING = "(missing)"

_CONTRAST = 10.0  # the length of every image, so that clipping treats all alike
_SMALLEST = 1e-6

Floats = NDArray[np.float32]


class Inputs(ABC):
    """What linear maps see of a row."""

    layout: Layout

    @property
    @abstractmethod
    def size(self) -> int:
        """The length of the vector."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """A name for each feature of a point; empty for pixels."""

    @abstractmethod
    def __call__(self, batch: Batch) -> Floats:
        """Give the vectors of encoded rows."""

    @abstractmethod
    def features(self, batch: Batch) -> Floats:
        """Give the values on which `back` puts weights: a map's value is their product, summed."""

    @abstractmethod
    def back(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Give weights on features for weights on inputs (in the last axis)."""


@dataclass(frozen=True, eq=False)
class TableInputs(Inputs):
    """A table's points, with numbers from -1 to 1 and categories as they are, one-hot."""

    layout: TableLayout

    @property
    def size(self) -> int:
        return self.layout.size + sum(self.layout.blocks)

    @cached_property
    def names(self) -> tuple[str, ...]:
        codec = self.layout.codec
        numbers, categories, flags = [], [], []
        for name, cells in zip(codec.names, codec.cells, strict=True):
            if not isinstance(cells, CategoryCells):
                numbers.append(name)
                nullable = codec.schema.modelled[name].nullable  # type: ignore[union-attr]
                flags += [f"{name} is there", f"{name} is missing"] if nullable else []
            elif name != self.layout.target:
                categories += [f"{name} = {canonical_text(v)}" for v in cell_values(cells)]
        return (*numbers, *categories, *flags)

    def __call__(self, batch: Batch) -> Floats:
        points = self.layout.from_batch(batch)
        points[:, : self.layout.size] *= 2
        points[:, : self.layout.size] -= 1
        return points

    def features(self, batch: Batch) -> Floats:
        return self(batch)

    def back(self, weights: NDArray[Any]) -> NDArray[Any]:
        return weights


@dataclass(frozen=True, eq=False)
class ImageInputs(Inputs):
    """Images with their mean taken off and their contrast made equal, in low frequencies.

    `frequencies` cosines along each axis are kept (0: all): the noise falls on fewer weights then,
    and on smooth patterns only. The basis is public, like the paper's random projections.
    """

    layout: ImageLayout
    frequencies: int

    @property
    def size(self) -> int:
        rows, columns = self._bases
        return len(rows) * len(columns) * self.layout.codec.shape[2]

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def __call__(self, batch: Batch) -> Floats:
        rows, columns = self._bases
        images = self.features(batch).reshape(-1, *self.layout.codec.shape)
        kept = np.einsum("nhwc,ah,bw->nabc", images, rows, columns, optimize=True)
        return np.asarray(kept, np.float32).reshape(len(images), self.size)

    def features(self, batch: Batch) -> Floats:
        centred = batch.unit - batch.unit.mean(axis=1, keepdims=True)
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        return np.asarray(centred * (_CONTRAST / np.maximum(lengths, _SMALLEST)), np.float32)

    def back(self, weights: NDArray[Any]) -> NDArray[Any]:
        rows, columns = self._bases
        grid = weights.reshape(*weights.shape[:-1], len(rows), len(columns), -1)
        return np.asarray(np.einsum("...abc,ah,bw->...hwc", grid, rows, columns, optimize=True))

    @cached_property
    def _bases(self) -> tuple[Floats, Floats]:
        height, width, _ = self.layout.codec.shape
        return _cosines(height, self.frequencies), _cosines(width, self.frequencies)


def inputs_of(layout: Layout, frequencies: int) -> Inputs:
    """Give the inputs for rows of this layout."""
    if isinstance(layout, ImageLayout):
        return ImageInputs(layout, frequencies)
    assert isinstance(layout, TableLayout)
    return TableInputs(layout)


def cell_values(cells: CategoryCells) -> tuple[Value, ...]:
    """Give what each cell of a category stands for."""
    return (*cells.values, *[OTHER] * cells.other, *[MISSING] * cells.nullable)


def _cosines(size: int, frequencies: int) -> Floats:
    """Give the lowest cosines over so many pixels, orthonormal, as rows."""
    places = (np.arange(size) + 0.5) / size
    basis = np.cos(np.pi * np.outer(np.arange(frequencies or size)[:size], places))
    return np.asarray(basis / np.linalg.norm(basis, axis=1, keepdims=True), np.float32)
