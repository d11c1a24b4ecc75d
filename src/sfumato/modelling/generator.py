"""What the methods share that train a generator: a network that turns random codes into rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.condition import conditions_of
from sfumato.data.image_codec import ImageCodec
from sfumato.data.image_set import ImageSet
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.modelling.base import Given, Method, Model
from sfumato.modelling.class_counts import drawn_classes
from sfumato.modelling.spaces import Classes, ImageSpace, Points, PointSpace, space_of
from sfumato.schema import Schema

if TYPE_CHECKING:
    from sfumato.modelling.networks import Generator

_TABLE_CODE, _IMAGE_CODE = 14, 5  # random numbers behind a row
_SAMPLED_AT_ONCE = 2_000


@dataclass(frozen=True, kw_only=True)
class GeneratorMethod(Method):
    """A method that trains a generator.

    Parameters
    ----------
    target
        The column to condition on, a category. None models all columns alike. The classes of an
        image set are those of its schema.
    balanced
        The owner's public word that all classes are equally frequent: then only the number of
        rows is released, and not that of each class.
    """

    target: str | None = None
    balanced: bool = False

    def codec(self, schema: Schema) -> TableCodec | ImageCodec:
        """Give the code of the schema."""
        return ImageCodec(schema.images) if schema.images else TableCodec(schema)

    def point_space(self, schema: Schema) -> PointSpace:
        """Give the space of the schema's rows."""
        return space_of(self.codec(schema), self.target)

    def generator(self, space: PointSpace) -> Generator:
        """Make an untrained generator."""
        try:
            import torch
        except ImportError:
            raise SfumatoError(f"{self.name} needs torch: pip install 'sfumato[neural]'") from None
        with torch.random.fork_rng([]):
            torch.manual_seed(self.seed)
            return self.network_for(space)

    def network_for(self, space: PointSpace) -> Generator:
        """Make the network for a space."""
        from sfumato.modelling.networks import ImageGenerator, TableGenerator

        if isinstance(space, ImageSpace):
            return ImageGenerator(_IMAGE_CODE, space.classes, space.codec.shape)
        return TableGenerator(_TABLE_CODE, space.classes, space.size, space.blocks)

    def decoded(
        self, space: PointSpace, points: Points, classes: Classes, rng: np.random.Generator
    ) -> Any:
        """Give the rows or images that generated points stand for."""
        return space.decode(points, classes, rng)


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratorModel(Model):
    """A trained generator and the noisy number of rows of each class."""

    method: GeneratorMethod
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

        space = self.method.point_space(self.schema)
        generator = self.method.generator(space)
        generator.load_state_dict({k: torch.tensor(v) for k, v in self.weights.items()})
        generator.eval()
        rng = np.random.default_rng(seed)
        n = self.how_many(n)
        classes = drawn_classes(self.counts, n, space, conditions_of(given), rng)
        noise = rng.standard_normal((n, generator.code), dtype=np.float32)
        points = []
        with torch.no_grad():
            for start in range(0, max(1, n), _SAMPLED_AT_ONCE):
                part = slice(start, start + _SAMPLED_AT_ONCE)
                onehot = torch.eye(space.classes)[torch.from_numpy(classes[part])]
                points.append(generator(torch.from_numpy(noise[part]), onehot).numpy())
        return self.method.decoded(space, np.concatenate(points), classes, rng)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give the counts and the generator's weights."""
        return {"counts": self.counts} | {f"weights/{k}": v for k, v in self.weights.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], **common: Any) -> GeneratorModel:
        """Read back what `arrays` gave."""
        weights = {
            k.removeprefix("weights/"): v for k, v in arrays.items() if k.startswith("weights/")
        }
        return cls(counts=arrays["counts"], weights=weights, **common)


GeneratorMethod.model_class = GeneratorModel
