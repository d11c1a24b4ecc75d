from itertools import combinations

import numpy as np
import pytest

from sfumato.methods.pairs.mixture_fit import (
    fit_mixture,
    make_problem,
    noise_norm,
    objective,
)
from sfumato.methods.pairs.noisy_tables import NoisyTables


def noisy(rows, classes, sizes, sigma, rng, singles=()):
    def count(*columns):
        shape = (classes.max() + 1, *(sizes[i] for i in columns))
        table = np.zeros(shape)
        np.add.at(table, (classes, *(rows[:, i] for i in columns)), 1)
        return table + rng.normal(0, sigma, shape)

    paired = [i for i in range(len(sizes)) if i not in singles]
    return NoisyTables(
        sizes=sizes,
        classes=int(classes.max()) + 1,
        sigma=sigma,
        pairs={pair: count(*pair) for pair in combinations(paired, 2)},
        singles={i: count(i) for i in singles},
    )


def chained(rng, count=5000):
    """Three columns that follow each other, one that stands alone, and two classes."""
    classes = (rng.random(count) < 0.3).astype(int)
    first = (rng.integers(0, 2, count) + classes) % 3
    second = np.where(rng.random(count) < 0.9, first, rng.integers(0, 3, count))
    third = np.where(rng.random(count) < 0.9, second, rng.integers(0, 3, count))
    return np.stack([first, second, third, rng.integers(0, 2, count)], axis=1), classes


def one_way(rows, sizes):
    return [np.bincount(rows[:, i], minlength=size) for i, size in enumerate(sizes)]


@pytest.mark.parametrize("singles", [(), (1,), (0, 1, 2, 3)])
def test_the_gradient_is_that_of_the_objective(singles):
    rng = np.random.default_rng(0)
    rows, classes = chained(rng, 300)
    sizes = (3, 3, 3, 2)
    tables = noisy(rows, classes, sizes, 2.0, rng, singles)
    problem = make_problem(tables, one_way(rows, sizes), np.bincount(classes), np.float64)
    point = [rng.normal(size=(5, 11)), rng.normal(size=(2, 5))]
    _, _, *gradients = objective(problem, *point, 0.7)
    for which, place in ((0, (1, 4)), (0, (4, 10)), (1, (0, 2)), (1, (1, 4))):
        values = []
        for step in (1e-6, -1e-6):
            moved = [array.copy() for array in point]
            moved[which][place] += step
            values.append(objective(problem, *moved, 0.7)[1])
        slope = (values[0] - values[1]) / 2e-6
        assert gradients[which][place] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_chi2_counts_every_cell_once():
    rng = np.random.default_rng(1)
    rows, classes = chained(rng, 300)
    tables = noisy(rows, classes, (3, 3, 3, 2), 2.0, rng, (3,))
    problem = make_problem(tables, one_way(rows, (3, 3, 3, 2)), np.array([1e-9, 1e-9]), np.float64)
    released = [*tables.pairs.values(), *tables.singles.values()]
    chi2, *_ = objective(problem, np.zeros((2, 11)), np.zeros((2, 2)), 0.0)
    assert chi2 == pytest.approx(sum((table**2).sum() for table in released) / 4)
    assert problem.cells == sum(table.size for table in released)


def test_the_fit_recovers_pairs_that_were_released():
    rng = np.random.default_rng(2)
    rows, classes = chained(rng, 20_000)
    sizes = (3, 3, 3, 2)
    tables = noisy(rows, classes, sizes, 10.0, rng)
    mixture = fit_mixture(
        tables, one_way(rows, sizes), np.bincount(classes), components=20, restarts=2
    )
    drawn_classes, drawn = mixture.sample(20_000, rng)
    for i, j in combinations(range(4), 2):
        real, synthetic = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
        np.add.at(real, (classes, rows[:, i], rows[:, j]), 1)
        np.add.at(synthetic, (drawn_classes, drawn[:, i], drawn[:, j]), 1)
        assert np.abs(real - synthetic).sum() / 40_000 < 0.03


