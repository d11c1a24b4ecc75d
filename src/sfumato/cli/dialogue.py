"""The dialogue that fills in a schema, column by column. It never shows a value of the data."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import typer

from sfumato.data.codebook import Settings, flag, listed
from sfumato.data.draft import Draft
from sfumato.errors import SfumatoError
from sfumato.schema import KINDS, PRIVATE, toml_literal

SKIP = "skip"
_WORDS = {"": "none", " ": "space", True: "yes", False: "no"}
_WHY_BOUNDS = (
    "Bounds must be public, from a code book, physical limits or law and never from the rows: "
    "an unusual salary as the upper bound is that person's salary. Where nobody knows them, answer "
    "private: then noisy counts find them, for a part of the budget."
)
_WHY_VALUES = (
    "Values must be public, from a code book, a standard or law and never from the rows: "
    "a rare diagnosis on the list tells that someone has it. Where nobody knows them, answer "
    "private: then those that many rows have are found, for a part of the budget."
)


@dataclass(frozen=True)
class _Question:
    """What is asked for one setting; without a default it must be answered."""

    setting: str
    text: str
    read: Callable[[str], Any]
    default: Any = None

    def ask(self, known: Settings) -> Any:
        """Ask until the answer can be read; Enter keeps what is known."""
        default = known.get(self.setting, self.default)
        shown = None if default is None else _shown(default)
        while True:
            answer = typer.prompt(self.text, default=shown, err=True).strip()
            if answer == shown:
                return default
            try:
                return self.read(answer)
            except ValueError as error:
                _say(str(error))


def fill_in(draft: Draft, save: Callable[[], None]) -> None:
    """Ask about each column on which something is open, and save after each of them."""
    names = [name for name in draft.guesses if not draft.is_settled(name)]
    settled = len(draft.guesses) - len(names)
    if settled:
        _say(f"{settled} of {len(draft.guesses)} columns are settled.")
        if _Question("again", "Go through them, too? (yes, no)", flag, False).ask({}):
            names = list(draft.guesses)
    for place, name in enumerate(names, 1):
        known = draft.known(name)
        _say(f"\nColumn {place} of {len(names)}: {name} (looks {draft.guesses[name]})")
        if draft.is_left_out(name):
            known["kind"] = SKIP
        kind = _KIND.ask(known)
        if kind == SKIP:
            draft.leave_out(name)
        else:
            _declare(draft, name, kind)
        save()


def _declare(draft: Draft, name: str, kind: str) -> None:
    """Ask for what a kind needs until the schema is content with it."""
    known = draft.known(name)
    known = known if known["kind"] == kind else {"kind": kind}
    while True:
        answers = {each.setting: each.ask(known) for each in _questions(kind, draft.guesses[name])}
        settings = {key: value for key, value in (known | answers).items() if value != ""}
        if settings.get("values") == PRIVATE:
            settings.pop("other", None)  # there are always others
        try:
            draft.declare(name, settings)
        except SfumatoError as error:
            _say(str(error))
        else:
            return


def _questions(kind: str, guess: str) -> Iterator[_Question]:
    """Give the questions of a kind, one by one, with the reason before those that need one."""
    if kind in ("numeric", "integer"):
        if guess == "categorical":
            yield from _MARKS
        _say(_WHY_BOUNDS)
        yield from _NUMBERS
    elif kind == "datetime":
        if guess != "datetime":
            yield _FORMAT
        _say(_WHY_BOUNDS)
        yield from _MOMENTS
    elif kind == "categorical":
        _say(_WHY_VALUES)
        yield from _CATEGORIES
    if kind != "identifier":
        yield _NULLABLE
    else:
        yield _UNIT


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _shown(value: Any) -> str:
    """Write a value as one would answer."""
    if isinstance(value, str | bool):
        return _WORDS.get(value, str(value))
    if isinstance(value, tuple | list):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(value)
        return line.getvalue()
    return toml_literal(value) if isinstance(value, date) else str(value)


def _kind(text: str) -> str:
    if text not in (*KINDS, SKIP):
        raise ValueError(f"{text!r} is no kind: write one of {', '.join(KINDS)}, or {SKIP}")
    return text


def _number(text: str) -> float | str:
    if text == PRIVATE:
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number: write it as 12 or 0.5") from None


def _moment(text: str) -> datetime | str:
    if text == PRIVATE:
        return text
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a date: write it as 2020-12-31") from None


def _values(text: str) -> tuple[Any, ...] | str:
    if text == PRIVATE:
        return text
    return listed(each for each in next(csv.reader([text], skipinitialspace=True)) if each.strip())


def _mark(text: str) -> str:
    return {"none": "", "space": " "}.get(text, text)


_KIND = _Question("kind", f"Kind ({', '.join(KINDS)}, or {SKIP} to leave it out)", _kind)
_MARKS = (
    _Question("decimal", "Decimal mark, . as in 1.5 or , as in 1,5", _mark, "."),
    _Question("thousands", "Mark between thousands, as ' in 1'000, space or none", _mark, ""),
)
_FORMAT = _Question(
    "format", "How it is written, for example %d/%m/%Y; none if as 2020-12-31", _mark, ""
)
_NUMBERS = (
    _Question("low", "Lowest, for example 0", _number),
    _Question("high", "Highest, for example 120", _number),
)
_MOMENTS = (
    _Question("low", "First, for example 2000-01-01", _moment),
    _Question("high", "Last, for example 2030-12-31", _moment),
    _Question("unit", "Counted in (day, hour, minute, second)", str, "day"),
)
_CATEGORIES = (
    _Question("values", 'Values, for example Ulm, Jena, "Halle, Saale"', _values),
    _Question("other", "May others occur? (yes, no)", flag, False),
)
_NULLABLE = _Question("nullable", "May it be missing, as most may? (yes, no)", flag, True)
_UNIT = _Question("unit", "Does it name the person that a row belongs to? (yes, no)", flag, False)
