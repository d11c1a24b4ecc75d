"""`sfumato plan`: what a run would release and cost, and what to expect of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.asked import Question, grouped
from sfumato.cli.options import (
    Input,
)
from sfumato.errors import SfumatoError, positive
from sfumato.privacy.budget import Budget, Spend, TrainingSpend
from sfumato.privacy.doubts import doubts

if TYPE_CHECKING:
    from sfumato.modelling.base import Plan
    from sfumato.modelling.expectation import Expectation

Epsilons = Annotated[
    str, typer.Option("--epsilon", "-e", help="The privacy budget, or several with commas.")
]
PublicRows = Annotated[
    int | None,
    typer.Option("--rows", "-n", help="How many rows there are: public knowledge, or a guess."),
]
ROWS = 10_000
"""For which expectations are given where the number of rows is not."""


@grouped
def plan(data: Input, question: Question, epsilon: Epsilons, rows: PublicRows = None) -> None:
    """Say what a run would release and cost, and what to expect of it. Reads no row."""
    from sfumato.data.rows import encoded_rows
    from sfumato.synthesis import default_method

    if rows is not None:
        positive(rows=rows)
    public = question.public()
    chosen = question.method_for(default_method(public))
    encoded_rows(data, chosen.codec(public))  # names and shapes must fit; no row is read
    budgets = [question.at(each) for each in _numbers(epsilon)]
    plans = [chosen.plan(public, budget) for budget in budgets]
    _print_releases(plans)
    print(f"memory for the sums: about {plans[0].memory / 1e6:,.0f} MB")
    _print_expectations(
        budgets, [chosen.expect(public, budget, rows or ROWS) for budget in budgets], rows
    )
    for each in plans[0].public:
        print(f"public input: {each.in_words()}")
    for note in plans[0].notes:
        print(note)
    for name, value in public.settled.items():
        print(f"all rows have {value} in column '{name}': the schema leaves no other value")
    if public.unit_column:
        from sfumato.certificate import used_rows

        print(used_rows(public.unit_column, question.rows_per_unit))
    for doubt in dict.fromkeys(doubt for budget in budgets for doubt in doubts(budget, rows)):
        print(doubt)


def _numbers(text: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        return list(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        raise SfumatoError(
            f"epsilon must be a number, or several with commas, as in 0.5,1,3; got '{text}'"
        ) from None


def _print_releases(plans: Sequence[Plan]) -> None:
    """Print what would be released: with its cost, or with the noise of each budget."""
    from sfumato.cli.console import print_table

    first = plans[0]
    costs: list[tuple[Spend | TrainingSpend, ...]]
    costs = [(*each.spends, *each.trainings) for each in plans]
    if len(plans) == 1:
        columns, told = ["noise", "cost"], [cost.in_words() for cost in costs[0]]
    else:
        columns = [f"noise at epsilon {each.budget.epsilon:g}" for each in plans]
        told = [tuple(cost.in_words()[0] for cost in same) for same in zip(*costs, strict=True)]
    print_table(
        f"{first.method}: what would be released (sizes are upper bounds)",
        ["release", "values", "sensitivity", *columns],
        [
            [cost.name, f"{cost.dim:,}", f"{cost.sensitivity:.6g}", *words]
            for cost, words in zip(costs[0], told, strict=True)
        ],
    )
    for each in plans:
        promised = each.guarantee
        print(
            f"cost: epsilon {promised.epsilon:.6g} at delta {promised.delta:g} "
            f"({promised.relation})"
        )


def _print_expectations(
    budgets: Sequence[Budget], expected: Sequence[tuple[Expectation, ...]], rows: int | None
) -> None:
    """Print errors by budget, side by side, with the limits of their verdicts."""
    from sfumato.cli.console import print_table

    if not expected[0]:
        return
    given = f"of {rows:,} rows" if rows else f"per {ROWS:,} rows (say how many with --rows)"
    print_table(
        f"what to expect {given}, by noise alone",
        ["figure", *(f"epsilon {each.epsilon:g}" for each in budgets), "good, usable up to"],
        [
            [line[0].what, *(each.in_words() for each in line), line[0].limits()]
            for line in zip(*expected, strict=True)
        ],
    )
    print("Beyond usable there is noise only. Rows are taken as spread evenly; none is read.")
