"""The command line as tests run it."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.cli import main
from support import SCHEMA, people


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sfumato", *arguments])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def is_one_line(found: tuple[int, str, str], *messages: str) -> bool:
    """Tell whether a command ended in one line that holds these messages."""
    code, _, err = found
    assert (code, err.count("\n"), err.startswith("sfumato: ")) == (2, 1, True), err
    return all(message in err for message in messages)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(people(400), tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    return tmp_path
