"""How the target follows from the other columns: classes are drawn last.

A mixture gives the target's classes and the other columns by components. What it says of the class
given all columns, ``sum_k p(k | x) p(c | k)``, jumps from component to component, and learners that
are trained on its rows learn the jumps. Here the class is log-linear in the columns' groups,

    p(c | x) ~ s_c exp(sum_t W_t[x_t, c])

where the terms t are single columns, and pairs of columns where the released tables show that two
columns tell more together than each alone. Columns come from the mixture, classes from this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.pairs.mixture import Mixture
from sfumato.modelling.repeated_draws import draw_until

Floats = NDArray[np.floating[Any]]
Term = tuple[int, ...]

_PIECE = 1 << 16  # rows at a time


@dataclass(frozen=True, eq=False)
class Outcome:
    """The log shares of the classes, and the weights of the terms' cells one below the other.

    >>> even, odd = [1.0, 0.0], [0.0, 1.0]
    >>> parity = Outcome(np.zeros(2), (2, 2), ((0, 1),), 50 * np.array([even, odd, odd, even]))
    >>> parity.draw(np.array([[0, 0], [0, 1], [1, 1]]), np.random.default_rng(0)).tolist()
    [0, 1, 0]
    """

    base: Floats  # (C,)
    sizes: tuple[int, ...]  # groups of each column
    terms: tuple[Term, ...]  # one column or two
    weights: Floats  # (cells of all terms, C)

    def shares(self, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give the probability of each class for each row of groups."""
        logits = np.tile(np.asarray(self.base, np.float64), (len(groups), 1))
        start = 0
        for term in self.terms:
            logits += self.weights[start + cells_of(term, groups, self.sizes)]
            start += count_of(term, self.sizes)
        return softmax(logits)

    def draw(self, groups: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw a class for each row.

        Draws are systematic along rows in the order of their probability, which leaves the
        distribution of a row's class as it is and lowers the variance of the counts.
        """
        return np.concatenate(
            [
                _systematic(self.shares(groups[start : start + _PIECE]), rng)
                for start in range(0, max(len(groups), 1), _PIECE)
            ]
        )

    def sample(
        self,
        mixture: Mixture,
        count: int,
        rng: np.random.Generator,
        given: Mapping[int, Floats],
        given_class: Floats | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw groups from a mixture, and their classes; conditions are as the mixture takes them.

        Given classes are waited for. One that hardly ever comes is drawn as the mixture has it.
        """
        if given_class is None:
            groups = mixture.sample(count, rng, given)[1]
            return self.draw(groups, rng), groups
        wanted = np.asarray(given_class, np.float64)
        likelihood = wanted / max(float(wanted.max()), 1e-300)

        def draw(rows: int) -> NDArray[np.int64]:
            groups = mixture.sample(rows, rng, given)[1]
            classes = self.draw(groups, rng)
            met = rng.random(rows) < likelihood[classes]
            return np.column_stack([classes, groups])[met]

        found = draw_until(count, draw, rng) if wanted.any() else None
        if found is None:
            return mixture.sample(count, rng, given, given_class)
        parts, chosen = found
        rows = np.concatenate(parts)[chosen]
        return rows[:, 0], np.asfortranarray(rows[:, 1:])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give plain arrays, to be stored."""
        return {
            "base": self.base,
            "sizes": np.array(self.sizes, np.int64),
            "terms": np.array([(*term, -1)[:2] for term in self.terms], np.int64).reshape(-1, 2),
            "weights": self.weights,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Outcome:
        """Read what `arrays` gave."""
        return cls(
            arrays["base"],
            tuple(arrays["sizes"].tolist()),
            tuple(tuple(c for c in term if c >= 0) for term in arrays["terms"].tolist()),
            arrays["weights"],
        )


def cells_of(term: Term, groups: NDArray[np.int64], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Give the cell of a term in which each row lies."""
    first, *rest = term
    cells = groups[:, first]
    for column in rest:
        cells = cells * sizes[column] + groups[:, column]
    return cells


def count_of(term: Term, sizes: Sequence[int]) -> int:
    """Give how many cells a term has."""
    return int(np.prod([sizes[column] for column in term]))


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give probabilities that sum to one along the last axis."""
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def _systematic(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a class for each row, class by class among the rows that have none yet."""
    rows, count = shares.shape
    classes = np.full(rows, count - 1, np.int64)
    free, left = np.arange(rows), np.ones(rows)
    for c in range(count - 1):
        chance = np.clip(shares[free, c] / np.maximum(left[free], 1e-12), 0.0, 1.0)
        order = np.argsort(chance, kind="stable")
        steps = np.floor(np.cumsum(chance[order]) + rng.random())
        hit = np.empty(len(free), np.bool_)
        hit[order] = np.diff(steps, prepend=0.0) > 0
        classes[free[hit]] = c
        left[free] -= shares[free, c]
        free = free[~hit]
    return classes
