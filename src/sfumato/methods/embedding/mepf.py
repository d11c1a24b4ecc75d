"""DP-MEPF: a generator of images that look, to a public network, as the private ones do on average.

Harder et al. (2023). Released: the number of images of each class; the mean embedding of all, as a
centre; and for each class the sum of its images' perceptual embeddings around it (`perceptual.py`):
the maps of a network that was trained on public images, and the maps' squares. With `stopping`,
also the sum of a much smaller embedding, the averages of the last layer, with ten times the noise
for its sensitivity; it says which generator on the way was the best.

Departures from the paper:

- Private images go through the network in whole numbers, so that an image's features depend on that
  image alone; and the squares cost what they cost (see `perceptual.py`).
- Embeddings are taken around a centre that is released first, at a small part of the budget. With
  ``centred=False`` they are the paper's.
- Maps are averaged over a coarse grid, and each layer counts alike. The noise grows with the root
  of the number of features; what a generator can follow does not.
- The loss is the unbiased one of `training.py`, in which training rests at the size of the known
  noise. The paper's moving average of the generator's features, driven by Adam, was tried: over the
  hundreds of steps that a laptop can make, it lags behind and swings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.data.image_codec import ImageCodec
from sfumato.errors import SfumatoError, within
from sfumato.methods.base import GRADIENT_ARITHMETIC, Plan
from sfumato.methods.class_counts import COUNT_SHARE
from sfumato.methods.embedding.base import EmbeddingMethod
from sfumato.methods.spaces import ImageSpace, PointSpace
from sfumato.privacy.answers import Release
from sfumato.privacy.budget import Budget
from sfumato.privacy.planning import plan_training
from sfumato.privacy.release import Curator
from sfumato.privacy.statistic import Statistic
from sfumato.public.catalogue import load_network
from sfumato.public.provenance import Provenance
from sfumato.schema import Schema
from sfumato.statistics.algebra import PerClass, Quantized

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.methods.embedding.training import Embedding, Target
    from sfumato.methods.networks import Generator
    from sfumato.public.extractor import Extractor
    from sfumato.public.perceptual import PerceptualMap

CENTRE_SHARE = 0.1
TRAINED = "trained"  # instead of a public network's name
TRAINING_SHARE = 0.3  # of an extractor
STOP_RATIO = 0.01  # ten times the noise per sensitivity

_GRID_BITS = 22
_CODE = 64  # random numbers behind a colour image
_JUDGED_IMAGES = 1000


@dataclass(frozen=True, kw_only=True)
class Mepf(EmbeddingMethod):
    """Perceptual mean embeddings, for image sets.

    Parameters
    ----------
    network
        The public network, by its name: efficientnet-lite0, vgg19, alexnet, mobilenet, untrained,
        torchvision:NAME, timm:NAME, NAME=FILE, or what `register_network` was told. With
        "trained" it is a small one, trained on the private images for a part of the budget.
    grid
        Maps are averaged over so many cells each way.
    squares
        The part of the embedding's budget that goes to the squares of maps; 0 leaves them out.
    centred
        Whether the mean embedding of all images is released first, and what is taken of each image
        is where it lies from there.
    stopping
        Whether to pay for a second, small release that tells which generator on the way is best.
        Otherwise training rests at the size of the known noise, which costs nothing.

    `balanced` and `steps` are those of `EmbeddingMethod`.
    """

    name: ClassVar[str] = "mepf"
    batch: ClassVar[int] = 100
    shared: ClassVar[frozenset[str]] = frozenset({"centre"})

    network: str = "efficientnet-lite0"
    grid: int = 7
    squares: float = 0.0
    centred: bool = True
    stopping: bool = False
    steps: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        within(grid=(self.grid, 1, 1024), squares=(self.squares, 0, 0.99))

    @property
    def arithmetic(self) -> str:
        """What a reader of the certificate must know about gradients, where there are any."""
        return GRADIENT_ARITHMETIC if self.trains else ""

    @property
    def trains(self) -> bool:
        """Whether private rows are trained on: by an extractor."""
        return self.network == TRAINED

    def public_inputs(self) -> tuple[Provenance, ...]:
        """Name the network."""
        return () if self.network == TRAINED else (_network(self.network).about,)

    def codec(self, schema: Schema) -> ImageCodec:
        """Give the code of the image set."""
        if schema.images is None:
            raise SfumatoError("mepf is for image sets; for tables use pairs")
        return ImageCodec(schema.images)

    def embeddings(
        self, space: PointSpace, budget: Budget, rows: int | None = None
    ) -> dict[str, tuple[Statistic, float]]:
        """Give the centre, the embedding around it, and what tells when to stop."""
        found: dict[str, tuple[Statistic, float]] = {}
        extractor = self._extractor(space)
        mapped = self._map(space, extractor)
        if self.centred:
            found["centre"] = (Quantized(mapped, bits=_GRID_BITS), CENTRE_SHARE)
            mapped = replace(mapped, centre=np.zeros(mapped.dim))
        found["perceptual embedding"] = (self._summed(space, mapped), self._share)
        if self.stopping:
            last = self._summed(space, self._last_layer(space, extractor))
            found["last layer"] = (last, self._share * STOP_RATIO)
        return found

    def targets(
        self, curator: Curator, space: PointSpace, counts: NDArray[np.float64]
    ) -> list[tuple[Embedding, Target]]:
        """Release the centre, the embedding around it, and what tells when to stop."""
        extractor = self._extractor(space, curator)
        mapped = self._map(space, extractor)
        if self.centred:
            centre = curator.release("centre", Quantized(mapped, bits=_GRID_BITS), CENTRE_SHARE)
            laid = curator.layout(
                "perceptual embedding",
                lambda: {"centre": _in_ball(centre.values / (1 << _GRID_BITS) / counts.sum())},
            )
            mapped = replace(mapped, centre=laid["centre"])
        release = curator.release("perceptual embedding", self._summed(space, mapped), self._share)
        target = _target(release, mapped, counts, space.size)
        if self.stopping:
            last = self._last_layer(space, extractor)
            share = self._share * STOP_RATIO
            averages = curator.release("last layer", self._summed(space, last), share)
            wanted = _target(averages, last, counts, last.dim)
            target = replace(target, judge=partial(_distance, last, wanted))
        return [(partial(_class_means, mapped), target)]

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released, and trained."""
        plan = super().plan(schema, budget)
        if self.network != TRAINED:
            return plan
        from sfumato.methods.embedding.trained_extractor import SCHEDULE, TRAINING, learner_for

        dim = learner_for(self.point_space(schema), self.seed).dim
        training = plan_training(TRAINING, dim, SCHEDULE, budget, plan.spends)
        return replace(plan, trainings=(training,))

    def network_for(self, space: PointSpace) -> Generator:
        """Make the generator: residual for colour."""
        from sfumato.methods.networks import ResidualGenerator

        assert isinstance(space, ImageSpace)
        if space.codec.shape[2] == 1:
            return super().network_for(space)
        return ResidualGenerator(_CODE, space.classes, space.codec.shape)

    @property
    def _share(self) -> float:
        left = 1 - COUNT_SHARE - (CENTRE_SHARE if self.centred else 0)
        left -= TRAINING_SHARE if self.network == TRAINED else 0
        return left / (1 + STOP_RATIO) if self.stopping else left

    def _extractor(self, space: PointSpace, curator: Curator | None = None) -> Extractor:
        """Read a public network, or have one trained; without a curator it is as at its start."""
        if self.network != TRAINED:
            return _network(self.network)
        from sfumato.methods.embedding.trained_extractor import trained, untrained

        if curator is None:
            return untrained(space, self.seed)
        return trained(curator, space, self.seed, TRAINING_SHARE)

    def _map(self, space: PointSpace, extractor: Extractor) -> PerceptualMap:
        from sfumato.public.perceptual import PerceptualMap

        assert isinstance(space, ImageSpace)
        return PerceptualMap(extractor, space.codec.shape, self.grid, self.squares)

    def _last_layer(self, space: PointSpace, extractor: Extractor) -> PerceptualMap:
        from sfumato.public.perceptual import PerceptualMap

        assert isinstance(space, ImageSpace)
        return PerceptualMap(extractor, space.codec.shape, grid=1, squares=0.5, last=1)

    def _summed(self, space: PointSpace, mapped: PerceptualMap) -> Statistic:
        whole = Quantized(mapped, bits=_GRID_BITS)
        if space.classes == 1:
            return whole
        return PerClass(whole, space.class_column, space.classes)


