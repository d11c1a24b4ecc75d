"""Networks in whole numbers: an image's features depend on that image alone, bit by bit.

The same convolution in floating point rounds an image differently when its neighbours in the batch
change, or the number of threads. Then one image would move the features of others, and a sum over
images by more than its sensitivity. So private images go through this evaluation:

- Activations are whole multiples of 2^-BITS, no larger than REACH; weights are whole multiples of a
  power of two that is chosen, layer by layer, so that no sum of products passes 2^52 of these
  steps: sum |w| · REACH bounds every partial sum. Doubles hold such sums exactly, in any order.
- Everything else (bias, rounding, ReLU, the largest of a window, a quotient) is done number by
  number, which IEEE 754 rounds in one way wherever a number stands.

The weights are public, so how finely they are rounded may depend on them. Generated images need
none of this: they go through the network as it is (`of_tensor`), which is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sfumato.public.provenance import Provenance

BITS = 14
REACH = 2.0**10

_AT_ONCE = 64


class WholeNumberNetwork:
    """A public network of linear layers, convolutions, rectifiers and pools, layer after layer.

    Parameters
    ----------
    layers
        `Linear`, `Conv2d`, `ReLU`, `ReLU6`, `MaxPool2d`, `AvgPool2d`, `AdaptiveAvgPool2d(1)`,
        `Flatten` and `Identity`, in order.
    about
        Where the network comes from.
    mean, deviation
        What is taken from pixels in [0, 1], and what they are divided by, channel by channel.
    """

    def __init__(
        self,
        layers: Sequence[nn.Module],
        about: Provenance,
        mean: Sequence[float] = (0.0,),
        deviation: Sequence[float] = (1.0,),
    ) -> None:
        self.about = about
        self.layers = nn.Sequential(*layers).eval().requires_grad_(False)
        self._mean = torch.tensor(mean, dtype=torch.float64).reshape(1, -1, 1, 1)
        self._deviation = torch.tensor(deviation, dtype=torch.float64).reshape(1, -1, 1, 1)
        for layer in self.layers:
            if type(layer) not in _EXACT:
                known = ", ".join(kind.__name__ for kind in _EXACT)
                kind = type(layer).__name__
                raise TypeError(f"{kind} has no evaluation in whole numbers; these have: {known}")
        self._private = deepcopy(self.layers).double()  # apart: no other call may round these

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Give the features of images (n, height, width, channels), each from its image alone."""
        parts = [self._features(images[i : i + _AT_ONCE]) for i in range(0, len(images), _AT_ONCE)]
        return np.concatenate(parts)

    def of_tensor(self, images: Tensor) -> Tensor:
        """Give the features of images (n, channels, height, width) in [0, 1], differentiably."""
        prepared = (images - self._mean.to(images)) / self._deviation.to(images)
        features: Tensor = self.layers.to(images.dtype)(prepared)
        return features

    def _features(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        with torch.no_grad():
            pixels = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).double()
            values = _on_grid((pixels / 255 - self._mean) / self._deviation)
            for layer in self._private:
                values = _EXACT[type(layer)](layer, values)
        found: NDArray[np.float64] = values.numpy()
        return found


def _on_grid(values: Tensor) -> Tensor:
    return (values.clamp(-REACH, REACH) * 2.0**BITS).round_().mul_(2.0**-BITS)


def _whole_weights(weights: Tensor) -> Tensor:
    """Round the weights of each output, by (output, input), so that no sum passes 2^52 steps."""
    largest = float(weights.abs().sum(dim=1).max())
    bits = 52 - BITS - math.ceil(math.log2(REACH * max(largest, 1e-30)))
    return (weights * 2.0**bits).round().mul_(2.0**-bits)


def _with_bias(sums: Tensor, bias: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    return _on_grid(sums if bias is None else sums + bias.double().reshape(shape))


def _linear(layer: Any, values: Tensor) -> Tensor:
    sums = values @ _whole_weights(layer.weight.double()).T
    return _with_bias(sums, layer.bias, (1, -1))


def _convolution(layer: Any, values: Tensor) -> Tensor:
    """Unfold windows and multiply, group by group: a sum of products, and no quicker transform."""
    count, groups = len(values), layer.groups
    weights = layer.weight.double()
    whole = _whole_weights(weights.flatten(1))
    windows = functional.unfold(
        values, layer.kernel_size, layer.dilation, layer.padding, layer.stride
    )
    parts = windows.reshape(count, groups, -1, windows.shape[-1])
    filters = whole.reshape(groups, -1, whole.shape[1])
    sums = torch.einsum("gok,ngkl->ngol", filters, parts)
    height = _output_size(values.shape[2], layer, 0)
    return _with_bias(sums.reshape(count, len(weights), height, -1), layer.bias, (1, -1, 1, 1))


def _output_size(size: int, layer: Any, axis: int) -> int:
    reach = layer.dilation[axis] * (layer.kernel_size[axis] - 1) + 1
    return int((size + 2 * layer.padding[axis] - reach) // layer.stride[axis] + 1)


def _average(layer: Any, values: Tensor) -> Tensor:
    """Add up a window, exactly, and divide."""
    kernel = layer.kernel_size
    sides = (kernel, kernel) if isinstance(kernel, int) else kernel
    sums = functional.avg_pool2d(values, sides, layer.stride, layer.padding, divisor_override=1)
    return _on_grid(sums / math.prod(sides))


_EXACT: dict[type[nn.Module], Any] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.ReLU: lambda _, values: values.clamp(min=0),
    nn.ReLU6: lambda _, values: values.clamp(0, 6),
    nn.MaxPool2d: lambda layer, values: layer(values),
    nn.AvgPool2d: _average,
    nn.AdaptiveAvgPool2d: lambda _, values: _on_grid(
        values.sum(dim=(2, 3), keepdim=True) / (values.shape[2] * values.shape[3])
    ),
    nn.Flatten: lambda layer, values: layer(values),
    nn.Identity: lambda _, values: values,
}
