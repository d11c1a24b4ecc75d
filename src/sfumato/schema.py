"""The schema: what the owner declares about the data, in public and in advance.

Nothing here ever reads a private value. Bounds and categories are inputs to the privacy argument:
taken from the data they would leak it.
"""

from __future__ import annotations

import codecs
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field, ValidationError, model_validator

from sfumato.constraints import Constraint, Derived, constraint_kind, in_turn
from sfumato.declaration import Declared
from sfumato.declaration import Value as Value
from sfumato.errors import SfumatoError
from sfumato.notebook import html_table

OTHER = "(other)"
"""What stands for values that are not listed."""

Bins = Annotated[int, Field(ge=1, le=100_000, description="how many equal cells to count in")]

# Beyond this, neighbouring whole numbers are the same double.
_LARGEST_WHOLE = 2**53
_SECTIONS = {"columns", "images", "csv", "constraints"}
_SHIFTING = ("iso2022", "hz", "utf-7", "unicode", "raw-unicode", "idna", "punycode", "mbcs", "oem")
_OFFSET = re.compile(r"[+-](\d{2}):(\d{2})")
_SINCE = re.compile(r"(days|seconds|milliseconds) since \d{4}-\d{2}-\d{2}")


class UnfinishedError(SfumatoError):
    """A declaration in which nothing is wrong, but something is still to be filled in."""


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
        if self.format is not None and not _SINCE.fullmatch(self.format):
            try:
                again = datetime.strptime(
                    self.low.replace(tzinfo=UTC).strftime(self.format), self.format
                )
            except (ValueError, re.error):
                again = None
            if again is None or again.year != self.low.year:
                raise ValueError(
                    f"format {self.format!r} does not tell a date: use the marks of strptime, as "
                    "in '%d/%m/%Y', or 'days since 1960-01-01'"
                )
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


class CsvFormat(Declared):
    """How csv files of this table are written.

    >>> CsvFormat(delimiter=";").encoding
    'utf-8'
    """

    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    encoding: str = "utf-8"

    @model_validator(mode="after")
    def _encoding_exists(self) -> CsvFormat:
        try:
            found = codecs.lookup(self.encoding)
        except LookupError:
            raise ValueError(f"there is no encoding {self.encoding!r}: try 'latin-1'") from None
        # A shift in one row would change how the next ones are read; and some are no encodings.
        if found.name.startswith(_SHIFTING) or not getattr(found, "_is_text_encoding", True):
            raise ValueError(f"{self.encoding!r} cannot be read row by row: convert it to UTF-8")
        return self


class Images(Declared):
    """An image set: the size of all images and the class labels; no classes means no labels.

    >>> Images(height=28, width=28, classes=("cat", "dog")).channels
    1
    """

    height: int = Field(ge=1, le=1024)
    width: int = Field(ge=1, le=1024)
    channels: Literal[1, 3] = 1
    classes: Annotated[tuple[Value, ...], Field(strict=False)] = ()


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

_OPEN_KINDS: dict[type[Column], type[Open]] = {
    Numeric: OpenNumber,
    Datetime: OpenMoment,
    Categorical: OpenCategory,
}


