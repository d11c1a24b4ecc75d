"""`moments`: images by their moments, the default for image sets.

Each class is modelled in a basis that is learned from noisy second moments: by ellipsoids, whose
shapes and radii are released, and by cells, in which draws from the ellipsoids are reweighted and
shifted to what was released about them. No network, no public data. The family's root is the
Gaussian in a public encoder's feature space (DP-MGE); here the encoder is a
cosine transform and the Gaussian a mixture per class.

Whatever is decided on the way (basis, bounds, groups, cells) follows from earlier releases and the
known size of their noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.data.condition import class_condition, conditions_of
from sfumato.data.image_codec import IMAGE_CLASS, ImageCodec
from sfumato.data.image_set import ImageSet
from sfumato.errors import SfumatoError, within
from sfumato.methods.moments.fit import MomentFit, expect_moments, plan_moments
from sfumato.methods.moments.image_model import ImageModel
from sfumato.methods.moments.relabelled import relabelled
from sfumato.modelling.base import Given, Method, Model, Plan
from sfumato.modelling.expectation import Expectation
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.progress import Progress, silent
from sfumato.schema import Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Moments(Method):
    """Count, mean and second moments of each class, in a basis learned from the data.

    Parameters
    ----------
    detail
        Whether to add, at random, what the pooled second moments tell of an image beyond the
        coordinates that are modelled, and to make pixels as dark and as bright as they are, by a
        release of its own. Images look sharp. Linear classifiers that are trained to the end and
        trees need it. At epsilon 0.2 it is mostly noise.
    axes
        How many coordinates of an image are modelled at the most, where the noise allows them. By
        default as many as a fiftieth of a class's images, between 60 and 120. Handwriting is a
        little better with 60; colour gains by more.
    deform
        How much drawn images are turned, stretched, slanted and shifted at random; 1 is about 3
        degrees, 4% and half a pixel of 28. It costs nothing. Handwriting gains by 1.5; clothes,
        which lie as their photographer put them, lose.
    relabel
        Whether a fifth of the budget goes to a classifier that says of what class each drawn image
        is. Left out where images have no classes, or are too few for the noise.

    >>> from sfumato.schema import Images
    >>> schema = Schema(images=Images(height=8, width=8, classes=("cat", "dog")))
    >>> [spend.name for spend in Moments().plan(schema, Budget(epsilon=1)).spends][:2]
    ['extent', 'basis']
    """

    name: ClassVar[str] = "moments"
    free: ClassVar[frozenset[str]] = Method.free | {"deform"}

    detail: bool = False
    deform: float = 0.0
    axes: int | None = None
    relabel: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        within(deform=(self.deform, 0, 10), axes=(self.axes, 1, 200))

    def codec(self, schema: Schema) -> ImageCodec:
        if schema.images is None:
            raise SfumatoError("moments is for image sets; for tables use pairs")
        return ImageCodec(schema.images)

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released at the most."""
        return Plan(
            method=self.name,
            budget=budget,
            spends=plan_moments(
                self.codec(schema), budget, axes=self.axes, levels=self.detail, relabel=self.relabel
            ),
            notes=(
                "Where images are few, groups and cells become fewer, and 'groups' and the "
                "classifier are left out.",
            ),
        )

    def expect(self, schema: Schema, budget: Budget, rows: int) -> tuple[Expectation, ...]:
        """Say what the noise lets expect, were the images spread evenly over the classes."""
        return expect_moments(self.codec(schema), budget, rows, self.relabel)

    def learn(self, curator: Curator, progress: Progress = silent) -> MomentsModel:
        """Release moments step by step, each step laid out by the ones before."""
        codec = curator.codec
        assert isinstance(codec, ImageCodec)
        rng = np.random.default_rng(self.seed)
        fitted = MomentFit(
            curator, codec, rng, progress, self.detail, axes=self.axes, levels=self.detail,
            relabel=self.relabel,
        ).model()  # fmt: skip
        return MomentsModel(
            method=self,
            schema=curator.schema,
            guarantee=curator.guarantee,
            releases=tuple(curator.releases),
            images=fitted,
        )


@dataclass(frozen=True, kw_only=True)
class MomentsModel(Model):
    """An image model of each class."""

    images: ImageModel

    @property
    def rows(self) -> int:
        return max(1, round(float(self.images.class_counts.sum())))

    def sample(self, n: int | None = None, given: Given | None = None, seed: int = 0) -> ImageSet:
        """Draw images; ``given={"class": [3, 5]}`` draws these classes only."""
        rng = np.random.default_rng(seed)
        count = self.how_many(n)
        codec = self.method.codec(self.schema)
        assert isinstance(codec, ImageCodec)
        classes = codec.images.classes
        shares = self.images.class_counts
        if given:
            name = IMAGE_CLASS if classes else None
            shares = shares * class_condition(name, codec.class_code, conditions_of(given)).kept
        sizes = rng.multinomial(count, shares / shares.sum())
        assert isinstance(self.method, Moments)
        deform = self.method.deform

        # To bytes class by class: all images at once as floats would take several times the memory.
        def finished(pixels: NDArray[np.float32]) -> NDArray[np.uint8]:
            return codec.decode(self.images.deformed(pixels, deform, rng))

        if self.images.classifier is None:
            drawn = [
                finished(self.images.images(label, size, rng)) for label, size in enumerate(sizes)
            ]
        else:
            drawn = relabelled(self.images, self.images.classifier, sizes, rng, finished)
        order = rng.permutation(count)
        labels = np.array(classes)[np.repeat(np.arange(len(sizes)), sizes)] if classes else None
        return ImageSet(np.concatenate(drawn)[order], None if labels is None else labels[order])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.images.arrays()

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], **common: Any) -> MomentsModel:
        return cls(images=ImageModel.from_arrays(arrays), **common)


Moments.model_class = MomentsModel
