"""Examples in the sources pay from a ledger of their own, too: see tests/conftest.py."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def ledger_of_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep examples away from the user's own ledger."""
    monkeypatch.setenv("SFUMATO_LEDGER", str(tmp_path / "ledger.sqlite"))
