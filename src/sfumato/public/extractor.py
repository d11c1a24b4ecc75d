"""Perceptual features: what a public network sees in an image, layer by layer.

Harder et al. (2023, "Pre-trained Perceptual Features Improve Differentially Private Image
Generation") take the outputs of a network's convolutions whose kernels are larger than 1×1. Here
a convolution's tap stands after the normalisation and the activation that follow it. Nothing beyond
the last tap is evaluated.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn
from torch.fx.experimental.optimization import fuse
from torch.nn import functional

from sfumato.errors import SfumatoError
from sfumato.public.provenance import Provenance
from sfumato.public.whole_numbers import WholeNumberNetwork, kind_of, layer_of, traced

Maps: TypeAlias = list[NDArray[np.float64]]
Found = TypeVar("Found")

_AT_ONCE, _NUMBERS_AT_ONCE = 64, 1 << 24  # images of a piece, and numbers in their maps
_FAR = 0.02  # how far whole numbers may lead from floating-point ones, of the largest activation
_TRIED = 3  # images on which both evaluations are compared before any private one
_ACTIVATIONS = (nn.ReLU, nn.ReLU6, functional.relu, functional.relu6)


class Extractor:
    """The feature maps of a public network: of private images exactly, of others with a gradient.

    Parameters
    ----------
    network
        Any network that `torch.fx` can trace and whose steps have an evaluation in whole numbers
        (see `sfumato.public.whole_numbers`); it is copied. Others are refused by a `TypeError`.
    about
        Where the network comes from; `digest_of_module` gives the digest of one's own.
    mean, deviation
        What is taken from pixels in [0, 1], and what they are divided by, channel by channel.
    layers
        How many maps are taken, from the first on; None takes all. Later ones are not evaluated.
    """

    about: Provenance
    nonnegative: bool
    """Whether every map comes out of a ReLU or ReLU6."""
    identity: str
    """A digest of all that determines the maps."""

    def __init__(
        self,
        network: nn.Module,
        about: Provenance,
        mean: Sequence[float] = (0.0,),
        deviation: Sequence[float] = (1.0,),
        layers: int | None = None,
    ) -> None:
        self.about = about
        self._given = (network, about, mean, deviation)
        self._mean = torch.tensor(mean, dtype=torch.float64).reshape(1, -1, 1, 1)
        self._deviation = torch.tensor(deviation, dtype=torch.float64).reshape(1, -1, 1, 1)
        graph = _without_overwriting(traced(deepcopy(network).float().requires_grad_(False)))
        convolutions = [node for node in graph.graph.nodes if kind_of(node) is nn.Conv2d]
        taps = [_tap(node) for node in convolutions if max(layer_of(node).kernel_size) > 1]
        if not taps:
            raise SfumatoError(f"{about.name} has no convolution larger than 1x1 to take maps from")
        taps = taps[:layers]
        self.nonnegative = all(kind_of(tap) in _ACTIVATIONS for tap in taps)
        self._channels = int(layer_of(convolutions[0]).in_channels)
        network = _cut(graph, taps)
        self._exact = WholeNumberNetwork(network)
        # Twice as fast: normalisations in the weights, and these as the processor reads them.
        fused: Any = fuse(network) if _each_once(network) else network
        self._network = fused.to(memory_format=torch.channels_last)
        self.identity = _identity(network, mean, deviation)
        self._sizes: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}

    def first(self, layers: int) -> Extractor:
        """Give the same network up to so many maps."""
        return Extractor(*self._given, layers=layers)

    def maps(self, images: Tensor) -> list[Tensor]:
        """Give the maps of images (n, channels, height, width) in [0, 1], differentiably."""
        self.sizes(images.shape[2], images.shape[3], images.shape[1])
        return self._maps(images)

    def exact(self, images: NDArray[np.uint8]) -> list[NDArray[np.float64]]:
        """Give the maps of images (n, height, width, channels), each from its image alone."""
        parts = self.exact_pieces(images, list)
        return [np.concatenate(maps) for maps in zip(*parts, strict=True)]

    def exact_pieces(self, images: NDArray[np.uint8], use: Callable[[Maps], Found]) -> list[Found]:
        """Give what is made of the exact maps of some images at a time, side by side."""
        numbers = sum(math.prod(size) for size in self.sizes(*images.shape[1:]))
        at_once = max(1, min(_AT_ONCE, _NUMBERS_AT_ONCE // numbers))
        starts = range(0, max(len(images), 1), at_once)
        pieces = [images[start : start + at_once] for start in starts]
        threads = torch.get_num_threads()
        try:  # one thread to a piece: small convolutions gain little from two at once
            with ThreadPoolExecutor(
                threads, initializer=torch.set_num_threads, initargs=(1,)
            ) as pool:
                return list(pool.map(lambda piece: use(self._exact_maps(piece)), pieces))
        finally:
            torch.set_num_threads(threads)

    def sizes(self, height: int, width: int, channels: int) -> list[tuple[int, int, int]]:
        """Give the (channels, height, width) of each map of such an image, or refuse the image."""
        shape = (height, width, channels)
        if shape not in self._sizes:
            if channels not in (1, self._channels):
                colours = f" or of {self._channels} channels" if self._channels > 1 else ""
                raise SfumatoError(
                    f"{self.about.name} takes images of 1 channel{colours}, not of {channels}"
                )
            try:
                with torch.no_grad():
                    maps = self._maps(torch.zeros(1, channels, height, width))
            except RuntimeError as error:
                raise SfumatoError(
                    f"images of {height}x{width} are too small for {self.about.name}: enlarge "
                    "them, or take a network with fewer strides"
                ) from error
            try:
                self._try(shape)
            except TypeError as error:
                raise SfumatoError(f"{self.about.name} cannot be used: {error}") from error
            self._sizes[shape] = [(found.shape[1], *found.shape[2:]) for found in maps]
        return self._sizes[shape]

    def _try(self, shape: tuple[int, int, int]) -> None:
        """See on made-up images that both evaluations agree, and that each image stands alone."""
        drawn = np.random.default_rng(0).integers(0, 256, (_TRIED, *shape)).astype(np.uint8)
        exact = self._exact_maps(drawn)
        alone = [self._exact_maps(drawn[place : place + 1]) for place in range(_TRIED)]
        with torch.no_grad():
            plain = self._maps(torch.from_numpy(drawn).permute(0, 3, 1, 2) / 255)
        for layer, (found, float_found) in enumerate(zip(exact, plain, strict=True)):
            if not np.array_equal(found, np.concatenate([maps[layer] for maps in alone])):
                raise TypeError(f"layer {layer} of {self.about.name} mixes images")
            apart = np.abs(found - float_found.numpy()).max(initial=0)
            if not apart <= _FAR * max(np.abs(found).max(initial=0), 1):
                raise TypeError(
                    f"layer {layer} of {self.about.name} differs by {apart:.2g} in whole numbers: "
                    "its weights or activations are out of range"
                )

    def _maps(self, images: Tensor) -> list[Tensor]:
        values = images.float()
        prepared = self._coloured((values - self._mean.to(values)) / self._deviation.to(values))
        network = self._network.to(images.device)
        return list(network(prepared.contiguous(memory_format=torch.channels_last)))

    def _exact_maps(self, images: NDArray[np.uint8]) -> list[NDArray[np.float64]]:
        pixels = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).double()
        prepared = self._coloured((pixels / 255 - self._mean) / self._deviation)
        return [(found + 0.0).contiguous().numpy() for found in self._exact(prepared)]

    def _coloured(self, images: Tensor) -> Tensor:
        """Repeat a grey image for each of the network's channels."""
        return images.expand(-1, self._channels, -1, -1)


