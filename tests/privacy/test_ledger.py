"""The ledger never forgets and never lets a limit be passed."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, Relation, Spend, TrainingSpend
from sfumato.privacy.gaussian import epsilon_of
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.sampled_gaussian import joint_epsilon

BUDGET = Budget(epsilon=1, delta=1e-6)


def spend(rho: float) -> Spend:
    return Spend(name="counts", dim=3, sensitivity=1, sigma=1 / math.sqrt(2 * rho), scale=2**30)


def test_totals_are_kept_over_runs(tmp_path: Path) -> None:
    for _ in range(3):
        Ledger(tmp_path / "l.sqlite").record("a", BUDGET, spend(0.25))
    reopened = Ledger(tmp_path / "l.sqlite")
    assert reopened.total_rho("a", (Relation.ADD_REMOVE, 1, "row")) == pytest.approx(0.75)
    assert reopened.total_rho("b", (Relation.ADD_REMOVE, 1, "row")) == 0
    assert len(reopened.entries("a")) == 3


def test_spends_cannot_be_taken_back(tmp_path: Path) -> None:
    Ledger(tmp_path / "l.sqlite").record("a", BUDGET, spend(0.25))
    database = sqlite3.connect(tmp_path / "l.sqlite")
    attacks = (
        "DELETE FROM spends",
        "UPDATE spends SET rho = 0",
        "INSERT OR REPLACE INTO spends SELECT 1, dataset, time, relation, max_rows_per_unit, unit,"
        " name, dim, 1e-9, sigma, 0, rate, steps, epsilon, delta, noise_multiplier, question,"
        " reservation, scale, chance, grid_bits"
        " FROM spends",
    )
    for attack in attacks:
        with pytest.raises(sqlite3.Error, match="append-only"):
            database.execute(attack)
    assert database.execute("SELECT sensitivity FROM spends").fetchall() == [(1.0,)]


def test_limits_keep_their_history(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.sqlite")
    ledger.limit("a", BUDGET)
    ledger.limit("a", Budget(epsilon=9, delta=1e-6))
    assert [change.budget.epsilon for change in ledger.limit_changes()] == [1, 9]
    assert ledger.limits()["a"][0].epsilon == 9
    database = sqlite3.connect(tmp_path / "l.sqlite")
    for attack in ("DELETE FROM limit_changes", "UPDATE limit_changes SET epsilon = 1"):
        with pytest.raises(sqlite3.Error, match="append-only"):
            database.execute(attack)


def test_a_limit_of_an_older_ledger_holds_on(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "l.sqlite")
    database.executescript("""
        CREATE TABLE limits (
            dataset TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL,
            relation TEXT NOT NULL, max_rows_per_unit INTEGER NOT NULL, unit TEXT NOT NULL
        );
        INSERT INTO limits VALUES ('a', 0.5, 1e-6, 'add-remove', 1, 'row');
    """)
    database.close()
    for _ in range(2):  # the second time there is nothing left to bring over
        (change,) = Ledger(tmp_path / "l.sqlite").limit_changes()
        assert (change.dataset, change.budget.epsilon) == ("a", 0.5)


def test_a_deleted_or_exchanged_ledger_does_not_start_empty(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    Ledger(path).record("a", BUDGET, spend(0.25))
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(SfumatoError, match="is gone: bring it back from a backup"):
        Ledger(path)
    assert not path.exists()
    Ledger(tmp_path / "other.sqlite")
    (tmp_path / "other.sqlite").rename(path)
    with pytest.raises(SfumatoError, match="not the ledger that was there before"):
        Ledger(path)
    path.write_bytes(content)
    assert len(Ledger(path).entries("a")) == 1


def test_what_was_paid_for_and_answered_is_known_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.sqlite")
    number = ledger.record("a", BUDGET, spend(0.25), question="q")
    assert ledger.last_answer(number) is None
    ledger.answered(number, "first")
    reopened = Ledger(tmp_path / "l.sqlite")
    (entry,) = reopened.paid("a", "q")
    assert (entry.number, reopened.last_answer(number)) == (number, "first")
    for dataset, question in (("b", "q"), ("a", "p"), ("a", "")):
        assert reopened.paid(dataset, question) == []
    with pytest.raises(SfumatoError, match="another run has used this payment"):
        reopened.answered(number, "second", after="zeroth")


def steps_of(ledger: Ledger, work: Callable[[], object]) -> int:
    """Count the steps of the database's machine, in hundreds."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    ledger._database.set_progress_handler(step, 100)
    work()
    ledger._database.set_progress_handler(None, 0)
    return steps


