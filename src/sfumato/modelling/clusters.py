"""Clusters of points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def k_means(points: Floats, count: int, rng: np.random.Generator, steps: int = 12) -> Floats:
    """Give the centres of Lloyd's algorithm from random points."""
    centres = points[rng.choice(len(points), count, replace=False)]
    for _ in range(steps):
        nearest = (2 * points @ centres.T - (centres * centres).sum(axis=1)).argmax(axis=1)
        sizes = np.bincount(nearest, minlength=count)
        member = np.zeros((count, len(points)))
        member[nearest, np.arange(len(points))] = 1
        moved = member @ points / np.maximum(sizes, 1)[:, None]
        centres = np.where(sizes[:, None] > 0, moved, centres)
    return centres
