"""`sfumato classify` as a user meets it: train, predict, explain, and one clear line otherwise."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from command_line import folder as folder
from command_line import run
from sfumato.privacy.ledger import Ledger
from support import people

TRAIN = ("classify", "train", "people.csv", "-s", "people.toml", "-e", "4", "-o", "m.sfumato", "-q")
TARGET = ("-t", "sick")


def test_a_table_is_learned_predicted_and_explained(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, *TRAIN, *TARGET, "--report", "r.html")
    assert (code, out) == (0, "m.sfumato\n")
    assert len(Ledger(own_ledger).entries("people")) == 1
    page = (folder / "r.html").read_text()
    for fact in ("CERTIFICATE", "Noise multiplier", "Poisson sampling", "public grid", "town"):
        assert fact in page

    pa.csv.write_csv(people(30, seed=1).drop_columns(["sick"]), folder / "new.csv")
    assert run(capsys, "classify", "predict", "m.sfumato", "new.csv", "-o", "out.csv")[0] == 0
    with open(folder / "out.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert list(rows[0]) == ["prediction", "probability_false", "probability_true"]
    for row in rows:
        chances = [float(row["probability_false"]), float(row["probability_true"])]
        assert sum(chances) == pytest.approx(1)
        assert row["prediction"] == ("false", "true")[int(np.argmax(chances))]

    for ending in ("png", "svg", "json"):
        explain = ("classify", "explain", "m.sfumato", "new.csv", "--row", "3", "-o", f"e.{ending}")
        assert run(capsys, *explain)[0] == 0
    told = json.loads((folder / "e.json").read_text())
    assert len(told["names"]) == len(told["contributions"])
    assert told["probabilities"]["true"] == pytest.approx(float(rows[3]["probability_true"]))

    code, out, _ = run(capsys, "classify", "show", "m.sfumato")
    assert code == 0
    for fact in ("noise multiplier", "probability 0.1", "400 noisy steps", "on a grid of"):
        assert fact in out
    code, out, _ = run(capsys, "ledger", "show")
    assert code == 0
    assert "400" in out
    assert "inf" not in out


def test_training_again_costs_nothing_and_gives_the_same_model(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one.csv", "two.csv"):
        assert run(capsys, *TRAIN, *TARGET, "--force")[0] == 0
        assert run(capsys, "classify", "predict", "m.sfumato", "people.csv", "-o", name)[0] == 0
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()
    assert len(Ledger(own_ledger).entries("people")) == 1


@pytest.mark.usefixtures("seeded")
def test_images_are_learned_and_explained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    x = (rng.random((300, 6, 6)) * 80 + 120 * y[:, None, None] * np.eye(6)).astype(np.uint8)
    np.savez(folder / "x.npz", x=x, y=np.array(["dark", "line"])[y])
    np.savez(folder / "new.npz", x=x)  # predictions need no labels
    (folder / "x.toml").write_text('[images]\nheight = 6\nwidth = 6\nclasses = ["dark", "line"]\n')
    train = ("classify", "train", "x.npz", "-s", "x.toml", "-e", "4", "-o", "m", "-q")
    assert run(capsys, *train, "--set", "maps=2")[0] == 0
    assert run(capsys, "classify", "predict", "m", "new.npz", "-o", "out.csv")[0] == 0
    predicted = pa.csv.read_csv(folder / "out.csv").column("prediction").to_pylist()
    assert np.mean(np.array(predicted) == np.array(["dark", "line"])[y]) > 0.8
    assert run(capsys, "classify", "explain", "m", "new.npz", "-o", "e.png")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (TRAIN, "name the target"),
        ((*TRAIN, "-t", "age"), "must be a category"),
        ((*TRAIN, "-t", "nobody"), "no modelled column 'nobody'"),
        ((*TRAIN, *TARGET, "--set", "map=3"), "has no setting 'map'"),
        ((*TRAIN, *TARGET, "--set", "rate=2"), "rate must lie between"),
        ((*TRAIN, *TARGET, "--set", "beta=warm"), "beta must be a float"),
        ((*TRAIN, *TARGET, "--rows-per-unit", "3"), "protects single rows"),
        (("classify", "predict", "people.csv", "people.csv", "-o", "o.csv"), "not a model file"),
        (("classify", "predict", "none", "people.csv", "-o", "o.csv"), "no file none"),
        (("classify", "predict", "m", "people.csv", "-o", "o.txt"), "written to .csv"),
        (("classify", "explain", "m", "people.csv", "-o", "o.gif"), "written to .png, .svg, .json"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_before_anything_is_spent(
    folder: Path,
    own_ledger: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert Ledger(own_ledger).entries() == []


def test_an_empty_table_is_noticed_before_anything_is_spent(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pa.csv.write_csv(people(0), folder / "people.csv")
    code, _, err = run(capsys, *TRAIN, *TARGET)
    assert code == 2
    assert "has no rows" in err
    assert Ledger(own_ledger).entries() == []


def test_without_torch_help_works_and_training_says_what_to_install(folder: Path) -> None:
    script = """
import sys
class WithoutTorch:
    def find_spec(self, name, *_):
        if name == "torch":
            raise ImportError(name)
sys.meta_path.insert(0, WithoutTorch())
from sfumato.cli import main
main()
"""

    def started(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            capture_output=True,
            text=True,
            env=os.environ | {"COLUMNS": "200"},
        )

    assert started("classify", "--help").returncode == 0
    told = started(*TRAIN, *TARGET)
    assert told.returncode == 2
    assert told.stderr == ("sfumato: locally-linear needs torch: pip install 'sfumato[neural]'\n")
