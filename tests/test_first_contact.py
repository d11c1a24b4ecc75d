"""The first ten minutes: other people's files come through whole, or are refused unpaid."""

from __future__ import annotations

import gzip
import io
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from command_line import folder as folder
from command_line import run
from sfumato.data.new_table import new_table
from sfumato.errors import SfumatoError
from sfumato.notebook import usual_progress
from sfumato.privacy.ledger import Ledger
from sfumato.sampling import Draw
from sfumato.schema import Images
from sfumato.storage import locked, new_folder, write_whole
from support import SCHEMA, people

BASE = ("synth", "people.csv", "-s", "people.toml", "-e", "2")
SYNTH = (*BASE, "-o", "out.csv", "-q")
IMAGES = Images(height=4, width=4, classes=("a", "b"))
QUICK = ("--set", "components=2", "--set", "restarts=1")


def test_a_file_of_pandas_keeps_what_it_means(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    rows = 4000
    frame = pd.DataFrame(
        {
            "insured": rng.random(rows) < 0.3,
            "code": rng.choice([1.0, 2.0, np.nan], rows, p=[0.5, 0.3, 0.2]),
            "pay": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(1.1, 0.3, rows).clip(0, 10)),
            "seen": pd.Timestamp("2023-06-01T08:00", tz="+01:00")
            + pd.to_timedelta(rng.integers(0, 300, rows), "h"),
        }
    )
    frame.to_csv(folder / "frame.csv")
    (folder / "frame.toml").write_text(
        '[columns.insured]\nkind = "boolean"\n'
        '[columns.code]\nkind = "categorical"\nvalues = [1, 2]\nnullable = true\n'
        '[columns.pay]\nkind = "numeric"\nlow = 0\nhigh = 10\nnullable = true\n'
        '[columns.seen]\nkind = "datetime"\nlow = 2023-01-01\nhigh = 2024-01-01\nunit = "hour"\n'
        'zone = "+01:00"\n'
    )
    call = ("synth", "frame.csv", "-s", "frame.toml", "-e", "20", "-o", "out.csv", "-q")
    assert run(capsys, *call)[0] == 0
    made = pd.read_csv(folder / "out.csv")
    assert made["insured"].mean() == pytest.approx(0.3, abs=0.05)
    assert (made["code"] == 2).mean() == pytest.approx(0.3, abs=0.05)
    assert made["pay"].isna().mean() == pytest.approx(0.2, abs=0.05)
    assert made["pay"].mean() == pytest.approx(1.1, abs=0.05)
    seen = pd.to_datetime(made["seen"])
    assert str(seen.dt.tz) == "UTC+01:00"
    # Of the 300 hours, almost all lie in the first two weeks of June.
    assert ((seen >= "2023-06-01") & (seen < "2023-06-14T12:00")).mean() > 0.97


def test_decimals_are_those_of_the_cells_or_of_the_schema(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *SYNTH, *QUICK)[0] == 0
    pay = pa.csv.read_csv(folder / "out.csv")["pay"].drop_null().to_numpy()
    assert np.array_equal(pay, pay.round(1))  # cells of 1000 / 4096
    text = (
        (folder / "people.toml").read_text().replace("high = 1000.0", "high = 1000.0\ndecimals = 0")
    )
    (folder / "people.toml").write_text(text)
    assert run(capsys, *SYNTH, *QUICK, "--pay-again", "--force")[0] == 0
    pay = pa.csv.read_csv(folder / "out.csv")["pay"].drop_null().to_numpy()
    assert np.array_equal(pay, pay.round(0))


