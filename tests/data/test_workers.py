"""Any number of workers, and any division into parts, gives the same bits; nothing is left."""

from __future__ import annotations

import gzip
import os
import pickle
import signal
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato import storage
from sfumato.data import spool, workers
from sfumato.data.batch import Batch
from sfumato.data.rows import EncodedTable, encoded_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.schema import Identifier, Schema
from support import SCHEMA, people

UNITS = Schema(columns={**SCHEMA.columns, "who": Identifier(unit=True)})
BUDGET = sf.Budget(epsilon=8, delta=1e-5)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PART_BYTES", 1 << 12)
    monkeypatch.setattr(workers, "WORTH", 1)


def with_units(rows: int) -> pa.Table:
    who = np.random.default_rng(1).integers(0, rows // 3, rows)
    return people(rows).append_column("who", pa.array([f"P{number}" for number in who]))


def written(folder: Path, name: str, table: pa.Table) -> Path:
    path = folder / name
    if name == "folder":
        path.mkdir()
        for number in range(3):
            part = table.slice(number * 400, 400 if number < 2 else None)
            pa.parquet.write_table(part, path / f"part-{number}.parquet")
    elif name.endswith(".parquet"):
        pa.parquet.write_table(table, path, row_group_size=200)
    else:
        buffer = pa.BufferOutputStream()
        pa.csv.write_csv(table, buffer)
        content = buffer.getvalue().to_pybytes()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def seen(rows: Any) -> tuple[Any, ...]:
    """Give all that a curator sees of rows: their review, and the rows themselves."""
    found = rows.review()
    # A sum of all columns at once: rows that are mixed up would change it.
    codes = Counter(tuple(row) for batch in rows for row in batch.codes.tolist())
    return found.rows, found.kept, found.units, codes, list(found.sentences())


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "folder"])
@pytest.mark.parametrize(("schema", "most"), [(SCHEMA, 1), (UNITS, 1), (UNITS, 2)])
def test_parts_workers_and_spools_give_the_same_rows(
    tmp_path: Path, name: str, schema: Schema, most: int
) -> None:
    table = with_units(1500)
    path, codec = written(tmp_path, name, table), TableCodec(schema)
    expected = seen(encoded_rows(table, codec, most))
    for count in (1, 2):
        for kept in (None, tmp_path / "spool"):
            rows = encoded_rows(path, codec, most, count, kept)
            assert seen(rows) == expected
            assert seen(rows) == expected  # from the spool, where there is one
            rows.clear()


def test_a_csv_is_cut_into_parts_between_rows(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", people(3000))
    rows = EncodedTable(path, TableCodec(SCHEMA))
    parts = [sum(len(batch) for batch in part) for part in rows.parts()]
    assert len(parts) > 5
    assert sum(parts) == 3000
    assert min(parts[:-1]) > 50


@pytest.mark.parametrize("line", [0, 7, 400, 2999])
def test_an_open_quote_is_refused_wherever_the_file_is_cut(tmp_path: Path, line: int) -> None:
    path = written(tmp_path, "a.csv", people(3000))
    for cut in (1 << 9, 1 << 12):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers, "PART_BYTES", cut)
            lines = path.read_text().splitlines()
            lines[1 + line] = lines[1 + line].replace('"Ulm"', "Ulm").rsplit(",", 1)[0] + ',"true'
            (tmp_path / "b.csv").write_text("\n".join(lines) + "\n")
            with pytest.raises(SfumatoError, match=rf"line {line + 2}: .*close its quote"):
                encoded_rows(tmp_path / "b.csv", TableCodec(SCHEMA)).review()


def test_encodings_in_which_lines_end_by_several_bytes_are_not_cut(tmp_path: Path) -> None:
    schema = SCHEMA.model_copy(update={"csv": sf.schema.CsvFormat(encoding="utf-16")})
    plain = written(tmp_path, "a.csv", people(1000)).read_text()
    (tmp_path / "b.csv").write_text(plain, encoding="utf-16")
    rows = EncodedTable(tmp_path / "b.csv", TableCodec(schema))
    assert len(rows.parts()) == 1
    assert rows.review().rows == 1000


def test_a_spool_is_private_and_gone_after_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = written(tmp_path, "a.csv", people(1500)), tmp_path / "releases"
    left = folder / ".rows"
    left.mkdir(parents=True)
    (left / "0.arrow").write_text("what a crash left")
    modes = set()

    class Watched(spool.Spool):
        def batches(self, part: int) -> Any:
            (kept,) = folder.glob(".rows*")
            modes.update(stat.S_IMODE(file.stat().st_mode) for file in [kept, *kept.iterdir()])
            return super().batches(part)

    monkeypatch.setattr("sfumato.data.rows.Spool", Watched)
    method = sf.Pairs(components=4, restarts=1)
    method.fit(path, SCHEMA, BUDGET, sf.Run(folder=folder, workers=1))
    assert modes == {0o700, 0o600}
    assert not list(folder.glob(".rows*"))
    tight = Schema(columns={"age": sf.Numeric(low=0, high=30)})
    with pytest.raises(SfumatoError, match="--misfit"):
        sf.Pairs().fit(path, tight, BUDGET, sf.Run(folder=folder, pay_again=True, workers=1))
    assert not list(folder.glob(".rows*"))


