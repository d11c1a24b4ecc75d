"""What a code of a column is: its values as integer cells on a public grid, and back.

Which cell a value has follows from the schema and from that value alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.schema import Value

MISSING = "(missing)"


@dataclass(frozen=True)
class Misfit:
    """Why the schema has no place for a value, what becomes of it, and what to change.

    `quoted` tells whether the values themselves explain it, to their owner; `usual` is the share
    of a column that is nothing to speak of.
    """

    reason: str
    becomes: str
    advice: str
    quoted: bool = False
    usual: float = 0.0


MISSING_VALUE = Misfit("missing", "", "nullable = true")


class ColumnCode(ABC):
    """How one column's values become cells, and back: numbers, moments or categories.

    A category has names and no positions; a number or a moment has positions in the unit interval
    between its bounds and no names.
    """

    nullable: bool

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of cells; that of null, where there is one, comes last."""

    @property
    def ordered(self) -> int:
        """How many leading cells are neighbours in order."""
        return 0

    @property
    def slots(self) -> NDArray[np.int32] | None:
        """The slot of each ordered cell, where neighbours that belong together are known."""
        return None

    @property
    def is_category(self) -> bool:
        """Whether its cells have names instead of positions."""
        return False

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each cell of a category."""
        return ()

    @property
    def meanings(self) -> tuple[Value, ...]:
        """What each cell of a category stands for: a listed value, another one, or none."""
        return ()

    @property
    def listed(self) -> tuple[Value, ...]:
        """The values that a category lists, in the order of their cells, which come first."""
        return ()

    @property
    def integer(self) -> bool:
        """Whether it counts in whole numbers."""
        return False

    @property
    def values_per_cell(self) -> float:
        """How many values share each of the ordered cells; a real number stands for its cell."""
        return 1.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The numbers at both ends of the unit interval."""
        raise TypeError("a category has no bounds")

    @property
    def null_position(self) -> float:
        """Where a null stands in the unit interval."""
        raise TypeError("a category has no position")

    @abstractmethod
    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.float32] | None]:
        """Give the cell of each value, and its position in the unit interval if it has one."""

    @abstractmethod
    def exact(self, given: pa.Array) -> pa.Scalar | None:
        """Give a single value in the column's type; None if it is not one of the column's."""

    @abstractmethod
    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> pa.Array:
        """Give a value of each cell; within a cell of numbers it is drawn evenly."""

    def from_unit(
        self, unit: NDArray[np.floating[Any]], missing: NDArray[np.bool_] | None = None
    ) -> pa.Array:
        """Give the values at positions in the unit interval."""
        raise TypeError("a category has no position")

    @abstractmethod
    def misfits(self, array: pa.Array) -> dict[Misfit, NDArray[np.bool_]]:
        """Tell which values the schema has no place for, by reason. Private."""
