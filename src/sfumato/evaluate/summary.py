"""The findings in brief: a few headlines, and where the data are weak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np

from sfumato.evaluate.coded_table import CodedTable
from sfumato.evaluate.evaluation import Associations, ColumnComparison, MarginalComparison
from sfumato.evaluate.measure import Headline
from sfumato.evaluate.utility import Utility

MOST_LISTED = 5
WEAK_COLUMN = 0.1
WEAK_COVERAGE = 0.9
WEAK_ASSOCIATION = 0.1
WEAK_CLASS = 0.5


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
    """Say in sentences where the synthetic rows should not be relied on."""
    return (
        *_weak_classes(real, synthetic, target),
        *_weak_columns(columns),
        *_weak_coverage(columns, real, synthetic),
        *_weak_pairs(associations),
    )


def _weak_classes(real: CodedTable, synthetic: CodedTable, target: str | None) -> Iterator[str]:
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
) -> Iterator[str]:
    """Name the classes that are far more or less frequent than in the real data."""
    for name, real, made in zip(names, wanted, found, strict=True):
        if real and not WEAK_CLASS < made / real < 1 / WEAK_CLASS:
            yield (
                f"The class {name}{of} makes up {real:.2%} of the real {what} "
                f"and {made:.2%} of the synthetic ones."
            )


def _weak_columns(columns: tuple[ColumnComparison, ...]) -> Iterator[str]:
    for column in sorted(columns, key=lambda each: -each.error)[:MOST_LISTED]:
        if column.error > WEAK_COLUMN:
            yield (
                f"{column.name} alone is off: {column.error:.1%} of the rows would have to change."
            )


def _weak_coverage(
    columns: tuple[ColumnComparison, ...], real: CodedTable, synthetic: CodedTable
) -> Iterator[str]:
    for index, column in enumerate(columns):
        cells = real.codec.columns[index]
        if cells.is_category:
            lost = np.setdiff1d(real.codes[:, index], synthetic.codes[:, index])
            if len(lost):
                names = [cells.names[code] for code in lost[:MOST_LISTED]]
                more = f" and {len(lost) - MOST_LISTED} more" if len(lost) > MOST_LISTED else ""
                yield f"{column.name} never takes these values: {', '.join(names)}{more}."
        elif column.coverage < WEAK_COVERAGE:
            yield f"{column.name} spans only {column.coverage:.0%} of the real range."


def _weak_pairs(found: Associations) -> Iterator[str]:
    pairs = sorted(
        combinations(range(len(found.names)), 2),
        key=lambda pair: -abs(found.real[pair[0]][pair[1]] - found.synthetic[pair[0]][pair[1]]),
    )
    for i, j in pairs[:MOST_LISTED]:
        wanted, got = found.real[i][j], found.synthetic[i][j]
        if abs(wanted - got) > WEAK_ASSOCIATION:
            yield (
                f"{found.names[i]} and {found.names[j]} are associated at {got:.2f} "
                f"instead of {wanted:.2f}."
            )
