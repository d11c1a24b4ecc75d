"""What an evaluation found: plain values, whole in JSON, and nothing else in the report."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.evaluation.histograms import Histogram
from sfumato.evaluation.marginals import MarginalError
from sfumato.evaluation.measure import Finding, Headline
from sfumato.evaluation.utility import Figures, Utility
from sfumato.notebook import html_table


@dataclass(frozen=True, kw_only=True)
class ColumnComparison:
    """One column: its one-way error beyond chance, its coverage, and its bars."""

    name: str
    kind: str
    error: float
    coverage: float
    histogram: Histogram


@dataclass(frozen=True, kw_only=True)
class MarginalComparison:
    """The error of k-way marginals between two yardsticks, which are errors beyond chance.

    `fresh` is that of as many real rows that were held out, `independent` that of these with every
    column shuffled alone.
    """

    error: MarginalError
    fresh: float
    independent: float


@dataclass(frozen=True, kw_only=True)
class Associations:
    """The pairwise associations of both tables and how far apart they are.

    `mean_difference` is that of synthetic rows beyond chance; `fresh` and `independent` are that
    of as many held-out real rows and of these with every column shuffled alone. `chance` is the
    mean difference between real rows and real rows.
    """

    names: tuple[str, ...]
    real: tuple[tuple[float, ...], ...]
    synthetic: tuple[tuple[float, ...], ...]
    difference: tuple[tuple[float, ...], ...]
    mean_difference: float
    fresh: float
    independent: float
    chance: float


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What every evaluation has."""

    rows: dict[str, int]
    headlines: tuple[Headline, ...]
    weaknesses: tuple[str, ...]
    notes: tuple[str, ...]
    findings: dict[str, Finding]
    full: bool
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Give plain values; a figure that is not defined is None."""
        found: dict[str, Any] = plain({"kind": self.kind} | asdict(self))  # type: ignore[attr-defined]
        return found

    def to_json(self) -> str:
        """Give the text of a JSON file."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def _repr_html_(self) -> str:
        """Give the headlines as a small table, for notebooks."""
        return html_table(
            "PRIVATE: computed on real data, do not publish",
            ["measure", "value", "worst", "best", "real rows"],
            [
                [h.name, *map(_figure, (h.value, h.worst, h.best, h.held_out))]
                for h in self.headlines
            ],
        )


@dataclass(frozen=True, kw_only=True)
class TableEvaluation(_Found):
    """A synthetic table against the real one; `misfits` say what is wrong before any measure."""

    kind = "table"

    columns: tuple[ColumnComparison, ...]
    marginals: dict[int, MarginalComparison]
    associations: Associations
    utility: Utility | None
    utility_mean: dict[str, Figures]
    misfits: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImageEvaluation(_Found):
    """Synthetic images against real ones."""

    kind = "images"

    utility: Utility | None
    utility_mean: dict[str, Figures]
    frechet: dict[str, float]
    extractor: str
    precision_recall: dict[str, float]
    classes: tuple[Histogram, ...]
    grids: dict[str, str]


Evaluation = TableEvaluation | ImageEvaluation


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def plain(value: Any) -> Any:
    """Make a value fit for JSON: lists, text keys, and None for what is not a number."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
