"""A mixture of product distributions over grouped columns, one set of weights per class.

Columns hold group numbers; rows belong to classes (the groups of the target, or one class if
there is none). The K components are shared by the classes, whose weights differ:

    p(c, x) = s_c sum_k w_ck prod_i P_k,i(x_i)

Given the component, columns are independent, or they hang together in trees (`links`). So
conditioning on any columns only reweights the components and what lies along a tree: exact, without
rejection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.pairs.links import Link, load_links, save_links

Floats = NDArray[np.floating[Any]]


class ImpossibleError(ValueError):
    """A condition without probability."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Shares of the classes, weights of the components, and the components' one-way tables.

    Links hang columns together within components; a parent's own link, if any, comes before it.

    >>> even = Mixture(np.ones(1), np.ones((1, 1)), np.array([[0.5, 0.5, 0.0, 1.0]]), (2, 2))
    >>> even.sample(4, np.random.default_rng(0))[1][:, 1].tolist()
    [1, 1, 1, 1]
    """

    class_shares: Floats  # (C,), sum 1
    weights: Floats  # (C, K), rows sum to 1
    probabilities: Floats  # (K, sum of sizes): the columns' tables side by side
    sizes: tuple[int, ...]  # groups of each column
    links: tuple[Link, ...] = ()

    @property
    def blocks(self) -> list[slice]:
        """Where each column's table lies in `probabilities`."""
        ends = np.cumsum(self.sizes, dtype=np.int64).tolist()
        return [slice(end - size, end) for size, end in zip(self.sizes, ends, strict=True)]

    def sample(
        self,
        count: int,
        rng: np.random.Generator,
        given: Mapping[int, Floats] | None = None,
        given_class: Floats | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw the classes (count,) and the groups (count, columns) of rows.

        `given` maps a column to a likelihood of each of its groups (1 for the allowed ones, 0 for
        the others, or the share of a group that a condition allows); `given_class` is the same for
        the class. Rows are drawn in proportion to probability times likelihoods. Draws are
        stratified within a component, which leaves the distribution of a row as it is and lowers
        the variance of the counts.
        """
        likelihoods, messages = self._passed_on(given or {})
        joint = self._posterior(likelihoods, given_class)
        order = rng.permutation(count)
        state = np.empty(count, np.int64)
        state[order] = _systematic(joint.ravel(), count, rng)
        classes, component = np.divmod(state, self.weights.shape[1])
        groups = np.zeros((count, len(self.sizes)), np.int64, order="F")
        children = {link.child for link in self.links}
        for column, block in enumerate(self.blocks):
            if self.sizes[column] > 1 and column not in children:
                table = self.probabilities[:, block] * likelihoods.get(column, 1.0)
                groups[:, column] = _stratified(table, component, rng)
        for link in self.links:
            table = link.conditional(messages.get(link.child, 1.0))
            rows = component * table.shape[1] + groups[:, link.parent]
            groups[:, link.child] = _stratified(table.reshape(-1, table.shape[2]), rows, rng)
        return classes, groups

    def _passed_on(
        self, given: Mapping[int, Floats]
    ) -> tuple[dict[int, Floats], dict[int, Floats]]:
        """Pass likelihoods along the links, from children to parents.

        Gives those of the roots and of columns without links, by group or by component and group,
        and those of the children, which say what is given for a column and all of its descendants.
        """
        found: dict[int, Floats] = dict(given)
        below: dict[int, Floats] = {}
        for link in reversed(self.links):
            if link.child in found:
                below[link.child] = found.pop(link.child)
                passed = link.conditional(below[link.child]).sum(axis=2)
                found[link.parent] = found.get(link.parent, 1.0) * passed
        return found, below

    def _posterior(self, likelihoods: Mapping[int, Floats], given_class: Floats | None) -> Floats:
        """The joint weights (C, K) of class and component, after the condition."""
        joint = self.class_shares.astype(np.float64)[:, None] * self.weights
        if given_class is not None:
            joint = joint * np.asarray(given_class, np.float64)[:, None]
        blocks = self.blocks
        for column, likelihood in likelihoods.items():
            joint = joint * (self.probabilities[:, blocks[column]] * likelihood).sum(axis=1)
        total = joint.sum()
        if not total > 0:
            raise ImpossibleError("the model gives the condition no probability")
        return np.asarray(joint / total)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give plain arrays, to be stored."""
        return {
            "class_shares": self.class_shares,
            "weights": self.weights,
            "probabilities": self.probabilities,
            "sizes": np.array(self.sizes, np.int64),
            **save_links(self.links),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Mixture:
        """Read what `arrays` gave."""
        return cls(
            arrays["class_shares"],
            arrays["weights"],
            arrays["probabilities"],
            tuple(int(size) for size in arrays["sizes"]),
            load_links(arrays),
        )


def _systematic(shares: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` sorted draws whose counts differ from their expectations by less than one."""
    bounds = np.cumsum(shares, dtype=np.float64)
    points = (np.arange(count) + rng.random()) / max(count, 1) * bounds[-1]
    last = int(np.flatnonzero(shares)[-1])  # rounding must not reach a state without mass
    return np.asarray(np.searchsorted(bounds, points, side="right").clip(max=last), np.int64)


def _stratified(
    table: Floats, component: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a group for each row from its component's row of `table`, by stratified uniforms."""
    count = len(component)
    order = np.argsort(component + rng.random(count))  # components together, else shuffled
    population = np.bincount(component, minlength=len(table))
    starts = np.cumsum(population) - population
    ranks = np.empty(count, np.int64)
    ranks[order] = np.arange(count)
    uniform = (ranks - starts[component] + rng.random(count)) / population[component]
    bounds = np.cumsum(table, axis=1, dtype=np.float64)
    rows = np.arange(len(table))[:, None]
    bounds = bounds / np.where(bounds[:, -1:] > 0, bounds[:, -1:], 1.0)
    place = np.empty(count, np.int64)
    # In this order they ascend, and each is found near the one before.
    place[order] = np.searchsorted(
        (bounds + rows).ravel(), (component + uniform)[order], side="right"
    )
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    groups = place - component * table.shape[1]
    return np.asarray(np.clip(groups, 0, last[component]), np.int64)
