"""Rows as points: how an encoded row lies in one flat vector, and how a vector becomes a row.

A point holds the numbers in the unit cube and then one block of probabilities per category, with
a block (present, missing) for each number that may be null. A private row's blocks are one-hot.
The class on which a generator is conditioned is not part of a point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.data.codes import ColumnCode
from sfumato.data.image_codec import IMAGE_CLASS, ImageCodec
from sfumato.data.image_set import ImageSet
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.schema import Value
from sfumato.statistics.counts import Axis

Points = NDArray[np.floating[Any]]
Classes = NDArray[np.integer[Any]]

_PIXEL_LEVELS = 255
_LEVEL_BITS = 18  # shared by the levels of a number and the number of numbers


@dataclass(frozen=True)
class NullFlag:
    """A number that may be null: its place, that of its missing flag, and what stands for null."""

    number: int
    flag: int
    default: float


class PointSpace(ABC):
    """What a generator's points mean."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """The number of classes; one without a target."""

    @property
    @abstractmethod
    def class_column(self) -> int:
        """The coded column that holds the class, where there is one."""

    @property
    @abstractmethod
    def class_cells(self) -> int:
        """The number of cells of that column."""

    @property
    @abstractmethod
    def condition(self) -> str | None:
        """The name under which a class can be given."""

    @property
    @abstractmethod
    def class_values(self) -> tuple[Value, ...]:
        """The classes that can be given, in the order of their numbers."""

    @property
    @abstractmethod
    def class_code(self) -> ColumnCode:
        """The code of the column that holds the class, where there is one."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers a point has."""

    @property
    @abstractmethod
    def levels(self) -> int:
        """How many steps of each number are told apart."""

    @property
    @abstractmethod
    def axes(self) -> tuple[Axis, ...]:
        """The columns behind the blocks, in order."""

    @property
    def flags(self) -> tuple[NullFlag, ...]:
        """The numbers that may be null."""
        return ()

    @property
    def blocks(self) -> tuple[int, ...]:
        """The size of each block."""
        return tuple(axis.size for axis in self.axes)

    def class_axis(self, apart: bool) -> Axis:
        """Give the axis that counts the rows of each class, or of all together."""
        cells = np.arange(self.class_cells, dtype=np.int32)
        return Axis(self.class_column, cells if apart and self.classes > 1 else 0 * cells)

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        """Give the numbers of a batch's rows."""
        return batch.unit

    def labels(self, batch: Batch) -> NDArray[np.int64]:
        """Give the classes of a batch's rows; a code beyond all classes is the nearest."""
        return np.clip(batch.codes[:, self.class_column], 0, self.class_cells - 1).astype(np.int64)

    def from_batch(self, batch: Batch) -> NDArray[np.float32]:
        """Give the points of a batch's rows."""
        blocks = [np.eye(axis.size, dtype=np.float32)[axis.of(batch)] for axis in self.axes]
        return np.concatenate([self(batch), *blocks], axis=1)

    @abstractmethod
    def decode(self, points: Points, classes: Classes, rng: np.random.Generator) -> Any:
        """Give the rows or images that points and their classes stand for."""

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify the numbers."""
        return {"numbers": self.size, "levels": self.levels}


@dataclass(frozen=True, eq=False)
class TableSpace(PointSpace):
    """The points of a table's rows; `target` is the column to condition on."""

    codec: TableCodec
    target: str | None = None

    def __post_init__(self) -> None:
        if self.target is None:
            return
        if not self.codec.columns[self.codec.index(self.target)].is_category:
            raise SfumatoError(f"the target '{self.target}' must be a category or a boolean")
        if len(self.codec.names) == 1:
            raise SfumatoError(f"there is no column to model besides the target '{self.target}'")

    @property
    def classes(self) -> int:
        return self.class_cells if self.target else 1

    @cached_property
    def class_column(self) -> int:
        return self.codec.index(self.target) if self.target else 0

    @property
    def class_cells(self) -> int:
        return self.class_code.size

    @property
    def condition(self) -> str | None:
        return self.target

    @property
    def class_values(self) -> tuple[Value, ...]:
        return self.class_code.listed if self.target else ()

    @property
    def class_code(self) -> ColumnCode:
        return self.codec.columns[self.class_column]

    @cached_property
    def size(self) -> int:
        return len(self._numbers)

    @cached_property
    def levels(self) -> int:
        return 1 << max(1, _LEVEL_BITS - math.ceil(math.log2(max(1, self.size))))

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        categories = [
            Axis(column, np.arange(cells.size, dtype=np.int32))
            for column, cells in enumerate(self.codec.columns)
            if cells.is_category and self.codec.names[column] != self.target
        ]
        flags = [
            Axis(column, (np.arange(cells.size) == cells.size - 1).astype(np.int32))
            for column, cells in self._numbers.items()
            if cells.nullable
        ]
        return (*categories, *flags)

    @cached_property
    def flags(self) -> tuple[NullFlag, ...]:
        nullable = [
            (place, cells.null_position)
            for place, cells in enumerate(self._numbers.values())
            if cells.nullable
        ]
        width = self.size + sum(self.blocks)
        first = width - 2 * len(nullable) + 1  # each block is (present, missing)
        return tuple(
            NullFlag(place, first + 2 * order, default)
            for order, (place, default) in enumerate(nullable)
        )

    def decode(self, points: Points, classes: Classes, rng: np.random.Generator) -> pa.Table:
        """Give a table; categories and nulls are drawn from the blocks' probabilities."""
        cut = np.cumsum((self.size, *self.blocks))[:-1]
        numbers, *blocks = np.split(points, cut, axis=1)
        drawn = {
            axis.column: _drawn(block, rng) for axis, block in zip(self.axes, blocks, strict=True)
        }
        if self.target:
            drawn[self.class_column] = np.asarray(classes, np.int64)
        place = {column: index for index, column in enumerate(self._numbers)}
        arrays = []
        for column, cells in enumerate(self.codec.columns):
            if cells.is_category:
                arrays.append(cells.decode(drawn[column], rng))
            else:
                missing = drawn[column] == 1 if column in drawn else None
                arrays.append(cells.from_unit(numbers[:, place[column]], missing))
        return self.codec.assemble(arrays, len(points))

    @cached_property
    def _numbers(self) -> dict[int, ColumnCode]:
        """The columns that have positions: numbers and moments."""
        return {i: column for i, column in enumerate(self.codec.columns) if not column.is_category}


