"""What one pass over private rows tells their owner, before anything is paid. All of it is private.

Whether a run stops here depends on the rows. That is part of their owner's decision to run: what is
promised is promised for runs that happen (docs/privacy.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.codes import Misfit
from sfumato.data.distinct import Distinct
from sfumato.errors import quoted

_MOST_EXAMPLES = 1000  # distinct ones that are counted
_SHOWN_EXAMPLES = 3
_SHOWN_COLUMNS = 5


@dataclass
class ColumnReview:
    """What does not fit in one column."""

    counts: Counter[Misfit] = field(default_factory=Counter)
    examples: dict[Misfit, Counter[str]] = field(default_factory=dict)
    spaced: int = 0

    def merge(self, other: ColumnReview) -> None:
        """Take in what was found in other rows of the column."""
        self.counts.update(other.counts)
        self.spaced += other.spaced
        for misfit, texts in other.examples.items():
            examples = self.examples.setdefault(misfit, Counter())
            if len(examples) < _MOST_EXAMPLES:
                examples.update(texts)

    def misfits(self, rows: int) -> int:
        """Count the values that the schema has no place for."""
        return sum(count for misfit, count in self.counts.items() if count > misfit.usual * rows)

    def sentences(self, rows: int) -> Iterator[str]:
        """Say what does not fit, why, and which line of the schema to change."""
        for misfit, count in self.counts.most_common():
            if count <= misfit.usual * rows:
                continue
            shown = ""
            if misfit in self.examples:
                texts = [quoted(text) for text, _ in self.examples[misfit].most_common(4)]
                more = ", …" if len(texts) > _SHOWN_EXAMPLES else ""
                shown = f" ({', '.join(texts[:_SHOWN_EXAMPLES])}{more})"
            yield (
                f"{count:,} of {rows:,} values ({_share(count, rows)}) are {misfit.reason}"
                f"{shown} and would become {misfit.becomes}. Schema: {misfit.advice}"
            )
        if self.spaced:
            yield f"{self.spaced:,} values have spaces around them, and are read without"


@dataclass
class Review:
    """A table or an image set against its schema.

    `rows` is how many there are, `kept` how many of them are used where the rows of each unit are
    limited, and `units` counts the rows of each unit.
    """

    rows: int = 0
    kept: int = 0
    columns: dict[str, ColumnReview] = field(default_factory=dict)
    units: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, rows: Distinct, found: Mapping[Misfit, NDArray[np.bool_]]) -> None:
        """Count what does not fit in a piece of a column, by what was found of its values."""
        column = self.columns.setdefault(name, ColumnReview())
        column.spaced += int(rows.spread(parsing.has_spaces(rows.values)).sum())
        for misfit, where in found.items():
            if not where.any():
                continue
            times = where.astype(np.int64)
            if rows.places is not None:
                times *= np.bincount(rows.places, minlength=len(where))
            if not times.any():
                continue
            column.counts[misfit] += int(times.sum())
            if misfit.quoted:
                examples = column.examples.setdefault(misfit, Counter())
                texts = parsing.texts(rows.values.filter(pa.array(times > 0))).to_pylist()
                if len(examples) < _MOST_EXAMPLES:
                    for text, count in zip(texts, times[times > 0].tolist(), strict=True):
                        examples[text] += count

    def merge(self, other: Review) -> None:
        """Take in what was found in other rows; a unit that is in both has the rows of both."""
        self.rows += other.rows
        self.kept += other.kept
        self.units.update(other.units)
        for name, column in other.columns.items():
            self.columns.setdefault(name, ColumnReview()).merge(column)

    def above(self, most: float) -> dict[str, ColumnReview]:
        """Give the columns of which more than this share does not fit, the worst first."""
        counts = {name: column.misfits(self.rows) for name, column in self.columns.items()}
        worst = sorted(counts, key=lambda name: -counts[name])
        return {name: self.columns[name] for name in worst if counts[name] > most * self.rows}

    def refusal(self, most: float) -> str | None:
        """Say why the rows had better not be used with this schema, if that is so."""
        over = self.above(most)
        if not over:
            return None
        named = [
            f"column '{name}': {next(iter(column.sentences(self.rows)))}."
            for name, column in list(over.items())[:_SHOWN_COLUMNS]
        ]
        more = f" And {len(over) - _SHOWN_COLUMNS} more columns." if len(over) > len(named) else ""
        return (
            f"PRIVATE: the data do not fit the schema, and nothing was paid. {' '.join(named)}"
            f"{more} Mend the schema ('sfumato schema check' tells all), or accept a larger share "
            f"than {most:g} (--misfit)"
        )

    def misfit_sentences(self) -> Iterator[str]:
        """Tell what does not fit, column by column."""
        for name, column in self.columns.items():
            for sentence in column.sentences(self.rows):
                yield f"column '{name}': {sentence}"

    def sentences(self) -> Iterator[str]:
        """Tell everything that the owner should know."""
        yield from self.misfit_sentences()
        if self.units and self.kept < self.rows:
            left = ", ".join(
                f"{most} would use {sum(min(n, most) for n in self.units.values()):,}"
                for most in (1, 2, 5, 10, 20)
            )
            yield (
                f"of {self.rows:,} rows {self.kept:,} are used, because the rows of each unit are "
                f"limited. Rows per unit: {left}. The noise grows in proportion; the number that "
                "you choose (--rows-per-unit) is public, so choose it from public knowledge"
            )


def _share(count: int, rows: int) -> str:
    share = count / rows
    return f"{share:.1%}" if share >= 0.001 else "<0.1%"
