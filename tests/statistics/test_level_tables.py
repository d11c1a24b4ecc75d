"""Kernels from tables: exact sums, bounds that are met, and the kernels that they stand for."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Relation
from sfumato.statistics.hermite import Hermite
from sfumato.statistics.level_tables import LevelTable, ProductKernel, SumKernel, middle

SIZES = (5, 3, 4)


class Codes:
    """Every column's code is its level."""

    def __call__(self, batch: Batch) -> NDArray[np.int64]:
        return batch.codes.astype(np.int64)

    def describe(self) -> dict[str, Any]:
        return {"codes": list(SIZES)}


def _tables(bits: int) -> list[LevelTable]:
    line = LevelTable.of(Hermite.of_length(0.4, 3)(np.linspace(0, 1, 5)), bits)
    return [line, LevelTable.of(np.eye(3), bits), LevelTable.of(np.eye(4), bits)]


def _batch(rows: list[tuple[int, ...]]) -> Batch:
    return Batch(np.array(rows, np.int32).reshape(-1, 3), np.empty((len(rows), 0), np.float32))


KERNELS = [
    SumKernel(Codes(), _tables(20)),
    ProductKernel(Codes(), _tables(12), [(0, 1, 2)]),
    ProductKernel(Codes(), _tables(8), [(0, 1, 2)], degree=3),
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_pair_of_rows_passes_the_bound_and_few_stay_far_below(
    kernel: SumKernel | ProductKernel,
) -> None:
    rows = [kernel.sum(_batch([row])) for row in product(*(range(size) for size in SIZES))]
    norms = [math.sqrt(int((row * row).sum())) for row in rows]
    steps = [math.sqrt(int(np.square(a - b).sum())) for a in rows for b in rows]
    for relation, reached in (
        (Relation.ADD_REMOVE, max(norms)),
        (Relation.REPLACE_ONE, max(steps)),
    ):
        bound = kernel.sensitivity(relation)
        assert reached <= bound * (1 + 1e-12)
        assert reached >= 0.7 * bound


@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_are_the_same_in_any_split(kernel: SumKernel | ProductKernel) -> None:
    rng = np.random.default_rng(0)
    rows = [tuple(int(rng.integers(size)) for size in SIZES) for _ in range(50)]
    whole = kernel.sum(_batch(rows))
    assert (whole == sum(kernel.sum(_batch([row])) for row in rows)).all()
    assert len(whole) == kernel.dim
    assert not kernel.sum(_batch([])).any()


def test_a_product_is_the_outer_product_of_centred_features() -> None:
    line = Hermite.of_length(0.4, 3)(np.linspace(0, 1, 5))
    kernel = ProductKernel(Codes(), _tables(12), [(0, 1)])
    found = kernel.sum(_batch([(4, 2, 0)])) / 2.0**24
    expected = np.outer(line[4] - middle(line), np.eye(3)[2] - 1 / 3).ravel()
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_centring_changes_no_distance_and_shortens() -> None:
    line = Hermite.of_length(0.3, 5)(np.linspace(0, 1, 64))
    table = LevelTable.of(line, 20)
    apart = np.square(line[:, None] - line).sum(axis=2).max()
    assert table.squared_step / 2**40 == pytest.approx(apart, rel=1e-4)
    assert table.squared_norm / 2**40 < 0.75 * np.square(line).sum(axis=1).max()
    np.testing.assert_allclose(middle(np.eye(6)), 1 / 6, atol=0.02)


def test_a_single_level_is_only_counted() -> None:
    table = LevelTable.of(np.ones((1, 1)), 4)
    assert table.vectors.tolist() == [[16.0]]


@pytest.mark.parametrize("bits", [0, 25])
def test_impossible_grids_are_refused(bits: int) -> None:
    with pytest.raises(SfumatoError, match="bits"):
        LevelTable.of(np.eye(2), bits)
