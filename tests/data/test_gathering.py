"""Rows of a training that do not fit in memory lie on disk, in private, and give the same bits."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data import gathering
from sfumato.data.rows import encoded_rows
from sfumato.errors import SfumatoError
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from support import SCHEMA, people

BUDGET = sf.Budget(epsilon=8, delta=1e-5)


def trained(table: pa.Table, spool: Path, seen: list[Any]) -> list[bytes]:
    from seeded import Seeded, drawing

    method = sf.LocallyLinear(target="sick", maps=2, epochs=1)
    rows = encoded_rows(table, method.codec(SCHEMA), spool=spool)
    gather = rows.gathered

    def watched(needed: Any) -> Any:
        found = gather(needed)
        kept = spool.parent.glob(f"{spool.name}-*/*")
        modes = {stat.S_IMODE(file.stat().st_mode) for file in kept}
        seen.append((type(found[0]), modes, [array.tobytes() for array in found]))
        return found

    rows.gathered = watched  # type: ignore[method-assign]
    curator = Curator(rows, BUDGET, SCHEMA, sf.Run(ledger=Ledger(":memory:"), dataset="test"))
    with curator.asking(), drawing(Seeded()):
        model = method.learn(curator)
    return [array.tobytes() for _, array in sorted(model.weights.items())]


def test_a_training_from_disk_has_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    seen: list[Any] = []
    expected = trained(people(400), tmp_path / "rows", seen)
    for most in (0, 3000):  # from the first row on, or from some row in the middle
        monkeypatch.setattr(gathering, "MOST_IN_MEMORY", most)
        monkeypatch.setattr("sfumato.data.sources.BATCH_ROWS", 70)
        assert trained(people(400), tmp_path / "rows", seen) == expected
        assert not list(tmp_path.glob("rows*"))
    in_memory, *on_disk = seen
    assert in_memory[:2] == (np.ndarray, set())
    for kind, modes, content in on_disk:
        assert (kind, modes) == (np.memmap, {0o600})
        assert content == in_memory[2]


def test_a_full_disk_is_one_line_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(gathering, "MOST_IN_MEMORY", 0)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfumato.data.spool.open", full, raising=False)
    ledger = Ledger(":memory:")
    method = sf.LocallyLinear(target="sick", maps=2, epochs=1)
    with pytest.raises(SfumatoError, match="No space left"):
        method.fit(
            people(50),
            SCHEMA,
            BUDGET,
            sf.Run(ledger=ledger, dataset="people", folder=tmp_path / "kept"),
        )
    assert not ledger.entries("people")
