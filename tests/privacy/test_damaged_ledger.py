"""A ledger that was damaged is refused in one line, whatever it holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import sfumato as sf
from command_line import folder as folder
from command_line import is_one_line, run
from sfumato.privacy.budget import Spend
from sfumato.privacy.ledger import Ledger

BUDGET = sf.Budget(epsilon=1)
SYNTH = ("synth", "people.csv", "-s", "people.toml", "-e", "2", "-o", "out.csv", "-q")


def damaged_ledgers() -> dict[str, Callable[[Path], object]]:
    """Name ways in which a ledger may be damaged."""

    def cells(statement: str) -> Callable[[Path], object]:
        def change(path: Path) -> None:
            with sqlite3.connect(path) as base:
                found = base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
                for (name,) in found.fetchall():
                    base.execute(f"DROP TRIGGER {name}")
                base.execute(statement)
            base.close()

        return change

    def pages(path: Path) -> None:
        content = bytearray(path.read_bytes())
        with sqlite3.connect(path) as base:
            (page,) = base.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = 'spends'"
            ).fetchone()
        size = int.from_bytes(content[16:18], "big")
        content[(page - 1) * size : page * size] = b"\xff" * size
        path.write_bytes(content)

    texts = "CAST(x'ff' AS TEXT)"
    return {
        "no database": lambda path: path.write_bytes(b"no database, but a text " * 99),
        "cut": lambda path: path.write_bytes(path.read_bytes()[:5000]),
        "a page": pages,
        "the mark": lambda path: Path(f"{path}.id").write_bytes(b"\xff\xfe"),
        "a name that is no text": cells(f"UPDATE spends SET name = {texts}"),
        "a relation that is none": cells("UPDATE spends SET relation = 'near'"),
        "a number that is text": cells("UPDATE spends SET sigma = 'much'"),
        "a number below zero": cells("UPDATE spends SET sigma = -1"),
        "a time that is bytes": cells("UPDATE spends SET time = x'00'"),
        "a digest that is bytes": cells("UPDATE answers SET digest = x'00'"),
        "a limit without sense": cells("UPDATE limit_changes SET epsilon = 'much'"),
        "a limit's name": cells(f"UPDATE limit_changes SET dataset = {texts}"),
        "a reservation": cells("UPDATE reservations SET rho = 'much'"),
        "a reservation's unit": cells(f"UPDATE reservations SET unit = {texts}"),
        "totals": cells("UPDATE totals SET content = '[[1, 2]]'"),
        "totals that are no JSON": cells("UPDATE totals SET content = 'x'"),
        "totals that are bytes": cells("UPDATE totals SET content = x'00'"),
        "the identity": cells("UPDATE identity SET name = x'00'"),
    }


@pytest.mark.parametrize("way", damaged_ledgers())
def test_a_damaged_ledger_is_one_line(
    folder: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    ledger = Ledger(own_ledger)
    ledger.limit("people", sf.Budget(epsilon=50))
    ledger.reserve("people", BUDGET, 0.01)
    spend = Spend(name="counts", dim=4, sensitivity=1, sigma=4)
    ledger.answered(ledger.record("people", BUDGET, spend), "digest")
    ledger._database.close()
    damaged_ledgers()[way](own_ledger)
    assert is_one_line(run(capsys, "ledger", "show"), "the ledger", "ledger.sqlite")
    found = run(capsys, *SYNTH)  # which looks at what it needs only
    assert found[0] == 0 or is_one_line(found)
