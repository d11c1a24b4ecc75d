"""Column codes: the values of a column as integer cells on a public grid, and back.

Which cell a value has follows from the schema and from that value alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.spelling import Spellings
from sfumato.errors import SfumatoError
from sfumato.schema import (
    OTHER,
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Numeric,
    OpenCategory,
    OpenMoment,
    OpenNumber,
    Value,
    canonical_text,
)

DEFAULT_CELLS = 4096
MISSING = "(missing)"

_BOUND = "the nearest bound"
_MIDDLE = "the middle of the bounds"

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True)
class Misfit:
    """Why the schema has no place for a value, what becomes of it, and what to change.

    `quoted` tells whether the values themselves explain it, to their owner; `usual` is the share
    of a column that is nothing to speak of.
    """

    reason: str
    becomes: str
    advice: str
    quoted: bool = False
    usual: float = 0.0


_NULL = Misfit("missing", "", "nullable = true")
_NO_NUMBER = Misfit(
    "not a number",
    "",
    'decimal = "," or thousands = "," as the file writes numbers; signs such as % or $ must go',
    True,
)
_OFF_STEP = Misfit("no multiple of the step", "the nearest one", "step: leave it out")
_NOT_WHOLE = Misfit("not whole", "the nearest whole number", 'kind = "numeric"')
_NO_MOMENT = Misfit("not a date or time", "", 'format = "%d/%m/%Y" as the file writes it', True)
_OFFSET = Misfit(
    "with a time zone",
    "the same moment in UTC",
    'zone = "UTC", "+01:00" or "Europe/Berlin": where clocks show the time that is meant',
)
_UNLISTED = Misfit("not listed", "", "values: list them if they are public, or other = true", True)
_NEITHER = Misfit("neither true nor false", "", 'kind = "categorical" with values', True)


class ColumnCode(ABC):
    """How one column's values become cells, and back: numbers, moments or categories.

    A category has names and no positions; a number or a moment has positions in the unit interval
    between its bounds and no names.
    """

    nullable: bool

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of cells; that of null, where there is one, comes last."""

    @property
    def ordered(self) -> int:
        """How many leading cells are neighbours in order."""
        return 0

    @property
    def slots(self) -> NDArray[np.int32] | None:
        """The slot of each ordered cell, where neighbours that belong together are known."""
        return None

    @property
    def is_category(self) -> bool:
        """Whether its cells have names instead of positions."""
        return False

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each cell of a category."""
        return ()

    @property
    def meanings(self) -> tuple[Value, ...]:
        """What each cell of a category stands for: a listed value, another one, or none."""
        return ()

    @property
    def listed(self) -> tuple[Value, ...]:
        """The values that a category lists, in the order of their cells, which come first."""
        return ()

    @property
    def integer(self) -> bool:
        """Whether it counts in whole numbers."""
        return False

    @property
    def values_per_cell(self) -> float:
        """How many values share each of the ordered cells; a real number stands for its cell."""
        return 1.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The numbers at both ends of the unit interval."""
        raise TypeError("a category has no bounds")

    @property
    def null_position(self) -> float:
        """Where a null stands in the unit interval."""
        raise TypeError("a category has no position")

    @abstractmethod
    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.float32] | None]:
        """Give the cell of each value, and its position in the unit interval if it has one."""

    @abstractmethod
    def exact(self, given: pa.Array) -> pa.Scalar | None:
        """Give a single value in the column's type; None if it is not one of the column's."""

    @abstractmethod
    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> pa.Array:
        """Give a value of each cell; within a cell of numbers it is drawn evenly."""

    def from_unit(
        self, unit: NDArray[np.floating[Any]], missing: NDArray[np.bool_] | None = None
    ) -> pa.Array:
        """Give the values at positions in the unit interval."""
        raise TypeError("a category has no position")

    @abstractmethod
    def misfits(self, array: pa.Array) -> dict[Misfit, NDArray[np.bool_]]:
        """Tell which values the schema has no place for, by reason. Private."""


