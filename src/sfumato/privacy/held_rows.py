"""The private rows of one run: read once before anything is paid, and then only summed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import PrivateRows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import PrivateWarning, SfumatoError
from sfumato.privacy.budget import SelectionSpend
from sfumato.privacy.run import Run
from sfumato.privacy.selection import Selection

if TYPE_CHECKING:
    from sfumato.privacy.dpsgd import Examples, Learner

_LITTLE = 0.5  # of the rows have a value that is told: their owner is warned of less


class HeldRows:
    """Rows, what their owner is told of them, and the code through which they are seen.

    Parameters
    ----------
    rows
        Encoded rows.
    source
        Where they come from.
    """

    def __init__(
        self,
        rows: PrivateRows,
        source: str,
        run: Run,
    ) -> None:
        self.rows = rows
        self._declared = rows  # in the code of the schema that was declared, which are reviewed
        self._name = Path(source).name or "the data set"
        self._gate, self._tell = run.gate, run.tell
        self._reviewed = False
        self.foretold: Mapping[Selection, SelectionSpend] = {}

    @property
    def codec(self) -> TableCodec | ImageCodec:
        """The code in which the rows were encoded."""
        if self.rows.codec is None:
            raise TypeError("these rows came without their code")
        return self.rows.codec

    def recode(self, codec: TableCodec) -> None:
        """Go on with the same rows in another code; they are read before the next payment."""
        self.rows = self._declared.recoded(codec)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Leave no encoded rows on disk after this, nor those that a crash left before.

        Databases are let go of, too.
        """
        self.rows.clear()
        try:
            yield
        finally:
            self._declared.clear()
            self.rows.close()

    def review(self, most_rows_per_unit: int) -> None:
        """Before each payment: see that rows can be read, are as they were, and are kept.

        What cannot be read, or is empty, is noticed before it costs. All is read once in the code
        of the declared schema, and once more where another code was found.
        """
        if not self._reviewed:
            self._tell("reading rows", None)
            found = self._declared.review()
            self.refuse_empty(found.kept)
            if self._gate.most is not None and not self._gate.share:
                refusal = found.refusal(self._gate.most)
                if refusal:
                    raise SfumatoError(refusal)
            for sentence in (*found.sentences(), *self._little_told(most_rows_per_unit)):
                warnings.warn(f"PRIVATE: {sentence}", PrivateWarning, stacklevel=2)
            self._reviewed = True
        if self.rows is not self._declared:
            self._declared.clear()
            self.rows.keep()
        self.rows.check()

    def _little_told(self, most_rows_per_unit: int) -> Iterator[str]:
        """Say of which columns most rows have a value that few rows have."""
        for selection, spend in self.foretold.items():
            counts = self._declared.counted_values(selection.column)
            least = selection.threshold(spend, most_rows_per_unit)
            told = sum(count for count in counts.values() if count >= least)
            rows = sum(counts.values())
            if told < _LITTLE * rows:
                yield (
                    f"column '{selection.column}' has {len(counts):,} values; those that about "
                    f"{least:,.0f} rows have are told, and {1 - told / rows:.0%} of the rows have "
                    "others, which become (other). If it is text, leave it out; if it names rows, "
                    "declare an identifier"
                )

    def refuse_empty(self, rows: int) -> None:
        """Refuse a data set without rows."""
        if rows == 0:
            raise SfumatoError(f"{self._name} has no rows")

    def examples(self, learner: Learner) -> Examples:
        """Give what a training needs of all rows."""
        from sfumato.privacy.dpsgd import MOST_ROWS

        self._tell("reading rows", None)
        examples = self.rows.gathered(learner.examples)
        self.refuse_empty(len(examples[0]) if examples else 0)
        if len(examples[0]) > MOST_ROWS:
            raise SfumatoError(f"a training takes at most {MOST_ROWS:,} rows")
        return examples
