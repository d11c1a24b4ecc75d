import numpy as np
import pytest

from sfumato.methods.pairs.grouping import (
    MAX_CLASSES,
    NoisyHistogram,
    coarse_partition,
    draw_cells,
    estimate_cells,
    group_cells,
    group_classes,
    project_to_simplex,
    refined_partition,
    row_count,
)


def counted(values, partition, sigma=1e-6):
    counts = np.bincount(partition[values], minlength=int(partition.max()) + 1).astype(float)
    return NoisyHistogram(partition, counts, sigma)


@pytest.mark.parametrize(("size", "ordered"), [(1, 0), (1, 1), (5000, 0), (130, 128), (4100, 4096)])
def test_a_coarse_partition_numbers_its_slots_in_order(size, ordered):
    partition = coarse_partition(size, ordered)
    assert len(partition) == size
    assert partition[0] == 0
    assert set(np.diff(partition)) <= {0, 1}
    assert len(set(partition[ordered:])) == size - ordered


def test_only_heavy_slots_are_taken_apart():
    coarse = coarse_partition(4097, 4096)
    values = np.concatenate([np.full(900, 70), np.full(10, 4000), np.full(500, 4096)])
    refined = refined_partition(counted(values, coarse), 4096, len(values))
    assert refined is not None
    assert np.bincount(refined)[refined[64:128]].max() == 1
    assert (refined[3968:4032] == refined[4000]).all()


def test_nothing_is_refined_in_pure_noise():
    noise = np.random.default_rng(0).normal(0, 50, 64)
    assert (
        refined_partition(NoisyHistogram(coarse_partition(4096, 4096), noise, 50.0), 4096, 1)
        is None
    )


def test_without_noise_refined_cells_are_recovered():
    coarse = coarse_partition(4098, 4096)
    values = np.concatenate([np.full(600, 70), np.full(300, 71), np.full(100, 4097)])
    histogram = counted(values, coarse)
    partition = refined_partition(histogram, 4096, 1000.0)
    mass = estimate_cells(histogram, counted(values, partition), 4096, 1000.0)
    assert mass[[70, 71, 4097]] == pytest.approx([600, 300, 100], abs=0.01)


@pytest.mark.parametrize("sigma", [0.1, 10.0, 1e6])
def test_estimates_are_non_negative_and_sum_to_the_rows(sigma):
    rng = np.random.default_rng(1)
    coarse = coarse_partition(1003, 1000)
    values = rng.integers(0, 30, 5000)
    histogram = counted(values, coarse, sigma)
    fine = (np.arange(1003) if sigma < 1 else np.repeat(np.arange(501), 3)[:1003]).astype(np.int32)
    refined = counted(values, fine, sigma) if sigma < 1 else None
    mass = estimate_cells(histogram, refined, 1000, 5000.0)
    assert mass.min() >= 0
    assert mass.sum() == pytest.approx(5000)


def test_the_row_count_is_never_below_one():
    assert row_count([NoisyHistogram(coarse_partition(3, 0), np.array([-9.0, 1, 2]), 1.0)]) == 1.0


def test_projection_is_the_nearest_point_of_the_simplex():
    rng = np.random.default_rng(2)
    values = rng.normal(size=6)
    nearest = project_to_simplex(values, 2.0)
    for other in rng.dirichlet(np.ones(6), 500) * 2:
        assert np.sum((nearest - values) ** 2) <= np.sum((other - values) ** 2) + 1e-12


def test_neighbours_are_merged_until_they_stand_out_of_the_noise():
    groups = group_cells(np.full(100, 10.0), 100, 12.5)
    assert (np.diff(groups) >= 0).all()
    assert np.bincount(groups, weights=np.full(100, 10.0)).min() >= 50


def test_a_heavy_cell_keeps_apart_from_its_neighbours():
    mass = np.full(99, 100.0)
    mass[39] = 9000
    groups = group_cells(mass, 99, 20.0)
    assert (groups == groups[39]).sum() == 1


def test_small_categories_share_a_group_and_large_ones_do_not():
    mass = np.concatenate([np.full(5, 500.0), np.full(4995, 1.0)])
    groups = group_cells(mass, 0, 40.0)
    assert len(set(groups[:5])) == 5
    assert len(set(groups[5:])) == 1


@pytest.mark.parametrize("mass", [np.zeros(10), np.ones(10) * 1e-9, np.eye(10)[9] * 100])
def test_columns_without_ordered_mass_give_valid_groups(mass):
    groups = group_cells(mass, 8, 1.0)
    assert set(groups) == set(range(groups.max() + 1))


def test_every_listed_class_is_kept_and_an_empty_other_is_not():
    assert group_classes(np.array([900.0, 0.0, 3.0, 0.5]), 3, 10.0).tolist() == [0, 1, 2, 0]
    assert group_classes(np.array([900.0, 50.0, 300.0]), 2, 10.0).tolist() == [0, 1, 2]


def test_classes_beyond_the_limit_share_one():
    groups = group_classes(np.arange(100.0) + 1, 100, 10.0)
    assert groups.max() == MAX_CLASSES
    assert len(set(groups[-MAX_CLASSES:])) == MAX_CLASSES


def test_cells_are_drawn_within_their_group_by_their_mass():
    partition, mass = np.array([1, 0, 1, 2, 2]), np.array([30.0, 5.0, 10.0, 1e-9, 1e-9])
    groups = np.repeat([0, 1, 2], 20_000)
    drawn = draw_cells(groups, partition, mass, np.random.default_rng(3))
    assert (partition[drawn] == groups).all()
    assert np.bincount(drawn) / 20_000 == pytest.approx([0.75, 1, 0.25, 0.5, 0.5], abs=0.02)


def test_a_value_beside_the_line_must_stand_out_of_the_noise_but_for_null():
    counts = np.array([500.0, 500.0, 29.0, 31.0, 5.0])
    mass = estimate_cells(
        NoisyHistogram(coarse_partition(5, 2), counts, 10.0), None, 2, 1036.0, nullable=True
    )
    assert mass == pytest.approx([500, 500, 0, 31, 5])


def test_far_tails_of_wide_bounds_stay_empty():
    """Noise on 60 empty slots would add up to hundreds of rows far from all others."""
    rng = np.random.default_rng(0)
    size = 4096
    truth = np.zeros(size)
    truth[64:128] = 10_000 / 64
    coarse_groups = coarse_partition(size, size)
    counts = np.bincount(coarse_groups, weights=truth)
    coarse = NoisyHistogram(coarse_groups, counts + rng.normal(0, 60, len(counts)), 60.0)
    fine_groups = refined_partition(coarse, size, 10_000.0)
    fine = np.bincount(fine_groups, weights=truth)
    refined = NoisyHistogram(fine_groups, fine + rng.normal(0, 60, len(fine)), 60.0)
    mass = estimate_cells(coarse, refined, size, 10_000.0)
    assert np.isclose(mass.sum(), 10_000)
    assert mass[512:].sum() == 0