@pytest.mark.slow
def test_a_spend_costs_no_more_after_many_others() -> None:
    costs = []
    for earlier in (10, 3000):
        ledger = Ledger(":memory:")
        ledger.limit("a", Budget(epsilon=1000, delta=1e-6))
        for number in range(earlier):
            held = ledger.reserve("a", BUDGET, 1e-9, run=str(number))
            paid = ledger.record("a", BUDGET, spend(1e-9), question=f"q{number}", reservation=held)
            ledger.answered(paid, "digest")
            ledger.close(held)

        def work(ledger: Ledger = ledger) -> None:
            held = ledger.reserve("a", BUDGET, 1e-9, run="now")
            assert ledger.rounds("a", "q") == len(ledger.paid("a", "q")) == 0
            paid = ledger.record("a", BUDGET, spend(1e-9), question="q", reservation=held)
            assert ledger.last_answer(paid) is None
            ledger.answered(paid, "digest")
            ledger.close(held)

        costs.append(steps_of(ledger, work))
    assert costs[1] <= costs[0] + 2


def test_totals_are_those_of_the_entries_to_the_last_bit(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    rhos = [10.0**-power for power in range(12)] + [1 / 3] * 20
    for rho in rhos:
        Ledger(path).record("a", BUDGET, spend(rho))
        Ledger(path).record("b", BUDGET, training(0.5, 1e-7), unit="patient")
    ledger = Ledger(path)
    ledger.check()
    currency = (Relation.ADD_REMOVE, 1, "row")
    assert ledger.total_rho("a", currency) == math.fsum(e.spend.rho for e in ledger.entries("a"))
    (total,) = ledger._totals("b").values()
    assert total.trainings == ((2.0, 0.1, 9 * len(rhos)),)


def test_what_another_version_wrote_counts_and_a_forged_total_is_noticed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.sqlite")
    ledger.record("a", BUDGET, spend(0.25))
    database = sqlite3.connect(tmp_path / "l.sqlite", isolation_level=None)
    database.execute(
        "INSERT INTO spends (dataset, time, relation, max_rows_per_unit, unit, name, dim,"
        " sensitivity, sigma, rho) VALUES ('a', '', 'add-remove', 1, 'row', 'n', 1, 1, 1, 0.5)"
    )
    database.execute(
        "INSERT INTO reservations VALUES (7, 'a', '', 'add-remove', 1, 'row', 'r', '', 1)"
    )
    assert ledger.total_rho("a", (Relation.ADD_REMOVE, 1, "row")) == pytest.approx(0.75)
    assert [each.number for each in ledger.reservations("a")] == [7]
    ledger.check()
    database.execute("DELETE FROM totals")
    ledger.check()  # what is kept can be had again from the record
    for forged in (
        "UPDATE totals SET content = '[]'",
        "UPDATE totals SET dataset = 'b'",
        "DELETE FROM open_reservations",
    ):
        ledger.record("a", BUDGET, spend(0.25))
        database.execute(forged)
        with pytest.raises(SfumatoError, match="not those of its entries"):
            ledger.check()
        database.execute("DELETE FROM totals")


def test_rounds_of_a_question_are_counted_apart_from_others() -> None:
    ledger = Ledger(":memory:")
    for question in ("q", "q.1", "q.1", "q.2", "qq", "q0", "p.1"):
        ledger.record("a", BUDGET, spend(0.01), question=question)
    ledger.record("b", BUDGET, spend(0.01), question="q.3")
    assert [ledger.rounds("a", each) for each in ("q", "p", "r")] == [3, 1, 0]


def test_a_limit_is_kept_to_the_last_spend() -> None:
    ledger = Ledger(":memory:")
    ledger.limit("a", BUDGET)
    for _ in range(4):
        ledger.record("a", BUDGET, spend(BUDGET.rho / 4))
    with pytest.raises(SfumatoError, match="limit of epsilon 1"):
        ledger.record("a", BUDGET, spend(BUDGET.rho / 1000))
    assert len(ledger.entries("a")) == 4
    ledger.record("another", BUDGET, spend(1.0))


def test_a_limit_holds_for_its_own_relation_and_unit_only() -> None:
    ledger = Ledger(":memory:")
    ledger.limit("a", BUDGET)
    other = Budget(epsilon=1, delta=1e-6, relation=Relation.REPLACE_ONE)
    with pytest.raises(SfumatoError, match="add-remove"):
        ledger.record("a", other, spend(0.001))


def test_a_limit_does_not_overlook_what_was_spent_in_other_terms() -> None:
    ledger = Ledger(":memory:")
    ledger.record("a", Budget(epsilon=9, relation=Relation.REPLACE_ONE), spend(5.0))
    ledger.record("b", BUDGET, spend(0.001), unit="patient")
    for dataset in ("a", "b"):
        ledger.limit(dataset, BUDGET)
        with pytest.raises(SfumatoError, match="same terms"):
            ledger.record(dataset, BUDGET, spend(0.001))


def test_eight_processes_cannot_pass_a_limit_together(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    Ledger(path).limit("a", BUDGET)
    script = f"""
import sys
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, Spend
from sfumato.privacy.sampled_gaussian import joint_epsilon
from sfumato.privacy.ledger import Ledger
budget = Budget(epsilon=1, delta=1e-6)
for _ in range(6):
    try:
        Ledger({str(path)!r}).record(
            "a",
            budget,
            Spend(name="c", dim=1, sensitivity=1, sigma=(10 / budget.rho) ** 0.5, scale=2**30),
        )
    except SfumatoError:
        pass
"""
    processes = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(8)]
    assert [process.wait() for process in processes] == [0] * 8
    total = Ledger(path).total_rho("a", (Relation.ADD_REMOVE, 1, "row"))
    assert total == pytest.approx(BUDGET.rho)
    assert epsilon_of(total, 0.0, 1e-6) <= 1 + 1e-9


@pytest.mark.parametrize("sigma", [math.nan, math.inf, 0.0, -1.0])
def test_a_spend_without_a_finite_cost_cannot_be_made(sigma: float) -> None:
    with pytest.raises(SfumatoError, match="sigma must be a positive number"):
        Spend(name="x", dim=1, sensitivity=1, sigma=sigma)


def test_an_unusable_ledger_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "l.sqlite").write_text("this is no database, but a text that is long enough")
    with pytest.raises(SfumatoError, match="cannot use the ledger"):
        Ledger(tmp_path / "l.sqlite")


