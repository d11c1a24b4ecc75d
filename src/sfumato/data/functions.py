"""Named functions of columns: parts of a moment, and sums, differences and products of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.codes import ColumnCode, DatetimeCode, NumericCode
from sfumato.errors import SfumatoError

Floats = NDArray[np.float64]

_PARTS = {"quarter": (1, 4), "month": (1, 12), "weekday": (1, 7), "day": (1, 31), "hour": (0, 23)}
"""Parts of a moment that come again and again, with the least and the greatest number."""

_OF_MOMENTS = (*_PARTS, "year", "date")
_MOST_DECIMALS = 15


@dataclass(frozen=True, eq=False)
class NamedFunction:
    """A function of numbers or moments; without a name, the number itself.

    Moments and dates are counted in seconds, differences of moments in the first one's unit.

    >>> from sfumato.schema import Numeric
    >>> euros = NumericCode.of(Numeric(low=0, high=9, decimals=1), 10)
    >>> NamedFunction("sum", (euros, euros))([pa.array([0.1]), pa.array([0.2])]).tolist()
    [0.3]
    """

    name: str | None
    sources: tuple[ColumnCode, ...]

    def __post_init__(self) -> None:
        moments = [isinstance(source, DatetimeCode) for source in self.sources]
        if any(source.is_category for source in self.sources):
            raise SfumatoError("a category is no number: give a mapping")
        if self.name in _OF_MOMENTS and not all(moments):
            raise SfumatoError(f"only a datetime has a {self.name}")
        if self.name in ("sum", "product") and any(moments):
            raise SfumatoError(f"a datetime has no {self.name}")
        if any(moments) != all(moments):
            raise SfumatoError("a number and a datetime have no difference")

    @property
    def is_whole(self) -> bool:
        """Whether it gives whole numbers only."""
        return all(source.integer for source in self.sources)

    @property
    def decimals(self) -> int:
        """How many decimals what it gives can have, as far as its columns are written."""
        each = [s.most_decimals if isinstance(s, NumericCode) else 0 for s in self.sources]
        return min(sum(each) if self.name == "product" else max(each), _MOST_DECIMALS)

    def __call__(self, arrays: Sequence[pa.Array]) -> Floats:
        """Work it out, row by row; NaN where something is missing."""
        settled = []
        for source, array in zip(self.sources, arrays, strict=True):
            assert isinstance(source, NumericCode | DatetimeCode)
            settled.append(source.settled(array) * _seconds(source))
        if self.name in _OF_MOMENTS:
            return settled[0] if self.name == "date" else _part(settled[0], self.name)
        return self._put_together(settled)

    def _put_together(self, numbers: Sequence[Floats]) -> Floats:
        scale = _seconds(self.sources[0])
        if self.name == "sum":
            found = np.sum(numbers, axis=0)
        elif self.name == "product":
            found = np.prod(numbers, axis=0)
        else:
            found = numbers[0] - numbers[1] if self.name == "difference" else numbers[0]
            found = found // scale if scale > 1 else found
        # Binary fractions leave something behind the last decimal.
        return np.asarray(np.round(found, self.decimals) if self.name else found)

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the greatest number that it can give."""
        if self.name in _PARTS:
            return _PARTS[self.name]
        bounds = [np.array(s.bounds) * _seconds(s) for s in self.sources]
        if self.name in _OF_MOMENTS:
            ends = bounds[0] if self.name == "date" else _part(bounds[0], self.name)
            return float(ends[0]), float(ends[1])
        corners = [
            self._put_together([np.array([end]) for end in ends])[0] for ends in product(*bounds)
        ]
        return float(min(corners)), float(max(corners))


def _seconds(code: ColumnCode) -> int:
    return code.seconds if isinstance(code, DatetimeCode) else 1


def _part(seconds: Floats, part: str | None) -> Floats:
    """Give a part of moments that are told in seconds since 1970; a week begins on Monday, 1."""
    missing = np.isnan(seconds)
    moments = np.where(missing, 0, seconds).astype(np.int64).astype("datetime64[s]")
    days, months = moments.astype("datetime64[D]"), moments.astype("datetime64[M]")
    found = {
        "year": months.astype("datetime64[Y]").astype(np.int64) + 1970,
        "quarter": months.astype(np.int64) % 12 // 3 + 1,
        "month": months.astype(np.int64) % 12 + 1,
        "weekday": (days.astype(np.int64) + 3) % 7 + 1,
        "day": (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
        "hour": (moments - days.astype("datetime64[s]")).astype(np.int64) // 3600,
    }[str(part)]
    return np.where(missing, math.nan, found.astype(np.float64))
