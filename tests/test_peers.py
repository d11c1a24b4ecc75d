import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.schema import Categorical, Numeric, Schema

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
COLUMNS = {
    "kind": {"values": ["a", "b", "NA"], "nullable": True},
    "count": {"low": 0, "high": 5, "integer": True, "nullable": False},
    "age": {"low": 17, "high": 90, "integer": True, "nullable": True},
    "gain": {"low": 0.0, "high": 1e5, "integer": False, "nullable": False},
    "shift": {"low": -0.3, "high": 0.07, "integer": False, "nullable": True},
}


@pytest.fixture(autouse=True)
def _benchmarks_are_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def some_rows(rows=500):
    rng = np.random.default_rng(0)
    unit = rng.random((rows, 5))
    return pd.DataFrame(
        {
            "kind": np.array(["a", "b", "NA", None], dtype=object)[(4 * unit[:, 0]).astype(int)],
            "count": (6 * unit[:, 1]).astype(int),
            "age": np.where(unit[:, 2] < 0.1, np.nan, np.floor(17 + 74 * unit[:, 2])),
            "gain": np.where(unit[:, 3] < 0.9, 0.0, np.rint(1e5 * unit[:, 3])),
            "shift": np.where(unit[:, 4] < 0.1, np.nan, 0.37 * unit[:, 4] - 0.3),
        }
    )


def test_every_peer_and_referee_pins_the_version_of_its_package():
    from peers.environment import needs, packages
    from peers.roster import PEERS, REFEREES

    scripts = {peer.script for peer in PEERS.values()} | set(REFEREES.glob("*.py"))
    for script in scripts:
        here = needs(script).get("tool", {}).get("peers", {}).get("here")
        assert here or "==" in packages(script)[0], script.name


def test_the_public_grid_draws_values_from_their_own_cells():
    from peers.adapters.grid import Grid

    grid = Grid(COLUMNS)
    codes = grid.encode(some_rows())
    sizes = grid.sizes()
    for seed in range(3):
        drawn = grid.decode(codes, seed)
        pd.testing.assert_frame_equal(grid.encode(drawn), codes)
        assert (drawn["gain"] == 0).sum() == (codes["gain"] == 0).sum() > 400
    assert all(codes[name].between(0, sizes[name] - 1).all() for name in sizes)


def test_rows_come_back_from_the_exchange_as_they_were_sent(tmp_path):
    from peers.contest import Contest, _as_text
    from tables import Table

    schema = Schema(
        columns={
            name: Categorical(values=tuple(known["values"]), nullable=known["nullable"])
            if "values" in known
            else Numeric(**known)
            for name, known in COLUMNS.items()
        }
    )
    rows = pa.Table.from_pandas(some_rows(), preserve_index=False)
    contest = Contest("some")
    contest.__dict__["table"] = Table("some", rows, rows, schema, "kind")
    _as_text(rows, schema).to_csv(tmp_path / "synthetic.csv", index=False)
    back = contest._read(tmp_path / "synthetic.csv")
    for name in COLUMNS:
        found, sent = back[name], rows[name]
        if pa.types.is_floating(sent.type):  # csv may drop the last of a number's digits
            found, sent = (column.cast(pa.float32()) for column in (found, sent))
        assert found.to_pylist() == sent.to_pylist(), name


def test_a_value_outside_the_schema_is_refused_by_name(tmp_path):
    from peers.contest import Contest, _as_text
    from tables import Table

    schema = Schema(columns={"kind": Categorical(values=("a", "b"))})
    rows = pa.table({"kind": ["a", "b"]})
    contest = Contest("some")
    contest.__dict__["table"] = Table("some", rows, rows, schema, "kind")
    strange = pa.table({"kind": ["a", "_RARE_"]})
    _as_text(strange, schema).to_csv(tmp_path / "synthetic.csv", index=False)
    with pytest.raises(ValueError, match=r"kind .*_RARE_"):
        contest._read(tmp_path / "synthetic.csv")


def test_a_peer_ends_as_done_failed_or_not_finished(tmp_path):
    from peers.process import watched

    def ended(code):
        return watched([sys.executable, "-c", code], tmp_path / "log", minutes=1 / 60)

    assert ended("pass")["state"] == "done"
    assert "ValueError: too wide" in ended("raise ValueError('too wide')")["error"]
    assert ended("while True: pass")["state"] == "not finished"