def _each_once(graph: fx.GraphModule) -> bool:
    """Say whether no layer is called twice: only then can normalisations be put into weights."""
    called = [node.target for node in graph.graph.nodes if node.op == "call_module"]
    return len(called) == len(set(called))


def _identity(graph: fx.GraphModule, mean: Sequence[float], deviation: Sequence[float]) -> str:
    """Give a digest of all that determines the maps: steps, layers, weights and preparation."""
    found = sha256(repr((graph.code, list(mean), list(deviation))).encode())
    found.update("\n".join(f"{name} {layer}" for name, layer in graph.named_modules()).encode())
    for name, values in graph.state_dict().items():
        found.update(repr((name, values.dtype, tuple(values.shape))).encode())
        found.update(values.numpy().tobytes())
    return found.hexdigest()


def _tap(convolution: fx.Node) -> fx.Node:
    """Follow a convolution through its normalisation and activation."""
    tap = convolution
    while len(tap.users) == 1:
        (follower,) = tap.users
        if kind_of(follower) not in (nn.BatchNorm2d, *_ACTIVATIONS):
            break
        tap = follower
        if kind_of(tap) in _ACTIVATIONS:
            break
    return tap


def _cut(graph: fx.GraphModule, taps: list[fx.Node]) -> fx.GraphModule:
    """Let a graph give its taps, and nothing more."""
    for node in reversed(list(graph.graph.nodes)):
        if node.op == "output":
            node.args = (tuple(taps),)
        elif node.op != "placeholder" and not node.users:
            graph.graph.erase_node(node)
    graph.delete_all_unused_submodules()
    graph.recompile()
    return graph


def _without_overwriting(graph: fx.GraphModule) -> fx.GraphModule:
    """Let no step overwrite its input, which may be a tap."""
    for layer in graph.modules():
        if hasattr(layer, "inplace"):
            setattr(layer, "inplace", False)  # noqa: B010
    for node in graph.graph.nodes:
        kind: Any = kind_of(node)
        if kind is operator.add and not node.kwargs:
            node.op, node.target = "call_function", operator.add
        elif kind in (functional.relu, functional.relu6):
            node.op, node.target = "call_function", kind
            node.args, node.kwargs = node.args[:1] or (node.kwargs["input"],), {}
    return graph