def training(epsilon: float, delta: float) -> TrainingSpend:
    return TrainingSpend(
        name="training", dim=7, clip=0.5, noise_multiplier=2, rate=0.1, steps=9, epsilon=epsilon,
        delta=delta,
    )  # fmt: skip


def test_a_training_is_kept_as_it_was_recorded(tmp_path: Path) -> None:
    Ledger(tmp_path / "l.sqlite").record("a", BUDGET, training(0.5, 1e-7))
    (entry,) = Ledger(tmp_path / "l.sqlite").entries("a")
    assert entry.spend == training(0.5, 1e-7)


def test_trainings_and_releases_are_composed_jointly() -> None:
    pytest.importorskip("dp_accounting")
    ledger = Ledger(":memory:")
    for each in (spend(0.01), training(0.3, 4e-7), spend(0.01), training(0.2, 1e-7)):
        ledger.record("a", BUDGET, each)
    currency = (Relation.ADD_REMOVE, 1, "row")
    assert ledger.total_rho("a", currency) == pytest.approx(0.02)
    # Whatever epsilon a training is said to have, what counts is its noise.
    both = ((2.0, 0.1, 9), (2.0, 0.1, 9))
    joint = joint_epsilon(
        both, ledger.total_rho("a", currency), 2 * spend(0.01).squared_distance, 1e-6, currency[0]
    )
    assert ledger.total_epsilon("a", currency, 1e-6) == pytest.approx(joint, rel=1e-8)


def test_a_limit_counts_trainings() -> None:
    pytest.importorskip("dp_accounting")
    ledger = Ledger(":memory:")
    ledger.limit("a", BUDGET)
    ledger.record("a", BUDGET, training(0.6, 5e-7))
    with pytest.raises(SfumatoError, match=r"would reach 1\.2"):
        ledger.record("a", BUDGET, training(0.5, 5e-7))
    with pytest.raises(SfumatoError, match="nothing was spent"):
        ledger.record("a", BUDGET, spend(BUDGET.rho))
    ledger.record("a", BUDGET, spend(BUDGET.rho / 100))


def test_a_training_without_a_finite_cost_cannot_be_made() -> None:
    with pytest.raises(SfumatoError, match="epsilon must be a positive number"):
        training(math.inf, 1e-6)


def test_an_older_ledger_keeps_its_spends_and_takes_trainings(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE spends (
            id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL,
            relation TEXT NOT NULL, max_rows_per_unit INTEGER NOT NULL, unit TEXT NOT NULL,
            name TEXT NOT NULL, dim INTEGER NOT NULL,
            sensitivity REAL NOT NULL, sigma REAL NOT NULL, rho REAL NOT NULL
        );
        INSERT INTO spends
            VALUES (NULL, 'a', 'then', 'add-remove', 1, 'row', 'counts', 3, 1, 2, 0.125);
        CREATE TRIGGER spends_hold BEFORE UPDATE ON spends
            BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
    """)
    database.close()
    Ledger(path).record("a", BUDGET, training(0.5, 1e-7))
    old, new = (entry.spend for entry in Ledger(path).entries("a"))
    assert old == Spend(name="counts", dim=3, sensitivity=1, sigma=2)
    assert new == training(0.5, 1e-7)
    with pytest.raises(sqlite3.Error, match="append-only"):
        sqlite3.connect(path).execute("UPDATE spends SET epsilon = 0")
