"""Data are opened once for a run, encoded once, and seen in one snapshot."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.data import rows as encoded
from sfumato.data import workers
from sfumato.data.csv_rows import CsvRows
from sfumato.data.databases import SQLiteRows
from sfumato.data.image_sources import StreamedRows
from sfumato.privacy.ledger import Ledger
from support import SCHEMA, people

OPEN = {
    "age": {"kind": "integer", "low": "private", "high": "private"},
    "town": {"kind": "categorical", "values": "private"},
    "sick": {"kind": "boolean"},
}
QUICK = sf.Pairs(components=2, restarts=1)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count how often each source is read."""
    seen: list[str] = []
    for kind in (CsvRows, SQLiteRows, StreamedRows):
        read = kind.batches

        def counted(self: Any, *names: Any, read: Any = read, kind: type = kind) -> Iterator[Any]:
            seen.append(kind.__name__)
            return read(self, *names)

        monkeypatch.setattr(kind, "batches", counted)
    return seen


def written(folder: Path, rows: int = 500) -> Path:
    pyarrow.csv.write_csv(people(rows), folder / "people.csv")
    return folder / "people.csv"


def run(**options: Any) -> sf.Run:
    return sf.Run(ledger=Ledger(":memory:"), workers=1, **options)


def test_a_small_file_is_read_once(tmp_path: Path, passes: list[str]) -> None:
    QUICK.fit(written(tmp_path), SCHEMA, 1.0, run())
    assert passes == ["CsvRows"]


def test_what_is_found_costs_one_reading_for_values_and_one_for_the_code(
    tmp_path: Path, passes: list[str]
) -> None:
    QUICK.fit(written(tmp_path), OPEN, 4.0, run())
    assert passes == 3 * ["CsvRows"]  # review and bounds, values of all columns, the code


