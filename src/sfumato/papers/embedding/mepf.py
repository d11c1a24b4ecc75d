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
- A bank of pictures takes the generator's place (`picture_bank.py`): of public ones, where there
  are any (`pair`); else of draws from the pixels' own moments (`methods/moments/`), which get a
  part of the budget. They are moved until they meet the embedding. A generator that starts from
  nothing, as in the paper (`pixels=0`), wants more steps than a laptop can make.
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
from sfumato.methods.moments import MomentFit, plan_moments
from sfumato.modelling.base import GRADIENT_ARITHMETIC, Plan
from sfumato.modelling.class_counts import COUNT_SHARE
from sfumato.modelling.latent import pair_for
from sfumato.modelling.spaces import ImageSpace, PointSpace
from sfumato.papers.embedding.base import EmbeddingMethod
from sfumato.privacy.answers import Release
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_training
from sfumato.privacy.statistic import Statistic
from sfumato.progress import Progress
from sfumato.public.catalogue import load_network
from sfumato.public.provenance import Provenance
from sfumato.schema import Schema
from sfumato.statistics.algebra import FeatureMap, PerClass, Quantized

if TYPE_CHECKING:
    from sfumato.modelling.networks import Generator
    from sfumato.papers.embedding.picture_bank import PictureBank
    from sfumato.papers.embedding.training import Embedding, Target
    from sfumato.public.extractor import Extractor
    from sfumato.public.perceptual import PerceptualMap

CENTRE_PART = 0.1  # of what the embeddings get
TRAINED = "trained"  # instead of a public network's name
TRAINING_SHARE = 0.3  # of an extractor
STOP_RATIO = 0.01  # ten times the noise per sensitivity

_GRID_BITS = 22
_PICTURES = 3000  # in a bank of public ones
_DRAWN = 10_000  # in a bank of drawn ones
_AXES = 60  # of the moments of which these are drawn
_GREY_CODE, _CODE = 32, 64  # random numbers behind a grey image, and behind a colour image
_JUDGED_IMAGES = 1000


