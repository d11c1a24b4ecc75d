"""Conditions: which values of a column sampled rows may have, as parts of the column's cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.codes import ColumnCode, DatetimeCode, NumericCode, code_of
from sfumato.data.image_codec import IMAGE_CLASS, ImageCodec
from sfumato.errors import SfumatoError, listing, quoted
from sfumato.schema import Schema, Value, canonical_text

Single = Value | date | None
Wanted = Single | tuple[Single, Single] | Collection[Single]
"""One value; a tuple of the first and the last of a range, None where it is open; or several."""

Given = Mapping[str, Wanted]
"""What sampled rows must have, by column: a value, one of several, or one of a range."""


@dataclass(frozen=True, eq=False)
class Condition:
    """What a condition leaves of a column: a part of each cell, and how values are drawn there.

    Rows that meet it have a cell in proportion to its mass times the part that is `kept`, of which
    only ratios matter.

    >>> from sfumato.schema import Numeric
    >>> tens = code_of(Numeric(low=0, high=99, integer=True, bins=10))
    >>> Condition.on("age", tens, (15, 32)).kept[:4].tolist()
    [0.0, 0.5, 1.0, 0.3]
    """

    kept: NDArray[np.float64]
    decode: Callable[[NDArray[np.integer[Any]], np.random.Generator], pa.Array]
    meets: Callable[[pa.Array], NDArray[np.bool_]]
    """Tells which values meet it."""

    @classmethod
    def on(cls, name: str, code: ColumnCode, wanted: Wanted) -> Condition:
        """Give the condition on the column of this name that its values are the wanted ones."""
        if isinstance(wanted, tuple):
            return _in_range(name, code, wanted)
        if isinstance(wanted, Collection) and not isinstance(wanted, str):
            return _one_of(name, code, wanted)
        return _one_of(name, code, [wanted])


def conditions_of(given: Given | None) -> Given:
    """Give the conditions, or none; what is no mapping of columns is refused.

    >>> conditions_of("age > 60")
    Traceback (most recent call last):
    ...
    sfumato.errors.SfumatoError: given is a dict of columns, as in {'age': (60, None)}, not 'age > \
60'
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SfumatoError(
            f"given is a dict of columns, as in {{'age': (60, None)}}, not {quoted(given)}"
        )
    return given


def class_condition(name: str | None, code: ColumnCode, given: Mapping[str, Wanted]) -> Condition:
    """Give the condition of a model that knows its classes only, under this name."""
    if name is None or list(given) != [name]:
        can = f"only '{name}' can be given" if name else "it has no classes"
        raise SfumatoError(f"this model cannot be conditioned on {', '.join(given)}: {can}")
    return Condition.on(name, code, given[name])


def read_given(texts: Iterable[tuple[str, str]], schema: Schema) -> dict[str, Wanted]:
    """Read conditions that are written as texts, each with the name of its column.

    >>> from sfumato.schema import Categorical, Numeric
    >>> columns = {"age": Numeric(low=0, high=99), "town": Categorical(values=("Ulm", "Bonn, DE"))}
    >>> read_given([("age", "60.."), ("town", "Bonn, DE")], Schema(columns=columns))
    {'age': ('60', None), 'town': 'Bonn, DE'}
    """
    given: dict[str, Wanted] = {}
    for name, text in texts:
        if name in given:
            raise SfumatoError(
                f"column '{name}' is given twice: write its values in one condition, like "
                f"{name}=a,b or {name}=1..9"
            )
        if schema.images and name == IMAGE_CLASS:
            given[name] = _read(text, ImageCodec(schema.images).class_code)
        elif name in schema.modelled:
            given[name] = _read(text, code_of(schema.modelled[name]))
        else:
            given[name] = text  # a model says best what can be given
    return given


