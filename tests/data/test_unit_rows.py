"""Of a unit's rows, those are used that come first by a digest: wherever they lie, and fairly."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.certificate import certificate_text
from sfumato.data import workers
from sfumato.data.rows import EncodedTable, encoded_rows
from sfumato.data.table_codec import TableCodec
from sfumato.data.unit_limit import unit_names
from sfumato.errors import SfumatoError
from sfumato.schema import Categorical, Identifier, Numeric, Schema

SCHEMA = Schema(
    columns={
        "who": Identifier(unit=True),
        "what": Categorical(values=("a", "b", "c")),
        "size": Numeric(low=0, high=9),
    }
)
CODEC = TableCodec(SCHEMA)


def visits(rows: int = 400, units: int = 60, seed: int = 1) -> pa.Table:
    """Draw units with several rows, some of which are alike, and rows that name nobody."""
    rng = np.random.default_rng(seed)
    who = [None if not number else f"P{number}" for number in rng.integers(0, units, rows)]
    what, size = rng.integers(0, 3, rows), rng.integers(0, 4, rows) * 2.5
    return pa.table({"who": who, "what": [*map("abc".__getitem__, what)], "size": size})


def used(data: Any, most: int, count: int = 1, spool: Path | None = None) -> Counter[bytes]:
    """Give the rows that are used, and which of its unit's rows each of them is."""
    rows = encoded_rows(data, CODEC, most, count, spool)
    if spool is not None:
        rows.review()
    found = Counter(
        batch.codes[row].tobytes() + batch.unit[row].tobytes()
        for batch in rows
        for row in range(len(batch))
    )
    rows.close()
    return found


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(np.random.default_rng(seed).permutation(len(table)))


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_units_rows_are_chosen_by_its_rows_alone(most: int) -> None:
    table = visits()
    whole = used(table, most)
    names = {name for name in table["who"].to_pylist() if name}
    of_unit = [
        used(table.filter(pa.array([who == name for who in table["who"].to_pylist()])), most)
        for name in sorted(names)
    ]
    assert max(found.total() for found in of_unit) == most
    assert sum(of_unit, Counter()) == whole
    for seed in range(5):
        assert used(shuffled(table, seed), most) == whole


@pytest.mark.parametrize("most", [1, 3])
def test_the_same_rows_are_used_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    table = visits()
    expected = used(table, most)
    pa.csv.write_csv(shuffled(table, 1), tmp_path / "a.csv")
    pa.parquet.write_table(shuffled(table, 2), tmp_path / "a.parquet", row_group_size=37)
    with sqlite3.connect(tmp_path / "a.db") as base:
        shuffled(table, 3).to_pandas().to_sql("t", base, index=False)
    frames = [shuffled(table, 4).to_pandas(), f"sqlite://{tmp_path / 'a.db'}?table=t"]
    for data in [tmp_path / "a.csv", tmp_path / "a.parquet", *frames]:
        assert used(data, most) == used(data, most, spool=tmp_path / "spool") == expected
    monkeypatch.setattr(workers, "WORTH", 1)
    for size in (90, 700):
        monkeypatch.setattr(workers, "PART_BYTES", size)
        for spool in (None, tmp_path / "spool"):
            assert used(tmp_path / "a.csv", most, 2, spool) == expected


def test_each_row_of_a_unit_is_as_likely_as_another() -> None:
    """A wrong alarm has a chance below 1e-6: six deviations; and digests have no seed."""
    units = 4000
    for most in (1, 2):
        # One row of its own comes first, and then four that are alike.
        what = ["a", "b", "b", "b", "b"] * units
        table = pa.table(
            {"who": np.repeat(np.arange(units), 5), "what": what, "size": [1.0] * len(what)}
        )
        rows = encoded_rows(table, CODEC, most)
        first = np.concatenate([batch.codes[:, 0] == 0 for batch in rows]).sum()
        share = most / 5
        assert abs(first - share * units) < 6 * np.sqrt(share * (1 - share) * units)


def test_values_are_counted_in_the_rows_that_are_used(tmp_path: Path) -> None:
    table = visits()
    path = tmp_path / "a.csv"
    pa.csv.write_csv(table, path)
    for spool in (None, tmp_path / "spool"):
        for most in (1, 2):
            rows = EncodedTable(path, CODEC, most, spool=spool)
            rows.review()
            codes = Counter("abc"[code] for batch in rows for code in batch.codes[:, 0])
            assert rows.counted_values("what") == codes
            rows.close()


def test_texts_that_stand_for_missing_name_no_unit() -> None:
    assert unit_names(pa.array(["NA", "", " ", "nan", None, "ann"])).to_pylist() == [
        None, None, None, None, None, "ann",
    ]  # fmt: skip


def test_moments_cannot_name_units() -> None:
    moments = pa.array([1, 2], pa.timestamp("us"))
    with pytest.raises(SfumatoError, match="identifier of the unit holds moments"):
        used(pa.table({"who": moments, "what": ["a", "b"], "size": [1.0, 2.0]}), 1)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivateWarning")
def test_screen_and_certificate_say_which_rows_are_used() -> None:
    for most, said in ((1, "at most 1 row is used"), (2, "at most 2 rows are used")):
        budget = sf.Budget(epsilon=8, delta=1e-5, max_rows_per_unit=most)
        model = sf.Pairs(components=3, restarts=1).fit(visits(), SCHEMA, budget)
        assert f"of each 'who', {said}, chosen by a digest; others are left out" in (
            certificate_text(model)
        )


def test_how_many_rows_are_left_out_is_told_the_owner() -> None:
    table = visits(100, 99)
    found = encoded_rows(table, CODEC, 1).review()
    (sentence,) = [each for each in found.sentences() if "Rows per unit" in each]
    assert f"of {found.rows} rows {found.kept} are used" in sentence
