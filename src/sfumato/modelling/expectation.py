"""What to expect of a run, from noise and public facts alone: nothing is read, nothing is paid."""

from __future__ import annotations

import math
from dataclasses import dataclass

CLEAR = 3.0
"""A class stands out that is so many times as large as its noise."""


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """An error to expect, as a part of a whole, and what it is good for.

    Parameters
    ----------
    what
        What it is an error of.
    part
        Its size: 0.01 is one percent of the whole, infinity where nothing is released of it. None
        where `words` say all there is.
    good, usable
        The largest part that is good, and that is still of use; beyond, there is noise only. None
        where no such verdict can be given.
    words
        What else is to be said.

    >>> error = Expectation(what="share of a value", part=0.004, good=0.01, usable=0.05)
    >>> error.in_words(), error.limits()
    ('0.4%, good', '1%, 5%')
    """

    what: str
    part: float | None = None
    good: float | None = None
    usable: float | None = None
    words: str = ""

    @property
    def verdict(self) -> str | None:
        """Say what it is good for."""
        if self.part is None or self.good is None or self.usable is None:
            return None
        if self.part <= self.good:
            return "good"
        return "usable" if self.part <= self.usable else "noise only"

    def in_words(self) -> str:
        """Tell the size, the verdict and what else there is."""
        return ", ".join(part for part in (_percent(self.part), self.words, self.verdict) if part)

    def limits(self) -> str:
        """Tell up to which size it is good, and usable."""
        return ", ".join(part for part in (_percent(self.good), _percent(self.usable)) if part)


def smallest_class(what: str, noise: float, rows: int) -> Expectation:
    """Give the class that just stands out of noise of so many rows."""
    least = CLEAR * noise
    return Expectation(
        what=what, part=least / rows, good=0.01, usable=0.1, words=f"{least:,.0f} rows"
    )


def _percent(part: float | None) -> str:
    if part is None:
        return ""
    if math.isinf(part):
        return "not released"
    return f"{100 * part:.2g}%" if part < 0.995 else f"{100 * part:,.0f}%"