@dataclass(frozen=True, kw_only=True)
class Mepf(EmbeddingMethod):
    """Perceptual mean embeddings, for image sets.

    Parameters
    ----------
    network
        The public network, by its name: efficientnet-lite0, vgg19, alexnet, mobilenet, untrained,
        torchvision:NAME, timm:NAME, NAME=FILE, or what `register_network` was told. With
        "trained" it is a small one, trained on the private images for a part of the budget. None
        takes AlexNet's first two layers or, with a `pair`, EfficientNet-Lite0.
    layers
        How many of the network's maps are taken, from the first on; None takes all.
    grid
        Maps are averaged over so many cells each way; None is 6 or, with a `pair`, 1.
    pixels
        The part of the budget that goes to the pixels' own moments, from which pictures are drawn
        to start with. 0 leaves them out: a generator starts from nothing, as in the paper. None is
        0.9, or 0 with a `pair` or with `stopping`.
    squares
        The part of the embedding's budget that goes to the squares of maps; 0 leaves them out.
    centred
        Whether the mean embedding of all images is released first, and what is taken of each image
        is where it lies from there.
    pair
        The file of public images that `sfumato public train` wrote with a gallery: pictures start
        from these.
    stopping
        Whether to pay for a second, small release that tells which generator on the way is best.
        Otherwise training rests at the size of the known noise, which costs nothing.

    `balanced` and `steps` are those of `EmbeddingMethod`. A generator that starts from nothing
    wants thousands of steps.
    """

    name: ClassVar[str] = "mepf"
    batch: ClassVar[int] = 200
    shared: ClassVar[frozenset[str]] = frozenset({"centre"})

    network: str | None = None
    layers: int | None = None
    grid: int | None = None
    pixels: float | None = None
    squares: float = 0.0
    centred: bool = True
    pair: str = ""
    stopping: bool = False
    steps: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        within(
            layers=(self.layers, 1, 10_000),
            grid=(self.grid, 1, 1024),
            pixels=(self.pixels, 0, 0.99),
            squares=(self.squares, 0, 0.99),
        )
        if self.stopping and (self.pair or self.pixels):
            raise SfumatoError(
                "stopping is for a generator that starts from nothing: leave out pair and pixels, "
                "or stopping"
            )
        if self.pair and self.pixels:
            raise SfumatoError("pictures start from a pair or from pixels: leave one of them out")

    @property
    def _pixels(self) -> float:
        """The part of the budget that goes to the pixels' moments."""
        if self.pixels is not None:
            return self.pixels
        return 0.0 if self.pair or self.stopping else 0.9

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
        network = () if self.network == TRAINED else (self._public().about,)
        return (*network, pair_for(self.name, self.pair).about) if self.pair else network

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
        if self.pair:
            self._public_images(space)  # what is wrong with them shows before anything is spent
        extractor = self._extractor(space)
        mapped = self._map(space, extractor)
        if self.centred:
            found["centre"] = (Quantized(mapped, bits=_GRID_BITS), CENTRE_PART * self._left)
            mapped = mapped.around(np.zeros(mapped.dim))
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
            centre = curator.release(
                "centre", Quantized(mapped, bits=_GRID_BITS), CENTRE_PART * self._left
            )
            laid = curator.layout(
                "perceptual embedding",
                lambda: {"centre": centre.values / (1 << _GRID_BITS) / counts.sum()},
            )
            mapped = mapped.around(laid["centre"])
        release = curator.release("perceptual embedding", self._summed(space, mapped), self._share)
        target = _target(release, mapped.blocks, counts, space.size)
        if self.stopping:
            last = self._last_layer(space, extractor)
            share = self._share * STOP_RATIO
            averages = curator.release("last layer", self._summed(space, last), share)
            wanted = _target(averages, last.blocks, counts, last.dim)
            target = replace(target, judge=partial(_distance, last, wanted))
        return [(mapped.class_means, target)]

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released, and trained."""
        plan = super().plan(schema, budget)
        if self._pixels:
            share = self._pixels * self._whole
            moments = plan_moments(self.codec(schema), budget, share, _AXES)
            plan = replace(plan, spends=plan.spends + moments)
        if self.network != TRAINED:
            return plan
        from sfumato.papers.embedding.trained_extractor import SCHEDULE, TRAINING, learner_for

        dim = learner_for(self.point_space(schema), self.seed).dim
        training = plan_training(TRAINING, dim, SCHEDULE, budget, plan.spends)
        return replace(plan, trainings=(training,))

    def network_for(self, space: PointSpace) -> Generator:
        """Make the generator: residual for colour; or a bank of pictures."""
        from sfumato.modelling.networks import ImageGenerator, ResidualGenerator

        assert isinstance(space, ImageSpace)
        if self.pair or self._pixels:
            from sfumato.papers.embedding.picture_bank import PictureBank

            each = math.ceil((_PICTURES if self.pair else _DRAWN) / space.classes)
            return PictureBank(space.classes, each, space.codec.shape)
        if space.codec.shape[2] == 1:
            return ImageGenerator(_GREY_CODE, space.classes, space.codec.shape)
        return ResidualGenerator(_CODE, space.classes, space.codec.shape)

    def train(
        self,
        generator: Generator,
        targets: list[tuple[Embedding, Target]],
        curator: Curator,
        counts: NDArray[np.float64],
        progress: Progress,
    ) -> None:
        """Train the generator; or fill the bank with pictures, and move them."""
        from sfumato.papers.embedding.picture_bank import Moving, PictureBank, fill, refine

        if not isinstance(generator, PictureBank):
            return super().train(generator, targets, curator, counts, progress)
        ((embedding, target),) = targets
        if self.pair:
            progress("choosing public pictures", None)
            public = self._public_images(self.point_space(curator.schema))
            fill(generator, embedding, target, counts, public, self.seed)
        else:
            self._draw(generator, curator, progress)
        return refine(
            generator,
            embedding,
            target,
            # Public pictures have farther to go, and need not stay where they are.
            Moving(self.steps, rate=0.01, shift=2) if self.pair else Moving(self.steps, rate=0.001),
            seed=self.seed,
            checkpoint=self._checkpoint(curator, 0),
            progress=progress,
        )

    def _draw(self, bank: PictureBank, curator: Curator, progress: Progress) -> None:
        """Release the pixels' moments, and draw pictures from them."""
        import torch

        rng = np.random.default_rng(self.seed)
        assert isinstance(curator.codec, ImageCodec)
        share = self._pixels * self._whole
        # With detail: classifiers that are trained to the end, as the paper's are, need it.
        model = MomentFit(
            curator, curator.codec, rng, progress, detail=True, share=share, axes=_AXES
        ).model()
        for label, pictures in enumerate(bank.pictures.data):
            pictures.copy_(torch.from_numpy(model.images(label, len(pictures), rng)))

    def _public_images(self, space: PointSpace) -> NDArray[np.uint8]:
        assert isinstance(space, ImageSpace)
        images = pair_for(self.name, self.pair, space).decoder.arrays().get("images")
        if images is None:
            raise SfumatoError(f"{self.pair} keeps no public images: make it with a gallery")
        return images

    @property
    def _whole(self) -> float:
        """The share of the budget that is left for pixels and embeddings."""
        return 1 - COUNT_SHARE - (TRAINING_SHARE if self.network == TRAINED else 0.0)

    @property
    def _left(self) -> float:
        """The share that embeddings get."""
        return self._whole * (1 - self._pixels)

    @property
    def _share(self) -> float:
        """The share of the embedding itself."""
        share = self._left * (1 - CENTRE_PART if self.centred else 1)
        return share / (1 + STOP_RATIO) if self.stopping else share

    def _public(self) -> Extractor:
        if self.network or self.pair:
            return _network(self.network or "efficientnet-lite0", self.layers)
        return _network("alexnet", self.layers or 2)

    def _extractor(self, space: PointSpace, curator: Curator | None = None) -> Extractor:
        """Read a public network, or have one trained; without a curator it is as at its start."""
        if self.network != TRAINED:
            return self._public()
        from sfumato.papers.embedding.trained_extractor import trained, untrained

        if curator is None:
            return untrained(space, self.seed)
        return trained(curator, space, self.seed, TRAINING_SHARE)

    def _map(self, space: PointSpace, extractor: Extractor) -> PerceptualMap:
        from sfumato.public.perceptual import PerceptualMap

        assert isinstance(space, ImageSpace)
        grid = self.grid or (1 if self.pair else 6)
        return PerceptualMap(extractor, space.codec.shape, grid, self.squares)

    def _last_layer(self, space: PointSpace, extractor: Extractor) -> PerceptualMap:
        from sfumato.public.perceptual import PerceptualMap

        assert isinstance(space, ImageSpace)
        return PerceptualMap(extractor, space.codec.shape, grid=1, squares=0.5, last=1)

    def _summed(self, space: PointSpace, mapped: FeatureMap) -> Statistic:
        whole = Quantized(mapped, bits=_GRID_BITS)
        if space.classes == 1:
            return whole
        return PerClass(whole, space.class_column, space.classes)


@cache
def _network(name: str, layers: int | None) -> Extractor:
    """Read a network once."""
    whole = load_network(name)
    return whole.first(layers) if layers else whole


def _target(release: Release, blocks: list[int], counts: NDArray[np.float64], free: int) -> Target:
    """Make mean embeddings of released sums; samples can move them in `free` directions."""
    from sfumato.papers.embedding.training import Target

    unit = 1 << _GRID_BITS
    return Target.of(
        release.values.reshape(len(counts), -1) / unit,
        counts,
        release.sigma / unit,
        [(size, free) for size in blocks],
    )


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
        found.append(mapped.class_means(generator(codes, onehot)[None])[0].cpu())
    apart = torch.stack(found) - torch.from_numpy(target.means)
    return float((torch.from_numpy(target.weights) * apart.square().sum(1)).sum())
