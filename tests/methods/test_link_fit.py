"""Direct relations are seen through noise, and links hold them without touching the rest."""

from itertools import combinations

import numpy as np
import pytest

from sfumato.methods.pairs.link_fit import choose_links, fit_odds, with_links
from sfumato.methods.pairs.links import Link
from sfumato.methods.pairs.mixture import Mixture
from sfumato.methods.pairs.noisy_tables import NoisyTables
from sfumato.methods.pairs.relations import ColumnPair, find_relations


def test_odds_give_the_table_and_keep_the_components_margins() -> None:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(5))
    parent, child = rng.dirichlet(3 * np.ones(4), 5), rng.dirichlet(3 * np.ones(3), 5)
    table = rng.dirichlet(np.ones(12)).reshape(4, 3)
    for _ in range(200):  # to the margins of the components
        table *= ((weights @ parent) / table.sum(axis=1))[:, None]
        table *= (weights @ child) / table.sum(axis=0)
    joint = parent[:, :, None] * Link(0, 1, *fit_odds(table, parent, child, weights)).conditional()
    assert np.tensordot(weights, joint, 1) == pytest.approx(table, abs=1e-4)
    assert joint.sum(axis=2) == pytest.approx(parent)
    assert joint.sum(axis=1) == pytest.approx(child, abs=1e-4)


def test_links_are_a_forest_of_the_strongest_with_parents_first() -> None:
    evidence = {(0, 1): 9.0, (1, 2): 8.0, (0, 2): 7.0, (2, 3): 6.0, (4, 5): 5.0, (3, 4): -0.5}
    one = np.ones((1, 1))
    found = choose_links({pair: ColumnPair(e, one, one, 1.0, 0.0) for pair, e in evidence.items()})
    assert sorted(map(sorted, found)) == [[0, 1], [1, 2], [2, 3], [4, 5]]
    children = [child for _, child in found]
    assert len(set(children)) == 4
    for place, (parent, _) in enumerate(found):
        assert parent not in children[place:]


def chain(sigma: float, seed: int) -> tuple[np.ndarray, NoisyTables, Mixture, list[np.ndarray]]:
    """Two numbers that go together, a third that does not, and a mixture that knows nothing."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 12, 20_000)
    second = np.clip(first + rng.integers(-2, 3, 20_000), 0, 11)
    rows = np.stack([first, second, rng.integers(0, 12, 20_000)], axis=1)
    pairs = {}
    for i, j in combinations(range(3), 2):
        counts = np.bincount(rows[:, i] * 12 + rows[:, j], minlength=144).reshape(1, 12, 12)
        pairs[i, j] = counts + rng.normal(0, sigma, counts.shape)
    tables = NoisyTables(sizes=(12,) * 3, classes=1, sigma=sigma, pairs=pairs, singles={})
    one_way = [np.bincount(column, minlength=12).astype(float) for column in rows.T]
    alone = np.concatenate(one_way)[None] / 20_000
    return rows, tables, Mixture(np.ones(1), np.ones((1, 1)), alone, (12,) * 3), one_way


def test_a_relation_is_found_and_drawn_where_there_is_one() -> None:
    """Noise of half a cell's rows hides single cells; the whole table shows the relation."""
    rows, tables, mixture, one_way = chain(70.0, 0)
    linked = with_links(mixture, tables, one_way, [12] * 3)
    assert [{link.parent, link.child} for link in linked.links] == [{0, 1}]
    _, drawn = linked.sample(20_000, np.random.default_rng(1))
    wanted, found = (np.corrcoef(table.T) for table in (rows, drawn))
    assert found[0, 1] > 0.8 * wanted[0, 1]
    assert abs(found[0, 2]) < 0.05


def test_pure_noise_has_no_relations() -> None:
    """Evidence is a likelihood ratio of mean 1 under noise: above e^3 in few of 100 tables."""
    found = []
    for seed in range(50):
        _, tables, mixture, one_way = chain(300.0, seed)
        relations = find_relations(tables, mixture, one_way, [12] * 3)
        found += [relations[0, 2].evidence, relations[1, 2].evidence]
    assert np.mean(np.array(found) > 3) <= 0.05
