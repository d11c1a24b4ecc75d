"""Totals: what the composition of many costs needs to know of them, added up exactly."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from sfumato.privacy.budget import Cost

VERSION = 2
"""Of what a cost comes to: a kept total of another version is added up anew."""


@dataclass(frozen=True, kw_only=True)
class Total(Cost):
    """Many costs as one. Its sums are fractions: no order of adding changes a bit of them.

    Equal steps of trainings are added up, too: composing m and n of them composes m + n.

    >>> from sfumato.privacy.budget import Spend
    >>> spend = Spend(name="counts", dim=4, sensitivity=1, sigma=2)
    >>> round(Total().plus(spend).plus(spend).rho, 9)
    0.25
    """

    name: str = "all spends"
    dim: int = 0
    sums: tuple[Fraction, ...] = (Fraction(0),) * 4
    """Of rho, of squared distances, of missed chances and of log ratios."""

    steps: tuple[tuple[float, float, int], ...] = ()

    @property
    def rho(self) -> float:
        return float(self.sums[0])

    @property
    def squared_distance(self) -> float:
        return float(self.sums[1])

    @property
    def missed(self) -> float:
        return float(self.sums[2])

    @property
    def log_ratio(self) -> float:
        return float(self.sums[3])

    @property
    def trainings(self) -> tuple[tuple[float, float, int], ...]:
        return self.steps

    def plus(self, cost: Cost) -> Total:
        """Give the total with one more cost."""
        more = (cost.rho, cost.squared_distance, cost.missed, cost.log_ratio)
        steps = Counter({(noise, rate): count for noise, rate, count in self.steps})
        for noise, rate, count in cost.trainings:
            steps[noise, rate] += count
        return Total(
            sums=tuple(one + Fraction(other) for one, other in zip(self.sums, more, strict=True)),
            steps=tuple(sorted((*key, count) for key, count in steps.items())),
        )

    def in_words(self) -> tuple[str, str]:
        return "", f"rho {self.rho:.4g}"

    def to_row(self) -> dict[str, str | float]:
        return {"name": self.name, "rho": self.rho}

    def text(self) -> str:
        """Give it as a text from which it can be read back, exactly."""
        return json.dumps([[str(each) for each in self.sums], self.steps])

    @classmethod
    def of_text(cls, text: str) -> Total:
        """Read back what `text` gave."""
        sums, steps = json.loads(text)
        return cls(
            sums=tuple(Fraction(each) for each in sums),
            steps=tuple((noise, rate, count) for noise, rate, count in steps),
        )
