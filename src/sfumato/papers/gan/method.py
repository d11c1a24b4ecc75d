"""DP-GAN: a generator that learns from a critic, which is trained by noisy gradients.

The baselines that papers compare with. The critic sees private rows, the generator only the critic
(Xie et al. 2018), both by class (Torkzadehmahani et al. 2019). From scratch in rows or pixels; from
a GAN of public images (`start=public`); or of two small networks in a public encoder's feature
space, decoded by its decoder (`space=features`).

The critic learns the logistic loss, whose gradients are bounded, and its slope at generated points
is penalised, which costs nothing: without the penalty, a class becomes a handful of points, with
noise and without. A Wasserstein loss with such a penalty did worse in three trials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SfumatoError, within
from sfumato.modelling.base import GRADIENT_ARITHMETIC, Plan
from sfumato.modelling.class_counts import COUNT_SHARE, counts_of, noisy_counts
from sfumato.modelling.expectation import Expectation
from sfumato.modelling.generator import GeneratorMethod, GeneratorModel
from sfumato.modelling.latent import pair_for
from sfumato.modelling.spaces import Classes, ImageSpace, Points, PointSpace
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_spend, plan_training
from sfumato.progress import Progress, silent
from sfumato.public.provenance import Provenance
from sfumato.schema import Schema

if TYPE_CHECKING:
    from sfumato.modelling.networks import Generator
    from sfumato.papers.gan.learner import AdversarialLearner
    from sfumato.privacy.dpsgd import Schedule
    from sfumato.public.pair import Pair

TRAINING = "critic"
STARTS = ("scratch", "public")
USUAL = {
    "rows": {"rate": 0.02, "epochs": 20.0, "learning_rate": 0.001, "penalty": 5.0},
    "features": {"rate": 0.2, "epochs": 200.0, "learning_rate": 0.003, "penalty": 100.0},
}
"""What is chosen in each space where nothing is said."""


@dataclass(frozen=True, kw_only=True)
class Gan(GeneratorMethod):
    """A generative adversarial network, for tables and image sets.

    Parameters
    ----------
    start
        "scratch", or "public": from a GAN of the public images in `pair`.
    space
        Where both networks work: in "rows" (numbers and categories, or pixels), or in "features",
        the vectors of `pair`'s encoder.
    pair
        The file of a public encoder and decoder, as `sfumato public train` writes it.
    rate, epochs, clip, learning_rate
        Of the critic's noisy gradients. None: what is usual in the space (`USUAL`).
    critic_steps
        Steps of the critic to one of the generator.
    penalty
        On the squared slope of the critic at generated points. None: what is usual in the space.

    `target` and `balanced` are those of `GeneratorMethod`.
    """

    name: ClassVar[str] = "gan"
    arithmetic: ClassVar[str] = GRADIENT_ARITHMETIC

    start: str = "scratch"
    space: str = "rows"
    pair: str = ""
    rate: float | None = None
    epochs: float | None = None
    clip: float = 1.0
    learning_rate: float | None = None
    critic_steps: int = 1
    penalty: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        within(rate=(self.rate, 1e-6, 1), epochs=(self.epochs, 1e-3, 10_000))
        within(clip=(self.clip, 1e-6, 1_000_000), learning_rate=(self.learning_rate, 1e-9, 1000))
        within(critic_steps=(self.critic_steps, 1, 10_000), penalty=(self.penalty, 0, 1e6))
        for name, value, known in (
            ("start", self.start, STARTS), ("space", self.space, tuple(USUAL)),
        ):  # fmt: skip
            if value not in known:
                raise SfumatoError(f"{name} is one of {', '.join(known)}, not '{value}'")

    @property
    def trains(self) -> bool:
        """Whether private rows are trained on: by the critic."""
        return True

    @property
    def schedule(self) -> Schedule:
        """Say how long the critic is trained, and how it sees rows."""
        from sfumato.privacy.dpsgd import Schedule

        chosen = self.chosen
        return Schedule(
            rate=chosen["rate"],
            epochs=chosen["epochs"],
            clip=self.clip,
            learning_rate=chosen["learning_rate"],
        )

    @property
    def chosen(self) -> dict[str, float]:
        """Give the settings that hang on the space: as given, or as usual."""
        usual = USUAL[self.space]
        given = {key: getattr(self, key) for key in usual}
        return usual | {key: value for key, value in given.items() if value is not None}

    def public_inputs(self) -> tuple[Provenance, ...]:
        """Name the pair, where one is used."""
        return pair_for(self.name, self.pair).inputs if self._builds_on_pair else ()

    @property
    def _builds_on_pair(self) -> bool:
        return self.start == "public" or self.space == "features"

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released and trained."""
        space = self.point_space(schema)
        counts = plan_spend("class counts", counts_of(space, self.balanced), budget, COUNT_SHARE)
        learner = self.learner(space, np.ones(space.classes))
        training = plan_training(TRAINING, learner.dim, self.schedule, budget, (counts,))
        return Plan(
            method=self.name,
            budget=budget,
            spends=(counts,),
            trainings=(training,),
            public=self.public_inputs(),
        )

    def expect(self, schema: Schema, budget: Budget, rows: int) -> tuple[Expectation, ...]:
        """Compare the noise of a step with the largest sum that its rows' gradients can have."""
        (spend,) = self.plan(schema, budget).trainings
        return (
            Expectation(
                what="noise of a step, of its largest sum",
                part=spend.sigma * math.sqrt(spend.dim) / (spend.clip * spend.rate * rows),
                good=0.3, usable=3, words=f"noise multiplier {spend.noise_multiplier:.3g}",
            ),
        )  # fmt: skip

    def learn(self, curator: Curator, progress: Progress = silent) -> GeneratorModel:
        """Release the counts, and have the critic trained, the generator beside it."""
        space = self.point_space(curator.schema)
        self.learner(space, np.ones(space.classes))  # what is missing is said before it costs
        released = curator.release("class counts", counts_of(space, self.balanced), COUNT_SHARE)
        counts = noisy_counts(released, space.classes)
        learner = self.learner(space, counts)
        if self.start == "public":
            learner.practise(self._public_points(space), progress)
        state = curator.train(TRAINING, learner, self.schedule)
        average = "side/average/"
        return GeneratorModel(
            method=self,
            schema=curator.schema,
            guarantee=curator.guarantee,
            releases=tuple(curator.releases),
            public=self.public_inputs(),
            counts=counts,
            weights={
                key.removeprefix(average): array
                for key, array in state.arrays.items()
                if key.startswith(average)
            },
        )

    def learner(self, space: PointSpace, counts: NDArray[np.float64]) -> AdversarialLearner:
        """Make critic and generator, with their first weights."""
        generator = self.generator(space)  # or says that torch is missing
        from sfumato.papers.gan.learner import AdversarialLearner

        pair = self._pair(space) if self.space == "features" else None
        return AdversarialLearner(space, generator, pair, counts, self)

    def network_for(self, space: PointSpace) -> Generator:
        """Make the generator: residual for colour, a small one for feature vectors."""
        from sfumato.modelling.networks import ImageGenerator, ResidualGenerator, VectorGenerator

        if self.space == "features":
            return VectorGenerator(space.classes, self._pair(space).encoder.dim)
        if not isinstance(space, ImageSpace):
            return super().network_for(space)
        if space.codec.shape[2] == 3:
            return ResidualGenerator(64, space.classes, space.codec.shape)
        return ImageGenerator(16, space.classes, space.codec.shape, channels=(8, 4))

    def decoded(
        self, space: PointSpace, points: Points, classes: Classes, rng: np.random.Generator
    ) -> Any:
        """Decode vectors, where the networks work in features."""
        if self.space == "rows":
            return super().decoded(space, points, classes, rng)
        pair = self._pair(space)
        images = pair.decoder(np.asarray(points, np.float32), int(rng.integers(1 << 32)))
        pixels = images.reshape(len(images), -1).astype(np.float32) / 255
        return super().decoded(space, pixels, classes, rng)

    def _pair(self, space: PointSpace) -> Pair:
        if not isinstance(space, ImageSpace):
            raise SfumatoError("public images help image sets only: for tables start from scratch")
        return pair_for(self.name, self.pair, space)

    def _public_points(self, space: PointSpace) -> NDArray[np.float32]:
        """Give what a critic may see of public images."""
        pair = self._pair(space)
        if self.space == "features":
            return pair.in_units(pair.features)
        images = pair.decoder.arrays().get("images")
        if images is None:
            raise SfumatoError(f"{self.pair} keeps no public images: make it with a gallery")
        return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)
