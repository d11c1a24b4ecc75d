"""Networks in whole numbers: an image's features depend on that image alone, bit by bit.

The same convolution in floating point rounds an image differently when its neighbours in the batch
change, or the number of threads. Then one image would move the features of others, and a sum over
images by more than its sensitivity. So private images go through this evaluation:

- Activations are whole multiples of 2^-BITS, no larger than REACH.
- The weights of one output, whose absolute values sum to less than 2^e, are rounded to multiples of
  2^-b with b = 52 - BITS - log2(REACH) - e. Then each product is a multiple of 2^-(b + BITS), and a
  partial sum of k of them is at most REACH · (2^e + k · 2^-(b + 1)): 2^52 + k · 2^(BITS + 9) such
  steps, which is below 2^53 for k < 2^29. Doubles hold such sums without rounding: in any order,
  split among any number of threads, with or without fused multiply-adds. The same holds for the
  sum of a pool's window, which is at most 2^24 · k steps of 2^-BITS.
- No step mixes images: sums are of tensors of the same rank with images along the first axis of
  both, nothing is joined or flattened along it, and each step must give one entry for each image.
- Everything else (a bias, a normalisation, rounding, ReLU, the largest of a window, a quotient, the
  sum of two branches) is done number by number, one operation at a time, which IEEE 754 rounds in
  one way wherever a number stands. A zero may have either sign; no later value depends on it.

The weights are public, so how finely they are rounded may depend on them. A normalisation after a
convolution is folded into its weights, as it would be for speed: what lies between the two may be
so small that the grid is coarse for it. Generated images need none of this: they go through the
network as it is, which is post-processing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from copy import copy
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn
from torch.nn import functional

BITS = 14
REACH = 2.0**10

_ROOM = 52 - BITS - round(math.log2(REACH))
_NEAR, _ROWS = 1 << 17, 256
"""Numbers in a piece, that it stays near the processor, and the fewest rows of a product."""

Step = Callable[..., Tensor]


class WholeNumberNetwork(fx.Interpreter):
    """A public network that `torch.fx` can trace, evaluated in whole numbers, step by step.

    Called with prepared images (n, channels, height, width) of doubles, it gives what the network
    gives: a tensor, or a tuple of tensors. A network that holds a step without an exact evaluation
    is refused by a `TypeError`.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__(traced(network))
        self._steps: dict[fx.Node, Step] = {}
        self._count = 0
        for node in self.graph.nodes:
            if node.op not in ("placeholder", "output") and node not in self._steps:
                self._steps |= self._exact(node)

    def __call__(self, images: Tensor) -> Any:
        """Evaluate the network; each image's values come from that image alone."""
        with torch.no_grad():
            # A copy, since a run keeps its values in its interpreter: threads would share them.
            single = copy(self)
            single._count = len(images)
            return single.run(_on_grid(images.double().clone()))

    def run_node(self, n: fx.Node) -> Any:
        """Take a node's own exact step; there is no other."""
        if n.op in ("placeholder", "output"):
            return super().run_node(n)
        arguments, options = self.fetch_args_kwargs_from_env(n)
        found = self._steps[n](*arguments, **options)
        if found.ndim < 2 or len(found) != self._count:
            raise TypeError(f"the step {n.name} does not give one value for each image")
        return found

    def _exact(self, node: fx.Node) -> dict[fx.Node, Step]:
        """Give a node's step, and that of a normalisation that is folded into it."""
        layer, kind = layer_of(node), kind_of(node)
        if kind is nn.Conv2d:
            (follower,) = node.users if len(node.users) == 1 else (None,)
            if follower is not None and kind_of(follower) is nn.BatchNorm2d:
                return {node: _convolution(layer, layer_of(follower)), follower: lambda x: x}
        if kind in _LAYERS:
            return {node: _LAYERS[kind](layer)}
        if kind is operator.add and not all(isinstance(arg, fx.Node) for arg in node.args):
            raise refusal("the sum of a tensor and a number")
        if kind in _FUNCTIONS and not set(node.kwargs) & {"alpha", "out"}:
            return {node: _FUNCTIONS[kind]}
        raise refusal(getattr(kind, "__name__", str(kind)))


def traced(network: nn.Module) -> fx.GraphModule:
    """Write a network, which is set to evaluation, as a graph of steps."""
    for layer in network.modules():
        if layer._forward_hooks or layer._forward_pre_hooks:
            raise TypeError(f"{type(layer).__name__} has a hook, which would see private images")
    for name, values in network.state_dict().items():
        if not bool(torch.isfinite(values).all()):
            raise TypeError(f"the weights {name} are not finite")
    try:
        return fx.symbolic_trace(nn.Sequential(network.eval()))  # a single layer is a step too
    except Exception as error:  # what a network's own code raises on a stand-in for a tensor
        name = type(network).__name__
        raise TypeError(f"torch.fx cannot trace {name}: {error}") from error


