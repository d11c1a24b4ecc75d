"""A public network that looks at one image at a time, in floating point.

For networks that have no evaluation in whole numbers: those with attention, as CLIP and DINO.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.public.provenance import Provenance, digest_of_module
from sfumato.public.view import Floats, Shape

_PREPARATION = (
    "which looks at each private image alone, in floating point with one thread: what it sees is a "
    "function of that image on one machine, not proven to be one across machines"
)
_STEPS = 2.0**16
_FEW = 64  # images
_MOST_ENTRIES = 1 << 20  # so that norms are exact


class SingleImageNetwork:
    """A public network in floating point: any module from a picture to one vector.

    Parameters
    ----------
    network
        Takes a picture (1, channels, side, side) and gives (1, dim). It is set to evaluation.
    about
        Where it comes from; `digest_of_module` gives the digest of one's own.
    side
        The size of its pictures; images are resized to it.
    mean, deviation
        What is taken from pixels in [0, 1], and what they are divided by, channel by channel.
    """

    def __init__(
        self,
        network: nn.Module,
        about: Provenance,
        side: int,
        mean: Sequence[float] = (0.0,),
        deviation: Sequence[float] = (1.0,),
    ) -> None:
        self._network = network.eval().requires_grad_(False).float()
        self.about = about
        self.identity = f"{digest_of_module(network)} {side} {tuple(mean)} {tuple(deviation)}"
        self._side = side
        self._mean = torch.tensor(mean).reshape(1, -1, 1, 1)
        self._deviation = torch.tensor(deviation).reshape(1, -1, 1, 1)

    def __call__(self, image: NDArray[np.uint8]) -> Floats:
        """Look at one image (height, width, channels)."""
        pixels = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None] / 255
        pixels = functional.interpolate(
            pixels.expand(1, 3, -1, -1), size=(self._side, self._side), mode="bilinear",
            antialias=True,
        )  # fmt: skip
        with torch.inference_mode():
            found: Tensor = self._network((pixels - self._mean) / self._deviation)
        if found.ndim != 2 or len(found) != 1:
            raise SfumatoError(f"{self.about.name} does not give one vector for a picture")
        return np.asarray(found[0].double().numpy())


class SingleImageView:
    """The vectors of a `SingleImageNetwork`, divided by their lengths.

    A batch is never put through the network: images beside one another would change each other's
    last bits, and so would the number of threads. So each image is looked at alone, by one thread,
    with deterministic algorithms. Then its vector depends on the image, the network, the version of
    torch and the processor, and on nothing else: on one machine, adding or removing an image leaves
    the vectors of the others as they were. Nothing proves that another machine gives the same bits,
    so rows that are summed in several places must all be summed on machines of one kind.

    A vector is then put on a grid of 2^-16 of its largest entry and divided by its length, which is
    exact as a root of a whole number.
    """

    def __init__(self, network: SingleImageNetwork, shape: Shape) -> None:
        self.network, self.shape = network, shape
        self.dim = len(self._looked(np.zeros((1, *shape), np.uint8))[0])
        if self.dim > _MOST_ENTRIES:
            raise SfumatoError(f"{self.about.name} gives {self.dim:,} numbers, which are too many")

    @property
    def about(self) -> Provenance:
        """The network, and how it looks."""
        return replace(self.network.about, preparation=_PREPARATION)

    def __call__(self, batch: Batch) -> Floats:
        """Look at the images of a batch, one at a time."""
        images = batch.pixels.astype(np.uint8).reshape(-1, *self.shape)
        found = [np.empty((0, self.dim)), *(row[None] for row in self._looked(images))]
        return np.concatenate(found)

    def _looked(self, images: NDArray[np.uint8]) -> list[Floats]:
        threads = torch.get_num_threads()
        strict = torch.are_deterministic_algorithms_enabled()
        try:
            torch.set_num_threads(1)
            torch.use_deterministic_algorithms(True)
            return [_unit(self.network(image)) for image in images]
        finally:
            torch.use_deterministic_algorithms(strict)
            torch.set_num_threads(threads)

    def usual_length(self, images: NDArray[np.uint8]) -> float:
        """Give the mean length of the network's own vectors of some public images."""
        return float(np.mean([np.linalg.norm(self.network(image)) for image in images[:_FEW]]))

    def describe(self) -> dict[str, Any]:
        """Give the network and the images' shape."""
        return {"looked at alone": self.network.identity, "shape": list(self.shape)}


def _unit(vector: Floats) -> Floats:
    """Put a vector on the grid and divide it by its length; what is not finite becomes zero."""
    largest = np.abs(vector).max(initial=0)
    if not (np.isfinite(largest) and largest > 0):
        return np.zeros_like(vector)
    whole = np.rint(vector / largest * _STEPS)
    return np.asarray(whole / np.sqrt(whole @ whole))
