"""Pixels as an embedding, alone and beside a network's: of one image alone, within its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from sfumato.data.batch import Batch  # noqa: E402
from sfumato.methods.embedding.joined_map import ImageMap, JoinedMap  # noqa: E402
from sfumato.methods.embedding.pixel_products import PixelProducts  # noqa: E402
from sfumato.privacy.budget import Relation  # noqa: E402
from sfumato.public.catalogue import load_network  # noqa: E402
from sfumato.public.perceptual import PerceptualMap  # noqa: E402
from sfumato.statistics.algebra import PerClass, Quantized  # noqa: E402

SHAPE = (9, 10, 3)


def batch(images: np.ndarray) -> Batch:
    codes = np.arange(len(images), dtype=np.int32)[:, None] % 2
    return Batch(codes, images.reshape(len(images), -1).astype(np.uint8))


def images(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *SHAPE)).astype(np.uint8)


def joined() -> JoinedMap:
    seen = PerceptualMap(load_network("untrained").first(2), SHAPE, 3)
    return JoinedMap((PixelProducts(SHAPE, 60, 12), seen), (0.3, 0.7), (1.0, 0.5))


PLAIN: dict[str, ImageMap] = {"pixels": PixelProducts(SHAPE, 60, 12), "joined": joined()}  # type: ignore[dict-item]
MAPS = PLAIN | {
    f"{name}, centred": each.around(each(batch(images(5, seed=9))).mean(axis=0))
    for name, each in PLAIN.items()
}


@pytest.mark.parametrize("name", MAPS)
def test_the_bits_are_the_same_in_any_batch(name: str) -> None:
    drawn = images(60)
    together = MAPS[name](batch(drawn))
    assert np.array_equal(together[::-1], MAPS[name](batch(drawn[::-1])))
    assert np.array_equal(together[5:17], MAPS[name](batch(drawn[5:17])))
    assert np.array_equal(together[:1], MAPS[name](batch(drawn[:1])))


@given(st.integers(0, 2**32), st.sampled_from(sorted(MAPS)), st.sampled_from([1, 80, 255]))
def test_one_image_moves_a_sum_by_no_more_than_the_sensitivity(
    seed: int, name: str, most: int
) -> None:
    statistic = PerClass(Quantized(MAPS[name], bits=20), column=0, classes=2)  # type: ignore[arg-type]
    rng = np.random.default_rng(seed)
    drawn = images(3, seed).astype(int) % (most + 1) * (rng.random((3, *SHAPE)) < rng.random())
    rows = batch(drawn)
    whole, rest = statistic.sum(rows), statistic.sum(rows.where(slice(1, None)))
    assert np.linalg.norm(whole - rest) <= statistic.sensitivity(Relation.ADD_REMOVE) == 2**20
    other = Batch(rows.codes, np.concatenate([rows.numbers[1:2], rows.numbers[1:]]))
    replaced = np.linalg.norm(whole - statistic.sum(other))
    assert replaced <= statistic.sensitivity(Relation.REPLACE_ONE) == 2 * 2**20


@pytest.mark.parametrize("name", ["pixels", "pixels, centred"])
def test_generated_images_are_embedded_as_private_ones_are(name: str) -> None:
    drawn = images(6)
    exact = MAPS[name](batch(drawn))
    tensor = torch.from_numpy(drawn).permute(0, 3, 1, 2) / 255
    assert exact.shape == (6, MAPS[name].dim)
    for classes in (1, 2, 6):
        means = exact.reshape(classes, 6 // classes, -1).mean(axis=1)
        assert np.abs(MAPS[name].class_means(tensor, classes).numpy() - means).max() < 1e-4


def test_all_coefficients_multiplied_have_norm_one() -> None:
    whole = PixelProducts(SHAPE, 20, 20)(batch(images(4)))
    assert np.linalg.norm(whole, axis=1) == pytest.approx(np.ones(4))


def test_means_tell_the_mean_image_and_how_pixels_vary_together() -> None:
    """Of images that are alike but for their brightness, the products are not those of a mean."""
    rng = np.random.default_rng(0)
    steady = np.full((500, *SHAPE), 100)
    varied = steady + rng.integers(-60, 61, (500, 1, 1, 1))
    mapped = PixelProducts(SHAPE, 20, 10)
    brightness = mapped._pairs[0] == 1
    apart = mapped(batch(varied)).mean(axis=0) - mapped(batch(steady)).mean(axis=0)
    assert np.abs(apart[brightness]).max() > 0.01


def test_a_joined_map_is_made_of_its_parts() -> None:
    pixels, seen = joined().maps
    rows = batch(images(4))
    found = joined()(rows)
    assert np.array_equal(found[:, : pixels.dim], math.sqrt(0.3) * pixels(rows))
    assert np.array_equal(found[:, pixels.dim :], math.sqrt(0.7) * seen(rows))
    points = torch.from_numpy(images(4)).reshape(1, 4, -1) / 255
    means = joined().class_means(points)[0].numpy()
    assert means[: pixels.dim] == pytest.approx(found[:, : pixels.dim].mean(axis=0), abs=1e-4)
    assert means[pixels.dim :] == pytest.approx(found[:2, pixels.dim :].mean(axis=0), abs=1e-3)


def test_shares_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        JoinedMap((PixelProducts(SHAPE, 20, 10),), (0.5,), (1.0,))
