"""DP-MERF: a generator whose random Fourier mean embedding meets a released one.

Harder, Adamczewski and Park (2021). Two releases: the number of rows of each class, and for each
class the sum of

    h(x) = [phi(x_num) ; x_cat / sqrt(q)]

with phi the Fourier features of the numbers (for images: of the pixels) and x_cat the one-hot
vectors of q categories. Both parts have norm 1. The categories are counted, so that replacing a
row costs sqrt(2) instead of 2 for them, and sqrt(6) in all, where the paper has 2 sqrt(2). All
that follows is training on released values.

Departures from the paper: length scales follow a public rule, and not the rows; noisy classes are
drawn to the mean of all; the loss has no bias from small batches; training ends at the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.codec import Codec
from sfumato.errors import SfumatoError
from sfumato.features.base import Concat, PerClass, Quantized, Statistic, Weighted
from sfumato.features.fourier import Fourier, best_features
from sfumato.features.marginals import Counts
from sfumato.generators.layout import ImageLayout, Layout, layout_of
from sfumato.images import ImageCodec
from sfumato.methods.base import Given, Method, Model, Plan
from sfumato.privacy.budget import Budget
from sfumato.privacy.release import Curator, Release, plan_spend
from sfumato.privacy.zcdp import gaussian_scale
from sfumato.progress import Progress, silent
from sfumato.schema import Schema, canonical_text
from sfumato.writing import ImageSet

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.generators.networks import Generator

COUNT_SHARE = 0.05
MOST_FEATURES = 2_000  # bounds the time of a training step

_TABLE_CODE, _IMAGE_CODE = 14, 5  # random numbers behind a row
_GRID_BITS = 20
_GRID = 1 << _GRID_BITS
_IMAGE_SCALE = 0.37  # times sqrt(pixels): the paper's length scale on 28x28
_TABLE_SCALE = 0.3
_SAMPLED_AT_ONCE = 2_000


@dataclass(frozen=True, kw_only=True)
class Merf(Method):
    """Random Fourier mean embeddings, for tables and image sets.

    Parameters
    ----------
    target
        The column to condition on, a category. None models all columns alike. The classes of an
        image set are those of its schema.
    balanced
        The owner's public word that all classes are equally frequent: then only the number of
        rows is released, and not that of each class.
    features
        The number of Fourier features; 0 takes the number, up to 2,000, with the smallest error
        bound for the budget and the noisy number of rows.
    steps
        The most steps to train.
    """

    name: ClassVar[str] = "merf"
    model_class: ClassVar[type[Model]]

    target: str | None = None
    balanced: bool = False
    features: int = 0
    steps: int = 1000

    def __post_init__(self) -> None:
        if self.features < 0 or self.features % 2:
            raise SfumatoError(f"features must be an even number, got {self.features}")
        if self.steps < 1:
            raise SfumatoError(f"steps must be at least 1, got {self.steps}")

    def codec(self, schema: Schema) -> Codec | ImageCodec:
        """Give the code of the schema."""
        return ImageCodec(schema.images) if schema.images else Codec(schema)

    def layout(self, schema: Schema) -> Layout:
        """Give the layout of the schema's rows."""
        return layout_of(self.codec(schema), self.target)

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released, with as many features as there may be."""
        layout = self.layout(schema)
        embedding = MeanEmbedding(layout, self.features or MOST_FEATURES, self.seed)
        return Plan(
            method=self.name,
            budget=budget,
            spends=(
                plan_spend("class counts", self._counts(layout), budget, COUNT_SHARE),
                plan_spend("mean embedding", embedding.statistic, budget, 1 - COUNT_SHARE),
            ),
        )

    def learn(self, curator: Curator, schema: Schema, progress: Progress = silent) -> Model:
        """Release the counts and the embedding, and train a generator to meet them."""
        layout = self.layout(schema)
        generator = self.generator(layout)  # fails before anything is spent if torch is missing
        from sfumato.generators.matching import Target, Training, match

        released = curator.release("class counts", self._counts(layout), COUNT_SHARE)
        counts = self._class_counts(released, layout.classes)
        noise = gaussian_scale(1.0, (1 - COUNT_SHARE) * curator.budget.rho)
        # The noise of all classes meets in the loss: as if there were fewer rows.
        rows = counts.sum() / math.sqrt(layout.classes)
        features = self.features or best_features(rows, noise, MOST_FEATURES)
        embedding = MeanEmbedding(layout, features, self.seed)
        release = curator.release("mean embedding", embedding.statistic, 1 - COUNT_SHARE)
        target = Target.of(
            release.values.reshape(layout.classes, -1) / _GRID,
            counts,
            release.sigma / _GRID,
            embedding.freedoms,
        )
        training = Training(steps=self.steps)
        match(generator, embedding, target, training, seed=self.seed, progress=progress)
        return MerfModel(
            method=self,
            schema=schema,
            guarantee=curator.guarantee,
            releases=tuple(curator.releases),
            counts=counts,
            weights={k: v.numpy() for k, v in generator.state_dict().items()},
        )

    def generator(self, layout: Layout) -> Generator:
        """Make an untrained generator."""
        try:
            import torch
        except ImportError:
            raise SfumatoError("merf needs torch: pip install 'sfumato[neural]'") from None
        from sfumato.generators.networks import ImageGenerator, TableGenerator

        with torch.random.fork_rng([]):
            torch.manual_seed(self.seed)
            if isinstance(layout, ImageLayout):
                return ImageGenerator(_IMAGE_CODE, layout.classes, layout.codec.shape)
            return TableGenerator(_TABLE_CODE, layout.classes, layout.size, layout.blocks)

    def _counts(self, layout: Layout) -> Counts:
        return Counts([(layout.class_axis(apart=not self.balanced),)])

    def _class_counts(self, release: Release, classes: int) -> NDArray[np.float64]:
        """Give the rows of each class, no fewer than the noise could hide."""
        counts = np.maximum(release.values, max(1.0, release.sigma))
        return counts if len(counts) == classes else np.full(classes, counts[0] / classes)


@dataclass(frozen=True, eq=False)
class MeanEmbedding:
    """The embedding h: of private rows as a statistic, of generated points as a tensor."""

    layout: Layout
    features: int
    seed: int

    @cached_property
    def fourier(self) -> Fourier:
        """The map of the numbers."""
        return Fourier(self.layout, self.features, length_scales(self.layout), self.seed)

    @property
    def weight(self) -> int:
        """The grid steps of one count, for a norm of 1 over all categories."""
        return max(1, int(_GRID / math.sqrt(max(1, len(self.layout.axes)))))

    @property
    def parts(self) -> list[Statistic]:
        """The statistics of the numbers and of the categories, whichever there are."""
        parts: list[Statistic] = []
        if self.layout.size:
            parts.append(Quantized(self.fourier, bits=_GRID_BITS))
        if self.layout.axes:
            parts.append(Weighted(Counts([(axis,) for axis in self.layout.axes]), self.weight))
        return parts

    @property
    def freedoms(self) -> list[tuple[int, int]]:
        """The size of each part, and in how many directions points can move it."""
        categories = sum(self.layout.blocks)
        sizes = [(self.features, self.layout.size), (categories, categories)]
        return [(size, free) for size, free in sizes if free]

    @property
    def statistic(self) -> Statistic:
        """The sum over the rows of each class."""
        whole = Concat(self.parts)
        if self.layout.classes == 1:
            return whole
        return PerClass(whole, self.layout.class_column, self.layout.classes)

    def __call__(self, points: Tensor) -> Tensor:
        """Embed generated points, differentiably.

        Where a private number is null, the middle of its bounds stands for it; so it does where a
        generated one is drawn to be null.
        """
        import torch

        numbers, blocks = points.tensor_split([self.layout.size], dim=1)
        parts = []
        if self.layout.flags:
            flags = self.layout.flags
            chances = points[:, [flag.flag for flag in flags]].detach()
            places = [flag.number for flag in flags]
            defaults = points.new_tensor([flag.default for flag in flags])
            numbers = numbers.clone()
            numbers[:, places] = torch.where(
                torch.rand_like(chances) < chances, defaults, numbers[:, places]
            )
        if self.layout.size:
            parts.append(self.fourier.tensor(numbers))
        if self.layout.axes:
            parts.append(blocks * (self.weight / _GRID))
        return torch.cat(parts, dim=1)


def length_scales(layout: Layout) -> tuple[float, ...]:
    """Choose length scales by the number of coordinates alone.

    Rows in the unit cube are about sqrt(d) apart. The more coordinates, the less their distances
    differ, and the less do scales far off say: with few coordinates the scales are spread wide,
    for rows may crowd in a small part of generous bounds.
    """
    root = math.sqrt(layout.size)
    if isinstance(layout, ImageLayout):
        return (_IMAGE_SCALE * root,)
    spread = 1 + 8 / root
    return tuple(_TABLE_SCALE * root * factor for factor in (1 / spread, 1, spread))


def class_of(layout: Layout, given: Given) -> int:
    """Find the class that is given, or say what can be."""
    name = layout.condition
    if name is None or list(given) != [name]:
        can = f"only '{name}' can be given" if name else "it has no classes"
        raise SfumatoError(f"this model cannot be conditioned on {', '.join(given)}: {can}")
    values = [canonical_text(value) for value in layout.class_values]
    value = canonical_text(given[name])
    if value not in values:
        raise SfumatoError(f"'{name}' has no value '{value}'; it has: {', '.join(values)}")
    return values.index(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class MerfModel(Model):
    """A trained generator and the noisy number of rows of each class."""

    method: Merf
    counts: NDArray[np.float64]
    weights: dict[str, NDArray[Any]]

    @property
    def rows(self) -> int:
        """The noisy number of rows."""
        return max(1, round(float(self.counts.sum())))

    def sample(
        self, n: int | None = None, given: Given | None = None, seed: int = 0
    ) -> pa.Table | ImageSet:
        """Draw rows or images; only the class can be given."""
        import torch

        layout = self.method.layout(self.schema)
        generator = self.method.generator(layout)
        generator.load_state_dict({k: torch.tensor(v) for k, v in self.weights.items()})
        generator.eval()
        rng = np.random.default_rng(seed)
        n = self.rows if n is None else n
        if given:
            classes = np.full(n, class_of(layout, given))
        else:
            classes = rng.choice(layout.classes, n, p=self.counts / self.counts.sum())
        noise = rng.standard_normal((n, generator.code), dtype=np.float32)
        points = [np.empty((0, layout.size + sum(layout.blocks)), np.float32)]
        with torch.no_grad():
            for start in range(0, n, _SAMPLED_AT_ONCE):
                part = slice(start, start + _SAMPLED_AT_ONCE)
                onehot = torch.eye(layout.classes)[torch.from_numpy(classes[part])]
                points.append(generator(torch.from_numpy(noise[part]), onehot).numpy())
        return layout.decode(np.concatenate(points), classes, rng)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give the counts and the generator's weights."""
        return {"counts": self.counts} | {f"weights/{k}": v for k, v in self.weights.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], **common: Any) -> MerfModel:
        """Read back what `arrays` gave."""
        weights = {
            k.removeprefix("weights/"): v for k, v in arrays.items() if k.startswith("weights/")
        }
        return cls(counts=arrays["counts"], weights=weights, **common)


Merf.model_class = MerfModel
