"""Spark frames give the same bits as files, whatever their partitions."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from command_line import run
from sfumato.data.batch import Batch
from sfumato.data.rows import encoded_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.schema import Identifier, Schema
from sfumato.statistics.counts import Axis, Counts
from support import SCHEMA, count_statistic, people

pyspark = pytest.importorskip("pyspark")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java here, which Spark needs", allow_module_level=True)

# One process starts one Spark.
pytestmark = pytest.mark.xdist_group("spark")

BUDGET = sf.Budget(epsilon=8, delta=1e-5)
UNITS = Schema(columns={**SCHEMA.columns, "who": Identifier(unit=True)})


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    root = str(Path(__file__).parents[2])  # this file's classes are sent to executors by their name
    here = os.pathsep.join([root, *(path for path in sys.path if path)])
    session = (
        SparkSession.builder.master("local-cluster[2, 1, 512]")  # two executors of one core each
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.executorEnv.PYTHONPATH", here)
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.task.maxFailures", "3")
        .config("spark.driver.memory", "512m")
        .config("spark.executor.memory", "512m")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    shutil.rmtree(Path(pyspark.__file__).parent / "work", ignore_errors=True)  # executors' logs


def framed(spark: Any, table: pa.Table, folder: Path, partitions: int) -> Any:
    pa.parquet.write_table(table, folder / "table.parquet")
    return spark.read.parquet(str(folder / "table.parquet")).repartition(partitions)


def test_every_division_into_partitions_gives_the_same_bits(spark: Any, tmp_path: Path) -> None:
    def seen(data: Any) -> tuple[Any, ...]:
        rows = encoded_rows(data, TableCodec(SCHEMA))
        found = rows.review()
        counts = {name: column.counts for name, column in found.columns.items()}
        total = rows.sum(count_statistic(100)).tobytes()
        return found.rows, found.kept, counts, total

    expected = seen(people(600))
    for partitions in (1, 2, 7):
        assert seen(framed(spark, people(600), tmp_path, partitions)) == expected


@dataclass(frozen=True)
class Together:
    """Several statistics as one, for one job."""

    statistics: Sequence[Any]

    @property
    def dim(self) -> int:
        return sum(each.dim for each in self.statistics)

    def sum(self, batch: Batch) -> np.ndarray:
        return np.concatenate([each.sum(batch) for each in self.statistics])


def test_all_methods_get_the_same_sums_whatever_the_partitions(spark: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from questions import questions

    methods = [
        sf.Pairs(target="sick", components=3, restarts=1),
        sf.Merf(target="sick", steps=2),
        sf.Hp(target="sick", steps=2),
    ]
    frames = [framed(spark, people(600), tmp_path, partitions) for partitions in (1, 2, 7)]
    for method in methods:
        codec = method.codec(SCHEMA)
        asked = questions(method, encoded_rows(people(600), codec), SCHEMA, BUDGET)
        statistic = Together([question.keywords["statistic"] for question in asked])
        expected = encoded_rows(people(600), codec).sum(statistic)
        for frame in frames:
            assert np.array_equal(encoded_rows(frame, codec).sum(statistic), expected)


def test_units_keep_so_many_rows_whatever_the_partitions(spark: Any, tmp_path: Path) -> None:
    # Spaces make no other person; two rows have none.
    who = [None, "NA", *(f"{' ' * (row % 2)}P{row % 90}" for row in range(298))]
    table = people(300).append_column("who", pa.array(who))
    sums = []
    for partitions in (1, 3):
        rows = encoded_rows(framed(spark, table, tmp_path, partitions), TableCodec(UNITS), 2)
        sums.append(rows.sum(count_statistic(100)))
    assert rows.review().kept == 180
    assert np.array_equal(*sums)
    assert sums[0].sum() == 180
    few = table.slice(2, 90)  # one row each: nothing to choose
    rows = encoded_rows(framed(spark, few, tmp_path, 2), TableCodec(UNITS), 2)
    expected = encoded_rows(few, TableCodec(UNITS), 2).sum(count_statistic(100))
    assert np.array_equal(rows.sum(count_statistic(100)), expected)


def test_each_row_of_a_unit_is_as_likely_as_another(spark: Any, tmp_path: Path) -> None:
    """A wrong alarm has a chance below 1e-6: six deviations; and digests have no seed."""
    units = 500
    towns = ["Jena", "Ulm", "Ulm", "Ulm", "Ulm"] * units
    table = people(1).take([0] * len(towns)).set_column(2, "town", pa.array(towns))
    table = table.append_column("who", pa.array(np.repeat(np.arange(units), 5).astype(str)))
    rows = encoded_rows(framed(spark, table, tmp_path, 2), TableCodec(UNITS))
    counts = rows.sum(Counts([(Axis(2, np.arange(100, dtype=np.int32)),)]))
    few, many = sorted(counts[counts > 0])
    assert few + many == units
    assert abs(few - units / 5) < 6 * np.sqrt(units * 0.16)


@dataclass(frozen=True)
class FailsOnce:
    """Counts rows, and fails the first time that it is asked."""

    mark: Path
    dim: int = 1

    def sum(self, batch: Batch) -> np.ndarray:
        if not self.mark.exists():
            self.mark.touch()
            raise RuntimeError("private value 4711")
        return np.array([len(batch)])


@dataclass(frozen=True)
class KillsOnce:
    """Counts rows; the first time that it is asked, its executor is killed."""

    mark: Path
    dim: int = 1

    def sum(self, batch: Batch) -> np.ndarray:
        if not self.mark.exists():
            self.mark.touch()
            daemon = os.getppid()  # which Spark's executor has started
            executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
            assert b"ExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
            os.kill(executor, signal.SIGKILL)
        return np.array([len(batch)])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_an_executor_that_is_killed_changes_nothing(spark: Any, tmp_path: Path) -> None:
    rows = encoded_rows(framed(spark, people(200), tmp_path, 4), TableCodec(SCHEMA))
    assert rows.sum(KillsOnce(tmp_path / "killed")).tolist() == [200]
    assert (tmp_path / "killed").exists()


@dataclass(frozen=True)
class Fails:
    dim: int = 1

    def sum(self, batch: Batch) -> np.ndarray:
        raise RuntimeError("private value 4711")


def test_a_task_that_is_tried_again_counts_once_and_failures_quote_nothing(
    spark: Any, tmp_path: Path
) -> None:
    rows = encoded_rows(framed(spark, people(200), tmp_path, 2), TableCodec(SCHEMA))
    assert rows.sum(FailsOnce(tmp_path / "failed")).tolist() == [200]
    with pytest.raises(SfumatoError, match="a job failed") as failed:
        rows.sum(Fails())
    assert "4711" not in str(failed.value)
    with pytest.raises(SfumatoError, match="a training needs all rows in one place"):
        next(iter(rows))
    with pytest.raises(SfumatoError, match="the data have no column 'who'"):
        encoded_rows(framed(spark, people(20), tmp_path, 1), TableCodec(UNITS))
    odd = pa.table({name: [[1]] for name in SCHEMA.columns})
    with pytest.raises(SfumatoError, match="column 'age': values of type list"):
        encoded_rows(framed(spark, odd, tmp_path, 1), TableCodec(SCHEMA)).review()


def test_the_command_line_reads_with_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    (tmp_path / "people").mkdir()
    pa.parquet.write_table(people(400), tmp_path / "people" / "part-0.parquet")
    arguments = [
        "-s", "people.toml", "-e", "3", "--engine", "spark", "--set", "components=3", "--set",
        "restarts=1",
    ]  # fmt: skip
    code, _, err = run(capsys, "synth", f"{tmp_path}/people", "-o", "a.csv", *arguments)
    assert code == 0, err
    code, out, _ = run(capsys, "ledger", "show")
    assert "people" in out
    code, _, err = run(capsys, "synth", "nobody", "-o", "b.csv", *arguments)
    assert code == 2
    assert "cannot read nobody with Spark" in err
