"""Record and replay: does a method keep to its own bounds?

Fit a method on a data set and record every answer: releases, and the noisy gradients of trainings.
Fit it again on a neighbour, but answer each request with the recorded values: since the method then
sees the same answers, it must ask the same questions (number, dimension, noise), and the exact sums
behind them may differ by no more than the sensitivity that was paid for. Whatever reaches the
method past the curator, such as a bound or a row count read from the data, shows up as a different
question. A training takes every row in every step here, so that each sum sees the rows that differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import GivenRows, PrivateRows
from sfumato.data.table_codec import TableCodec
from sfumato.privacy.budget import Budget, Relation, Spend, TrainingSpend
from sfumato.privacy.curator import Curator
from sfumato.privacy.gate import Gate
from sfumato.privacy.held_rows import HeldRows
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.privacy.statistic import Statistic
from sfumato.schema import Schema

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.privacy.dpsgd import Learner, Schedule, State

Integers = NDArray[np.int64]


class Learns(Protocol):
    """A method or a classifier."""

    def codec(self, schema: Schema) -> TableCodec | ImageCodec:
        """Give the code in which rows are seen."""

    def learn(self, curator: Curator) -> Any:
        """Ask the curator, and make a model of its answers."""


def forgotten_run() -> Run:
    """Give a run whose ledger is forgotten, and that stops for nothing."""
    return Run(ledger=Ledger(":memory:"), dataset="audit", gate=Gate(None))


@dataclass(frozen=True)
class _Sum:
    """An exact sum, and how far a neighbour's may lie from it."""

    name: str
    exact: Integers
    reach: float


class _AnyNumber(HeldRows):
    """Rows of which there may be none: a neighbour may be empty."""

    def refuse_empty(self, rows: int) -> None:
        """Refuse nothing."""


class _Tape(Curator):
    """A curator that records questions and exact sums, and can play answers back.

    Its ledger is forgotten and it has no folder: nothing that it answered can be taken for a
    release. What it does not play back is the wall's answer.
    """

    def __init__(
        self,
        rows: PrivateRows,
        budget: Budget,
        schema: Schema,
        recorded: list[Integers] | None = None,
    ) -> None:
        super().__init__(rows, budget, schema, forgotten_run())
        held = _AnyNumber(rows, "", forgotten_run())
        self._asking = replace(self._asking, held=held)
        self.questions: list[str] = []
        self.sums: list[_Sum] = []
        self.answers: list[Integers] = []
        self._recorded = recorded

    def train(
        self, name: str, learner: Learner, schedule: Schedule, share: float | None = None
    ) -> State:
        self._ask(name, learner.describe(), asdict(schedule), share)
        return super().train(name, learner, schedule, share)

    def _noisy_sum(self, rows: PrivateRows, statistic: Statistic, spend: Spend) -> Integers:
        self._ask(asdict(spend), statistic.describe())
        exact = _Sum(spend.name, rows.sum(statistic), spend.sensitivity)
        return self._played(exact, lambda: super(_Tape, self)._noisy_sum(rows, statistic, spend))

    def _noisy_gradient(
        self, learner: Learner, rows: Sequence[Tensor], spend: TrainingSpend
    ) -> Integers:
        from sfumato.privacy.dpsgd import grid_sum

        self._ask(asdict(spend))
        every = np.arange(len(rows[0]) if rows else 0)
        # A replaced row may point the other way: its sensitivity counts twice.
        times = 1 if self.budget.relation is Relation.ADD_REMOVE else 2
        exact = grid_sum(learner, rows, every, spend)
        reach = times * spend.sensitivity / spend.grid
        every_row = replace(spend, rate=1.0)  # so that each sum sees the rows that differ
        return self._played(
            _Sum(spend.name, exact, reach),
            lambda: super(_Tape, self)._noisy_gradient(learner, rows, every_row),
        )

    def _ask(self, *question: Any) -> None:
        self.questions.append(json.dumps(question, sort_keys=True))

    def _played(self, exact: _Sum, noisy: Callable[[], Integers]) -> Integers:
        index = len(self.answers)
        self.sums.append(exact)
        self.answers.append(noisy() if self._recorded is None else self._recorded[index])
        return self.answers[-1]


def assert_replays(
    method: Learns,
    rows: Iterable[Batch],
    neighbour: Iterable[Batch],
    schema: Schema,
    budget: Budget,
) -> None:
    """Raise AssertionError unless the method passes record and replay on these neighbours."""
    codec = method.codec(schema)
    first = _Tape(GivenRows(rows, codec), budget, schema)
    method.learn(first)
    second = _Tape(GivenRows(neighbour, codec), budget, schema, first.answers)
    method.learn(second)
    assert first.questions == second.questions, "the questions depend on private rows"
    assert first.questions, "nothing was asked"
    for left, right in zip(first.sums, second.sums, strict=True):
        moved = float(np.linalg.norm((left.exact - right.exact).astype(np.float64)))
        assert moved <= left.reach * (1 + 1e-9), (
            f"'{left.name}' moved by {moved}, more than its sensitivity {left.reach}"
        )
