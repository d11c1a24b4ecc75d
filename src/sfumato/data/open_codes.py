"""Codes of columns of which the schema leaves something open: where it is looked for.

A number is looked for among the powers of two, a moment among the years, so that a few counts tell
within which bounds it lies. Once that is known, the column has a code as others have.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.column_code import ColumnCode, Misfit
from sfumato.data.datetime_code import DatetimeCode
from sfumato.data.numeric_code import NumericCode
from sfumato.errors import SfumatoError
from sfumato.schema import Datetime, Numeric, OpenCategory, OpenMoment, OpenNumber

_LEAST_EXPONENT, _MOST_EXPONENT = -30, 51
_FIRST_YEAR, _LAST_YEAR = 1800, 2199
_SURELY = 3.5  # deviations of one count between two
_FARTHEST = 2.0 ** (_MOST_EXPONENT + 1)


class OpenCode(ColumnCode):
    """Cells of a column of which something is open; they stand for no values."""

    def exact(self, given: pa.Array) -> pa.Scalar | None:
        raise SfumatoError("its bounds or values are still to be found")

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> pa.Array:
        raise SfumatoError("its bounds or values are still to be found")


class BoundsGrid(OpenCode):
    """Cells along a line, with the least and the greatest value that each may hold; then null."""

    @property
    @abstractmethod
    def steps(self) -> list[tuple[Any, Any]]:
        """The least and the greatest value of each cell, but for null."""

    @property
    def size(self) -> int:
        return len(self.steps) + self.nullable

    def around(self, first: int, last: int, counts: NDArray[Any], sigma: float) -> tuple[Any, Any]:
        """Give bounds for rows that were seen from one step to another, by noisy counts."""
        return self.steps[first][0], self.steps[last][1]


@dataclass(frozen=True)
class NumberGrid(BoundsGrid):
    """Powers of two on both sides of zero, which has a cell of its own.

    >>> grid = NumberGrid(OpenNumber(low="private", high="private", integer=True))
    >>> [grid.steps[cell] for cell in grid.encode(pa.array([0, 1, 100, -5]))[0]]
    [(0.0, 0.0), (1.0, 1.0), (64.0, 127.0), (-7.0, -4.0)]
    """

    column: OpenNumber

    @property
    def nullable(self) -> bool:  # type: ignore[override]
        return self.column.nullable

    @property
    def _least(self) -> int:
        return 0 if self.column.integer else _LEAST_EXPONENT

    @property
    def steps(self) -> list[tuple[float, float]]:
        exponents = range(self._least, _MOST_EXPONENT + 1)
        above = [(2.0**e, 2.0 ** (e + 1) - self.column.integer) for e in exponents]
        if not self.column.integer:
            above[0] = (0.0, above[0][1])
        return [(-high, -low) for low, high in reversed(above)] + [(0.0, 0.0)] + above

    def around(
        self, first: int, last: int, counts: NDArray[Any], sigma: float
    ) -> tuple[float, float]:
        """Give bounds one step beyond, where numbers thin out.

        Zero is where most numbers end. Where it is all that is seen, both sides are taken in, but
        for one that has fewer rows than the other beyond doubt: bounds do not collapse.

        >>> grid = NumberGrid(OpenNumber(low="private", high="private", integer=True))
        >>> counts = np.zeros(len(grid.steps))
        >>> counts[52:54] = 900, 80  # rows that are 0, and 1
        >>> grid.around(52, 52, counts, 10.0), grid.around(52, 52, counts, 50.0)
        ((0.0, 1.0), (-1.0, 1.0))
        """
        steps = self.steps
        zero = steps.index((0.0, 0.0))
        below, above = max(first - 1, 0), min(last + 1, len(steps) - 1)
        if first == last == zero:
            apart = (counts[above] - counts[below]) / sigma
            below, above = zero if apart > _SURELY else below, zero if -apart > _SURELY else above
        else:
            below, above = (zero if first == zero else below), (zero if last == zero else above)
        return steps[below][0], steps[above][1]

    def _numbers(self, array: pa.Array) -> NDArray[np.float64]:
        return parsing.numbers(array, self.column.decimal, self.column.thousands)

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], None]:
        numbers = self._numbers(array)
        missing = ~np.isfinite(numbers)
        numbers = np.where(missing, 0.0, numbers)
        if self.column.integer:
            numbers = np.rint(numbers)
        exponents = np.frexp(numbers)[1] - 1  # of the power of two below, without rounding
        places = np.clip(exponents, self._least, _MOST_EXPONENT) - self._least + 1
        zero = _MOST_EXPONENT - self._least + 1
        codes = zero + np.sign(numbers).astype(np.int32) * places
        if self.nullable:
            codes[missing] = self.size - 1
        return codes.astype(np.int32), None

    def misfits(self, array: pa.Array) -> dict[Misfit, NDArray[np.bool_]]:
        """Tell what is unreadable or missing; nothing lies beyond bounds that are not known."""
        column = self.column
        anywhere = Numeric(
            low=-_FARTHEST, high=_FARTHEST, integer=column.integer, nullable=column.nullable,
            decimal=column.decimal, thousands=column.thousands,
        )  # fmt: skip
        return NumericCode.of(anywhere, 1).misfits(array)


@dataclass(frozen=True)
class MomentGrid(BoundsGrid):
    """Years."""

    column: OpenMoment

    @property
    def nullable(self) -> bool:  # type: ignore[override]
        return self.column.nullable

    @property
    def steps(self) -> list[tuple[datetime, datetime]]:
        years = range(_FIRST_YEAR, _LAST_YEAR + 1)
        return [(datetime(y, 1, 1), datetime(y, 12, 31, 23, 59, 59)) for y in years]

    @property
    def _anywhere(self) -> DatetimeCode:
        column = self.column
        bounds = {"low": self.steps[0][0], "high": self.steps[-1][1]}
        # Not validated: a format of two digits for the year cannot write all years.
        return DatetimeCode.of(Datetime.model_construct(**dict(column) | bounds), 1)

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], None]:
        seconds = parsing.seconds(array, self.column.format, self.column.zone)
        missing = ~np.isfinite(seconds)
        moments = np.where(missing, 0, np.clip(seconds, -1e11, 1e11)).astype("datetime64[s]")
        years = moments.astype("datetime64[Y]").astype(np.int64) + 1970
        codes = np.clip(years, _FIRST_YEAR, _LAST_YEAR) - _FIRST_YEAR
        if self.nullable:
            codes[missing] = self.size - 1
        return codes.astype(np.int32), None

    def misfits(self, array: pa.Array) -> dict[Misfit, NDArray[np.bool_]]:
        return self._anywhere.misfits(array)


@dataclass(frozen=True)
class AnyCategory(OpenCode):
    """One cell for whatever there is; the values themselves are looked for by a selection."""

    column: OpenCategory

    @property
    def nullable(self) -> bool:  # type: ignore[override]
        return self.column.nullable

    @property
    def size(self) -> int:
        return 1 + self.nullable

    @property
    def is_category(self) -> bool:
        return True

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], None]:
        parsing.refuse_large_floats(array)
        missing = parsing.is_null(parsing.texts(array)).to_numpy(zero_copy_only=False)
        return (missing & self.nullable).astype(np.int32), None

    def misfits(self, array: pa.Array) -> dict[Misfit, NDArray[np.bool_]]:
        missing = parsing.is_null(parsing.texts(array)).to_numpy(zero_copy_only=False)
        found = Misfit("missing", "'(other)'", "nullable = true")
        return {} if self.nullable else {found: missing}


def open_code_of(column: OpenNumber | OpenMoment | OpenCategory) -> OpenCode:
    """Give the code in which what is open of a column is looked for."""
    match column:
        case OpenNumber():
            return NumberGrid(column)
        case OpenMoment():
            return MomentGrid(column)
        case OpenCategory():
            return AnyCategory(column)
