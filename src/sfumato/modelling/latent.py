"""What the methods share that learn a distribution of feature vectors, and decode draws from it.

After "Large-scale public data improves differentially private image generation quality" (2023, its
authors unnamed). Encoder and decoder are public (`public/pair.py`); only the distribution of the
private images' feature vectors is learned, by class. All that follows the releases is free.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.condition import conditions_of
from sfumato.data.image_codec import ImageCodec
from sfumato.data.image_set import ImageSet
from sfumato.errors import SfumatoError
from sfumato.modelling.base import Given, Method, Model, Plan
from sfumato.modelling.class_counts import COUNT_SHARE, counts_of, drawn_classes, noisy_counts
from sfumato.modelling.expectation import Expectation, smallest_class
from sfumato.modelling.spaces import ImageSpace
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_spend
from sfumato.privacy.statistic import Statistic
from sfumato.progress import Progress, silent
from sfumato.public.provenance import Provenance
from sfumato.schema import Schema
from sfumato.statistics.algebra import FeatureMap, PerClass, Quantized

if TYPE_CHECKING:
    from sfumato.public.pair import Pair

Arrays = dict[str, NDArray[Any]]

GRID_BITS = 22
SUMS = "feature sums"


@dataclass(frozen=True, kw_only=True)
class LatentMethod(Method):
    """A method that learns feature vectors.

    Parameters
    ----------
    pair
        The file of the public encoder and decoder, as `sfumato public train` writes it.
    balanced
        The owner's public word that all classes are equally frequent.
    """

    pair: str = ""
    balanced: bool = False

    def codec(self, schema: Schema) -> ImageCodec:
        """Give the code of the image set."""
        if schema.images is None:
            raise SfumatoError(f"{self.name} is for image sets; for tables use pairs")
        return ImageCodec(schema.images)

    def space(self, schema: Schema) -> ImageSpace:
        """Give the space of the schema's images."""
        return ImageSpace(self.codec(schema))

    def public_inputs(self) -> tuple[Provenance, ...]:
        """Name the pair, and the networks that it builds on."""
        return self.public_pair().inputs

    def public_pair(self, space: ImageSpace | None = None) -> Pair:
        """Read the pair, and see that it fits."""
        return pair_for(self.name, self.pair, space)

    @abstractmethod
    def features(self, pair: Pair) -> FeatureMap:
        """Give what is summed of each image, by class."""

    @abstractmethod
    def learned(
        self, curator: Curator, space: ImageSpace, pair: Pair, counts: NDArray[np.float64]
    ) -> Arrays:
        """Ask for what is left of the budget, and learn what draws are made from."""

    @abstractmethod
    def drawn(
        self, pair: Pair, arrays: Arrays, classes: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.floating[Any]]:
        """Draw a feature vector of each class."""

    def summed(self, space: ImageSpace, pair: Pair) -> Statistic:
        """Give the statistic: a sum for each class."""
        whole = Quantized(self.features(pair), bits=GRID_BITS)
        return PerClass(whole, space.class_column, space.classes) if space.classes > 1 else whole

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released."""
        space = self.space(schema)
        pair = self.public_pair(space)
        counts = plan_spend("class counts", counts_of(space, self.balanced), budget, COUNT_SHARE)
        sums = plan_spend(SUMS, self.summed(space, pair), budget, 1 - COUNT_SHARE)
        return Plan(method=self.name, budget=budget, spends=(counts, sums), public=pair.inputs)

    def expect(self, schema: Schema, budget: Budget, rows: int) -> tuple[Expectation, ...]:
        """Compare the noise of a class's sum with its largest length, for classes of one size."""
        space = self.space(schema)
        statistic = self.summed(space, self.public_pair(space))
        sigma = plan_spend(SUMS, statistic, budget, 1 - COUNT_SHARE).sigma
        noise = self.noise_of_sum(statistic, space, sigma)
        return (
            Expectation(
                what="noise of a class's feature sum, of its largest length",
                part=noise * space.classes / rows,
                good=0.1,
                usable=1,
            ),
            smallest_class("smallest class that is seen", noise, rows),
        )

    def noise_of_sum(self, statistic: Statistic, space: ImageSpace, sigma: float) -> float:
        """Give the length of the noise of a class's sum, over what one image can add."""
        reach = statistic.sensitivity(Relation.ADD_REMOVE)
        return float(np.sqrt(statistic.dim / space.classes) * sigma / reach)

    def learn(self, curator: Curator, progress: Progress = silent) -> LatentModel:
        """Release the counts, then what the method learns from."""
        assert isinstance(curator.codec, ImageCodec)
        space = ImageSpace(curator.codec)
        pair = self.public_pair(space)
        released = curator.release("class counts", counts_of(space, self.balanced), COUNT_SHARE)
        counts = noisy_counts(released, space.classes)
        return LatentModel(
            method=self,
            schema=curator.schema,
            learned=self.learned(curator, space, pair, counts),
            guarantee=curator.guarantee,
            releases=tuple(curator.releases),
            public=pair.inputs,
            counts=counts,
        )


def pair_for(method: str, file: str, space: ImageSpace | None = None) -> Pair:
    """Read a method's pair, and see that it fits."""
    if not file:
        raise SfumatoError(
            f"{method} needs a public encoder and decoder: make them of public images with "
            "'sfumato public train', and name the file with --set pair=FILE"
        )
    found = _pair(file)
    if space and space.codec.shape != found.shape:
        sizes = (" x ".join(map(str, shape)) for shape in (found.shape, space.codec.shape))
        raise SfumatoError("{} is for images of {}, not of {}".format(file, *sizes))
    return found


@cache
def _pair(path: str) -> Pair:
    """Read a pair once."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise SfumatoError("a public encoder needs torch: pip install 'sfumato[neural]'") from None
    from sfumato.public.pair import load_pair

    return load_pair(path)


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentModel(Model):
    """A distribution of feature vectors, and the noisy number of images of each class."""

    method: LatentMethod
    counts: NDArray[np.float64]
    learned: Arrays

    @property
    def rows(self) -> int:
        """The noisy number of images."""
        return max(1, round(float(self.counts.sum())))

    def sample(self, n: int | None = None, given: Given | None = None, seed: int = 0) -> ImageSet:
        """Draw images; only the class can be given."""
        space = self.method.space(self.schema)
        pair = self.method.public_pair(space)
        if pair.inputs != self.public:
            raise SfumatoError(f"{self.method.pair} is not the pair that this model was made with")
        rng = np.random.default_rng(seed)
        n = self.how_many(n)
        classes = drawn_classes(self.counts, n, space, conditions_of(given), rng)
        vectors = self.method.drawn(pair, self.learned, classes, rng)
        images = pair.decode(vectors, int(rng.integers(1 << 32)))
        points = images.reshape(n, -1).astype(np.float32) / 255
        found: ImageSet = space.decode(points, classes, rng)
        return found

    def arrays(self) -> Arrays:
        """Give the counts and what was learned."""
        return {"counts": self.counts} | {f"learned/{k}": v for k, v in self.learned.items()}

    @classmethod
    def from_arrays(cls, arrays: Arrays, **common: Any) -> LatentModel:
        """Read back what `arrays` gave."""
        prefix = "learned/"
        learned = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        return cls(counts=arrays["counts"], learned=learned, **common)


LatentMethod.model_class = LatentModel
