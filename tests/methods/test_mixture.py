from itertools import product

import numpy as np
import pytest

from sfumato.methods.pairs.links import Link
from sfumato.methods.pairs.mixture import ImpossibleError, Mixture

SIZES = (3, 1, 2, 3)


@pytest.fixture(params=["without links", "a link", "a tree"])
def mixture(request):
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.ones(size), 4) for size in SIZES]
    ends = {"without links": [], "a link": [(2, 0)], "a tree": [(0, 2), (2, 3), (2, 1)]}
    links = [
        Link(parent, child, rng.random((SIZES[parent], SIZES[child])) ** 2,
             rng.dirichlet(np.ones(SIZES[child]), 4))
        for parent, child in ends[request.param]
    ]  # fmt: skip
    return Mixture(
        np.array([0.7, 0.3]),
        rng.dirichlet(np.ones(4), 2),
        np.concatenate(tables, axis=1),
        SIZES,
        tuple(links),
    )


def joint(mixture):
    """The probability of every class and row, by the definition."""
    table = np.zeros((2, *SIZES))
    parents = {link.child: link for link in mixture.links}
    for c, *row in product(range(2), *map(range, SIZES)):
        within = mixture.weights[c].copy()
        for column, group in enumerate(row):
            if column in parents:
                link = parents[column]
                odds = link.odds[row[link.parent]] * link.weights
                within *= odds[:, group] / odds.sum(axis=1)
            else:
                within *= mixture.probabilities[:, mixture.blocks[column]][:, group]
        table[c, *row] = mixture.class_shares[c] * within.sum()
    assert np.isclose(table.sum(), 1)
    return table


def frequencies(mixture, **conditions):
    classes, groups = mixture.sample(200_000, np.random.default_rng(1), **conditions)
    table = np.zeros((2, *SIZES))
    np.add.at(table, (classes, *groups.T), 1)
    return table / table.sum()


def test_samples_follow_the_definition(mixture):
    assert frequencies(mixture) == pytest.approx(joint(mixture), abs=0.004)


@pytest.mark.parametrize(
    "given",
    [
        {0: [1.0, 0.0, 0.25]},
        {3: [0.0, 0.5, 1.0]},
        {0: [0.3, 1.0, 0.0], 2: [1.0, 0.1], 3: [0.7, 0.0, 1.0]},
    ],
)
def test_conditions_are_exact(mixture, given):
    """Shares of 200,000 draws deviate by 0.0011 at the most: 0.006 is more than five of them."""
    given = {column: np.array(likelihood) for column, likelihood in given.items()}
    given_class = np.array([0.2, 1.0])
    expected = joint(mixture) * given_class[:, None, None, None, None]
    for column, likelihood in given.items():
        shape = [1] * 5
        shape[column + 1] = len(likelihood)
        expected = expected * likelihood.reshape(shape)
    drawn = frequencies(mixture, given=given, given_class=given_class)
    assert drawn == pytest.approx(expected / expected.sum(), abs=0.006)
    assert (drawn[expected == 0] == 0).all()


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
    assert groups.shape == (count, 4)


def test_rows_are_in_random_order(mixture):
    classes, _ = mixture.sample(1000, np.random.default_rng(4))
    assert (np.diff(classes) != 0).sum() > 100


def test_arrays_give_the_same_mixture_back(mixture):
    again = Mixture.from_arrays(mixture.arrays())
    one, two = (m.sample(50, np.random.default_rng(5))[1] for m in (mixture, again))
    assert (one == two).all()
