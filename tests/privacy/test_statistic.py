"""What a unit of several rows may move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.planning import plan_spend
from sfumato.privacy.statistic import Resolution, Statistic, unit_sensitivity


class Rows(Statistic):
    """The number of rows: exchanging a row for another leaves it as it is."""

    dim = largest_entry = 1

    def sensitivity(self, relation: Relation) -> float:
        return 1.0 if relation is Relation.ADD_REMOVE else 0.0

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        return np.array([len(batch)])

    def resolutions(self) -> tuple[Resolution, ...]:
        return ()

    def describe(self) -> dict[str, Any]:
        return {"statistic": "rows"}


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("rows", [1, 5])
def test_a_replaced_unit_may_come_with_fewer_rows(relation: Relation, rows: int) -> None:
    """With `rows` rows before and none after, the sum moves by that many."""
    budget = Budget(epsilon=1, relation=relation, max_rows_per_unit=rows)
    assert unit_sensitivity(Rows(), budget) == rows
    assert plan_spend("rows", Rows(), budget, 1.0).sensitivity == rows
