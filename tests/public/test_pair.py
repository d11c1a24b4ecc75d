"""Encoders and decoders: exact ones, and those that others have trained."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from sfumato.data.batch import Batch  # noqa: E402
from sfumato.errors import SfumatoError  # noqa: E402
from sfumato.public import borrowed, view_catalogue  # noqa: E402
from sfumato.public.borrowed import Variations, register_decoder  # noqa: E402
from sfumato.public.extractor import Extractor  # noqa: E402
from sfumato.public.pair import Pair, load_pair  # noqa: E402
from sfumato.public.provenance import Provenance, digest_of_module  # noqa: E402
from sfumato.public.single_image_view import SingleImageNetwork, SingleImageView  # noqa: E402
from sfumato.public.view import ExactView, doubled, seen_shape  # noqa: E402
from sfumato.public.view_catalogue import load_view, register_lone_network  # noqa: E402

ABOUT = Provenance(name="tiny", source="made by a test", digest="0" * 64, licence="CC0")
SHAPE = (12, 10, 3)
IMAGES = np.random.default_rng(0).integers(0, 256, (30, *SHAPE), dtype=np.uint8)


class Attention(nn.Module):
    """A transformer of one layer, over patches: it has no evaluation in whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 6)

    def forward(self, pictures: Tensor) -> Tensor:
        found: Tensor = self.head(self.layer(self.patches(pictures).flatten(2).mT).mean(1))
        return found


def attention() -> SingleImageNetwork:
    torch.manual_seed(0)
    network = Attention()
    about = replace(ABOUT, digest=digest_of_module(network))
    return SingleImageNetwork(network, about, 16, (0.5,) * 3, (0.25,) * 3)


class Blotches:
    """A decoder of embeddings: a colour from the first three numbers, grain from the seed."""

    about = Provenance(name="blotches", source="made by a test", digest="1" * 64, licence="CC0")

    def __call__(self, embeddings: np.ndarray, seed: int) -> np.ndarray:
        grain = np.random.default_rng(seed).random((len(embeddings), 6, 5, 3))
        return (0.4 + 0.3 * embeddings[:, None, None, :3] + 0.1 * grain).astype(np.float32)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_catalogue, "_OWN", {})
    monkeypatch.setattr(borrowed, "_OWN", {})
    register_lone_network("attention", attention())
    register_decoder("blotches", Blotches())


def batch(images: np.ndarray) -> Batch:
    return Batch(np.zeros((len(images), 1), np.int32), images.reshape(len(images), 360))


def test_doubling_is_bilinear() -> None:
    exact = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).double()
    exact = nn.functional.interpolate(exact, scale_factor=2, mode="bilinear")
    assert np.abs(doubled(IMAGES) - exact.permute(0, 2, 3, 1).numpy()).max() <= 0.5


def test_small_images_are_doubled_until_a_network_sees_something() -> None:
    strides = [layer for _ in range(3) for layer in (nn.Conv2d(3, 3, 3, 2), nn.ReLU())]
    network = Extractor(nn.Sequential(*strides), ABOUT)
    assert [seen_shape(network, (side, side, 3))[0] for side in (8, 12, 23, 40)] == [32, 24, 23, 40]
    view = ExactView(network, SHAPE)
    together = view(batch(IMAGES))
    assert view(batch(IMAGES[3:4])).tobytes() == together[3:4].tobytes()


def test_a_network_in_floating_point_sees_the_same_whoever_stands_beside() -> None:
    """And however many threads there are: bit by bit."""
    view = SingleImageView(attention(), SHAPE)
    together = view(batch(IMAGES))
    assert together.shape == (30, 6)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1.0, abs=1e-12)
    order = np.random.default_rng(1).permutation(len(IMAGES))
    assert view(batch(IMAGES[order])).tobytes() == together[order].tobytes()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert view(batch(IMAGES[20:])).tobytes() == together[20:].tobytes()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    assert view(batch(IMAGES[:0])).shape == (0, 6)


def test_what_is_not_finite_becomes_nothing() -> None:
    class Overflowing(nn.Module):
        def forward(self, pictures: Tensor) -> Tensor:
            return pictures.mean((2, 3)) * torch.inf

    view = SingleImageView(SingleImageNetwork(Overflowing(), ABOUT, 8), SHAPE)
    assert not view(batch(IMAGES[:3])).any()


