"""A mixture of product distributions over grouped columns, one set of weights per class.

Columns hold group numbers; rows belong to classes (the groups of the target, or one class if
there is none). The K components are shared by the classes, whose weights differ:

    p(c, x) = s_c sum_k w_ck prod_i P_k,i(x_i)

Given the component, columns are independent. So conditioning on any columns only reweights the
components: exact, without rejection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


class ImpossibleError(ValueError):
    """A condition without probability."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Shares of the classes, weights of the components, and the components' one-way tables.

    >>> even = Mixture(np.ones(1), np.ones((1, 1)), np.array([[0.5, 0.5, 0.0, 1.0]]), (2, 2))
    >>> even.sample(4, np.random.default_rng(0))[1][:, 1].tolist()
    [1, 1, 1, 1]
    """

    class_shares: Floats  # (C,), sum 1
    weights: Floats  # (C, K), rows sum to 1
    probabilities: Floats  # (K, sum of sizes): the columns' tables side by side
    sizes: tuple[int, ...]  # groups of each column

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
        given = given or {}
        joint = self._posterior(given, given_class)
        order = rng.permutation(count)
        state = np.empty(count, np.int64)
        state[order] = _systematic(joint.ravel(), count, rng)
        classes, component = np.divmod(state, self.weights.shape[1])
        groups = np.zeros((count, len(self.sizes)), np.int64)
        for column, block in enumerate(self.blocks):
            if self.sizes[column] > 1:
                table = self.probabilities[:, block] * given.get(column, 1.0)
                groups[:, column] = _stratified(table, component, rng)
        return classes, groups

    def _posterior(self, given: Mapping[int, Floats], given_class: Floats | None) -> Floats:
        """The joint weights (C, K) of class and component, after the condition."""
        joint = self.class_shares.astype(np.float64)[:, None] * self.weights
        if given_class is not None:
            joint = joint * np.asarray(given_class, np.float64)[:, None]
        blocks = self.blocks
        for column, likelihood in given.items():
            joint = joint * (self.probabilities[:, blocks[column]] @ likelihood)
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
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Mixture:
        """Read what `arrays` gave."""
        return cls(
            arrays["class_shares"],
            arrays["weights"],
            arrays["probabilities"],
            tuple(int(size) for size in arrays["sizes"]),
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
    starts = np.searchsorted(component[order], component, side="left")
    ranks = np.empty(count, np.int64)
    ranks[order] = np.arange(count)
    population = np.bincount(component, minlength=len(table))[component]
    uniform = (ranks - starts + rng.random(count)) / population
    bounds = np.cumsum(table, axis=1, dtype=np.float64)
    rows = np.arange(len(table))[:, None]
    bounds = bounds / np.where(bounds[:, -1:] > 0, bounds[:, -1:], 1.0)
    place = np.searchsorted((bounds + rows).ravel(), component + uniform, side="right")
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    groups = place - component * table.shape[1]
    return np.asarray(np.clip(groups, 0, last[component]), np.int64)
