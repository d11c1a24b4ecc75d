"""Progress: how long work tells what it is doing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float | None], None]
"""Takes what is being done and the fraction that is done, or None where nobody knows it."""


def silent(stage: str, fraction: float | None) -> None:
    """Tell nobody."""
