"""One-way tables of all columns, in two releases: a coarse one, and a closer look where it pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.data.identifiers import ordinal_cells
from sfumato.data.table_codec import TableCodec
from sfumato.methods.pairs.grouping import (
    NoisyHistogram,
    Partition,
    coarse_partition,
    estimate_cells,
    refined_partition,
    row_count,
)
from sfumato.methods.pairs.guesses import guessed_share, with_rare, with_tails
from sfumato.privacy.budget import Budget, Spend
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_spend
from sfumato.statistics.counts import Axis, Counts

COARSE_SHARE = 0.12
REFINED_SHARE = 0.10  # if every column that can be refined is


@dataclass(frozen=True, eq=False)
class OneWay:
    """The estimated mass of every cell of every column, and the number of rows.

    `at_least` tells how many units have at least one row, two rows, and so on, where that counts;
    `guessed` is the share of each column that noise hides, and that a rule has put there.
    """

    mass: list[NDArray[np.float64]]
    rows: float
    sigma: float
    at_least: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))
    guessed: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


def release_one_way(curator: Curator, codec: TableCodec) -> OneWay:
    """Count every column coarsely, then once more those whose mass sits in few coarse slots."""
    coarse = _release(curator, "one-way", _all_partitions(codec, curator.budget), COARSE_SHARE)
    rows = row_count(list(coarse.values()))
    laid = curator.layout(
        "one-way-refined",
        lambda: {
            str(column): partition
            for column, cells in enumerate(codec.columns)
            if (partition := refined_partition(coarse[column], cells.ordered, rows)) is not None
        },
    )
    finer = {
        column: laid[str(column)] for column in range(len(codec.columns)) if str(column) in laid
    }
    refined: dict[int, NoisyHistogram] = {}
    if finer:
        share = REFINED_SHARE * len(finer) / len(_refinable(codec))
        refined = _release(curator, "one-way-refined", finer, share)
    seen = [
        estimate_cells(
            coarse[column],
            refined.get(column),
            cells.ordered,
            rows,
            cells.nullable,
            cells.is_category,
        )
        for column, cells in enumerate(codec.columns)
    ]
    mass = [
        with_rare(found, len(cells.listed))
        if cells.is_category
        else with_tails(found, cells.ordered, coarse[0].sigma)
        for found, cells in zip(seen, codec.columns, strict=True)
    ]
    ordinals = coarse.get(len(codec.columns))
    at_least = np.ones(1) if ordinals is None else ordinals.counts.astype(np.float64)
    guessed = np.array([guessed_share(*both) for both in zip(seen, mass, strict=True)])
    return OneWay(mass, rows, coarse[0].sigma, at_least, guessed)


def even_one_way(codec: TableCodec, rows: int, sigma: float) -> OneWay:
    """Give what would be found if rows were spread evenly: over categories, or along a number."""
    mass = []
    for cells in codec.columns:
        filled = cells.ordered or cells.size
        mass.append(np.where(np.arange(cells.size) < filled, rows / filled, 0.0))
    return OneWay(mass, float(rows), sigma)


def plan_one_way(codec: TableCodec, budget: Budget) -> list[Spend]:
    """Say what `release_one_way` would spend at the most."""
    spends = [plan_spend("one-way", _counts(_all_partitions(codec, budget)), budget, COARSE_SHARE)]
    refinable = _refinable(codec)
    if refinable:
        whole = {c: np.arange(codec.columns[c].size, dtype=np.int32) for c in refinable}
        spends.append(plan_spend("one-way-refined", _counts(whole), budget, REFINED_SHARE))
    return spends


def _release(
    curator: Curator, name: str, partitions: dict[int, Partition], share: float
) -> dict[int, NoisyHistogram]:
    statistic = _counts(partitions)
    release = curator.release(name, statistic, share)
    counts = [table.astype(np.float64) for table in statistic.split(release.values)]
    return {
        column: NoisyHistogram(partition, noisy, release.sigma)
        for (column, partition), noisy in zip(partitions.items(), counts, strict=True)
    }


def _counts(partitions: dict[int, Partition]) -> Counts:
    return Counts([(Axis(column, partition),) for column, partition in partitions.items()])


def _all_partitions(codec: TableCodec, budget: Budget) -> dict[int, Partition]:
    """Give the coarse partitions, and that of the rows of each unit where they are several."""
    cells = ordinal_cells(codec.schema, budget.max_rows_per_unit)
    ordinals = {len(codec.columns): np.arange(cells, dtype=np.int32)} if cells else {}
    return _coarse_partitions(codec) | ordinals


def _coarse_partitions(codec: TableCodec) -> dict[int, Partition]:
    return {
        column: coarse_partition(cells.size, cells.ordered, cells.slots)
        for column, cells in enumerate(codec.columns)
    }


def _refinable(codec: TableCodec) -> Sequence[int]:
    """The columns whose coarse slots hold more than one cell."""
    return [
        column
        for column, partition in _coarse_partitions(codec).items()
        if partition.max() + 1 < len(partition)
    ]
