"""What is worked out once for equal values is what would be worked out for each row."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from sfumato.data import parsing
from sfumato.data.distinct import Distinct
from sfumato.data.review import Review
from sfumato.data.table_codec import TableCodec
from sfumato.schema import Categorical, Datetime, Numeric, Schema

WHOLE = [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64()]


@pytest.mark.parametrize("kind", WHOLE, ids=str)
def test_whole_numbers_have_places_whatever_their_type(kind: pa.DataType) -> None:
    low, high = (0, 255) if kind in (pa.uint8(), pa.uint64()) else (-128, 127)
    numbers = [None if n % 7 == 0 else n for n in range(low, high + 1)] * 4
    found = Distinct.of(pa.array(numbers, kind))
    assert found.spread(np.array(found.values.to_pylist(), object)).tolist() == numbers
    assert found.places is not None or kind == pa.uint64()


def test_numbers_far_apart_and_no_numbers_are_taken_as_they_are() -> None:
    assert Distinct.of(pa.array([0, 1 << 62] * 9)).places is None
    assert Distinct.of(pa.array([None] * 9, pa.int64())).places is None
    assert Distinct.of(pa.array([], pa.date32())).places is None


def test_rows_have_the_codes_and_misfits_that_they_have_alone() -> None:
    schema = Schema(
        columns={
            "n": Numeric(low=3, high=9, integer=True, nullable=True),
            "c": Categorical(values=(4, 5), other=True),
            "d": Datetime(low=date(2020, 1, 3), high=date(2020, 1, 8), unit="day"),
        }
    )
    codec = TableCodec(schema)
    rng = np.random.default_rng(0)
    count = 300
    missing = rng.random(count) < 0.1
    table = pa.record_batch(
        {
            "n": pa.array(rng.integers(0, 12, count), mask=missing),
            "c": pa.array(rng.integers(2, 8, count), pa.int8(), mask=missing[::-1]),
            "d": pa.array(rng.integers(18260, 18275, count), pa.int32()).view(pa.date32()),
        }
    )
    review, alone = Review(), Review()
    whole = codec.encode(table, review)
    rows = [codec.encode(table.slice(row, 1), alone) for row in range(count)]
    assert np.array_equal(whole.codes, np.concatenate([row.codes for row in rows]))
    assert np.array_equal(whole.numbers, np.concatenate([row.numbers for row in rows]))
    assert {n: c.counts for n, c in review.columns.items()} == {
        n: c.counts for n, c in alone.columns.items()
    }
    assert sum(review.columns["d"].counts.values()) > 50


def test_numbers_are_read_alike_whatever_stands_beside_them() -> None:
    rng = np.random.default_rng(0)
    marks = np.array(list("0123456789012345678901234.-"))
    texts = ["".join(rng.choice(marks, rng.integers(0, 9))) for _ in range(4000)]
    texts += ["-.5", "5.", "-0", ".", "-", "007", "1" * 299, "1" * 301, "1" * 400, "0." + "1" * 400]
    alone = np.concatenate([parsing.numbers(pa.array([text])) for text in texts])
    slowly = parsing.numbers(pa.array([*texts, "+1"]))[:-1]
    assert np.array_equal(alone, slowly, equal_nan=True)
    readable = [text for text, number in zip(texts, alone, strict=True) if np.isfinite(number)]
    assert len(readable) > 1000
    together = parsing.numbers(pa.array([None, *readable]))
    assert np.array_equal(together[1:], alone[np.isfinite(alone)])
    assert np.isnan(together[0])


@pytest.mark.parametrize(("kind", "count"), [(pa.int8(), 128), (pa.uint8(), 256)])
def test_a_null_has_its_place_beside_as_many_values_as_a_short_type_can_number(
    kind: pa.DataType, count: int
) -> None:
    places = [*range(count)] * 3 + [None]
    names = pa.array([f"town {number}" for number in range(count)])
    rows = pa.DictionaryArray.from_arrays(pa.array(places, kind), names)
    found = Distinct.of(rows)
    assert found.places is not None
    assert found.values.take(pa.array(found.places)).to_pylist() == rows.to_pylist()
