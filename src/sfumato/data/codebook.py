"""Code books: what has been written down, in public, about the columns of a table.

A code book says some of what a schema needs. Each of its columns becomes a part of a declaration,
with the names that a schema file uses; what the book does not say stays open.
"""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.columns import DATE
from sfumato.constraints import Constraint
from sfumato.data.csv_header import likely_delimiter
from sfumato.data.parsing import is_null
from sfumato.errors import SfumatoError, not_read, quoted, shortened
from sfumato.schema import KINDS, PRIVATE, Value, declared_constraints
from sfumato.storage import local

Settings = dict[str, Any]
"""What is said of a column, under the names of a schema file; `kind` is one of them."""

_TYPES = {
    "integer": ("integer", "int", "bigint", "smallint", "long", "year"),
    "numeric": ("numeric", "number", "float", "double", "decimal", "real"),
    "categorical": (
        "categorical", "category", "factor", "enum", "nominal", "ordinal",
        "string", "str", "text", "char", "character", "varchar",
    ),
    "boolean": ("boolean", "bool", "logical"),
    "datetime": ("datetime", "date", "date-time", "timestamp"),
    "identifier": ("identifier", "id", "key"),
}  # fmt: skip
_KIND_OF = {word: kind for kind, words in _TYPES.items() for word in words}

_HEADERS = {
    "column": ("column", "variable", "name"),
    "kind": ("kind", "type"),
    "low": ("low", "min", "minimum"),
    "high": ("high", "max", "maximum"),
    "values": ("values", "categories", "levels"),
} | {
    setting: (setting,)
    for setting in ("nullable", "other", "unit", "format", "zone", "decimal", "thousands")
}
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_LEFT_OUT = " is left out"


@dataclass(frozen=True)
class Codebook:
    """What is said of a table: of its columns, of how its csv files are written, and remarks.

    >>> Codebook(columns={"age": {"kind": "integer", "low": 0}}).columns["age"]["low"]
    0
    """

    origin: str = ""
    columns: dict[str, Settings] = field(default_factory=dict)
    csv: Settings = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    def corrected_by(self, other: Codebook) -> Codebook:
        """Let another book have the last word, column by column and setting by setting."""
        columns = dict(self.columns)
        for name, said in other.columns.items():
            earlier = columns.get(name, {})
            same = said.get("kind", earlier.get("kind")) == earlier.get("kind")
            columns[name] = earlier | said if same else said
        return Codebook(
            " or ".join(book.origin for book in (self, other) if book.origin),
            columns,
            self.csv | other.csv,
            (self.left_out - other.columns.keys()) | other.left_out,
            self.remarks + other.remarks,
            (
                *(each for each in self.constraints if each not in other.constraints),
                *other.constraints,
            ),
        )


