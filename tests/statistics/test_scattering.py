"""Scattering: exact, and a matter of orientation and scale, not of where lines lie exactly."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.statistics import scattering
from sfumato.statistics.scattering import Scattering
from sfumato.statistics.turned import Turned

SIDE, CELLS, ORIENTATIONS = 24, 36, 6
AS_THEY_ARE = Scattering.of(np.eye(SIDE**2), np.zeros(SIDE**2), (SIDE, SIDE))


def stripes(angle: float, length: float, phase: float = 0.0) -> np.ndarray:
    down, across = np.mgrid[:SIDE, :SIDE]
    along = across * np.cos(angle) + down * np.sin(angle)
    return np.rint(127 + 120 * np.cos(2 * np.pi * along / length + phase)).reshape(1, -1)


def in_the_middle(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the answers of short and of long waves at a cell amid the picture, by orientation."""
    values = AS_THEY_ARE(picture)[0, CELLS : CELLS + 2 * ORIENTATIONS * CELLS]
    cells = values.reshape(2, ORIENTATIONS, 6, 6)[:, :, 3, 3]
    return cells[0], cells[1]


@pytest.mark.parametrize("orientation", range(ORIENTATIONS))
def test_stripes_are_seen_by_waves_of_their_orientation_and_length(orientation: int) -> None:
    angle = np.pi * orientation / ORIENTATIONS
    (short, faint), (weak, long) = (in_the_middle(stripes(angle, each)) for each in (2.7, 5.3))
    assert short.argmax() == long.argmax() == orientation
    assert short.max() > 1.2 * faint.max()
    assert long.max() > 1.2 * weak.max()


def test_where_stripes_begin_hardly_matters() -> None:
    one, other = (in_the_middle(stripes(0.4, 5.3, phase))[1] for phase in (0.0, 2.0))
    assert np.abs(one - other).max() < 0.02 * one.max()


def test_a_flat_picture_has_its_brightness_and_nothing_else() -> None:
    values = AS_THEY_ARE(np.full((1, SIDE**2), 200.0))[0, : -(SIDE**2)]
    # The root of 1600 eighths, but for weights that are cut to whole steps.
    assert 37 < values[:CELLS].min() <= values[:CELLS].max() <= 40
    assert values[CELLS:].max() ** 2 < 8  # less than a level


def test_all_sums_are_exact_in_single_precision() -> None:
    """Whatever the picture: the largest number that can enter, times all weights, is below 2^24."""
    for octave in (0, 0.5, 1):
        assert np.abs(scattering._waves(octave)).sum(axis=0).max() * 2040 < 2**24
    for size, stride, deviation in ((7, 2, 0.8), (32, 4, 1.6), (1, 4, 1.6)):
        weights = scattering._weights(size, stride, deviation)
        assert (weights == np.rint(weights)).all()
        assert weights.sum(axis=1).max() ** 2 * 2040 < 2**24
    worst = 255.0 * (np.random.default_rng(0).random((50, SIDE**2)) > 0.5)
    assert AS_THEY_ARE(worst).max() <= 255  # roots of eighths are below 46; points are as they were


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (16, 33)])
def test_values_are_the_same_bits_in_any_batch(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    see = Scattering.of(
        rng.normal(0, 40, (7, np.prod(shape))), np.full(np.prod(shape), 99.0), shape
    )
    points = rng.normal(size=(300, 7))
    size = see(points[:1]).shape[1]
    features = Turned.of(see, rng.normal(size=(size, 5)), np.zeros(5))
    together = features(points)
    assert (together[::-1] == features(points[::-1])).all()
    assert (together[123:124] == features(points[123:124])).all()
