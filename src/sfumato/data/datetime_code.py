"""The code of moments: whole units since 1970, as numbers are coded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.column_code import ColumnCode, Misfit
from sfumato.data.numeric_code import NumericCode
from sfumato.schema import Datetime, Numeric

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_NO_MOMENT = Misfit("not a date or time", "", 'format = "%d/%m/%Y" as the file writes it', True)
_OFFSET = Misfit(
    "with a time zone",
    "the same moment in UTC",
    'zone = "UTC", "+01:00" or "Europe/Berlin": where clocks show the time that is meant',
)


@dataclass(frozen=True)
class DatetimeCode(ColumnCode):
    """Cells of a moment: an integer column of whole units since 1970."""

    units: NumericCode
    column: Datetime

    @classmethod
    def of(cls, column: Datetime, cells: int) -> DatetimeCode:
        """Lay at most `cells` cells over the column's bounds."""
        low, high = (
            int(np.datetime64(moment, "s").astype(np.int64)) // _SECONDS[column.unit]
            for moment in (column.low, column.high)
        )
        counted = Numeric(
            low=low, high=high, integer=True, bins=column.bins, nullable=column.nullable
        )
        return cls(NumericCode.of(counted, cells), column)

    @property
    def low(self) -> datetime:
        """The first moment."""
        return self.column.low

    @property
    def high(self) -> datetime:
        """The last moment."""
        return self.column.high

    @property
    def nullable(self) -> bool:  # type: ignore[override]
        return self.units.nullable

    @property
    def size(self) -> int:
        return self.units.size

    @property
    def ordered(self) -> int:
        return self.units.ordered

    @property
    def integer(self) -> bool:
        return True

    @property
    def values_per_cell(self) -> float:
        return self.units.values_per_cell

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds as `count` counts."""
        return self.units.bounds

    @property
    def null_position(self) -> float:
        return self.units.null_position

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return self.units.encode(pa.array(self.count(array)))

    def count(self, array: pa.Array) -> NDArray[np.float64]:
        """Give whole units since 1970; whatever is not a moment becomes NaN."""
        seconds = parsing.seconds(array, self.column.format, self.column.zone)
        units: NDArray[np.float64] = seconds // _SECONDS[self.column.unit]
        return units

    def settled(self, array: pa.Array) -> NDArray[np.float64]:
        """Give the whole units that the schema makes of moments; NaN where they may be missing."""
        return self.units.settled_counts(self.count(array))

    def typed(self, numbers: NDArray[np.float64], missing: NDArray[np.bool_]) -> pa.Array:
        """Give whole units in the column's type."""
        return self._moments(self.units.typed(numbers, missing))

    @property
    def seconds(self) -> int:
        """How many seconds a unit has."""
        return _SECONDS[self.column.unit]

    def exact(self, given: pa.Array) -> pa.Scalar | None:
        seconds = parsing.seconds(given, None, self.column.zone)  # public values are ISO dates
        count = self.units.exact(pa.array(seconds // _SECONDS[self.column.unit]))
        return None if count is None else self._moments(pa.array([count.as_py()], pa.int64()))[0]

    def ends(self, given: pa.Array) -> NDArray[np.float64]:
        """Give the least and the greatest whole unit of a range; NaN for what is not a moment."""
        first, last = parsing.seconds(given, None, self.column.zone) / _SECONDS[self.column.unit]
        return np.array([np.ceil(first), np.floor(last)])

    def shares(self, first: float, last: float) -> NDArray[np.float64]:
        """Give the part of each cell's draws that lies in a range."""
        return self.units.shares(first, last)

    def decode(
        self,
        codes: NDArray[np.integer[Any]],
        rng: np.random.Generator,
        first: float = -np.inf,
        last: float = np.inf,
    ) -> pa.Array:
        return self._moments(self.units.decode(codes, rng, first, last))

    def from_unit(
        self, unit: NDArray[np.floating[Any]], missing: NDArray[np.bool_] | None = None
    ) -> pa.Array:
        return self._moments(self.units.from_unit(unit, missing))

    def misfits(self, array: pa.Array) -> dict[Misfit, NDArray[np.bool_]]:
        low, high = (str(bound).removesuffix(" 00:00:00") for bound in (self.low, self.high))
        found = self.units.beyond(array, self.count(array), low, high, _NO_MOMENT)
        if self.column.zone is None:
            found[_OFFSET] = parsing.has_offset(array, self.column.format)
        return found

    def _moments(self, counts: pa.Array) -> pa.Array:
        seconds = pc.multiply(counts, _SECONDS[self.column.unit]).cast(pa.timestamp("s"))
        if self.column.unit == "day":
            return seconds.cast(pa.date32())
        if self.column.zone is None:
            return seconds
        ahead = parsing.fixed_offset(self.column.zone)
        if ahead is not None:
            instants = pc.subtract(seconds.cast(pa.int64()), ahead)
            return instants.cast(pa.timestamp("s", self.column.zone))
        # Where clocks are put back or forward, an hour comes twice or not at all.
        return pc.assume_timezone(
            seconds, self.column.zone, ambiguous="earliest", nonexistent="earliest"
        )
