"""What the tests of classifiers share."""

from __future__ import annotations

import pytest

from seeded import Seeded


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise from a fixed seed: for tests only."""
    random = Seeded()
    for name in ("noise", "chosen"):
        method = getattr(random, name)
        monkeypatch.setattr(
            f"sfumato.privacy.randomness.SystemRandomness.{name}",
            lambda self, *arguments, method=method: method(*arguments),
        )
