"""`sfumato plan`: what to expect, before anything is read or paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import folder as folder
from command_line import run

PLAN = ("plan", "people.csv", "-s", "people.toml")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


def test_budgets_are_compared_side_by_side_in_words(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *PLAN, "-e", "0.01,1,3", "--rows", "4000")
    assert (code, err) == (0, "")
    for words in ("epsilon 0.01", "epsilon 3", "of 4,000 rows", "all 6 pairs", "noise only"):
        assert words in out
    assert "each column alone: too few rows for so many pairs" in out
    assert "No target is named" in out
    assert not own_ledger.exists()


def test_without_a_number_of_rows_figures_are_for_ten_thousand(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, *PLAN, "-e", "1", "-t", "sick")
    assert code == 0
    assert "per 10,000 rows" in out
    assert "smallest class whose relations are seen" in out
    assert "No target is named" not in out


def test_no_row_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, whole, _ = run(capsys, *PLAN, "-e", "1", "--rows", "400")
    (folder / "people.csv").write_text("age,pay,town,sick\n")
    assert run(capsys, *PLAN, "-e", "1", "--rows", "400")[1] == whole


def test_settings_that_make_no_sense_are_doubted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, *PLAN, "-e", "0.01,20", "--rows", "400", "--delta", "0.005")
    assert "400 rows are too few for epsilon 0.01" in out
    assert "epsilon 20 is a weak promise" in out
    assert out.count("delta 0.005 is too large for 400 rows") == 1


def test_a_run_tells_its_doubts_and_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ("people.csv", "-s", "people.toml", "-e", "1", "--delta", "0.5", "-o", "o.csv", "-q")
    code, out, err = run(capsys, "synth", *common)
    assert (code, out) == (0, "o.csv\n")
    assert err.startswith("sfumato: WARNING: delta 0.5 promises next to nothing")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-e", "1,x"), "epsilon must be a number, or several with commas"),
        (("-e", ""), "epsilon must be a number"),
        (("-e", "1,-2"), "epsilon must be a positive number"),
        (("-e", "1", "--rows", "0"), "rows must be a positive number"),
    ],
)
def test_bad_input_is_one_clear_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = run(capsys, *PLAN, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