def test_large_files_are_read_from_the_spool_after_what_is_open_was_found(
    tmp_path: Path, passes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PART_BYTES", 1 << 12)
    file = written(tmp_path, 2000)
    parts = len(CsvRows(file).parts())
    assert parts > 3
    QUICK.fit(file, OPEN, 4.0, run(folder=tmp_path / "releases"))
    assert len(passes) == 3 * parts
    assert not list((tmp_path / "releases").glob(".rows*"))


def test_images_are_read_once(tmp_path: Path, passes: list[str]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (400, 4, 4)).astype(np.uint8), rng.choice(["a", "b"], 400)
    np.savez(tmp_path / "x.npz", x=x, y=y)
    schema = sf.Schema(images=sf.Images(height=4, width=4, classes=("a", "b")))
    sf.Moments().fit(tmp_path / "x.npz", schema, 5.0, run())
    assert passes == ["StreamedRows"]


def test_a_table_that_is_written_to_meanwhile_is_seen_in_one_snapshot(tmp_path: Path) -> None:
    """SQLite lets others write beside a reader: all of a run sees what was there at its start."""
    place = tmp_path / "people.db"
    base = sqlite3.connect(place)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("CREATE TABLE people (age INTEGER, town TEXT, sick INTEGER)")
    rows = list(
        zip(*people(3000).select(["age", "town", "sick"]).to_pydict().values(), strict=True)
    )
    base.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    base.commit()
    told: list[str] = []

    def written_to(stage: str, _: float | None) -> None:
        if stage.startswith("releasing"):
            told.append(stage)
            other = sqlite3.connect(place)
            other.execute("DELETE FROM people WHERE rowid % 2 = 1")
            other.commit()
            other.close()

    model = QUICK.fit(
        f"sqlite://{place}?table=people", OPEN, 20.0, run(dataset="p", progress=written_to)
    )
    base.close()
    assert len(told) > 2
    assert abs(model.rows - 3000) < 60


@pytest.mark.parametrize("change", ["appended", "replaced", "gone"])
def test_a_file_that_changes_while_it_is_read_stops_the_run_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(workers, "PART_BYTES", 1 << 12)  # it is read again and again
    file = written(tmp_path, 2000)

    def changed(stage: str, _: float | None) -> None:
        if not stage.startswith("releasing"):
            return
        if change == "appended":
            with file.open("ab") as more:
                more.write(b"50,10.0,Ulm,true\n")
        elif change == "replaced":
            other = tmp_path / "other.csv"
            other.write_bytes(file.read_bytes())
            os.replace(other, file)
        else:
            file.unlink()

    with pytest.raises(sf.SfumatoError, match="has changed since this run opened it"):
        QUICK.fit(file, SCHEMA, 1.0, run(progress=changed))


def test_few_rows_in_memory_are_those_of_the_source() -> None:
    """With units, too, of which the rows are limited; and not more memory than is allowed."""
    from sfumato.data.table_codec import TableCodec

    schema = sf.read_schema(
        {
            "who": {"kind": "identifier", "unit": True},
            "age": {"kind": "integer", "low": 0, "high": 99},
        }
    )
    rng = np.random.default_rng(0)
    table = pa.table({"who": rng.integers(0, 50, 300), "age": rng.integers(0, 99, 300)})
    seen = []
    for most in (1 << 28, 100):
        encoded.MOST_IN_MEMORY = most
        rows = encoded.EncodedTable(table, TableCodec(schema), 2)
        before = np.concatenate([batch.codes for batch in rows])
        rows.review()
        assert (rows._few is None) == (most == 100)
        seen += [before, np.concatenate([batch.codes for batch in rows])]
    encoded.MOST_IN_MEMORY = 1 << 28
    assert all(np.array_equal(each, seen[0]) for each in seen)


UNIT = {
    "who": {"kind": "identifier", "unit": True},
    "town": {"kind": "categorical", "values": "private"},
    "sick": {"kind": "boolean"},
}


def test_values_are_counted_of_the_rows_that_were_reviewed(tmp_path: Path) -> None:
    """Which rows of a unit are used is decided at the review: another file is not counted by it."""
    file = tmp_path / "visits.csv"
    file.write_text("who,town,sick\n" + "".join(f"p{n},Ulm,true\n" for n in range(6000)))

    def replaced(stage: str, _: float | None) -> None:
        if stage.startswith("releasing"):
            file.write_text("who,town,sick\n" + "ann,secret,true\n" * 6000)

    ledger = Ledger(":memory:")
    with pytest.raises(sf.SfumatoError, match="has changed since this run opened it"):
        QUICK.fit(file, UNIT, 1.0, sf.Run(ledger=ledger, workers=1, progress=replaced))
    assert len(ledger.entries()) <= 1


def left(folder: Path) -> list[Path]:
    return list(folder.rglob(".rows*"))


def test_no_encoded_rows_are_left_however_a_search_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PART_BYTES", 1 << 12)
    file, folder, ledger = written(tmp_path, 2000), tmp_path / "releases", Ledger(":memory:")
    keep = encoded.EncodedRows.keep

    def fit(**options: Any) -> Any:
        run = sf.Run(ledger=ledger, workers=1, folder=folder, **options)
        return QUICK.fit(file, OPEN, 4.0, run)

    def interrupted(stage: str, _: float | None) -> None:
        if stage == "releasing one-way":
            raise KeyboardInterrupt

    def interrupted_while_keeping(rows: Any) -> None:
        keep(rows)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(progress=interrupted)
    assert not left(folder)
    with monkeypatch.context() as patch:
        patch.setattr(encoded.EncodedRows, "keep", interrupted_while_keeping)
        with pytest.raises(KeyboardInterrupt):
            fit()
    assert not left(folder)
    fit()  # the search is taken up; the rest is asked, of rows that are reviewed first
    assert not left(folder)


def test_saved_answers_of_a_search_are_taken_up_without_a_look_at_the_rows(
    tmp_path: Path, passes: list[str]
) -> None:
    file, ledger = written(tmp_path), Ledger(":memory:")
    kept = {"ledger": ledger, "workers": 1, "folder": tmp_path / "releases"}
    first = QUICK.fit(file, OPEN, 4.0, sf.Run(**kept))
    passes.clear()
    with file.open("a") as more:
        more.write("one,field,too,many,here\n")
    again = QUICK.fit(file, OPEN, 4.0, sf.Run(**kept, use_saved=True))
    assert (passes, again.schema) == ([], first.schema)


def test_a_folder_that_gets_other_files_is_read_on(tmp_path: Path) -> None:
    import pyarrow.parquet

    folder = tmp_path / "people"
    folder.mkdir()
    pyarrow.parquet.write_table(people(500), folder / "a.parquet")

    def other(stage: str, _: float | None) -> None:
        (folder / ".DS_Store").write_bytes(b"x")

    QUICK.fit(folder, SCHEMA, 1.0, run(progress=other))
