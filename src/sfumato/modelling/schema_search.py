"""Finding what a schema leaves open: bounds by noisy counts, values by a selection.

This is done before a method asks anything, for a part of the budget that is kept back for it. What
is made of the released counts is post-processing.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.codes import code_of
from sfumato.data.open_codes import BoundsGrid
from sfumato.data.table_codec import TableCodec
from sfumato.errors import FoundWarning
from sfumato.privacy.answers import Release, told_values
from sfumato.privacy.budget import Budget, Spend
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_spend
from sfumato.privacy.search_budget import SearchBudget
from sfumato.privacy.selection import Selection
from sfumato.schema import (
    OTHER,
    Categorical,
    Column,
    Open,
    OpenCategory,
    OpenMoment,
    OpenNumber,
    Schema,
    unknown_category,
)
from sfumato.statistics.counts import Axis, Counts

BOUNDS_SHARE = 0.03  # of the budget, for the bounds of all columns together
VALUES_SHARE = 0.05  # for the values of one column
_MOST_SHARE = 0.3  # for all of it
_DELTA_SHARE = 0.01  # of delta, for telling values
_STEP_SIGMAS = 5.0  # that a step of a grid must stand out of the noise, alone
_WINDOWS = (1, 2, 4, 8, 16)  # or so many of them together: up to a factor of 65,536


def search_budget(schema: Schema, budget: Budget) -> SearchBudget:
    """Say what is kept back of a budget for what a schema leaves open."""
    bounds, values = _shares(schema)
    selections = len(_selections(schema, budget))
    return SearchBudget(bounds + selections * values, _chance(budget) if selections else 0.0)


def left_after(schema: Schema, budget: Budget) -> Budget:
    """Give the budget that is left for a method."""
    ahead = search_budget(schema, budget)
    return budget.part(budget.without_chance(ahead.chance) - ahead.share)


def plan_search(schema: Schema, budget: Budget) -> tuple[list[Spend], list[str]]:
    """Say what `complete` would spend, and what it would find."""
    bounds, values = _shares(schema)
    spends: list[Spend] = []
    notes = []
    if _bounds(schema):
        spends.append(plan_spend("bounds", _bound_counts(schema), budget, bounds))
        least = _STEP_SIGMAS * spends[-1].sigma
        notes.append(
            f"Private bounds of {', '.join(_bounds(schema))} are found where about {least:.0f} "
            "rows lie within a factor of two (or within a year), and a factor of two beyond; what "
            "lies outside is clamped."
        )
    for name, selection in _selections(schema, budget).items():
        spend = selection.plan(name, budget, values)
        spends.append(spend)
        least = selection.threshold(spend, budget.max_rows_per_unit)
        notes.append(
            f"Values of {selection.column} that fewer than about {least:.0f} rows have become "
            "(other)."
        )
    return spends, notes


def complete(curator: Curator) -> Schema:
    """Release what the curator's schema leaves open, and give the schema that has it.

    Once something is paid for, a run ends in a result: a column of which noise hides everything is
    reduced to one value, "(other)", and a warning says so.
    """
    schema = curator.schema
    bounds, values = _shares(schema)
    found: dict[str, Column] = {}
    selections = _selections(schema, curator.whole_budget)
    curator.foretell(
        {each: each.plan(name, curator.whole_budget, values) for name, each in selections.items()}
    )
    if _bounds(schema):
        statistic = _bound_counts(schema)
        release = curator.release_search("bounds", statistic, bounds)
        tables = statistic.split(release.values)
        for (name, column), counts in zip(_bounds(schema).items(), tables, strict=True):
            seen = _standing_out(column, counts, release.sigma)
            found[name] = column.closed(seen) if seen else _nothing_of(name, column, release)
    for name, selection in selections.items():
        release = curator.release_search(name, selection, values)
        category = schema.columns[selection.column]
        assert isinstance(category, OpenCategory)
        told = told_values(release)
        found[selection.column] = (
            category.closed(told) if told else _nothing_of(selection.column, category, release)
        )
    return closed(schema, found)


def _nothing_of(name: str, column: Open, release: Release) -> Categorical:
    warnings.warn(
        f"column '{name}': nothing of it stands out of the noise ({release.sigma:.0f} rows), so "
        f"all synthetic rows have '{OTHER}' there. Declare it from public knowledge, leave it out, "
        "or give a larger budget",
        FoundWarning,
        stacklevel=2,
    )
    return unknown_category(column.nullable)


def closed(schema: Schema, found: Mapping[str, Column]) -> Schema:
    """Give the schema with columns in the place of those that were open."""
    return schema.model_copy(
        update={"columns": {name: found.get(name, c) for name, c in schema.columns.items()}}
    )


def stand_in(schema: Schema) -> Schema:
    """Give a schema of the same size, to plan with before anything is found."""
    found: dict[str, Column] = {}
    for name, column in schema.open.items():
        if isinstance(column, OpenCategory):
            found[name] = column.closed(range(100))
        else:
            grid = code_of(column)
            assert isinstance(grid, BoundsGrid)
            found[name] = column.closed((grid.steps[0][0], grid.steps[-1][1]))
    return closed(schema, found)


def _bounds(schema: Schema) -> dict[str, OpenNumber | OpenMoment]:
    return {n: c for n, c in schema.open.items() if not isinstance(c, OpenCategory)}


def _selections(schema: Schema, budget: Budget) -> dict[str, Selection]:
    """Give what tells the values of each open category, by the name of its release."""
    names = [name for name, column in schema.open.items() if isinstance(column, OpenCategory)]
    chance = _chance(budget) / max(1, len(names))
    places = {name: place for place, name in enumerate(schema.columns, 1)}
    return {
        f"values-{places[name]}-{re.sub('[^A-Za-z0-9]+', '-', name)}": Selection(name, chance)
        for name in names
    }


def _chance(budget: Budget) -> float:
    """Give the chance that all selections may have together: it takes its share of delta."""
    return _DELTA_SHARE * budget.delta / (1 + math.exp(min(budget.epsilon, 700)))


def _shares(schema: Schema) -> tuple[float, float]:
    """Give the shares of the budget for bounds, and for the values of one column."""
    columns = schema.open.values()
    values = sum(isinstance(column, OpenCategory) for column in columns)
    bounds = BOUNDS_SHARE if values < len(columns) else 0.0
    scale = min(1.0, _MOST_SHARE / max(bounds + values * VALUES_SHARE, 1e-9))
    return scale * bounds, scale * VALUES_SHARE


def _bound_counts(schema: Schema) -> Counts:
    codec = TableCodec(schema)
    axes = []
    for name in _bounds(schema):
        index = codec.index(name)
        axes.append(Axis(index, np.arange(codec.columns[index].size, dtype=np.int32)))
    return Counts([(axis,) for axis in axes])


def _standing_out(
    column: OpenNumber | OpenMoment, counts: np.ndarray[Any, Any], sigma: float
) -> tuple[Any, Any] | None:
    """Give the ends of the stretch of a grid that begins and ends where rows are seen."""
    grid = code_of(column)
    assert isinstance(grid, BoundsGrid)
    steps = counts[: len(grid.steps)]
    seen = _seen(steps, sigma)
    return grid.around(int(seen[0]), int(seen[-1]), steps, sigma) if len(seen) else None


def _seen(counts: np.ndarray[Any, Any], sigma: float) -> NDArray[np.int64]:
    """Give the steps that stand out of the noise, alone or with neighbours that do not.

    >>> _seen(np.array([0.0, 90, 3, 30, 30, 30, 30, -2]), 10.0).tolist()
    [1, 3, 4, 5, 6]
    """
    found = np.zeros(len(counts), bool)
    for width in _WINDOWS:
        for first in range(len(counts) - width + 1):
            window = slice(first, first + width)
            enough = _STEP_SIGMAS * sigma * math.sqrt(width)
            if counts[window].sum() > enough and not found[window].any():
                found[window] = True
    return np.flatnonzero(found)