def read_codebook(path: Path) -> Codebook:
    """Read a csv with a row for each column, a JSON Schema, a frictionless schema, or a schema."""
    try:
        text = local(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        damaged = f"cannot read the code book {path}: it is not in UTF-8"
        raise not_read(f"the code book {path}", error, damaged) from None
    ending = path.suffix.lower()
    if ending == ".csv":
        return _from_csv(text, str(path))
    if ending == ".json":
        return _from_json(text, str(path))
    if ending == ".toml":
        return _from_toml(text, str(path))
    raise SfumatoError(f"cannot tell what {path} is: a code book ends in .csv, .json or .toml")


def _from_toml(text: str, origin: str) -> Codebook:
    """Read a schema file of a table that may be unfinished."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of numbers that are far too long
        raise SfumatoError(f"{origin} is not valid TOML: {shortened(str(error))}") from None
    unknown = sorted(set(tables) - {"columns", "csv", "constraints"})
    if unknown:
        raise SfumatoError(f"{origin}: [{unknown[0]}] is no section of a table's schema")
    columns = _object(tables.get("columns", {}), origin)
    return Codebook(
        origin,
        {
            name: said | {"kind": "datetime"} if said.get("kind") == DATE else said
            for name, table in columns.items()
            for said in [_object(table, f"{origin}, column '{name}'")]
        },
        _object(tables.get("csv", {}), origin),
        frozenset(_left_out(text)) - columns.keys(),
        constraints=declared_constraints(tables.get("constraints", []), origin),
    )


def left_out_line(key: str) -> str:
    """Write in a schema file that a column is left out, for those who read the file again."""
    return f"# [columns.{key}]{_LEFT_OUT}\n"


def _left_out(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith("# [columns.") and line.endswith(_LEFT_OUT):
            with suppress(ValueError, RecursionError):  # somebody else's comment
                yield from tomllib.loads(line[1:].removesuffix(_LEFT_OUT))["columns"]


def bound(value: Any, form: str | None = None) -> Any:
    """Read a bound that is written as text: a number, an ISO date, or a date of the given form.

    >>> bound("1.5"), bound("31/12/2020", "%d/%m/%Y").year
    (1.5, 2020)
    """
    if not isinstance(value, str) or value.strip() == PRIVATE:
        return value
    read: Any
    for read in (int, float, datetime.fromisoformat):
        try:
            return read(value.strip())
        except ValueError:
            continue
    try:
        return datetime.strptime(value.strip(), form or "%Y-%m-%d")
    except (ValueError, TypeError, re.error):
        raise ValueError(
            f"{quoted(value)} is neither a number nor a date such as 2020-12-31"
        ) from None


def listed(texts: Iterable[str]) -> tuple[Value, ...]:
    """Read categories that are written as texts: whole numbers if all of them are.

    >>> listed(["1", " 2"]), listed(["01", "2"])
    ((1, 2), ('01', '2'))
    """
    trimmed = [text.strip() for text in texts]
    whole = all(re.fullmatch(r"0|-?[1-9]\d{0,14}", text) for text in trimmed)
    return tuple(int(text) if whole else text for text in trimmed)


def flag(text: str) -> bool:
    """Read yes or no.

    >>> flag("Yes"), flag("0")
    (True, False)
    """
    try:
        return _FLAGS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"{quoted(text)} is neither yes nor no") from None


def _from_csv(text: str, origin: str) -> Codebook:
    lines = text.splitlines(keepends=True)
    if not lines:
        raise SfumatoError(f"the code book {origin} is empty")
    delimiter = likely_delimiter(lines[0])
    try:
        header, *rows = csv.reader(lines, delimiter=delimiter, strict=True)
    except csv.Error as error:
        raise SfumatoError(f"the code book {origin} is not well-formed csv: {error}") from None
    titles = [title.strip().lower() for title in header]
    places = {
        setting: next(titles.index(title) for title in names if title in titles)
        for setting, names in _HEADERS.items()
        if not set(names).isdisjoint(titles)
    }
    if "column" not in places:
        raise SfumatoError(
            f"the code book {origin} names no columns: call one of its own 'column', 'variable' "
            "or 'name'"
        )
    columns: dict[str, Settings] = {}
    remarks: list[str] = []
    for row in rows:
        if len(row) > len(header):
            raise SfumatoError(
                f"the code book {origin} has a row with more cells than its header: quote what "
                f"holds a {delimiter!r}"
            )
        cells = {key: row[at].strip() for key, at in places.items() if at < len(row) and row[at]}
        name = cells.pop("column", "")
        if name in columns:
            raise SfumatoError(f"the code book {origin} describes the column '{name}' twice")
        if name:
            place = f"{origin}, column '{name}'"
            word = cells.pop("kind", "")
            said = {key: _cell(place, key, cell) for key, cell in cells.items() if cell}
            columns[name] = _settings(place, word, said, remarks)
    return Codebook(origin, columns, remarks=tuple(remarks))


def _cell(place: str, setting: str, text: str) -> Any:
    try:
        if setting in ("low", "high"):
            return bound(text)
        if setting in ("nullable", "other"):
            return flag(text)
    except ValueError as error:
        raise SfumatoError(f"{place}: {setting}: {error}") from None
    if setting == "unit":
        return _FLAGS.get(text.lower(), text)
    if setting == "values":
        return listed(text.split(next((mark for mark in "|;" if mark in text), ",")))
    return text


def _from_json(text: str, origin: str) -> Codebook:
    try:
        root = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SfumatoError(f"{origin} is not valid JSON: {shortened(str(error))}") from None
    root = _object(root, origin)
    if "resources" in root:
        resources = _list(root["resources"], f"{origin}, resources")
        return _from_resource(_object(next(iter(resources), None), f"{origin}, resources"), origin)
    if "fields" in root:
        return _from_resource({"schema": root}, origin)
    if "properties" in root:
        return _from_json_schema(root, origin)
    raise SfumatoError(
        f"{origin} is no code book: it has neither 'properties', as JSON Schema, nor 'fields' or "
        "'resources', as a frictionless data package"
    )


def _from_json_schema(root: Settings, origin: str) -> Codebook:
    required = _list(root.get("required", []), f"{origin}, required")
    remarks: list[str] = []
    columns = {}
    for name, about in _object(root["properties"], f"{origin}, properties").items():
        place = f"{origin}, column '{name}'"
        # A column that may be null is written as a list of types, or as a choice of objects.
        choices = [_object(about, place)]
        choices += [_object(each, place) for each in _list(choices[0].get("anyOf", []), place)]
        types = {str(word) for each in choices for word in _as_list(each.get("type", []))}
        facts = {key: fact for each in reversed(choices) for key, fact in each.items()}
        said = _bounds_and_values(place, facts)
        if "null" in types or None in _as_list(facts.get("enum", [])):
            said["nullable"] = True
        elif name in required:
            said["nullable"] = False
        types -= {"null"}
        word = types.pop() if len(types) == 1 else ""
        if word == "string" and facts.get("format") in ("date", "date-time"):
            word = facts["format"]
        columns[name] = _settings(place, word, said, remarks)
    return Codebook(origin, columns, remarks=tuple(remarks))


def _from_resource(resource: Settings, origin: str) -> Codebook:
    """Read a frictionless resource: the schema of a table, and how its file is written."""
    schema = _object(resource.get("schema"), f"{origin}, schema")
    remarks: list[str] = []
    columns = {}
    for each in _list(schema.get("fields"), f"{origin}, fields"):
        about = _object(each, f"{origin}, fields")
        name = about.get("name")
        if not isinstance(name, str):
            raise SfumatoError(f"{origin}: a field has no name")
        place = f"{origin}, column '{name}'"
        constraints = _object(about.get("constraints", {}), place)
        form = about.get("format")
        written = {
            "format": None if form in ("default", "any") else form,
            "decimal": about.get("decimalChar"),
            "thousands": about.get("groupChar"),
        }
        said = _bounds_and_values(place, constraints, written["format"])
        said |= {key: fact for key, fact in written.items() if fact is not None}
        missing = about.get("missingValues", schema.get("missingValues"))
        if "required" in constraints:
            said["nullable"] = not constraints["required"]
        elif missing is not None:
            said["nullable"] = bool(missing)
        columns[name] = _settings(place, str(about.get("type", "")), said, remarks)
        if about.get("bareNumber") is False:
            remarks.append(f"{place}: numbers with text around them are not read: remove the text")
        remarks += _unusual_nulls(place, about.get("missingValues", []))
    remarks += _unusual_nulls(origin, schema.get("missingValues", []))
    dialect = _object(resource.get("dialect", {}), f"{origin}, dialect")
    dialect = _object(dialect.get("csv", dialect), f"{origin}, dialect")
    form = {"delimiter": dialect.get("delimiter"), "encoding": resource.get("encoding")}
    said_of_csv = {key: fact for key, fact in form.items() if fact is not None}
    return Codebook(origin, columns, said_of_csv, remarks=tuple(remarks))


def _bounds_and_values(place: str, facts: Settings, form: str | None = None) -> Settings:
    said: Settings = {}
    for setting, names in (
        ("low", ("minimum", "exclusiveMinimum")),
        ("high", ("maximum", "exclusiveMaximum")),
    ):
        for name in names:
            if name in facts:
                try:
                    said.setdefault(setting, bound(facts[name], form))
                except ValueError as error:
                    raise SfumatoError(f"{place}: {name}: {error}") from None
    if "enum" in facts:
        values = _list(facts["enum"], f"{place}, enum")
        said["values"] = tuple(value for value in values if value is not None)
    return said


def _settings(place: str, word: str, said: Settings, remarks: list[str]) -> Settings:
    """Find the kind for a type's name, and keep what belongs to that kind."""
    word = word.split("(")[0].strip().lower()  # a varchar(20) is a varchar
    kind = _KIND_OF.get(word)
    if word not in ("", "any") and kind is None:
        remarks.append(f"{place}: '{word}' is no kind of column, so its kind is guessed")
    if "values" in said and kind not in ("boolean", "identifier"):
        kind = "categorical"
    if kind is None and isinstance(said.get("low", said.get("high")), datetime):
        kind = "datetime"
    if kind is None:
        return said
    known = {key: value for key, value in said.items() if key in KINDS[kind][0].model_fields}
    if word == "date":
        known["unit"] = "day"
    return {"kind": kind} | known


def _unusual_nulls(place: str, missing: Any) -> Iterator[str]:
    """Remark texts that stand for missing values there, but are read as values here."""
    for each in _list(missing, f"{place}, missingValues"):
        text = str(each.get("value")) if isinstance(each, dict) else str(each)
        if not is_null(pa.array([text]))[0].as_py():
            yield f"{place}: {quoted(text)} stands for a missing value: leave it empty in the data"


def _object(value: Any, place: str) -> Settings:
    if not isinstance(value, dict):
        raise SfumatoError(f"{place}: expected an object with names and values")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise SfumatoError(f"{place}: expected a list")
    return value


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
