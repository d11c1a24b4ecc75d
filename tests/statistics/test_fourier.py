"""Random Fourier features: norm 1, the right kernel, the same values for rows and tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.privacy.budget import Relation
from sfumato.privacy.statistic import Statistic
from sfumato.statistics.algebra import Concat, PerClass, Quantized, Weighted
from sfumato.statistics.counts import Axis, Counts
from sfumato.statistics.fourier import Fourier, best_features, error_bound

torch = pytest.importorskip("torch")

NUMBERS = 4
CELLS = 3


@dataclass(frozen=True)
class Unit:
    """The unit cube as it is."""

    size: int = NUMBERS
    levels: int = 1 << 12

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        return batch.unit

    def describe(self) -> dict[str, Any]:
        return {"unit": self.size}


def _categories(count: int) -> Counts:
    axis = Axis(0, np.arange(CELLS, dtype=np.int32))
    return Counts([(axis,)] * count)


WAVES = Quantized(Fourier(Unit(), 40, (0.1, 1.0)))
MIXED = Concat([WAVES, Weighted(_categories(2), int(2**20 / math.sqrt(2)))])
CASES: dict[str, Statistic] = {
    "unlabelled": WAVES,
    "labelled": PerClass(WAVES, column=0, classes=CELLS),
    "heterogeneous": MIXED,
    "heterogeneous, labelled": PerClass(MIXED, column=0, classes=CELLS),
    "two features": Quantized(Fourier(Unit(), 2, (0.3,)), bits=22),
}


def _rows(count: int, seed: int = 0, size: int = NUMBERS, levels: int = 1 << 12) -> Batch:
    """Rows whose coordinates lie on the grid of levels."""
    rng = np.random.default_rng(seed)
    unit = rng.integers(0, levels, (count, size), endpoint=True) / levels
    return Batch(rng.integers(0, CELLS, (count, 1)).astype(np.int32), unit.astype(np.float32))


@st.composite
def hostile(draw: st.DrawFn, least: int, most: int) -> Batch:
    """Rows with NaN, infinities and numbers of every size."""
    count = draw(st.integers(least, most))
    codes = draw(hnp.arrays(np.int32, (count, 1), elements=st.integers(0, CELLS - 1)))
    number = st.one_of(st.floats(width=32), st.floats(0, 1, width=32))
    return Batch(codes, draw(hnp.arrays(np.float32, (count, NUMBERS), elements=number)))


def _moved(statistic: Statistic, left: Batch, right: Batch) -> float:
    difference = statistic.sum(left) - statistic.sum(right)
    return math.sqrt(sum(int(value) ** 2 for value in difference))


@pytest.mark.parametrize("case", CASES)
@given(rows=hostile(1, 5), other=hostile(1, 1))
def test_one_row_moves_a_sum_by_at_most_its_sensitivity(
    case: str, rows: Batch, other: Batch
) -> None:
    statistic = CASES[case]
    rest = rows.where(slice(1, None))
    replaced = Batch(
        np.concatenate([other.codes, rest.codes]), np.concatenate([other.unit, rest.unit])
    )
    removed = statistic.sensitivity(Relation.ADD_REMOVE)
    assert _moved(statistic, rows, rest) <= removed * (1 + 1e-12)
    exchanged = statistic.sensitivity(Relation.REPLACE_ONE)
    assert _moved(statistic, rows, replaced) <= exchanged * (1 + 1e-12)


@pytest.mark.parametrize("case", CASES)
def test_sums_are_the_same_bits_for_every_order_and_split(case: str) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, CELLS, (333, 1)).astype(np.int32)
    rows = Batch(codes, rng.random((333, NUMBERS), dtype=np.float32))
    shuffled = rows.where(rng.permutation(333))
    parts = [shuffled.where(slice(a, b)) for a, b in ((0, 1), (1, 18), (18, 149), (149, 333))]
    total = np.sum([CASES[case].sum(part) for part in parts], axis=0)
    assert np.array_equal(CASES[case].sum(rows), total)


def test_many_coordinates_give_the_same_bits_in_every_batch() -> None:
    """As many as an image has, where processors order sums differently by the batch's size."""
    waves = Fourier(Unit(784, 255), 300, (10.0,))
    rng = np.random.default_rng(0)
    rows = Batch(np.zeros((257, 1), np.int32), rng.random((257, 784), dtype=np.float32))
    whole = waves(rows)
    for cut in (1, 3, 64, 200):
        assert np.array_equal(whole[:cut], waves(rows.where(slice(cut))))
        assert np.array_equal(whole[cut:], waves(rows.where(slice(cut, None))))


