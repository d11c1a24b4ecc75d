"""Private rows become public in one way only: paid for first, noisy, saved, reusable."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sfumato.codec import Batch
from sfumato.errors import SfumatoError
from sfumato.features.base import Weighted
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Sampler
from sfumato.privacy.release import Curator, Release, plan_spend
from sfumato.privacy.zcdp import epsilon_of
from support import SCHEMA, coded, count_statistic, people

BUDGET = Budget(epsilon=1, delta=1e-6)


class Rows:
    """Counts how often it is read."""

    def __init__(self, values: list[int]) -> None:
        self.values, self.reads = values, 0

    def __iter__(self) -> Iterator[Batch]:
        self.reads += 1
        yield coded(self.values[:2])
        yield coded(self.values[2:])


def curator(rows: Rows, folder: Path | None, ledger: Ledger, sampler: Sampler) -> Curator:
    return Curator(
        rows, BUDGET, ledger=ledger, dataset="d", schema=SCHEMA, folder=folder, sampler=sampler
    )


def test_a_release_is_the_exact_sum_plus_the_noise() -> None:
    ledger = Ledger(":memory:")
    wall = curator(Rows([0, 1, 1, 3]), None, ledger, lambda size, sigma: np.arange(size))
    assert wall.release("counts", count_statistic(), 1.0).values.tolist() == [1, 3, 2, 4]
    assert wall.guarantee.epsilon == pytest.approx(1, rel=1e-6)
    assert [entry.spend for entry in ledger.entries()] == [wall.releases[0].spend]


def test_the_spend_is_recorded_before_the_first_row_is_read(sampler: Sampler) -> None:
    ledger = Ledger(":memory:")

    class Bomb:
        def __iter__(self) -> Iterator[Batch]:
            assert len(ledger.entries("d")) == 1
            raise SfumatoError("unreadable")

    wall = Curator(Bomb(), BUDGET, ledger=ledger, dataset="d", schema=SCHEMA, sampler=sampler)
    with pytest.raises(SfumatoError, match="unreadable"):
        wall.release("counts", count_statistic(), 1.0)
    assert len(ledger.entries("d")) == 1


def test_a_refused_spend_reads_nothing(sampler: Sampler) -> None:
    ledger, rows = Ledger(":memory:"), Rows([0, 1])
    ledger.limit("d", Budget(epsilon=0.5, delta=1e-6))
    with pytest.raises(SfumatoError, match="nothing was read"):
        curator(rows, None, ledger, sampler).release("counts", count_statistic(), 1.0)
    assert rows.reads == 0


def test_releases_cannot_cost_more_than_the_budget(sampler: Sampler) -> None:
    wall = curator(Rows([0, 1]), None, Ledger(":memory:"), sampler)
    wall.release("first", count_statistic(), 0.6)
    with pytest.raises(SfumatoError, match="left of the budget"):
        wall.release("second", count_statistic(), 0.5)
    wall.release("second", count_statistic(), 0.4)
    assert epsilon_of(wall.guarantee.rho, 1e-6) <= 1 + 1e-9


def test_a_saved_release_is_taken_up_again_at_no_cost(tmp_path: Path, sampler: Sampler) -> None:
    ledger, rows = Ledger(":memory:"), Rows([0, 1, 1, 3])
    first = curator(rows, tmp_path, ledger, sampler).release("counts", count_statistic(), 1.0)
    again = curator(rows, tmp_path, ledger, sampler).release("counts", count_statistic(), 1.0)
    assert np.array_equal(first.values, again.values)
    assert (again.spend, again.statistic) == (first.spend, first.statistic)
    assert (rows.reads, len(ledger.entries())) == (1, 1)


def test_another_question_is_never_answered_by_a_saved_release(
    tmp_path: Path, sampler: Sampler
) -> None:
    ledger, rows = Ledger(":memory:"), Rows([0, 1, 1, 3])
    curator(rows, tmp_path, ledger, sampler).release("counts", count_statistic(), 0.5)
    curator(rows, tmp_path, ledger, sampler).release("counts", count_statistic(5), 0.5)
    curator(rows, tmp_path, ledger, sampler).release("counts", count_statistic(), 0.4)
    assert (rows.reads, len(ledger.entries())) == (3, 3)


def test_frames_in_a_folder_must_be_named(tmp_path: Path) -> None:
    import sfumato as sf

    with pytest.raises(SfumatoError, match="name the dataset"):
        sf.Pairs().fit(people(5), SCHEMA, BUDGET, folder=tmp_path)


def test_a_full_disk_is_noticed_before_anything_is_spent(
    tmp_path: Path, sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full, raising=False)
    ledger = Ledger(":memory:")
    with pytest.raises(SfumatoError, match="No space left"):
        curator(Rows([0]), tmp_path, ledger, sampler).release("counts", count_statistic(), 1.0)
    assert ledger.entries() == []
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_could_overflow_is_refused() -> None:
    with pytest.raises(SfumatoError, match="64 bits"):
        plan_spend("wide", Weighted(count_statistic(), 1 << 25), BUDGET, 1.0)
    tiny = Budget(epsilon=1e-14, delta=1e-14)
    with pytest.raises(SfumatoError, match="64 bits"):
        plan_spend("noisy", Weighted(count_statistic(), 1 << 24), tiny, 0.01)


def test_a_unit_of_many_rows_gets_as_much_more_noise() -> None:
    alone = plan_spend("c", count_statistic(), BUDGET, 1.0)
    many = plan_spend("c", count_statistic(), Budget(epsilon=1, max_rows_per_unit=5), 1.0)
    replaced = plan_spend(
        "c", count_statistic(), Budget(epsilon=1, relation=Relation.REPLACE_ONE), 1.0
    )
    assert many.sigma == pytest.approx(5 * alone.sigma)
    assert replaced.sigma == pytest.approx(2**0.5 * alone.sigma)


KILL = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from support import SCHEMA, coded, count_statistic, people
from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import Ledger
import sfumato.privacy.release as release
import sfumato.storage as storage

def die(*_): os.kill(os.getpid(), signal.SIGKILL)

point = {point!r}
ledger = Ledger({ledger!r})
if point == "before the spend": ledger.record = die
elif point == "while reading": release.Curator._exact_sum = die
elif point == "while saving": storage.os.fsync = die
elif point == "before the file appears": storage.os.replace = die
elif point == "after the file appears": storage._sync_folder = die
wall = release.Curator([coded([0, 1, 1])], Budget(epsilon=1), ledger=ledger, dataset="d",
                       schema=SCHEMA, folder=Path({folder!r}))
wall.release("counts", count_statistic(), 1.0)
if point == "after all": die()
"""


