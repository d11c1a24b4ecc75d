"""Columns seen through released one-way tables: the mass of each cell, and groups of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.pairs.grouping import draw_cells


@dataclass(frozen=True, eq=False)
class GroupedColumn:
    """One column's cells: how much mass each carries, and to which group it belongs."""

    mass: NDArray[np.float64]
    groups: NDArray[np.int32]

    @cached_property
    def size(self) -> int:
        """The number of groups."""
        return int(self.groups.max()) + 1

    @cached_property
    def group_mass(self) -> NDArray[np.float64]:
        """The mass of each group."""
        total: NDArray[np.float64] = np.bincount(self.groups, self.mass, self.size).astype(float)
        return total

    def only(self, cell: int) -> NDArray[np.float64]:
        """Give the likelihood of each group when the cell is known."""
        likelihood: NDArray[np.float64] = (np.arange(self.size) == self.groups[cell]).astype(float)
        return likelihood

    def draw_cells(
        self, groups: NDArray[np.integer[Any]], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw a cell within each group, in proportion to the cells' mass."""
        return draw_cells(groups, self.groups, self.mass, rng)


def save_columns(columns: Sequence[GroupedColumn]) -> dict[str, NDArray[Any]]:
    """Give plain arrays, to be stored."""
    return {
        "column_sizes": np.array([len(column.mass) for column in columns], np.int64),
        "cell_mass": np.concatenate([column.mass for column in columns]),
        "cell_groups": np.concatenate([column.groups for column in columns]),
    }


def load_columns(arrays: dict[str, NDArray[Any]]) -> list[GroupedColumn]:
    """Read back what `save_columns` gave."""
    ends = np.cumsum(arrays["column_sizes"])[:-1]
    masses = np.split(arrays["cell_mass"], ends)
    groups = np.split(arrays["cell_groups"], ends)
    return [GroupedColumn(m, g) for m, g in zip(masses, groups, strict=True)]