@cache
def _network(name: str) -> Extractor:
    """Read a network once."""
    return load_network(name)


def _in_ball(centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shorten a noisy mean to norm 1, which the mean of vectors of norm 1 cannot pass."""
    return np.asarray(centre / max(1.0, float(np.linalg.norm(centre))))


def _target(
    release: Release, mapped: PerceptualMap, counts: NDArray[np.float64], free: int
) -> Target:
    """Make mean embeddings of released sums; samples can move them in `free` directions."""
    from sfumato.methods.embedding.training import Target

    unit = 1 << _GRID_BITS
    parts = 2 if mapped.squares else 1
    return Target.of(
        release.values.reshape(len(counts), -1) / unit,
        counts,
        release.sigma / unit,
        [(mapped.dim // parts, free)] * parts,
    )


def _class_means(mapped: PerceptualMap, points: Tensor) -> Tensor:
    """Give the mean embedding of the points (classes, n, size) of each class."""
    classes, each, _ = points.shape
    height, width, colours = mapped.shape
    images = points.reshape(-1, height, width, colours).permute(0, 3, 1, 2)
    return mapped.of_tensor(images).view(classes, each, -1).mean(1)


def _distance(mapped: PerceptualMap, target: Target, generator: Generator) -> float:
    """Give the squared distance of a generator's samples from the released averages."""
    import torch

    classes = len(target.means)
    each = math.ceil(_JUDGED_IMAGES / classes)
    device = next(generator.parameters()).device
    found = []
    for label in range(classes):
        codes = torch.randn(each, generator.code).to(device)
        onehot = torch.eye(classes, device=device)[label].expand(each, -1)
        found.append(_class_means(mapped, generator(codes, onehot)[None])[0].cpu())
    apart = torch.stack(found) - torch.from_numpy(target.means)
    return float((torch.from_numpy(target.weights) * apart.square().sum(1)).sum())
