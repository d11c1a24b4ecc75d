"""The code of numbers: equal cells between public bounds, and single values beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.column_code import MISSING_VALUE, ColumnCode, Misfit
from sfumato.schema import Numeric

NEAREST_BOUND = "the nearest bound"
_MIDDLE = "the middle of the bounds"
_NO_NUMBER = Misfit(
    "not a number",
    "",
    'decimal = "," or thousands = "," as the file writes numbers; signs such as % or $ must go',
    True,
)
_OFF_STEP = Misfit("no multiple of the step", "the nearest one", "step: leave it out")
_NOT_WHOLE = Misfit("not whole", "the nearest whole number", 'kind = "numeric"')


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
        return typed_numbers(numbers, self.integer, missing if self.nullable else None)

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
        missing = np.isnan(numbers)
        missing[missing] = parsing.is_missing(array.filter(pa.array(missing)))
        public = ", if that is public; a code for missing values, as -99, must be left empty"
        becomes = "missing" if self.nullable else _MIDDLE
        found = {
            replace(unreadable, becomes=becomes): ~np.isfinite(numbers) & ~missing,
            Misfit(f"below {low}", NEAREST_BOUND, f"low = {low}: lower it{public}"): (
                np.isfinite(numbers) & (numbers < self.low)
            ),
            Misfit(f"above {high}", NEAREST_BOUND, f"high = {high}: raise it{public}"): (
                np.isfinite(numbers) & (numbers > self.high)
            ),
        }
        return (
            found if self.nullable else {**found, replace(MISSING_VALUE, becomes=_MIDDLE): missing}
        )

    def exact(self, given: pa.Array) -> pa.Scalar | None:
        """Give a single value in the column's type; None if it is not one of the column's."""
        number = parsing.numbers(given)  # public values are written plainly
        missing = ~np.isfinite(number)
        if missing[0]:
            return typed_numbers(np.zeros(1), self.integer, missing)[0] if self.nullable else None
        within = self.low <= number[0] <= self.high and not (self.integer and number[0] % 1)
        if self.step is not None:
            within &= bool(abs(self.stepped(number)[0] - number[0]) <= 1e-6 * self.step)
        return typed_numbers(number, self.integer, None)[0] if within else None

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
        return typed_numbers(numbers, self.integer, missing)

    def from_unit(
        self, unit: NDArray[np.floating[Any]], missing: NDArray[np.bool_] | None = None
    ) -> pa.Array:
        """Scale [0, 1] back to typed values."""
        numbers = self.low + np.clip(unit.astype(np.float64), 0, 1) * (self.high - self.low)
        if self.step is not None:
            numbers = self.stepped(numbers)
        elif self.integer:
            numbers = np.rint(numbers)
        return typed_numbers(numbers, self.integer, missing if self.nullable else None)

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


def _multiples(numbers: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    nearest: NDArray[np.float64] = np.round(np.rint(numbers / step) * step, _decimals_of(step))
    return nearest


def _decimals_of(step: float) -> int:
    """Give how many decimals a number has, and its multiples."""
    return max(0, -int(Decimal(repr(step)).normalize().as_tuple().exponent))


def typed_numbers(
    numbers: NDArray[np.float64], integer: bool, missing: NDArray[np.bool_] | None
) -> pa.Array:
    """Give numbers, whole ones as such, and null where they are missing."""
    return pa.array(numbers.astype(np.int64) if integer else numbers, mask=missing)
