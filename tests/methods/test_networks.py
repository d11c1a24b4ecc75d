"""Generators: outputs of the right shape and type, driven by the class."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from sfumato.modelling.networks import (  # noqa: E402
    Generator,
    ImageGenerator,
    ResidualGenerator,
    TableGenerator,
)


def test_a_table_generator_gives_unit_numbers_and_probabilities() -> None:
    generator = TableGenerator(code=5, classes=2, numbers=3, blocks=(2, 4))
    points = generator(torch.randn(10, 5), torch.eye(2)[[0, 1] * 5])
    numbers, pair, four = points.split([3, 2, 4], dim=1)
    assert 0 <= numbers.min() <= numbers.max() <= 1
    for block in (pair, four):
        assert torch.allclose(block.sum(1), torch.ones(10))


@pytest.mark.parametrize("kind", [ImageGenerator, ResidualGenerator])
@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (7, 10, 1), (1, 1, 1), (40, 70, 3)])
def test_an_image_generator_fits_every_shape(
    shape: tuple[int, int, int], kind: Callable[..., Generator]
) -> None:
    generator = kind(5, 3, shape)
    pixels = generator(torch.randn(6, 5), torch.eye(3)[[0, 1, 2] * 2])
    assert pixels.shape == (6, shape[0] * shape[1] * shape[2])
    assert 0 <= pixels.min() <= pixels.max() <= 1


def test_the_class_changes_the_output() -> None:
    images = ImageGenerator(5, 2, (8, 8, 1)), ResidualGenerator(5, 2, (8, 8, 1))
    for generator in (TableGenerator(5, 2, 3, (2,)), *images):
        generator.eval()
        codes = torch.zeros(1, 5)
        first, second = (generator(codes, torch.eye(2)[[index]]) for index in (0, 1))
        assert not torch.allclose(first, second)


def test_gradients_reach_every_weight() -> None:
    images = ImageGenerator(5, 2, (8, 8, 1)), ResidualGenerator(5, 2, (8, 8, 1))
    for generator in (TableGenerator(5, 2, 3, (2,)), *images):
        target = torch.randn(1, 5 if isinstance(generator, TableGenerator) else 64)
        points = generator(torch.randn(16, 5), torch.eye(2)[[0, 1] * 8])
        (points * target).sum().backward()
        assert all(weight.grad is not None for weight in generator.parameters())
