"""`schema init` and `schema edit`: what is answered is kept, and no private value is shown."""

from __future__ import annotations

import io
import tomllib
from pathlib import Path

import pytest

from command_line import folder as folder
from command_line import run
from sfumato.schema import (
    Boolean,
    Categorical,
    Datetime,
    Identifier,
    Numeric,
    OpenCategory,
    OpenNumber,
    Schema,
)

EDIT = ("schema", "edit", "people.csv", "-o", "new.toml")
AGE = ["", "0", "120", "no"]
PAY = ["", "0", "1000.5", ""]
TOWN = ["", 'Ulm, "Halle, Saale"', "yes", ""]
SICK = ["", "no"]


def answer(
    capsys: pytest.CaptureFixture[str], lines: list[str], *arguments: str
) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return run(capsys, *arguments)


def test_answers_become_a_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = answer(capsys, AGE + PAY + TOWN + SICK, *EDIT)
    assert (code, out.strip()) == (0, "new.toml")
    assert Schema.load("new.toml").columns == {
        "age": Numeric(low=0, high=120, integer=True),
        "pay": Numeric(low=0, high=1000.5, nullable=True),
        "town": Categorical(values=("Ulm", "Halle, Saale"), other=True, nullable=True),
        "sick": Boolean(),
    }
    assert "Column 1 of 4: age (looks integer)" in err
    assert "never from the rows" in err
    assert "Kiel" not in err


def test_what_nobody_knows_may_be_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    age, town = ["", "0", "private", "no"], ["", "private", "no", ""]
    code, _, err = answer(capsys, age + PAY + town + SICK, *EDIT)
    assert code == 0
    assert "for a part of the budget" in err
    assert Schema.load("new.toml").open == {
        "age": OpenNumber(low=0, high="private", integer=True),
        "town": OpenCategory(values="private", nullable=True),
    }


def test_a_wrong_answer_is_explained_and_asked_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    age = ["number", "integer", "few", "120", "0", "no", "0", "120", "perhaps", "no"]
    code, _, err = answer(capsys, age + PAY + TOWN + SICK, *EDIT)
    assert code == 0
    for sentence in (
        "'number' is no kind: write one of numeric, integer",
        "'few' is not a number",
        "column 'age': low (120) must be below high (0)",
        "'perhaps' is neither yes nor no",
    ):
        assert sentence in err
    assert Schema.load("new.toml").columns["age"] == Numeric(low=0, high=120, integer=True)


def test_what_was_answered_before_the_end_of_input_is_kept_and_gone_on_with(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = answer(capsys, [*AGE, "skip", "", "Ulm"], *EDIT)
    assert code == 2
    assert "run the same command again" in err
    text = (folder / "new.toml").read_text()
    assert list(Schema.from_toml(text).columns) == ["age"]
    assert "# [columns.pay] is left out\n" in text
    assert '# [columns.town]\n# kind = "categorical"\n# values = ' in text

    code, _, err = answer(capsys, ["", *TOWN, *SICK], *EDIT)
    assert code == 0
    assert "2 of 4 columns are settled" in err
    assert list(Schema.load("new.toml").columns) == ["age", "town", "sick"]


def test_enter_keeps_every_earlier_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, [*AGE, "skip", *TOWN, *SICK], *EDIT)[0] == 0
    before = (folder / "new.toml").read_text()
    lines = ["yes", *[""] * 4, "", *[""] * 4, *[""] * 2]
    assert answer(capsys, lines, *EDIT)[0] == 0
    assert (folder / "new.toml").read_text() == before


def test_an_interruption_before_the_first_answer_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(io.StringIO):
        def readline(self, *_: object) -> str:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", Interrupted())
        code, _, err = run(capsys, *EDIT)
    assert code == 2
    assert "stopped before anything was answered" in err
    assert not (folder / "new.toml").exists()