@dataclass(frozen=True)
class NumericCode(ColumnCode):
    """Cells of a number: equal ones over the bounds, then atoms, then null.

    Atoms are the exact values that often carry a mass of their own: zero, and the bounds, where
    clamped values pile up. They are chosen by this rule and not by the data. Integers that fit get
    one cell each and need no atoms.

    >>> cells = NumericCode.of(Numeric(low=0, high=10), 5)
    >>> cells.encode(pa.array([0.0, 3.0, 99.0]))[0].tolist()
    [5, 1, 6]
    """

    low: float
    width: float  # of a cell; whole for integers
    cells: int
    atoms: tuple[float, ...]
    high: float
    whole: bool
    nullable: bool
    decimal: str = "."
    thousands: str | None = None
    decimals: int | None = None  # of synthetic numbers; None for as many as tell cells apart
    step: float | None = None  # of which all values are multiples
    often: tuple[float, ...] = ()  # values that are kept as they are,
    multiple: float | None = None  # as are the multiples of this

    @classmethod
    def of(cls, column: Numeric, cells: int) -> NumericCode:
        """Lay at most `cells` cells over the column's bounds."""
        cells = column.bins or cells
        low, high = column.low, column.high
        step = column.step or (1.0 if column.integer else None)
        if step is not None:
            values = round(high / step) - round(low / step) + 1
            each = -(-values // cells)
            width = each * step
            cells = -(-values // each)
        else:
            width = (high - low) / cells
        spread = step is None or each > 1
        atoms = tuple(sorted({low, high, *column.often} | ({0.0} if low <= 0 <= high else set())))
        return cls(
            low=low,
            width=width,
            cells=cells,
            atoms=atoms if spread else (),
            high=high,
            whole=column.integer,
            nullable=column.nullable,
            decimal=column.decimal,
            thousands=column.thousands,
            decimals=column.decimals,
            step=column.step,
            often=column.often,
            multiple=column.often_multiple_of,
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest number."""
        return self.low, self.high

    @property
    def ordered(self) -> int:
        """How many leading cells are neighbours in order."""
        return self.cells

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.cells + len(self.atoms) + self.nullable

    @property
    def integer(self) -> bool:
        return self.whole

    @property
    def values_per_cell(self) -> float:
        if self.step is not None:
            return round(self.width / self.step)
        return self.width if self.integer else 1.0

    def stepped(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the nearest multiples of the step, if there is one, as decimals are read."""
        if self.step is None:
            return numbers
        return _multiples(numbers, self.step)

    @property
    def default(self) -> float:
        """What a null becomes where null is not allowed: the middle of the bounds."""
        middle = (self.low + self.high) / 2
        if self.step is not None:
            return float(self.stepped(np.array(middle)))
        return float(np.floor(middle)) if self.integer else middle

    @property
    def null_position(self) -> float:
        return float(self.to_unit(np.array([self.default]))[0])

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give the cell and the unit-interval position of each value."""
        numbers, missing = self._within(self.count(array))
        if self.step is None:
            codes = ((numbers - self.low) // self.width).astype(np.int32)
        else:
            steps = np.rint((numbers - self.low) / self.step)
            codes = (steps // self.values_per_cell).astype(np.int32)
        np.clip(codes, 0, self.cells - 1, out=codes)
        for index, atom in enumerate(self.atoms):
            codes[numbers == atom] = self.cells + index
        if self.nullable:
            codes[missing] = self.size - 1
        return codes, self.to_unit(numbers)

    def _within(
        self, numbers: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Give numbers within the bounds, and tell which were missing; infinities are, too."""
        missing = ~np.isfinite(numbers)
        numbers = np.where(missing, self.default, np.clip(numbers, self.low, self.high))
        if self.step is not None:
            return self.stepped(numbers), missing
        return np.rint(numbers) if self.integer else numbers, missing

    def count(self, array: pa.Array) -> NDArray[np.float64]:
        """Give plain numbers; whatever is not one becomes NaN."""
        return parsing.numbers(array, self.decimal, self.thousands)

    def settled(self, array: pa.Array) -> NDArray[np.float64]:
        """Give the numbers that the schema makes of values; NaN where they may be missing."""
        return self.settled_counts(self.count(array))

    def settled_counts(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give what the schema makes of numbers; NaN where they may be missing."""
        within, missing = self._within(numbers)
        return np.where(missing, np.nan, within) if self.nullable else within

    def typed(self, numbers: NDArray[np.float64], missing: NDArray[np.bool_]) -> pa.Array:
        """Give numbers in the column's type."""
        return _typed(numbers, self.integer, missing if self.nullable else None)

    def misfits(self, array: pa.Array) -> dict[Misfit, NDArray[np.bool_]]:
        numbers = self.count(array)
        found = self.beyond(array, numbers, f"{self.low:.15g}", f"{self.high:.15g}", _NO_NUMBER)
        if self.integer:
            found[_NOT_WHOLE] = np.isfinite(numbers) & (np.rint(numbers) != numbers)
        elif self.step is not None:
            off = np.abs(numbers / self.step - np.rint(numbers / self.step)) > 1e-6
            found[_OFF_STEP] = np.isfinite(numbers) & off
        return found

    def beyond(
        self,
        array: pa.Array,
        numbers: NDArray[np.float64],
        low: str,
        high: str,
        unreadable: Misfit,
    ) -> dict[Misfit, NDArray[np.bool_]]:
        """Tell what is unreadable, beyond the bounds, or missing where that is not allowed."""
        missing = parsing.is_missing(array)
        public = ", if that is public; a code for missing values, as -99, must be left empty"
        becomes = "missing" if self.nullable else _MIDDLE
        found = {
            replace(unreadable, becomes=becomes): ~np.isfinite(numbers) & ~missing,
            Misfit(f"below {low}", _BOUND, f"low = {low}: lower it{public}"): (
                np.isfinite(numbers) & (numbers < self.low)
            ),
            Misfit(f"above {high}", _BOUND, f"high = {high}: raise it{public}"): (
                np.isfinite(numbers) & (numbers > self.high)
            ),
        }
        return found if self.nullable else {**found, replace(_NULL, becomes=_MIDDLE): missing}

    def exact(self, given: pa.Array) -> pa.Scalar | None:
        """Give a single value in the column's type; None if it is not one of the column's."""
        number = parsing.numbers(given)  # public values are written plainly
        missing = ~np.isfinite(number)
        if missing[0]:
            return _typed(np.zeros(1), self.integer, missing)[0] if self.nullable else None
        within = self.low <= number[0] <= self.high and not (self.integer and number[0] % 1)
        if self.step is not None:
            within &= bool(abs(self.stepped(number)[0] - number[0]) <= 1e-6 * self.step)
        return _typed(number, self.integer, None)[0] if within else None

    def to_unit(self, numbers: NDArray[np.float64]) -> NDArray[np.float32]:
        """Scale numbers within the bounds to [0, 1]."""
        span = self.high - self.low
        scaled = (numbers - self.low) / span if span else np.zeros(len(numbers))
        return np.clip(scaled, 0, 1).astype(np.float32)

    def ends(self, given: pa.Array) -> NDArray[np.float64]:
        """Give the least and the greatest number of a range; NaN for what is not a number."""
        first, last = parsing.numbers(given)
        if self.step is not None:
            steps = np.array([np.ceil(first / self.step - 1e-6), np.floor(last / self.step + 1e-6)])
            return self.stepped(steps * self.step)
        return np.array([np.ceil(first), np.floor(last)] if self.integer else [first, last])

    def shares(self, first: float, last: float) -> NDArray[np.float64]:
        """Give the part of each cell's draws that lies in a range."""
        begins, ends = self._stretches(first, last)
        atoms = [first <= atom <= last for atom in self.atoms]
        return np.concatenate([(ends - begins) / self.width, atoms, [0.0] * self.nullable])

    def _stretches(self, first: float, last: float) -> tuple[NDArray[np.float64], ...]:
        """Give where a range begins and ends in each ordered cell, from the cell's start."""
        starts = self.low + np.arange(self.cells) * self.width
        # What is drawn beyond the highest number becomes it, and whole numbers end at the next.
        end = np.inf if last >= self.high else last + (self.step or float(self.integer))
        return np.clip(first - starts, 0, self.width), np.clip(end - starts, 0, self.width)

    def decode(
        self,
        codes: NDArray[np.integer[Any]],
        rng: np.random.Generator,
        first: float = -np.inf,
        last: float = np.inf,
    ) -> pa.Array:
        """Draw a value within each cell, evenly among those of a range."""
        ordered = np.minimum(codes, self.cells - 1)
        begins, ends = self._stretches(first, last)
        spread = rng.random(len(codes)) * (ends - begins)[ordered]
        if self.step is not None:
            spread = np.floor(spread / self.step) * self.step
        elif self.integer:
            spread = np.floor(spread)
        numbers = self.low + ordered * self.width + (begins[ordered] + spread)
        numbers = self.stepped(numbers)
        numbers = np.clip(numbers, first, min(last, self.high))
        for index, atom in enumerate(self.atoms):
            numbers[codes == self.cells + index] = atom
        missing = codes == self.size - 1 if self.nullable else None
        return _typed(numbers, self.integer, missing)

    def from_unit(
        self, unit: NDArray[np.floating[Any]], missing: NDArray[np.bool_] | None = None
    ) -> pa.Array:
        """Scale [0, 1] back to typed values."""
        numbers = self.low + np.clip(unit.astype(np.float64), 0, 1) * (self.high - self.low)
        if self.step is not None:
            numbers = self.stepped(numbers)
        elif self.integer:
            numbers = np.rint(numbers)
        return _typed(numbers, self.integer, missing if self.nullable else None)

    def rounded(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Leave no more decimals than tell cells apart: further ones would be made up."""
        if self.integer:
            return numbers
        kept: NDArray[np.float64] = np.round(numbers, self.shown_decimals)
        as_it_is = np.isin(numbers, self.often)
        if self.multiple is not None:
            as_it_is |= np.abs(_multiples(numbers, self.multiple) - numbers) <= 1e-9 * self.multiple
        return np.clip(np.where(as_it_is, numbers, kept), self.low, self.high)

    @property
    def most_decimals(self) -> int:
        """How many decimals a synthetic number can have, also one that is kept as it is."""
        known = [_decimals_of(value) for value in (*self.often, self.multiple) if value]
        return max([self.shown_decimals, *known])

    @property
    def shown_decimals(self) -> int:
        """How many decimals synthetic numbers get."""
        if self.integer:
            return 0
        if self.step is not None:
            return _decimals_of(self.step)
        finest = math.ceil(-math.log10(self.width)) if self.decimals is None else self.decimals
        return min(max(finest, 0), 30)


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


@dataclass(frozen=True)
class CategoryCode(ColumnCode):
    """One cell for each listed value, then other, then null."""

    values: tuple[Any, ...]
    other: bool
    nullable: bool
    prefix: int | None = None

    @classmethod
    def of(cls, column: Categorical) -> CategoryCode:
        """Give each listed value a cell: in the order of their texts where prefixes matter."""
        values = column.values
        if column.prefix is not None:
            values = tuple(sorted(values, key=canonical_text))
        return cls(values, column.other, column.nullable, column.prefix)

    @property
    def ordered(self) -> int:
        return len(self.values) if self.prefix is not None else 0

    @property
    def slots(self) -> NDArray[np.int32] | None:
        if self.prefix is None:
            return None
        begins = [canonical_text(value)[: self.prefix] for value in self.values]
        return np.cumsum(
            [a != b for a, b in zip(begins, begins[:1] + begins, strict=False)]
        ).astype(np.int32)

    @property
    def size(self) -> int:
        return len(self.values) + self.other + self.nullable

    @property
    def is_category(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(canonical_text(value) for value in self.meanings)

    @property
    def meanings(self) -> tuple[Value, ...]:
        return (*self.values, *[OTHER] * self.other, *[MISSING] * self.nullable)

    @property
    def default(self) -> int:
        """Where unlisted values go: other, else null, else the first listed value."""
        return len(self.values) if self.other or self.nullable else 0

    @cached_property
    def spellings(self) -> Spellings:
        """The texts by which the listed values are recognised."""
        return Spellings(self.values)

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], None]:
        """Give the cell of each value."""
        texts, known = self.recognised(array)
        codes = pc.fill_null(known, self.default).to_numpy(zero_copy_only=False).astype(np.int32)
        if self.nullable:
            missing = pc.and_(pc.is_null(known), parsing.is_null(texts))
            codes[missing.to_numpy(zero_copy_only=False)] = self.size - 1
        return codes, None

    def recognised(self, array: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Give each value's text, and its place among the listed ones: null for none of them."""
        array = parsing.plain(array)
        if pa.types.is_floating(array.type) and self.spellings.beyond_floats is not None:
            # A single null makes floating-point numbers of a frame's whole numbers.
            raise SfumatoError(
                f"floating-point numbers cannot tell {self.spellings.beyond_floats} from its "
                "neighbours: give the column as whole numbers or as text"
            )
        texts = parsing.texts(array)
        return texts, self.spellings.find(texts)

    @property
    def listed(self) -> tuple[Value, ...]:
        return self.values

    def misfits(self, array: pa.Array) -> dict[Misfit, NDArray[np.bool_]]:
        texts, known = self.recognised(array)
        strange = pc.is_null(known).to_numpy(zero_copy_only=False)
        missing = strange & parsing.is_null(texts).to_numpy(zero_copy_only=False)
        unlisted = _NEITHER if self.values == (False, True) else _UNLISTED
        if self.other:
            unlisted = replace(unlisted, advice="values: check how they are spelt", usual=0.5)
        found = {replace(unlisted, becomes=self._default_name): strange & ~missing}
        if not self.nullable:
            found[replace(_NULL, becomes=self._default_name)] = missing
        return found

    @property
    def _default_name(self) -> str:
        return f"'{self.names[self.default]}'"

    def exact(self, given: pa.Array) -> pa.Scalar | None:
        texts, known = self.recognised(given)
        other = self.other and texts[0].as_py() == OTHER
        missing = self.nullable and parsing.is_null(texts)[0].as_py()
        if not (known[0].is_valid or other or missing):
            return None
        return self.decode(self.encode(given)[0], np.random.default_rng(0))[0]

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> pa.Array:
        """Give the value of each cell."""
        names: list[Any] = list(self.values)
        if len({type(name) for name in names}) > 1 or (self.other and type(names[0]) is not str):
            names = [canonical_text(name) for name in names]
        dictionary = names + [OTHER] * self.other + [None] * self.nullable
        return pa.array(dictionary).take(pa.array(codes))


def code_of(column: Column, cells: int = DEFAULT_CELLS) -> ColumnCode:
    """Give the code of a modelled column, at most `cells` for a number."""
    match column:
        case Numeric():
            return NumericCode.of(column, cells)
        case Datetime():
            return DatetimeCode.of(column, cells)
        case Categorical():
            return CategoryCode.of(column)
        case Boolean():
            return CategoryCode((False, True), False, column.nullable)
        case Identifier():
            raise SfumatoError("an identifier is never modelled")
        case OpenNumber() | OpenMoment() | OpenCategory():
            from sfumato.data.open_codes import open_code_of  # which builds on the codes here

            return open_code_of(column)


def _multiples(numbers: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    nearest: NDArray[np.float64] = np.round(np.rint(numbers / step) * step, _decimals_of(step))
    return nearest


def _decimals_of(step: float) -> int:
    """Give how many decimals a number has, and its multiples."""
    return max(0, -int(Decimal(repr(step)).normalize().as_tuple().exponent))


def _typed(
    numbers: NDArray[np.float64], integer: bool, missing: NDArray[np.bool_] | None
) -> pa.Array:
    return pa.array(numbers.astype(np.int64) if integer else numbers, mask=missing)