class Schema(Declared):
    """The public description of a table (`columns`) or of an image set (`images`).

    >>> schema = Schema(columns={"age": Numeric(low=17, high=90, integer=True)})
    >>> print(schema.to_toml())
    [columns.age]
    kind = "integer"
    low = 17
    high = 90
    <BLANKLINE>
    """

    columns: dict[str, Column] = Field(default_factory=dict)
    images: Images | None = None
    csv: CsvFormat = CsvFormat()
    constraints: tuple[Constraint, ...] = ()

    @model_validator(mode="after")
    def _one_of_both(self) -> Schema:
        if bool(self.columns) == (self.images is not None):
            raise ValueError("a schema has either columns (a table) or images (an image set)")
        units = [n for n, c in self.columns.items() if isinstance(c, Identifier) and c.unit]
        if len(units) > 1:
            raise ValueError(f"only one identifier can be the unit of privacy, not {units}")
        if self.columns and all(isinstance(c, Identifier) for c in self.columns.values()):
            raise ValueError("identifiers are never modelled: declare at least one other column")
        for constraint in in_turn(self.constraints, self.modelled):
            for name in self.open.keys() & {*constraint.needed, *constraint.made}:
                raise ValueError(
                    f"column '{name}' needs public bounds or values, because a constraint names it"
                )
            for name in self.often_round.keys() & set(constraint.made):
                raise ValueError(
                    f"column '{name}' follows from a constraint: leave out often_multiple_of"
                )
        return self

    @property
    def modelled(self) -> dict[str, Column]:
        """The columns that a synthesizer learns: all but identifiers."""
        return {n: c for n, c in self.columns.items() if not isinstance(c, Identifier)}

    @property
    def open(self) -> dict[str, Open]:
        """The columns of which something is to be found in the private rows."""
        return {n: c for n, c in self.columns.items() if isinstance(c, Open)}

    @property
    def often_round(self) -> dict[str, Numeric]:
        """The numbers of which many are multiples of something."""
        return {
            name: column
            for name, column in self.columns.items()
            if isinstance(column, Numeric) and column.often_multiple_of is not None
        }

    @property
    def derived(self) -> dict[str, Derived]:
        """The columns that follow from others."""
        return {each.column: each for each in self.constraints if isinstance(each, Derived)}

    @property
    def unconstrained(self) -> Schema:
        """The same columns, each for itself."""
        if not (self.constraints or self.often_round):
            return self
        plain = {
            name: column.model_copy(update={"often_multiple_of": None})
            for name, column in self.often_round.items()
        }
        return self.model_copy(update={"constraints": (), "columns": self.columns | plain})

    @property
    def unit_column(self) -> str | None:
        """The identifier that names the unit of privacy, if one is declared."""
        for name, column in self.columns.items():
            if isinstance(column, Identifier) and column.unit:
                return name
        return None

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SfumatoError(f"cannot read the schema {path}: {error}") from None
        return cls.from_toml(text, str(path))

    @classmethod
    def from_toml(cls, text: str, origin: str = "schema") -> Schema:
        """Parse TOML; errors name the origin, the column and the fix."""
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SfumatoError(f"{origin} is not valid TOML: {error}") from None
        return cls.from_tables(tables, origin)

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any], origin: str = "schema") -> Schema:
        """Make a schema of what a TOML file holds; errors name the origin, column and fix."""
        unknown = sorted(set(tables) - _SECTIONS)
        if unknown:
            raise SfumatoError(
                f"{origin}: unknown section [{unknown[0]}]; use columns, images, csv or constraints"
            )
        columns = {
            name: declared_column(f"{origin}, column '{name}'", declared)
            for name, declared in _table(tables.get("columns", {}), origin).items()
        }
        sections = {
            name: validated(place, model, _table(tables[name], place))
            for name, model in (("images", Images), ("csv", CsvFormat))
            for place in [f"{origin}, [{name}]"]
            if name in tables
        }
        constraints = declared_constraints(tables.get("constraints", []), origin)
        return validated(origin, cls, {"columns": columns, **sections, "constraints": constraints})

    def _repr_html_(self) -> str:
        """Show the columns in a notebook."""
        sections = [part.split("\n") for part in self.to_toml().strip().split("\n\n")]
        rows = [(lines[0].strip("[]"), ", ".join(lines[1:])) for lines in sections]
        return html_table("Schema", ["section", "settings"], rows)

    def to_toml(self) -> str:
        """Write the schema as it stands on disk."""
        sections = []
        for title, part in (("csv", self.csv), ("images", self.images)):
            fields = part.model_dump(exclude_defaults=True) if part else {}
            if fields:
                sections.append(_section(title, fields))
        for name, column in self.columns.items():
            kind = next(
                key
                for key, (model, fixed) in KINDS.items()
                if type(column) in (model, _OPEN_KINDS.get(model))
                and all(getattr(column, f) == v for f, v in fixed.items())
            )
            fields = column.model_dump(exclude_defaults=True, exclude={"integer"})
            if kind == "integer":
                ends = {end: fields[end] for end in ("low", "high")}
                fields |= {k: v if v == PRIVATE else int(v) for k, v in ends.items()}
            sections.append(_section(f"columns.{toml_key(name)}", {"kind": kind} | fields))
        sections += map(constraint_toml, self.constraints)
        return "\n".join(sections)


