"""What the methods share that train a generator to meet released mean embeddings.

First the number of rows of each class is released, for a small share of the budget; then what the
method asks for. All that follows is training on released values, and free.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import within
from sfumato.modelling.base import Plan
from sfumato.modelling.class_counts import COUNT_SHARE, counts_of, noisy_counts
from sfumato.modelling.expectation import Expectation, smallest_class
from sfumato.modelling.generator import GeneratorMethod, GeneratorModel
from sfumato.modelling.spaces import PointSpace, space_of
from sfumato.modelling.target_advice import target_advice
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_spend
from sfumato.privacy.statistic import Statistic
from sfumato.progress import Progress, silent
from sfumato.schema import Schema

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.modelling.networks import Generator
    from sfumato.papers.embedding.training import Embedding, Target

_TARGET = "Each class of a target is learned apart, from its own rows, and can be asked for."


@dataclass(frozen=True, kw_only=True)
class EmbeddingMethod(GeneratorMethod):
    """A method that meets mean embeddings.

    Parameters
    ----------
    steps
        The most steps to train.

    `target` and `balanced` are those of `GeneratorMethod`.
    """

    free: ClassVar[frozenset[str]] = frozenset({"seed", "steps"})
    notes: ClassVar[tuple[str, ...]] = ()
    """What a plan cannot know, in words."""
    shared: ClassVar[frozenset[str]] = frozenset()
    """Embeddings of all rows together, and not of each class."""
    batch: ClassVar[int] = 500
    """Generated rows in a step."""

    steps: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        within(steps=(self.steps, 1, 1_000_000))

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released."""
        space = self.point_space(schema)
        counts = plan_spend("class counts", counts_of(space, self.balanced), budget, COUNT_SHARE)
        spends = [
            plan_spend(name, statistic, budget, share)
            for name, (statistic, share) in self.embeddings(space, budget).items()
        ]
        advice = () if self.target else target_advice(schema, _TARGET, numbers=False)
        return Plan(
            method=self.name,
            budget=budget,
            spends=(counts, *spends),
            notes=self.notes + advice,
            public=self.public_inputs(),
        )

    @abstractmethod
    def embeddings(
        self, space: PointSpace, budget: Budget, rows: int | None = None
    ) -> dict[str, tuple[Statistic, float]]:
        """Give the embeddings by name, with their shares of the budget.

        Sizes are upper bounds; closer ones where the number of rows is public.
        """

    def expect(self, schema: Schema, budget: Budget, rows: int) -> tuple[Expectation, ...]:
        """Say what the noise lets expect, were the rows spread evenly over the classes.

        The length of the noise on a class's embedding is compared with the largest that the
        embedding of its rows can have.
        """
        space = self.point_space(schema)
        of_class = rows / space.classes
        counts = plan_spend(
            "class counts", counts_of(space, self.balanced), budget, COUNT_SHARE
        ).sigma
        found = [
            Expectation(
                what="error of the number of rows of a class", part=counts / of_class,
                good=0.05, usable=0.3, words=f"{counts:,.0f} rows",
            )
        ]  # fmt: skip
        noises = []
        for name, (statistic, share) in self.embeddings(space, budget, rows).items():
            if name in self.shared:
                continue  # ten classes' rows against one class's: its noise is the least concern
            sigma = plan_spend(name, statistic, budget, share).sigma
            reach = statistic.sensitivity(Relation.ADD_REMOVE)
            noises.append(math.sqrt(statistic.dim / space.classes) * sigma / reach)
            found.append(
                Expectation(
                    what=f"noise of a class's {name}, of its largest length",
                    part=noises[-1] / of_class,
                    good=0.1,
                    usable=1,
                )
            )
        return (*found, smallest_class("smallest class that is seen", min(noises), rows))

    @abstractmethod
    def targets(
        self, curator: Curator, space: PointSpace, counts: NDArray[np.float64]
    ) -> list[tuple[Embedding, Target]]:
        """Release embeddings; the generator is trained to meet one after the other."""

    def learn(self, curator: Curator, progress: Progress = silent) -> GeneratorModel:
        """Release the counts and the embeddings, and train a generator to meet them."""
        space = space_of(curator.codec, self.target)
        # What fails, for want of torch or of a network, fails before anything is spent.
        generator = self.generator(space)
        self.embeddings(space, curator.budget)
        released = curator.release("class counts", counts_of(space, self.balanced), COUNT_SHARE)
        counts = noisy_counts(released, space.classes)
        self.train(generator, self.targets(curator, space, counts), curator, counts, progress)
        return GeneratorModel(
            method=self,
            schema=curator.schema,
            guarantee=curator.guarantee,
            releases=tuple(curator.releases),
            public=self.public_inputs(),
            counts=counts,
            weights={k: v.numpy() for k, v in generator.state_dict().items()},
        )

    def train(
        self,
        generator: Generator,
        targets: list[tuple[Embedding, Target]],
        curator: Curator,
        counts: NDArray[np.float64],
        progress: Progress,
    ) -> None:
        """Train the generator to meet one target after the other."""
        from sfumato.papers.embedding.training import Training, match

        for number, (embedding, target) in enumerate(targets):
            match(
                generator,
                embedding,
                target,
                Training(steps=-(-self.steps // len(targets)), batch=self.batch),
                seed=self.seed + number,
                checkpoint=self._checkpoint(curator, number),
                progress=progress,
            )

    def _checkpoint(self, curator: Curator, number: int) -> Path | None:
        """Name the state of a training by all that determines it."""
        if curator.folder is None:
            return None
        identity = sha256(json.dumps([self.name, asdict(self), number]).encode())
        for release in curator.releases:
            identity.update(release.values.tobytes())
        return curator.folder / f"generator-{identity.hexdigest()[:16]}.safetensors"


def with_nulls(space: PointSpace, points: Tensor) -> tuple[Tensor, Tensor]:
    """Part generated points into numbers and blocks, with nulls among the numbers.

    Where a private number is null, the middle of its bounds stands for it; so it does where a
    generated one is drawn to be null.
    """
    import torch

    numbers, blocks = points.tensor_split([space.size], dim=1)
    if space.flags:
        chances = points[:, [flag.flag for flag in space.flags]].detach()
        places = [flag.number for flag in space.flags]
        defaults = points.new_tensor([flag.default for flag in space.flags])
        missing = torch.rand_like(chances) < chances
        numbers = numbers.clone()
        numbers[:, places] = torch.where(missing, defaults, numbers[:, places])
    return numbers, blocks
