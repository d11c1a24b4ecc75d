"""Conditions keep exactly those parts of cells from which wanted values are drawn."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sfumato as sf
from sfumato.data.codes import ColumnCode, code_of
from sfumato.data.condition import Condition, Wanted, conditions_of, read_given
from sfumato.errors import SfumatoError
from sfumato.schema import Boolean, Categorical, Datetime, Images, Numeric, Schema
from support import SCHEMA as PEOPLE
from support import people, seeded_fit

BUDGET = sf.Budget(epsilon=1)
DRAWS = 200

REALS = Numeric(low=-1, high=3, bins=7, nullable=True)
WIDE = Numeric(low=-20, high=80, integer=True, bins=8)  # atoms, and a last cell beyond the bounds
AGES = Numeric(low=0, high=20, integer=True)
DAYS = Datetime(low=datetime(2020, 1, 1), high=datetime(2020, 12, 31), bins=9, nullable=True)
HOURS = Datetime(low=datetime(2020, 1, 1), high=datetime(2020, 1, 9), unit="hour")
TOWNS = Categorical(values=("Ulm", "Bonn, DE", "a..b"), other=True, nullable=True)
SCHEMA = Schema(
    columns={"real": REALS, "wide": WIDE, "age": AGES, "day": DAYS, "hour": HOURS, "town": TOWNS}
    | {"smoker": Boolean(nullable=True)}
)


class Even:
    """Stands for a generator whose draws are spread evenly: shares are right up to 1 / DRAWS."""

    def random(self, size: int) -> NDArray[np.float64]:
        return (np.arange(size) + 0.5) / size


def drawn(decoder: ColumnCode | Condition, cell: int) -> list[Any]:
    return decoder.decode(np.full(DRAWS, cell), Even()).to_pylist()  # type: ignore[arg-type]


@st.composite
def ranges(draw: st.DrawFn) -> tuple[str, Any, Any]:
    """A column, and the ends of a range, which may be open."""
    name = draw(st.sampled_from(["real", "wide", "age", "day", "hour"]))
    ends: st.SearchStrategy[Any] = st.floats(-2, 4, width=32)
    if name in ("wide", "age"):
        ends = st.integers(-60, 180).map(lambda n: n / 2)
    elif name in ("day", "hour"):
        ends = st.integers(-99, 9999).map(lambda h: datetime(2020, 1, 1) + timedelta(hours=h))
    return name, draw(ends | st.none()), draw(ends | st.none())


def moment(value: Any) -> Any:
    return datetime(value.year, value.month, value.day) if type(value) is date else value


@given(ranges())
def test_a_range_keeps_the_share_of_each_cell_that_lies_in_it(range_: tuple[str, Any, Any]) -> None:
    name, first, last = range_
    code = code_of(SCHEMA.columns[name], 12)

    def meets(value: Any) -> bool:
        return value is not None and bool(
            (first is None or moment(value) >= first) and (last is None or moment(value) <= last)
        )

    try:
        condition = Condition.on(name, code, (first, last))
    except SfumatoError:
        assert not any(meets(v) for cell in range(code.size) for v in drawn(code, cell))
        return
    assume(first != last)
    for cell, kept in enumerate(condition.kept):
        share = np.mean([meets(value) for value in drawn(code, cell)])
        assert abs(share - kept) <= 2 / DRAWS
        if kept > 0:
            values = drawn(condition, cell)
            assert all(map(meets, values))
            plain = {value for value in drawn(code, cell) if meets(value)}
            assert code.integer is False or set(values) >= plain


@pytest.mark.parametrize(
    ("name", "wanted", "values"),
    [
        ("real", 0.3, {0.3}),
        ("real", [0.3, 0.31, 0, None, 0.3], {0.3, 0.31, 0.0, None}),
        ("real", (0.3, 0.3), {0.3}),
        ("real", (3, None), {3.0}),
        ("wide", ["5", 6, 70], {5, 6, 70}),
        ("age", (4, 5.9), {4, 5}),
        ("age", {4, 20}, {4, 20}),
        ("day", ["2020-02-03", date(2020, 2, 4), None], {date(2020, 2, 3), date(2020, 2, 4), None}),
        ("day", ("2020-02-03", date(2020, 2, 4)), {date(2020, 2, 3), date(2020, 2, 4)}),
        ("hour", (datetime(2020, 1, 1, 6, 30), "2020-01-01 07:59"), {datetime(2020, 1, 1, 7)}),
        ("town", ["Ulm", "(other)", None], {"Ulm", "(other)", None}),
        ("town", "Bonn, DE", {"Bonn, DE"}),
        ("smoker", True, {True}),
        ("smoker", [True, "no"], {True, False}),
    ],
)
def test_just_the_wanted_values_are_drawn(name: str, wanted: Any, values: set[Any]) -> None:
    condition = Condition.on(name, code_of(SCHEMA.columns[name]), wanted)
    cells = np.flatnonzero(condition.kept)
    assert {value for cell in cells for value in drawn(condition, cell)} == values


def test_several_whole_numbers_count_by_their_part_of_a_cell() -> None:
    code = code_of(WIDE)  # by thirteens
    kept = Condition.on("wide", code, [-19, -18, 1, 80]).kept
    assert np.flatnonzero(kept).tolist() == [0, 1, 10]
    assert kept[[0, 1, 10]] == pytest.approx([2 / 13, 1 / 13, 1])


@pytest.mark.parametrize(
    ("name", "wanted", "message"),
    [
        ("age", (7, 6), "column 'age', from 0 to 20, has no value in the range 7..6"),
        ("age", (6.2, 6.8), "column 'age', .* has no value in the range 6.2..6.8"),
        ("age", (21, None), "column 'age', .* has no value in the range 21.."),
        ("day", (None, "2019-12-31"), "column 'day', .* has no value in the range ..2019-12-31"),
        ("age", ("old", 9), "'old' is not a value of column 'age'"),
        ("age", (1, 2, 3), "a range of column 'age' has two ends"),
        ("age", [5, 21], "'21' is not a value of column 'age'"),
        ("age", None, "'None' is not a value of column 'age'"),
        ("age", [], "no value is given for column 'age'"),
        ("real", "much", "'much' is not a value of column 'real'"),
        ("town", ("Ulm", "a..b"), "column 'town' is a category"),
        ("smoker", (False, True), "column 'smoker' is a category"),
        ("town", ["Ulm", "Rome"], "'Rome' is not a value of column 'town'.*; it has: Ulm"),
    ],
)
def test_what_cannot_be_met_is_refused_in_one_sentence(
    name: str, wanted: Any, message: str
) -> None:
    with pytest.raises(SfumatoError, match=message):
        Condition.on(name, code_of(SCHEMA.columns[name]), wanted)


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("age", "6", "6"),
        ("age", "6..9", ("6", "9")),
        ("age", "6 .. ", ("6", None)),
        ("age", "..9", (None, "9")),
        ("age", "6,9", ["6", "9"]),
        ("day", "2020-01-01..2020-06-30", ("2020-01-01", "2020-06-30")),
        ("town", "Bonn, DE", "Bonn, DE"),
        ("town", "a..b", "a..b"),
        ("town", "a..b,Ulm", ["a..b", "Ulm"]),
        ("town", "Ulm..a", ("Ulm", "a")),
        ("town", "", ""),
        ("nowhere", "1..2", "1..2"),
    ],
)
def test_texts_are_read_by_the_kind_of_their_column(name: str, text: str, wanted: Wanted) -> None:
    assert read_given([(name, text)], SCHEMA) == {name: wanted}


def test_texts_about_images_are_read_by_their_classes() -> None:
    schema = Schema(images=Images(height=2, width=2, classes=(3, 5, "1,2")))
    assert read_given([("class", "3,5")], schema) == {"class": ["3", "5"]}
    assert read_given([("class", "1,2")], schema) == {"class": "1,2"}


def test_a_column_that_is_given_twice_is_refused() -> None:
    with pytest.raises(SfumatoError, match="column 'age' is given twice"):
        read_given([("age", "6"), ("age", "6")], SCHEMA)


def test_a_value_keeps_the_type_of_its_column() -> None:
    for name, column in SCHEMA.columns.items():
        code = code_of(column)
        cell = np.zeros(1, np.int64)
        plain = code.decode(cell, np.random.default_rng(0))
        condition = Condition.on(name, code, plain.to_pylist())
        codes = np.flatnonzero(condition.kept)
        again = condition.decode(codes, np.random.default_rng(0))
        assert again.type == plain.type
        assert again.equals(pa.array(plain.to_pylist(), plain.type))


@pytest.mark.parametrize("given", ["age > 60", ["age", 60], 60])
def test_conditions_that_are_no_dict_are_refused(given: Any) -> None:
    with pytest.raises(SfumatoError, match="given is a dict of columns"):
        conditions_of(given)
    model = seeded_fit(sf.Pairs(components=2, restarts=1), people(50), PEOPLE, BUDGET)
    with pytest.raises(SfumatoError, match="given is a dict of columns"):
        model.sample(5, given=given)
