"""What the tests of classifiers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seeded import Seeded, drawing


@pytest.fixture
def seeded() -> Iterator[None]:
    """Noise from a fixed seed: for tests only."""
    with drawing(Seeded()):
        yield
