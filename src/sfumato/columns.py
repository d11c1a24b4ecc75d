"""The kinds of columns that a schema declares, and what each of them must say.

Nothing here ever reads a private value. Bounds and categories are inputs to the privacy argument:
taken from the data they would leak it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, tzinfo
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from sfumato.declaration import Declared, Value
from sfumato.errors import quoted

OTHER = "(other)"
"""What stands for values that are not listed."""

Bins = Annotated[int, Field(ge=1, le=100_000, description="how many equal cells to count in")]

# Beyond this, neighbouring whole numbers are the same double.
_LARGEST_WHOLE = 2**53
_OFFSET = re.compile(r"[+-](\d{2}):(\d{2})")
_SINCE = re.compile(r"(days|seconds|milliseconds) since \d{4}-\d{2}-\d{2}")


class Numeric(Declared):
    """A number between public bounds; values outside are clamped.

    `decimal` and `thousands` are the marks with which a text file writes it; `decimals` is how
    many of them synthetic numbers get, by default as many as tell the cells apart. With a `step`,
    all values are multiples of it; `often_multiple_of` says that many are. Those that are `often`
    to be found, as prices, are kept as they are.

    >>> Numeric(low=0, high=120, integer=True).nullable
    False
    """

    low: float
    high: float
    integer: bool = False
    bins: Bins | None = None
    nullable: bool = False
    decimal: Literal[".", ","] = "."
    thousands: Literal[".", ",", " ", "'", "_"] | None = None
    decimals: int | None = Field(None, ge=0, le=15)
    step: float | None = Field(None, gt=0)
    often: Annotated[tuple[float, ...], Field(strict=False, max_length=256)] = ()
    often_multiple_of: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Numeric:
        if not (abs(self.low) < 1e300 and abs(self.high) < 1e300):
            raise ValueError("low and high must be finite numbers")
        if self.integer and (self.low % 1 or self.high % 1):
            raise ValueError("low and high of an integer column must be whole numbers")
        if self.integer and max(abs(self.low), abs(self.high)) > _LARGEST_WHOLE:
            raise ValueError(
                "low and high of an integer column must lie within 2^53, beyond which numbers "
                "are not told apart: declare it numeric, or an identifier"
            )
        if self.thousands == self.decimal:
            raise ValueError(f"thousands and decimal cannot both be {self.decimal!r}")
        if not (self.low <= self.high if self.integer else self.low < self.high):
            raise ValueError(f"low ({self.low:g}) must be below high ({self.high:g})")
        return self

    @model_validator(mode="after")
    def _values_lie_on_steps(self) -> Numeric:
        if self.step is not None:
            if not self.step < 1e300 or (self.integer and self.step % 1):
                raise ValueError("step of an integer column must be a whole number")
            for value in (self.low, self.high, *self.often):
                if abs(value / self.step - round(value / self.step)) > 1e-6:
                    raise ValueError(f"{value:g} is not a multiple of the step {self.step:g}")
        if self.often_multiple_of is not None and self.integer and self.often_multiple_of % 1:
            raise ValueError("often_multiple_of of an integer column must be a whole number")
        for value in self.often:
            if not self.low <= value <= self.high or (self.integer and value % 1):
                raise ValueError(f"{value:g}, which is often found, is not one of its values")
        return self


class Categorical(Declared):
    """One of the listed values; `other` adds a cell for values not listed.

    With `prefix`, values that begin with the same letters belong together, as zip codes or codes
    of diagnoses do: where rows are few, they are counted together.

    >>> Categorical(values=("Ulm", "Jena"), other=True).values
    ('Ulm', 'Jena')
    """

    values: Annotated[tuple[Value, ...], Field(min_length=1, strict=False)]
    other: bool = False
    nullable: bool = False
    prefix: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _values_differ(self) -> Categorical:
        counts = Counter(canonical_text(value) for value in self.values)
        twice = [text for text, count in counts.items() if count > 1]
        if twice:
            raise ValueError(f"the value {twice[0]!r} is listed twice")
        if self.other and OTHER in counts:
            raise ValueError(f"{OTHER!r} is what unlisted values are called: list another name")
        return self


class Boolean(Declared):
    """True or false, in any of the usual spellings.

    >>> Boolean(nullable=True).nullable
    True
    """

    nullable: bool = False


class Datetime(Declared):
    """A moment between public bounds, counted in whole units; values outside are clamped.

    Texts are read as ISO dates of any precision, or as `format` says: with the marks of strptime
    ("%d/%m/%Y"), or as a number ("days since 1960-01-01"). With a `zone` ("Europe/Berlin",
    "+01:00", "UTC"), moments are wall-clock time there: those that come with an offset are
    converted, and synthetic ones have it, too.

    >>> Datetime(low=date(2020, 1, 1), high=date(2024, 12, 31)).unit
    'day'
    """

    low: datetime
    high: datetime
    unit: Literal["day", "hour", "minute", "second"] = "day"
    bins: Bins | None = None
    nullable: bool = False
    format: str | None = None
    zone: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _dates_are_midnights(cls, given: Any) -> Any:
        return _with_midnights(given)

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Datetime:
        if self.low > self.high:
            raise ValueError(f"low ({self.low}) must not lie after high ({self.high})")
        _check_format(self.format, self.low)
        return self


class Identifier(Declared):
    """A name or number of a row: never modelled, numbered anew in the synthetic data.

    With `unit`, it names the person (or other unit of privacy) that a row belongs to.

    >>> Identifier(unit=True).unit
    True
    """

    unit: bool = False


PRIVATE = "private"
"""What stands in a schema for what is to be found in the private rows, for a part of the budget."""

Private = Literal["private"]


class OpenNumber(Declared):
    """A number of which one bound or both are found by noisy counts (`low = "private"`).

    >>> OpenNumber(low=0, high="private").closed((0.0, 250.0)).high
    250.0
    """

    low: float | Private
    high: float | Private
    integer: bool = False
    bins: Bins | None = None
    nullable: bool = False
    decimal: Literal[".", ","] = "."
    thousands: Literal[".", ",", " ", "'", "_"] | None = None
    decimals: int | None = Field(None, ge=0, le=15)

    @model_validator(mode="after")
    def _public_bounds_are_bounds(self) -> OpenNumber:
        for bound in (self.low, self.high):
            if isinstance(bound, str):
                continue
            if not abs(bound) < _LARGEST_WHOLE:
                raise ValueError("a public bound beside a private one must lie within 2^53")
            if self.integer and bound % 1:
                raise ValueError("low and high of an integer column must be whole numbers")
        return self

    def closed(self, found: tuple[float, float]) -> Numeric:
        """Give the column with bounds that were found; those that are public stay."""
        low, high = _closed_bounds(self.low, self.high, found)
        if low == high and not self.integer:  # one value alone
            low, high = (low, high + 1) if self.high == PRIVATE else (low - 1, high)
        return Numeric(**dict(self) | {"low": low, "high": high})


class OpenMoment(Declared):
    """A moment of which one bound or both are found by noisy counts (`low = "private"`)."""

    low: datetime | Private
    high: datetime | Private
    unit: Literal["day", "hour", "minute", "second"] = "day"
    bins: Bins | None = None
    nullable: bool = False
    format: str | None = None
    zone: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _dates_are_midnights(cls, given: Any) -> Any:
        return _with_midnights(given)

    @model_validator(mode="after")
    def _format_tells_a_date(self) -> OpenMoment:
        _check_format(self.format, datetime(2000, 1, 1))
        return self

    def closed(self, found: tuple[Any, Any]) -> Datetime:
        """Give the column with bounds that were found; those that are public stay."""
        low, high = _closed_bounds(self.low, self.high, found)
        return Datetime(**dict(self) | {"low": low, "high": high})


class OpenCategory(Declared):
    """A category whose values are found: those that many rows have (`values = "private"`).

    >>> OpenCategory(values="private").closed(["Ulm"]).other
    True
    """

    values: Private
    nullable: bool = False

    def closed(self, found: Iterable[Value]) -> Categorical:
        """Give the column with values that were found, and a cell for the others."""
        return Categorical(values=tuple(found), other=True, nullable=self.nullable)


def unknown_category(nullable: bool) -> Categorical:
    """Give what is left of a column of which nothing was found: its rows all say "(other)".

    >>> unknown_category(nullable=False).values
    ('(other)',)
    """
    return Categorical(values=(OTHER,), nullable=nullable)


Open = OpenNumber | OpenMoment | OpenCategory
Column = Numeric | Categorical | Boolean | Datetime | Identifier | Open

KINDS: dict[str, tuple[type[Column], dict[str, Any]]] = {
    "numeric": (Numeric, {"integer": False}),
    "integer": (Numeric, {"integer": True}),
    "categorical": (Categorical, {}),
    "boolean": (Boolean, {}),
    "datetime": (Datetime, {}),
    "identifier": (Identifier, {}),
}
"""What a schema file calls each kind of column, and the settings that the name stands for."""

DATE = "date"
"""Another word for a datetime, whose unit is a day unless another one is named."""

OPEN_KINDS: dict[type[Column], type[Open]] = {
    Numeric: OpenNumber,
    Datetime: OpenMoment,
    Categorical: OpenCategory,
}
"""What a kind of column is where something of it is left open."""


def canonical_text(value: Value | bytes) -> str:
    """Give the text by which a category is recognised, however a file spells it.

    >>> [canonical_text(v) for v in (1, 1.0, True, " yes ")]
    ['1', '1', 'true', 'yes']
    """
    if isinstance(value, bytes):
        return value.decode(errors="replace").strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _check_format(form: str | None, moment: datetime) -> None:
    """Refuse a format that cannot write a moment and read it again."""
    if form is None or _SINCE.fullmatch(form):
        return
    try:
        again = datetime.strptime(moment.replace(tzinfo=UTC).strftime(form), form)
    except (ValueError, re.error):
        again = None
    if again is None or again.year != moment.year:
        raise ValueError(
            f"format {form!r} does not tell a date: use the marks of strptime, as in '%d/%m/%Y', "
            "or 'days since 1960-01-01'"
        )


def _closed_bounds(low: Any, high: Any, found: tuple[Any, Any]) -> tuple[Any, Any]:
    """Give public bounds as they are, and the others as they were found, none beyond the other."""
    first, last = found[0] if low == PRIVATE else low, found[1] if high == PRIVATE else high
    if first > last:
        return (last, last) if low == PRIVATE else (first, first)
    return first, last


def _with_midnights(given: Any) -> Any:
    """Make moments of dates, and put those that come with an offset on the column's clock."""
    if not isinstance(given, Mapping):
        return given
    zone = given.get("zone")
    there = _zone(zone) if isinstance(zone, str) else UTC
    return {
        key: _naive_datetime(_moment(key, value) if key in ("low", "high") else value, there)
        for key, value in given.items()
    }


def _moment(end: str, value: Any) -> Any:
    """Read a bound that is written as a text."""
    if not isinstance(value, str) or value == PRIVATE:
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{end} is no date such as 2020-12-31: {quoted(value)}") from None


def _naive_datetime(value: Any, zone: tzinfo) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(zone).replace(tzinfo=None) if value.tzinfo else value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else value


def _zone(name: str) -> tzinfo:
    if _OFFSET.fullmatch(name):
        return datetime.strptime(name, "%z").tzinfo or UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ValueError(
            f"there is no time zone {name!r}: write one such as 'Europe/Berlin' or '+01:00'"
        ) from None
