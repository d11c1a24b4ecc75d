"""Private rows become public in one way only: paid for first, noisy, saved, reusable."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from seeded import Counting, drawing
from sfumato import storage
from sfumato.data.batch import Batch
from sfumato.data.rows import GivenRows
from sfumato.errors import SfumatoError
from sfumato.privacy.answers import Release
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.curator import Curator
from sfumato.privacy.gaussian import epsilon_of
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.planning import plan_spend
from sfumato.privacy.run import Run
from sfumato.statistics.algebra import Weighted
from support import SCHEMA, coded, count_statistic, people, rewritten

BUDGET = Budget(epsilon=1, delta=1e-6)


class Rows:
    """Counts how often it is read."""

    def __init__(self, values: list[int]) -> None:
        self.values, self.reads = values, 0

    def __iter__(self) -> Iterator[Batch]:
        self.reads += 1
        yield coded(self.values[:2])
        yield coded(self.values[2:])


def curator(rows: Rows, folder: Path | None, ledger: Ledger) -> Curator:
    return Curator(GivenRows(rows), BUDGET, SCHEMA, Run(ledger=ledger, dataset="d", folder=folder))


def test_a_release_is_the_exact_sum_plus_the_noise() -> None:
    ledger = Ledger(":memory:")
    wall = curator(Rows([0, 1, 1, 3]), None, ledger)
    with drawing(Counting()):
        released = wall.release("counts", count_statistic(), 1.0)
    # Noise is added in steps of 2^-30, the finest that 64 bits allow for counts.
    assert (released.noisy - 2**30 * np.array([1, 2, 0, 1])).tolist() == [0, 1, 2, 3]
    assert released.values == pytest.approx([1, 2, 0, 1], abs=1e-8)
    assert wall.guarantee.epsilon == pytest.approx(1, rel=1e-6)
    assert [entry.spend for entry in ledger.entries()] == [wall.releases[0].spend]


def test_the_spend_is_recorded_before_anything_is_summed() -> None:
    ledger, entries = Ledger(":memory:"), []

    class Watched:
        def __iter__(self) -> Iterator[Batch]:
            entries.append(len(ledger.entries("d")))
            yield coded([0])

    wall = Curator(GivenRows(Watched()), BUDGET, SCHEMA, Run(ledger=ledger, dataset="d"))
    wall.release("first", count_statistic(), 0.5)
    wall.release("second", count_statistic(), 0.5)
    assert entries == [0, 1, 2]  # all rows are read once, then each sum is paid for first


def test_a_row_that_cannot_be_read_costs_nothing(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")

    class BadLastRow:
        def __iter__(self) -> Iterator[Batch]:
            yield coded([0, 1])
            raise SfumatoError("unreadable")

    for _ in range(3):
        wall = Curator(
            GivenRows(BadLastRow()),
            BUDGET,
            SCHEMA,
            Run(ledger=ledger, dataset="d", folder=tmp_path),
        )
        with pytest.raises(SfumatoError, match="unreadable"):
            wall.release("counts", count_statistic(), 1.0)
    assert ledger.entries() == []
    with pytest.raises(SfumatoError, match="has no rows"):
        curator(Rows([]), None, ledger).release("counts", count_statistic(), 1.0)
    assert ledger.entries() == []


def test_a_refused_spend_reads_nothing() -> None:
    ledger, rows = Ledger(":memory:"), Rows([0, 1])
    ledger.limit("d", Budget(epsilon=0.5, delta=1e-6))
    with pytest.raises(SfumatoError, match="nothing was spent"):
        curator(rows, None, ledger).release("counts", count_statistic(), 1.0)
    assert rows.reads == 0


def test_releases_cannot_cost_more_than_the_budget() -> None:
    wall = curator(Rows([0, 1]), None, Ledger(":memory:"))
    wall.release("first", count_statistic(), 0.6)
    with pytest.raises(SfumatoError, match="left of the budget"):
        wall.release("second", count_statistic(), 0.5)
    wall.release("second", count_statistic(), 0.4)
    assert epsilon_of(wall.guarantee.rho, 0.0, 1e-6) <= 1 + 1e-9


def test_a_saved_release_is_taken_up_again_at_no_cost(tmp_path: Path) -> None:
    ledger, rows = Ledger(":memory:"), Rows([0, 1, 1, 3])
    first = curator(rows, tmp_path, ledger).release("counts", count_statistic(), 1.0)
    again = curator(rows, tmp_path, ledger).release("counts", count_statistic(), 1.0)
    assert np.array_equal(first.values, again.values)
    assert (again.spend, again.statistic) == (first.spend, first.statistic)
    # They are reviewed and summed once; what is saved is taken up without a look at them.
    assert (rows.reads, len(ledger.entries())) == (2, 1)


def test_another_question_is_never_answered_by_a_saved_release(
    tmp_path: Path,
) -> None:
    ledger, rows = Ledger(":memory:"), Rows([0, 1, 1, 3])
    curator(rows, tmp_path, ledger).release("counts", count_statistic(), 0.5)
    for statistic, share in ((count_statistic(5), 0.5), (count_statistic(), 0.4)):
        with pytest.raises(SfumatoError, match="does not answer the question"):
            curator(rows, tmp_path, ledger).release("counts", statistic, share)
    assert len(ledger.entries()) == 1


def asked(
    rows: Rows,
    folder: Path,
    ledger: Ledger,
    pay_again: bool = False,
    **asker: int,
) -> Release:
    wall = Curator(
        GivenRows(rows),
        BUDGET,
        SCHEMA,
        Run(ledger=ledger, dataset="d", folder=folder, pay_again=pay_again),
        asker=asker,
    )
    return wall.release("counts", count_statistic(), 1.0)


def test_nothing_is_paid_for_again_without_a_word(tmp_path: Path) -> None:
    ledger, rows = Ledger(":memory:"), Rows([0, 1, 1, 3])
    asked(rows, tmp_path, ledger, components=1)
    reads = rows.reads
    with pytest.raises(SfumatoError, match="--pay-again"):
        asked(rows, tmp_path, ledger, components=2)
    assert (rows.reads, len(ledger.entries())) == (reads, 1)
    asked(rows, tmp_path, ledger, pay_again=True, components=2)
    asked(rows, tmp_path / "elsewhere", ledger, components=3)
    assert len(ledger.entries()) == 3
    asked(rows, tmp_path, ledger, components=1)  # what was paid for is still there
    assert len(ledger.entries()) == 3


def test_what_was_laid_out_is_taken_up_and_not_worked_out_again(
    tmp_path: Path,
) -> None:
    ledger, rows = Ledger(":memory:"), Rows([0, 1, 1, 3])
    released = []
    for cells in (4, 5):  # the second time, arithmetic comes out otherwise
        wall = curator(rows, tmp_path, ledger)
        laid = wall.layout("counts", lambda: {"cells": np.array(cells)})  # noqa: B023
        assert int(laid["cells"]) == 4
        released.append(wall.release("counts", count_statistic(int(laid["cells"])), 1.0).values)
    assert np.array_equal(*released)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rho": -1e9}, "cannot read the release"),
        ({"sigma": 1e9}, "changed, exchanged"),
        ({"sensitivity": 1e-9}, "changed, exchanged"),
        ({"dim": 5}, "changed, exchanged"),
        ({"sigma": 0}, "sigma must be a positive number"),
    ],
)
def test_a_planted_release_is_not_believed(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    ledger = Ledger(":memory:")
    wall = curator(Rows([0, 1, 1, 3]), tmp_path, ledger)
    wall.release("counts", count_statistic(), 1.0)
    (file,) = tmp_path.glob("counts-*")
    rewritten(file, **changes)
    again = curator(Rows([0, 1, 1, 3]), tmp_path, ledger)
    with pytest.raises(SfumatoError, match=message):
        again.release("counts", count_statistic(), 1.0)
    assert again.guarantee.epsilon == 0
    assert again.releases == []


def test_changed_values_and_answers_that_nobody_paid_for_are_noticed(
    tmp_path: Path,
) -> None:
    ledger = Ledger(":memory:")
    curator(Rows([0, 1]), tmp_path, ledger).release("counts", count_statistic(), 1.0)
    with pytest.raises(SfumatoError, match="not paid for in the ledger"):
        curator(Rows([0, 1]), tmp_path, Ledger(":memory:")).release(
            "counts", count_statistic(), 1.0
        )
    (file,) = tmp_path.glob("counts-*")
    saved = Release.from_bytes(file.read_bytes(), file)
    for values in (saved.noisy + 1, saved.noisy[:-1]):
        file.write_bytes(replace(saved, noisy=values).to_bytes())
        with pytest.raises(SfumatoError, match="changed, exchanged"):
            curator(Rows([0, 1]), tmp_path, ledger).release("counts", count_statistic(), 1.0)


def test_the_same_question_in_another_folder_is_asked_about_and_hurts_no_answer(
    tmp_path: Path,
) -> None:
    ledger, rows = Ledger(":memory:"), Rows([0, 1])
    first = asked(rows, tmp_path / "one", ledger)
    with pytest.raises(SfumatoError, match="answered before"):
        asked(rows, tmp_path / "two", ledger)
    second = asked(rows, tmp_path / "two", ledger, pay_again=True)
    assert len(ledger.entries()) == 2
    for folder, known in (("one", first), ("two", second)):
        again = asked(rows, tmp_path / folder, ledger)
        assert np.array_equal(again.values, known.values)
    assert len(ledger.entries()) == 2


def test_two_runs_that_find_one_payment_give_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the system cannot lock files: the ledger takes one answer for one payment."""
    monkeypatch.setattr(storage, "find_spec", lambda name: None)
    ledger, other = Ledger(tmp_path / "l.sqlite"), Ledger(tmp_path / "l.sqlite")

    class Interrupted(GivenRows):
        def sum(self, statistic: object) -> np.ndarray:
            raise KeyboardInterrupt

    wall = Curator(
        Interrupted([coded([0])]),
        BUDGET,
        SCHEMA,
        Run(ledger=ledger, dataset="d", folder=tmp_path / "one"),
    )
    with pytest.raises(KeyboardInterrupt):
        wall.release("counts", count_statistic(), 1.0)

    class Meanwhile(Rows):
        def __iter__(self) -> Iterator[Batch]:
            if self.reads == 1:
                curator(Rows([0]), tmp_path / "two", other).release(
                    "counts", count_statistic(), 1.0
                )
            return super().__iter__()

    with pytest.raises(SfumatoError, match="used this payment meanwhile"):
        curator(Meanwhile([0]), tmp_path / "one", ledger).release("counts", count_statistic(), 1.0)
    assert len(ledger.entries()) == 1
    assert list((tmp_path / "one").glob("counts-*")) == []
    assert list((tmp_path / "one").glob("*.next")) == []


