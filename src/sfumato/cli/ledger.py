"""`sfumato ledger`: what was spent on which data set, and how much may be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Delta, LedgerFile, RelationOption, Unit
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.ledger import ROW, Currency, Ledger

app = typer.Typer(help="Show what was spent, or set a limit.", no_args_is_help=True)


@app.command()
def show(
    dataset: Annotated[str | None, typer.Argument(help="Only this data set.")] = None,
    ledger: LedgerFile = None,
    delta: Annotated[float, typer.Option("--delta", help="The delta of the totals.")] = 1e-6,
) -> None:
    """List every spend on a line of its own, what is reserved, and the totals over all runs."""
    from sfumato.cli.console import print_lines
    from sfumato.errors import in_open_unit

    in_open_unit(delta=delta)
    book = open_ledger(ledger)
    book.check()
    _refuse_unknown(book, dataset)
    entries = book.entries(dataset)
    print_lines(
        f"Spends in {book.path}",
        ["data set", "time", "release", "values", "noise", "cost", "answer", "neighbours"],
        [
            [
                entry.dataset,
                entry.time,
                entry.spend.name,
                f"{entry.spend.dim:,}",
                *entry.spend.in_words(),
                "saved" if book.last_answer(entry.number) else "not saved",
                _terms(entry.currency),
            ]
            for entry in entries
        ],
    )
    print_lines(
        "Reserved by runs that have not ended (go on with them, or free it: sfumato ledger cancel)",
        ["data set", "time", "left", "neighbours"],
        [
            [each.dataset, each.time, each.rest.in_words()[1], _terms(each.currency)]
            for each in book.reservations(dataset)
        ],
    )
    limits = book.limits()
    totals = []
    for name, currency in dict.fromkeys((entry.dataset, entry.currency) for entry in entries):
        limit, _ = limits.get(name, (None, ""))
        at = limit.delta if limit else delta
        reached = book.total_epsilon(name, currency, at)
        most = f"{limit.epsilon:g}" if limit else "none"
        totals.append([name, f"{reached:.4g}", f"{at:g}", most, _terms(currency)])
    print_lines("Totals", ["data set", "epsilon", "delta", "limit", "neighbours"], totals)
    print_lines(
        "Limits, as they were set",
        ["data set", "time", "epsilon", "delta", "neighbours"],
        [
            [
                change.dataset,
                change.time,
                f"{change.budget.epsilon:g}",
                f"{change.budget.delta:g}",
                _terms((change.budget.relation, change.budget.max_rows_per_unit, change.unit)),
            ]
            for change in book.limit_changes()
            if dataset in (None, change.dataset)
        ],
    )


@app.command()
def cancel(
    dataset: Annotated[str, typer.Argument(help="The data set's name in the ledger.")],
    ledger: LedgerFile = None,
) -> None:
    """Free what interrupted runs have reserved and not spent. What was spent stays spent."""
    book = open_ledger(ledger)
    _refuse_unknown(book, dataset)
    freed = book.reservations(dataset)
    for each in freed:
        book.close(each.number)
    print(f"{dataset}: {len(freed)} reservation(s) freed")


def _refuse_unknown(book: Ledger, dataset: str | None) -> None:
    known = book.datasets()
    if dataset is not None and dataset not in known:
        listed = f"it knows {', '.join(known)}" if known else "it is empty"
        raise SfumatoError(f"the ledger {book.path} has no data set '{dataset}': {listed}")


@app.command()
def limit(
    dataset: Annotated[str, typer.Argument(help="The data set's name in the ledger.")],
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The most over all runs.")],
    delta: Delta = 1e-6,
    relation: RelationOption = Relation.ADD_REMOVE,
    rows_per_unit: Unit = 1,
    unit: Annotated[
        str, typer.Option("--unit", help="The column that names the unit of privacy, or row.")
    ] = ROW,
    ledger: LedgerFile = None,
) -> None:
    """Set the most that may ever be spent on a data set."""
    budget = Budget(
        epsilon=epsilon, delta=delta, relation=relation, max_rows_per_unit=rows_per_unit
    )
    book = open_ledger(ledger)
    book.limit(dataset, budget, unit)
    print(f"{dataset}: at most epsilon {epsilon:g} at delta {delta:g}, in {book.path}")


def ledger_files(path: Path | None) -> list[Path]:
    """Name the files of a ledger, which no output may overwrite."""
    file = path or Ledger.default_path()
    return [file, Path(f"{file}.id")]


def open_ledger(path: Path | None) -> Ledger:
    """Open the named ledger, or the user's own."""
    return Ledger(path) if path else Ledger.default()


def _terms(currency: Currency) -> str:
    relation, rows, unit = currency
    return f"{relation}, {rows} row(s) per unit ({unit})"
