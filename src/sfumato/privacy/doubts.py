"""Doubts about a budget: what makes no sense, told before anything is paid."""

from __future__ import annotations

import math

from sfumato.privacy.budget import Budget
from sfumato.privacy.zcdp import gaussian_scale

WEAK_EPSILON, EMPTY_EPSILON = 10.0, 100.0
LARGE_DELTA, EMPTY_DELTA = 1e-3, 1e-2
LEAST_ROWS = 20.0  # in units of the noise of a single count that had the whole budget


def doubts(budget: Budget, rows: int | None = None) -> tuple[str, ...]:
    """Say in a line each what is doubtful, with the number of rows where it is public.

    >>> doubts(Budget(epsilon=1), rows=8000)
    ()
    >>> doubts(Budget(epsilon=1, delta=0.5))[0][:45]
    'WARNING: delta 0.5 promises next to nothing: '
    """
    found = (_of_epsilon(budget), _of_delta(budget, rows), _of_rows(budget, rows))
    return tuple(doubt for doubt in found if doubt)


def _of_epsilon(budget: Budget) -> str | None:
    if budget.epsilon > EMPTY_EPSILON:
        return f"WARNING: epsilon {budget.epsilon:g} promises next to nothing: usual are 0.1 to 10"
    if budget.epsilon > WEAK_EPSILON:
        return (
            f"epsilon {budget.epsilon:g} is a weak promise: with one person's rows, an outcome may "
            f"be {math.exp(budget.epsilon):.2g} times as likely as without them"
        )
    return None


def _of_delta(budget: Budget, rows: int | None) -> str | None:
    """To publish each row with probability delta would keep the promise."""
    if budget.delta >= EMPTY_DELTA:
        return (
            f"WARNING: delta {budget.delta:g} promises next to nothing: it would let each row be "
            "published with that probability; usual is 1e-6"
        )
    if rows is not None and budget.delta >= 1 / rows:
        return (
            f"delta {budget.delta:g} is too large for {rows:,} rows: it would let about "
            f"{budget.delta * rows:,.0f} of them be published; take far less than {1 / rows:.1g}"
        )
    if rows is None and budget.delta >= LARGE_DELTA:
        return (
            f"delta {budget.delta:g} is large: it would let about one row in "
            f"{1 / budget.delta:,.0f} be published; take far less than 1 / rows"
        )
    return None


def _of_rows(budget: Budget, rows: int | None) -> str | None:
    """Whatever is released has more noise than one count that gets the whole budget."""
    noise = gaussian_scale(budget.max_rows_per_unit, budget.rho)
    if rows is None or rows >= LEAST_ROWS * noise:
        return None
    enough = LEAST_ROWS * noise / rows * budget.epsilon  # noise falls about as epsilon grows
    return (
        f"{rows:,} rows are too few for epsilon {budget.epsilon:g}: a single count, for the whole "
        f"budget, would have noise of {noise:,.0f} rows; take epsilon {enough:.1g} or more"
    )
