"""Public networks by name: found, built and described, or one line that says what to do."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from sfumato.errors import SfumatoError  # noqa: E402
from sfumato.public.catalogue import KNOWN, load_network  # noqa: E402
from sfumato.public.provenance import digest_of_file  # noqa: E402


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds the user's weights, or imports a package that gives some."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for package in ("torchvision", "timm"):
        monkeypatch.setitem(sys.modules, package, None)


@pytest.fixture
def alexnet_weights(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    shapes = [
        (64, 3, 11, 11),
        (192, 64, 5, 5),
        (384, 192, 3, 3),
        (256, 384, 3, 3),
        (256, 256, 3, 3),
    ]
    arrays: dict[str, np.ndarray] = {}
    for index, shape in enumerate(shapes, 1):
        scale = np.sqrt(6 / np.prod(shape[1:]))
        arrays[f"conv{index}.weight"] = (scale * (rng.random(shape) * 2 - 1)).astype(np.float16)
        arrays[f"conv{index}.bias"] = np.zeros(shape[0], np.float32)
    path = tmp_path / "weights" / "alexnet_lpips_f16.npz"
    path.parent.mkdir()
    np.savez(path, **arrays)
    return path


def mobilenet_weights() -> dict[str, np.ndarray]:
    widths = [24, 48, 96, 96, 192, 192, *[384] * 6, 768, 768]
    kernels = {"conv1/kernel": (3, 3, 3, 24)}
    for index, (before, after) in enumerate(pairwise(widths), 1):
        kernels[f"conv_dw_{index}/depthwise_kernel"] = (3, 3, before, 1)
        kernels[f"conv_pw_{index}/kernel"] = (1, 1, before, after)
    arrays = {name: np.full(shape, 1e-2, np.float16) for name, shape in kernels.items()}
    for name, shape in kernels.items():
        width = shape[2] if "depthwise" in name else shape[3]
        for kind in ("gamma", "beta", "moving_mean", "moving_variance"):
            arrays[f"{name.split('/')[0]}_bn/{kind}"] = np.ones(width, np.float16)
    return arrays


def vgg19_weights() -> dict[str, np.ndarray]:
    arrays, before = {}, 3
    for block, (count, width) in enumerate(
        ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)), start=1
    ):
        for name in (f"conv{block}_{index}" for index in range(1, count + 1)):
            if block == 5:
                arrays[f"{name}.q"] = np.ones((width, before, 3, 3), np.int8)
                arrays[f"{name}.scale"] = np.full(width, 1e-4, np.float32)
            else:
                arrays[f"{name}.weight"] = np.zeros((width, before, 3, 3), np.float16)
            arrays[f"{name}.bias"] = np.ones(width, np.float32)
            before = width
    return arrays


def lite0_weights() -> dict[str, np.ndarray]:
    outputs = [16, 24, 24, 40, 40, *[80] * 3, *[112] * 3, *[192] * 4, 320]
    sides = [3, 3, 3, 5, 5, 3, 3, 3, *[5] * 7, 3]
    arrays: dict[str, np.ndarray] = {}

    def unit(kernel: str, norm: str, *shape: int) -> None:
        arrays[f"{kernel}.weight"] = np.full(shape, 1e-2, np.float16)
        for kind in ("weight", "bias", "running_mean", "running_var"):
            arrays[f"{norm}.{kind}"] = np.ones(shape[0], np.float16)

    unit("_conv_stem", "_bn0", 32, 3, 3, 3)
    before = 32
    for index, (after, side) in enumerate(zip(outputs, sides, strict=True)):
        name, inner = f"_blocks.{index}.", before * 6 if index else before
        if index:
            unit(f"{name}_expand_conv", f"{name}_bn0", inner, before, 1, 1)
        unit(f"{name}_depthwise_conv", f"{name}_bn1", inner, 1, side, side)
        unit(f"{name}_project_conv", f"{name}_bn2", after, inner, 1, 1)
        before = after
    return arrays


def test_an_untrained_network_is_the_same_twice() -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    first, second, other = (
        load_network(name) for name in ("untrained", "untrained:0", "untrained:7")
    )
    assert first.about.digest == second.about.digest != other.about.digest
    assert first.about.digest.startswith("07e99023064d")  # the same bits on every machine
    assert first.about.licence == "none needed: drawn at random"
    assert [size[0] for size in first.sizes(8, 8, 3)] == [64, 64, 128, 128, 256, 256]
    assert first.nonnegative
    for one, two in zip(first.exact(images), second.exact(images), strict=True):
        assert np.array_equal(one, two)
        assert 0.1 < one.std() < 2  # He's variance keeps their size


def test_weights_are_found_in_the_data_folder_and_in_the_cache(
    alexnet_weights: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(alexnet_weights.parents[1]))
    found = load_network("alexnet")
    assert sum(int(np.prod(size)) for size in found.sizes(64, 64, 3)) == 31_872
    assert found.about.digest == digest_of_file(alexnet_weights)
    assert "BSD" in found.about.licence
    monkeypatch.delenv("SFUMATO_DATA")
    cache = tmp_path / "cache" / "sfumato" / "weights"
    cache.mkdir(parents=True)
    alexnet_weights.rename(cache / alexnet_weights.name)
    assert load_network("alexnet").about == found.about


def test_weights_are_found_by_their_path(alexnet_weights: Path, tmp_path: Path) -> None:
    found = load_network(str(alexnet_weights))
    with np.load(alexnet_weights) as arrays:
        state = {name: torch.from_numpy(values) for name, values in arrays.items()}
    torch.save(state, tmp_path / "mine.pth")
    named = load_network(f"alexnet={tmp_path / 'mine.pth'}")
    assert named.about.name == found.about.name == "alexnet"
    images = torch.rand(2, 3, 40, 40, generator=torch.Generator().manual_seed(0))
    for first, second in zip(found.maps(images), named.maps(images), strict=True):
        assert torch.equal(first, second)
    with pytest.raises(SfumatoError, match="images of 28x28 are too small for alexnet"):
        found.sizes(28, 28, 1)


@pytest.mark.parametrize(
    ("name", "weights", "taps", "features"),
    [
        ("vgg19", vgg19_weights, 16, 303_104),
        ("efficientnet-lite0", lite0_weights, 17, 55_264),
        ("mobilenet", mobilenet_weights, 14, 35_712),
    ],
)
def test_published_networks_have_their_sizes(
    name: str, weights: object, taps: int, features: int, tmp_path: Path
) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "mine.safetensors"
    save_file(weights(), path)  # type: ignore[operator]
    found = load_network(f"{name}={path}")
    sizes = found.sizes(32, 32, 3)
    assert len(sizes) == taps
    assert sum(int(np.prod(size)) for size in sizes) == features
    assert found.nonnegative
    assert found.sizes(28, 28, 1)[-1][1:] == (1, 1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "vgg19",
            "no weights of vgg19 here: put vgg19_normalised.npz in .* or install torchvision",
        ),
        ("mobilenet", "no weights of mobilenet here: .* of SFUMATO_DATA$"),
        ("resnet", "no network is called 'resnet'; known are vgg19, .*NAME=FILE"),
        ("vgg19=nowhere.npz", "there is no file nowhere.npz"),
        ("vgg19=weights.h5", "weights are read from .npz, .pth and .safetensors"),
        ("somewhere/alexnet_lpips_f16.npz", "there is no file somewhere/alexnet"),
        ("untrained:x", "the seed of an untrained network is a whole number, not 'x'"),
        ("torchvision:resnet18", "this network needs torchvision: pip install torchvision"),
        ("timm:resnet18", "this network needs timm: pip install timm"),
    ],
)
def test_what_is_missing_is_said_in_one_line(name: str, said: str) -> None:
    with pytest.raises(SfumatoError, match=f"^{said}") as raised:
        load_network(name)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("ending", ["npz", "pth", "safetensors"])
def test_a_file_that_is_cut_off_is_refused(ending: str, tmp_path: Path) -> None:
    (tmp_path / f"cut.{ending}").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(SfumatoError, match="is damaged, or holds no weights"):
        load_network(f"alexnet={tmp_path / f'cut.{ending}'}")


def test_weights_of_another_network_are_refused(alexnet_weights: Path) -> None:
    said = f"{alexnet_weights} does not hold the weights of vgg19: no 'conv1_1.weight'"
    with pytest.raises(SfumatoError, match=f"^{re.escape(said)}"):
        load_network(f"vgg19={alexnet_weights}")


def test_a_package_gives_its_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    networks = {
        "alexnet": nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True)),
        "modern": nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), nn.Conv2d(4, 4, 3)),
    }
    prepared = SimpleNamespace(mean=[0.5, 0.5, 0.5], std=[0.2, 0.2, 0.2])
    weights = SimpleNamespace(name="IMAGENET1K_V1", transforms=lambda: prepared)
    vision, timm = ModuleType("torchvision"), ModuleType("timm")
    vision.models = SimpleNamespace(  # type: ignore[attr-defined]
        get_model_weights=lambda name: SimpleNamespace(DEFAULT=weights),
        get_model=lambda name, weights: networks[name],
    )

    def create_model(name: str, pretrained: bool) -> nn.Module:
        made = networks[name]
        made.pretrained_cfg = {"mean": (0.5,), "std": (0.5,), "license": "apache-2.0"}
        return made

    timm.create_model = create_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", vision)
    monkeypatch.setitem(sys.modules, "timm", timm)
    for name in ("alexnet", "torchvision:alexnet"):
        about = load_network(name).about
        assert (about.name, about.source) == (
            "torchvision:alexnet", "torchvision, weights IMAGENET1K_V1"
        )  # fmt: skip
    assert load_network("timm:alexnet").about.licence == "apache-2.0"
    with pytest.raises(
        SfumatoError, match=r"^'timm:modern' cannot be used: SiLU has no evaluation"
    ):
        load_network("timm:modern")


def test_the_names_are_listed_for_help() -> None:
    assert {"vgg19", "alexnet", "efficientnet-lite0", "mobilenet", "untrained"} <= set(KNOWN)