def test_without_a_ledger_the_users_own_has_every_spend(tmp_path: Path, own_ledger: Path) -> None:
    import sfumato as sf

    for _ in range(2):
        sf.Pairs(restarts=1, components=2).fit(
            people(50), SCHEMA, BUDGET, Run(dataset="people", folder=tmp_path / "releases")
        )
    assert list((tmp_path / "releases").glob("*.sqlite")) == []
    spent = Ledger(own_ledger).entries("people")
    assert len(spent) == len({entry.spend.name for entry in spent}) >= 1


def test_frames_in_a_folder_must_be_named(tmp_path: Path) -> None:
    import sfumato as sf

    with pytest.raises(SfumatoError, match="name the dataset"):
        sf.Pairs().fit(people(5), SCHEMA, BUDGET, Run(folder=tmp_path))


def test_a_full_disk_is_noticed_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full, raising=False)
    ledger = Ledger(":memory:")
    with pytest.raises(SfumatoError, match="No space left"):
        curator(Rows([0]), tmp_path, ledger).release("counts", count_statistic(), 1.0)
    assert ledger.entries() == []
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_could_overflow_is_refused() -> None:
    with pytest.raises(SfumatoError, match="64 bits"):
        plan_spend("wide", Weighted(count_statistic(), 1 << 31), BUDGET, 1.0)
    tiny = Budget(epsilon=1e-14, delta=1e-14)
    with pytest.raises(SfumatoError, match="64 bits"):
        plan_spend("noisy", Weighted(count_statistic(), 1 << 30), tiny, 0.01)


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
from support import SCHEMA, coded, count_statistic, people, rewritten
from sfumato.data.rows import GivenRows
from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.privacy.curator import Curator
import sfumato.storage as storage

