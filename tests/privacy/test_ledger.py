"""The ledger never forgets and never lets a limit be passed."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, Relation, Spend
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.zcdp import epsilon_of

BUDGET = Budget(epsilon=1, delta=1e-6)


def spend(rho: float) -> Spend:
    return Spend(name="counts", dim=3, sensitivity=1, sigma=1 / math.sqrt(2 * rho), rho=rho)


def test_totals_are_kept_over_runs(tmp_path: Path) -> None:
    for _ in range(3):
        Ledger(tmp_path / "l.sqlite").record("a", BUDGET, spend(0.25))
    reopened = Ledger(tmp_path / "l.sqlite")
    assert reopened.total_rho("a", (Relation.ADD_REMOVE, 1, "row")) == 0.75
    assert reopened.total_rho("b", (Relation.ADD_REMOVE, 1, "row")) == 0
    assert len(reopened.entries("a")) == 3


def test_spends_cannot_be_taken_back(tmp_path: Path) -> None:
    Ledger(tmp_path / "l.sqlite").record("a", BUDGET, spend(0.25))
    database = sqlite3.connect(tmp_path / "l.sqlite")
    for attack in ("DELETE FROM spends", "UPDATE spends SET rho = 0"):
        with pytest.raises(sqlite3.Error, match="append-only"):
            database.execute(attack)


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
from sfumato.privacy.ledger import Ledger
budget = Budget(epsilon=1, delta=1e-6)
for _ in range(6):
    try:
        Ledger({str(path)!r}).record(
            "a", budget, Spend(name="c", dim=1, sensitivity=1, sigma=1, rho=budget.rho / 20)
        )
    except SfumatoError:
        pass
"""
    processes = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(8)]
    assert [process.wait() for process in processes] == [0] * 8
    total = Ledger(path).total_rho("a", (Relation.ADD_REMOVE, 1, "row"))
    assert total == pytest.approx(BUDGET.rho)
    assert epsilon_of(total, 1e-6) <= 1 + 1e-9


@pytest.mark.parametrize("rho", [math.nan, math.inf, -1.0])
def test_a_spend_without_a_finite_cost_is_refused(rho: float) -> None:
    with pytest.raises(SfumatoError, match="no finite cost"):
        Ledger(":memory:").record(
            "a", BUDGET, Spend(name="x", dim=1, sensitivity=1, sigma=1, rho=rho)
        )


def test_an_unusable_ledger_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "l.sqlite").write_text("this is no database, but a text that is long enough")
    with pytest.raises(SfumatoError, match="cannot use the ledger"):
        Ledger(tmp_path / "l.sqlite")
