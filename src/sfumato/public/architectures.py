"""Networks built from arrays of their published weights, without a head.

Where TensorFlow pads a convolution of stride 2, its window starts at the first pixel of an image
of even sides (for a kernel of 3; one before for 5). Here this holds for all sides, and a last row
and column of zeros make odd ones fit: so a network of many strides takes any image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Weights = Mapping[str, NDArray[Any]]


def vgg19(weights: Weights) -> nn.Module:
    """Build the 16 convolutions of VGG-19; the file's order is blue, green, red, ours is not."""
    layers: list[nn.Module] = []
    for block, count in enumerate((2, 2, 4, 4, 4), 1):
        layers += [nn.MaxPool2d(2)] if block > 1 else []
        for name in (f"conv{block}_{index}" for index in range(1, count + 1)):
            if f"{name}.q" in weights:
                kernel = weights[f"{name}.q"] * weights[f"{name}.scale"][:, None, None, None]
            else:
                kernel = weights[f"{name}.weight"]
            kernel = kernel[:, ::-1] if name == "conv1_1" else kernel
            layers += [_convolution(kernel, weights[f"{name}.bias"], padding=1), nn.ReLU()]
    return nn.Sequential(*layers)


def alexnet(weights: Weights) -> nn.Module:
    """Build the 5 convolutions of AlexNet."""
    layers: list[nn.Module] = []
    for index, (stride, padding) in enumerate(((4, 2), (1, 2), (1, 1), (1, 1), (1, 1)), 1):
        layers += [nn.MaxPool2d(3, 2)] if index in (2, 3) else []
        kernel, bias = weights[f"conv{index}.weight"], weights[f"conv{index}.bias"]
        layers += [_convolution(kernel, bias, stride=stride, padding=padding), nn.ReLU()]
    return nn.Sequential(*layers)


def efficientnet_lite0(weights: Weights) -> nn.Module:
    """Build the stem and the 16 inverted residuals of EfficientNet-Lite0."""

    def unit(convolution: str, normalisation: str, stride: int = 1) -> list[nn.Module]:
        kinds = ("weight", "bias", "running_mean", "running_var")
        moments = [weights[f"{normalisation}.{kind}"] for kind in kinds]
        return _normalised(weights[f"{convolution}.weight"], moments, stride)

    layers = [*unit("_conv_stem", "_bn0", 2), nn.ReLU6()]
    for index in range(16):
        name, stride = f"_blocks.{index}.", 2 if index in (1, 3, 5, 11) else 1
        inner: list[nn.Module] = []
        if index > 0:
            inner += [*unit(f"{name}_expand_conv", f"{name}_bn0"), nn.ReLU6()]
        inner += [*unit(f"{name}_depthwise_conv", f"{name}_bn1", stride), nn.ReLU6()]
        inner += unit(f"{name}_project_conv", f"{name}_bn2")
        repeated = index in (2, 4, 6, 7, 9, 10, 12, 13, 14)
        layers.append(_Residual(*inner) if repeated else nn.Sequential(*inner))
    return nn.Sequential(*layers)


def mobilenet(weights: Weights) -> nn.Module:
    """Build the convolutions of MobileNet, depthwise and pointwise in turn."""

    def unit(name: str, kernel: str, stride: int = 1) -> list[nn.Module]:
        kinds = ("gamma", "beta", "moving_mean", "moving_variance")
        moments = [weights[f"{name}_bn/{kind}"] for kind in kinds]
        order = (2, 3, 0, 1) if kernel == "depthwise_kernel" else (3, 2, 0, 1)
        found = weights[f"{name}/{kernel}"].transpose(order)
        return [*_normalised(found, moments, stride), nn.ReLU6()]

    layers = unit("conv1", "kernel", 2)
    for index in range(1, 14):
        layers += unit(f"conv_dw_{index}", "depthwise_kernel", 2 if index in (2, 4, 6, 12) else 1)
        layers += unit(f"conv_pw_{index}", "kernel")
    return nn.Sequential(*layers)


def untrained(seed: int) -> nn.Module:
    """Draw a small network of VGG's kind; uniform draws are the same bits on every machine."""
    rng = np.random.default_rng(seed)
    layers: list[nn.Module] = []
    for before, after in ((3, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256)):
        layers += [nn.MaxPool2d(2)] if before < after and before > 3 else []
        draws = rng.random((after, before, 3, 3)) * 2 - 1
        kernel = draws * np.sqrt(6 / (9 * before))  # He et al. 2015: variance 2 / inputs
        layers += [_convolution(kernel, np.zeros(after), padding=1), nn.ReLU()]
    return nn.Sequential(*layers)


class _Residual(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.branch = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = images + self.branch(images)
        return found


def _convolution(kernel: NDArray[Any], bias: NDArray[Any] | None, **options: Any) -> nn.Conv2d:
    """Make a convolution of a kernel (output, input, height, width); depthwise if it has one."""
    outputs, inputs, *size = kernel.shape
    groups = outputs if inputs == 1 else 1
    made = nn.Conv2d(
        inputs * groups, outputs, tuple(size), groups=groups, bias=bias is not None, **options
    )
    made.weight.data = _tensor(kernel)
    if bias is not None:
        made.bias = nn.Parameter(_tensor(bias))
    return made


def _normalised(kernel: NDArray[Any], moments: list[NDArray[Any]], stride: int) -> list[nn.Module]:
    """Make a convolution of TensorFlow's padding, and its normalisation."""
    side = kernel.shape[-1]
    norm = nn.BatchNorm2d(len(kernel), eps=1e-3)
    names = ("weight", "bias", "running_mean", "running_var")
    norm.load_state_dict(dict(zip(names, map(_tensor, moments), strict=True)), strict=False)
    if stride == 1:
        return [_convolution(kernel, None, padding=side // 2), norm]
    before, after = side // 2 - 1, side // 2 + 1
    pad = nn.ZeroPad2d((before, after, before, after))
    return [pad, _convolution(kernel, None, stride=stride), norm]


def _tensor(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
