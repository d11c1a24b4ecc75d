"""The command line as a user meets it: exit code 2 and one clear line for every bad input."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from command_line import folder as folder
from command_line import run
from sfumato.errors import SfumatoError
from sfumato.privacy.ledger import Ledger
from support import SCHEMA, people, seeded_fit

SYNTH = ("synth", "people.csv", "-s", "people.toml", "-e", "2", "-o", "out.csv", "-q")


def test_schema_init_writes_names_and_kinds_and_no_value(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "schema", "init", "people.csv")
    assert code == 0
    kinds = {name: c["kind"] for name, c in tomllib.loads(out)["columns"].items()}
    assert kinds == {
        "age": "integer", "pay": "numeric", "town": "categorical", "sick": "boolean",
    }  # fmt: skip
    assert not any(value in out for value in ("Ulm", "Jena", "Kiel"))


def test_a_schema_with_open_bounds_says_what_to_fill_in(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, draft, _ = run(capsys, "schema", "init", "people.csv")
    (folder / "draft.toml").write_text(draft)
    code, _, err = run(capsys, "plan", "people.csv", "-s", "draft.toml", "-e", "1")
    assert code == 2
    assert "column 'age': low is missing: fill it in" in err


def test_schema_check_tells_the_owner_what_lies_outside(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "odd.csv").write_text("age,pay,town,sick,extra\n120,,Bonn,maybe,1\n,5,Ulm,true,2\n")
    code, out, _ = run(capsys, "schema", "check", "odd.csv", "-s", "people.toml")
    assert code == 2
    assert out.startswith("PRIVATE")
    for finding in (
        "column 'age': 1 of 2 values (50.0%) are above 99 and would become the nearest bound",
        "column 'age': 1 of 2 values (50.0%) are missing and would become the middle of the bounds",
        "nullable = true",
        "neither true nor false ('maybe')",
        "column 'extra': not in the schema",
    ):
        assert finding in out


def test_plan_reads_no_row_and_spends_nothing(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "plan", "people.csv", "-s", "people.toml", "-e", "1", "-t", "sick")
    assert code == 0
    assert "epsilon 1 at delta 1e-06" in out
    assert not own_ledger.exists()


def test_synth_writes_rows_model_and_ledger(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, *SYNTH, "--target", "sick", "--model", "m.sfumato", "-n", "50")
    assert (code, out) == (0, "out.csv\n")
    synthetic = pa.csv.read_csv(folder / "out.csv")
    assert (synthetic.num_rows, synthetic.column_names) == (50, list(SCHEMA.columns))
    spent = len(Ledger(own_ledger).entries("people"))
    assert spent > 0

    code, out, _ = run(
        capsys,
        "sample",
        "m.sfumato",
        "-o",
        "more.parquet",
        "-n",
        "30",
        "--given",
        "sick=true",
        "-q",
    )
    assert code == 0
    assert set(pa.parquet.read_table(folder / "more.parquet")["sick"].to_pylist()) == {True}
    code, _, err = run(capsys, "sample", "m.sfumato", "-o", "more.csv", "--seed", "-1")
    assert (code, err) == (2, "sfumato: seed must not be negative, got -1\n")
    code, out, _ = run(capsys, "show", "m.sfumato")
    assert "epsilon = 2" in out
    assert len(Ledger(own_ledger).entries("people")) == spent  # sampling is free


def test_sample_takes_ranges_and_several_values(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *SYNTH, "--model", "m.sfumato")[0] == 0
    sample = ("sample", "m.sfumato", "-o", "x.csv", "-n", "200", "-q")
    given = ("--given", "age=60..70", "--given", "town=Ulm,Jena", "--given", "pay=..500")
    assert run(capsys, *sample, *given)[0] == 0
    rows = pa.csv.read_csv(folder / "x.csv")
    assert set(rows["town"].to_pylist()) == {"Ulm", "Jena"}
    assert min(rows["age"].to_pylist()) >= 60
    assert max(rows["age"].to_pylist()) <= 70
    assert max(rows["pay"].to_pylist()) <= 500


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["age=70..60"], "column 'age', from 0 to 99, has no value in the range 70..60"),
        (["age=100.."], "column 'age', from 0 to 99, has no value in the range 100.."),
        (["town=Jena..Ulm"], "column 'town' is a category"),
        (["town=Jena,Rome"], "'Rome' is not a value of column 'town'"),
        (["age=1", "age=2"], "column 'age' is given twice"),
        (["height=1..2"], "no modelled column 'height'"),
    ],
)
def test_contradictory_conditions_are_one_line_and_exit_code_2(
    given: list[str],
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = seeded_fit(sf.Pairs(components=2, restarts=1), people(50), SCHEMA, sf.Budget(epsilon=1))
    model.save(folder / "m.sfumato")
    options = [part for text in given for part in ("--given", text)]
    code, out, err = run(capsys, "sample", "m.sfumato", "-o", "x.csv", "-q", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (folder / "x.csv").exists()


def test_a_second_run_goes_on_from_the_saved_releases(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *SYNTH)[0] == 0
    spent = len(Ledger(own_ledger).entries())
    assert run(capsys, *SYNTH, "--force")[0] == 0
    assert len(Ledger(own_ledger).entries()) == spent


def test_a_ledger_limit_is_set_shown_and_kept(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "ledger", "limit", "people", "--epsilon", "1")[0] == 0
    code, _, err = run(capsys, *SYNTH)
    assert code == 2
    assert "limit of epsilon 1" in err
    assert not (folder / "out.csv").exists()
    assert run(capsys, "ledger", "show")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("synth", "none.csv", "-s", "people.toml", "-e", "1", "-o", "o.csv"), "there is no file"),
        (("synth", "people.csv", "-s", "none.toml", "-e", "1", "-o", "o.csv"), "cannot read the"),
        (("synth", "people.csv", "-s", "people.toml", "-e", "0", "-o", "o.csv"), "epsilon must be"),
        (("synth", "people.csv", "-s", "people.toml", "-e", "nan", "-o", "o.csv"), "epsilon must"),
        (("synth", "people.csv", "-s", "people.toml", "-e", "1e6", "-o", "o.csv"), "promises"),
        (("synth", "people.csv", "-s", "people.toml", "-e", "1", "-o", "o.txt"), "o.txt: a table"),
        (
            ("synth", "people.csv", "-s", "people.toml", "-e", "1", "-o", "people.csv"),
            "would overwrite an input",
        ),
        ((*SYNTH, "--delta", "2"), "delta must lie between 0 and 1"),
        ((*SYNTH, "--target", "salary"), "no modelled column 'salary'"),
        ((*SYNTH, "--method", "magic"), "there is no method 'magic'"),
        ((*SYNTH, "--set", "speed=9"), "no setting 'speed'"),
        ((*SYNTH, "--set", "seed=x"), "seed must be a int"),
        ((*SYNTH, "--set", "seed"), "takes key=value"),
        ((*SYNTH, "--set", "components=-5"), "components must lie between 1 and 1,000, got -5"),
        ((*SYNTH, "--set", "components=10000000"), "components must lie between 1 and 1,000"),
        ((*SYNTH, "--seed", "-1"), "seed must not be negative"),
        ((*SYNTH, "--rows", "-4"), "must not be negative"),
        ((*SYNTH, "--rows-per-unit", "0"), "max_rows_per_unit"),
        (("sample", "people.csv", "-o", "o.csv"), "not a model file"),
        (("sample", "none.sfumato", "-o", "o.csv"), "there is no file"),
        (("show", "none.sfumato"), "there is no file"),
        (("synth", "people.csv"), "Missing option"),
        (("dance",), "No such command"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.parametrize(
    "content",
    [
        "age,pay,town,sick\n50,10,Ulm,true\n",
        "age,pay,town,sick\n" + "50,nan,,?\n" * 30,
        "age,pay,town,sick\n" + "50,10,Ulm,true\n" * 30,
    ],
    ids=["one row", "nothing but nulls", "one class only"],
)
def test_poor_tables_are_synthesized_all_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (folder / "people.csv").write_text(content)
    code, _, err = run(capsys, *SYNTH, "--target", "sick", "-n", "20", "--misfit", "off")
    assert code == 0
    assert all(line.startswith("sfumato: PRIVATE: ") for line in err.splitlines())
    assert pa.csv.read_csv(folder / "out.csv").num_rows == 20


def test_a_table_without_rows_is_refused_before_anything_is_spent(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "people.csv").write_text("age,pay,town,sick\n")
    code, _, err = run(capsys, *SYNTH)
    assert (code, err) == (2, "sfumato: people.csv has no rows\n")
    assert Ledger(own_ledger).entries() == []


def test_categories_that_match_nothing_are_told_to_the_owner(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{20 + i % 50},10,ULM,wahr\n" for i in range(60))
    (folder / "people.csv").write_text("age,pay,town,sick\n" + rows)
    code, _, err = run(capsys, *SYNTH)
    assert code == 2
    assert "nothing was paid" in err
    assert "column 'sick': 60 of 60 values (100.0%) are neither true nor false ('wahr')" in err
    assert "column 'town': 60 of 60 values (100.0%) are not listed ('ULM')" in err
    assert "age" not in err
    assert not (folder / "out.csv.releases").exists()


def test_another_budget_for_the_same_output_is_asked_about_first(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *SYNTH)[0] == 0
    spent = len(Ledger(own_ledger).entries())
    code, _, err = run(capsys, *SYNTH, "--delta", "1e-5", "--force")
    assert code == 2
    assert "--pay-again" in err
    assert len(Ledger(own_ledger).entries()) == spent
    assert run(capsys, *SYNTH, "--delta", "1e-5", "--pay-again", "--force")[0] == 0
    assert len(Ledger(own_ledger).entries()) > spent


def test_a_second_output_of_the_same_data_is_asked_about_and_leaves_the_first_alone(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *SYNTH)[0] == 0
    other = [*SYNTH[:-2], "b.csv", "-q"]
    code, _, err = run(capsys, *other)
    assert code == 2
    assert "--releases" in err
    assert run(capsys, *other, "--releases", "out.csv.releases")[0] == 0
    spent = len(Ledger(own_ledger).entries())
    assert run(capsys, *other, "--pay-again", "--force")[0] == 0
    assert len(Ledger(own_ledger).entries()) == 2 * spent
    assert run(capsys, *SYNTH, "--seed", "2", "--force")[0] == 0
    assert len(Ledger(own_ledger).entries()) == 2 * spent


def test_a_huge_epsilon_still_has_a_certificate(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    huge = ["300" if each == "2" else each for each in SYNTH if each != "-q"]
    code, _, err = run(capsys, *huge, "--report", "r.html")
    assert code == 0
    assert "factor" in err


def test_limits_are_shown_with_their_history(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for epsilon in ("1", "7"):
        assert run(capsys, "ledger", "limit", "people", "--epsilon", epsilon)[0] == 0
    _, out, _ = run(capsys, "ledger", "show")
    assert "Limits, as they were set" in out


def test_a_class_that_is_a_path_writes_nothing_outside_the_folder(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sfumato.data.writing import write_folder

    np.savez(folder / "x.npz", x=np.zeros((20, 2, 2), np.uint8), y=np.array(["../up"] * 20))
    for label in ("../../x", "/abs", "..", "a\\\\b"):
        toml = f'[images]\nheight = 2\nwidth = 2\nclasses = ["{label}", "b"]\n'
        (folder / "x.toml").write_text(toml)
        command = ("synth", "x.npz", "-s", "x.toml", "-e", "1", "-q", "-o", "deep/out")
        code, _, err = run(capsys, *command)
        assert code == 2
        assert "cannot name a folder" in err
    assert Ledger(own_ledger).entries() == []
    with pytest.raises(SfumatoError, match="cannot name a folder"):
        write_folder(folder / "out", np.zeros((1, 2, 2, 1), np.uint8), ["../x"])
    assert not (folder / "x").exists()


def test_an_interrupted_run_says_how_to_go_on(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sfumato.synthesis.write_synthetic", interrupt)
    code, _, err = run(capsys, *SYNTH)
    assert code == 2
    assert "run the same command again" in err


def test_evaluate_measures_and_writes_a_report_that_says_it_is_internal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pa.csv.write_csv(people(300, seed=1), folder / "made.csv")
    arguments = ("people.csv", "made.csv", "-s", "people.toml", "-t", "sick", "-q")
    code, out, err = run(
        capsys, "evaluate", *arguments, "--json", "found.json", "--report", str(folder)
    )
    assert (code, err) == (0, "")
    assert "PRIVATE" in out
    assert json.loads((folder / "found.json").read_text())["kind"] == "table"
    assert "DO NOT PUBLISH" in (folder / "made-INTERNAL-report.html").read_text().upper()
    code, _, err = run(capsys, "evaluate", "people.csv", "none.csv", "-s", "people.toml")
    assert (code, "there is no file" in err) == (2, True)


def test_image_sets_go_the_same_way(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    np.savez(folder / "digits.npz", x=(bunch.images * 15).astype(np.uint8), y=bunch.target)
    (folder / "digits.toml").write_text(
        "[images]\nheight = 8\nwidth = 8\nclasses = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
    )
    common = ("digits.npz", "-s", "digits.toml", "-e", "10")
    code, out, _ = run(capsys, "plan", *common)
    assert code == 0
    assert "cells" in out
    code, _, err = run(
        capsys, "synth", *common, "-o", "out.npz", "--model", "m.sfumato", "-n", "40", "-q"
    )
    assert (code, err) == (0, "")
    with np.load(folder / "out.npz") as made:
        assert made["x"].shape == (40, 8, 8)
        assert made["y"].shape == (40,)
    given = ("--given", "class=7", "-n", "3", "-q")
    assert run(capsys, "sample", "m.sfumato", "-o", "sevens", *given)[0] == 0
    assert len(list((folder / "sevens" / "7").glob("*.png"))) == 3
    given = ("--given", "class=3,5", "-n", "60", "-q")
    assert run(capsys, "sample", "m.sfumato", "-o", "two", *given)[0] == 0
    assert {path.name for path in (folder / "two").iterdir() if path.is_dir()} == {"3", "5"}
    assert run(capsys, "synth", *common, "-o", "out.csv", "-q")[0] == 2


def test_help_answers_without_loading_what_is_slow() -> None:
    script = (
        "import sys; sys.argv = ['sfumato', '--help']\n"
        "from sfumato.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "slow = {'torch', 'opendp', 'sklearn', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "synth" in done.stdout
