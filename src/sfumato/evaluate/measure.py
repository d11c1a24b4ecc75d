"""Measures: each compares synthetic data with real ones, and says how its figures are shown.

A new measure is one file with a `Measure` and its name in the list of `measures.py`. Whatever it
finds goes into the evaluation, its JSON, the headlines, the weak points and the internal report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sfumato.evaluate.coded_table import CodedTable
from sfumato.evaluate.image_sets import NumberedImages

Data = TypeVar("Data")


@dataclass(frozen=True, kw_only=True)
class Headline:
    """One figure at a glance, on a scale from the worst to the best that can be expected."""

    name: str
    value: float
    worst: float
    best: float
    meaning: str
    worst_is: str
    best_is: str

    @property
    def grade(self) -> float:
        """Where the value lies between worst (0) and best (1)."""
        if self.best == self.worst:
            return 1.0
        return min(max((self.value - self.worst) / (self.best - self.worst), 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a measure found: a table of figures, with what stands around it.

    `rows` gives for each label one figure per column; `warning` stands above the table.
    """

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float, ...]]
    warning: str = ""
    headlines: tuple[Headline, ...] = ()
    weaknesses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def figure(self, label: str, column: int = 0) -> float:
        """Give one figure."""
        return self.rows[label][column]


@dataclass(frozen=True)
class Compared(Generic[Data]):
    """What every measure gets: all real data, the part that was not held out, and the rest.

    `held` are real data that no learner was trained on: what they score is what chance does.
    """

    real: Data
    synthetic: Data
    train: Data
    held: Data
    full: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Measure(Generic[Data]):
    """A named measure; `stage` is what people read while they wait."""

    name: str
    stage: str
    find: Callable[[Compared[Data]], Finding] = field(repr=False)


TableMeasure = Measure[CodedTable]
ImageMeasure = Measure[NumberedImages]
