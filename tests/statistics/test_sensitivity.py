"""Every statistic obeys its declared sensitivity, under both relations, on hostile rows.

A new statistic is added to CASES and is then attacked like the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.statistic import Statistic, unit_sensitivity
from sfumato.statistics.algebra import Concat, PerClass, Quantized, Weighted, squares
from sfumato.statistics.counts import Axis, Counts
from sfumato.statistics.exact_map import MOST_COLUMNS, on_steps, squared_lengths
from sfumato.statistics.fourier import Fourier
from sfumato.statistics.hermite import Hermite
from sfumato.statistics.labelled_vectors import shortened
from sfumato.statistics.level_tables import LevelTable, ProductKernel, SumKernel
from sfumato.statistics.moments import LabelledMoments, on_grid
from sfumato.statistics.pixel_levels import PixelLevels
from sfumato.statistics.slopes import Slopes

CELLS = (3, 5, 4)
NUMBERS = 4


@dataclass(frozen=True)
class Raw:
    """A feature map that breaks its own promise: it hands through whatever the row holds."""

    nonnegative: bool
    norm: float = 0.7
    dim: int = NUMBERS

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        return batch.unit

    def describe(self) -> dict[str, Any]:
        return {"raw": self.nonnegative}


class Cube:
    """The row's numbers as coordinates, on a grid."""

    size = NUMBERS
    levels = 1 << 12

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        return batch.unit

    def describe(self) -> dict[str, Any]:
        return {"cube": NUMBERS}


def _axis(column: int, groups: int) -> Axis:
    return Axis(column, (np.arange(CELLS[column]) % groups).astype(np.int32))


class Places:
    """The levels of two columns and of two numbers."""

    def __call__(self, batch: Batch) -> NDArray[np.int64]:
        inside = np.fmin(np.fmax(batch.unit[:, :2], 0), 1)
        numbers = np.rint(inside * np.float32(8)).astype(np.int64)
        return np.concatenate([batch.codes[:, :2], numbers], axis=1)

    def describe(self) -> dict[str, Any]:
        return {"places": 4}


