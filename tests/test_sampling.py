"""Large tables are drawn in parts: the same rows for any number of workers, in bounded memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from command_line import run
from sfumato import sampling
from sfumato.data import workers
from sfumato.data.sources import table_rows
from sfumato.sampling import Draw
from sfumato.schema import CsvFormat, Identifier, Schema
from support import SCHEMA, people, seeded_fit

BUDGET = sf.Budget(epsilon=8, delta=1e-5)
NUMBERED = Schema(columns={"number": Identifier(), **SCHEMA.columns})


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "PART_ROWS", 300)
    monkeypatch.setattr(workers, "WORTH", 1)


@pytest.fixture(scope="module")
def model() -> Any:
    table = people(600).add_column(0, "number", pa.array(range(600)))
    return seeded_fit(sf.Pairs(components=3, restarts=1), table, NUMBERED, BUDGET)


def read(path: Path, names: list[str], form: CsvFormat | None = None) -> dict[str, list[str]]:
    batches = table_rows(path, form=form).batches(names)
    found: dict[str, list[str]] = {name: [] for name in names}
    for batch in batches:
        for name in names:
            found[name] += [str(value) for value in batch.column(name).to_pylist()]
    return found


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "folder"])
def test_any_number_of_workers_writes_the_same_file(tmp_path: Path, model: Any, name: str) -> None:
    contents = []
    for count in (1, 2):
        place = tmp_path / str(count) / name
        Draw(model, 1000, seed=7).write(place, count)
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        contents.append([file.read_bytes() for file in files])
        written = read(place, ["number", "age", "town"])
        assert written["number"] == [str(number) for number in range(1, 1001)]
        assert written["age"] == [
            str(age) for age in Draw(model, 1000, seed=7).whole(1)["age"].to_pylist()
        ]
    # A gzip file holds the time of its making.
    assert name.endswith(".gz") or contents[0] == contents[1]
    assert len(contents[0]) == (4 if name == "folder" else 1)


def test_parts_differ_and_follow_from_the_seed(model: Any) -> None:
    draw = Draw(model, 900, seed=7)
    first, second, third = (draw.part(number).drop_columns("number") for number in range(3))
    assert not first.equals(second)
    assert not second.equals(third)
    assert draw.part(1).equals(Draw(model, 700, seed=7).part(1))
    assert not draw.part(1).equals(Draw(model, 900, seed=8).part(1))


def test_one_part_is_what_the_model_samples(model: Any) -> None:
    assert Draw(model, 300, seed=3).whole().equals(model.sample(300, seed=3))
    assert Draw(model, 0).whole(2).num_rows == 0
    given = {"town": "Ulm"}
    assert set(Draw(model, 700, given).whole(1)["town"].to_pylist()) == {"Ulm"}


def test_neural_models_are_drawn_alike_by_workers() -> None:
    pytest.importorskip("torch")
    method = sf.Merf(target="sick", steps=2)
    drawn = seeded_fit(method, people(600), SCHEMA, BUDGET)
    assert Draw(drawn, 1000).whole(1).equals(Draw(drawn, 1000).whole(2))


def test_marks_that_begin_a_file_are_written_once(tmp_path: Path, model: Any) -> None:
    form = CsvFormat(encoding="utf-16", delimiter=";")
    schema = NUMBERED.model_copy(update={"csv": form})
    other = replace(model, schema=schema)
    Draw(other, 700).write(tmp_path / "a.csv", 1)
    assert (tmp_path / "a.csv").read_bytes().decode("utf-16").count("\ufeff") == 0
    assert len(read(tmp_path / "a.csv", ["age"], form)["age"]) == 700


def test_the_command_line_streams(
    tmp_path: Path, model: Any, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    model.save(tmp_path / "m.sfumato")

    def sample(*arguments: str) -> bytes:
        code, out, err = run(capfdbinary, "sample", "m.sfumato", "-n", "1_000", *arguments)
        assert code == 0, err
        return bytes(out)

    printed = sample("-o", "-", "--workers", "2")
    sample("-o", "a.csv", "--workers", "1")
    assert (tmp_path / "a.csv").read_bytes() == printed
    sample("-o", "parts", "--workers", "1")
    assert len(list((tmp_path / "parts").iterdir())) == 4
    code, _, err = run(capfdbinary, "sample", "m.sfumato", "-o", "parts")
    assert code == 2
    assert b"not empty" in err


def test_a_failure_leaves_nothing(
    tmp_path: Path, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(draw: Draw, number: int) -> pa.Table:
        if number == 2:
            raise OSError(28, "No space left on device")
        return original(draw, number)

    original = Draw.part
    monkeypatch.setattr(Draw, "part", stop)
    for name in ("a.csv", "a.parquet", "folder"):
        with pytest.raises(sf.SfumatoError, match="No space left"):
            Draw(model, 1000).write(tmp_path / "out" / name, 1)
    assert list((tmp_path / "out").iterdir()) == []


def test_synthesis_writes_in_parts(tmp_path: Path) -> None:
    method = sf.Pairs(components=3, restarts=1)
    made = sf.synthesize(
        people(600),
        SCHEMA,
        BUDGET,
        method=method,
        rows=1000,
        output=tmp_path / "a.parquet",
        run=sf.Run(dataset="people", workers=1),
    )
    assert made.data is None
    assert pa.parquet.read_table(tmp_path / "a.parquet").equals(
        sampling.rounded(Draw(made.model, 1000).whole(1), SCHEMA)
    )