def test_noise_alone_leaves_the_columns_independent():
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 4, (400, 6))
    classes = np.zeros(400, int)
    tables = noisy(rows, classes, (4,) * 6, 200.0, rng)
    mixture = fit_mixture(tables, one_way(rows, (4,) * 6), np.array([400.0]), restarts=1)
    weighted = mixture.probabilities * mixture.weights[0][:, None]
    interaction = mixture.probabilities.T @ weighted - np.outer(weighted.sum(0), weighted.sum(0))
    assert np.abs(interaction[:4, 4:]).max() < 0.01


def test_single_columns_need_one_component_a_class():
    rng = np.random.default_rng(4)
    rows, classes = chained(rng)
    sizes = (3, 3, 3, 2)
    tables = noisy(rows, classes, sizes, 5.0, rng, (0, 1, 2, 3))
    mixture = fit_mixture(tables, one_way(rows, sizes), np.bincount(classes))
    shares = (mixture.weights @ mixture.probabilities)[:, :3]
    real = np.stack([np.bincount(rows[classes == c, 0], minlength=3) for c in (0, 1)])
    assert mixture.weights.shape == (2, 2)
    assert shares == pytest.approx(real / real.sum(axis=1, keepdims=True), abs=0.03)


def test_restarts_progress_and_seeds():
    rng = np.random.default_rng(5)
    rows, classes = chained(rng, 200)
    tables = noisy(rows, classes, (3, 3, 3, 2), 5.0, rng)
    seen = []
    fits = [
        fit_mixture(
            tables,
            one_way(rows, (3, 3, 3, 2)),
            np.bincount(classes),
            components=4,
            restarts=2,
            steps=20,
            seed=seed,
            progress=seen.append,
        )
        for seed in (1, 1, 2)
    ]
    assert fits[0].weights.shape == (2, 8)
    assert fits[0].weights.sum(axis=1) == pytest.approx(1.0)
    assert (fits[0].probabilities == fits[1].probabilities).all()
    assert (fits[0].probabilities != fits[2].probabilities).any()
    assert seen[-1] == 1.0
    assert all(0 <= share <= 1 for share in seen)


@pytest.mark.parametrize("sizes", [(), (1,), (1, 2), (5000,)])
def test_extreme_shapes_can_be_fitted(sizes):
    rng = np.random.default_rng(6)
    rows = np.zeros((1, len(sizes)), int)
    tables = NoisyTables(sizes=sizes, classes=1, sigma=1e4, pairs={}, singles={})
    counts = tables.class_counts(np.array([-50.0]), 100.0)
    mixture = fit_mixture(tables, one_way(rows, sizes), counts, steps=5)
    assert mixture.sample(3, rng)[1].shape == (3, len(sizes))


def test_class_counts_weigh_totals_by_their_noise():
    pairs = {(0, 1): np.full((2, 2, 2), 25.0)}
    tables = NoisyTables(sizes=(2, 2), classes=2, sigma=1.0, pairs=pairs, singles={})
    assert tables.class_counts(np.array([0.0, 200.0]), 2.0).tolist() == [50.0, 150.0]


def test_the_norm_of_noise_is_that_of_a_random_matrix():
    rng = np.random.default_rng(7)
    pairs = {pair: 50.0 * np.eye(2)[None] for pair in combinations(range(200), 2)}
    tables = NoisyTables(sizes=(2,) * 200, classes=1, sigma=1.0, pairs=pairs, singles={})
    problem = make_problem(tables, [np.ones(2)] * 200, np.array([100.0]))
    # orthogonal to the constants each pair has one direction left: half a standard normal each
    assert noise_norm(problem, rng) == pytest.approx(0.5 * 2 * np.sqrt(200), rel=0.1)
