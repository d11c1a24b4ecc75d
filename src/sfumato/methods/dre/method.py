"""DP-DRE: public feature vectors, weighted by how much likelier they are among the private ones.

The ratio of densities comes from one released sum for each class (`ratio.py`), or, as in the paper,
from a discriminator that is trained by noisy gradients (`discriminator.py`). Public vectors are
drawn by their weights, and decoded. What no public image shows cannot come out: the effective
number of images behind each class is kept, and a warning tells where it is small.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SfumatoError, within
from sfumato.modelling.base import GRADIENT_ARITHMETIC, Plan
from sfumato.modelling.class_counts import COUNT_SHARE
from sfumato.modelling.latent import GRID_BITS, SUMS, Arrays, LatentMethod
from sfumato.modelling.ratio import FEWEST, class_weights, effective_size
from sfumato.modelling.spaces import ImageSpace
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_training
from sfumato.schema import Schema

if TYPE_CHECKING:
    from sfumato.methods.dre.discriminator import Discriminator
    from sfumato.public.encoder import Encoder
    from sfumato.public.pair import Pair

RATIOS = ("means", "discriminator")
TRAINING = "discriminator"


@dataclass(frozen=True, kw_only=True)
class Dre(LatentMethod):
    """Weights of public images, for image sets.

    Parameters
    ----------
    ratio
        Where weights come from: "means", released at once, or a "discriminator".
    sharpness
        1 draws public images as often as they are likelier among the private ones; above it, those
        that are surely of the private kind, and fewer of them.
    width
        Of the discriminator's hidden layer.
    """

    name: ClassVar[str] = "dre"
    free: ClassVar[frozenset[str]] = LatentMethod.free | {"sharpness"}

    ratio: str = "means"
    sharpness: float = 1.0
    width: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        within(width=(self.width, 1, 1024), sharpness=(self.sharpness, 1, 10))
        if self.ratio not in RATIOS:
            raise SfumatoError(f"ratio is one of {', '.join(RATIOS)}, not '{self.ratio}'")

    @property
    def arithmetic(self) -> str:
        """What a reader of the certificate must know about gradients, where there are any."""
        return GRADIENT_ARITHMETIC if self.trains else ""

    @property
    def trains(self) -> bool:
        """Whether private rows are trained on: by a discriminator."""
        return self.ratio == "discriminator"

    def features(self, pair: Pair) -> Encoder:
        """Give the vectors."""
        return pair.encoder

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released, or trained."""
        plan = super().plan(schema, budget)
        if self.ratio == "means":
            return plan
        from sfumato.methods.dre.discriminator import SCHEDULE

        space = self.space(schema)
        learner = self._discriminator(space, self.public_pair(space), np.ones(space.classes))
        counts = plan.spends[:1]
        training = plan_training(TRAINING, learner.dim, SCHEDULE, budget, counts)
        return replace(plan, spends=counts, trainings=(training,))

    def learned(
        self, curator: Curator, space: ImageSpace, pair: Pair, counts: NDArray[np.float64]
    ) -> Arrays:
        """Release sums or train, and weigh the public images."""
        if self.ratio == "means":
            released = curator.release(SUMS, self.summed(space, pair), 1 - COUNT_SHARE)
            unit = float(1 << GRID_BITS)
            means = released.values.reshape(space.classes, -1) / unit / counts[:, None]
            public = pair.features.astype(np.float64)
            logs = class_weights(public, means, counts, released.sigma / unit, self.sharpness)
        else:
            from sfumato.methods.dre.discriminator import SCHEDULE

            learner = self._discriminator(space, pair, counts)
            state = curator.train(TRAINING, learner, SCHEDULE)
            logs = self.sharpness * learner.log_ratios(state.weights)
        _warn_of_few(logs)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return {"weights": (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)}

    def drawn(
        self, pair: Pair, arrays: Arrays, classes: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float32]:
        """Draw public vectors by their weights."""
        chosen = np.empty(len(classes), np.int64)
        for label in np.unique(classes):
            weights = arrays["weights"][label].astype(np.float64)
            here = np.flatnonzero(classes == label)
            chosen[here] = rng.choice(len(weights), len(here), p=weights / weights.sum())
        return pair.features[chosen]

    def _discriminator(
        self, space: ImageSpace, pair: Pair, counts: NDArray[np.float64]
    ) -> Discriminator:
        from sfumato.methods.dre.discriminator import Discriminator

        return Discriminator(space, pair, counts, self.width, self.seed)


def _warn_of_few(logs: NDArray[np.float64]) -> None:
    sizes = [effective_size(each) for each in logs]
    few = [size for size in sizes if size < 1.05 * FEWEST]
    if few:
        warnings.warn(
            f"{len(few)} of {len(logs)} classes rest on few of the {logs.shape[1]:,} public images "
            f"(in effect {min(few):.0f}): public images more like the private ones would help",
            stacklevel=2,
        )
