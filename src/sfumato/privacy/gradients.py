"""Gradients row by row, clipped: what one row may add to a noisy sum.

Three ways to the same sum. `clipped_sum_of` takes gradients that are written out. For linear and
convolutional layers they need not be: the gradient of a linear layer's weights is the outer
product d a' of the error d at its output and its input a, of norm |d||a|, and the clipped sum is
one product of matrices (Goodfellow 2015). Any other module goes through vectorised autodiff.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Loss = Callable[[Tensor, Tensor], Tensor]
"""Takes a module's outputs and the labels, and gives the sum of the rows' losses."""

# Clipping aims this much lower, so that rounding in single precision cannot pass the norm.
CLIP_SLACK = 1e-4
# A gradient longer than this counts as not finite: its product with a small factor is not exact.
LARGEST_NORM = 1e30


def clip_factors(squared_norms: Tensor, clip: float) -> Tensor:
    """Give the factor that brings each gradient to the norm `clip`, given its squared norm.

    Zero for a norm that is not finite or beyond all reason; such a row must be left out of the
    sum as well, for zero times infinity is no number.

    >>> clip_factors(torch.tensor([4.0, 0.25, 0.0, torch.nan, torch.inf]), 1.0).tolist()
    [0.49995, 1.0, 1.0, 0.0, 0.0]
    """
    norms = squared_norms.double().sqrt()
    factors = ((1 - CLIP_SLACK) * clip / norms).clamp(max=1)
    return torch.where(norms < LARGEST_NORM, factors, 0.0)


def clipped_sum_of(gradients: Sequence[Tensor], clip: float) -> list[Tensor]:
    """Sum gradients, given per row for each parameter, each row's whole clipped to `clip`.

    The sum is in units of `clip`.
    """
    squares = torch.stack([_squares(gradient) for gradient in gradients]).sum(0)
    factors = clip_factors(squares, clip) / clip
    return [_weighted_sum(factors, gradient) for gradient in gradients]


def clipped_gradients(
    module: nn.Module, loss: Loss, x: Tensor, y: Tensor, clip: float
) -> list[Tensor]:
    """Sum the rows' clipped gradients for each parameter of a module, in units of `clip`.

    Each row's output must depend on that row alone: no batch normalisation.
    """
    layers = [layer for layer in module.modules() if list(layer.parameters(recurse=False))]
    for layer in layers:
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise TypeError("batch normalisation mixes rows: there are no gradients of one row")
    if not all(_is_plain(layer) for layer in layers):
        return clipped_sum_of(per_example_gradients(module, loss, x, y), clip)
    parts = _layer_gradients(module, layers, loss, x, y)
    factors = clip_factors(torch.stack([part.squares() for part in parts]).sum(0), clip) / clip
    return [total for part in parts for total in part.weighted_sums(factors)]


def per_example_gradients(module: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> list[Tensor]:
    """Give each row's gradient for each parameter of any module, by vectorised autodiff."""
    from torch.func import functional_call, grad, vmap

    parameters = {name: value.detach() for name, value in module.named_parameters()}

    def row_loss(values: dict[str, Tensor], point: Tensor, label: Tensor) -> Tensor:
        return loss(functional_call(module, values, (point[None],)), label[None])

    found = vmap(grad(row_loss), in_dims=(None, 0, 0))(parameters, x, y)
    return [found[name] for name in parameters]


@dataclass(frozen=True)
class _LinearGradients:
    """Rows' gradients of a linear layer, not written out: errors d and inputs a."""

    errors: Tensor
    inputs: Tensor
    bias: bool

    def squares(self) -> Tensor:
        return _squares(self.errors) * (_squares(self.inputs) + self.bias)

    def weighted_sums(self, factors: Tensor) -> list[Tensor]:
        kept = factors > 0
        errors = self.errors[kept] * factors[kept, None].to(self.errors.dtype)
        return [errors.T @ self.inputs[kept], *([errors.sum(0)] if self.bias else [])]


@dataclass(frozen=True)
class _WrittenGradients:
    """Rows' gradients of a layer, written out for each parameter."""

    gradients: list[Tensor]

    def squares(self) -> Tensor:
        return torch.stack([_squares(gradient) for gradient in self.gradients]).sum(0)

    def weighted_sums(self, factors: Tensor) -> list[Tensor]:
        return [_weighted_sum(factors, gradient) for gradient in self.gradients]


def _layer_gradients(
    module: nn.Module, layers: list[nn.Module], loss: Loss, x: Tensor, y: Tensor
) -> list[_LinearGradients | _WrittenGradients]:
    """Find each layer's inputs on the way forward and its errors on the way back."""
    inputs: dict[nn.Module, Tensor] = {}
    outputs: dict[nn.Module, Tensor] = {}

    def note(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        if layer in outputs:
            raise TypeError("a layer is used twice: its gradients cannot be told apart")
        inputs[layer], outputs[layer] = given[0].detach(), output

    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        total = loss(module(x), y)
    finally:
        for hook in hooks:
            hook.remove()
    errors = torch.autograd.grad(total, [outputs[layer] for layer in layers])
    return [
        _gradients_of(layer, inputs[layer], error)
        for layer, error in zip(layers, errors, strict=True)
    ]


def _gradients_of(
    layer: nn.Module, inputs: Tensor, errors: Tensor
) -> _LinearGradients | _WrittenGradients:
    bias = layer.bias is not None
    if not isinstance(layer, nn.Conv2d):
        if inputs.ndim != 2:
            raise TypeError("a linear layer must see one vector for each row")
        return _LinearGradients(errors, inputs, bias)
    # Padding by name is left to autodiff (`_is_plain`), so here it is numbers.
    padding: Any = layer.padding
    patches = functional.unfold(inputs, layer.kernel_size, layer.dilation, padding, layer.stride)
    flat = errors.flatten(2)
    weights = torch.bmm(flat, patches.transpose(1, 2))
    return _WrittenGradients([weights.reshape(-1, *layer.weight.shape), *([flat.sum(2)] * bias)])


def _is_plain(layer: nn.Module) -> bool:
    if isinstance(layer, nn.Conv2d):
        numbers = not isinstance(layer.padding, str)
        return layer.groups == 1 and layer.padding_mode == "zeros" and numbers
    return isinstance(layer, nn.Linear)


def _squares(gradient: Tensor) -> Tensor:
    """Give squared norms in double precision, which neither overflows nor loses small terms."""
    return gradient.flatten(1).double().square().sum(1)


def _weighted_sum(factors: Tensor, gradient: Tensor) -> Tensor:
    kept = factors > 0
    total: Tensor = factors[kept].to(gradient.dtype) @ gradient[kept].flatten(1)
    return total.reshape(gradient.shape[1:])
