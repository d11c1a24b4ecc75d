"""Values that several rows share are read once, and come out as if each row were read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato.data.distinct import Distinct


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
