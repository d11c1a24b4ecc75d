import numpy as np
import pytest

from sfumato.methods.pairs.table_choice import MAX_CELLS, choose_tables


def noise(scale):
    return lambda tables: scale * np.sqrt(max(tables, 1))


def test_all_pairs_are_counted_when_rows_are_many():
    choice = choose_tables([np.full(50, 1000.0)] * 6, [50] * 6, 2, noise(5.0))
    assert len(choice.pairs) == choice.tables == 15
    assert choice.singles == ()


@pytest.mark.parametrize("mass", [60.0, 150.0])  # too few rows; rows enough, but little detail
def test_a_table_too_wide_for_its_rows_gets_its_columns_per_class(mass):
    choice = choose_tables([np.full(64, mass)] * 200, [64] * 200, 2, noise(8.0))
    assert choice.pairs == ()
    assert len(choice.singles) == 200


def test_without_a_target_pairs_are_kept_at_low_resolution():
    choice = choose_tables([np.full(64, 60.0)] * 100, [64] * 100, 1, noise(10.0))
    assert len(choice.pairs) == 4950
    assert max(choice.sizes) <= 3


def test_a_release_stays_within_its_size():
    choice = choose_tables([np.full(400, 1e6)] * 100, [400] * 100, 2, noise(0.1))
    cells = sum(2 * choice.sizes[i] * choice.sizes[j] for i, j in choice.pairs)
    assert 0 < cells <= MAX_CELLS


def test_columns_of_one_group_are_not_counted():
    masses = [np.array([100.0, 0.0]), np.full(4, 100.0), np.full(4, 100.0), np.zeros(9)]
    choice = choose_tables(masses, [0, 0, 0, 9], 2, noise(1.0))
    assert choice.pairs == ((1, 2),)


@pytest.mark.parametrize("columns", [0, 1])
@pytest.mark.parametrize("classes", [1, 3])
def test_fewer_than_two_columns_have_no_pairs(columns, classes):
    choice = choose_tables([np.full(4, 100.0)] * columns, [0] * columns, classes, noise(1.0))
    assert choice.pairs == ()
    assert choice.singles == tuple(range(columns))


def test_noise_far_above_the_rows_leaves_single_columns():
    choice = choose_tables([np.full(4, 1.0)] * 5, [0] * 5, 2, noise(1e4))
    assert choice.pairs == ()
