"""Settings are checked when they are given, by every method in the same words."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import SfumatoError
from sfumato.registry import CLASSIFIERS, SYNTHESIZERS
from sfumato.synthesis import make_method

RANGES = {
    "pairs": {"components": (1, 1000), "restarts": (1, 100)},
    "moments": {},
    "merf": {"steps": (1, 1_000_000), "features": (2, 100_000)},
    "hp": {"steps": (1, 1_000_000), "degree": (2, 5), "draws": (1, 1000), "length": (0.01, 10)},
    "locally-linear": {"maps": (1, 1000), "beta": (1e-9, 1_000_000), "rate": (1e-6, 1)},
    "convolutional": {"epochs": (1e-3, 10_000), "clip": (1e-6, 1_000_000)},
}
SETTINGS = [(name, *each) for name, ranges in RANGES.items() for each in ranges.items()]


@pytest.mark.parametrize(("method", "setting", "ends"), SETTINGS)
def test_a_setting_is_taken_within_its_range_and_refused_beyond(
    method: str, setting: str, ends: tuple[float, float]
) -> None:
    least, most = ends
    for value in ends:
        make_method(method, {setting: value})
    for value in (least - 1, most + 1, float("nan"), float("inf")):
        with pytest.raises(SfumatoError, match=f"{setting} must lie between"):
            make_method(method, {setting: value})


@pytest.mark.parametrize("method", [*SYNTHESIZERS, *CLASSIFIERS])
def test_a_negative_seed_is_refused(method: str) -> None:
    settings: dict[str, Any] = {"seed": -1}
    with pytest.raises(SfumatoError, match="seed must not be negative, got -1"):
        make_method(method, settings)
