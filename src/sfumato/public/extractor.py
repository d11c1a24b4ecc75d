"""Perceptual features: what a public network sees in an image, layer by layer.

Harder et al. (2023, "Pre-trained Perceptual Features Improve Differentially Private Image
Generation") take the outputs of a network's convolutions whose kernels are larger than 1×1. Here
a convolution's tap stands after the normalisation and the activation that follow it. Nothing beyond
the last tap is evaluated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
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

_AT_ONCE = 64
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
    """

    about: Provenance
    nonnegative: bool
    """Whether every map comes out of a ReLU or ReLU6."""

    def __init__(
        self,
        network: nn.Module,
        about: Provenance,
        mean: Sequence[float] = (0.0,),
        deviation: Sequence[float] = (1.0,),
    ) -> None:
        self.about = about
        self._mean = torch.tensor(mean, dtype=torch.float64).reshape(1, -1, 1, 1)
        self._deviation = torch.tensor(deviation, dtype=torch.float64).reshape(1, -1, 1, 1)
        graph = _without_overwriting(traced(deepcopy(network).float().requires_grad_(False)))
        convolutions = [node for node in graph.graph.nodes if kind_of(node) is nn.Conv2d]
        taps = [_tap(node) for node in convolutions if max(layer_of(node).kernel_size) > 1]
        if not taps:
            raise SfumatoError(f"{about.name} has no convolution larger than 1x1 to take maps from")
        self.nonnegative = all(kind_of(tap) in _ACTIVATIONS for tap in taps)
        self._channels = int(layer_of(convolutions[0]).in_channels)
        network = _cut(graph, taps)
        self._exact = WholeNumberNetwork(network)
        # Twice as fast: normalisations in the weights, and these as the processor reads them.
        fused: Any = fuse(network)
        self._network = fused.to(memory_format=torch.channels_last)
        self._sizes: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}

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
        self.sizes(*images.shape[1:])
        starts = range(0, max(len(images), 1), _AT_ONCE)
        pieces = [images[start : start + _AT_ONCE] for start in starts]
        # One thread to a piece: small convolutions gain little from two at once.
        with ThreadPoolExecutor(torch.get_num_threads(), initializer=_alone) as pool:
            return list(pool.map(lambda piece: use(self._exact_maps(piece)), pieces))

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
            self._sizes[shape] = [(found.shape[1], *found.shape[2:]) for found in maps]
        return self._sizes[shape]

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


def _alone() -> None:
    """Let the operations of this thread, and of no other, run on one core."""
    torch.set_num_threads(1)


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