def test_a_pair_of_ones_own_network_and_decoder_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "own.pair"
    made = Pair.train(
        IMAGES, name="own", source="made by a test", licence="CC0", network="float:attention",
        decoder="blotches", dim=4,
    )  # fmt: skip
    made.save(path)
    pair = load_pair(path)
    assert [each.name for each in pair.inputs] == ["own", "tiny", "blotches"]
    assert "each private image alone, in floating point" in pair.inputs[1].in_words()
    drawn = pair.decode(pair.features[:9], 3)
    assert drawn.shape == (9, *SHAPE)
    assert np.array_equal(drawn, made.decode(made.features[:9], 3))
    assert not np.array_equal(drawn, pair.decode(pair.features[:9], 4))
    # What the network saw is found again from the short vectors.
    seen = pair.encoder.view(batch(IMAGES))
    short = np.linalg.norm(pair.encoder.of_images(IMAGES), axis=1) < 1 - 1e-9
    again = pair.encoder.seen(pair.features)
    assert np.abs((again * seen).sum(axis=1)[short]).min() > 0.9


def test_what_a_pair_needs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(**settings: str) -> Pair:
        return Pair.train(IMAGES, name="a", source="b", licence="c", dim=4, **settings)  # type: ignore[arg-type]

    with pytest.raises(SfumatoError, match="one of flow, gallery, diffusers:FOLDER, blotches, not"):
        train(decoder="brush", network="untrained")
    with pytest.raises(SfumatoError, match="no network is called 'float:clip'; known are float:t"):
        train(network="float:clip")
    for package, pip in (("timm", "timm"), ("open_clip", "open_clip_torch")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(SfumatoError, match=f"needs {package}: pip install {pip}$"):
            train(network=f"float:{package}:some/thing")
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(SfumatoError, match="needs diffusers: pip install diffusers"):
        train(decoder="diffusers:folder")
    path = tmp_path / "own.pair"
    train(network="float:attention", decoder="blotches").save(path)
    monkeypatch.setattr(borrowed, "_OWN", {})
    with pytest.raises(SfumatoError, match="the decoder 'blotches' is not registered here"):
        load_pair(path)
    with pytest.raises(SfumatoError, match="cannot be registered as 'flow'"):
        register_decoder("flow", Blotches())
    with pytest.raises(SfumatoError, match="cannot be registered as 'attention'"):
        register_lone_network("attention", attention())


def test_public_images_that_are_all_alike_are_refused() -> None:
    alike = np.repeat(IMAGES[:2], 10, axis=0)
    with pytest.raises(SfumatoError, match="differ in fewer than 4 ways"):
        Pair.train(alike, name="a", source="b", licence="c", dim=4, network="untrained")


def test_packages_lend_their_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins that are called as timm and open_clip are."""
    timm, open_clip = ModuleType("timm"), ModuleType("open_clip")

    def create(name: str, pretrained: bool, num_classes: int) -> nn.Module:
        made = Attention()
        made.pretrained_cfg = {
            "mean": (0.5,) * 3, "std": (0.5,) * 3, "input_size": (3, 16, 16), "license": "mit",
            "hf_hub_id": "some/where",
        }  # fmt: skip
        return made

    timm.create_model = create  # type: ignore[attr-defined]
    visual = Attention()
    visual.image_size, visual.image_mean, visual.image_std = 16, (0.4,) * 3, (0.2,) * 3
    open_clip.create_model = lambda name, pretrained: SimpleNamespace(visual=visual)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "open_clip", open_clip)
    found = load_view("float:timm:vit", SHAPE)
    assert (found.dim, found.about.licence) == (6, "mit")
    clip = load_view("float:open_clip:ViT/laion", SHAPE)
    assert clip.about.digest == digest_of_module(visual)
    with pytest.raises(SfumatoError, match="name the weights, too: float:open_clip:ViT/WEIGHTS"):
        load_view("float:open_clip:ViT", SHAPE)


def test_a_pipeline_is_asked_by_the_name_of_its_argument() -> None:
    class Pipeline:
        dtype = torch.float32

        def set_progress_bar_config(self, disable: bool) -> None:
            pass

        def __call__(
            self, image_embeddings: Tensor, generator: list[torch.Generator], output_type: str
        ) -> SimpleNamespace:
            noise = [torch.rand(4, 4, 3, generator=each) for each in generator]
            return SimpleNamespace(images=torch.stack(noise).numpy() * 0 + len(image_embeddings))

    assert Variations(Pipeline(), ABOUT)(np.zeros((2, 5), np.float32), 0).shape == (2, 4, 4, 3)

    class Text(Pipeline):
        def __call__(self, prompt: str) -> None:  # type: ignore[override]
            pass

    with pytest.raises(SfumatoError, match="tiny does not vary pictures: its call takes none of"):
        Variations(Text(), ABOUT)