def test_a_run_that_is_told_to_end_leaves_no_rows(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", people(1500))
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    # Told while the rows lie in the spool, and before anything is paid.
    script = """
import os, signal, sys
from sfumato.data import rows, workers
workers.PART_BYTES = 1 << 12
read = rows.EncodedRows._read
def told(self, spool):
    found = read(self, spool)
    print(len(os.listdir(spool.path("."))), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    return found
rows.EncodedRows._read = told
from sfumato.cli import main
sys.argv = ["sfumato", "synth", "a.csv", "-s", "people.toml", "-e", "1", "-o", "out.csv",
            "--workers", "1"]
main()
"""
    environment = {
        **os.environ,
        "SFUMATO_LEDGER": str(tmp_path / "ledger.sqlite"),
        "PYTHONPATH": str(Path(sf.__file__).parents[1]),
    }
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    assert int(ended.stdout) > 5
    assert "interrupted" in ended.stderr
    assert path.exists()
    assert not list(tmp_path.glob("*/.rows*"))


def test_an_error_in_a_worker_is_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", people(1500))
    path.write_text(path.read_text() + "1,2\n")
    with pytest.raises(SfumatoError, match="line 1502 has 2 fields"):
        encoded_rows(path, TableCodec(SCHEMA), workers=2).review()


def test_a_worker_that_dies_is_one_line() -> None:
    with pytest.raises(SfumatoError, match="--workers"):
        workers.divided(_die, [1, 2], 2)


def _die(_: object) -> None:
    os._exit(1)


@contextmanager
def running(script: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script beside this one, for as long as the block lasts; it ends by a signal at most."""
    environment = {**os.environ, "PYTHONPATH": str(Path(sf.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


WORKERS = """
import os, sys, time
from sfumato.data import workers
workers.WORTH = 1
END = time.monotonic() + 120

def told(_):
    return os.getpid()

def writing(_):
    print(os.getpid(), flush=True)
    while time.monotonic() < END:
        pass

found = workers.divided({work}, [1, 2], 2)
print(*found, sep="\\n", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows tells its processes itself")
@pytest.mark.parametrize("work", ["told", "writing"])
def test_workers_end_with_their_parent_idle_or_at_work(work: str) -> None:
    with running(WORKERS.format(work=work)) as parent:
        assert line_of(parent)
        assert line_of(parent)
        parent.send_signal(signal.SIGKILL)
        parent.communicate(timeout=60)  # until nobody is left who could write to its output


SPOOLING = """
import sys
from pathlib import Path
from sfumato.data.spool import Spool
kept = Spool(Path({place!r}), 5)
kept.open()
kept.new_file("0.arrow").write(b"private rows")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows lets nobody remove an open file")
def test_rows_of_dead_runs_are_removed_and_those_of_living_ones_are_not(tmp_path: Path) -> None:
    place = tmp_path / ".rows"
    mine, other = spool.Spool(place, 5), spool.Spool(place, 5)
    mine.open()
    with running(SPOOLING.format(place=str(place))) as run:
        assert line_of(run) == "open"
        other.clear()
        assert len(list(tmp_path.glob(".rows*"))) == 2
        run.send_signal(signal.SIGKILL)
    other.clear()
    (left,) = tmp_path.glob(".rows*")
    assert left == mine.path(".")
    mine.clear()
    assert not list(tmp_path.iterdir())


def test_a_worker_that_outlives_its_run_finds_nothing_to_write_into(tmp_path: Path) -> None:
    rows = [(Batch(np.zeros((3, 1), np.int32), np.zeros((3, 0), np.float32)), None)]
    kept = spool.Spool(tmp_path / ".rows", 5)
    kept.open()
    workers_own = pickle.loads(pickle.dumps(kept))
    workers_own.keep(0, rows)
    kept.clear()
    kept.open()
    with pytest.raises(SfumatoError, match="cannot keep encoded rows"):
        workers_own.keep(1, rows)
    assert not list(kept.path(".").iterdir())
    kept.clear()
    with pytest.raises(SfumatoError, match="cannot keep encoded rows"):
        workers_own.keep(2, rows)
    assert not list(tmp_path.iterdir())


def test_rows_that_are_removed_while_a_worker_writes_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = spool.Spool(tmp_path / ".rows", 5)
    kept.open()
    workers_own, removed = pickle.loads(pickle.dumps(kept)), storage.shutil.rmtree
    kept.new_file("0.arrow").close()

    def late(folder: Path) -> None:
        with pytest.raises(FileNotFoundError):
            workers_own.new_file("1.arrow")
        removed(folder)

    monkeypatch.setattr(storage.shutil, "rmtree", late)
    kept.clear()
    assert not list(tmp_path.iterdir())