@pytest.mark.parametrize(
    "arguments",
    [
        (*BASE, "-o", "x.csv", "--model", "people.csv"),
        (*BASE, "-o", "x.csv", "--report", "people.csv"),
        (*BASE, "-o", "x.csv", "--model", "x.csv"),
        (*BASE, "-o", "link.csv"),
        ("fit", "people.csv", "-s", "people.toml", "-e", "2", "-o", "people.csv"),
        ("fit", "people.csv", "-s", "people.toml", "-e", "2", "-o", "people.toml"),
        ("evaluate", "people.csv", "people.csv", "-s", "people.toml", "--json", "people.csv"),
        ("evaluate", "people.csv", "people.csv", "-s", "people.toml", "--report", "people.toml"),
        ("classify", "train", "people.csv", "-s", "people.toml", "-e", "2", "-t", "sick",
         "-o", "people.csv"),
        ("schema", "init", "people.csv", "-o", "people.toml", "--codebook", "people.toml"),
    ],
)  # fmt: skip
def test_no_output_overwrites_an_input_or_another_output(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    (folder / "link.csv").symlink_to(folder / "people.csv")
    before = {path: path.read_bytes() for path in folder.glob("people.*")}
    code, _, err = run(capsys, *arguments, "--force")
    assert code == 2
    assert "would overwrite" in err
    assert before == {path: path.read_bytes() for path in folder.glob("people.*")}
    assert not own_ledger.exists()


def test_the_ledger_is_no_output(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *SYNTH, *QUICK)[0] == 0
    before = own_ledger.read_bytes()
    for option in ("--model", "--report"):
        code, _, err = run(capsys, *SYNTH, "--force", option, str(own_ledger))
        assert (code, "would overwrite an input" in err) == (2, True)
    assert own_ledger.read_bytes() == before


@pytest.mark.parametrize("encoding", ["iso-2022-jp", "hz", "utf-7", "base64", "unicode_escape"])
def test_encodings_in_which_rows_change_the_next_are_refused(encoding: str) -> None:
    with pytest.raises(sf.SfumatoError, match="row by row"):
        sf.read_schema({"columns": {"a": {"kind": "boolean"}}, "csv": {"encoding": encoding}})


def test_existing_outputs_need_force(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "m.sfumato").write_text("mine")
    code, _, err = run(capsys, *SYNTH, "--model", "m.sfumato")
    assert (code, "m.sfumato (--model) exists" in err) == (2, True)
    assert not own_ledger.exists()
    (folder / "report.html").mkdir()
    code, _, err = run(capsys, *SYNTH, "--report", "report.html")
    assert (code, "is a folder" in err) == (2, True)


def test_a_second_run_for_the_same_output_waits_and_says_so(folder: Path) -> None:
    steps: list[str] = []
    held = locked(folder / "new" / "out.csv")
    held.__enter__()

    def waiting() -> None:
        steps.append("waits")
        held.__exit__(None, None, None)

    with locked(folder / "new" / "out.csv", waiting):
        steps.append("goes on")
    assert steps == ["waits", "goes on"]
    assert not list(folder.rglob("*.lock"))


WRITING = """
import sys
from pathlib import Path
from sfumato.storage import new_folder, reserved
with reserved(Path("o.csv")) as file, new_folder(Path("o")) as folder:
    file.write(b"half of a file")
    (folder / "part-0.parquet").write_bytes(b"half of a folder")
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows lets nobody remove an open file")
def test_what_a_crash_left_of_an_output_goes_when_it_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    others = tmp_path / ".o.csv.mine"
    others.write_text("kept")
    environment = {**os.environ, "PYTHONPATH": str(Path(sf.__file__).parents[1])}
    run = subprocess.Popen(
        [sys.executable, "-c", WRITING], env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    with run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"open\n"
        left = set(tmp_path.iterdir()) - {others}
        assert len(left) == 2
        write_whole(Path("o.csv"), b"whole")
        with new_folder(Path("o")):
            pass
        assert set(tmp_path.iterdir()) == {others, *left, tmp_path / "o.csv", tmp_path / "o"}
        run.kill()
    write_whole(Path("o.csv"), b"whole")
    (tmp_path / "o").rmdir()
    with new_folder(Path("o")):
        pass
    assert set(tmp_path.iterdir()) == {others, tmp_path / "o.csv", tmp_path / "o"}


PEOPLE = ("people.csv", "-s", "people.toml")
OUTPUTS = (
    ("synth", *PEOPLE, "-e", "1", "-o", "{}"),
    ("synth", *PEOPLE, "-e", "1", "-o", "o.csv", "--model", "{}"),
    ("synth", *PEOPLE, "-e", "1", "-o", "o.csv", "--report", "{}"),
    ("synth", *PEOPLE, "-e", "1", "-o", "o.csv", "--ledger", "{}"),
    ("synth", *PEOPLE, "-e", "1", "-o", "o.csv", "--releases", "{}"),
    ("fit", *PEOPLE, "-e", "1", "-o", "{}"),
    ("fit", *PEOPLE, "-e", "1", "-o", "m.sfumato", "--report", "{}"),
    ("sample", "m.sfumato", "-o", "{}"),
    ("show", "m.sfumato", "--report", "{}"),
    ("show", "m.sfumato", "--schema", "{}"),
    ("evaluate", "people.csv", *PEOPLE, "--json", "{}"),
    ("evaluate", "people.csv", *PEOPLE, "--report", "{}"),
    ("audit", "m.sfumato", "--report", "{}"),
    ("classify", "train", *PEOPLE, "-e", "1", "-t", "sick", "-o", "{}"),
    ("classify", "predict", "m.sfumato", "people.csv", "-o", "{}"),
    ("classify", "explain", "m.sfumato", "people.csv", "-o", "{}"),
    ("public", "train", "p.npz", "-s", "people.toml", "--source", "s", "--licence", "l",
     "-o", "{}"),
    ("schema", "init", "people.csv", "-o", "{}"),
    ("schema", "edit", "people.csv", "-o", "{}"),
    ("ledger", "show", "--ledger", "{}"),
    ("ledger", "limit", "people", "-e", "1", "--ledger", "{}"),
)  # fmt: skip
INPUTS = (
    ("synth", "{}", "-s", "people.toml", "-e", "1", "-o", "o.csv"),
    ("synth", "people.csv", "-s", "{}", "-e", "1", "-o", "o.csv"),
    ("plan", "{}", "-s", "people.toml", "-e", "1"),
    ("sample", "{}", "-o", "o.csv"),
    ("show", "{}"),
    ("audit", "{}"),
    ("evaluate", "{}", *PEOPLE),
    ("evaluate", "people.csv", "{}", "-s", "people.toml"),
    ("evaluate", "people.csv", *PEOPLE, "--test", "{}"),
    ("schema", "init", "{}"),
    ("schema", "init", "people.csv", "--codebook", "{}"),
    ("schema", "check", "{}", "-s", "people.toml"),
)
FORCED = ("synth", "fit", "sample", "show", "evaluate", "audit", "classify", "public")


def strange(folder: Path) -> list[Path]:
    """Make what is no file, under names that files could have."""
    os.mkfifo(folder / "pipe.toml")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket.toml")  # its whole path may be too long
    with suppress(PermissionError):  # which only root may make
        os.mknod(folder / "device.toml", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    names = ("pipe.toml", "socket.toml", "device.toml")
    return [folder / name for name in names if (folder / name).exists()]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_no_output_takes_the_place_of_a_device_a_pipe_or_a_socket(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    before = left_in(folder)
    made = strange(folder)
    assert len(made) >= 2
    force = ("--force",) if arguments[0] in FORCED else ()
    for path in made:
        kind = stat.S_IFMT(path.stat().st_mode)
        code, _, err = run(capsys, *(each.format(path.name) for each in arguments), *force)
        assert (code, err.count("\n")) == (2, 1)
        assert path.name in err
        assert stat.S_IFMT(path.stat().st_mode) == kind
    assert set(left_in(folder)) == {*before, *made}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_no_call_from_python_takes_the_place_of_a_device_a_pipe_or_a_socket(folder: Path) -> None:
    model = sf.Pairs(components=2, restarts=1).fit("people.csv", "people.toml", 1)
    before = left_in(folder)
    made = strange(folder)
    for path in made:
        calls: tuple[Callable[[], object], ...] = (
            lambda path=path: model.save(path),
            lambda path=path: Draw(model, 3).write(path),
            lambda path=path: sf.synthesize("people.csv", "people.toml", 1, output=path),
            lambda path=path: new_table(f"sqlite://{path}?table=t", replace=True),
            lambda path=path: new_table(f"duckdb://{path}?table=t", replace=True),
            lambda path=path: Ledger(path),
        )
        for call in calls:
            with pytest.raises(SfumatoError):
                call()
    assert not any(path.is_file() for path in made)
    assert set(left_in(folder)) == {*before, *made}


@pytest.mark.parametrize("address", ["s3://bucket/a.toml", "gs://b", "https://ann:s3cret@host/a"])
@pytest.mark.parametrize("arguments", [*OUTPUTS, *INPUTS], ids=" ".join)
def test_addresses_that_nobody_serves_are_refused_in_one_line(
    folder: Path,
    own_ledger: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    address: str,
) -> None:
    before = left_in(folder)
    code, _, err = run(capsys, *(each.format(address) for each in arguments))
    lines = [line for line in err.splitlines() if line.startswith("sfumato: ")]
    assert (code, len(lines)) == (2, 1)
    assert f"{address.partition('://')[0]}://…: name a file on this machine" in lines[0]
    assert "s3cret" not in err
    assert left_in(folder) == before
    assert not own_ledger.exists() or Ledger(own_ledger).entries() == []


def test_addresses_that_nobody_serves_are_refused_in_python(folder: Path) -> None:
    model = sf.Pairs(components=2, restarts=1).fit("people.csv", "people.toml", 1)
    before = left_in(folder)
    for place in ("s3://bucket/o.csv", Path("s3://bucket/o.csv"), "S3://bucket/o.npz"):
        calls: tuple[Callable[[], object], ...] = (
            lambda place=place: sf.synthesize("people.csv", "people.toml", 1, output=place),
            lambda place=place: sf.synthesize(place, "people.toml", 1),
            lambda place=place: sf.synthesize("people.csv", place, 1),
            lambda place=place: sf.Pairs().fit(
                "people.csv", "people.toml", 1, sf.Run(folder=Path(place))
            ),
            lambda place=place: sf.Moments().fit(place, sf.Schema(images=IMAGES), 1),
            lambda place=place: model.save(place),
            lambda place=place: Draw(model, 3).write(Path(place)),
            lambda place=place: Ledger(place),
            lambda place=place: sf.load(place),
            lambda place=place: new_table(f"duckdb://{place}?table=t"),
        )
        for call in calls:
            with pytest.raises(SfumatoError, match="name a file on this machine"):
                call()
    assert left_in(folder) == before


def unwritable(folder: Path) -> dict[str, str]:
    """Name files that cannot be written, each in its own way."""
    (folder / "taken.d").mkdir()
    (folder / "plain").mkdir()
    (folder / "file").write_text("")
    found = {
        "a folder with a suffix": "taken.d",
        "a folder without one": "plain",
        "below a file": "file/new/out",
        "a name that is too long": 300 * "n",
    }
    if Path("/proc/self").exists():
        found["a place where nobody may write"] = "/proc/out"
    if os.path.exists("/dev/full"):
        found["a device"] = "/dev/full"
    if hasattr(os, "geteuid") and os.geteuid():
        (folder / "shut").mkdir(mode=0o500)
        found["a folder that is shut"] = "shut/new/out"
    return found


@pytest.mark.parametrize("option", ["--output", "--model", "--report", "--releases"])
def test_outputs_that_cannot_be_written_are_told_before_anything_is_paid(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    ways = unwritable(folder)
    if option == "--releases":
        ways = {way: path for way, path in ways.items() if "folder " not in way}
        ways["a file"] = "file"
    before = left_in(folder)
    for way, path in ways.items():
        place = path + ".csv" if option == "--output" and path.endswith("out") else path
        if place != "plain" or option != "--output":  # a table may be a folder of parquet files
            code, _, err = run(capsys, *SYNTH, option, place)
            assert (code, err.count("\n")) == (2, 1), way
            assert left_in(folder) == before, way
        if option in ("--output", "--report"):
            assert run(capsys, "fit", *SYNTH[1:], option, path)[0] == 2, way
            assert left_in(folder) == before, way
    assert not own_ledger.exists() or Ledger(own_ledger).entries() == []


def left_in(folder: Path) -> list[Path]:
    """List what lies in a folder, but for the ledger."""
    return [file for file in sorted(folder.rglob("*")) if "ledger.sqlite" not in file.name]


def test_an_output_that_cannot_be_written_from_python_costs_nothing(
    folder: Path, own_ledger: Path
) -> None:
    ways = unwritable(folder)
    before = left_in(folder)
    del ways["a folder without one"]  # which may be a folder of parquet files
    for path in ways.values():
        with pytest.raises((SfumatoError, OSError)):
            sf.synthesize("people.csv", "people.toml", 1, output=Path(path))
        with pytest.raises(SfumatoError):
            write_whole(Path(path), b"")
    for path in ("file", "file/new", "/proc/out"):
        with pytest.raises((SfumatoError, OSError)):
            sf.Pairs().fit("people.csv", "people.toml", 1, sf.Run(folder=Path(path)))
    assert left_in(folder) == before
    assert not own_ledger.exists() or Ledger(own_ledger).entries() == []


def test_what_is_paid_for_in_python_is_in_the_users_own_ledger(
    folder: Path, own_ledger: Path
) -> None:
    for _ in range(2):
        sf.Pairs(components=2, restarts=1).fit("people.csv", "people.toml", 1)
    paid = Ledger(own_ledger).entries("people")
    assert len(paid) >= 2
    sf.Pairs(components=2, restarts=1).fit(
        "people.csv", "people.toml", 1, sf.Run(folder=folder / "r", pay_again=True)
    )
    assert len(Ledger(own_ledger).entries("people")) == len(paid) * 3 // 2
    sf.Pairs(components=2, restarts=1).fit(
        "people.csv", "people.toml", 1, sf.Run(ledger=Ledger(":memory:"))
    )
    assert len(Ledger(own_ledger).entries("people")) == len(paid) * 3 // 2


def test_a_table_goes_through_a_pipe(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = ("synth", "-", "-s", "people.toml", "-e", "2", "-q", "-o", "-", *QUICK)
    content = (folder / "people.csv").read_bytes()
    for name, missing in (("--dataset", "--releases"), ("--releases", "--dataset")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        code, _, err = run(capsys, *piped, name, "p")
        assert (code, missing in err) == (2, True)
    for bytes_ in (content, gzip.compress(content)):
        out = io.TextIOWrapper(io.BytesIO())
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bytes_)))
            patch.setattr(sys, "stdout", out)
            assert run(capsys, *piped, "--dataset", "p", "--releases", "r")[0] == 0
        table = pa.csv.read_csv(io.BytesIO(out.buffer.getvalue()))  # type: ignore[attr-defined]
        assert table.column_names == list(SCHEMA.columns)


def test_csv_gz_and_other_formats_come_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "people.toml").write_text(
        '[csv]\ndelimiter = ";"\n\n'
        + SCHEMA.to_toml().replace("nullable", 'decimal = ","\nnullable')
    )
    frame = people(300).to_pandas()
    frame.to_csv(folder / "people.csv", sep=";", decimal=",", index=False)
    call = ("synth", "people.csv", "-s", "people.toml", "-e", "2", "-o", "o.csv.gz", "-q", *QUICK)
    assert run(capsys, *call)[0] == 0
    made = pd.read_csv(folder / "o.csv.gz", sep=";", decimal=",")
    assert made["pay"].dtype == float
    code, out, _ = run(capsys, "schema", "check", "o.csv.gz", "-s", "people.toml")
    assert (code, "every value lies within" in out) == (0, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('kind = "boolean"', 'kind = ["boolean"]'), "kind must be one of"),
        (("high = 99", f"high = {10**30}"), "within 2^53"),
        (("high = 99", "high = 99\nbins = 1000000000"), "bins"),
        (('["Ulm", "Jena"]', '["Ulm", "(other)"]'), "unlisted values"),
        (("high = 99", 'high = 99\nthousands = "."'), "cannot both be"),
    ],
)
def test_schemas_that_make_no_sense_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], message: str
) -> None:
    text = SCHEMA.to_toml().replace(*change)
    assert text != SCHEMA.to_toml()
    (folder / "people.toml").write_text(text)
    code, _, err = run(capsys, *SYNTH)
    assert (code, message in err, "Traceback" in err) == (2, True, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rows", "-1"), "must not be negative"),
        (("--seed", "-1"), "must not be negative"),
        (("--set", "components=10000000"), "components must lie"),
        (("--set", "components=-5"), "components must lie"),
        (("--misfit", "much"), "--misfit takes a share"),
        (("--misfit", "2"), "from 0 to 1"),
        (("--misfit-budget", "1"), "below 1"),
        (("--delimiter", ";;"), "one character"),
        (("--encoding", "martian"), "name of an encoding"),
        (("--delimiter", ";"), 'delimiter = ","'),
    ],
)
def test_options_are_checked_before_anything_is_paid(
    folder: Path,
    own_ledger: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    code, _, err = run(capsys, *SYNTH, *arguments)
    assert code == 2
    assert message in err
    assert not own_ledger.exists() or Ledger(own_ledger).entries() == []


def test_a_large_epsilon_is_doubted_and_works(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = [*("1000" if each == "2" else each for each in SYNTH), *QUICK, "--report", "r.html"]
    code, _, err = run(capsys, *call)
    assert (code, "WARNING" in err) == (0, True)


def test_the_ledger_is_read_one_line_a_spend(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *SYNTH, *QUICK)[0] == 0
    _, out, _ = run(capsys, "ledger", "show", "people")
    lines = [line for line in out.splitlines() if line.startswith("  people") and "mu" in line]
    assert len(lines) == out.count("saved") >= 2
    code, _, err = run(capsys, "ledger", "show", "nobody")
    assert (code, "has no data set 'nobody': it knows people" in err) == (2, True)
    assert run(capsys, "ledger", "cancel", "people")[1] == "people: 0 reservation(s) freed\n"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version")[:2] == (0, f"sfumato {sf.__version__}\n")


def test_an_interruption_while_modules_load_is_one_line() -> None:
    script = (
        "import sys, types\n"
        "import sfumato.cli\n"
        "class Interrupting(types.ModuleType):\n"
        "    def __getattr__(self, name): raise KeyboardInterrupt\n"
        "sys.modules['sfumato.cli.app'] = Interrupting('app')\n"
        "sfumato.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "interrupted" in done.stderr


def test_the_library_takes_what_people_give(tmp_path: Path) -> None:
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    method = sf.Pairs(components=2, restarts=1)
    as_dict = {
        "age": {"kind": "integer", "low": 0, "high": 99},
        "town": {"kind": "categorical", "values": ["Ulm", "Jena"], "other": True},
    }
    table = people(300)
    for schema in (SCHEMA, str(tmp_path / "people.toml"), tmp_path / "people.toml", as_dict):
        model = method.fit(table, schema, 2.0)
        assert model.guarantee.epsilon <= 2
    with pytest.raises(sf.SfumatoError, match="a budget is a Budget or a number"):
        method.fit(table, SCHEMA, "1")  # type: ignore[arg-type]
    with pytest.raises(sf.SfumatoError, match="a schema is a Schema, the path"):
        method.fit(table, 3, 1.0)  # type: ignore[arg-type]
    with pytest.raises(sf.SfumatoError, match="give a path or a frame"):
        method.fit([1, 2], SCHEMA, 1.0)
    with pytest.raises(sf.SfumatoError, match="n must not be negative"):
        model.sample(-1)
    found = sf.evaluate(table, model.sample(200), as_dict)
    for shown in (sf.read_schema(as_dict), model, model.guarantee, found):
        assert "<table>" in shown._repr_html_()
    assert "<table>" in method.plan(SCHEMA, sf.Budget(epsilon=1))._repr_html_()


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["Ulm", "Jena", "Kiel"])])
def test_categories_of_polars_are_read(kind: pl.DataType) -> None:
    frame = pl.from_arrow(people(200)).with_columns(pl.col("town").cast(kind))
    one, other = (
        sf.synthesize(data, SCHEMA, 1e4, rows=50, method=sf.Pairs(components=2, restarts=1))
        for data in (people(200), frame)
    )
    shares = [
        np.mean([town == "Ulm" for town in made.model.sample(4000)["town"].to_pylist()])
        for made in (one, other)
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.07)


def test_notebooks_see_stages(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual_progress()("reading rows", None)
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    tell = usual_progress()
    tell("reading rows", None)
    tell("reading rows", 0.5)
    assert capsys.readouterr().err == "sfumato: reading rows\n"
