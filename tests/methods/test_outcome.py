"""Classes are drawn last, as single columns and, where tables show it, pairs of columns tell."""

from itertools import combinations

import numpy as np
import pytest

from sfumato.methods.pairs.mixture import Mixture
from sfumato.methods.pairs.mixture_fit import fit_mixture
from sfumato.methods.pairs.noisy_tables import NoisyTables
from sfumato.methods.pairs.outcome import Outcome
from sfumato.methods.pairs.outcome_fit import fit_outcome

ROWS, SIZES = 20_000, (3, 2, 2, 4)


def simulated(log_odds, sigma, seed=0):
    """Give noisy tables of columns and a binary class, and the truth that they come from."""
    rng = np.random.default_rng(seed)
    groups = np.stack([rng.integers(0, size, ROWS) for size in SIZES], axis=1)
    truth = 1 / (1 + np.exp(-log_odds(groups)))
    classes = (rng.random(ROWS) < truth).astype(int)
    pairs = {}
    for i, j in combinations(range(len(SIZES)), 2):
        counts = np.zeros((2, SIZES[i], SIZES[j]))
        np.add.at(counts, (classes, groups[:, i], groups[:, j]), 1)
        pairs[i, j] = counts + rng.normal(0, sigma, counts.shape)
    tables = NoisyTables(sizes=SIZES, classes=2, sigma=sigma, pairs=pairs, singles={})
    one_way = [
        np.bincount(column, minlength=size) for column, size in zip(groups.T, SIZES, strict=True)
    ]
    return tables, one_way, np.bincount(classes).astype(float), groups, truth


def fitted(log_odds, sigma=20.0):
    tables, one_way, counts, groups, truth = simulated(log_odds, sigma)
    mixture = fit_mixture(tables, one_way, counts, components=20, restarts=1, steps=300)
    outcome = fit_outcome(mixture, tables, counts)
    assert outcome is not None
    return outcome, groups, truth


def test_single_columns_are_enough_where_they_tell_all() -> None:
    outcome, groups, truth = fitted(lambda g: g[:, 0] - 1.5 * g[:, 1] + 0.5)
    assert all(len(term) == 1 for term in outcome.terms)
    assert np.abs(outcome.shares(groups)[:, 1] - truth).mean() < 0.03


def test_two_columns_that_tell_only_together_are_found_in_the_tables() -> None:
    outcome, groups, truth = fitted(lambda g: 2.0 - 4.0 * (g[:, 1] ^ g[:, 2]))
    assert [term for term in outcome.terms if len(term) == 2] == [(1, 2)]
    assert np.abs(outcome.shares(groups)[:, 1] - truth).mean() < 0.05


def test_noise_is_not_taken_for_a_relation() -> None:
    outcome, groups, _ = fitted(lambda g: np.zeros(len(g)), sigma=100.0)
    assert all(len(term) == 1 for term in outcome.terms)
    assert np.abs(outcome.shares(groups)[:, 1] - 0.5).max() < 0.1


def test_draws_follow_the_shares_and_their_counts_hardly_vary() -> None:
    rng = np.random.default_rng(0)
    outcome = Outcome(np.zeros(3), SIZES, ((0,), (1, 3)), rng.normal(size=(3 + 8, 3)))
    groups = np.stack([rng.integers(0, size, 5_000) for size in SIZES], axis=1)
    shares = outcome.shares(groups)
    drawn = np.stack([outcome.draw(groups, rng) for _ in range(200)])
    for c in range(3):
        counts = (drawn == c).sum(axis=1)
        # The first class is off by less than one; independent draws would vary by some 30.
        assert np.abs(counts - shares[:, c].sum()).max() < (1 if c == 0 else 40)
        # Means of 200 draws of 0 or 1: 7 deviations, missed by chance once in 10^8 over all rows.
        error = (drawn == c).mean(axis=0) - shares[:, c]
        assert np.abs(error).max() < 7 * np.sqrt(0.25 / 200)


@pytest.mark.parametrize("given_class", [np.array([0.0, 1.0]), np.array([0.25, 0.5])])
def test_given_classes_come_with_the_columns_that_go_with_them(given_class) -> None:
    table = np.array([[0.5, 0.3, 0.2, 0.6, 0.4]])
    mixture = Mixture(np.array([0.9, 0.1]), np.ones((2, 1)), table, (3, 2))
    weights = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 0.0], [0.0, 1.0]])
    outcome = Outcome(np.log([0.9, 0.1]), (3, 2), ((0,), (1,)), weights)
    grid = np.array([(a, b) for a in range(3) for b in range(2)])
    wanted = (table[0][grid[:, 0]] * table[0][3 + grid[:, 1]])[:, None]
    wanted = wanted * outcome.shares(grid) * given_class
    rng = np.random.default_rng(1)
    classes, groups = outcome.sample(mixture, 200_000, rng, {}, given_class)
    found = np.zeros((6, 2))
    np.add.at(found, (2 * groups[:, 0] + groups[:, 1], classes), 1 / len(classes))
    # Frequencies of 200,000 draws: deviations of 0.0011 at the most.
    assert found == pytest.approx(wanted / wanted.sum(), abs=0.006)


def test_a_class_that_hardly_ever_comes_is_drawn_as_the_mixture_has_it() -> None:
    table = np.array([[0.9, 0.1], [0.0, 1.0]])
    mixture = Mixture(np.array([1 - 1e-7, 1e-7]), np.eye(2), table, (2,))
    outcome = Outcome(np.log([1 - 1e-7, 1e-7]), (2,), ((0,),), np.zeros((2, 2)))
    classes, groups = outcome.sample(
        mixture, 50, np.random.default_rng(0), {}, np.array([0.0, 1.0])
    )
    assert set(classes) == {1}
    assert set(groups[:, 0]) == {1}


def test_what_is_stored_draws_the_same() -> None:
    rng = np.random.default_rng(0)
    outcome = Outcome(np.zeros(2), SIZES, ((0,), (1, 3)), rng.normal(size=(3 + 8, 2)))
    again = Outcome.from_arrays(outcome.arrays())
    groups = np.stack([rng.integers(0, size, 50) for size in SIZES], axis=1)
    assert again.terms == outcome.terms
    assert (again.shares(groups) == outcome.shares(groups)).all()
