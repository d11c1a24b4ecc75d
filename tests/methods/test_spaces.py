"""Layouts: encoded rows as points, and points as typed rows."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.modelling.spaces import ImageSpace, TableSpace, space_of
from sfumato.schema import Categorical, Datetime, Identifier, Images, Numeric, Schema
from support import SCHEMA, people


def _batch(codec: TableCodec, table: pa.Table) -> Batch:
    return codec.encode(table.combine_chunks().to_batches()[0])


def test_a_row_is_its_numbers_and_then_one_block_per_category_and_null_flag() -> None:
    codec = TableCodec(SCHEMA)
    layout = TableSpace(codec, "sick")
    table = pa.table(
        {"age": [99], "pay": pa.array([None], pa.float64()), "town": ["Jena"], "sick": [True]}
    )
    assert layout.blocks == (3, 2)
    assert layout.from_batch(_batch(codec, table)).tolist() == [[1.0, 0.5, 0, 1, 0, 0, 1]]


def test_rows_come_back_from_their_points() -> None:
    codec = TableCodec(SCHEMA)
    layout = TableSpace(codec, "sick")
    table = people(200)
    batch = _batch(codec, table)
    back = layout.decode(
        layout.from_batch(batch), batch.codes[:, layout.class_column], np.random.default_rng(0)
    )
    assert back["age"].to_pylist() == table["age"].to_pylist()
    assert back["sick"].to_pylist() == table["sick"].to_pylist()
    assert back["pay"].is_null().to_pylist() == table["pay"].is_null().to_pylist()
    pay = [np.array(each["pay"].drop_null()) for each in (back, table)]
    assert np.allclose(*pay, atol=0.01)
    known = [town if town != "Kiel" else "(other)" for town in table["town"].to_pylist()]
    assert back["town"].to_pylist() == known


def test_a_null_flag_points_at_its_number_and_its_block() -> None:
    layout = TableSpace(TableCodec(SCHEMA), "sick")
    (flag,) = layout.flags
    assert (flag.number, flag.flag, flag.default) == (1, 2 + 3 + 1, 0.5)


def test_moments_and_identifiers_are_decoded() -> None:
    schema = Schema(
        columns={
            "id": Identifier(),
            "day": Datetime(low=datetime(2020, 1, 1), high=datetime(2020, 1, 11), nullable=True),
        }
    )
    layout = TableSpace(TableCodec(schema))
    points = np.array([[0.5, 1.0, 0.0], [0.5, 0.0, 1.0]], np.float32)
    table = layout.decode(points, np.zeros(2, int), np.random.default_rng(0))
    assert table["id"].to_pylist() == [1, 2]
    assert table["day"].to_pylist() == [date(2020, 1, 6), None]


def test_categories_are_drawn_in_proportion_to_their_probabilities() -> None:
    layout = TableSpace(TableCodec(Schema(columns={"c": Categorical(values=("a", "b", "c"))})))
    points = np.tile(np.array([[0.2, 0.0, 0.8]], np.float32), (4000, 1))
    drawn = layout.decode(points, np.zeros(4000, int), np.random.default_rng(0))["c"].to_pylist()
    assert drawn.count("a") / 4000 == pytest.approx(0.2, abs=0.03)
    assert "b" not in drawn


def test_classes_are_counted_apart_or_together() -> None:
    layout = TableSpace(TableCodec(SCHEMA), "sick")
    assert layout.class_axis(apart=True).groups.tolist() == [0, 1]
    assert layout.class_axis(apart=False).groups.tolist() == [0, 0]
    assert TableSpace(TableCodec(SCHEMA)).class_axis(apart=True).size == 1


def test_an_image_is_its_pixels() -> None:
    codec = ImageCodec(Images(height=2, width=3, classes=("cat", "dog")))
    layout = ImageSpace(codec)
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3, 1)
    batch = codec.encode((pixels, ["dog", "cat"]))
    made = layout.decode(layout.from_batch(batch), batch.codes[:, 0], np.random.default_rng(0))
    assert np.array_equal(made.x, pixels)
    assert made.y is not None
    assert made.y.tolist() == ["dog", "cat"]


@pytest.mark.parametrize(
    ("target", "message"),
    [("age", "must be a category"), ("size", "no modelled column 'size'")],
)
def test_a_target_that_has_no_classes_is_refused(target: str, message: str) -> None:
    with pytest.raises(SfumatoError, match=message):
        space_of(TableCodec(SCHEMA), target)


def test_a_table_of_nothing_but_the_target_is_refused() -> None:
    with pytest.raises(SfumatoError, match="besides the target"):
        space_of(TableCodec(Schema(columns={"c": Categorical(values=("a",))})), "c")


def test_numbers_have_as_many_levels_as_exact_sums_allow() -> None:
    one, many = (
        TableSpace(TableCodec(Schema(columns={str(i): Numeric(low=0, high=1) for i in range(n)})))
        for n in (1, 600)
    )
    assert (one.levels, many.levels) == (2**18, 2**8)
