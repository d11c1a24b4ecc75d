"""What is wrong with a file is said as it is: damage, no permission, too little memory."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import typer
from PIL import Image

import sfumato as sf
from command_line import folder as folder
from command_line import is_one_line, run
from sfumato.cli.app import app
from sfumato.errors import SfumatoError
from sfumato.privacy.ledger import Ledger
from support import SCHEMA, people, seeded_fit

BUDGET = sf.Budget(epsilon=1)
SYNTH = ("synth", "people.csv", "-s", "people.toml", "-e", "2", "-o", "out.csv", "-q")
PICTURES = '[images]\nheight = 4\nwidth = 4\nclasses = ["a"]\n'
NO_UTF_8 = "K\udcf6ln"


@pytest.mark.parametrize(
    "arguments",
    [
        (*SYNTH, "--dataset", NO_UTF_8),
        (*SYNTH, "--target", NO_UTF_8),
        (*SYNTH, "--set", f"target={NO_UTF_8}"),
        (*SYNTH, "--output", f"{NO_UTF_8}.csv"),
        ("synth", f"{NO_UTF_8}.csv", *SYNTH[2:]),
        ("sample", "m.sfumato", "-o", "x.csv", "-q", "--given", f"town={NO_UTF_8}"),
        ("schema", "init", f"{NO_UTF_8}.csv"),
        ("schema", "check", f"{NO_UTF_8}.csv", "-s", "people.toml"),
        ("ledger", "limit", NO_UTF_8, "-e", "1"),
        ("ledger", "show", NO_UTF_8),
    ],
    ids=" ".join,
)
def test_arguments_that_are_not_in_utf_8_are_one_line(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    (folder / f"{NO_UTF_8}.csv").write_bytes((folder / "people.csv").read_bytes())
    model = seeded_fit(sf.Pairs(components=2, restarts=1), people(50), SCHEMA, BUDGET)
    model.save(folder / "m.sfumato")
    assert is_one_line(run(capsys, *arguments), "not in UTF-8")
    assert not own_ledger.exists()


def test_texts_that_are_not_in_utf_8_are_refused_in_python(folder: Path) -> None:
    (folder / f"{NO_UTF_8}.csv").write_bytes((folder / "people.csv").read_bytes())
    model = seeded_fit(sf.Pairs(components=2, restarts=1), people(50), SCHEMA, BUDGET)
    ledger = Ledger(":memory:")
    for refused in (
        lambda: model.sample(5, given={"town": NO_UTF_8}),
        lambda: model.sample(5, given={"town": [NO_UTF_8]}),
        lambda: sf.synthesize(f"{NO_UTF_8}.csv", SCHEMA, 1),
        lambda: ledger.limit(NO_UTF_8, BUDGET),
        lambda: ledger.entries(NO_UTF_8),
    ):
        with pytest.raises(SfumatoError, match="in UTF-8"):
            refused()


def test_an_archive_with_an_unknown_compression_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(folder / "x.npz", x=np.zeros((9, 4, 4), np.uint8), y=np.array(["a"] * 9))
    (folder / "x.toml").write_text(PICTURES)
    content = (folder / "x.npz").read_bytes()
    for kind, start in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        for found in re.finditer(re.escape(kind), content):
            place = found.start() + start
            content = content[:place] + b"\x63\0" + content[place + 2 :]
    (folder / "x.npz").write_bytes(content)
    with pytest.raises(NotImplementedError), zipfile.ZipFile(folder / "x.npz") as archive:
        archive.open("x.npy")
    command = ("synth", "x.npz", "-s", "x.toml", "-e", "1", "-o", "o.npz", "-q")
    assert is_one_line(run(capsys, *command), "x.npz is not a readable npz file")


def files_and_readers(folder: Path) -> dict[str, tuple[str, ...]]:
    """Name a file of each kind, and the command that reads it."""
    pa.parquet.write_table(people(9), folder / "people.parquet")
    np.savez(folder / "x.npz", x=np.zeros((9, 4, 4), np.uint8), y=np.array(["a"] * 9))
    (folder / "x-idx3").write_bytes(b"\0\0\x08\3" + bytes(12))
    (folder / "x.toml").write_text(PICTURES)
    (folder / "all" / "a").mkdir(parents=True)
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(folder / "all" / "a" / "0.png")
    model = seeded_fit(sf.Pairs(components=2, restarts=1), people(50), SCHEMA, BUDGET)
    model.save(folder / "m.sfumato")
    (folder / "book.csv").write_text("column\nage\n")
    return {
        "people.csv": ("schema", "check", "people.csv", "-s", "people.toml"),
        "people.parquet": ("schema", "check", "people.parquet", "-s", "people.toml"),
        "people.toml": ("schema", "check", "people.csv", "-s", "people.toml"),
        "book.csv": ("schema", "init", "people.csv", "--codebook", "book.csv"),
        "x.npz": ("schema", "check", "x.npz", "-s", "x.toml"),
        "x-idx3": ("schema", "check", "x-idx3", "-s", "x.toml"),
        "all/a/0.png": ("schema", "check", "all", "-s", "x.toml"),
        "m.sfumato": ("show", "m.sfumato"),
        "ledger.sqlite.id": ("ledger", "show"),
    }


@pytest.mark.parametrize("number", range(9))
def test_a_file_that_may_not_be_read_is_not_called_damaged(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    run(capsys, "ledger", "limit", "people", "-e", "1")
    file, command = list(files_and_readers(folder).items())[number]
    assert run(capsys, *command)[0] == 0 or file == "x-idx3"
    refused = PermissionError(13, "Permission denied", file)

    def shut(name: str, owner: Any) -> None:
        """Let a function refuse this file; a test that runs as root may read all of them."""
        plain = getattr(owner, name)

        def call(place: Any, *arguments: Any, **named: Any) -> Any:
            if str(place).endswith(file):
                raise refused
            return plain(place, *arguments, **named)

        monkeypatch.setattr(owner, name, call)

    import sfumato.loading

    shut("input_stream", pa)
    shut("read_schema", pa.parquet)
    shut("ParquetFile", pa.parquet)
    shut("safe_open", sfumato.loading)
    shut("ZipFile", zipfile)
    shut("open", Image)
    for name in ("read_text", "read_bytes", "open"):
        shut(name, Path)
    found = run(capsys, *command)
    assert is_one_line(found, Path(file).name)
    assert re.search("no permission|Permission denied", found[2])
    assert "damaged" not in found[2]


@pytest.mark.parametrize("file", ["people.csv", "people.parquet", "people.toml", "m.sfumato"])
def test_a_folder_in_the_place_of_a_file_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    command = files_and_readers(folder)[file]
    (folder / file).unlink()
    (folder / file).mkdir()
    found = run(capsys, *command)
    assert is_one_line(found, "folder")
    assert "damaged" not in found[2]


def test_no_message_quotes_a_long_value_whole(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "secret" * 900
    (folder / "people.csv").write_text("age,pay,town,sick\n" + f"50,5,Ulm,{long}\n" * 30)
    for call in (SYNTH, (*SYNTH, "--misfit", "off"), ("schema", "check", *SYNTH[1:4])):
        _, out, err = run(capsys, *call)
        assert "secret" in out + err
        assert len(out + err) < 1500
    (folder / "people.csv").write_text(f"age,{long},{long}\n1,2,3\n")
    for call in ((*SYNTH, "--force"), ("schema", "init", "people.csv")):
        found = run(capsys, *call)
        assert is_one_line(found, "secret")
        assert len(found[2]) < 800


def commands(found: Any) -> list[Any]:
    inner = getattr(found, "commands", {}).values()
    return [each for one in inner for each in commands(one)] or [found]


def test_options_that_messages_advise_exist() -> None:
    there = {
        option
        for command in commands(typer.main.get_command(app))
        for each in command.params
        for option in (*each.opts, *each.secondary_opts)
    }
    advised = set()
    for file in Path(sf.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                advised |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]+[a-z]", node.value))
    assert "--encoding" in advised
    assert advised - there <= {"--help", "--version"}


def test_every_command_that_reads_a_csv_can_be_told_how_it_is_written() -> None:
    for command in commands(typer.main.get_command(app)):
        names = {each.name for each in command.params}
        if names & {"data", "real"}:
            assert {"delimiter", "encoding"} <= names, command.name


def test_a_schema_is_begun_from_a_csv_in_another_encoding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "far.csv").write_bytes("Größe|Ort,Land\n1,5|Köln\n".encode("utf-16"))
    options = ("--encoding", "utf-16", "--delimiter", "|")
    code, out, _ = run(capsys, "schema", "init", "far.csv", *options)
    assert (code, '[columns."Größe"]' in out) == (0, True)
    assert {'delimiter = "|"', 'encoding = "utf-16"'} <= set(out.splitlines())


def test_too_little_memory_is_one_line() -> None:
    script = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (800 << 20, 800 << 20))\n"
        "sys.argv = ['sfumato', 'synth', 'a.csv', '-s', 'a.toml', '-e', '1', '-o', 'o.csv']\n"
        "from sfumato.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("sfumato: this process may use too little memory (ulimit -v)")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("error", [MemoryError, pa.ArrowMemoryError])
def test_memory_that_ends_meanwhile_is_one_line_and_no_damage(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    def lacking(*_: object, **__: object) -> None:
        raise error("malloc of size 99 failed")

    pa.parquet.write_table(people(400), folder / "people.parquet")
    monkeypatch.setattr(pa.parquet, "ParquetFile", lacking)
    monkeypatch.setattr("pyarrow.csv.read_csv", lacking)
    for file in ("people.csv", "people.parquet"):
        found = run(capsys, "schema", "check", file, "-s", "people.toml")
        assert is_one_line(found, "not enough memory")


@pytest.mark.parametrize("command", ["merf", "evaluate"])
def test_seeds_that_libraries_do_not_take_are_refused(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    calls = {
        "merf": (*SYNTH, "-m", "merf"),
        "evaluate": ("evaluate", "people.csv", "people.csv", "-s", "people.toml", "-q"),
    }
    found = run(capsys, *calls[command], "--seed", "9" * 20)
    assert is_one_line(found, "seed must lie between 0 and")
    assert not own_ledger.exists()


@pytest.mark.parametrize("option", ["--runs", "--canaries"])
def test_an_audit_without_end_is_refused(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert is_one_line(run(capsys, "audit", option, "9" * 20), option.strip("-"), "between")


def test_more_rows_than_can_be_drawn_are_refused_unpaid(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert is_one_line(run(capsys, *SYNTH, "-n", "9" * 20), "rows must lie between 0 and")
    assert is_one_line(run(capsys, *SYNTH, "-o", "/"), "/")
    assert not own_ledger.exists() or Ledger(own_ledger).entries() == []


@pytest.mark.parametrize("groups", [10**9, -1])
def test_a_model_whose_cells_belong_to_no_group_is_damaged(tmp_path: Path, groups: int) -> None:
    model = seeded_fit(sf.Pairs(components=2, restarts=1), people(50), SCHEMA, BUDGET)
    model.columns[0].groups[0] = groups
    model.save(tmp_path / "m.sfumato")
    with pytest.raises(SfumatoError, match="damaged"):
        sf.load(tmp_path / "m.sfumato")
