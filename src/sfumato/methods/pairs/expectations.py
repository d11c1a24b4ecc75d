"""What to expect of counted columns and pairs, were the rows spread evenly over their cells."""

from __future__ import annotations

import math

import numpy as np

from sfumato.methods.pairs.table_choice import TableChoice
from sfumato.modelling.expectation import Expectation, smallest_class

_MEAN_SIZE = math.sqrt(2 / math.pi)  # of Gaussian noise, in deviations


def of_columns(sigma: float, rows: int) -> list[Expectation]:
    """Say what noise of scale `sigma` on each count of single columns does."""
    return [
        Expectation(
            what="error of the share of one value", part=sigma / rows, good=0.01, usable=0.05
        ),
        smallest_class("rarest value that is seen", sigma, rows),
    ]


def of_tables(choice: TableChoice, classes: int, sigma: float, rows: int) -> list[Expectation]:
    """Say what noise of scale `sigma` on each count of the chosen tables does.

    A pair is counted per class, so over all classes a cell's noise is sqrt(classes) times as large.
    The total variation between a noisy and a true table is half the sum of its c cells' errors.
    The fit reads all tables together and comes closer: what it can learn of two columns is above
    all how much heavier one half of their table is than the other, where noise adds up to sqrt(c)
    times that of a cell.
    """
    sizes = [math.prod(choice.sizes[i] for i in pair) for pair in choice.pairs]
    cells = float(np.mean(sizes)) if sizes else math.inf
    of_cell = math.sqrt(classes) * sigma / rows if sizes else math.inf
    found = [
        Expectation(what="what is counted", words=_counted(choice)),
        Expectation(
            what="error of the share of one cell of a pair", part=of_cell, good=0.01, usable=0.05
        ),
        Expectation(
            what="error of a pair's table before the fit (total variation)",
            part=min(1.0, cells * _MEAN_SIZE * of_cell / 2) if sizes else math.inf,
        ),
        Expectation(
            what="error of a broad relation of two columns (half of their table)",
            part=math.sqrt(cells) * of_cell, good=0.05, usable=0.2,
        ),
    ]  # fmt: skip
    if classes > 1:
        spread = sizes or [choice.sizes[i] for i in choice.singles] or [1]
        noise = sigma * math.sqrt(float(np.median(spread)))
        found.append(smallest_class("smallest class whose relations are seen", noise, rows))
    return found


def _counted(choice: TableChoice) -> str:
    if not choice.pairs:
        alone = "each column alone"
        return f"{alone}: too few rows for so many pairs" if len(choice.sizes) > 1 else alone
    paired = [choice.sizes[i] for i in {i for pair in choice.pairs for i in pair}]
    fewest, most = min(paired), max(paired)
    groups = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"all {len(choice.pairs):,} pairs, in {groups} groups a column"