def read_schema(source: Any) -> Schema:
    """Give a schema as it is, from a TOML file, or from a dict of columns.

    >>> read_schema({"age": {"kind": "integer", "low": 17, "high": 90}}).columns["age"].high
    90.0
    """
    if isinstance(source, Schema):
        return source
    if isinstance(source, str | Path):
        return Schema.load(source)
    if isinstance(source, Mapping):
        sections = set(source) <= _SECTIONS
        return Schema.from_tables(source if sections else {"columns": source})
    raise SfumatoError(
        f"a schema is a Schema, the path of a TOML file or a dict of columns, not a "
        f"{type(source).__name__}"
    )


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
    return {key: _naive_datetime(value, there) for key, value in given.items()}


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


def _table(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SfumatoError(f"{place}: expected a table of settings, got {value!r}")
    return value


def declared_column(place: str, declared: Any) -> Column:
    """Give the column that a table of a schema file declares; errors name the place.

    >>> declared_column("column 'age'", {"kind": "integer", "low": 0, "high": 120}).high
    120.0
    """
    fields = dict(_table(declared, place))
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise SfumatoError(f"{place}: kind must be one of {', '.join(KINDS)}, got {kind!r}")
    model, fixed = KINDS[kind]
    if "integer" in fields:
        raise SfumatoError(f'{place}: write kind = "integer" instead of integer = …')
    if PRIVATE in (fields.get("low"), fields.get("high"), fields.get("values")):
        model = _OPEN_KINDS.get(model, model)
    return validated(place, model, fields | fixed)


def declared_constraints(declared: Any, origin: str = "schema") -> tuple[Constraint, ...]:
    """Give the constraints that a schema file declares; errors name the place.

    >>> declared_constraints([{"order": ["admitted", "discharged"]}])[0].in_words()
    'admitted <= discharged'
    """
    if not isinstance(declared, list | tuple):
        raise SfumatoError(
            f"{origin}: write each constraint as a table of its own, [[constraints]]"
        )
    found: list[Constraint] = []
    for number, settings in enumerate(declared, 1):
        place = f"{origin}, constraint {number}"
        kind = constraint_kind(_table(settings, place))
        if kind is None:
            raise SfumatoError(
                f"{place}: name the columns of an order (order), the columns whose combinations "
                "are limited (columns), or the column that follows from others (column)"
            )
        found.append(validated(place, kind, settings))
    return tuple(found)


def constraint_toml(constraint: Constraint) -> str:
    """Write a constraint as it stands in a schema file."""
    return _section("[constraints]", constraint.model_dump(exclude_none=True))


_Model = TypeVar("_Model", bound=BaseModel)


def validated(place: str, model: type[_Model], fields: dict[str, Any]) -> _Model:
    """Make a part of a schema; what is wrong with it becomes one sentence that names the place."""
    try:
        return model(**fields)
    except ValidationError as error:
        # What is wrong comes before what is missing: only the latter may stay open.
        first = min(error.errors(), key=lambda each: each["type"] == "missing")
        where = ".".join(str(part) for part in first["loc"][:1])
        what = first["msg"].removeprefix("Value error, ")
        hint = {
            "missing": "is missing: fill it in (from public knowledge, not from the data)",
            "extra_forbidden": "is not a setting of this kind",
        }.get(first["type"], what[:1].lower() + what[1:])
        kind = UnfinishedError if first["type"] == "missing" else SfumatoError
        raise kind(f"{place}: {where + ' ' if where else ''}{hint}") from None


def toml_key(name: str) -> str:
    """Spell a column name as TOML wants it, quoted where needed."""
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _quoted(name)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in escaped) + '"'


def toml_literal(value: Any) -> str:
    """Write a value as TOML does.

    >>> toml_literal(("a", 1, True, date(2020, 1, 1)))
    '["a", 1, true, 2020-01-01]'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, datetime):
        plain = value.tzinfo is None and value.time() == value.min.time()
        return value.date().isoformat() if plain else value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(toml_literal(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{toml_key(k)} = {toml_literal(v)}" for k, v in value.items()) + " }"
        )
    return repr(value)


def _section(title: str, fields: dict[str, Any]) -> str:
    lines = [f"{key} = {toml_literal(value)}" for key, value in fields.items() if value is not None]
    return "\n".join([f"[{title}]", *lines, ""])
