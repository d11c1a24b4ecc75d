"""Decoders that others have trained: anything that draws a picture from what a network saw.

Such a decoder wants the network's own vector (a CLIP embedding, say), not the short one that is
learned. So the vector of norm 1 that is nearest to having the short one is made again
(`Encoder.seen`), and given the length that the network's vectors have for public images.
"""

from __future__ import annotations

import inspect
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from sfumato.errors import SfumatoError
from sfumato.public.encoder import Encoder
from sfumato.public.provenance import Provenance, digest_of_file

DIFFUSERS = "diffusers:"
_ARGUMENTS = ("image_embeds", "image_embeddings", "ip_adapter_image_embeds")
_AT_ONCE = 8


class Draws(Protocol):
    """What a decoder of one's own must have: its origin, and a call."""

    about: Provenance

    def __call__(
        self, embeddings: NDArray[np.float32], seed: int
    ) -> NDArray[np.uint8] | NDArray[np.float32]:
        """Draw pictures (n, height, width, 3 or 1): bytes, or numbers in [0, 1]."""


class Borrowed:
    """A decoder of short vectors, by one of embeddings."""

    def __init__(self, kind: str, draws: Draws, encoder: Encoder, length: float) -> None:
        self.kind, self.about = kind, draws.about
        self._draws, self._encoder, self._length = draws, encoder, length

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give the usual length of an embedding."""
        return {"length": np.array(self._length)}

    def __call__(self, features: NDArray[np.float32], seed: int) -> NDArray[np.uint8]:
        """Draw an image for each vector, in units of its deviations."""
        vectors = features / np.sqrt(self._encoder.dim)
        shape = self._encoder.view.shape
        drawn = [np.empty((0, *shape), np.uint8)]
        for start in range(0, len(features), _AT_ONCE):
            seen = self._encoder.seen(vectors[start : start + _AT_ONCE]) * self._length
            own = int(np.random.default_rng([seed, start]).integers(1 << 31))
            pictures = self._draws(seen.astype(np.float32), own)
            if len(pictures) != len(seen):
                raise SfumatoError(f"{self.about.name} did not draw one picture for each vector")
            drawn.append(_resized(pictures, shape))
        return np.concatenate(drawn)


class Variations:
    """A pipeline of `diffusers` that varies a picture of which the embedding is given.

    Any whose call takes `image_embeds` (Stable unCLIP), `image_embeddings` (unCLIP) or
    `ip_adapter_image_embeds` (with an IP-Adapter loaded). `options` go to each call.
    """

    def __init__(self, pipeline: Any, about: Provenance, **options: Any) -> None:
        taken = inspect.signature(pipeline.__call__).parameters
        found = [each for each in _ARGUMENTS if each in taken]
        if not found:
            raise SfumatoError(
                f"{about.name} does not vary pictures: its call takes none of "
                + ", ".join(_ARGUMENTS)
            )
        pipeline.set_progress_bar_config(disable=True)
        self.about = about
        self._pipeline, self._argument, self._options = pipeline, found[0], options

    def __call__(self, embeddings: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
        """Draw pictures, each from a seed of its own."""
        given: Any = torch.from_numpy(embeddings).to(self._pipeline.dtype)
        if self._argument == "ip_adapter_image_embeds":
            # Guidance compares with a picture of nothing.
            given = [torch.cat([torch.zeros_like(given), given])[:, None]]
        told: dict[str, Any] = {self._argument: given}
        if self._argument != "image_embeddings":
            told["prompt"] = [""] * len(embeddings)
        randomness = [torch.Generator().manual_seed(seed + each) for each in range(len(embeddings))]
        found = self._pipeline(
            **told, generator=randomness, output_type="np", **self._options
        ).images
        return np.asarray(found, np.float32)


_OWN: dict[str, Draws] = {}


def register_decoder(name: str, draws: Draws) -> None:
    """Let a decoder of one's own be found by a name, as long as this process runs."""
    if name in ("flow", "gallery", *_OWN) or not name.isidentifier():
        raise SfumatoError(f"a decoder cannot be registered as '{name}': take another plain name")
    _OWN[name] = draws


def known_decoders() -> tuple[str, ...]:
    """Name what `load_draws` finds."""
    return (f"{DIFFUSERS}FOLDER", *_OWN)


def load_draws(name: str) -> Draws | None:
    """Find a decoder that others have trained, if there is one of that name."""
    if name.startswith(DIFFUSERS):
        return variations(name.removeprefix(DIFFUSERS))
    return _OWN.get(name)


def variations(place: str) -> Variations:
    """Load a pipeline from a folder, or by its name on a hub."""
    try:
        diffusers: Any = import_module("diffusers")
    except ImportError:
        raise SfumatoError("this decoder needs diffusers: pip install diffusers") from None
    try:
        pipeline = diffusers.DiffusionPipeline.from_pretrained(place)
    except (OSError, ValueError) as error:
        raise SfumatoError(f"diffusers does not give '{place}': {error}") from None
    folder = Path(pipeline.config._name_or_path)
    weights = sorted(folder.rglob("*.safetensors")) + sorted(folder.rglob("*.bin"))
    digests = [digest_of_file(path) for path in weights]
    about = Provenance(
        name=f"{DIFFUSERS}{place}",
        source=f"diffusers, {type(pipeline).__name__}",
        digest=sha256("".join(digests).encode()).hexdigest(),
        licence=_licence(folder),
    )
    return Variations(pipeline, about)


def _licence(folder: Path) -> str:
    """Read the licence from a model card, if there is one."""
    card = folder / "README.md"
    lines = card.read_text(errors="replace").splitlines()[:40] if card.exists() else []
    told = [line.partition(":")[2].strip() for line in lines if line.startswith("license:")]
    return told[0] if told else "not stated"


def _resized(pictures: NDArray[Any], shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Give pictures as images of a shape, grey where it is."""
    height, width, channels = shape
    scale = 255 if pictures.dtype == np.uint8 else 1
    found = torch.from_numpy(np.asarray(pictures, np.float32) / scale).permute(0, 3, 1, 2)
    found = functional.interpolate(
        found, size=(height, width), mode="bilinear", antialias=True, align_corners=False
    )
    found = found.mean(1, keepdim=True) if channels == 1 else found.expand(-1, channels, -1, -1)
    whole = found.clamp(0, 1).mul(255).round().byte().permute(0, 2, 3, 1)
    return np.ascontiguousarray(whole.numpy())
