from itertools import product

import numpy as np
import pytest

from sfumato.methods.pairs.mixture import ImpossibleError, Mixture


@pytest.fixture
def mixture():
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.ones(size), 4) for size in (3, 1, 2)]
    return Mixture(
        np.array([0.7, 0.3]),
        rng.dirichlet(np.ones(4), 2),
        np.concatenate(tables, axis=1),
        (3, 1, 2),
    )


def joint(mixture):
    """The probability of every class and row, by the definition."""
    table = np.zeros((2, 3, 1, 2))
    for c, x, y, z in product(range(2), range(3), range(1), range(2)):
        p = mixture.probabilities
        table[c, x, y, z] = mixture.class_shares[c] * np.sum(
            mixture.weights[c] * p[:, x] * p[:, 3 + y] * p[:, 4 + z]
        )
    return table


def frequencies(mixture, **conditions):
    classes, groups = mixture.sample(200_000, np.random.default_rng(1), **conditions)
    table = np.zeros((2, 3, 1, 2))
    np.add.at(table, (classes, *groups.T), 1)
    return table / table.sum()


def test_samples_follow_the_definition(mixture):
    assert frequencies(mixture) == pytest.approx(joint(mixture), abs=0.004)


def test_conditions_are_exact(mixture):
    likelihood, given_class = np.array([1.0, 0.0, 0.25]), np.array([0.2, 1.0])
    expected = joint(mixture) * likelihood[:, None, None] * given_class[:, None, None, None]
    drawn = frequencies(mixture, given={0: likelihood}, given_class=given_class)
    assert drawn == pytest.approx(expected / expected.sum(), abs=0.004)
    assert drawn[:, 1].sum() == 0


def test_an_impossible_condition_is_an_error(mixture):
    with pytest.raises(ImpossibleError, match="no probability"):
        mixture.sample(1, np.random.default_rng(0), given={0: np.zeros(3)})


def test_class_counts_are_exact_up_to_one_row_per_component(mixture):
    classes, _ = mixture.sample(1000, np.random.default_rng(2))
    assert abs((classes == 0).sum() - 700) <= 1


@pytest.mark.parametrize("count", [0, 1])
def test_any_number_of_rows_can_be_drawn(mixture, count):
    classes, groups = mixture.sample(count, np.random.default_rng(3))
    assert classes.shape == (count,)
    assert groups.shape == (count, 3)


def test_rows_are_in_random_order(mixture):
    classes, _ = mixture.sample(1000, np.random.default_rng(4))
    assert (np.diff(classes) != 0).sum() > 100


def test_arrays_give_the_same_mixture_back(mixture):
    again = Mixture.from_arrays(mixture.arrays())
    one, two = (m.sample(50, np.random.default_rng(5))[1] for m in (mixture, again))
    assert (one == two).all()
