"""The spectrum: exact for private images, differentiable for generated ones, inside its range."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.data.batch import Batch
from sfumato.papers.embedding.spectrum import Spectrum
from sfumato.statistics.frequencies import LowFrequencies

SHAPES = [(6, 5, 1), (4, 4, 3)]


def _images(shape: tuple[int, int, int], count: int) -> Batch:
    pixels = np.random.default_rng(0).integers(0, 256, (count, int(np.prod(shape))))
    return Batch(np.zeros((count, 1), np.int32), (pixels / 255).astype(np.float32))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_has_the_same_numbers_wherever_it_stands(shape: tuple[int, int, int]) -> None:
    spectrum = Spectrum(LowFrequencies(shape, 7))
    images = _images(shape, 50)
    whole = spectrum(images)
    for row in range(50):
        assert np.array_equal(spectrum(images.where(slice(row, row + 1)))[0], whole[row])


@pytest.mark.parametrize("shape", SHAPES)
def test_generated_and_private_images_have_the_same_numbers(shape: tuple[int, int, int]) -> None:
    torch = pytest.importorskip("torch")
    spectrum = Spectrum(LowFrequencies(shape, 7))
    images = _images(shape, 50)
    points = torch.from_numpy(images.unit).requires_grad_()
    numbers = spectrum.of_tensor(points)
    private = np.clip(spectrum(images), 0, 1)
    assert np.abs(numbers.detach().numpy() - private).max() < 1e-3
    numbers.sum().backward()
    assert points.grad.abs().max() > 0


def test_grey_is_in_the_middle_and_brightness_reaches_the_edges() -> None:
    spectrum = Spectrum(LowFrequencies((6, 5, 1), 7))
    levels = np.array([[0.0], [1.0]], np.float32) * np.ones(30, np.float32)
    black, white = spectrum(Batch(np.zeros((2, 1), np.int32), levels))
    assert black[0] == pytest.approx(0, abs=1e-3)
    assert white[0] == pytest.approx(1, abs=1e-3)
    assert black[1:] == pytest.approx(np.full(6, 0.5), abs=1e-3)


def test_higher_frequencies_have_smaller_ranges() -> None:
    frequencies = LowFrequencies((8, 8, 3), 40)
    assert frequencies.sizes[0] == 0
    assert (np.diff(frequencies.sizes) >= 0).all()
    assert len(frequencies.sizes) == Spectrum(frequencies).size == 40
