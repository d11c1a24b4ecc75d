"""How the noise of a release compares with the size of a class, from released values alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

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
        for each in release.resolutions:
            if (each.column, each.classes) != (column, len(names)):
                continue
            noise = release.sigma * sqrt(each.cells)
            if each.kind == "vectors":
                ratios = rows * each.reach / noise
            if each.kind == "blocks":
                blocks = release.values.astype(np.float64).reshape(each.classes, -1)
                signal = (blocks**2).sum(axis=1) - noise**2
                ratios = np.sqrt(np.maximum(signal, 0.0)) / noise
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
        (each.cells > 1, release.sigma / each.reach * sqrt(each.cells))
        for release in releases
        for each in release.resolutions
        if each.kind == "counts" and each.column == column
        for _ in range(each.tables)
    ]
    related = [deviation for with_others, deviation in found if with_others]
    deviations = related or [deviation for _, deviation in found]
    return float(np.median(deviations)) if deviations else None
