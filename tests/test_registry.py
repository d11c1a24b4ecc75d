"""Methods of other packages: found by name, fitted, audited and loaded, but never unasked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from command_line import run
from sfumato.certificate import certificate_text
from sfumato.evaluation.report import certificate_html
from support import SCHEMA, people

CODE = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np, pyarrow as pa
from sfumato.data.table_codec import TableCodec
from sfumato.modelling.base import Method, Model, Plan
from sfumato.privacy.planning import plan_spend
from sfumato.progress import silent
from sfumato.statistics.counts import Axis, Counts

@dataclass(frozen=True, kw_only=True, eq=False)
class CountsModel(Model):
    shares: np.ndarray
    @property
    def rows(self): return 10
    def sample(self, n=None, given=None, seed=0):
        codec = TableCodec(self.schema)
        rng = np.random.default_rng(seed)
        n = self.how_many(n)
        codes = np.stack([rng.integers(0, c.size, n) for c in codec.columns], axis=1)
        return codec.decode(codes, rng)
    def arrays(self): return {"shares": self.shares}
    @classmethod
    def from_arrays(cls, arrays, **common): return cls(shares=arrays["shares"], **common)

@dataclass(frozen=True, kw_only=True)
class Counting(Method):
    name: ClassVar[str] = "counting"
    model_class: ClassVar[type] = CountsModel
    def codec(self, schema): return TableCodec(schema)
    def _counts(self, schema):
        size = TableCodec(schema).columns[0].size
        return Counts([(Axis(0, np.arange(size, dtype=np.int32)),)])
    def plan(self, schema, budget):
        spend = plan_spend("counts", self._counts(schema), budget, 1.0)
        return Plan(method=self.name, budget=budget, spends=(spend,))
    def learn(self, curator, progress=silent):
        release = curator.release("counts", self._counts(curator.schema), 1.0)
        return CountsModel(
            method=self, schema=curator.schema, guarantee=curator.guarantee,
            releases=tuple(curator.releases), shares=release.values,
        )
"""


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a package that has a method."""
    place = tmp_path / "site"
    about = place / "counting_house-1.2.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: counting-house\nVersion: 1.2\n")
    entries = "[sfumato.methods]\ncounting = counting_house:Counting\nbroken = no_such_module:X\n"
    (about / "entry_points.txt").write_text(entries)
    (place / "counting_house.py").write_text(CODE)
    monkeypatch.syspath_prepend(place)
    yield place
    sys.modules.pop("counting_house", None)


def test_a_method_of_another_package_is_used_by_its_name(
    other_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    import pyarrow.csv

    pyarrow.csv.write_csv(people(200), "people.csv")
    Path("people.toml").write_text(SCHEMA.to_toml())
    asked = ("people.csv", "-s", "people.toml", "-e", "1", "-m", "counting", "-q")
    code, _, _ = run(capsys, "fit", *asked, "-o", "m.sfumato")
    assert code == 0
    sys.modules.pop("counting_house")
    for command in (("show", "m.sfumato"), ("sample", "m.sfumato", "-o", "o.csv", "-q")):
        code, _, error = run(capsys, *command)
        assert (code, "counting-house 1.2" in error) == (2, True)
        assert "counting_house" not in sys.modules  # the file alone caused no import
        assert run(capsys, *command, "--allow", "counting")[0] == 0
        sys.modules.pop("counting_house")
    code, out, _ = run(capsys, "audit", "m.sfumato", "--allow", "counting", "--runs", "50", "-q")
    assert (code, "mu of the 1 releases that counting asks for" in out) == (0, True)
    model = sf.load("m.sfumato", allow=["counting"])
    assert "of the package counting_house" in certificate_text(model)
    assert "that package's claim" in certificate_html(model).replace("&#39;", "'")


@pytest.mark.usefixtures("other_package")
def test_a_method_that_cannot_be_imported_is_one_line() -> None:
    from sfumato.registry import method_class

    with pytest.raises(sf.SfumatoError, match=r"'broken' of counting-house 1.2 cannot be imported"):
        method_class("broken")
    with pytest.raises(sf.SfumatoError, match=r"there are: .*pairs.*, counting"):
        method_class("nothing")
