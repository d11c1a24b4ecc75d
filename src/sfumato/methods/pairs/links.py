"""Links: direct relations of two columns within the components of a mixture.

A link makes a child of one column, its parent's. Within component k, the groups i of the parent
and j of the child have the joint distribution

    Q_k(i, j) = a_ki R_ij b_kj

with the component's own margins, which determine a_k and b_k, and with odds R that all components
share. So a column's relation to all but its relatives stays as the mixture has it. Links form
trees, along which conditions are passed from the leaves to the roots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

TINY = 1e-300  # keeps an empty row from being divided by zero


@dataclass(frozen=True, eq=False)
class Link:
    """The odds R of a parent's and a child's groups, and each component's weights b_k."""

    parent: int
    child: int
    odds: Floats  # (parent's groups, child's groups)
    weights: Floats  # (K, child's groups)

    def conditional(self, likelihood: Floats | float = 1.0) -> NDArray[np.float64]:
        """Give the child's table (K, parent's groups, child's groups) given its parent.

        It is multiplied with a likelihood, which may differ by component, after its rows sum to 1.
        """
        joint = self.odds * np.asarray(self.weights, np.float64)[:, None, :]
        whole = joint.sum(axis=2, keepdims=True)
        if isinstance(likelihood, np.ndarray) and likelihood.ndim == 2:
            likelihood = likelihood[:, None, :]
        return np.asarray(joint * likelihood / np.maximum(whole, TINY))


def save_links(links: Sequence[Link]) -> dict[str, NDArray[Any]]:
    """Give plain arrays, to be stored."""
    ends = [(link.parent, link.child) for link in links]
    found: dict[str, NDArray[Any]] = {"links": np.array(ends, np.int64).reshape(-1, 2)}
    for place, link in enumerate(links):
        found |= {f"link/{place}/odds": link.odds, f"link/{place}/weights": link.weights}
    return found


def load_links(arrays: Mapping[str, NDArray[Any]]) -> tuple[Link, ...]:
    """Read back what `save_links` gave; earlier files have none."""
    return tuple(
        Link(parent, child, arrays[f"link/{place}/odds"], arrays[f"link/{place}/weights"])
        for place, (parent, child) in enumerate(arrays.get("links", np.zeros((0, 2))).tolist())
    )
