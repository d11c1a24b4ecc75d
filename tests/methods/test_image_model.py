"""Image models draw what they were told to: in the pixel range, weighted and shifted by cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.errors import SfumatoError
from sfumato.methods.moments.classifier import DrawClassifier
from sfumato.methods.moments.image_model import Basis, Cells, Ellipses, ImageModel
from sfumato.methods.moments.relabelled import relabelled
from sfumato.modelling.clusters import k_means
from sfumato.statistics.frequencies import LowFrequencies
from sfumato.statistics.labelled_vectors import Centres
from sfumato.statistics.scattering import Scattering
from sfumato.statistics.turned import Turned

RNG = np.random.default_rng
FREQUENCIES = LowFrequencies((6, 6, 1), 10)
BASIS = Basis(FREQUENCIES, np.zeros(10), np.eye(10)[:, :3], np.full(3, 2.0))


def model(spread: float) -> ImageModel:
    """Two classes of one group each, whose first coordinates are -1 and 1."""
    means = np.array([[-1.0, 0, 0], [1.0, 0, 0]])
    ellipses = Ellipses(
        owner=np.arange(2),
        counts=np.full(2, 100.0),
        means=means,
        roots=np.stack([spread * np.eye(3)] * 2),
        radius_mean=np.zeros(2),
        radius_deviation=np.full(2, 0.1),
    )
    return ImageModel(BASIS, ellipses, np.full(2, 100.0))


def test_images_of_a_class_have_its_mean_and_spread() -> None:
    for label, mean in enumerate((-1.0, 1.0)):
        pixels = model(0.05).images(label, 5000, np.random.default_rng(0))
        z = BASIS.coordinates(pixels)
        assert np.abs(z.mean(axis=0) - [mean, 0, 0]).max() < 0.01
        assert np.abs(z.std(axis=0) - 0.05).max() < 0.01


def test_pixels_stay_in_range_however_wide_the_ellipsoid() -> None:
    pixels = model(50.0).images(0, 100, np.random.default_rng(0))
    assert pixels.dtype == np.float32
    assert pixels.min() == 0
    assert pixels.max() == 1


def test_no_images_are_no_images() -> None:
    assert model(1.0).images(0, 0, np.random.default_rng(0)).shape == (0, 36)


def test_cells_weight_and_shift_draws() -> None:
    halves = np.array([[-1.0, -1, 0], [-1.0, 1, 0]])  # the first class, by its second coordinate
    cells = Cells(
        Centres.of([halves, np.zeros((1, 3))]),
        weights=np.array([0.5, 1.5, 1.0]),
        shifts=np.array([[0.0, 0, 0], [0, 0, 0.4], [0, 0, 0]]),
    )
    mended = replace(model(0.05), cells=cells)
    z = BASIS.coordinates(mended.images(0, 4000, np.random.default_rng(0)))
    upper = z[:, 1] > 0
    # A pool of three draws each lets weights of 1 : 3 come out almost whole.
    assert 0.66 < upper.mean() < 0.76
    assert abs(z[upper, 2].mean() - 0.4) < 0.01
    assert abs(z[~upper, 2].mean()) < 0.01


def test_a_change_of_coordinates_is_seen_as_such() -> None:
    z = np.array([[0.1, -0.2, 0.3]])
    assert np.allclose(BASIS.coordinates(0.5 + BASIS.change(z)), z, atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 6, 1), (5, 4, 3), (40, 33, 1)])
def test_what_is_seen_of_points_are_their_pictures_in_grey(shape: tuple[int, int, int]) -> None:
    basis = Basis(LowFrequencies(shape, 10), np.zeros(10), np.eye(10)[:, :3], np.full(3, 2.0))
    z = RNG(0).normal(size=(20, 3))
    see = basis.scattering()
    grey = 255 * basis.images(z).reshape(-1, *shape).mean(axis=3)
    height, width = see.shape
    assert see.shape == (min(32, shape[0]), min(32, shape[1]))
    seen = (z @ see.pixels + see.middle).reshape(-1, height, width)
    corners = np.ix_(range(20), [0, -1], [0, -1])
    assert np.abs(seen[corners] - grey[corners]).max() < 0.1
    assert np.abs(seen.mean(axis=(1, 2)) - grey.mean(axis=(1, 2))).max() < 1


def test_k_means_finds_separate_heaps() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(centre, 0.1, (50, 2)) for centre in (-3, 3)])
    found = np.sort(k_means(points, 2, rng), axis=0)
    assert np.abs(found - [[-3, -3], [3, 3]]).max() < 0.1


def by_the_first_coordinate(threshold: float) -> DrawClassifier:
    """Class 1 above the threshold, else class 0."""
    see = Scattering.of(np.zeros((3, 1)), np.zeros(1), (1, 1))
    turn = np.zeros((see(np.zeros((1, 3))).shape[1], 1))
    turn[-3] = 1  # the points' own numbers come last
    slopes = np.array([[0.0, 1.0], [threshold, 0.0]])
    return DrawClassifier(Turned.of(see, turn, np.zeros(1)), slopes)


def bytes_of(pixels: np.ndarray) -> np.ndarray:
    return np.rint(255 * pixels).astype(np.uint8)


def test_each_class_gets_as_many_images_as_asked_for_by_what_is_seen_in_them() -> None:
    """Class 0 is drawn about -1 and class 1 about 1; what is above 0.5 is seen as class 1."""
    drawn = relabelled(
        model(0.7), by_the_first_coordinate(0.5), np.array([300, 500]), RNG(0), bytes_of
    )
    first = [BASIS.coordinates(part / np.float32(255))[:, 0] for part in drawn]
    assert [len(part) for part in first] == [300, 500]
    assert (first[0] < 0.51).all()
    assert (first[1] > 0.49).all()
    assert (first[0] > 0).any()  # drawn for class 1


def test_a_classifier_of_an_earlier_build_is_refused() -> None:
    arrays = {"classifier_units": np.eye(3), "classifier_weights": np.eye(3)}
    with pytest.raises(SfumatoError, match="earlier build"):
        DrawClassifier.from_arrays(arrays)


def test_a_class_that_is_never_seen_is_drawn_all_the_same() -> None:
    drawn = relabelled(
        model(0.05), by_the_first_coordinate(3.5), np.array([20, 30]), RNG(0), bytes_of
    )
    assert [len(part) for part in drawn] == [20, 30]
    assert BASIS.coordinates(drawn[1] / np.float32(255))[:, 0].min() > 0.5
