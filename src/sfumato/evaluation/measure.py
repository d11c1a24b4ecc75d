"""Measures: each compares synthetic data with real ones, and says how its figures are shown.

A new measure is one file with a `Measure` and its name in the list of `measures.py`. Whatever it
finds goes into the evaluation, its JSON, the headlines, the weak points and the internal report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.image_sets import NumberedImages


class Sampled(Protocol):
    """Data of which a part can be drawn."""

    def __len__(self) -> int: ...

    def at_most(self, rows: int | None, seed: int, /) -> Any:
        """Give a seeded sample of the same kind."""


Data = TypeVar("Data", bound=Sampled)


@dataclass(frozen=True, kw_only=True)
class Headline:
    """One figure at a glance, on a scale from the worst to the best that can be expected.

    Neither end depends on the value. `held_out` is what as many real data score that were held
    out: whatever scores better does so by chance.
    """

    name: str
    value: float
    worst: float
    best: float
    meaning: str
    worst_is: str
    best_is: str
    held_out: float | None = None

    @property
    def grade(self) -> float | None:
        """Where the value lies between worst (0) and best (1).

        None where real data score no better than the worst: then there is nothing to be graded,
        such as pairs of columns that have nothing to do with one another.
        """
        real = self.best if self.held_out is None else self.held_out
        return self.place(self.value) if self.best != self.worst and self.place(real) else None

    def place(self, value: float) -> float:
        """Give the place of a figure between worst (0) and best (1)."""
        return min(max((value - self.worst) / (self.best - self.worst), 0.0), 1.0)


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

    `held` are real data that no learner was trained on: what they score against `train` is what
    chance does. Errors depend on the size of samples, so what is to be compared with that must be
    of the same size: `same_size`.
    """

    real: Data
    synthetic: Data
    train: Data
    held: Data
    full: bool = False
    seed: int = 0

    def same_size(self) -> tuple[Data, Data]:
        """Give as many synthetic as held-out data."""
        most = min(len(self.synthetic), len(self.held))
        return self.synthetic.at_most(most, self.seed), self.held.at_most(most, self.seed)


@dataclass(frozen=True)
class Measure(Generic[Data]):
    """A named measure; `stage` is what people read while they wait."""

    name: str
    stage: str
    find: Callable[[Compared[Data]], Finding] = field(repr=False)


TableMeasure = Measure[CodedTable]
ImageMeasure = Measure[NumberedImages]