def layer_of(node: fx.Node) -> Any:
    """Give the layer that a node calls, or None."""
    owner = node.graph.owning_module
    if owner is None or node.op != "call_module":
        return None
    return owner.get_submodule(str(node.target))


def kind_of(node: fx.Node) -> Any:
    """Give the kind of a node's layer, or its function; what is one by several names is one."""
    if node.op == "call_module":
        return type(layer_of(node))
    return _SAME.get(node.target, node.target)


def refusal(what: str) -> TypeError:
    """Give the error that says that something has no exact evaluation, and what has."""
    known = ", ".join(kind.__name__ for kind in [*_LAYERS, *_FUNCTIONS])
    return TypeError(f"{what} has no evaluation in whole numbers; these have: {known}")


def _on_grid(values: Tensor) -> Tensor:
    """Round values in their place."""
    return values.clamp_(-REACH, REACH).mul_(2.0**BITS).round_().mul_(2.0**-BITS)


def _whole_weights(weights: NDArray[np.float64]) -> Tensor:
    """Round weights by (output, input) so that no output's partial sum passes 2^53 steps."""
    _, exponents = np.frexp(np.abs(weights).sum(axis=1, keepdims=True))
    bits = _ROOM - exponents
    return torch.from_numpy(np.ldexp(np.rint(np.ldexp(weights, bits)), -bits))


def _array(values: Tensor) -> NDArray[np.float64]:
    found: NDArray[np.float64] = values.detach().cpu().double().numpy()
    return found


def _bias(layer: Any) -> NDArray[np.float64]:
    return np.zeros(len(layer.weight)) if layer.bias is None else _array(layer.bias)


def _linear(layer: Any) -> Step:
    weights, bias = _whole_weights(_array(layer.weight)), torch.from_numpy(_bias(layer).copy())
    return lambda values: _on_grid((values @ weights.T).add_(bias))


