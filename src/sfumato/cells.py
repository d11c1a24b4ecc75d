"""Cells: the integer codes of a column's values on a public grid, and back.

Which cell a value has follows from the schema and from that value alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import casting
from sfumato.errors import SfumatoError
from sfumato.schema import (
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Numeric,
    canonical_text,
)
from sfumato.spelling import Spellings

DEFAULT_CELLS = 4096
OTHER = "(other)"

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True)
class NumericCells:
    """Cells of a number: equal ones over the bounds, then atoms, then null.

    Atoms are the exact values that often carry a mass of their own: zero, and the bounds, where
    clamped values pile up. They are chosen by this rule and not by the data. Integers that fit get
    one cell each and need no atoms.

    >>> cells = NumericCells.of(Numeric(low=0, high=10), 5)
    >>> cells.encode(pa.array([0.0, 3.0, 99.0]))[0].tolist()
    [5, 1, 6]
    """

    low: float
    width: float  # of a cell; whole for integers
    cells: int
    atoms: tuple[float, ...]
    high: float
    integer: bool
    nullable: bool

    @classmethod
    def of(cls, column: Numeric, cells: int) -> NumericCells:
        """Lay at most `cells` cells over the column's bounds."""
        cells = column.bins or cells
        low, high = column.low, column.high
        if column.integer:
            values = int(high) - int(low) + 1
            width = float(-(-values // cells))
            cells = -(-values // int(width))
        else:
            width = (high - low) / cells
        spread = not column.integer or width > 1
        atoms = tuple(sorted({low, high} | ({0.0} if low <= 0 <= high else set())))
        return cls(
            low=low,
            width=width,
            cells=cells,
            atoms=atoms if spread else (),
            high=high,
            integer=column.integer,
            nullable=column.nullable,
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
    def default(self) -> float:
        """What a null becomes where null is not allowed: the middle of the bounds."""
        middle = (self.low + self.high) / 2
        return float(np.floor(middle)) if self.integer else middle

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give the cell and the unit-interval position of each value."""
        numbers = self.count(array)
        missing = ~np.isfinite(numbers)  # infinities count as null, too
        numbers = np.where(missing, self.default, np.clip(numbers, self.low, self.high))
        if self.integer:
            numbers = np.rint(numbers)
        codes = ((numbers - self.low) // self.width).astype(np.int32)
        np.clip(codes, 0, self.cells - 1, out=codes)
        for index, atom in enumerate(self.atoms):
            codes[numbers == atom] = self.cells + index
        if self.nullable:
            codes[missing] = self.size - 1
        return codes, self.to_unit(numbers)

    def count(self, array: pa.Array) -> NDArray[np.float64]:
        """Give plain numbers; whatever is not one becomes NaN."""
        return casting.numbers(array)

    def exact(self, given: pa.Array) -> pa.Scalar | None:
        """Give a single value in the column's type; None if it is not one of the column's."""
        number = self.count(given)
        missing = ~np.isfinite(number)
        if missing[0]:
            return _typed(np.zeros(1), self.integer, missing)[0] if self.nullable else None
        within = self.low <= number[0] <= self.high and not (self.integer and number[0] % 1)
        return _typed(number, self.integer, None)[0] if within else None

    def to_unit(self, numbers: NDArray[np.float64]) -> NDArray[np.float32]:
        """Scale numbers within the bounds to [0, 1]."""
        span = self.high - self.low
        scaled = (numbers - self.low) / span if span else np.zeros(len(numbers))
        return np.clip(scaled, 0, 1).astype(np.float32)

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> pa.Array:
        """Draw a value within each cell, evenly."""
        spread = rng.random(len(codes)) * self.width
        if self.integer:
            spread = np.floor(spread)
        numbers = self.low + np.minimum(codes, self.cells - 1) * self.width + spread
        numbers = np.minimum(numbers, self.high)
        for index, atom in enumerate(self.atoms):
            numbers[codes == self.cells + index] = atom
        missing = codes == self.size - 1 if self.nullable else None
        return _typed(numbers, self.integer, missing)

    def from_unit(
        self, unit: NDArray[np.floating[Any]], missing: NDArray[np.bool_] | None = None
    ) -> pa.Array:
        """Scale [0, 1] back to typed values."""
        numbers = self.low + np.clip(unit.astype(np.float64), 0, 1) * (self.high - self.low)
        if self.integer:
            numbers = np.rint(numbers)
        return _typed(numbers, self.integer, missing if self.nullable else None)


@dataclass(frozen=True)
class DatetimeCells:
    """Cells of a moment: an integer column of whole units since the lower bound's epoch."""

    cells: NumericCells
    unit: str

    @classmethod
    def of(cls, column: Datetime, cells: int) -> DatetimeCells:
        """Lay at most `cells` cells over the column's bounds."""
        low, high = (
            int(np.datetime64(moment, "s").astype(np.int64)) // _SECONDS[column.unit]
            for moment in (column.low, column.high)
        )
        counted = Numeric(
            low=low, high=high, integer=True, bins=column.bins, nullable=column.nullable
        )
        return cls(NumericCells.of(counted, cells), column.unit)

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds as `count` counts."""
        return self.cells.bounds

    @property
    def ordered(self) -> int:
        """How many leading cells are neighbours in order."""
        return self.cells.ordered

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.cells.size

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Give the cell and the unit-interval position of each moment."""
        return self.cells.encode(pa.array(self.count(array)))

    def count(self, array: pa.Array) -> NDArray[np.float64]:
        """Give whole units since 1970; whatever is not a moment becomes NaN."""
        units: NDArray[np.float64] = casting.seconds(array) // _SECONDS[self.unit]
        return units

    def exact(self, given: pa.Array) -> pa.Scalar | None:
        """Give a single moment; None if it is not one of the column's."""
        count = self.cells.exact(pa.array(self.count(given)))
        return None if count is None else self._moments(pa.array([count.as_py()], pa.int64()))[0]

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> pa.Array:
        """Draw a moment within each cell, evenly."""
        return self._moments(self.cells.decode(codes, rng))

    def from_unit(
        self, unit: NDArray[np.floating[Any]], missing: NDArray[np.bool_] | None = None
    ) -> pa.Array:
        """Scale [0, 1] back to moments."""
        return self._moments(self.cells.from_unit(unit, missing))

    def _moments(self, counts: pa.Array) -> pa.Array:
        seconds = pc.multiply(counts, _SECONDS[self.unit]).cast(pa.timestamp("s"))
        return seconds.cast(pa.date32()) if self.unit == "day" else seconds


@dataclass(frozen=True)
class CategoryCells:
    """One cell for each listed value, then other, then null."""

    values: tuple[Any, ...]
    other: bool
    nullable: bool

    @property
    def ordered(self) -> int:
        """Categories have no order."""
        return 0

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.values) + self.other + self.nullable

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
            missing = pc.and_(pc.is_null(known), casting.is_null(texts))
            codes[missing.to_numpy(zero_copy_only=False)] = self.size - 1
        return codes, None

    def recognised(self, array: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Give each value's text, and its place among the listed ones: null for none of them."""
        array = casting.plain(array)
        if pa.types.is_floating(array.type) and self.spellings.beyond_floats is not None:
            # A single null makes floating-point numbers of a frame's whole numbers.
            raise SfumatoError(
                f"floating-point numbers cannot tell {self.spellings.beyond_floats} from its "
                "neighbours: give the column as whole numbers or as text"
            )
        texts = casting.texts(array)
        return texts, self.spellings.find(texts)

    def exact(self, given: pa.Array) -> pa.Scalar | None:
        """Give a single value in the column's type; None if it is not one of the column's."""
        texts, known = self.recognised(given)
        other = self.other and texts[0].as_py() == OTHER
        missing = self.nullable and casting.is_null(texts)[0].as_py()
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


Cells = NumericCells | DatetimeCells | CategoryCells


def cells_of(column: Column, cells: int = DEFAULT_CELLS) -> Cells:
    """Give the cells of a modelled column, at most `cells` for a number."""
    match column:
        case Numeric():
            return NumericCells.of(column, cells)
        case Datetime():
            return DatetimeCells.of(column, cells)
        case Categorical():
            return CategoryCells(column.values, column.other, column.nullable)
        case Boolean():
            return CategoryCells((False, True), False, column.nullable)
        case Identifier():
            raise SfumatoError("an identifier is never modelled")


def _typed(
    numbers: NDArray[np.float64], integer: bool, missing: NDArray[np.bool_] | None
) -> pa.Array:
    return pa.array(numbers.astype(np.int64) if integer else numbers, mask=missing)
