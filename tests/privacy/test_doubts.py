"""What makes no sense is told; what does, is not."""

from __future__ import annotations

import pytest

from sfumato.privacy.budget import Budget
from sfumato.privacy.doubts import doubts


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
@pytest.mark.parametrize("rows", [None, 8000])
def test_a_usual_budget_raises_no_doubt(epsilon: float, rows: int | None) -> None:
    assert doubts(Budget(epsilon=epsilon), rows) == ()


@pytest.mark.parametrize(
    ("budget", "rows", "words"),
    [
        (Budget(epsilon=0.01), 400, "400 rows are too few for epsilon 0.01"),
        (Budget(epsilon=1, max_rows_per_unit=100), 2000, "2,000 rows are too few"),
        (Budget(epsilon=1, delta=0.5), None, "WARNING: delta 0.5 promises next to nothing"),
        (Budget(epsilon=1, delta=2e-3), None, "delta 0.002 is large"),
        (Budget(epsilon=1, delta=2e-3), 500, "delta 0.002 is too large for 500 rows"),
        (Budget(epsilon=11), None, "epsilon 11 is a weak promise"),
        (Budget(epsilon=1000), None, "WARNING: epsilon 1000 promises next to nothing"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_line(
    budget: Budget, rows: int | None, words: str
) -> None:
    (doubt,) = doubts(budget, rows)
    assert words in doubt
    assert "\n" not in doubt


def test_the_epsilon_that_is_advised_raises_no_more_doubt() -> None:
    (doubt,) = doubts(Budget(epsilon=0.01), 4000)
    advised = float(doubt.rsplit("epsilon ", 1)[1].split()[0])
    assert doubts(Budget(epsilon=1.5 * advised), 4000) == ()
