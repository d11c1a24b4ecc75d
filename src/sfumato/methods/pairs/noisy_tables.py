"""Released tables of pairs and of single columns, per class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.pairs.guesses import RARE_ROWS

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyTables:
    """Released counts per class: of pairs of columns, and of single columns.

    `pairs[i, j]` has the shape (classes, sizes[i], sizes[j]), `singles[i]` (classes, sizes[i]).
    Every cell carries Gaussian noise of deviation `sigma`.
    """

    sizes: tuple[int, ...]
    classes: int
    sigma: float
    pairs: Mapping[tuple[int, int], Floats]
    singles: Mapping[int, Floats]

    def class_counts(self, prior: Floats, prior_sigma: float) -> NDArray[np.float64]:
        """Rows of each class: the inverse-variance mean of `prior` and all tables' totals.

        A class that noise hides keeps the few rows that `prior` has for it.
        """
        tables = [*self.pairs.values(), *self.singles.values()]
        flat = [table.reshape(self.classes, -1) for table in tables]
        totals = [np.asarray(prior, np.float64)] + [t.sum(axis=1, dtype=np.float64) for t in flat]
        weights = [prior_sigma**-2] + [1 / (t.shape[1] * self.sigma**2) for t in flat]
        counts = np.average(np.stack(totals), axis=0, weights=weights)
        least = 1e-6 * max(float(counts.max()), 1.0)  # none is impossible
        return np.maximum(counts, np.clip(prior, least, RARE_ROWS))
