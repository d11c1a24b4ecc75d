"""Random counting queries: how wrong is the answer to "how many rows have ... and ...?"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.measure import Compared, Finding, Headline, Measure

MOST_COLUMNS = 3
SANITY = 0.01
"""Relative errors are taken against at least this share of the rows (Xiao et al. 2010)."""


@dataclass(frozen=True, kw_only=True)
class QueryErrors:
    """Errors of random queries; `mean` and `largest` in shares of the rows.

    `beyond_chance` is the root of the mean square error without the part that is sampling: with
    shares p and q among n and m rows, (p - q)² - p (1 - p) / (n - 1) - q (1 - q) / (m - 1) is an
    unbiased estimate of the squared error between the distributions.
    """

    queries: int
    mean: float
    beyond_chance: float
    largest: float
    median_relative: float


def counting_queries(
    real: CodedTable, synthetic: CodedTable, queries: int = 500, seed: int = 0
) -> QueryErrors:
    """Ask both tables the same random questions about one to three columns.

    A question about a category asks for a random half of its values, one about a number for the
    interval between the values of two random real rows.
    """
    rng = np.random.default_rng(seed)
    answers = np.array([_ask(real, synthetic, rng) for _ in range(queries)])
    errors = np.abs(answers[:, 0] - answers[:, 1])
    n, m = len(real), len(synthetic)
    chance = (answers * (1 - answers)) @ [1 / max(n - 1, 1), 1 / max(m - 1, 1)]
    return QueryErrors(
        queries=queries,
        mean=float(errors.mean()),
        beyond_chance=float(np.sqrt(max((errors**2 - chance).mean(), 0.0))),
        largest=float(errors.max()),
        median_relative=float(np.median(errors / np.maximum(answers[:, 0], SANITY))),
    )


def _ask(real: CodedTable, synthetic: CodedTable, rng: np.random.Generator) -> tuple[float, float]:
    width = len(real.names)
    columns = rng.choice(width, rng.integers(1, min(MOST_COLUMNS, width) + 1), replace=False)
    chosen = [np.ones(len(frame), bool) for frame in (real, synthetic)]
    for column in columns:
        for mask, matches in zip(chosen, _matches(real, synthetic, int(column), rng), strict=True):
            mask &= matches
    return float(chosen[0].mean()), float(chosen[1].mean())


def _matches(
    real: CodedTable, synthetic: CodedTable, column: int, rng: np.random.Generator
) -> list[NDArray[np.bool_]]:
    cells = real.codec.columns[column]
    if cells.is_category:
        wanted = rng.random(cells.size) < 0.5
        wanted[rng.integers(cells.size)] = True
        return [wanted[frame.codes[:, column]] for frame in (real, synthetic)]
    numbers = [frame.number(real.names[column]) for frame in (real, synthetic)]
    ends = numbers[0][rng.integers(len(real), size=2)]
    low, high = np.nan_to_num(ends.min()), np.nan_to_num(ends.max(), nan=1.0)
    return [(low <= values) & (values <= high) for values in numbers]


def _find(compared: Compared[CodedTable]) -> Finding:
    made, held = compared.same_size()
    found, fresh, shuffled = (
        counting_queries(compared.train, rows, seed=compared.seed)
        for rows in (made, held, held.shuffled(compared.seed))
    )
    figures = {
        "Root mean square error beyond chance": "beyond_chance",
        "Mean error": "mean",
        "Largest error": "largest",
        "Median relative error": "median_relative",
    }
    headline = Headline(
        name="Counting queries",
        value=found.beyond_chance,
        worst=shuffled.beyond_chance,
        best=0.0,
        meaning="how far random counts are off beyond chance, in shares of all rows: root mean "
        f"square over {found.queries} questions about one to three columns",
        worst_is="columns shuffled",
        best_is="exact",
        held_out=fresh.beyond_chance,
    )
    return Finding(
        title="Counts",
        caption=f"{found.queries} random counting queries: errors in shares of the rows",
        columns=("Synthetic rows", "Held-out real rows", "Columns shuffled"),
        rows={
            label: tuple(getattr(each, name) for each in (found, fresh, shuffled))
            for label, name in figures.items()
        },
        headlines=(headline,),
    )


COUNTING_QUERIES = Measure("queries", "asking counting queries", _find)
