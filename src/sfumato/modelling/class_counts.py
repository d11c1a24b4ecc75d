"""The number of rows of each class: released for a small share, and drawn from when sampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.data.condition import class_condition
from sfumato.modelling.base import Given
from sfumato.modelling.spaces import PointSpace
from sfumato.privacy.answers import Release
from sfumato.statistics.counts import Counts

COUNT_SHARE = 0.05


def counts_of(space: PointSpace, balanced: bool) -> Counts:
    """Count the rows of each class; all rows together, where classes are known to be balanced."""
    return Counts([(space.class_axis(apart=not balanced),)])


def noisy_counts(release: Release, classes: int) -> NDArray[np.float64]:
    """Give the rows of each class, no fewer than the noise could hide."""
    counts = np.maximum(release.values, max(1.0, release.sigma))
    return counts if len(counts) == classes else np.full(classes, counts[0] / classes)


def drawn_classes(
    counts: NDArray[np.float64], n: int, space: PointSpace, given: Given, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw classes in proportion to the counts, among those that are given."""
    if given:
        counts = counts * class_condition(space.condition, space.class_code, given).kept
        if np.count_nonzero(counts) == 1:
            return np.full(n, np.argmax(counts))
    return rng.choice(space.classes, n, p=counts / counts.sum())
