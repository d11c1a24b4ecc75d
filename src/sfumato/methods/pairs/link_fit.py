"""Choose links where tables show more than a mixture holds, and fit them.

Everything here sees released values only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.pairs.links import TINY, Link
from sfumato.methods.pairs.mixture import Mixture
from sfumato.methods.pairs.noisy_tables import NoisyTables
from sfumato.methods.pairs.relations import ColumnPair, find_relations

Floats = NDArray[np.floating[Any]]

_LEAST_EVIDENCE = 0.0  # even odds
_ROUNDS = 60  # of fitting odds, each with
_SWEEPS = 4  # of fitting margins
_POWERS = (1.0, 1.25, 1.5, 2.0, 3.0)
_FLOOR = 1e-4  # of what independent columns would have: nothing is impossible


def with_links(
    mixture: Mixture, tables: NoisyTables, one_way: Sequence[Floats], ordered: Sequence[int]
) -> Mixture:
    """Hang those columns together whose tables show a relation that the mixture smooths."""
    relations = find_relations(tables, mixture, one_way, ordered)
    weights = mixture.class_shares @ mixture.weights
    links = []
    for parent, child in choose_links(relations):
        relation = relations.get((parent, child)) or relations[child, parent].turned
        first, second = (mixture.probabilities[:, mixture.blocks[c]] for c in (parent, child))
        table = sharpened(relation, weights @ first, weights @ second)
        links.append(Link(parent, child, *fit_odds(table, first, second, weights)))
    return replace(mixture, links=tuple(links))


def choose_links(relations: Mapping[tuple[int, int], ColumnPair]) -> list[tuple[int, int]]:
    """Give a forest of parents and children, parents first: those of the most evidence."""
    tree: dict[int, set[int]] = {}
    neighbours: dict[int, list[int]] = {}
    for (i, j), relation in sorted(relations.items(), key=lambda item: -item[1].evidence):
        if relation.evidence < _LEAST_EVIDENCE:
            break
        left, right = tree.setdefault(i, {i}), tree.setdefault(j, {j})
        if left is right:
            continue
        left |= right
        tree |= dict.fromkeys(right, left)
        neighbours.setdefault(i, []).append(j)
        neighbours.setdefault(j, []).append(i)
    return list(_from_roots(neighbours))


def _from_roots(neighbours: Mapping[int, list[int]]) -> Iterator[tuple[int, int]]:
    """Walk each tree from the column that has most neighbours."""
    seen: set[int] = set()
    for root in sorted(neighbours, key=lambda column: -len(neighbours[column])):
        ahead = [] if root in seen else [root]
        seen.add(root)
        for parent in ahead:
            for child in neighbours[parent]:
                if child not in seen:
                    seen.add(child)
                    ahead.append(child)
                    yield parent, child


def sharpened(relation: ColumnPair, rows: Floats, columns: Floats) -> NDArray[np.float64]:
    """Give a relation's table with these margins, without negative cells, and as sharp as it was.

    A posterior mean is drawn towards what the mixture holds, and without its negative cells even
    more. So its ratios to independence are raised to a power: the one of the least risk as Stein
    estimates it, which counts how much the table moves with the noise.
    """
    alone = np.maximum(np.outer(rows, columns), TINY)
    ratios = np.maximum(relation.table / alone, _FLOOR)
    best, least = alone, math.inf
    for power in _POWERS:
        table = _with_margins(alone * ratios**power, rows, columns)
        error = float(np.sum((relation.seen - table) ** 2)) / relation.noise**2
        risk = error + 2 * power * relation.freedom
        if risk < least:
            best, least = table, risk
    return best


def _with_margins(table: Floats, rows: Floats, columns: Floats) -> NDArray[np.float64]:
    found = np.array(table, np.float64)
    for _ in range(_ROUNDS):
        found *= (rows / np.maximum(found.sum(axis=1), TINY))[:, None]
        found *= columns / np.maximum(found.sum(axis=0), TINY)
    return found


def fit_odds(
    table: Floats, parent: Floats, child: Floats, weights: Floats
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find odds R and weights b by which all components together give a table.

    `parent` and `child` are the components' one-way tables (K, groups), which are kept, and
    `weights` (K,) their shares. Iterative proportional fitting, of R to the table and, within it,
    of each component to its margins.
    """
    p, q = np.asarray(parent, np.float64), np.asarray(child, np.float64)
    odds, b = table / np.maximum(np.outer(weights @ p, weights @ q), TINY), q
    for _ in range(_ROUNDS):
        for _ in range(_SWEEPS):
            a = p / np.maximum(b @ odds.T, TINY)
            b = q / np.maximum(a @ odds, TINY)
        found = odds * ((weights[:, None] * a).T @ b)
        odds = odds * table / np.maximum(found, TINY)
        odds = np.maximum(odds / odds.max(), 1e-12)
    for _ in range(_ROUNDS):
        b = q / np.maximum((p / np.maximum(b @ odds.T, TINY)) @ odds, TINY)
    return odds, b / b.sum(axis=1, keepdims=True)
