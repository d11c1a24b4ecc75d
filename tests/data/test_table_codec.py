"""Codes are public functions of single rows, and lead back to the values."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.codes import code_of
from sfumato.data.table_codec import TableCodec
from sfumato.datasets import patients, patients_schema
from sfumato.schema import Boolean, Categorical, Column, Datetime, Numeric, Schema

RNG = np.random.default_rng(0)


def round_trip(column: Column, values: pa.Array) -> list[Any]:
    cells = code_of(column)
    decoded: list[Any] = cells.decode(cells.encode(values)[0], RNG).to_pylist()
    return decoded


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (Numeric(low=-5, high=90, integer=True), [-5, 0, 3, 90]),
        (Numeric(low=0, high=1, nullable=True), [0.0, None, 1.0]),
        (Categorical(values=("b", "a"), nullable=True), ["a", None, "b"]),
        (Categorical(values=(3, 1)), [1, 3]),
        (Boolean(nullable=True), [True, None, False]),
        (
            Datetime(low=datetime(2020, 1, 1), high=datetime(2024, 12, 31)),
            [date(2020, 1, 1), date(2022, 6, 5), date(2024, 12, 31)],
        ),
        (
            Datetime(low=datetime(2020, 1, 1), high=datetime(2020, 1, 2), unit="minute"),
            [datetime(2020, 1, 1, 7, 31)],
        ),
    ],
)
def test_values_that_have_a_cell_of_their_own_come_back_exactly(
    column: Column, values: list[Any]
) -> None:
    assert round_trip(column, pa.array(values)) == values


@given(st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_numbers_come_back_within_their_cell(values: list[float]) -> None:
    column = Numeric(low=-1e5, high=2e5)
    decoded = np.array(round_trip(column, pa.array(values, pa.float64())), dtype=float)
    clamped = np.clip(np.array(values, dtype=float), -1e5, 2e5)
    assert (np.abs(decoded - clamped) <= 3e5 / 4096 * (1 + 1e-9)).all()


def test_wide_integers_share_cells_of_whole_numbers() -> None:
    cells = code_of(Numeric(low=0, high=99_999, integer=True), 1000)
    codes = cells.encode(pa.array([1, 99, 100, 0, 99_999]))[0]
    assert codes[0] == codes[1] != codes[2]
    assert codes[3] >= cells.ordered  # zero and the bounds have cells of their own
    decoded = np.array(cells.decode(np.repeat(codes[0], 999), RNG))
    assert decoded.min() >= 0
    assert decoded.max() <= 99
    assert len(set(decoded.tolist())) > 50


def test_numbers_beyond_the_bounds_are_brought_to_them_before_anything_is_made_of_them() -> None:
    """Also before they are compared with other columns, as constraints do."""
    code = code_of(Numeric(low=0, high=9, integer=True))
    cells, unit = code.encode(pa.array([-5, 4, 99]))
    assert (cells.min(), cells.max(), unit.min(), unit.max()) == (0, code.size - 1, 0.0, 1.0)
    assert code.settled(pa.array([-5, 4, 99])).tolist() == [0.0, 4.0, 9.0]


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (Numeric(low=0, high=10, integer=True), [-3.0, 99.0, np.nan, np.inf], [0, 10, 5, 5]),
        (Numeric(low=0, high=10, integer=True, nullable=True), [np.nan, -np.inf], [None, None]),
        (Categorical(values=("x",), other=True), ["y", None], ["(other)", "(other)"]),
        (Categorical(values=("x",), nullable=True), ["y", None], [None, None]),
        (Categorical(values=("x", "z")), ["y", None], ["x", "x"]),
        (Categorical(values=("x",), other=True, nullable=True), ["y", "NA"], ["(other)", None]),
        (Categorical(values=("x", "NA"), nullable=True), ["NA", ""], ["NA", None]),
        (Boolean(), ["maybe", "true"], [False, True]),
    ],
)
def test_values_outside_the_schema_are_clamped_or_mapped(
    column: Column, values: list[Any], expected: list[Any]
) -> None:
    assert round_trip(column, pa.array(values)) == expected


@pytest.mark.parametrize(
    ("column", "texts", "typed"),
    [
        (Numeric(low=0, high=9, nullable=True, integer=True), ["3", "", "no", "1e999"], [3, None]),
        (Categorical(values=(1, 2), nullable=True), [" 1", "2.5", "x", "NA"], [1.0, 2.5]),
        (Boolean(nullable=True), ["true", "?", "", "False "], [True, None]),
        (
            Datetime(low=datetime(2020, 1, 1), high=datetime(2021, 1, 1), nullable=True),
            ["2020-02-03", "2020-13-01", "soon", ""],
            [date(2020, 2, 3), None],
        ),
    ],
)
def test_texts_are_read_like_typed_values_each_for_itself(
    column: Column, texts: list[str], typed: list[Any]
) -> None:
    """A row that cannot be read must not change how any other row is read."""
    cells = code_of(column)
    together = cells.encode(pa.array(texts))[0].tolist()
    alone = [cells.encode(pa.array([text]))[0].tolist()[0] for text in texts]
    assert together == alone
    assert together[:2] == cells.encode(pa.array(typed))[0].tolist()


def test_frames_of_every_library_give_the_same_codes() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    from sfumato.data.rows import encoded_rows

    table, codec = patients(500), TableCodec(patients_schema())
    frames = [table, table.to_pandas(), polars.from_arrow(table), table.to_reader()]
    assert isinstance(frames[1], pandas.DataFrame)
    codes = [np.concatenate([b.codes for b in encoded_rows(f, codec)]) for f in frames]
    assert all(np.array_equal(codes[0], other) for other in codes[1:])


def test_identifiers_are_numbered_anew_and_kinds_are_kept() -> None:
    table, codec = patients(200), TableCodec(patients_schema())
    decoded = codec.decode(codec.encode(table.to_batches()[0]).codes, RNG)
    assert decoded.column_names == table.column_names
    assert decoded["patient_id"].to_pylist() == list(range(1, 201))
    for name in set(table.column_names) - {"patient_id"}:
        assert decoded[name].type == table[name].type
    assert decoded["smoker"].null_count == table["smoker"].null_count


def test_the_unit_cube_leads_back_to_values() -> None:
    column = Numeric(low=-10, high=30, nullable=True)
    cells = TableCodec(Schema(columns={"x": column})).columns[0]
    codes, unit = cells.encode(pa.array([-10.0, 0.0, 30.0, None]))
    assert unit is not None
    assert unit.tolist() == [0.0, 0.25, 1.0, 0.5]
    missing = codes == cells.size - 1
    assert cells.from_unit(unit, missing).to_pylist() == [-10.0, 0.0, 30.0, None]  # type: ignore[union-attr]
