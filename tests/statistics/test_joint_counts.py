"""Tables that are counted together have the counts of tables that are counted one by one."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.data.batch import Batch
from sfumato.statistics.counts import Axis, Counts
from sfumato.statistics.joint_counts import joined


def one_by_one(statistic: Counts, batch: Batch) -> np.ndarray:
    parts = []
    for table in statistic.tables:
        counts = np.zeros([axis.size for axis in table], np.int64)
        places = [axis.groups[batch.codes[:, axis.column]] for axis in table]
        np.add.at(counts, tuple(places), 1) if places else counts.__iadd__(len(batch))
        parts.append(counts.ravel())
    return np.concatenate(parts)


@pytest.mark.parametrize("seed", range(20))
def test_tables_counted_together_are_those_counted_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(2, 9))
    cells = rng.integers(1, 60, columns)
    axes = [
        Axis(i, np.sort(rng.integers(0, rng.integers(1, 40), cells[i])).astype(np.int32))
        for i in rng.integers(0, columns, 10)
    ]
    for size in ((1 << 15) - 2, 1 << 17):  # just small enough for short numbers, and too large
        axes.append(Axis(0, np.full(cells[0], size, np.int32)))
    tables = [tuple(axes[i] for i in rng.integers(0, 12, rng.integers(0, 4))) for _ in range(40)]
    tables = [table for table in tables if np.prod([axis.size for axis in table]) < 1 << 19]
    codes = np.stack([rng.integers(0, size, 500) for size in cells], axis=1).astype(np.int32)
    statistic = Counts(tables)
    for rows in (0, 1, 500):
        batch = Batch(codes[:rows], np.empty((rows, 0), np.float32))
        assert np.array_equal(statistic.sum(batch), one_by_one(statistic, batch))


def test_pairs_of_many_columns_are_counted_in_a_third_of_the_tables() -> None:
    pairs = [(i, j) for i in range(15) for j in range(i)]
    joints = joined(pairs, [16] * 15)
    assert sorted(number for numbers in joints.values() for number in numbers) == list(range(105))
    assert len(joints) <= 40
