"""The schema: what the owner declares about the data, in public and in advance.

Nothing here ever reads a private value. Bounds and categories are inputs to the privacy argument:
taken from the data they would leak it.
"""

from __future__ import annotations

import codecs
import tomllib
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from sfumato.columns import (
    DATE,
    KINDS,
    OPEN_KINDS,
    OTHER,
    PRIVATE,
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Numeric,
    Open,
    OpenCategory,
    OpenMoment,
    OpenNumber,
    canonical_text,
    unknown_category,
)
from sfumato.constraints import Constraint, Derived, constraint_kind, in_turn
from sfumato.declaration import Declared, Value
from sfumato.errors import SfumatoError, not_read, quoted, shortened
from sfumato.notebook import html_table
from sfumato.storage import local

__all__ = [
    "KINDS",
    "OTHER",
    "PRIVATE",
    "Boolean",
    "Categorical",
    "Column",
    "CsvFormat",
    "Datetime",
    "Identifier",
    "Images",
    "Numeric",
    "Open",
    "OpenCategory",
    "OpenMoment",
    "OpenNumber",
    "Schema",
    "UnfinishedError",
    "Value",
    "canonical_text",
    "constraint_toml",
    "declared_column",
    "declared_constraints",
    "read_schema",
    "toml_key",
    "toml_literal",
    "unknown_category",
    "validated",
]

_SECTIONS = {"columns", "images", "csv", "constraints"}
_SHIFTING = ("iso2022", "hz", "utf-7", "unicode", "raw-unicode", "idna", "punycode", "mbcs", "oem")


class UnfinishedError(SfumatoError):
    """A declaration in which nothing is wrong, but something is still to be filled in."""


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
    def settled(self) -> dict[str, str]:
        """The columns that have one possible value, with that value: all else of them is lost.

        >>> Schema(columns={"a": Boolean(), "b": Categorical(values=("x",))}).settled
        {'b': 'x'}
        """
        found = {}
        for name, column in self.columns.items():
            if isinstance(column, Categorical) and len(column.values) + column.other == 1:
                value = canonical_text(column.values[0])
            elif isinstance(column, Numeric | Datetime) and column.low == column.high:
                value = f"{column.low:g}" if isinstance(column, Numeric) else f"{column.low}"
            else:
                continue
            if not column.nullable:
                found[name] = value
        return found

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
            text = local(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            damaged = f"cannot read the schema {path}: it is not in UTF-8"
            raise not_read(f"the schema {path}", error, damaged) from None
        return cls.from_toml(text, str(path))

    @classmethod
    def from_toml(cls, text: str, origin: str = "schema") -> Schema:
        """Parse TOML; errors name the origin, the column and the fix."""
        try:
            tables = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also of numbers that are far too long
            raise SfumatoError(f"{origin} is not valid TOML: {shortened(str(error))}") from None
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
                if type(column) in (model, OPEN_KINDS.get(model))
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


def _table(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SfumatoError(f"{place}: expected a table of settings, got {quoted(value)}")
    return value


def declared_column(place: str, declared: Any) -> Column:
    """Give the column that a table of a schema file declares; errors name the place.

    >>> declared_column("column 'age'", {"kind": "integer", "low": 0, "high": 120}).high
    120.0
    """
    fields = dict(_table(declared, place))
    kind = fields.pop("kind", None)
    kind = "datetime" if kind == DATE else kind
    if not isinstance(kind, str) or kind not in KINDS:
        raise SfumatoError(f"{place}: kind must be one of {', '.join(KINDS)}, got {quoted(kind)}")
    model, fixed = KINDS[kind]
    if "integer" in fields:
        raise SfumatoError(f'{place}: write kind = "integer" instead of integer = …')
    if PRIVATE in (fields.get("low"), fields.get("high"), fields.get("values")):
        model = OPEN_KINDS.get(model, model)
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
    plain = (c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in escaped)
    return '"' + "".join(plain) + '"'


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
