"""How do time and memory grow with the number of rows, and what do workers and the spool save?

Simulated tables of 15 columns as csv and parquet, in a temporary folder (or SFUMATO_SCALE). Reading
is what a run of `pairs` asks of its rows: a review, all one-way tables, all
pairs of coarse columns. Beside it stands pyarrow merely reading the file. Each case runs in a
process of its own, for its peak memory. Run it with nothing beside it: the time by the clock says
what a second worker brings. Processor time is that of all processes together.

    python benchmarks/scale.py                       # all sizes
    python benchmarks/scale.py 1000000 sample        # some; the results of others are kept

10^8 rows are a folder that holds the file of 10^7 ten times.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from harness import Section, mark, read, result, stamp, table, write_result
from sfumato.data.rows import encoded_rows
from sfumato.data.table_codec import TableCodec
from sfumato.datasets import patients, patients_schema
from sfumato.loading import load
from sfumato.methods.pairs.method import Pairs
from sfumato.privacy.budget import Budget
from sfumato.sampling import Draw
from sfumato.schema import Schema
from sfumato.statistics.counts import Axis, Counts

LEFT_OUT = ("patient_id", "blood_type", "height_cm", "weight_kg", "diastolic", "heart_rate")
SCHEMA = Schema(columns={k: c for k, c in patients_schema().columns.items() if k not in LEFT_OUT})
CHUNK = 500_000
SIZES = [10**5, 10**6, 10**7, 10**8]
SAMPLED = {
    "sample": [(10**6, "out.csv"), (10**6, "out.parquet"), (10**6, "parts"), (10**7, "parts")],
    "sample-more": [(10**8, "parts")],
}


def simulate(folder: Path, rows: int) -> list[Path]:
    """Write a table of so many rows, a piece at a time; 10^8 of them by links, as parquet only."""
    if rows == 10**8:
        many = folder / f"{rows}.parquet"
        many.mkdir(exist_ok=True)
        one = simulate(folder, 10**7)[1]
        for number in range(10):
            (many / f"{number}.parquet").unlink(missing_ok=True)
            os.link(one, many / f"{number}.parquet")
        return [many]
    paths = [folder / f"{rows}.csv", folder / f"{rows}.parquet"]
    if all(path.exists() for path in paths):
        return paths
    schema = patients(1).select(list(SCHEMA.columns)).schema
    halves = [path.with_name(f"half-{path.name}") for path in paths]
    with (
        pa.csv.CSVWriter(halves[0], schema) as text,
        pa.parquet.ParquetWriter(halves[1], schema) as columns,
    ):
        for seed, start in enumerate(range(0, rows, CHUNK)):
            table = patients(min(CHUNK, rows - start), seed).select(list(SCHEMA.columns))
            text.write_table(table.cast(schema))
            columns.write_table(table.cast(schema))
    for half, path in zip(halves, paths, strict=True):
        half.rename(path)
    return paths


def questions() -> tuple[Counts, Counts]:
    codec = TableCodec(SCHEMA)
    alone = [(Axis(i, np.arange(c.size, dtype=np.int32)),) for i, c in enumerate(codec.columns)]
    coarse = [
        Axis(i, (np.arange(c.size) * 16 // c.size).astype(np.int32))
        for i, c in enumerate(codec.columns)
    ]
    pairs = [(coarse[i], coarse[j]) for i in range(len(coarse)) for j in range(i)]
    return Counts(alone), Counts(pairs)


def arrow(path: str) -> dict[str, Callable[[], Any]]:
    """Merely read a file: typed columns, a piece at a time."""

    def read() -> int:
        if path.endswith(".csv"):
            return sum(batch.num_rows for batch in pa.csv.open_csv(path))
        count = 0
        for each in sorted(Path(path).glob("*")) if Path(path).is_dir() else [Path(path)]:
            with pa.parquet.ParquetFile(each) as file:
                count += sum(batch.num_rows for batch in file.iter_batches())
        return count

    return {"read": read}


def rows(path: str, workers: int, spool: bool) -> dict[str, Callable[[], Any]]:
    folder = Path(path).with_suffix(f".rows-{os.getpid()}")
    private = encoded_rows(path, TableCodec(SCHEMA), 1, workers, folder if spool else None)
    alone, pairs = questions()
    return {
        "review": private.review,
        "one-way": lambda: private.sum(alone),
        "pairs": lambda: private.sum(pairs),
        "clear": private.clear,
    }


def sample(model: str, count: int, output: str, workers: int) -> dict[str, Callable[[], Any]]:
    return {"sample": lambda: Draw(load(Path(model)), count).write(Path(output), workers)}


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """Run one case in this process, and say what it took."""
    kind = case.pop("kind")
    steps = {"arrow": arrow, "rows": rows, "sample": sample}[kind](**case)
    seconds, began = {}, time.process_time()
    for name, step in steps.items():
        start = time.perf_counter()
        step()
        seconds[name] = time.perf_counter() - start
    if case.get("workers", 1) > 1:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)
    own = time.process_time() - began  # without what it takes to start Python
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    status = Path("/proc/self/status").read_text()  # since this program began, unlike rusage
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return {
        "seconds": seconds,
        "processor_seconds": own + workers.ru_utime + workers.ru_stime,
        "peak_mb": int(peak.split()[1]) / 1024,
        "peak_worker_mb": workers.ru_maxrss / 1024,
    }


def measured(**case: Any) -> dict[str, Any]:
    found = subprocess.run(
        [sys.executable, __file__, json.dumps(case)], capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise SystemExit(found.stderr)
    result = case | json.loads(found.stdout.splitlines()[-1])
    result |= {"load": os.getloadavg()[0]}
    for key in ("path", "model", "output"):
        if key in result:
            result[key] = Path(result[key]).name
    print(result, flush=True)
    return result


def main(folder: Path, asked: list[str]) -> None:
    cases = {_name(case): case for case in (read("scale") or {}).get("cases", [])}

    def run(rows: int, size: int | None = None, **case: Any) -> None:
        about = {"rows": rows} | ({} if size is None else {"bytes": size})
        # What else happens on the machine never makes anything faster.
        times = 3 if rows <= 10**7 and size is not None else 1
        found = about | min(
            (measured(**case) for _ in range(times)),
            key=lambda each: sum(each["seconds"].values()),
        )
        cases[_name(found)] = found | stamp()
        about = {"columns": len(SCHEMA.columns), "cases": list(cases.values())}
        write_result("scale", about, collected=True)

    for rows in map(int, filter(str.isdigit, asked)):
        for place in simulate(folder, rows):
            files = place.glob("*") if place.is_dir() else [place]
            size = sum(file.stat().st_size for file in files)
            run(rows, size, kind="arrow", path=str(place))
            for workers in (1, 2):
                run(rows, size, kind="rows", path=str(place), workers=workers, spool=True)
            if rows == 10**6:
                run(rows, size, kind="rows", path=str(place), workers=1, spool=False)
    model = folder / "model.sfumato"
    if not model.exists():
        table = patients(20_000).select(list(SCHEMA.columns))
        Pairs(target="readmitted").fit(table, SCHEMA, Budget(epsilon=1)).save(model)
    for word in filter(SAMPLED.__contains__, asked):
        for count, name in SAMPLED[word]:
            for workers in (1, 2) if count < 10**8 else (2,):
                output = folder / f"{count}-{workers}-{name}"
                run(
                    count, kind="sample", model=str(model), count=count, output=str(output),
                    workers=workers,
                )  # fmt: skip
                subprocess.run(["rm", "-rf", str(output)], check=True)


def _name(case: dict[str, Any]) -> tuple[Any, ...]:
    """Say which case it is, so that a later run takes its place."""
    keys = ("rows", "kind", "path", "output", "workers", "spool")
    return tuple(case.get(key) for key in keys)


def body() -> str:
    cases = result("scale")["cases"]
    runs: dict[tuple[int, str], dict[str, Any]] = {}
    for case in cases:
        if case["kind"] != "sample":
            kept = "" if case.get("spool", True) else ", parsed again"
            which = "pyarrow" if case["kind"] == "arrow" else f"{case['workers']} workers{kept}"
            form = case["path"].rpartition(".")[2]
            runs.setdefault((case["rows"], form), {})[which] = case
    read_rows = []
    for (rows, form), run in runs.items():
        merely, one, two = (run[which] for which in ("pyarrow", "1 workers", "2 workers"))
        again, own = run.get("1 workers, parsed again"), merely["processor_seconds"]
        read_rows.append(
            [f"{rows:,}, {form}{mark('rows', one, two)}",
             f"{_clock(merely):.2f} s ({own:.2f})",
             f"{_clock(one):.2f} s",
             f"{_clock(two):.2f} s",
             f"{_clock(again):.2f} s" if again else "",
             f"{_clock(two) / _clock(merely):.1f} ({_clock(two) / own:.1f})",
             f"{_clock(one) / _clock(two):.2f}",
             f"{_memory(one)}, {_memory(two)} MB"]
        )  # fmt: skip
    drawn = [
        [f"{case['rows']:,}, {_form(case['output'])}{mark('pairs', case)}", str(case["workers"]),
         f"{_clock(case):.1f} s", f"{1e6 * case['processor_seconds'] / case['rows']:.1f} µs",
         f"{_memory(case)} MB"]
        for case in cases
        if case["kind"] == "sample"
    ]  # fmt: skip
    heads = ["rows", "pyarrow", "1 worker", "2 workers", "parsed again", "against pyarrow",
             "two over one", "memory"]  # fmt: skip
    return (
        table(heads, read_rows)
        + "\nSampling from `pairs` of these columns:\n\n"
        + table(["rows, output", "workers", "time", "processor, a row", "memory"], drawn)
    )


def _clock(case: dict[str, Any]) -> float:
    return float(sum(case["seconds"].values()))


def _memory(case: dict[str, Any]) -> str:
    return f"{max(case['peak_mb'], case['peak_worker_mb']):.0f}"


def _form(name: str) -> str:
    return {"csv": "csv", "parquet": "parquet"}.get(name.rpartition(".")[2], "folder of parquet")


def glance() -> list[list[str]]:
    clock = {
        f"{case['kind']} {case.get('workers', '')}": _clock(case)
        for case in result("scale")["cases"]
        if case["rows"] == 10**8
    }
    return [
        ["10^8 rows of parquet: all that `pairs` asks of them", "", f"{clock['rows 2']:.0f} s",
         f"pyarrow merely reading them **{clock['arrow ']:.0f} s**", "two cores, 250 MB a process"],
    ]  # fmt: skip


SECTION = Section(
    "Many rows",
    "scale.py",
    """\
Simulated tables of 15 columns. What a run of `pairs` asks of its rows (review, one-way tables,
pairs) beside pyarrow merely reading the file. Time is by the clock of an idle machine, with the
start of workers; up to 10^7 rows it is the quickest of three runs. pyarrow reads csv with one
thread and parquet with two; in brackets its processor time, which is what one core would take.
*Against pyarrow*: two workers over pyarrow by the clock, in brackets over its processor time
(aims: 2 for csv, 3 for parquet). *Two over one*: how many times as fast two workers are (aim
1.7); below 10^7 rows a second one is not started. *Parsed again*: one worker without the spool.
Memory is that of the largest process, with one and two workers.""",
    body,
    glance,
)


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("{"):
        print(json.dumps(run_case(json.loads(sys.argv[1]))))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            everything = [*map(str, SIZES), *SAMPLED]
            main(Path(os.environ.get("SFUMATO_SCALE") or temporary), sys.argv[1:] or everything)
