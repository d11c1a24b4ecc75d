"""How the noise of a release compares with the size of a class, from released values alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.answers import Release

DROWNED = 1.0
FAINT = 3.0


@dataclass(frozen=True, kw_only=True)
class ClassNoise:
    """One class (or category): about how many rows it has, and its signal against the noise."""

    name: str
    rows: float
    signal_to_noise: float

    @property
    def verdict(self) -> str:
        """Say whether the noise drowns the class."""
        if self.signal_to_noise < DROWNED:
            return "drowned"
        return "faint" if self.signal_to_noise < FAINT else "clear"


def class_noise(
    releases: tuple[Release, ...], column: int, names: list[str], rows: NDArray[np.float64]
) -> list[ClassNoise]:
    """Compare each class of a coded column with the noise; empty where no release tells them apart.

    In a table of counts, the rows of a class are spread over c cells with noise of scale sigma
    each, which together deviate by sigma sqrt(c): its signal to noise is rows / (sigma sqrt(c)).
    For sums of feature vectors per class it is the length of the class's vector without the
    noise's share, |v|² - d sigma², against sigma sqrt(d); for moments, whose vectors' lengths are
    not released, the rows times the largest length stand for it.
    """
    ratios = None
    deviation = count_deviation(releases, column)
    if deviation is not None:
        ratios = rows / deviation
    for release in releases:
        reach = _moment_reach(release, len(names))
        if reach is not None:
            ratios = rows * reach / release.sigma
        blocks = _class_blocks(release, column, len(names))
        if blocks is not None:
            noise = release.sigma * sqrt(blocks.shape[1])
            ratios = np.sqrt(np.maximum((blocks**2).sum(axis=1) - noise**2, 0.0)) / noise
    if ratios is None:
        return []
    return [
        ClassNoise(name=name, rows=float(count), signal_to_noise=float(ratio))
        for name, count, ratio in zip(names, rows, ratios, strict=True)
    ]


def count_deviation(releases: tuple[Release, ...], column: int) -> float | None:
    """Give the noise, in rows, on one class of a column in a typical table of counts.

    Tables with other columns go before counts of the column alone: a class whose number is known
    may still relate to the rest by noise only. Of these the median is taken.
    """
    found = [
        (cells > 1, release.sigma / weight * sqrt(cells))
        for release in releases
        for weight, cells in _tables_with(release.statistic, column, 1)
    ]
    related = [deviation for with_others, deviation in found if with_others]
    deviations = related or [deviation for _, deviation in found]
    return float(np.median(deviations)) if deviations else None


def _tables_with(statistic: dict[str, Any], column: int, weight: int) -> Iterator[tuple[int, int]]:
    """Walk a statistic's description; give weight and cells per class of each count table."""
    if "weighted" in statistic:
        yield from _tables_with(statistic["weighted"], column, weight * statistic["weight"])
    for part in statistic.get("concat", ()):
        yield from _tables_with(part, column, weight)
    for table in statistic.get("counts", ()):
        axes = [statistic["axes"][place] for place in table]
        # An axis of one group tells no class from another.
        if any(axis["column"] == column and axis["size"] > 1 for axis in axes):
            yield weight, prod(axis["size"] for axis in axes if axis["column"] != column)


def _moment_reach(release: Release, classes: int) -> float | None:
    """Give what one row can add to a class's sum of vectors, over the width of the noise on it."""
    statistic = release.statistic
    if "moments" not in statistic or statistic["labels"] != classes:
        return None
    return float(statistic["reach"] / sqrt(statistic["dim"]))


def _class_blocks(release: Release, column: int, classes: int) -> NDArray[np.float64] | None:
    """Cut a release of sums per class into one row per class."""
    statistic = release.statistic
    while "weighted" in statistic:
        statistic = statistic["weighted"]
    if "per_class" not in statistic or statistic["column"] != column:
        return None
    if statistic["classes"] != classes:
        return None
    return release.values.astype(np.float64).reshape(classes, -1)
