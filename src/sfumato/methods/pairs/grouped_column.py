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

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The mass of each cell, with a trace everywhere: a group without any is drawn evenly."""
        return self.mass + 1e-12 * max(float(np.sum(self.mass)), 1.0)

    def likelihood(self, kept: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the part of each group when parts of its cells are kept, at the most 1."""
        whole = np.bincount(self.groups, self.weights)
        part = np.bincount(self.groups, self.weights * kept) / whole
        return np.asarray(part / part.max())

    def draw_cells(
        self,
        groups: NDArray[np.integer[Any]],
        rng: np.random.Generator,
        kept: NDArray[np.float64] | float = 1.0,
    ) -> NDArray[np.int64]:
        """Draw a cell within each group, in proportion to the mass that is kept of the cells."""
        weights = self.weights * kept
        allowed = np.flatnonzero(weights)  # rounding must not reach the other cells
        cells = draw_cells(groups, self.groups[allowed], weights[allowed], rng)
        return np.asarray(allowed[cells], np.int64)


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
    for mass, group in zip(masses, groups, strict=True):
        if len(mass) != len(group) or not 0 <= group.min() <= group.max() < len(group):
            raise ValueError("a cell belongs to a group that cannot be")  # it could be huge
    return [GroupedColumn(m, g) for m, g in zip(masses, groups, strict=True)]
