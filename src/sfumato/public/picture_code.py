"""TAEF2: a small public autoencoder of pictures, by which decoders draw.

Its code is a grid of 32 numbers for each 8 x 8 pixels; a picture that is decoded from a code is
sharp. Only public and generated pictures pass through it, so it may compute in floating point.
Weights: github madebyollin/taesd, MIT.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from sfumato.public.provenance import Provenance, digest_of_file

FILE = "taef2_f16.npz"
CELL = 8  # pixels to a place of the code
_LAYERS = {"enc": range(15), "dec": range(1, 20)}


class PictureCode:
    """The autoencoder: pictures in [0, 1] (n, 3, height, width) to codes, and back."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as arrays:
            self._weights = {
                name: torch.from_numpy(values.astype(np.float32)) for name, values in arrays.items()
            }
        self.about = Provenance(
            name="taef2",
            source="autoencoder of github madebyollin/taesd",
            digest=digest_of_file(path),
            licence="MIT",
        )

    def encode(self, pictures: Tensor) -> Tensor:
        """Give the codes of pictures whose sides are multiples of 8."""
        return self._run("enc", pictures)

    def decode(self, codes: Tensor) -> Tensor:
        """Draw the pictures of codes."""
        return self._run("dec", 3 * torch.tanh(codes / 3)).clamp(0, 1)

    def _run(self, half: str, found: Tensor) -> Tensor:
        for number in _LAYERS[half]:
            name = f"{half}.{number}"
            if f"{name}.conv.0.weight" in self._weights:
                found = self._block(found, name)
            elif f"{name}.weight" in self._weights:
                # Layers without a bias are those that change the resolution.
                resizes = f"{name}.bias" not in self._weights
                if resizes and half == "dec":
                    found = functional.interpolate(found, scale_factor=2)
                found = self._convolved(found, name, stride=2 if resizes and half == "enc" else 1)
                if name == "dec.1":
                    found = found.relu()
        return found

    def _block(self, found: Tensor, name: str) -> Tensor:
        if f"{name}.pool.0.weight" in self._weights:
            hidden = self._convolved(found, f"{name}.pool.0")
            hidden = functional.group_norm(hidden, 4, *self._pair(f"{name}.pool.1"))
            found = found + self._convolved(hidden.relu(), f"{name}.pool.3")
        hidden = self._convolved(found, f"{name}.conv.0").relu()
        hidden = self._convolved(hidden, f"{name}.conv.2").relu()
        return (found + self._convolved(hidden, f"{name}.conv.4")).relu()

    def _convolved(self, given: Tensor, name: str, stride: int = 1) -> Tensor:
        weight, bias = self._pair(name)
        return functional.conv2d(given, weight, bias, stride, padding=weight.shape[-1] // 2)

    def _pair(self, name: str) -> tuple[Tensor, Tensor | None]:
        return self._weights[f"{name}.weight"], self._weights.get(f"{name}.bias")


def as_pictures(images: NDArray[np.uint8]) -> Tensor:
    """Give images (n, height, width, channels) as colour pictures with sides that a code has."""
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float().div(255).expand(-1, 3, -1, -1)
    high, wide = (-size % CELL for size in images.shape[1:3])
    return functional.pad(pixels, (0, wide, 0, high), mode="replicate")


def as_images(pictures: Tensor, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Give pictures as images of a shape, cut and grey where it is."""
    height, width, channels = shape
    cut = pictures[:, :, :height, :width]
    cut = cut.mean(1, keepdim=True) if channels == 1 else cut
    whole: Any = cut.mul(255).round().byte().permute(0, 2, 3, 1).numpy()
    return np.ascontiguousarray(whole)
