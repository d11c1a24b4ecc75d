"""What notebooks show: small tables, and the stages of long work."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape

from sfumato.progress import Progress, silent


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table with a caption; all texts are escaped.

    >>> html_table("Ages", ["name"], [["<Ann>"]])
    '<table><caption>Ages</caption><tr><th>name</th></tr><tr><td>&lt;Ann&gt;</td></tr></table>'
    """
    lines = [_line("th", columns), *(_line("td", row) for row in rows)]
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def usual_progress() -> Progress:
    """Tell stages in a notebook, and nobody elsewhere."""
    if "ipykernel" not in sys.modules:
        return silent
    told: set[str] = set()

    def tell(stage: str, fraction: float | None) -> None:
        if stage not in told:
            told.add(stage)
            print(f"sfumato: {stage}", file=sys.stderr, flush=True)

    return tell