def test_a_heterogeneous_row_is_replaced_for_less_than_the_papers_bound() -> None:
    assert MIXED.sensitivity(Relation.REPLACE_ONE) == pytest.approx(math.sqrt(6) * 2**20, rel=1e-5)


def test_every_row_has_norm_one() -> None:
    waves = Fourier(Unit(), 400, (0.05, 0.5, 5.0))
    assert np.linalg.norm(waves(_rows(500)), axis=1) == pytest.approx(1.0, abs=1e-6)


def test_inner_products_approximate_the_mean_of_the_gaussian_kernels() -> None:
    scales = (0.3, 1.0)
    waves = Fourier(Unit(), 40_000, scales)(_rows(20))
    points = _rows(20).unit.astype(float)
    squared = np.square(points[:, None] - points).sum(axis=2)
    kernel = np.mean([np.exp(-squared / (2 * scale**2)) for scale in scales], axis=0)
    assert np.abs(waves @ waves.T - kernel).max() < 0.03


def test_rows_and_tensors_have_the_same_features() -> None:
    waves = Fourier(Unit(), 200, (0.05, 0.5, 5.0))
    rows = _rows(50)
    tensor = waves.of_tensor(torch.as_tensor(rows.unit)).numpy()
    assert np.abs(tensor - waves(rows)).max() < 1e-5


def test_gradients_flow_to_the_points() -> None:
    points = torch.full((3, NUMBERS), 0.4, requires_grad=True)
    Fourier(Unit(), 20, (0.5,)).of_tensor(points)[:, 0].sum().backward()
    assert points.grad is not None
    assert torch.isfinite(points.grad).all()
    assert points.grad.abs().min() > 0


def test_a_seed_fixes_the_frequencies_and_the_description_names_them() -> None:
    first, again, other = (Fourier(Unit(), 20, (0.5,), seed) for seed in (0, 0, 1))
    assert np.array_equal(first.frequencies, again.frequencies)
    assert first.describe() == again.describe()
    assert first.describe() != other.describe()


def test_frequencies_keep_the_spread_of_their_scale_after_rounding() -> None:
    frequencies = Fourier(Unit(50, 64), 4000, (0.2,)).frequencies
    assert frequencies.std() == pytest.approx(5.0, rel=0.02)


def test_the_error_bound_is_that_of_the_paper() -> None:
    # by hand, for D = 2: Gamma(3/2) / Gamma(1) = sqrt(pi) / 2
    by_hand = 4 * 2 * 0.01 + 8 * math.sqrt(2) * 0.1 * math.sqrt(math.pi) / 2
    by_hand += 8 * math.sqrt(math.pi)
    assert error_bound(2, rows=10, noise=1.0) == pytest.approx(by_hand)


def test_the_best_number_of_features_minimises_the_bound_and_grows_with_the_rows() -> None:
    best = best_features(1000, 4.0, most=10_000)
    assert error_bound(best, 1000, 4.0) <= min(
        error_bound(best - 20, 1000, 4.0), error_bound(best + 20, 1000, 4.0)
    )
    assert best_features(300, 4.0, 10_000) < best < best_features(10**6, 4.0, 10_000) == 10_000
