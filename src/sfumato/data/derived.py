"""Derived columns: never modelled, but worked out from others, which are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.constraints import Derived
from sfumato.data.codes import (
    MISSING,
    CategoryCode,
    ColumnCode,
    DatetimeCode,
    Misfit,
    NumericCode,
)
from sfumato.data.constraints import Arrays, Broken, Rule
from sfumato.data.functions import NamedFunction
from sfumato.data.mapping import Mapped, MappedCategory, MappedNumber
from sfumato.errors import SfumatoError
from sfumato.schema import OTHER, Column, canonical_text

_MOST_VALUES = 1000  # of a function whose values are categories


@dataclass(frozen=True, eq=False)
class DerivedRule(Rule):
    """A derived column: its code, and those of the columns that it follows from.

    What private rows have in its place is not looked at, but to tell their owner where it differs.
    """

    derived: Derived
    sources: tuple[ColumnCode, ...]
    code: ColumnCode

    def __post_init__(self) -> None:
        try:
            if self.derived.mapping is None:
                self._refuse_missing()
                self._refuse_without_room()
            else:
                self._refuse_unmapped()
        except SfumatoError as error:
            raise SfumatoError(
                f"column '{self.derived.column}' ({self.derived.in_words()}): {error}"
            ) from None

    @property
    def made(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.derived.made

    @property
    def hidden(self) -> dict[str, Column]:
        return {}

    def hide(self, rows: Arrays) -> tuple[dict[str, pa.Array], Broken]:
        worked_out = self.restore(rows)[self.derived.column]
        misfit = Misfit(
            f"other than what follows from {', '.join(self.derived.of)}",
            "that",
            f"the constraint {self.derived.in_words()}",
        )
        return {}, {self.derived.column: {misfit: self._differ(rows[self.made[0]], worked_out)}}

    def _differ(self, given: pa.Array, worked_out: pa.Array) -> NDArray[np.bool_]:
        if not isinstance(self.code, NumericCode | DatetimeCode):
            both = [self.code.encode(array)[0] for array in (given, worked_out)]
            return np.asarray(both[0] != both[1])
        found, wanted = self.code.count(given), self.code.count(worked_out)
        allowed = 1e-6 * np.abs(wanted)  # how a program adds up
        if isinstance(self.code, NumericCode) and self.derived.mapping is None:
            fewest = min(self.function.decimals, self.code.shown_decimals)
            allowed = allowed + 0.500001 * 10.0**-fewest  # and how what it adds up is written
        apart = ~(np.abs(found - wanted) <= allowed)
        return np.asarray(apart & ~(np.isnan(found) & np.isnan(wanted)))

    def restore(self, rows: Arrays) -> dict[str, pa.Array]:
        arrays = [rows[name] for name in self.derived.of]
        if self.derived.mapping is not None:
            places = self.mapped.places(arrays)
            return {self.made[0]: self._images.take(pa.array(places, mask=places < 0))}
        numbers = self.function(arrays)
        missing = np.isnan(numbers)
        numbers = np.where(missing, 0, numbers)
        if isinstance(self.code, NumericCode):
            whole = np.rint(numbers) if self.code.integer else numbers
            return {self.made[0]: self.code.typed(whole, missing)}
        if isinstance(self.code, DatetimeCode):
            return {self.made[0]: self.code.typed(numbers // self.code.seconds, missing)}
        cells, _ = self.code.encode(pa.array(numbers.astype(np.int64), mask=missing))
        return {self.made[0]: self.code.decode(cells, np.random.default_rng(0))}

    @cached_property
    def function(self) -> NamedFunction:
        """The function that it is, or that its mapping is of."""
        return NamedFunction(self.derived.function, self.sources)

    @cached_property
    def mapped(self) -> Mapped:
        """Its mapping, where it has one."""
        keys = [canonical_text(key) for key in self.derived.mapping or {}]
        source = self.sources[0]
        if isinstance(source, CategoryCode) and self.derived.function is None:
            return MappedCategory(keys, source)
        return MappedNumber(keys, self.function, self._read)

    def _read(self, key: str) -> float:
        """Give the number that a key of the mapping stands for; NaN for none."""
        source = self.sources[0]
        if isinstance(source, DatetimeCode) and self.derived.function is None:
            return float(source.ends(pa.array([key, key]))[0])
        try:
            return float(key)
        except ValueError:
            return math.nan

    @cached_property
    def _images(self) -> pa.Array:
        """The values that the mapping gives, in the column's type, in the order of its keys."""
        found = []
        for key, value in (self.derived.mapping or {}).items():
            image = self.code.exact(pa.array([canonical_text(value)]))
            if image is None:
                raise SfumatoError(f"{value!r}, which the mapping has for '{key}', is no value")
            found.append(image)
        return pa.array([image.as_py() for image in found], found[0].type)

    def _refuse_unmapped(self) -> None:
        _ = self._images
        excused = (MISSING, OTHER) if self.code.nullable else ()
        lacking = [name for name in self.mapped.lacking if name not in excused]
        if lacking:
            ranges = f', or "{lacking[0]}.." for all from there on'
            raise SfumatoError(
                f"the mapping has nothing for '{lacking[0]}': add it"
                + (ranges if isinstance(self.mapped, MappedNumber) else "")
            )

    def _refuse_missing(self) -> None:
        if any(source.nullable for source in self.sources) and not self.code.nullable:
            raise SfumatoError(
                f"it is missing where {' or '.join(self.derived.of)} is: declare nullable = true"
            )

    def _refuse_without_room(self) -> None:
        """Refuse a column that has no place for what the function can give."""
        low, high = self.function.reach
        if (self.derived.function == "date") != isinstance(self.code, DatetimeCode):
            kind = "datetime" if self.derived.function == "date" else "integer"
            raise SfumatoError(f'a {self.derived.function} is no such value: kind = "{kind}"')
        if isinstance(self.code, CategoryCode):
            if high - low >= _MOST_VALUES or not self.function.is_whole:
                raise SfumatoError('it has too many values for a category: kind = "numeric"')
            wanted = pa.array(np.arange(int(low), int(high) + 1))
            _, known = self.code.recognised(wanted)
            if known.null_count and not self.code.other:
                lacking = wanted.filter(known.is_null())[0]
                raise SfumatoError(f"list the value {lacking}, or give a mapping to its values")
            return
        first, last = self.code.bounds
        if isinstance(self.code, DatetimeCode):
            low, high = low // self.code.seconds, high // self.code.seconds
        if first > low or last < high:
            told = "" if isinstance(self.code, DatetimeCode) else f": {low:.15g} to {high:.15g}"
            raise SfumatoError(
                f"low and high must leave room for all that it can be{told}. It is not counted, so "
                "wide bounds cost nothing"
            )
