"""Whatever is wrong with what it is given, the command line says so in one line: many tries.

Each try damages one file or one option of a command that works; which ones follow from a seed.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import typer
from PIL import Image

import sfumato as sf
from sfumato.cli import main
from sfumato.cli.app import app
from sfumato.privacy.ledger import Ledger
from support import SCHEMA, people, seeded_fit

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_spec("torch") is None, reason="no torch")]

FILE_TRIES = 14
"""How often each file of each command is damaged."""

Command = tuple[tuple[str, ...], tuple[str, ...]]

OPTION_TRIES = 4
"""How often each option of each command gets an odd value."""

IMAGES = '[images]\nheight = 4\nwidth = 4\nclasses = ["a", "b"]\n'
CODEBOOK = "column,type,min,max,values,nullable\nage,int,0,99,,no\ntown,string,,,Ulm|Jena,\n"
JSON_BOOK = (
    '{"properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99},'
    ' "town": {"enum": ["Ulm", "Jena"]}}, "required": ["age"]}'
)
PACKAGE = (
    '{"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0}},'
    ' {"name": "sick", "type": "boolean"}], "missingValues": [""]}'
)
QUICK = ("--set", "components=2", "--set", "restarts=1")
FIT = ("-e", "2", "--ledger", "l.sqlite", "--pay-again", "--force", "-q")
TABLE = ("-s", "people.toml", *FIT, *QUICK, "-o", "out.csv")
SETS = ("-s", "images.toml", *FIT, "-o", "out.npz")
# Commands that end well, and the files that each of them reads.
COMMANDS: tuple[Command, ...] = (
    (("synth", "people.csv", *TABLE), ("people.csv", "people.toml", "l.sqlite")),
    (("synth", "zipped.csv.gz", *TABLE), ("zipped.csv.gz",)),
    (("synth", "people.parquet", *TABLE), ("people.parquet",)),
    (("synth", "parts", *TABLE), ("parts/a.parquet", "parts")),
    (("synth", "sqlite://people.db?table=people", *TABLE), ("people.db",)),
    (("fit", "set.npz", *SETS[:-1], "i2.sfumato"), ("set.npz", "images.toml")),
    (("synth", "zipped.npz", *SETS), ("zipped.npz",)),
    (
        ("synth", "x-images-idx3-ubyte", *SETS, "--misfit", "off"),
        ("x-images-idx3-ubyte", "x-labels-idx1-ubyte"),
    ),
    (("synth", "pictures", *SETS), ("pictures/a/0.png", "pictures/b/1.png", "pictures")),
    (
        ("fit", "people.csv", "-s", "people.toml", "-e", "2", "-o", "kept.sfumato", "--force",
         "--ledger", "kept.sqlite", *QUICK, "-q"),
        ("kept.sfumato.releases", "kept.sqlite", "kept.sqlite.id"),
    ),
    (("sample", "m.sfumato", "-o", "x.csv", "-n", "5", "--force", "-q", "--given", "age=3.."),
     ("m.sfumato",)),
    (("sample", "i.sfumato", "-o", "x.npz", "-n", "5", "--force", "-q"), ("i.sfumato",)),
    (("show", "m.sfumato", "--report", "r.html", "--force"), ("m.sfumato",)),
    (("plan", "people.csv", "-s", "people.toml", "-e", "1,2"), ("people.csv", "people.toml")),
    (("plan", "set.npz", "-s", "images.toml", "-e", "1"), ("set.npz", "images.toml")),
    (
        ("evaluate", "people.csv", "made.csv", "-s", "people.toml", "-t", "sick", "-q", "--json",
         "e.json", "--force"),
        ("made.csv",),
    ),
    (
        ("classify", "train", "people.csv", "-s", "people.toml", "-t", "sick", *FIT, "--set",
         "maps=1", "--set", "epochs=1", "--set", "rate=0.5", "-o", "c2.sfumato"),
        ("people.csv",),
    ),
    (("classify", "predict", "c.sfumato", "people.csv", "-o", "p.csv", "--force", "-q"),
     ("c.sfumato", "people.csv")),
    (("classify", "explain", "c.sfumato", "people.csv", "-o", "p.json", "--force"),
     ("c.sfumato", "people.csv")),
    (
        ("public", "train", "set.npz", "-s", "images.toml", "-o", "pair.safetensors", "--source",
         "here", "--licence", "none", "--network", "untrained:1", "--dim", "2", "--force", "-q"),
        ("set.npz",),
    ),
    (("schema", "init", "people.csv", "--codebook", "book.csv"), ("people.csv", "book.csv")),
    (("schema", "init", "zipped.csv.gz", "--codebook", "book.json"),
     ("zipped.csv.gz", "book.json")),
    (("schema", "init", "people.parquet", "--codebook", "package.json"),
     ("people.parquet", "package.json")),
    (("schema", "edit", "people.csv", "-o", "edited.toml"), ("people.csv", "edited.toml")),
    (("schema", "check", "people.csv", "-s", "people.toml"), ("people.csv", "people.toml")),
    (("schema", "check", "pictures", "-s", "images.toml"), ("pictures/a/0.png",)),
    (("ledger", "show", "--ledger", "l.sqlite"), ("l.sqlite", "l.sqlite.id")),
    (("ledger", "limit", "people", "-e", "9", "--ledger", "l.sqlite"), ("l.sqlite",)),
    (("ledger", "cancel", "people", "--ledger", "l.sqlite"), ("l.sqlite",)),
    (("audit", "--runs", "20", "-q"), ()),
    (("audit", "m.sfumato", "--runs", "20", "-q"), ("m.sfumato",)),
)  # fmt: skip
ODD_TEXTS = (
    "", " ", "-1", "0", "nan", "inf", "1e999", "99999999999999999999", "0.5", "ä\n\t", "\x1b[31m",
    "\udcff", "x" * 5000, "..", "/", "/dev/null", "people.csv", "=", "a=b", "a=\udcff", "seed=-1",
    "age=..", "age=nan..inf", "age=1e400", "town=", "target=" + "x" * 5000, "[]", "none/none",
    "sqlite://none?table=x", "duckdb://?", "postgresql://", "utf-16",
)  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    arguments: tuple[str, ...]
    code: int | None
    err: str
    bug: str

    @property
    def is_well(self) -> bool:
        """Tell whether it ended well, or in one line."""
        if self.bug or self.code not in (0, 2):
            return False
        lines = [line for line in self.err.splitlines() if line.strip()]
        own = [line for line in lines if line.startswith("sfumato: ")]
        usage = lines[:1] and lines[0].startswith("Usage: ")
        return self.code == 0 or bool(usage) or (bool(own) and own[-1] == lines[-1])


def ended(arguments: tuple[str, ...]) -> Ended:
    out, err, bug, code = io.TextIOWrapper(io.BytesIO()), io.StringIO(), "", 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sfumato", *arguments])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n" * 40)))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 1
            except BaseException as error:
                import traceback

                bug = "".join(traceback.format_exception(error)[-3:])
    return Ended(arguments, code, err.getvalue(), bug)


def made(folder: Path) -> None:
    """Write one file of each kind that a command reads."""
    rows, rng = people(60), np.random.default_rng(0)
    pa.csv.write_csv(rows, folder / "people.csv")
    pa.csv.write_csv(people(60, seed=1), folder / "made.csv")
    (folder / "zipped.csv.gz").write_bytes(gzip.compress((folder / "people.csv").read_bytes()))
    pa.parquet.write_table(rows, folder / "people.parquet")
    (folder / "parts").mkdir()
    pa.parquet.write_table(rows, folder / "parts" / "a.parquet")
    pa.parquet.write_table(rows, folder / "parts" / "b.parquet")
    (folder / "people.toml").write_text(SCHEMA.to_toml())
    (folder / "edited.toml").write_text(SCHEMA.to_toml())
    (folder / "images.toml").write_text(IMAGES)
    (folder / "book.csv").write_text(CODEBOOK)
    (folder / "book.json").write_text(JSON_BOOK)
    (folder / "package.json").write_text(PACKAGE)
    import sqlite3

    with contextlib.closing(sqlite3.connect(folder / "people.db")) as base, base:
        base.execute("CREATE TABLE people (age INTEGER, pay REAL, town TEXT, sick INTEGER)")
        base.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", zip(
            *(rows[name].to_pylist() for name in ("age", "pay", "town", "sick")), strict=True
        ))  # fmt: skip
    x, y = rng.integers(0, 256, (30, 4, 4)).astype(np.uint8), np.array(["a", "b"] * 15)
    np.savez(folder / "set.npz", x=x, y=y)
    np.savez_compressed(folder / "zipped.npz", x=x, y=y)
    head = b"\0\0\x08"
    (folder / "x-images-idx3-ubyte").write_bytes(
        head + b"\3" + np.array([30, 4, 4], ">i4").tobytes() + x.tobytes()
    )
    (folder / "x-labels-idx1-ubyte").write_bytes(
        head + b"\1" + np.array([30], ">i4").tobytes() + bytes([0, 1] * 15)
    )
    for number in range(6):
        place = folder / "pictures" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(x[number]).save(place / f"{number}.png")
    budget = sf.Budget(epsilon=2)
    seeded_fit(sf.Pairs(components=2, restarts=1), rows, SCHEMA, budget).save(folder / "m.sfumato")
    images = sf.Schema.from_toml(IMAGES)
    seeded_fit(sf.Moments(), (x, y), images, budget).save(folder / "i.sfumato")
    train = next(call for call, _ in COMMANDS if call[:2] == ("classify", "train"))
    ledger = Ledger(folder / "l.sqlite")
    ledger.limit("other", budget)
    ledger.reserve("people", budget, 0.01)
    kept = next(call for call, _ in COMMANDS if "kept.sfumato" in call)
    for call in ((*train[:-1], "c.sfumato"), kept):
        assert ended(call).code == 0


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder beside the one in which its files were made: their place is part of a run."""
    folder = tmp_path_factory.mktemp("tries")
    (folder / "here").mkdir()
    before = Path.cwd()
    os.chdir(folder / "here")
    made(folder / "here")
    os.chdir(before)
    shutil.copytree(folder / "here", folder / "pristine")
    return folder / "pristine"


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Damage the content of a file in one of many ways."""
    size = len(content)
    ways: list[Callable[[], bytes]] = [
        lambda: content[: rng.integers(0, size + 1)],
        lambda: content[rng.integers(0, size + 1) :],
        lambda: b"",
        lambda: rng.bytes(int(rng.integers(1, 300))),
        lambda: _flipped(content, rng, 1),
        lambda: _flipped(content, rng, 1),
        lambda: _flipped(content[:400], rng, 1) + content[400:],
        lambda: content[:-400] + _flipped(content[-400:], rng, 1),
        lambda: _flipped(content, rng, 40),
        lambda: _put(content, rng, b"\0" * 9),
        lambda: _put(content, rng, b"\xff\xfe\xed\xa0\x80"),
        lambda: _put(content, rng, b'"'),
        lambda: _put(content, rng, b"\n[[[[" + b"[" * 3000),
        lambda: _put(content, rng, b"1" * 5000),
        lambda: _put(content, rng, b"x" * 5000),
        lambda: content + content,
        lambda: content[::-1],
    ]
    odd = (b"nan", b"-1", b"1e999", b"[]", b"{}", b'""', b"9" * 30, b"null", b"true", b"\x1b[0m")
    for _ in range(6):
        ways.append(lambda: _swapped(content, rng, odd[rng.integers(len(odd))]))
    return ways[rng.integers(len(ways))]()


def _flipped(content: bytes, rng: np.random.Generator, times: int) -> bytes:
    found = bytearray(content)
    for place in rng.integers(0, max(1, len(found)), times if found else 0):
        found[place] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _put(content: bytes, rng: np.random.Generator, more: bytes) -> bytes:
    place = rng.integers(0, len(content) + 1)
    return content[:place] + more + content[place:]


def _swapped(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    """Put something else in the place of a word or a number."""
    import re

    words = list(re.finditer(rb"[\w.]+|\"[^\"]*\"", content[:20000]))
    if not words:
        return other
    word = words[rng.integers(len(words))]
    return content[: word.start()] + other + content[word.end() :]


@contextlib.contextmanager
def copy_of(pristine: Path) -> Iterator[Path]:
    """Give all files anew, with which a command may do as it likes."""
    folder = pristine.with_name("here")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pristine, folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def name_of(command: Command) -> str:
    return " ".join(command[0][:3]).replace("/", "")


@pytest.mark.parametrize("command", COMMANDS, ids=name_of)
def test_damaged_files_end_in_one_line(pristine: Path, command: Command) -> None:
    arguments, files = command
    rng = np.random.default_rng(zlib.crc32(name_of(command).encode()))
    with copy_of(pristine):
        assert ended(arguments).code == 0, ended(arguments)
    wrong = []
    for file in files:
        for number in range(FILE_TRIES):
            with copy_of(pristine) as folder:
                path = folder / file
                if number == 0:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                elif number == 1:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    path.write_bytes(b"") if "." not in file else path.mkdir()
                else:
                    if path.is_dir():
                        inside = sorted(each for each in path.rglob("*") if each.is_file())
                        path = inside[rng.integers(len(inside))]
                    path.write_bytes(damaged(path.read_bytes(), rng))
                found = ended(arguments)
                if not found.is_well:
                    wrong.append((file, number, found))
    assert not wrong, f"{len(wrong)} times, first: {wrong[0]}"


def options_of(arguments: tuple[str, ...]) -> list[str]:
    """List the options of a command that take a value."""
    found = typer.main.get_command(app)
    for word in arguments:
        if not hasattr(found, "commands"):
            break
        found = found.commands[word]
    return [
        each.opts[0]
        for each in found.params
        if each.param_type_name == "option" and not getattr(each, "is_flag", False)
    ]


def unlike(commands: tuple[Command, ...]) -> Iterator[tuple[str, ...]]:
    """Give one call of each command, and of those that fit one for images, too."""
    seen = set()
    for arguments, _ in commands:
        within = arguments[1] if arguments[0] in ("classify", "schema", "ledger") else ""
        key = (arguments[0], within, "images.toml" in arguments)
        if key not in seen:
            seen.add(key)
            yield arguments


@pytest.mark.parametrize("arguments", list(unlike(COMMANDS)), ids=" ".join)
def test_odd_options_end_in_one_line(pristine: Path, arguments: tuple[str, ...]) -> None:
    rng = np.random.default_rng(zlib.crc32(" ".join(arguments).encode()))
    wrong = []
    with copy_of(pristine):
        for option in options_of(arguments):
            for text in rng.choice(np.array(ODD_TEXTS, object), OPTION_TRIES, replace=False):
                found = ended((*arguments, option, str(text)))
                if not found.is_well:
                    wrong.append(found)
        for place, argument in enumerate(arguments):
            if place and not argument.startswith("-"):
                for text in rng.choice(np.array(ODD_TEXTS, object), 2, replace=False):
                    found = ended((*arguments[:place], str(text), *arguments[place + 1 :]))
                    if not found.is_well:
                        wrong.append(found)
    assert not wrong, f"{len(wrong)} times, first: {wrong[0]}"
