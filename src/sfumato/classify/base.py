"""What every private classifier is: settings, a plan without data, and a fit that sees no row."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.image_sources import image_rows
from sfumato.data.sources import table_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError, within
from sfumato.modelling.base import Fitted, Method, Plan
from sfumato.modelling.expectation import Expectation
from sfumato.modelling.spaces import PointSpace, TableSpace, space_of
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_training
from sfumato.progress import Progress, silent
from sfumato.schema import Schema, Value

if TYPE_CHECKING:
    from sfumato.modelling.class_learner import ClassLearner
    from sfumato.privacy.dpsgd import Schedule

TRAINING = "training"


@dataclass(frozen=True, kw_only=True)
class Classifier(Method):
    """A way of classification.

    Parameters
    ----------
    target
        The column to predict, a category or a boolean. The classes of an image set are those of
        its schema.
    rate
        The probability with which each row is in a step's sum. It is not a batch size divided by
        the number of rows, because that number is private where presence is.
    epochs
        How often each row is seen, on average.
    clip
        The norm to which each row's gradient is clipped.
    learning_rate
        Adam's first learning rate; it falls evenly to zero.
    seed
        Fixes the first weights, and never noise or the rows that are taken.
    """

    free: ClassVar[frozenset[str]] = frozenset()
    arithmetic: ClassVar[str] = ""
    """What a reader of the certificate must know about how gradients are computed."""

    target: str | None = None
    rate: float = 0.1
    epochs: float = 40.0
    clip: float = 1.0
    learning_rate: float = 0.03

    def __post_init__(self) -> None:
        super().__post_init__()
        within(rate=(self.rate, 1e-6, 1), epochs=(self.epochs, 1e-3, 10_000))
        within(clip=(self.clip, 1e-6, 1_000_000), learning_rate=(self.learning_rate, 1e-9, 1000))

    @property
    def trains(self) -> bool:
        """Whether private rows are trained on: always."""
        return True

    @abstractmethod
    def untrained(self, space: PointSpace) -> ClassLearner:
        """Make a learner with its first weights."""

    def codec(self, schema: Schema) -> TableCodec | ImageCodec:
        """Give the code of the schema."""
        return ImageCodec(schema.images) if schema.images else TableCodec(schema.unconstrained)

    def space(self, schema: Schema) -> PointSpace:
        """Give the space of the schema's rows; refuse one without classes."""
        return self._space(self.codec(schema))

    def _space(self, codec: TableCodec | ImageCodec) -> PointSpace:
        space = space_of(codec, self.target)
        if space.condition is None:
            raise SfumatoError(
                "the schema of the image set lists no classes"
                if isinstance(codec, ImageCodec)
                else "name the target: the column to predict"
            )
        return space

    def learner(self, space: PointSpace) -> ClassLearner:
        """Make a learner, or say what is missing."""
        try:
            import dp_accounting  # noqa: F401
            import torch  # noqa: F401
        except ImportError:
            raise SfumatoError(f"{self.name} needs torch: pip install 'sfumato[neural]'") from None
        return self.untrained(space)

    @property
    def schedule(self) -> Schedule:
        """Say how long it is trained, and how it sees rows."""
        from sfumato.privacy.dpsgd import Schedule

        return Schedule(
            rate=self.rate, epochs=self.epochs, clip=self.clip, learning_rate=self.learning_rate
        )

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what training would cost, with how much noise. Reads no row."""
        dim = self.learner(self.space(schema)).dim
        spend = plan_training(TRAINING, dim, self.schedule, budget)
        return Plan(method=self.name, budget=budget, trainings=(spend,))

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

    def learn(self, curator: Curator, progress: Progress = silent) -> Any:
        """Have the curator train a learner, and keep its weights."""
        state = curator.train(TRAINING, self.learner(self._space(curator.codec)), self.schedule)
        return self.model_class.from_arrays(
            state.weights, method=self, schema=curator.schema, guarantee=curator.guarantee
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierModel(Fitted):
    """A trained classifier."""

    method: Any
    weights: dict[str, NDArray[Any]]

    @property
    def space(self) -> PointSpace:
        """The space of its rows."""
        space: PointSpace = self.method.space(self.schema)
        return space

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give the weights."""
        return self.weights

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], **common: Any) -> ClassifierModel:
        """Make it of its weights."""
        return cls(weights=arrays, **common)

    @property
    def classes(self) -> tuple[Value, ...]:
        """The classes, in the order of the probabilities."""
        space = self.space
        if not isinstance(space, TableSpace):
            return space.class_values
        return space.codec.columns[space.class_column].meanings

    def predict_proba(self, data: Any) -> NDArray[np.float64]:
        """Give the probability of each class for each row of new data; they need no target."""
        learner = self.trained()
        parts = [learner.probabilities(batch) for batch in self.batches(data)]
        return np.concatenate([np.empty((0, len(self.classes))), *parts])

    def predict(self, data: Any) -> NDArray[Any]:
        """Give the likeliest class of each row."""
        return self.names(self.predict_proba(data).argmax(axis=1))

    def names(self, classes: NDArray[np.integer[Any]] | Sequence[int]) -> NDArray[Any]:
        """Give the classes' values, as the schema spells them."""
        values = self.classes
        kinds = {type(value) for value in values}
        named = np.array(values if len(kinds) == 1 else [str(value) for value in values])
        return np.asarray(named[np.asarray(classes, np.int64)])

    def batches(self, data: Any) -> Iterator[Batch]:
        """Encode new rows; what stands in place of the target is never looked at."""
        if self.schema.images:
            plain = ImageCodec(self.schema.images.model_copy(update={"classes": ()}))
            given = (data, None) if isinstance(data, np.ndarray) else data
            yield from map(plain.encode, image_rows(given, plain.images).batches())
            return
        codec = TableCodec(self.schema.unconstrained)
        known = [name for name in codec.names if name != self.method.target]
        for rows in table_rows(data, known, self.schema.csv).batches(known):
            columns = [
                rows.column(name) if name in known else pa.nulls(rows.num_rows, pa.string())
                for name in codec.names
            ]
            yield codec.encode(pa.record_batch(columns, names=list(codec.names)))

    def row(self, data: Any, index: int) -> Batch:
        """Encode one row of new data."""
        passed = 0
        for batch in self.batches(data):
            if 0 <= index - passed < len(batch):
                return batch.where(np.array([index - passed]))
            passed += len(batch)
        raise SfumatoError(f"there is no row {index}: the data have {passed} rows, from 0 on")

    def trained(self) -> ClassLearner:
        """Make the learner with the trained weights."""
        learner: ClassLearner = self.method.learner(self.space)
        learner.load(self.weights)
        return learner
