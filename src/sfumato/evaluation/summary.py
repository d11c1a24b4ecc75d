"""The findings in brief: a few headlines, and where the data are weak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np

from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.evaluation import Associations, ColumnComparison, MarginalComparison
from sfumato.evaluation.measure import Headline
from sfumato.evaluation.utility import Utility

MOST_LISTED = 5
MOST_PAIRS = 50
WEAK_COLUMN = 0.1
WEAK_COVERAGE = 0.9
WEAK_ASSOCIATION = 0.1
WEAK_CLASS = 0.5
SELDOM = 3.0
"""So many rows of a value must be expected; fewer are none with a chance of e^-3, or 5%."""


def utility_headline(utility: Utility) -> Headline:
    """Compare the mean score of learners trained on synthetic and on real rows."""
    figure = "roc_auc" if utility.task == "classification" else "r2"
    guessing = 0.5 if figure == "roc_auc" else 0.0
    real = utility.mean["real"][figure]
    return Headline(
        name=f"Predicting {utility.target}",
        value=utility.mean["synthetic"][figure],
        worst=guessing,
        best=max(real, guessing),  # where real rows teach nothing, there is nothing to grade
        meaning="how well learners trained on synthetic rows predict real ones: mean "
        + ("ROC-AUC" if figure == "roc_auc" else "R²"),
        worst_is="guessing",
        best_is="trained on real rows",
        held_out=real,
    )


def pair_headline(pairs: MarginalComparison) -> Headline:
    """Place the two-way error beyond chance below that of shuffled columns."""
    return Headline(
        name="Pairs of columns",
        value=pairs.error.beyond_chance,
        worst=pairs.independent,
        best=0.0,
        meaning="the share of rows, beyond what chance explains, that would have to change for two "
        "columns together to be distributed as in the real data: mean over pairs",
        worst_is="columns shuffled",
        best_is="exact",
        held_out=pairs.fresh,
    )


def association_headline(found: Associations) -> Headline:
    """Place the mean difference of associations beyond chance below that of shuffled columns."""
    return Headline(
        name="Associations",
        value=found.mean_difference,
        worst=found.independent,
        best=0.0,
        meaning="how far the strength of association between two columns is off beyond chance: "
        "mean over pairs",
        worst_is="columns shuffled",
        best_is="exact",
        held_out=found.fresh,
    )


def weaknesses(
    columns: tuple[ColumnComparison, ...],
    associations: Associations,
    real: CodedTable,
    synthetic: CodedTable,
    target: str | None,
) -> tuple[str, ...]:
    """Say in sentences where the synthetic rows should not be relied on, the worst first.

    How bad a weakness is lies between 0 and 1 for each kind: the share of rows that would have to
    change, of the range or the values that is lost, of a class, or of an association.
    """
    found = [
        *_weak_classes(real, synthetic, target),
        *_weak_columns(columns),
        *_weak_coverage(columns, real, synthetic),
        *_weak_pairs(associations),
    ]
    return tuple(sentence for _, sentence in sorted(found, key=lambda each: -each[0]))


def _weak_classes(
    real: CodedTable, synthetic: CodedTable, target: str | None
) -> Iterator[tuple[float, str]]:
    if target is None:
        return
    index = real.codec.index(target)
    cells = real.codec.columns[index]
    if not cells.is_category:
        return
    shares = [
        np.bincount(frame.codes[:, index], minlength=cells.size) / len(frame)
        for frame in (real, synthetic)
    ]
    yield from weak_classes(cells.names, shares[0], shares[1], f" of {target}", "rows")


def weak_classes(
    names: Iterable[str],
    wanted: Iterable[float],
    found: Iterable[float],
    of: str = "",
    what: str = "images",
) -> Iterator[tuple[float, str]]:
    """Name the classes that are far more or less frequent than in the real data, and how far."""
    for name, real, made in zip(names, wanted, found, strict=True):
        if real and not WEAK_CLASS < made / real < 1 / WEAK_CLASS:
            yield (
                1 - min(real, made) / max(real, made),
                f"The class {name}{of} makes up {real:.2%} of the real {what} "
                f"and {made:.2%} of the synthetic ones.",
            )


def _weak_columns(columns: tuple[ColumnComparison, ...]) -> Iterator[tuple[float, str]]:
    for column in columns:
        if column.error > WEAK_COLUMN:
            yield (
                column.error,
                f"{column.name} alone is off: {column.error:.1%} of the rows would have to change.",
            )


def _weak_coverage(
    columns: tuple[ColumnComparison, ...], real: CodedTable, synthetic: CodedTable
) -> Iterator[tuple[float, str]]:
    for index, column in enumerate(columns):
        cells = real.codec.columns[index]
        lost = 1 - column.coverage
        if cells.is_category:
            names = [cells.names[code] for code in _never(real, synthetic, index)]
            if names:
                more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
                named = ", ".join(names[:MOST_LISTED])
                yield lost, f"{column.name} never takes these values: {named}{more}."
        elif column.coverage < WEAK_COVERAGE:
            yield lost, f"{column.name} spans only {column.coverage:.0%} of the real range."


def _never(real: CodedTable, synthetic: CodedTable, index: int) -> list[int]:
    """Give the real cells that no synthetic row has, though more than chance would have some."""
    size = real.codec.columns[index].size
    wanted, found = (
        np.bincount(frame.codes[:, index], minlength=size) for frame in (real, synthetic)
    )
    expected = wanted * len(synthetic) / len(real)
    never: list[int] = np.flatnonzero((found == 0) & (expected >= SELDOM)).tolist()
    return never


def _weak_pairs(found: Associations) -> Iterator[tuple[float, str]]:
    pairs = sorted(
        combinations(range(len(found.names)), 2),
        key=lambda pair: -found.difference[pair[0]][pair[1]],
    )
    for i, j in pairs[:MOST_PAIRS]:
        wanted, got = found.real[i][j], found.synthetic[i][j]
        if abs(wanted - got) > WEAK_ASSOCIATION:
            yield (
                abs(wanted - got),
                f"{found.names[i]} and {found.names[j]} are associated at {got:.2f} "
                f"instead of {wanted:.2f}.",
            )