@dataclass(frozen=True)
class Labelled:
    """Labels and vectors as the row has them: any whole number, any length."""

    labels: int
    dim: int = NUMBERS

    def __call__(self, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return batch.codes[:, 1].astype(np.int64), batch.unit.astype(np.float64)

    def describe(self) -> dict[str, Any]:
        return {"labels": self.labels}


class Given:
    """A row's numbers as its features, on their grid, but not within it where they are none."""

    dim = NUMBERS

    def __call__(self, given: Any) -> NDArray[np.float64]:
        if isinstance(given, Batch):
            return on_steps(given.unit.astype(np.float64))
        return np.asarray(given)

    def describe(self) -> dict[str, Any]:
        return {"given": NUMBERS}

    def digest(self) -> str:
        return "given"


def _slopes() -> Slopes:
    weights = np.linspace(-2, 2, NUMBERS * 3).reshape(NUMBERS, 3)
    return Slopes.of(Given(), Given(), weights, 0.5)  # type: ignore[arg-type]


def _tables(bits: int) -> list[LevelTable]:
    line = LevelTable.of(Hermite.of_length(0.3, 4)(np.linspace(0, 1, 9)), bits)
    return [LevelTable.of(np.eye(3), bits), LevelTable.of(np.eye(5), bits), line, line]


SUM_KERNEL = SumKernel(Places(), _tables(20))
PRODUCTS = ProductKernel(Places(), _tables(12), [(0, 2, 3), (1, 3)])

WAVES = Quantized(Fourier(Cube(), 40, (0.1, 1.0)))

CASES: dict[str, Statistic] = {
    "sum kernel": SUM_KERNEL,
    "sum kernel per class": PerClass(SUM_KERNEL, column=2, classes=4),
    "product kernel": PRODUCTS,
    "product kernel per class": PerClass(PRODUCTS, column=2, classes=4),
    "product kernel of three": ProductKernel(Places(), _tables(8), [(0, 2, 3), (1, 2, 3)], 3),
    "fourier": WAVES,
    "fourier per class": PerClass(WAVES, column=1, classes=5),
    "fourier and categories per class": PerClass(
        Concat([WAVES, Weighted(Counts([(_axis(0, 3),)]), 1 << 20)]), column=1, classes=5
    ),
    "quantized": Quantized(Raw(nonnegative=False), bits=20),
    "quantized, finest": Quantized(Raw(nonnegative=False), bits=22),
    "quantized, coarsest": Quantized(Raw(nonnegative=False), bits=1),
    "quantized, non-negative": Quantized(Raw(nonnegative=True), bits=16),
    "per class": PerClass(Quantized(Raw(nonnegative=False)), column=1, classes=5),
    "per class, non-negative": PerClass(Quantized(Raw(nonnegative=True)), column=1, classes=5),
    "counts": Counts([(_axis(0, 3),), (_axis(1, 2), _axis(2, 4)), (_axis(0, 2), _axis(1, 5))]),
    "pixel levels": PixelLevels(NUMBERS),
    "moments": LabelledMoments(Labelled(3), 1.0, 1.5, 2.0),
    "moments of one label": LabelledMoments(Labelled(1), 1.0, 2.0, 1.0),
    "moments, pooled": LabelledMoments(Labelled(3), 1.0, 1.5, 2.0, pooled=True),
    "moments without squares": LabelledMoments(Labelled(3), 1.0, 1.0),
    "slopes": _slopes(),
    "weighted": Weighted(Counts([(_axis(0, 3),)]), 1000),
    "concatenation": Concat(
        [
            Weighted(Counts([(_axis(0, 3), _axis(1, 5))]), 7),
            PerClass(Quantized(Raw(nonnegative=True), bits=8), column=2, classes=4),
            Quantized(Raw(nonnegative=False), bits=5),
        ]
    ),
}


@st.composite
def batches(draw: st.DrawFn, least: int, most: int) -> Batch:
    """Rows with duplicates, zeros, NaN, infinities and extremes of every size.

    Nothing of it is what a codec promises: codes are beyond all cells, too, and below zero.
    """
    count = draw(st.integers(least, most))
    beyond = st.sampled_from([-1, -2, 3, 4, 5, 6, 100, 1 << 20, -(1 << 31), (1 << 31) - 1])
    codes = np.stack(
        [draw(hnp.arrays(np.int32, count, elements=st.integers(0, c - 1) | beyond)) for c in CELLS],
        axis=1,
    )
    number = st.one_of(
        st.floats(width=32),
        st.floats(-2, 2, width=32),
        st.sampled_from([0.0, 0.35, 0.7, -0.7, 1.0, float(np.float32(0.7))]),
    )
    unit = draw(hnp.arrays(np.float32, (count, NUMBERS), elements=number))
    if draw(st.booleans()):
        codes, unit = np.asfortranarray(codes), np.asfortranarray(unit)
    return Batch(codes.astype(draw(st.sampled_from([np.int32, np.int64]))), unit)


def _moved(statistic: Statistic, left: Batch, right: Batch) -> float:
    difference = statistic.sum(left) - statistic.sum(right)
    return float(np.sqrt(sum(int(value) ** 2 for value in difference)))


@pytest.mark.parametrize("case", CASES)
@given(rows=batches(1, 6), data=st.data())
def test_a_removed_row_moves_the_sum_by_at_most_the_sensitivity(
    case: str, rows: Batch, data: st.DataObject
) -> None:
    left_out = data.draw(st.integers(0, len(rows) - 1))
    rest = rows.where(np.arange(len(rows)) != left_out)
    bound = CASES[case].sensitivity(Relation.ADD_REMOVE)
    assert _moved(CASES[case], rows, rest) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("case", CASES)
@given(rows=batches(1, 6), other=batches(1, 1), data=st.data())
def test_a_replaced_row_moves_the_sum_by_at_most_the_sensitivity(
    case: str, rows: Batch, other: Batch, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    codes, unit = rows.codes.copy(), rows.unit.copy()
    codes[place], unit[place] = other.codes[0], other.unit[0]
    bound = CASES[case].sensitivity(Relation.REPLACE_ONE)
    assert _moved(CASES[case], rows, Batch(codes, unit)) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("relation", Relation)
@given(rows=batches(2, 6), other=batches(0, 2))
def test_a_unit_of_two_rows_moves_the_sum_by_at_most_twice_as_much(
    relation: Relation, rows: Batch, other: Batch
) -> None:
    statistic = CASES["concatenation"]
    if relation is Relation.ADD_REMOVE:
        other = other.where(np.zeros(len(other), bool))
    bound = unit_sensitivity(statistic, Budget(epsilon=1, relation=relation, max_rows_per_unit=2))
    rest = rows.where(np.arange(len(rows)) >= 2)
    neighbour = Batch(
        np.concatenate([rest.codes, other.codes]), np.concatenate([rest.unit, other.unit])
    )
    assert _moved(statistic, rows, neighbour) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("case", CASES)
@given(rows=batches(0, 6), data=st.data())
def test_sums_are_the_same_bits_for_every_order_and_split(
    case: str, rows: Batch, data: st.DataObject
) -> None:
    order = np.array(data.draw(st.permutations(range(len(rows)))), dtype=int)
    cut = data.draw(st.integers(0, len(rows)))
    shuffled = rows.where(order)
    split = CASES[case].sum(shuffled.where(slice(cut))) + CASES[case].sum(
        shuffled.where(slice(cut, None))
    )
    assert np.array_equal(CASES[case].sum(rows), split)


@pytest.mark.parametrize("case", CASES)
@given(rows=batches(1, 1))
def test_a_statistic_has_the_dimension_and_the_entries_that_it_declares(
    case: str, rows: Batch
) -> None:
    total = CASES[case].sum(rows)
    assert total.shape == (CASES[case].dim,)
    assert np.abs(total).max() <= CASES[case].largest_entry


def test_the_bounds_are_reached() -> None:
    """A bound that nothing reaches would hide a loose derivation."""
    statistic = Quantized(Raw(nonnegative=False), bits=20)
    long = Batch(np.zeros((1, 3), np.int32), np.array([[9, 0, 0, 0]], np.float32))
    far = Batch(np.zeros((1, 3), np.int32), np.array([[-9, 0, 0, 0]], np.float32))
    assert _moved(statistic, long, far) >= 0.999999 * statistic.sensitivity(Relation.REPLACE_ONE)
    levels = PixelLevels(NUMBERS)
    dark, bright = (
        Batch(np.zeros((1, 3), np.int32), np.full((1, NUMBERS), unit, np.float32))
        for unit in (0, 1)
    )
    assert _moved(levels, dark, bright) == levels.sensitivity(Relation.REPLACE_ONE)


def test_a_map_that_gives_a_row_two_vectors_is_refused() -> None:
    class Doubled:
        dim, norm, nonnegative = 1, 1.0, True

        def __call__(self, batch: Batch) -> np.ndarray:
            return np.ones((2 * len(batch), 1))

        def describe(self) -> dict[str, str]:
            return {}

    class Levels:
        def __call__(self, batch: Batch) -> np.ndarray:
            return np.zeros((2 * len(batch), 4), np.int64)

        def describe(self) -> dict[str, str]:
            return {}

    class Vectors(Labelled):
        def __call__(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
            return np.zeros(len(batch), np.int64), np.ones((2 * len(batch), NUMBERS))

    rows = Batch(np.zeros((3, 1), np.int32), np.zeros((3, 0), np.float32))
    with pytest.raises(ValueError, match="one vector for each row"):
        Quantized(Doubled()).sum(rows)
    with pytest.raises(ValueError, match="one vector for each row"):
        LabelledMoments(Vectors(3), 1.0, 1.0, 1.0, pooled=True).sum(rows)
    for kernel in (SumKernel(Levels(), _tables(20)), ProductKernel(Levels(), _tables(9), [(0, 1)])):
        with pytest.raises(ValueError, match="one level in each column"):
            kernel.sum(rows)


def test_a_group_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="each cell must have a group"):
        Axis(0, np.array([0, -1], np.int32))


def _matrices(row: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Give matrices of all layouts that hold a row, and its place."""
    rng = np.random.default_rng(len(row))
    for count in (1, 2, 3, 5, 16):
        for place in range(count):
            rows = rng.standard_normal((count, len(row)))
            rows[place] = row
            wide = np.zeros((count, len(row) + 3))
            wide[:, 1:-2] = rows
            yield rows, place
            yield np.asfortranarray(rows), place
            yield wide[:, 1:-2], place


@pytest.mark.parametrize("dim", [1, 3, 64, 1000, 4097, MOST_COLUMNS])
def test_lengths_are_the_same_bits_wherever_a_row_stands(dim: int) -> None:
    row = np.random.default_rng(dim).standard_normal(dim)
    for measure in (squared_lengths, on_grid, lambda rows: shortened(rows, 0.5)):
        alone = measure(row[None])[0]
        for rows, place in _matrices(row):
            assert np.array_equal(measure(rows)[place], alone)


def test_lengths_of_many_features_are_the_same_bits_wherever_a_row_stands() -> None:
    row = np.random.default_rng(0).standard_normal(2 * MOST_COLUMNS + 100)
    alone = squares(row[None])[0]
    assert all(squares(rows)[place] == alone for rows, place in _matrices(row))


def test_lengths_of_more_numbers_are_refused() -> None:
    """Beyond, numpy's own sums depend on the place of a row: then the limit has its reason."""
    rows = np.zeros((1, MOST_COLUMNS + 1))
    for measure in (squared_lengths, on_grid, lambda rows: shortened(rows, 0.5)):
        with pytest.raises(SfumatoError, match="more than 8,192 numbers"):
            measure(rows)


class Constant(Statistic):
    """The same number for each row: exchanging a row for another moves nothing."""

    dim = 1
    largest_entry = 1

    def sensitivity(self, relation: Relation) -> float:
        return 1.0 if relation is Relation.ADD_REMOVE else 0.0

    def sum(self, batch: Batch) -> np.ndarray:
        return np.array([len(batch)])

    def resolutions(self) -> tuple:
        return ()

    def describe(self) -> dict:
        return {}


def test_a_row_that_is_replaced_by_one_of_another_class_moves_two_blocks() -> None:
    parts = PerClass(Constant(), column=0, classes=2)
    one, other = (
        Batch(np.array([[label]], np.int32), np.empty((1, 0), np.float32)) for label in (0, 1)
    )
    moved = np.linalg.norm(parts.sum(one) - parts.sum(other))
    assert 1 < moved <= parts.sensitivity(Relation.REPLACE_ONE)
