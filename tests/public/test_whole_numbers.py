"""Features of a public network depend on one image alone, bit by bit, and cost no accuracy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from sfumato.public.provenance import Provenance
from sfumato.public.whole_numbers import WholeNumberNetwork

ABOUT = Provenance(name="tiny", source="made by a test", digest="0" * 64, licence="none")
IMAGES = np.random.default_rng(0).integers(0, 256, (70, 12, 10, 3), dtype=np.uint8)


def network(seed: int = 0, scale: float = 1.0) -> WholeNumberNetwork:
    torch.manual_seed(seed)
    layers = [
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.ReLU6(),
        nn.Conv2d(8, 12, 3, stride=2, dilation=2, padding=2), nn.ReLU(), nn.AvgPool2d(2, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5),
    ]  # fmt: skip
    with torch.no_grad():
        for layer in layers:
            for parameter in layer.parameters():
                parameter *= scale
    return WholeNumberNetwork(layers, ABOUT, (0.5, 0.4, 0.3), (0.2, 0.2, 0.3))


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e-3])
def test_the_bits_are_the_same_in_any_batch_and_with_any_number_of_threads(scale: float) -> None:
    found = network(scale=scale)
    together = found(IMAGES)
    assert np.abs(together).max() > 0
    assert np.array_equal(together, np.concatenate([found(image[None]) for image in IMAGES]))
    assert np.array_equal(together[::-1], found(IMAGES[::-1]))
    assert np.array_equal(together[3:17], found(IMAGES[3:17]))
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            assert np.array_equal(together, found(IMAGES))
    finally:
        torch.set_num_threads(threads)


def test_whole_numbers_cost_no_accuracy() -> None:
    found = network()
    plain = found.of_tensor(torch.from_numpy(IMAGES).permute(0, 3, 1, 2).double() / 255)
    assert np.abs(found(IMAGES) - plain.numpy()).max() < 1e-3 * float(plain.std())


def test_generated_images_pass_with_a_gradient() -> None:
    points = torch.rand(4, 3, 12, 10, requires_grad=True)
    network().of_tensor(points).sum().backward()
    assert points.grad is not None
    assert float(points.grad.abs().sum()) > 0


def test_a_layer_without_an_exact_evaluation_is_refused() -> None:
    with pytest.raises(TypeError, match="BatchNorm2d has no evaluation in whole numbers"):
        WholeNumberNetwork([nn.BatchNorm2d(3)], ABOUT)