def _scale_and_shift(layer: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if layer.running_mean is None:
        raise refusal("BatchNorm2d by the statistics of a batch")
    scale = 1 / np.sqrt(_array(layer.running_var) + layer.eps)
    if layer.weight is not None:
        scale = scale * _array(layer.weight)
    shift = -_array(layer.running_mean) * scale
    return scale, shift if layer.bias is None else shift + _array(layer.bias)


def _normalisation(layer: Any) -> Step:
    scale, shift = (
        torch.from_numpy(found).reshape(1, -1, 1, 1) for found in _scale_and_shift(layer)
    )
    return lambda values: _on_grid((values * scale).add_(shift))


def _convolution(layer: Any, normalisation: Any = None) -> Step:
    if layer.padding_mode != "zeros":
        raise refusal(f"Conv2d with padding mode '{layer.padding_mode}'")
    weights, bias = _array(layer.weight), _bias(layer)
    if normalisation is not None:
        scale, shift = _scale_and_shift(normalisation)
        weights, bias = weights * scale[:, None, None, None], bias * scale + shift
    if layer.groups == layer.in_channels == layer.out_channels:
        return _depthwise(layer, weights, bias)
    steps = [
        _dense(layer, group_weights, group_bias)
        for group_weights, group_bias in zip(
            np.split(weights, layer.groups), np.split(bias, layer.groups), strict=True
        )
    ]
    if len(steps) == 1:
        return steps[0]
    return lambda values: torch.cat(
        [step(part) for step, part in zip(steps, values.chunk(len(steps), 1), strict=True)], 1
    )


def _windows(layer: Any, values: Tensor) -> Tensor:
    """View the windows of a convolution: (n, channels, height, width, rows, columns)."""
    padded = functional.pad(values, layer._reversed_padding_repeated_twice)
    views = padded.contiguous(memory_format=torch.channels_last)
    for axis, size, dilation, stride in zip(
        (2, 3), layer.kernel_size, layer.dilation, layer.stride, strict=True
    ):
        views = views.unfold(axis, dilation * (size - 1) + 1, stride)
    return views[..., :: layer.dilation[0], :: layer.dilation[1]]


def _dense(layer: Any, weights: NDArray[np.float64], bias: NDArray[np.float64]) -> Step:
    """Unfold windows and multiply: a sum of products, and no quicker transform."""
    whole = _whole_weights(weights.transpose(0, 2, 3, 1).reshape(len(weights), -1))
    added = torch.from_numpy(bias.copy())

    def step(values: Tensor) -> Tensor:
        windows = _windows(layer, values).permute(0, 2, 3, 4, 5, 1)
        count, height, width = windows.shape[:3]
        at_once = max(_ROWS, _NEAR // whole.shape[1])
        rows = (
            lines.reshape(-1, whole.shape[1])
            for images in torch.split(windows, max(1, at_once // (height * width)))
            for lines in torch.split(images, max(1, at_once // width), dim=1)
        )
        sums = torch.cat([_on_grid((row @ whole.T).add_(added)) for row in rows])
        return sums.reshape(count, height, width, len(whole)).permute(0, 3, 1, 2)

    return step


def _depthwise(layer: Any, weights: NDArray[np.float64], bias: NDArray[np.float64]) -> Step:
    """Multiply and add number by number, one place of the window after another."""
    whole = _whole_weights(weights.reshape(len(weights), -1)).reshape(weights.shape)
    added = torch.from_numpy(bias.copy()).reshape(1, -1, 1, 1)
    places = list(product(*map(range, layer.kernel_size)))

    def step(values: Tensor) -> Tensor:
        found = []
        for piece in torch.split(values, max(1, _NEAR // values.shape[1:].numel())):
            windows = _windows(layer, piece)
            sums = windows[..., 0, 0] * whole[:, :, 0, 0, None]
            for row, column in places[1:]:
                sums.addcmul_(windows[..., row, column], whole[:, :, row, column, None])
            found.append(_on_grid(sums.add_(added)))
        return torch.cat(found)

    return step


def _average(layer: Any) -> Step:
    """Add up a window, exactly, and divide."""
    if layer.ceil_mode:
        raise refusal("AvgPool2d with ceil_mode")
    kernel = layer.kernel_size
    sides = (kernel, kernel) if isinstance(kernel, int) else kernel

    def total(values: Tensor) -> Tensor:
        return functional.avg_pool2d(values, sides, layer.stride, layer.padding, divisor_override=1)

    def step(values: Tensor) -> Tensor:
        counted = layer.divisor_override or math.prod(sides)
        if not layer.count_include_pad and not layer.divisor_override:
            counted = total(torch.ones_like(values[:1, :1]))
        return _on_grid(total(values) / counted)

    return step


def _whole_average(layer: Any) -> Step:
    if layer.output_size not in (1, (1, 1)):
        raise refusal(f"AdaptiveAvgPool2d to {layer.output_size}")
    return lambda values: _on_grid(
        values.sum(dim=(2, 3), keepdim=True) / (values.shape[2] * values.shape[3])
    )


def _constant_pad(layer: Any) -> Step:
    if layer.value != 0:
        raise refusal(f"ConstantPad2d with {layer.value}")
    return _itself(layer)


def _itself(layer: Any) -> Step:
    """Take a step that only chooses among its numbers, or moves them."""
    return lambda values: type(layer).forward(layer, values)  # and no hook


def _flattening(layer: Any) -> Step:
    return lambda values: _flattened(values, layer.start_dim, layer.end_dim)


def _flattened(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Lay axes one after the other, but not those of images."""
    if start_dim % input.ndim == 0:
        raise TypeError("flatten from axis 0 on would mix images")
    return input.flatten(start_dim, end_dim)


def _joined(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Put tensors side by side, but not as further images."""
    if dim % tensors[0].ndim == 0:
        raise TypeError("cat along axis 0 would make several images of one")
    return torch.cat(tensors, dim)


def _unchanged(_: Any) -> Step:
    return lambda values: values


def _relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Cut below zero; never in place, where another step may still need what was there."""
    return input.clamp(min=0)


def _relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return input.clamp(0, 6)


def _sum(input: Tensor, other: Tensor) -> Tensor:
    """Add two branches: exact, but for the reach."""
    if input.ndim != other.ndim or len(input) != len(other):
        raise TypeError("add of tensors of different ranks would mix images")
    return (input + other).clamp_(-REACH, REACH)


_LAYERS: dict[type[nn.Module], Callable[[Any], Step]] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.BatchNorm2d: _normalisation,
    nn.ReLU: lambda _: _relu,
    nn.ReLU6: lambda _: _relu6,
    nn.MaxPool2d: _itself,
    nn.AvgPool2d: _average,
    nn.AdaptiveAvgPool2d: _whole_average,
    nn.ZeroPad2d: _itself,
    nn.ConstantPad2d: _constant_pad,
    nn.Flatten: _flattening,
    nn.Identity: _unchanged,
    nn.Dropout: _unchanged,
    nn.Dropout2d: _unchanged,
}
_FUNCTIONS: dict[Any, Step] = {
    operator.add: _sum,
    functional.relu: _relu,
    functional.relu6: _relu6,
    functional.max_pool2d: functional.max_pool2d,
    torch.flatten: _flattened,
    torch.cat: _joined,
}
_SAME: dict[Any, Any] = {
    operator.iadd: operator.add,
    torch.add: operator.add,
    "add": operator.add,
    "add_": operator.add,
    torch.relu: functional.relu,
    "relu": functional.relu,
    "relu_": functional.relu,
    "flatten": torch.flatten,
}