def die(*_): os.kill(os.getpid(), signal.SIGKILL)

point = {point!r}
ledger = Ledger({ledger!r})
if point == "before the spend": ledger.record = die
elif point == "while saving": storage.os.fsync = die
elif point == "after the file appears":
    synced = storage._sync_folder
    storage._sync_folder = lambda folder: die() if any(folder.glob("counts-*")) else synced(folder)
wall = Curator(GivenRows([coded([0, 1, 1])]), Budget(epsilon=1), SCHEMA,
               Run(ledger=ledger, dataset="d", folder=Path({folder!r})))
wall.release("counts", count_statistic(), 1.0)
"""


@pytest.mark.parametrize(
    ("point", "spends", "saved"),
    [
        ("before the spend", 0, 0),
        ("while saving", 1, 0),
        ("after the file appears", 1, 1),
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
        assert Release.from_bytes(file.read_bytes(), file).values.shape == (4,)
    # A second run takes up what was saved, or uses the payment whose answer nobody has seen.
    second = Curator(
        GivenRows([coded([0, 1, 1])]),
        Budget(epsilon=1),
        SCHEMA,
        Run(ledger=Ledger(path), dataset="d", folder=folder),
    )
    second.release("counts", count_statistic(), 1.0)
    assert len(Ledger(path).entries("d")) == 1
    assert [file.name for file in folder.iterdir() if file.suffix == ".next"] == []


def test_a_damaged_release_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match="cannot read the release"):
        Release.from_bytes(b"half", tmp_path / "r.safetensors")


def test_a_release_says_in_plain_json_what_it_is(tmp_path: Path) -> None:
    wall = curator(Rows([0]), tmp_path, Ledger(":memory:"))
    wall.release("counts", count_statistic(), 1.0)
    raw = next(tmp_path.glob("counts-*")).read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert json.loads(header["__metadata__"]["spend"])["name"] == "counts"
