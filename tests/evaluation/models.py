"""Small fitted models for tests of the certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.image_set import ImageSet
from sfumato.modelling.base import Given, Method, Model
from sfumato.privacy.answers import Release
from sfumato.privacy.budget import Budget, Guarantee, Spend
from sfumato.privacy.statistic import Statistic
from sfumato.schema import Boolean, Categorical, Images, Numeric, Schema
from sfumato.statistics.algebra import PerClass
from sfumato.statistics.counts import Axis, Counts

SCRIPT = "<script>alert(1)</script>"

TABLE = Schema(
    columns={
        "age": Numeric(low=17, high=90, integer=True),
        "height <cm>": Numeric(low=0, high=250, nullable=True),
        "job": Categorical(values=("clerk", "nurse", SCRIPT), other=True),
        "smoker": Boolean(),
        "ill": Categorical(values=("no", "yes", "rarely")),
    }
)
IMAGES = Schema(images=Images(height=8, width=8, classes=(0, 1, 2)))


@dataclass(frozen=True, kw_only=True)
class FakeMethod(Method):
    name: ClassVar[str] = "fake"

    target: str | None = None

    def codec(self, schema: Schema) -> Any:
        raise NotImplementedError

    def plan(self, schema: Schema, budget: Budget) -> Any:
        raise NotImplementedError

    def learn(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class FakeModel(Model):
    @property
    def rows(self) -> int:
        return 1000

    def sample(self, n: int | None = None, given: Given | None = None, seed: int = 0) -> Any:
        n = self.rows if n is None else n
        return ImageSet(*images(n, seed)) if self.schema.images else table(n, seed)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], **common: Any) -> FakeModel:
        return cls(**common)


def table(n: int, seed: int = 0) -> pa.Table:
    """Draw rows in which every column depends on age."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45, 15, n), 17, 90).round().astype(int)
    height = np.where(rng.random(n) < 0.1, np.nan, 150 + age / 3 + rng.normal(0, 8, n))
    jobs = np.array(["clerk", "nurse", SCRIPT, "gardener"])
    ill = rng.random(n) < 1 / (1 + np.exp((50 - age) / 5))
    return pa.table(
        {
            "age": age,
            "height <cm>": pa.array(height, mask=np.isnan(height)),
            "job": jobs[np.minimum(age // 23 - rng.integers(0, 2, n), 3)],
            "smoker": rng.random(n) < age / 120,
            "ill": np.where(rng.random(n) < 0.005, "rarely", np.where(ill, "yes", "no")),
        }
    )


def images(n: int, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw noisy bars, lower for higher classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    x = np.zeros((n, 8, 8, 1))
    for label in range(3):
        x[y == label, 1 + 2 * label : 3 + 2 * label, 1:7] = 200
    return np.clip(x + rng.normal(0, 15, x.shape), 0, 255).astype(np.uint8), y


def fake_model(schema: Schema) -> FakeModel:
    """Make a model whose one release has noise that drowns small classes."""
    if schema.images:
        values = np.repeat([4000, 300, 2], 5) * np.tile([1, 0, 0, 0, 0], 3)
        statistic: Statistic = PerClass(Counts([(_axis(1, 5),)]), 0, 3)
    else:
        values = np.arange(7 * 3)
        statistic = age_and_illness(3)
    spend = Spend(name="pairs & more", dim=len(values), sensitivity=1.0, sigma=5.0)
    budget = Budget(epsilon=1.0, delta=1e-6)
    return FakeModel(
        method=FakeMethod(target=None if schema.images else "ill"),
        schema=schema,
        guarantee=Guarantee.of(budget, (spend,)),
        releases=(released(statistic, values.astype(np.int64), spend),),
    )


def released(statistic: Statistic, values: NDArray[np.int64], spend: Spend) -> Release:
    """Make a release of a statistic."""
    return Release(
        noisy=values,
        statistic=statistic.describe(),
        spend=spend,
        resolutions=statistic.resolutions(),
    )


def age_and_illness(groups: int) -> Counts:
    """Count seven groups of ages with so many groups of the illness."""
    return Counts([(_axis(0, 7), _axis(4, groups))])


def _axis(column: int, groups: int) -> Axis:
    return Axis(column, np.arange(groups, dtype=np.int32))
