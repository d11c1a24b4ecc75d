"""The autoencoder of pictures, and the decoder that draws by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import SfumatoError

torch = pytest.importorskip("torch")

from sfumato.public.catalogue import picture_code  # noqa: E402
from sfumato.public.flow_decoder import FlowDecoder  # noqa: E402
from sfumato.public.picture_code import FILE, PictureCode, as_images, as_pictures  # noqa: E402


def tiny_code(folder: Path) -> Path:
    """Weights of TAEF2's form, with few channels, drawn at random."""
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}

    def convolution(name: str, outputs: int, inputs: int, side: int = 3, bias: bool = True) -> None:
        spread = (side * side * inputs) ** -0.5
        arrays[f"{name}.weight"] = rng.normal(size=(outputs, inputs, side, side)) * spread
        if bias:
            arrays[f"{name}.bias"] = np.zeros(outputs)

    for name, outputs, inputs in (("enc.0", 8, 3), ("enc.14", 4, 8), ("dec.1", 8, 4)):
        convolution(name, outputs, inputs)
    convolution("dec.19", 3, 8)
    for name in ("enc.2", "enc.6", "enc.10", "dec.7", "dec.12", "dec.17"):
        convolution(name, 8, 8, bias=False)
    for name in ("enc.1.conv", "dec.3.conv"):
        for layer in (0, 2, 4):
            convolution(f"{name}.{layer}", 8, 8)
    convolution("dec.3.pool.0", 16, 8, side=1)
    convolution("dec.3.pool.3", 8, 16, side=1)
    arrays |= {"dec.3.pool.1.weight": np.ones(16), "dec.3.pool.1.bias": np.zeros(16)}
    path = folder / FILE
    np.savez(path, **{key: value.astype(np.float16) for key, value in arrays.items()})  # type: ignore[arg-type]
    return path


def test_an_eighth_of_the_resolution_there_and_back(tmp_path: Path) -> None:
    code = PictureCode(tiny_code(tmp_path))
    grey = np.random.default_rng(0).integers(0, 256, (2, 20, 28, 1), np.uint8)
    pictures = as_pictures(grey)
    assert pictures.shape == (2, 3, 24, 32)
    latent = code.encode(pictures)
    assert latent.shape == (2, 4, 3, 4)
    drawn = code.decode(latent)
    assert drawn.shape == pictures.shape
    assert 0 <= drawn.min() <= drawn.max() <= 1
    assert as_images(drawn, (20, 28, 1)).shape == grey.shape
    assert np.array_equal(as_images(pictures, (20, 28, 1)), grey)


class Blocks(PictureCode):
    """A code that can be predicted: the mean of each block of pixels."""

    def __init__(self) -> None:
        self.about = None  # type: ignore[assignment]

    def encode(self, pictures: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.avg_pool2d(pictures, 8)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(codes, scale_factor=8.0).clamp(0, 1)


def test_what_is_decoded_follows_the_features() -> None:
    """Bright and dark pictures are told apart by the one feature that tells them."""
    rng = np.random.default_rng(0)
    bright = np.repeat([False, True], 60)
    level = rng.integers(0, 60, 120) + 180 * bright
    images = np.broadcast_to(level[:, None, None, None], (120, 8, 8, 3)).astype(np.uint8)
    features = np.where(bright, 1.0, -1.0).astype(np.float32)[:, None]
    trained = FlowDecoder.train(features, images, Blocks(), steps=200)
    again = FlowDecoder(trained.arrays(), Blocks(), (8, 8, 3))
    for feature, mean in ((-1.0, 30), (1.0, 210)):
        asked = np.full((50, 1), feature, np.float32)
        drawn = again(asked, seed=1)
        assert drawn.mean() == pytest.approx(mean, abs=40)
        assert np.array_equal(drawn, trained(asked, seed=1))
        assert not np.array_equal(drawn, trained(asked, seed=2))


def test_missing_weights_are_told_with_what_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SFUMATO_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SfumatoError, match=r"no weights of taef2 .*'gallery', which needs none"):
        picture_code()
    (tmp_path / "sfumato" / "weights").mkdir(parents=True)
    tiny_code(tmp_path / "sfumato" / "weights")
    assert picture_code().about.licence == "MIT"