def test_a_schema_by_hand_keeps_what_is_not_asked_about(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "new.toml").write_text(
        '[csv]\nencoding = "latin-1"\n'
        '[columns.age]\nkind = "integer"\nlow = 0\nhigh = 9\nbins = 3\n'
    )
    lines = ["", "", "99", "", "skip", "skip", "skip"]
    assert answer(capsys, lines, "schema", "edit", "people.csv", "-s", "new.toml")[0] == 0
    schema = Schema.load("new.toml")
    assert schema.csv.encoding == "latin-1"
    assert schema.columns == {"age": Numeric(low=0, high=99, integer=True, bins=3, nullable=True)}


def test_texts_may_be_numbers_dates_or_people(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "t.csv").write_text("who;pay;born;doctor\nAnn;1.234,5;31/12/1990;Bob\n")
    lines = ["identifier", "yes", "numeric", ",", ".", "0", "1e6", "no"]
    lines += ["datetime", "%d/%m/%Y", "1900-01-01", "2030-12-31", "", "no"]
    lines += ["identifier", "yes", "no"]
    code, _, err = answer(capsys, lines, "schema", "edit", "t.csv", "-o", "t.toml")
    assert code == 0
    assert "column 'who' is the unit of privacy, and only one can be" in err
    schema = Schema.load("t.toml")
    assert schema.csv.delimiter == ";"
    who, pay, born, doctor = schema.columns.values()
    assert (who, doctor) == (Identifier(unit=True), Identifier())
    assert pay == Numeric(low=0, high=1e6, decimal=",", thousands=".")
    assert isinstance(born, Datetime)
    assert born.format == "%d/%m/%Y"
    assert not any(value in err for value in ("Ann", "Bob", "1990"))


def test_a_code_book_answers_what_it_can(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "book.csv").write_text(
        "column,kind,min,max,values,nullable\nage,integer,0,120,,no\ntown,,,,Ulm|Jena,\n"
    )
    lines = ["", *PAY, "", "", "", "", *SICK]
    code, _, err = answer(capsys, lines, *EDIT, "--codebook", "book.csv")
    assert code == 0
    assert "1 of 4 columns are settled" in err
    schema = Schema.load("new.toml")
    assert schema.columns["age"] == Numeric(low=0, high=120, integer=True)
    assert schema.columns["town"] == Categorical(values=("Ulm", "Jena"), nullable=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("edit", "people.csv", "-o", "people.csv"), "a schema is written to .toml"),
        (("edit", "people.csv", "-o", "other.toml"), "no column 'height'; remove it"),
        (("init", "people.csv", "-o", "people.csv", "--force"), "a schema is written to .toml"),
        (("init", "people.csv", "-o", "people.toml"), "exists: name another"),
        (("init", "people.csv", "--codebook", "none.csv"), "cannot read the code book"),
        (("init", "none.csv"), "there is no file"),
    ],
)
def test_bad_input_is_one_clear_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    (folder / "other.toml").write_text('[columns.height]\nkind = "numeric"\n')
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = run(capsys, "schema", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_init_writes_a_file_once_and_again_only_by_force(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init = ("schema", "init", "people.csv")
    _, printed, _ = run(capsys, *init)
    assert run(capsys, *init, "-o", "people.toml", "--force")[0] == 0
    assert (folder / "people.toml").read_text() == printed


def test_init_leaves_nulls_marks_and_people_to_decide_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "schema", "init", "people.csv")
    assert out.count("# nullable = true") == len(tomllib.loads(out)["columns"])
    for mention in ("format = ", "decimal = ", "thousands = ", "unit = true", "# encoding = "):
        assert mention in out


def test_a_draft_by_init_is_filled_in_by_edit(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "schema", "init", "people.csv", "-o", "new.toml")[0] == 0
    assert answer(capsys, AGE + PAY + TOWN + SICK, *EDIT)[0] == 0
    assert len(Schema.load("new.toml").columns) == 4