def _read(text: str, code: ColumnCode) -> Wanted:
    if code.is_category and code.exact(_texts([text])) is not None:
        return text  # whatever dots or commas a listed value holds
    if ".." in text and not (code.is_category and "," in text):
        first, _, last = text.partition("..")
        return first.strip() or None, last.strip() or None
    return text.split(",") if "," in text else text


def _one_of(name: str, code: ColumnCode, wanted: Collection[Single]) -> Condition:
    if not wanted:
        raise SfumatoError(f"no value is given for column '{name}'")
    exact = [_exact(name, code, value) for value in wanted]
    values = pa.array([value.as_py() for value in exact], exact[0].type).unique()
    cells = code.encode(values)[0]
    counts = np.bincount(cells, minlength=code.size)
    shared = np.arange(code.size) < code.ordered
    kept = counts / np.where(shared, code.values_per_cell, 1.0)
    meets = partial(_is_one_of, values)
    if code.is_category:
        return Condition(kept, code.decode, meets)
    order = np.lexsort((pc.rank(values).to_numpy(), cells))
    return Condition(kept, partial(_draw_values, values.take(pa.array(order)), counts), meets)


def _draw_values(
    values: pa.Array,
    counts: NDArray[np.integer[Any]],
    codes: NDArray[np.integer[Any]],
    rng: np.random.Generator,
) -> pa.Array:
    """Draw evenly among the values of each cell; they are in the order of their cells."""
    before = np.cumsum(counts) - counts
    places = before[codes] + np.floor(rng.random(len(codes)) * counts[codes])
    return values.take(pa.array(places.astype(np.int64)))


def _in_range(name: str, code: ColumnCode, wanted: tuple[Single, ...]) -> Condition:
    written = "..".join("" if end is None else _text(end) for end in wanted)
    if len(wanted) != 2:
        raise SfumatoError(f"a range of column '{name}' has two ends, got {written}")
    if not isinstance(code, NumericCode | DatetimeCode):
        raise SfumatoError(
            f"column '{name}' is a category: give a list of its values, not the range {written}"
        )
    ends = code.ends(_texts(wanted))
    for end, number in zip(wanted, ends, strict=True):
        if end is not None and np.isnan(number):
            raise _unknown(name, code, end)
    low, high = code.bounds
    first, last = float(np.fmax(ends[0], low)), float(np.fmin(ends[1], high))  # open ends are NaN
    if first > last:
        raise SfumatoError(
            f"column '{name}', from {_text(code.low)} to {_text(code.high)}, has no value in the "
            f"range {written}"
        )
    kept = code.shares(first, last)
    if not kept.any():  # a single real number
        return _one_of(name, code, [first])
    decode = partial(code.decode, first=first, last=last)
    return Condition(kept, decode, partial(_lies_within, code, first, last))


def _is_one_of(values: pa.Array, array: pa.Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.is_in(array, value_set=values).to_numpy(zero_copy_only=False)
    return found


def _lies_within(
    code: NumericCode | DatetimeCode, first: float, last: float, array: pa.Array
) -> NDArray[np.bool_]:
    numbers = code.count(array)
    return np.asarray((first <= numbers) & (numbers <= last))


def _exact(name: str, code: ColumnCode, value: Single) -> pa.Scalar:
    """Give a public value in its column's type; what is no such value is an error here."""
    text = _texts([value])
    exact = code.exact(text)
    if exact is None or (not exact.is_valid and not parsing.is_null(text)[0].as_py()):
        raise _unknown(name, code, value)
    return exact


def _unknown(name: str, code: ColumnCode, value: Single) -> SfumatoError:
    listed = f"; it has: {listing(code.names)}" if code.is_category else ""
    return SfumatoError(
        f"{quoted(str(value))} is not a value of column '{name}' in the schema{listed}"
    )


def _texts(values: Iterable[Single]) -> pa.Array:
    texts = [None if value is None else _text(value) for value in values]
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        raise SfumatoError(f"{quoted(texts)} holds what is no text in UTF-8") from None


def _text(value: Any) -> str:
    return canonical_text(value)
