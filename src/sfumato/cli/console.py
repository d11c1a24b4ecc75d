"""What people see while they wait: everything on stderr, so that stdout holds results only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Table

from sfumato.progress import Progress, silent

stderr = Console(stderr=True)


@contextmanager
def progress_display(quiet: bool) -> Iterator[Progress]:
    """Show stages with elapsed and expected time on a terminal; plain lines elsewhere."""
    if quiet:
        yield silent
        return
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=stderr, disable=not stderr.is_terminal) as bars:
        yield _Stages(bars)


class _Stages:
    """One line for each stage; a new stage finishes the one before."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._stage = ""
        self._task: TaskID | None = None

    def __call__(self, stage: str, fraction: float | None) -> None:
        if stage != self._stage:
            if self._task is not None:
                self._bars.update(self._task, total=1, completed=1)
            self._task = self._bars.add_task(stage, total=None)
            self._stage = stage
            if self._bars.disable:
                stderr.print(stage, style="dim")
        if fraction is not None and self._task is not None:
            self._bars.update(self._task, total=1, completed=fraction)


def print_lines(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows on stdout, one line each however long, under their title; nothing for no rows."""
    if not rows:
        return
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    print(title)
    for row in (columns, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  " + "  ".join(cells).rstrip())


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
