"""Constraints at work: columns that hang together become columns that do not, and back.

`hide` gives, for rows of a table, what is modelled instead of the columns that a constraint makes:
of an order the differences, of combinations one column of all that may be, of a derived column
nothing. `restore` gives the columns back, and they obey, whatever is drawn. What a row becomes that
breaks a constraint depends on that row alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.constraints import Combination, Order
from sfumato.data.codes import CategoryCode, DatetimeCode, Misfit, NumericCode
from sfumato.data.condition import Condition
from sfumato.errors import SfumatoError
from sfumato.schema import Categorical, Column, Numeric, canonical_text

Arrays = Mapping[str, pa.Array]
Broken = dict[str, dict[Misfit, NDArray[np.bool_]]]
"""By column: which rows break a constraint, and what becomes of them."""

_MOST_COMBINATIONS = 1 << 20
_NO_DRAW = np.random.default_rng(0)  # a category's cell stands for one value


class Rule(ABC):
    """A constraint over columns of known codes."""

    made: tuple[str, ...]

    @property
    @abstractmethod
    def hidden(self) -> dict[str, Column]:
        """What is modelled in place of the columns that it makes."""

    @abstractmethod
    def hide(self, rows: Arrays) -> tuple[dict[str, pa.Array], Broken]:
        """Give the values that are modelled, and tell which rows break it."""

    @abstractmethod
    def restore(self, rows: Arrays) -> dict[str, pa.Array]:
        """Give the columns that it makes."""


@dataclass(frozen=True, eq=False)
class OrderRule(Rule):
    """An order: each column after the first is modelled by how far it lies beyond the one before.

    Where that is missing, the last one that is there counts; where none is, the lowest bound. A
    value that lies before becomes equal.
    """

    order: Order
    codes: tuple[NumericCode | DatetimeCode, ...]

    def __post_init__(self) -> None:
        for (first, one), (second, other) in pairwise(
            zip(self.order.order, self.codes, strict=True)
        ):
            _refuse_unlike(first, one, second, other)
            step = 1.0 if other.integer else None
            if isinstance(other, NumericCode) and isinstance(one, NumericCode):
                step = other.step or step
                if one.step != other.step:
                    raise SfumatoError(f"columns '{first}' and '{second}' must have the same step")
            if step and self.order.span and abs(self.order.span / step % 1) > 1e-6:
                raise SfumatoError(f"span must be a multiple of {step:g}, as column '{second}' is")
            if other.bounds[1] < one.bounds[1]:
                raise SfumatoError(
                    f"column '{second}': high must not lie below that of '{first}', which never "
                    f"lies beyond it ({self.order.in_words()})"
                )

    @property
    def made(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.order.made

    @cached_property
    def hidden(self) -> dict[str, Column]:
        low = self.codes[0].bounds[0]
        return {
            name: Numeric(
                low=0,
                high=self.order.span or code.bounds[1] - low or 1,
                integer=code.integer,
                step=code.step if isinstance(code, NumericCode) else None,
                nullable=code.nullable,
            )
            for name, code in zip(self.made, self.codes[1:], strict=True)
        }

    def hide(self, rows: Arrays) -> tuple[dict[str, pa.Array], Broken]:
        places = [
            code.settled(rows[name])
            for name, code in zip(self.order.order, self.codes, strict=True)
        ]
        found: dict[str, pa.Array] = {}
        broken: Broken = {}
        last = _or(places[0], self.codes[0].bounds[0])
        for (before, name), place in zip(pairwise(self.order.order), places[1:], strict=True):
            beyond = place - last
            flags = {
                Misfit(
                    f"less than '{before}'",
                    "equal to it",
                    f"the constraint {self.order.in_words()}",
                ): beyond < 0
            }
            most = self.order.span
            if most is not None:
                becomes = f"{most:g} beyond it"
                advice = f"span = {most:g}: raise it, if that is public"
                flags[Misfit(f"too far beyond '{before}'", becomes, advice)] = beyond > most
            beyond = np.clip(beyond, 0, most)
            found[name] = pa.array(beyond, mask=np.isnan(beyond))
            broken[name] = flags
            last = _or(last + beyond, last)
        return found, broken

    def restore(self, rows: Arrays) -> dict[str, pa.Array]:
        first, *later = self.codes
        last = _or(first.settled(rows[self.order.order[0]]), first.bounds[0])
        found = {}
        for name, code in zip(self.made, later, strict=True):
            beyond = rows[name].cast(pa.float64()).to_numpy(zero_copy_only=False)
            place = np.clip(last + beyond, *code.bounds)
            if isinstance(code, NumericCode):
                place = code.stepped(place)
            found[name] = code.typed(_or(place, 0.0), np.isnan(place))
            last = _or(place, last)
        return found


@dataclass(frozen=True, eq=False)
class CombinationRule(Rule):
    """Combinations: the columns are modelled as one, whose values are those that may be.

    A row of another combination keeps the values of its first columns, as far as one goes with
    them, and takes the first one that does.
    """

    combination: Combination
    codes: tuple[CategoryCode, ...]
    name: str

    def __post_init__(self) -> None:
        if math.prod(self.sizes) > _MOST_COMBINATIONS:
            raise SfumatoError(
                f"the columns {self.name} have more than {_MOST_COMBINATIONS:,} combinations: "
                "where one follows from another, say so by a mapping"
            )
        if not len(self.kept):
            raise SfumatoError(f"no combination of {self.name} is left")

    @property
    def made(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.combination.columns

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(code.size for code in self.codes)

    @cached_property
    def kept(self) -> NDArray[np.int64]:
        """The combinations that may be, by their number in the order of the columns' cells."""
        listed = np.zeros(self.sizes, bool)
        for combination in self.combination.listed:
            cells = [
                [self._cell(place, value) for value in _several(choice)]
                for place, choice in enumerate(combination)
            ]
            for cell in product(*cells):
                listed[cell] = True
        may = listed if self.combination.allowed else ~listed
        if self.combination.allowed:
            for axis, code in enumerate(self.codes):
                unknown = np.arange(code.size) >= len(code.values)
                may |= unknown.reshape([-1 if a == axis else 1 for a in range(may.ndim)])
        return np.flatnonzero(may)

    def _cell(self, place: int, value: Any) -> int:
        texts = [canonical_text(each) for each in self.codes[place].values]
        if canonical_text(value) not in texts:
            raise SfumatoError(
                f"column '{self.made[place]}' lists no value {value!r}, which a constraint names"
            )
        return texts.index(canonical_text(value))

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The place among the kept combinations that each combination has, or is given."""
        cells = np.arange(math.prod(self.sizes))
        found = np.full(len(cells), -1)
        found[self.kept] = np.arange(len(self.kept))
        for columns in range(len(self.sizes) - 1, -1, -1):
            rest = math.prod(self.sizes[columns:])
            begins, first = np.unique(self.kept // rest, return_index=True)
            near = np.searchsorted(begins, cells // rest).clip(max=len(begins) - 1)
            fits = (found < 0) & (begins[near] == cells // rest)
            found[fits] = first[near[fits]]
        return found

    @property
    def hidden(self) -> dict[str, Column]:
        return {self.name: Categorical(values=tuple(range(len(self.kept))))}

    def hide(self, rows: Arrays) -> tuple[dict[str, pa.Array], Broken]:
        cells = [
            code.encode(rows[name])[0] for name, code in zip(self.made, self.codes, strict=True)
        ]
        number = np.ravel_multi_index(tuple(cells), self.sizes)
        places = self.places[number]
        settled = np.unravel_index(self.kept[places], self.sizes)
        misfit = Misfit(
            f"in a combination of {', '.join(self.made)} that may not be",
            "the first that may, from the left",
            "the combinations of the constraint",
        )
        broken = {
            name: {misfit: found != cell}
            for name, found, cell in zip(self.made, settled, cells, strict=True)
        }
        return {self.name: pa.array(places)}, broken

    def restore(self, rows: Arrays) -> dict[str, pa.Array]:
        numbers = self.kept[rows[self.name].to_numpy(zero_copy_only=False).astype(np.int64)]
        cells = np.unravel_index(numbers, self.sizes)
        return {
            name: code.decode(cell, _NO_DRAW)
            for name, code, cell in zip(self.made, self.codes, cells, strict=True)
        }

    def condition(self, wanted: Mapping[str, Condition]) -> Condition:
        """Keep the combinations of which each value is kept."""
        cells = np.unravel_index(self.kept, self.sizes)
        parts = [
            wanted[name].kept[cell]
            for name, cell in zip(self.made, cells, strict=True)
            if name in wanted
        ]
        joint = CategoryCode(tuple(range(len(self.kept))), False, False)
        kept = np.prod(parts, axis=0)
        if not kept.any():
            given = " and ".join(f"'{name}'" for name in self.made if name in wanted)
            raise SfumatoError(f"no combination that may be has what is given for {given}")
        return Condition(kept, joint.decode, lambda places: kept[places.to_numpy()] > 0)


def _several(choice: Any) -> Sequence[Any]:
    return choice if isinstance(choice, tuple) else (choice,)


def _or(numbers: NDArray[np.float64], other: Any) -> NDArray[np.float64]:
    """Put another number in the place of those that are missing."""
    return np.where(np.isnan(numbers), other, numbers)


def _refuse_unlike(
    first: str,
    one: NumericCode | DatetimeCode,
    second: str,
    other: NumericCode | DatetimeCode,
) -> None:
    """Refuse to compare what is not counted alike."""
    alike = type(one) is type(other)
    if alike and isinstance(one, DatetimeCode) and isinstance(other, DatetimeCode):
        alike = (one.column.unit, one.column.zone) == (other.column.unit, other.column.zone)
    if not alike:
        raise SfumatoError(
            f"columns '{first}' and '{second}' cannot be compared: declare both as numbers, or "
            "both as datetime with the same unit and zone"
        )
    decimals = []
    if isinstance(one, NumericCode) and isinstance(other, NumericCode):
        decimals = [one.most_decimals, other.shown_decimals]
    if decimals and decimals[1] < decimals[0]:
        raise SfumatoError(
            f"column '{second}' is written with fewer decimals than '{first}', and could be "
            f"rounded below it: declare decimals = {decimals[0]} for '{second}'"
            + (' and kind = "numeric"' if other.integer else "")
        )
