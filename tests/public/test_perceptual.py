"""Perceptual embeddings: of one image alone, bit by bit, and never longer than their bound."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from sfumato.data.batch import Batch  # noqa: E402
from sfumato.errors import SfumatoError  # noqa: E402
from sfumato.privacy.budget import Relation  # noqa: E402
from sfumato.public.catalogue import load_network  # noqa: E402
from sfumato.public.extractor import Extractor  # noqa: E402
from sfumato.public.perceptual import PerceptualMap  # noqa: E402
from sfumato.public.provenance import Provenance  # noqa: E402
from sfumato.statistics.algebra import PerClass, Quantized  # noqa: E402

ABOUT = Provenance(name="tiny", source="made by a test", digest="0" * 64, licence="none")
SHAPE = (9, 10, 1)


def network(rectified: bool = True) -> Extractor:
    """Two convolutions without biases: a black image has no features at all."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.ReLU(), nn.MaxPool2d(2),
              nn.Conv2d(4, 6, 3, padding=1, bias=False)]  # fmt: skip
    return Extractor(nn.Sequential(*layers, *([nn.ReLU()] if rectified else [])), ABOUT)


def batch(images: np.ndarray) -> Batch:
    codes = np.arange(len(images), dtype=np.int32)[:, None] % 2
    return Batch(codes, images.reshape(len(images), -1).astype(np.uint8))


def images(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *SHAPE)).astype(np.uint8)


def some_centre(mapped: PerceptualMap) -> PerceptualMap:
    """Take embeddings around those of a few images."""
    return replace(mapped, centre=mapped(batch(images(5, seed=9))).mean(axis=0))


@pytest.mark.parametrize("squares", [0.0, 0.3])
@pytest.mark.parametrize("centred", [False, True])
def test_the_bits_are_the_same_in_any_batch_and_with_any_number_of_threads(
    squares: float, centred: bool
) -> None:
    mapped = PerceptualMap(network(), SHAPE, 4, squares)
    mapped = some_centre(mapped) if centred else mapped
    drawn = images(150)
    together = mapped(batch(drawn))
    assert np.array_equal(together[::-1], mapped(batch(drawn[::-1])))
    assert np.array_equal(together[5:17], mapped(batch(drawn[5:17])))
    assert np.array_equal(together[:1], mapped(batch(drawn[:1])))
    threads = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            assert np.array_equal(together, mapped(batch(drawn)))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("grid", [1, 3, 4, 50])
@pytest.mark.parametrize("squares", [0.0, 0.5])
@pytest.mark.parametrize("centred", [False, True])
def test_generated_images_are_embedded_as_private_ones_are(
    squares: float, grid: int, centred: bool
) -> None:
    mapped = PerceptualMap(load_network("untrained"), (9, 10, 3), grid, squares)
    drawn = np.random.default_rng(0).integers(0, 256, (7, 9, 10, 3)).astype(np.uint8)
    if centred:
        mapped = replace(mapped, centre=mapped(batch(drawn[6:]))[0])
    drawn = drawn[:6]
    exact = mapped(batch(drawn))
    tensor = mapped.of_tensor(torch.from_numpy(drawn).permute(0, 3, 1, 2) / 255)
    assert exact.shape == (6, mapped.dim)
    assert np.abs(exact - tensor.numpy()).max() < 5e-3 * np.abs(exact).max()
    assert np.linalg.norm(exact, axis=1) == pytest.approx(np.ones(6), abs=1e-9)


def test_an_image_without_features_adds_nothing() -> None:
    mapped = PerceptualMap(network(), SHAPE, 4, 0.5)
    black = np.zeros((2, *SHAPE), np.uint8)
    assert not mapped(batch(black)).any()
    assert torch.isfinite(mapped.of_tensor(torch.zeros(2, 1, 9, 10))).all()


@given(
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.3]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 80, 255]),
)
def test_one_image_moves_a_sum_by_no_more_than_the_sensitivity(
    seed: int, squares: float, rectified: bool, centred: bool, most: int
) -> None:
    mapped = MAPS[squares, rectified, centred]
    statistic = PerClass(Quantized(mapped, bits=20), column=0, classes=2)
    rng = np.random.default_rng(seed)
    drawn = images(3, seed).astype(int) % (most + 1) * (rng.random((3, *SHAPE)) < rng.random())
    rows = batch(drawn)
    whole, rest = statistic.sum(rows), statistic.sum(rows.where(slice(1, None)))
    moved = np.linalg.norm(whole - rest)
    assert moved <= statistic.sensitivity(Relation.ADD_REMOVE) == 2**20
    other = Batch(rows.codes, np.concatenate([rows.numbers[1:2], rows.numbers[1:]]))
    replaced = np.linalg.norm(whole - statistic.sum(other))
    assert replaced <= statistic.sensitivity(Relation.REPLACE_ONE)
    reach = math.sqrt(2) if rectified and not centred else 2
    assert statistic.sensitivity(Relation.REPLACE_ONE) == pytest.approx(reach * 2**20)


PLAIN = {
    (squares, rectified): PerceptualMap(network(rectified), SHAPE, 4, squares)
    for squares in (0.0, 0.3)
    for rectified in (True, False)
}
MAPS = {(*key, False): mapped for key, mapped in PLAIN.items()}
MAPS |= {(*key, True): some_centre(mapped) for key, mapped in PLAIN.items()}


def test_an_image_at_the_centre_adds_nothing() -> None:
    plain = PerceptualMap(network(), SHAPE, 4)
    mapped = replace(plain, centre=plain(batch(images(1)))[0])
    assert not mapped(batch(images(1))).any()


def test_replacing_an_image_moves_squares_by_more_than_one() -> None:
    """A bound of 1, as the paper's code has it for squares, would be passed."""
    left, right = np.zeros((2, 1, *SHAPE), np.uint8)
    left[0, :3, :3], right[0, -3:, -3:] = 255, 255
    mapped = PerceptualMap(network(), SHAPE, 9, 0.99)
    apart = mapped(batch(left)) - mapped(batch(right))
    assert 1.3 < np.linalg.norm(apart) <= math.sqrt(2)


def test_the_last_layer_alone_is_small() -> None:
    mapped = PerceptualMap(network(), SHAPE, 1, 0.5, last=1)
    assert mapped.dim == 2 * 6
    assert mapped(batch(images(3))).shape == (3, 12)


def test_too_many_features_are_refused() -> None:
    with pytest.raises(SfumatoError, match=r"too many for exact norms .* smaller grid"):
        PerceptualMap(load_network("untrained"), (128, 128, 3), 128, 0.5)
