"""Many small tables of the same rows, counted together.

To count a table is to go over all rows once. Three axes of 16 groups make one joint table of 4096
cells, which still stays in a core's own memory; the tables of their three pairs are its sums. So a
third of the work is left. Sums of whole numbers are exact, in whatever way they are made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_CELLS = 1 << 12
"""Joint tables have at most so many cells."""

Table = tuple[int, ...]
"""The places of a table's axes among all axes."""


def joined(tables: Sequence[Table], sizes: Sequence[int]) -> dict[Table, list[int]]:
    """Give joint tables, each with the numbers of the tables that are its sums.

    Axes join a table one after the other: each time the one that brings the most pairs that are not
    counted yet, as long as the cells are few. Only tables of two axes are joined.

    >>> joined([(0, 1), (0, 2), (1, 2), (2, 3)], [16, 16, 16, 2])
    {(0, 1, 2): [0, 1, 2], (2, 3): [3]}
    """
    waiting = np.zeros((len(sizes), len(sizes)), bool)
    pairs: dict[Table, list[int]] = {}
    for number, table in enumerate(tables):
        if _is_pair(table):
            waiting[table] = waiting[table[::-1]] = True
            pairs.setdefault((min(table), max(table)), []).append(number)
    found: dict[Table, list[int]] = {}
    for number, table in enumerate(tables):
        if not _is_pair(table):
            found.setdefault(table, []).append(number)
        elif waiting[table]:
            joint = _grown(table, waiting, np.asarray(sizes))
            covered = [(a, b) for a in joint for b in joint if a < b and waiting[a, b]]
            found[joint] = sorted(each for pair in covered for each in pairs[pair])
            waiting[np.ix_(joint, joint)] = False
    return found


def _is_pair(table: Table) -> bool:
    return len(table) == 2 and table[0] != table[1]


def _grown(table: Table, waiting: NDArray[np.bool_], sizes: NDArray[np.int64]) -> Table:
    joint = list(table)
    while True:
        room = MOST_CELLS // math.prod(int(sizes[axis]) for axis in joint)
        brought = waiting[joint].sum(axis=0) * (sizes <= room)
        brought[joint] = 0
        best = int(brought.argmax())
        if brought[best] < 2:
            return tuple(joint)
        joint.append(best)


def counted(
    rows: int,
    groups: Sequence[NDArray[np.integer[Any]]],
    sizes: Sequence[int],
    tables: Sequence[Table],
    joints: Mapping[Table, Sequence[int]],
) -> list[NDArray[np.int64]]:
    """Count rows, of which the group on each axis is given, in all tables."""
    found: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * len(tables)
    for joint, numbers in joints.items():
        shape = [sizes[axis] for axis in joint]
        size = math.prod(shape)
        kind = np.dtype(np.int16 if size < 1 << 15 else np.int64)
        cells: NDArray[np.integer[Any]] = np.zeros(rows, kind)
        for axis in joint:
            cells *= sizes[axis]
            cells += groups[axis].astype(kind, copy=False)
        counts = np.bincount(cells, minlength=size).reshape(shape)
        for number in numbers:
            if tables[number] == joint:
                found[number] = counts.ravel()
                continue
            kept = [joint.index(axis) for axis in tables[number]]
            left = tuple(place for place in range(len(joint)) if place not in kept)
            table = counts.sum(axis=left)
            found[number] = (table if kept[0] < kept[1] else table.T).ravel()
    return found
