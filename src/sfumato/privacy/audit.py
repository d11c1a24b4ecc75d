"""Record and replay: does a method keep to its own bounds?

Fit a method on a data set and record every release. Fit it again on a neighbour, but answer each
request with the recorded values: since the method then sees the same answers, it must ask the same
questions (number, dimension, noise), and the exact sums behind them may differ by no more than the
sensitivity that was paid for. Whatever reaches the method past the curator, such as a bound or a
row count read from the data, shows up as a different question.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.codec import Batch
from sfumato.features.base import Statistic
from sfumato.privacy.budget import Budget, Spend
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Sampler, discrete_gaussian
from sfumato.privacy.release import Curator
from sfumato.schema import Schema

if TYPE_CHECKING:
    from sfumato.methods.base import Method

Question = tuple[Spend, str]


class _Tape(Curator):
    """A curator that records questions and exact sums, and can play answers back."""

    def __init__(
        self,
        rows: Iterable[Batch],
        budget: Budget,
        schema: Schema,
        sampler: Sampler,
        answers: list[NDArray[np.int64]] | None = None,
    ) -> None:
        super().__init__(
            rows,
            budget,
            ledger=Ledger(":memory:"),
            dataset="audit",
            schema=schema,
            sampler=sampler,
        )
        self.questions: list[Question] = []
        self.sums: list[NDArray[np.int64]] = []
        self._answers = answers

    def _noisy_sum(self, statistic: Statistic, spend: Spend) -> NDArray[np.int64]:
        index = len(self.questions)
        self.questions.append((spend, json.dumps(statistic.describe(), sort_keys=True)))
        self.sums.append(self._exact_sum(statistic))
        if self._answers is None:
            return self.sums[-1] + self._sampler(statistic.dim, spend.sigma)
        return self._answers[index]


def assert_replays(
    method: Method,
    rows: Iterable[Batch],
    neighbour: Iterable[Batch],
    schema: Schema,
    budget: Budget,
    sampler: Sampler = discrete_gaussian,
) -> None:
    """Raise AssertionError unless the method passes record and replay on these neighbours."""
    first = _Tape(rows, budget, schema, sampler)
    method.learn(first, schema)
    answers = [release.values for release in first.releases]
    second = _Tape(neighbour, budget, schema, sampler, answers)
    method.learn(second, schema)
    assert first.questions == second.questions, "the questions depend on private rows"
    assert first.questions, "nothing was asked"
    for (spend, _), left, right in zip(first.questions, first.sums, second.sums, strict=True):
        moved = float(np.linalg.norm((left - right).astype(np.float64)))
        assert moved <= spend.sensitivity * (1 + 1e-9), (
            f"'{spend.name}' moved by {moved}, more than its sensitivity {spend.sensitivity}"
        )
