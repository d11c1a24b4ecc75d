"""Which tables a release counts, and in which groups: all pairs of columns, or single columns.

Every table is counted per class of the target. All pairs share the budget, so their noise grows
with the number of columns; but a fit that is aware of the noise reads them together, and it beats
a choice of fewer, sharper pairs down to a few rows per unit of noise. Only a table that is too
wide for its rows, whose columns all pairs would reduce to a few groups each, is better served by
its columns' tables per class alone. The decision rests on the schema, the budget and the one-way
estimates, which are already released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.pairs.grouping import MAX_GROUPS, Partition, group_cells

Floats = NDArray[np.floating[Any]]

MAX_CELLS = 2_000_000  # of a release, for the time that noise takes
CELL_SIGMAS = 2.0  # rows of a cell that two columns of even groups should have
FEWEST_GROUPS = 5  # that are allowed to a column for its sake
LEAST_ROWS = 5.0  # in units of the noise of all pairs
LEAST_DETAIL = 0.5  # of the single columns' resolution that all pairs must keep


@dataclass(frozen=True, eq=False)
class TableChoice:
    """The groups of each column, and the columns whose joint or own groups are counted."""

    groups: tuple[Partition, ...]
    pairs: tuple[tuple[int, int], ...]
    singles: tuple[int, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of each column."""
        return tuple(_size(groups) for groups in self.groups)

    @property
    def tables(self) -> int:
        """The number of tables: the square of the sensitivity to adding or removing a row."""
        return len(self.pairs) + len(self.singles)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give plain arrays, to be stored."""
        return {
            "pairs": np.array(self.pairs, np.int64).reshape(-1, 2),
            "singles": np.array(self.singles, np.int64),
            **{f"groups/{column}": groups for column, groups in enumerate(self.groups)},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> TableChoice:
        """Read back what `arrays` gave."""
        columns = sum(key.startswith("groups/") for key in arrays)
        return cls(
            tuple(arrays[f"groups/{column}"] for column in range(columns)),
            tuple((a, b) for a, b in arrays["pairs"].tolist()),
            tuple(arrays["singles"].tolist()),
        )


def choose_tables(
    masses: Sequence[Floats], ordered: Sequence[int], classes: int, noise: Callable[[int], float]
) -> TableChoice:
    """Choose for columns whose cells have the estimated `masses`.

    `ordered[i]` is how many leading cells of column i are neighbours; `noise(t)` is the deviation
    of the noise that t tables would get. With more than one class, the single columns' tables
    tell something, and all pairs must be worth more than them.
    """
    columns = len(masses)
    single = _grouped(masses, ordered, noise(columns), MAX_GROUPS)
    if columns > 1:
        sigma = noise(math.comb(columns, 2))
        rows = max(float(np.sum(mass)) for mass in masses)
        paired = _grouped_within(masses, ordered, classes, sigma, groups_in_pairs(rows, sigma))
        enough = rows >= LEAST_ROWS * sigma and _pair_cells(paired, classes) <= MAX_CELLS
        if enough and (classes == 1 or _detail(paired) >= LEAST_DETAIL * _detail(single)):
            live = [i for i, groups in enumerate(paired) if _size(groups) > 1]
            if len(live) > 1:
                return TableChoice(paired, tuple(combinations(live, 2)), ())
    live = [i for i, groups in enumerate(single) if _size(groups) > 1]
    return TableChoice(single, (), tuple(live))


def groups_in_pairs(rows: float, sigma: float) -> int:
    """Give how many groups of a line are worth while in a table of two with noise `sigma`.

    The noise of a cell is the same however many there are. So a relation that is spread over
    n x n even groups stands out of it as 1/n, while too few groups cannot tell it. Three numbers
    of groups were tried on each of four tables: cells of about twice the noise were among the best.

    >>> groups_in_pairs(40_000, 37.0), groups_in_pairs(20_000, 53.0), groups_in_pairs(900, 80.0)
    (20, 13, 5)
    """
    return int(np.clip(math.sqrt(rows / (CELL_SIGMAS * sigma)), FEWEST_GROUPS, MAX_GROUPS))


def _grouped(
    masses: Sequence[Floats], ordered: Sequence[int], sigma: float, most: int
) -> tuple[Partition, ...]:
    return tuple(
        group_cells(mass, count, sigma, most) for mass, count in zip(masses, ordered, strict=True)
    )


def _grouped_within(
    masses: Sequence[Floats], ordered: Sequence[int], classes: int, sigma: float, most: int
) -> tuple[Partition, ...]:
    """The finest groups, `most` at the most, whose pair tables stay within `MAX_CELLS`."""
    groups = _grouped(masses, ordered, sigma, most)
    while most > 2 and _pair_cells(groups, classes) > MAX_CELLS:
        most = max(2, int(0.8 * most))
        groups = _grouped(masses, ordered, sigma, most)
    return groups


def _pair_cells(groups: Sequence[Partition], classes: int) -> int:
    sizes = [size for size in map(_size, groups) if size > 1]
    return classes * (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def _detail(groups: Sequence[Partition]) -> float:
    return sum(math.log(_size(partition)) for partition in groups)


def _size(groups: Partition) -> int:
    return int(groups.max()) + 1
