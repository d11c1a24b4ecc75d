"""A public encoder and decoder, in one file: images to short vectors, and vectors to images.

All of it is learned from public images. The vectors of these images are kept too: a method may
choose among them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sfumato.errors import SfumatoError, not_read, within
from sfumato.progress import Progress, silent
from sfumato.public.borrowed import Borrowed, known_decoders, load_draws
from sfumato.public.catalogue import picture_code
from sfumato.public.encoder import Encoder
from sfumato.public.flow_decoder import FlowDecoder
from sfumato.public.gallery import Gallery
from sfumato.public.provenance import Provenance, digest_of_file
from sfumato.public.single_image_view import SingleImageView
from sfumato.public.view_catalogue import load_view
from sfumato.storage import local, write_whole

DECODERS = ("flow", "gallery")
_FORMAT = 2


class Decoder(Protocol):
    """Gives an image for each feature vector, in units of the features' deviations."""

    @property
    def kind(self) -> str:
        """Its name: one of `DECODERS`, or what `borrowed.load_draws` knows it by."""

    @property
    def about(self) -> Provenance | None:
        """The public network that it draws with, if there is one."""

    def __call__(self, features: NDArray[np.float32], seed: int) -> NDArray[np.uint8]:
        """Draw images (n, height, width, channels)."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give all that it learned."""


@dataclass(frozen=True, eq=False)
class Pair:
    """An encoder, a decoder, and the vectors of the public images that both were learned from."""

    encoder: Encoder
    decoder: Decoder
    features: NDArray[np.float32]
    network: str
    about: Provenance

    @classmethod
    def train(
        cls,
        images: NDArray[np.uint8],
        *,
        name: str,
        source: str,
        licence: str,
        network: str = "efficientnet-lite0",
        decoder: str = "gallery",
        dim: int = 128,
        steps: int = 5000,
        progress: Progress = silent,
    ) -> Pair:
        """Learn from public images (n, height, width, channels), and say where they come from."""
        draws = None if decoder in DECODERS else load_draws(decoder)
        if decoder not in DECODERS and draws is None:
            known = ", ".join((*DECODERS, *known_decoders()))
            raise SfumatoError(f"a decoder is one of {known}, not '{decoder}'")
        within(dim=(dim, 1, 1024), steps=(steps, 1, 10_000_000))
        code = picture_code() if decoder == "flow" else None
        height, width, channels = images.shape[1:]
        view = load_view(network, (height, width, channels))
        progress("encoding public images", None)
        encoder, vectors = Encoder.of_public(view, images, dim)
        features = vectors.astype(np.float32)
        units = features * np.float32(np.sqrt(dim))
        found: Decoder
        if draws:
            length = view.usual_length(images) if isinstance(view, SingleImageView) else 1.0
            found = Borrowed(decoder, draws, encoder, length)
        elif code:
            found = FlowDecoder.train(units, images, code, steps, progress)
        else:
            found = Gallery(units, images)
        about = Provenance(name=name, source=source, digest="", licence=licence)
        return cls(encoder, found, features, network, about)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the images."""
        return self.encoder.view.shape

    @cached_property
    def inputs(self) -> tuple[Provenance, ...]:
        """All that it builds on."""
        parts = (self.about, self.encoder.view.about, self.decoder.about)
        return tuple(part for part in parts if part is not None)

    def decode(self, features: NDArray[np.floating[Any]], seed: int) -> NDArray[np.uint8]:
        """Draw an image for each feature vector."""
        return self.decoder(self.in_units(features), seed)

    def in_units(self, features: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Give vectors with entries of about unit deviation."""
        return np.asarray(features * np.sqrt(self.encoder.dim), np.float32)

    def save(self, path: str | Path) -> None:
        """Write it as one file."""
        encoder = self.encoder
        told = {
            "format": _FORMAT,
            "network": self.network,
            "view": encoder.view.describe(),
            "shape": self.shape,
            "radius": encoder.radius,
            "decoder": self.decoder.kind,
            "about": asdict(self.about),
        }
        arrays = {"features": self.features, "centre": encoder.centre, "weights": encoder.weights}
        arrays |= {f"decoder/{key}": array for key, array in self.decoder.arrays().items()}
        whole = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
        write_whole(Path(path), save(whole, {"pair": json.dumps(told)}))


def load_pair(path: str | Path) -> Pair:
    """Read a pair, or say in one line what is wrong with it."""
    try:
        with safe_open(local(path), framework="numpy") as file:
            told = json.loads((file.metadata() or {})["pair"])
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return _pair(Path(path), told, arrays)
    except FileNotFoundError:
        raise SfumatoError(
            f"there is no file {path}: make it of public images with 'sfumato public train'"
        ) from None
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        damaged = f"{path} is not a pair that 'sfumato public train' wrote"
        raise not_read(path, error, damaged) from None


def _pair(path: Path, told: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Pair:
    if told["format"] != _FORMAT:
        raise SfumatoError(f"{path} was written by another version: make it anew")
    height, width, channels = told["shape"]
    view = load_view(told["network"], (height, width, channels))
    if view.describe() != told["view"]:
        raise SfumatoError(f"{told['network']} is not the network that {path} was made with")
    encoder = Encoder(view, arrays["centre"], arrays["weights"], told["radius"])
    if arrays["features"].shape[1:] != (encoder.dim,):
        raise ValueError("the features are not the encoder's")
    about = Provenance(**{**told["about"], "digest": digest_of_file(path)})
    decoder = _decoder(told, arrays, encoder)
    return Pair(encoder, decoder, arrays["features"], told["network"], about)


def _decoder(told: dict[str, Any], arrays: dict[str, NDArray[Any]], encoder: Encoder) -> Decoder:
    prefix = "decoder/"
    own = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
    kind = told["decoder"]
    if kind == "gallery":
        units = arrays["features"] * np.float32(np.sqrt(arrays["features"].shape[1]))
        return Gallery(units, own["images"])
    if kind == "flow":
        return FlowDecoder(own, picture_code(), encoder.view.shape)
    draws = load_draws(kind)
    if draws is None:
        raise SfumatoError(f"the decoder '{kind}' is not registered here: see register_decoder")
    return Borrowed(kind, draws, encoder, own["length"].item())
