"""Counts: contingency tables of coded columns, all in one statistic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.statistic import Resolution, Statistic
from sfumato.privacy.zcdp import gaussian_scale
from sfumato.statistics.joint_counts import counted, joined


@dataclass(frozen=True, eq=False)
class Axis:
    """A coded column seen through a public map from its cells to groups."""

    column: int
    groups: NDArray[np.int32]

    def __post_init__(self) -> None:
        if not len(self.groups) or self.groups.min() < 0:
            raise ValueError("each cell must have a group")

    def of(self, batch: Batch) -> NDArray[np.integer[Any]]:
        """Give each row's group; a code beyond all cells has that of the nearest."""
        return np.take(self._small_groups, batch.codes[:, self.column], mode="clip")

    @cached_property
    def size(self) -> int:
        """The number of groups."""
        return int(self.groups.max()) + 1

    @cached_property
    def _small_groups(self) -> NDArray[np.integer[Any]]:
        """The same map, in less memory where that can be."""
        return self.groups.astype(np.int16) if self.size < 1 << 15 else self.groups

    def describe(self) -> dict[str, Any]:
        """Give the column, the size and a digest of the map."""
        digest = sha256(np.ascontiguousarray(self.groups, np.int32).tobytes()).hexdigest()[:16]
        return {"column": self.column, "size": self.size, "groups": digest}


@dataclass(frozen=True, eq=False)
class Counts(Statistic):
    """The joint counts of the groups of several tuples of axes.

    A row adds 1 to exactly one cell of every table, whatever its codes (`Axis.of`). Its vector
    holds T ones for T tables and zeros otherwise: norm sqrt(T), and non-negative, so replacing it
    costs at most sqrt(2 T).

    >>> yes_no = Axis(0, np.array([0, 1], np.int32))
    >>> Counts([(yes_no,)]).sum(Batch(np.array([[1], [1], [0]], np.int32), np.empty((3, 0))))
    array([1, 2])
    """

    tables: Sequence[tuple[Axis, ...]]

    @cached_property
    def sizes(self) -> list[int]:
        """The number of cells of each table."""
        return [math.prod(axis.size for axis in table) for table in self.tables]

    @property
    def dim(self) -> int:
        return sum(self.sizes)

    @property
    def largest_entry(self) -> int:
        return 1

    def sensitivity(self, relation: Relation) -> float:
        return _sensitivity(len(self.tables), relation)

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        groups = [axis.of(batch) for axis in self._axes]
        sizes = [axis.size for axis in self._axes]
        parts = counted(len(batch), groups, sizes, self._tables, self._joints)
        return np.concatenate([np.zeros(0, np.int64), *parts])

    @cached_property
    def _axes(self) -> list[Axis]:
        return list(dict.fromkeys(axis for table in self.tables for axis in table))

    @cached_property
    def _tables(self) -> list[tuple[int, ...]]:
        """The places of each table's axes."""
        place = {axis: index for index, axis in enumerate(self._axes)}
        return [tuple(place[axis] for axis in table) for table in self.tables]

    @cached_property
    def _joints(self) -> dict[tuple[int, ...], list[int]]:
        return joined(self._tables, [axis.size for axis in self._axes])

    def split(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Cut a sum (or a noisy one) into its tables, shaped."""
        start = 0
        for table, size in zip(self.tables, self.sizes, strict=True):
            yield values[start : start + size].reshape([axis.size for axis in table])
            start += size

    def resolutions(self) -> tuple[Resolution, ...]:
        """Give, for each axis of more than one group, over how many cells a group is spread."""
        found: Counter[tuple[int, int, int]] = Counter()
        for table, size in zip(self.tables, self.sizes, strict=True):
            apart = {axis.column: axis.size for axis in table if axis.size > 1}
            found.update((column, groups, size // groups) for column, groups in apart.items())
        return tuple(
            Resolution(
                kind="counts", column=column, classes=groups, cells=cells, reach=1.0, tables=tables
            )
            for (column, groups, cells), tables in found.items()
        )

    def describe(self) -> dict[str, Any]:
        return {
            "counts": [list(table) for table in self._tables],
            "axes": [axis.describe() for axis in self._axes],
        }


def counting_noise(tables: int, budget: Budget, share: float) -> float:
    """Give the noise of each cell when so many tables are counted for a share of the budget."""
    sensitivity = budget.max_rows_per_unit * _sensitivity(max(1, tables), budget.relation)
    return gaussian_scale(sensitivity, share * budget.rho)


def _sensitivity(tables: int, relation: Relation) -> float:
    return math.sqrt(tables if relation is Relation.ADD_REMOVE else 2 * tables)
