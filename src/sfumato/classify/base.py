"""What every private classifier is: settings, a plan without data, and a fit that sees no row."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.image_sources import image_rows
from sfumato.data.sources import table_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.methods.spaces import PointSpace, TableSpace, space_of
from sfumato.privacy.budget import Budget, Guarantee, TrainingSpend
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.release import Curator, plan_training
from sfumato.progress import Progress, silent
from sfumato.schema import Schema, Value
from sfumato.storage import write_whole

if TYPE_CHECKING:
    from sfumato.classify.learner import ClassLearner
    from sfumato.privacy.dpsgd import Schedule

TRAINING = "training"


@dataclass(frozen=True, kw_only=True)
class Classifier(ABC):
    """A way of classification. Its fields are its settings; nothing is learned into it.

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

    name: ClassVar[str]
    model_class: ClassVar[type[ClassifierModel]]
    arithmetic: ClassVar[str] = ""
    """What a reader of the certificate must know about how gradients are computed."""

    target: str | None = None
    rate: float = 0.1
    epochs: float = 40.0
    clip: float = 1.0
    learning_rate: float = 0.03
    seed: int = 0

    @abstractmethod
    def untrained(self, layout: PointSpace) -> ClassLearner:
        """Make a learner with its first weights."""

    def codec(self, schema: Schema) -> TableCodec | ImageCodec:
        """Give the code of the schema."""
        return ImageCodec(schema.images) if schema.images else TableCodec(schema)

    def layout(self, schema: Schema) -> PointSpace:
        """Give the layout of the schema's rows; refuse one without classes."""
        layout = space_of(self.codec(schema), self.target)
        if layout.condition is None:
            raise SfumatoError(
                "the schema of the image set lists no classes"
                if schema.images
                else "name the target: the column to predict"
            )
        return layout

    def learner(self, layout: PointSpace) -> ClassLearner:
        """Make a learner, or say what is missing."""
        try:
            import dp_accounting  # noqa: F401
            import torch  # noqa: F401
        except ImportError:
            raise SfumatoError(f"{self.name} needs torch: pip install 'sfumato[neural]'") from None
        return self.untrained(layout)

    @property
    def schedule(self) -> Schedule:
        """Say how long it is trained, and how it sees rows."""
        from sfumato.privacy.dpsgd import Schedule

        return Schedule(
            rate=self.rate, epochs=self.epochs, clip=self.clip, learning_rate=self.learning_rate
        )

    def plan(self, schema: Schema, budget: Budget) -> TrainingSpend:
        """Say what training would cost, with how much noise. Reads no row."""
        dim = self.learner(self.layout(schema)).dim
        return plan_training(TRAINING, dim, self.schedule, budget)

    def fit(
        self,
        data: Any,
        schema: Schema,
        budget: Budget,
        *,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        folder: Path | None = None,
        pay_again: bool = False,
        progress: Progress = silent,
    ) -> ClassifierModel:
        """Train on private rows: a path, a frame, or arrays of images.

        All rows are read; then the whole training goes to the `ledger` under the name `dataset`
        before the first step. It is saved in `folder` now and then; fitting again with the same
        settings goes on from there. Where that folder holds another training, paying for a new
        one needs `pay_again`.
        """
        curator = Curator.of(
            data, self.codec(schema), schema, budget,
            ledger=ledger, dataset=dataset, folder=folder, pay_again=pay_again, progress=progress,
        )  # fmt: skip
        return self.learn(curator, schema)

    def learn(self, curator: Curator, schema: Schema) -> ClassifierModel:
        """Have the curator train a learner, and keep its weights."""
        state = curator.train(TRAINING, self.learner(self.layout(schema)), self.schedule)
        return self.model_class(
            method=self,
            schema=schema,
            guarantee=curator.guarantee,
            weights={
                key.removeprefix("weights/"): array
                for key, array in state.arrays.items()
                if key.startswith("weights/")
            },
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierModel:
    """A trained classifier with its guarantee; made from noisy sums only, so free to share."""

    method: Any
    schema: Schema
    guarantee: Guarantee
    weights: dict[str, NDArray[Any]]

    @property
    def layout(self) -> PointSpace:
        """The layout of its rows."""
        layout: PointSpace = self.method.layout(self.schema)
        return layout

    @property
    def classes(self) -> tuple[Value, ...]:
        """The classes, in the order of the probabilities."""
        layout = self.layout
        if not isinstance(layout, TableSpace):
            return layout.class_values
        cells = layout.codec.columns[layout.class_column]
        assert cells.is_category
        return cells.meanings

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
        codec = TableCodec(self.schema)
        known = [name for name in codec.names if name != self.method.target]
        for rows in table_rows(data, known).batches(known):
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
        import torch

        learner: ClassLearner = self.method.learner(self.layout)
        learner.module.load_state_dict({k: torch.tensor(v) for k, v in self.weights.items()})
        return learner

    def save(self, path: str | Path) -> None:
        """Write a model file: weights as safetensors, the rest as JSON in its header."""
        about = {
            "classifier": self.method.name,
            "settings": json.dumps(asdict(self.method)),
            "schema": self.schema.to_toml(),
            "guarantee": json.dumps(self.guarantee.to_dict()),
        }
        weights = {key: np.ascontiguousarray(array) for key, array in self.weights.items()}
        write_whole(Path(path), save(weights, about))


def load_classifier(path: str | Path) -> ClassifierModel:
    """Read the model file of a classifier."""
    from sfumato.classify.convolutional import Convolutional
    from sfumato.classify.locally_linear import LocallyLinear

    known: dict[str, type[Classifier]] = {c.name: c for c in (LocallyLinear, Convolutional)}
    if not Path(path).exists():
        raise SfumatoError(f"there is no file {path}")
    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata()
            weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        kind = known[about["classifier"]]
        return kind.model_class(
            method=kind(**json.loads(about["settings"])),
            schema=Schema.from_toml(about["schema"], str(path)),
            guarantee=Guarantee.from_dict(json.loads(about["guarantee"])),
            weights=weights,
        )
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):
        raise SfumatoError(f"{path} is not a classifier of this version of sfumato") from None
