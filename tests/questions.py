"""What methods ask of private rows, recorded from one fit and asked again of other rows.

A release is an exact sum and noise that does not depend on the rows, and what is asked next depends
on earlier releases: rows that answer all questions of a fit alike give the same releases, bit by
bit. So a method is fitted once, however many sources are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from seeded import Seeded, drawing
from sfumato.data.batch import Batch
from sfumato.data.review import Review
from sfumato.data.rows import PrivateRows
from sfumato.modelling.base import Method
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.schema import Schema

Question = Any
"""Takes private rows and gives the bytes of an answer."""


class Recorded(PrivateRows):
    """Rows that keep what they are asked."""

    def __init__(self, rows: PrivateRows) -> None:
        self.codec = rows.codec
        self._rows = rows
        self.asked: list[Question] = []

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._rows)

    def sum(self, statistic: Any) -> Any:
        self.asked.append(partial(summed, statistic=statistic))
        return self._rows.sum(statistic)

    def gathered(self, needed: Any) -> Any:
        self.asked.append(partial(gathered, needed=needed))
        return self._rows.gathered(needed)

    def review(self) -> Review:
        return self._rows.review()


def summed(rows: PrivateRows, statistic: Any) -> bytes:
    return rows.sum(statistic).tobytes()


def gathered(rows: PrivateRows, needed: Any) -> bytes:
    return b"".join(array.tobytes() for array in rows.gathered(needed))


def questions(
    method: Method, rows: PrivateRows, schema: Schema, budget: Budget
) -> Sequence[Question]:
    """Fit a method, with seeded noise, and give what it asked."""
    recorded = Recorded(rows)
    curator = Curator(recorded, budget, schema, Run(ledger=Ledger(":memory:"), dataset="test"))
    with drawing(Seeded()):
        method.learn(curator)
    return recorded.asked


def answers(asked: Sequence[Question], rows: PrivateRows) -> list[bytes]:
    """Review rows, as a curator does, and answer all questions."""
    rows.review()
    try:
        return [question(rows) for question in asked]
    finally:
        rows.close()
