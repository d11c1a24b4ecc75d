"""What the noise of the releases alone implies, from released values alone.

Nothing here speaks of how well a model fits what was released, nor of how well anything can be
predicted from its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.answers import Release

LOST = 1.0
NEAR = 3.0


@dataclass(frozen=True, kw_only=True)
class ClassNoise:
    """One class (or category): about how many rows it has, and its signal against the noise."""

    name: str
    rows: float
    signal_to_noise: float

    @property
    def verdict(self) -> str:
        """Say whether the class stands out of the noise, and no more than that."""
        if self.signal_to_noise < LOST:
            return "is lost in the noise"
        return "is near the noise" if self.signal_to_noise < NEAR else "stands out of the noise"


@dataclass(frozen=True, kw_only=True)
class TableNoise:
    """The noise on released tables of counts, in shares of the rows.

    With noise of scale sigma on each of `cells` counts, of about `rows` rows, the share of one
    cell deviates by sigma / rows, and the total variation distance of the whole table is expected
    to be 1/2 cells sqrt(2/pi) sigma / rows: `share` and `distance`, the latter at most 1.
    """

    cells: int
    share: float
    distance: float

    @classmethod
    def of(cls, cells: int, sigma: float, rows: float) -> TableNoise:
        """Give the noise of one table."""
        share = sigma / max(rows, 1.0)
        return cls(cells=cells, share=share, distance=min(1.0, cells * share / sqrt(2 * pi)))


@dataclass(frozen=True, kw_only=True)
class ColumnNoise:
    """The noise on one column: counted alone, and with others in a table of middling distance."""

    column: str
    alone: TableNoise | None
    tables: int
    together: TableNoise | None


def column_noise(
    releases: tuple[Release, ...], columns: tuple[str, ...], rows: float
) -> list[ColumnNoise]:
    """Give the noise on each column that was counted; empty where none was.

    Where a column was counted alone more than once, the counts of the least distance are told of.
    """
    found = []
    for index, name in enumerate(columns):
        tables = [
            (each.cells, TableNoise.of(each.classes * each.cells, release.sigma / each.reach, rows))
            for release in releases
            for each in release.resolutions
            if each.kind == "counts" and each.column == index
            for _ in range(each.tables)
        ]
        tables.sort(key=lambda table: table[1].distance)
        alone = [table for cells, table in tables if cells == 1]
        others = [table for cells, table in tables if cells > 1]
        if tables:
            found.append(
                ColumnNoise(
                    column=name,
                    alone=alone[0] if alone else None,
                    tables=len(others),
                    together=others[len(others) // 2] if others else None,
                )
            )
    return found


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
