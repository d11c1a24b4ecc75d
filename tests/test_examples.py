"""The examples run, and do what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_table_is_shared(capsys: pytest.CaptureFixture[str]) -> None:
    model = example("share_a_table").main(2_000)
    assert model.guarantee.epsilon <= 1 + 1e-9
    assert "1000 more rows, all cardiac" in capsys.readouterr().out


def test_images_are_seen(tmp_path: Path) -> None:
    path = example("see_images").main(tmp_path / "digits.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_statistic_is_audited() -> None:
    values, epsilon = example("audit_a_statistic").main(500)
    assert len(values) > 3
    assert epsilon == pytest.approx(1, rel=1e-6)


def test_every_example_is_run() -> None:
    tested = Path(__file__).read_text()
    assert all(f'"{path.stem}"' in tested for path in EXAMPLES.glob("*.py"))