@dataclass(frozen=True, eq=False)
class ImageSpace(PointSpace):
    """The points of an image set: the pixels."""

    codec: ImageCodec

    @property
    def classes(self) -> int:
        return self.codec.classes

    @property
    def class_column(self) -> int:
        return 0

    @property
    def class_cells(self) -> int:
        return self.codec.classes

    @property
    def condition(self) -> str | None:
        return IMAGE_CLASS if self.class_values else None

    @property
    def class_values(self) -> tuple[Value, ...]:
        return self.codec.images.classes

    @property
    def class_code(self) -> ColumnCode:
        return self.codec.class_code

    @property
    def size(self) -> int:
        return math.prod(self.codec.shape)

    @property
    def levels(self) -> int:
        return _PIXEL_LEVELS

    @property
    def axes(self) -> tuple[Axis, ...]:
        return ()

    def decode(self, points: Points, classes: Classes, rng: np.random.Generator) -> ImageSet:
        """Give pixels, and the labels as the schema spells them."""
        names = self.class_values
        return ImageSet(self.codec.decode(points), np.array(names)[classes] if names else None)


def space_of(codec: TableCodec | ImageCodec, target: str | None) -> PointSpace:
    """Give the space of rows of this code."""
    if isinstance(codec, TableCodec):
        return TableSpace(codec, target)
    if target is not None:
        raise SfumatoError("the classes of an image set are in its schema: leave out the target")
    return ImageSpace(codec)


def _drawn(block: Points, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one cell per row in proportion to the row's probabilities."""
    edges = np.cumsum(block, axis=1)
    drawn = (rng.random((len(block), 1)) * edges[:, -1:] >= edges).sum(axis=1)
    return np.asarray(np.minimum(drawn, block.shape[1] - 1))
