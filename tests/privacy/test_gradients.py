"""No row adds more than the clipping norm, whatever it holds, by any of the ways to a sum."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from sfumato.classify.network import network
from sfumato.modelling.network_learner import total_loss
from sfumato.privacy.gradients import (
    clip_factors,
    clipped_gradients,
    clipped_sum_of,
    per_example_gradients,
)


def norm(parts: list[Tensor]) -> float:
    return math.sqrt(sum(float(part.double().square().sum()) for part in parts))


def generic() -> nn.Module:
    """A module that only autodiff can do: it has a layer that is neither linear nor convolution."""
    return nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Tanh(), nn.Linear(5, 3))


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 5, bias=False), nn.ReLU(), nn.Linear(5, 3))


def padded() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, stride=2, padding=1, bias=False),
        nn.Tanh(),
        nn.Conv2d(3, 4, 2, dilation=2),
        nn.Flatten(),
        nn.Linear(4 * 2 * 2, 3),
    )


def named() -> nn.Module:
    """Padding by name is left to autodiff."""
    return nn.Sequential(nn.Conv2d(2, 1, 3, padding="same"), nn.Flatten(), nn.Linear(64, 3))


CASES = [(linear, (6,)), (generic, (6,)), (padded, (2, 8, 8)), (named, (2, 8, 8))]


@pytest.mark.parametrize(("make", "shape"), CASES)
@pytest.mark.parametrize("clip", [1e-3, 1.0, 50.0])
def test_each_way_gives_the_sum_of_the_rows_clipped_gradients(
    make: type[nn.Module], shape: tuple[int, ...], clip: float
) -> None:
    torch.manual_seed(0)
    module, x, y = make(), 3 * torch.randn(12, *shape), torch.arange(12) % 3
    found = clipped_gradients(module, total_loss, x, y, clip)
    expected = [torch.zeros_like(parameter) for parameter in module.parameters()]
    for row in range(12):
        module.zero_grad()
        total_loss(module(x[row : row + 1]), y[row : row + 1]).backward()
        gradient = [p.grad for p in module.parameters() if p.grad is not None]
        factor = min(1 / clip, 1 / norm(gradient))  # sums are in units of the clipping norm
        for total, part in zip(expected, gradient, strict=True):
            total += factor * part
    for left, right in zip(found, expected, strict=True):
        assert torch.allclose(left, right, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("make", "shape"), CASES)
@pytest.mark.parametrize("scale", [0.0, 1e-20, 1.0, 1e4, 1e12, 1e25, 1e37, math.nan, math.inf])
def test_no_row_adds_more_than_the_clipping_norm(
    make: type[nn.Module], shape: tuple[int, ...], scale: float
) -> None:
    torch.manual_seed(0)
    module, clip = make(), 0.5
    for row in range(6):
        x = scale * torch.randn(1, *shape)
        added = clipped_gradients(module, total_loss, x, torch.tensor([row % 3]), clip)
        assert norm(added) <= 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e38])
def test_a_row_without_a_gradient_leaves_the_others_alone(bad: float) -> None:
    torch.manual_seed(0)
    for make, shape in CASES:
        module, x, y = make(), torch.randn(5, *shape), torch.tensor([0, 1, 2, 0, 1])
        spoilt = x.clone()
        spoilt[2] = bad
        others = [0, 1, 3, 4]
        found = clipped_gradients(module, total_loss, spoilt, y, 1.0)
        kept = clipped_gradients(module, total_loss, x[others], y[others], 1.0)
        alone = clipped_gradients(module, total_loss, spoilt[2:3], y[2:3], 1.0)
        for total, left, right in zip(found, kept, alone, strict=True):
            assert torch.allclose(total, left + right, atol=1e-5)


def test_gradients_that_are_not_finite_or_beyond_all_reason_count_for_nothing() -> None:
    squares = torch.tensor([1e61, math.inf, math.nan], dtype=torch.float64)
    assert clip_factors(squares, 1.0).tolist() == [0.0, 0.0, 0.0]


def test_written_out_gradients_of_any_size_are_clipped() -> None:
    torch.manual_seed(0)
    for scale in (0.0, 1e-30, 1.0, 1e20, 3e38):
        rows = [scale * torch.rand(1, 1000), scale * torch.rand(1, 3, 4)]
        assert norm(clipped_sum_of(rows, 0.1)) <= 1


def test_the_quick_way_agrees_with_autodiff_on_the_baseline_network() -> None:
    torch.manual_seed(0)
    module, x, y = network(28, 28, 1, 10), torch.rand(4, 1, 28, 28), torch.arange(4)
    quick = clipped_gradients(module, total_loss, x, y, 0.5)
    slow = clipped_sum_of(per_example_gradients(module, total_loss, x, y), 0.5)
    for left, right in zip(quick, slow, strict=True):
        assert torch.allclose(left, right, atol=1e-6)


def test_modules_without_gradients_of_one_row_are_refused() -> None:
    x, y = torch.rand(4, 6), torch.arange(4) % 3
    mixing = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
    with pytest.raises(TypeError, match="mixes rows"):
        clipped_gradients(mixing, total_loss, x, y, 1.0)
    layer = nn.Linear(6, 6)
    with pytest.raises(TypeError, match="used twice"):
        clipped_gradients(nn.Sequential(layer, layer), total_loss, x, y, 1.0)