@pytest.mark.parametrize(
    ("point", "spends", "saved"),
    [
        ("before the spend", 0, 0),
        ("while reading", 1, 0),
        ("while saving", 1, 0),
        ("before the file appears", 1, 0),
        ("after the file appears", 1, 1),
        ("after all", 1, 1),
    ],
)
def test_kill_9_never_loses_a_spend_nor_leaves_half_a_release(
    tmp_path: Path, point: str, spends: int, saved: int
) -> None:
    folder, path = tmp_path / "releases", tmp_path / "l.sqlite"
    script = KILL.format(
        tests=str(Path(__file__).parents[1]), point=point, ledger=str(path), folder=str(folder)
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == -9
    assert len(Ledger(path).entries("d")) == spends
    files = [*folder.glob("[!.]*")]
    assert len(files) == saved
    for file in files:
        assert Release.load(file).values.shape == (4,)
    # A second run goes on from what was saved, and pays only for what was lost.
    second = Curator(
        [coded([0, 1, 1])], Budget(epsilon=1), ledger=Ledger(path), dataset="d", schema=SCHEMA,
        folder=folder,
    )  # fmt: skip
    second.release("counts", count_statistic(), 1.0)
    assert len(Ledger(path).entries("d")) == spends + 1 - saved


def test_a_damaged_release_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "r.safetensors").write_bytes(b"half")
    with pytest.raises(SfumatoError, match="cannot read the release"):
        Release.load(tmp_path / "r.safetensors")


def test_a_release_says_in_plain_json_what_it_is(tmp_path: Path, sampler: Sampler) -> None:
    wall = curator(Rows([0]), tmp_path, Ledger(":memory:"), sampler)
    wall.release("counts", count_statistic(), 1.0)
    raw = next(tmp_path.iterdir()).read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert json.loads(header["__metadata__"]["spend"])["name"] == "counts"
