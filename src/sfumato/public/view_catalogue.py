"""Views by name: networks in whole numbers, and, by `float:`, those that have floating point only.

`float:timm:NAME` and `float:open_clip:MODEL/WEIGHTS` take transformers, such as DINO and CLIP, from
these packages. One's own is registered.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.public.catalogue import load_network
from sfumato.public.provenance import Provenance, digest_of_module
from sfumato.public.single_image_view import SingleImageNetwork, SingleImageView
from sfumato.public.view import ExactView, Shape, View

FLOAT = "float:"
_OWN: dict[str, SingleImageNetwork] = {}


def register_lone_network(name: str, network: SingleImageNetwork) -> None:
    """Let a network of one's own be found as `float:NAME`, as long as this process runs."""
    if name in _OWN or not name.isidentifier():
        raise SfumatoError(f"a network cannot be registered as '{name}': take another plain name")
    _OWN[name] = network


def load_view(name: str, shape: Shape) -> View:
    """Find what looks at images of a shape by its name, or say in one line what to do."""
    if name.startswith(FLOAT):
        return SingleImageView(_lone(name.removeprefix(FLOAT)), shape)
    try:
        return ExactView(load_network(name), shape)
    except SfumatoError as error:
        if "whole numbers" not in str(error):
            raise
        raise SfumatoError(
            f"{error}. '{FLOAT}{name}' looks at one image at a time in floating point, which holds "
            "on one machine only (docs/methods.md)"
        ) from None


def _lone(name: str) -> SingleImageNetwork:
    if name in _OWN:
        return _OWN[name]
    origin, _, rest = name.partition(":")
    if origin not in _PACKAGES or not rest:
        known = [f"{FLOAT}timm:NAME", f"{FLOAT}open_clip:MODEL/WEIGHTS"]
        known += [f"{FLOAT}{each}" for each in _OWN]
        raise SfumatoError(f"no network is called '{FLOAT}{name}'; known are {', '.join(known)}")
    try:
        package = import_module(origin)
    except ImportError:
        pip = {"open_clip": "open_clip_torch"}.get(origin, origin)
        raise SfumatoError(f"this network needs {origin}: pip install {pip}") from None
    try:
        return _PACKAGES[origin](package, rest)
    except (RuntimeError, ValueError, OSError) as error:
        raise SfumatoError(f"{origin} does not give '{rest}': {error}") from None


def _timm(package: Any, name: str) -> SingleImageNetwork:
    network = package.create_model(name, pretrained=True, num_classes=0)
    told = network.pretrained_cfg
    about = Provenance(
        name=f"timm:{name}",
        source=f"timm, weights {told.get('hf_hub_id') or told.get('url') or 'its own'}",
        digest=digest_of_module(network),
        licence=told.get("license") or "not stated",
    )
    return SingleImageNetwork(network, about, told["input_size"][-1], told["mean"], told["std"])


def _open_clip(package: Any, name: str) -> SingleImageNetwork:
    model, _, weights = name.partition("/")
    if not weights:
        raise SfumatoError(f"name the weights, too: {FLOAT}open_clip:{model}/WEIGHTS")
    network = package.create_model(model, pretrained=weights).visual
    size = network.image_size
    about = Provenance(
        name=f"open_clip:{name}",
        source=f"open_clip, {model} with weights {weights}",
        digest=digest_of_module(network),
        licence="not stated: see the weights' own",
    )
    side = size if isinstance(size, int) else size[0]
    return SingleImageNetwork(network, about, side, network.image_mean, network.image_std)


_PACKAGES = {"timm": _timm, "open_clip": _open_clip}
