"""A schema on its way: what is known of each column, and open lines for what is not."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from sfumato.data.codebook import Codebook, Settings, left_out_line
from sfumato.errors import SfumatoError
from sfumato.schema import (
    KINDS,
    UnfinishedError,
    constraint_toml,
    declared_column,
    toml_key,
    toml_literal,
)

_HEADER = """\
# Fill in the open lines from public knowledge: a code book, physical limits, opening hours.
# Bounds and categories that are read from the private rows would leak them: an unusual salary
# as the upper bound is that person's salary. Values outside the bounds are clamped, so rather
# take wide ones. Kinds were guessed from the first rows: confirm them, too, from what is public.
# Columns that you remove are left out. Some may be something else than they look:
#   names or numbers of people    kind = "identifier", unit = true     # protect the person
#   dates such as 31/12/2020      kind = "datetime", format = "%d/%m/%Y"
#   numbers such as 1.234,5       kind = "numeric", decimal = ",", thousands = "."
#   bounds that nobody knows      low = "private", high = "private"    # found, at a price
"""
_BOUNDS = {"low": "low = ", "high": "high = "}
_NULLABLE = {"nullable": "nullable = true     # if values may be missing: in most tables they are"}
_OPEN = {
    "numeric": _BOUNDS | _NULLABLE,
    "integer": _BOUNDS | _NULLABLE,
    "categorical": {
        "values": 'values = ["…", "…"]',
        "other": "other = true     # a cell for values not listed",
    }
    | _NULLABLE,
    "boolean": _NULLABLE,
    "datetime": {
        "low": "low = 2000-01-01",
        "high": "high = 2030-12-31",
        "unit": 'unit = "day"     # hour, minute, second',
        "zone": 'zone = "Europe/Berlin"     # if moments come with an offset',
    }
    | _NULLABLE,
    "identifier": {"unit": "unit = true     # if it names the person that a row belongs to"},
}
_OPEN_CSV = {"delimiter": 'delimiter = ";"', "encoding": 'encoding = "latin-1"'}


class Draft:
    """The columns of a table with guessed kinds, what a code book says of them, and decisions.

    >>> draft = Draft({"age": "integer"}, Codebook(columns={"age": {"low": 0, "high": 120}}))
    >>> draft.known("age")
    {'kind': 'integer', 'low': 0, 'high': 120}
    """

    def __init__(
        self, guesses: Mapping[str, str], book: Codebook, csv: Settings | None = None
    ) -> None:
        self.guesses = dict(guesses)
        self._csv = csv  # None if the table is no csv file
        self._left_out = set(guesses) & book.left_out
        self._known = {
            name: _with_kind(guess, book.columns.get(name, {})) for name, guess in guesses.items()
        }
        finished = {
            name
            for name, settings in self._known.items()
            if _is_finished(f"{book.origin}, column '{name}'", settings)
        }
        self._declared = {name for name in finished if "kind" in book.columns.get(name, {})}
        lacking = [toml_key(name) for name in book.columns if name not in guesses]
        self._remarks = list(book.remarks)
        self._constraints = [constraint_toml(each) for each in book.constraints]
        if lacking:
            self._remarks.append(f"{book.origin}: the data have no column {', '.join(lacking)}")

    def known(self, name: str) -> Settings:
        """Give the settings of a column as far as they are known, with its kind."""
        return dict(self._known[name])

    def is_left_out(self, name: str) -> bool:
        """Tell whether the column is to be left out."""
        return name in self._left_out

    def is_settled(self, name: str) -> bool:
        """Tell whether nothing is left to decide, also of what has a default."""
        decision = "unit" if self._known[name]["kind"] == "identifier" else "nullable"
        return name in self._left_out or (name in self._declared and decision in self._known[name])

    def declare(self, name: str, settings: Settings) -> None:
        """Take a decision about a column; what is wrong with it is said in a sentence."""
        declared_column(f"column '{name}'", settings)
        for other in self._declared - self._left_out - {name}:
            if settings.get("unit") is self._known[other].get("unit") is True:
                raise SfumatoError(f"column '{other}' is the unit of privacy, and only one can be")
        self._known[name] = settings
        self._declared.add(name)
        self._left_out.discard(name)

    def leave_out(self, name: str) -> None:
        """Decide that a column stays out of the schema."""
        self._left_out.add(name)

    def to_toml(self) -> str:
        """Write every column, with open lines to fill in."""
        columns = (
            left_out_line(toml_key(name)) if name in self._left_out else self._section(name)
            for name in self.guesses
        )
        return "\n".join([*self._opening(), *columns, *self._constraints])

    def so_far(self) -> str:
        """Write a schema of the columns that are declared; those still open are comments."""
        columns = []
        for name, settings in self._known.items():
            if name in self._left_out:
                columns.append(left_out_line(toml_key(name)))
            elif name in self._declared:
                columns.append(_section(f"columns.{toml_key(name)}", settings, {}))
            else:
                columns.append(_commented(self._section(name)))
        return "\n".join([*self._opening(), *columns, *self._constraints])

    def _opening(self) -> list[str]:
        """Write what stands before the columns; explanations only while something is open."""
        parts = []
        is_open = [name for name in self.guesses if not self.is_settled(name)]
        if is_open:
            parts.append(_HEADER)
        parts += [_comment(remark) for remark in self._remarks]
        if self._csv:
            parts.append(_section("csv", self._csv, _OPEN_CSV if is_open else {}))
        elif self._csv is not None and is_open:
            parts.append(_commented(_section("csv", {}, _OPEN_CSV)))
        return parts

    def _section(self, name: str) -> str:
        settings = self._known[name]
        return _section(f"columns.{toml_key(name)}", settings, _OPEN[settings["kind"]])


def _with_kind(guess: str, said: Settings) -> Settings:
    """Add the guessed kind to what is said of a column, if no kind is said."""
    if "kind" in said:
        return said
    if {"low", "high"} & set(said) and guess not in ("integer", "datetime"):
        guess = "numeric"  # only numbers have bounds; the book would have known a date
    known = {key: value for key, value in said.items() if key in KINDS[guess][0].model_fields}
    return {"kind": guess} | known


def _is_finished(place: str, settings: Settings) -> bool:
    """Tell whether a schema could have the column as it is; what is wrong is an error."""
    try:
        declared_column(place, settings)
    except UnfinishedError:
        return False
    return True


def _section(title: str, settings: Settings, open_lines: dict[str, str]) -> str:
    known = [f"{key} = {toml_literal(value)}" for key, value in settings.items()]
    still_open = [f"# {line}" for key, line in open_lines.items() if key not in settings]
    return "\n".join([f"[{title}]", *known, *still_open, ""])


def _comment(text: str) -> str:
    return textwrap.fill(text, 98, initial_indent="# ", subsequent_indent="# ") + "\n"


def _commented(section: str) -> str:
    lines = section.splitlines()
    return "".join(line + "\n" if line.startswith("#") else f"# {line}\n" for line in lines)
