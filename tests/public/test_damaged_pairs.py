"""A pair may come from anyone: what would not be exact, or fail later, is refused at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from sfumato.errors import SfumatoError

pytest.importorskip("torch")

from sfumato.public.pair import Pair, load_pair

Changed = Callable[[dict[str, Any], dict[str, np.ndarray]], object]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pair") / "noise.pair"
    images = np.random.default_rng(1).integers(0, 256, (60, 8, 8, 1)).astype(np.uint8)
    Pair.train(
        images, name="noise", source="made by a test", licence="none", dim=4, network="untrained"
    ).save(path)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda told, arrays: told.pop("radius"),
        lambda told, arrays: told.update(radius=0.0),
        lambda told, arrays: told.update(radius=float("nan")),
        lambda told, arrays: arrays.pop("weights"),
        lambda told, arrays: arrays.update(weights=arrays["weights"][:5]),
        lambda told, arrays: arrays.update(centre=arrays["centre"] + 0.3),
        lambda told, arrays: arrays.update(centre=arrays["centre"] * np.nan),
        lambda told, arrays: arrays.update(features=arrays["features"][:, :2]),
    ],
)
def test_a_damaged_pair_is_refused(pair: Path, tmp_path: Path, change: Changed) -> None:
    with safe_open(pair, "numpy") as file:
        told = json.loads(file.metadata()["pair"])
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    change(told, arrays)
    whole = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    save_file(whole, tmp_path / "other.pair", {"pair": json.dumps(told)})
    with pytest.raises(SfumatoError, match="is not a pair that"):
        load_pair(tmp_path / "other.pair")
