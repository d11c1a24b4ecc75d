"""What is kept back of a budget for finding what a schema leaves open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchBudget:
    """A share of the budget's rho, and a chance that takes (1 + e^epsilon) as much of delta.

    >>> SearchBudget().share
    0.0
    """

    share: float = 0.0
    chance: float = 0.0
