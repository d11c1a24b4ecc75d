"""What every method is: settings, a plan without data, and a fit that sees only a curator."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sfumato.data.image_codec import ImageCodec
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.privacy.answers import Release
from sfumato.privacy.budget import Budget, Guarantee, Spend
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.release import Curator
from sfumato.progress import Progress, silent
from sfumato.schema import Schema, Value
from sfumato.storage import write_whole

Given = Mapping[str, Value]
"""Values that sampled rows must have, by column."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a method would release, at which cost; sizes are upper bounds."""

    method: str
    budget: Budget
    spends: tuple[Spend, ...]
    notes: tuple[str, ...] = ()

    @property
    def guarantee(self) -> Guarantee:
        """What the run would promise."""
        return Guarantee.of(self.budget, self.spends)

    @property
    def memory(self) -> int:
        """About how many bytes the released sums need while noise is added."""
        return 24 * max(spend.dim for spend in self.spends)


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way of synthesis. Its fields are its settings; nothing is learned into it.

    `seed` fixes public randomness only (initial values, drawn features), never noise.
    """

    name: ClassVar[str]
    model_class: ClassVar[type[Model]]
    free: ClassVar[frozenset[str]] = frozenset({"seed"})
    """Settings that change nothing in what is asked, or only the layout that an answer keeps."""

    seed: int = 0

    @abstractmethod
    def codec(self, schema: Schema) -> TableCodec | ImageCodec:
        """Give the code in which this method's statistics see rows."""

    @abstractmethod
    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released. Reads no row."""

    @abstractmethod
    def learn(self, curator: Curator, schema: Schema, progress: Progress = silent) -> Model:
        """Ask the curator for releases and make a model of them."""

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
    ) -> Model:
        """Fit to private rows: a path, a frame, or arrays of images.

        All rows are read once, to see that they can be; then every spend goes to the `ledger`
        under the name `dataset` before anything is worked out from them. Releases are saved in
        `folder`; fitting again takes them up at no cost. Where that folder holds the answers to
        other questions (another budget, say), paying for new ones needs `pay_again`.
        """
        settings = {key: value for key, value in asdict(self).items() if key not in self.free}
        curator = Curator.of(
            data,
            self.codec(schema),
            schema,
            budget,
            ledger=ledger,
            dataset=dataset,
            asker={"method": self.name, "settings": settings},
            folder=folder,
            pay_again=pay_again,
            progress=progress,
        )
        return self.learn(curator, schema, progress)


@dataclass(frozen=True, kw_only=True)
class Model(ABC):
    """A fitted generator with its guarantee; made from releases only, so free to share."""

    method: Method
    schema: Schema
    guarantee: Guarantee
    releases: tuple[Release, ...]

    @property
    @abstractmethod
    def rows(self) -> int:
        """About how many rows the private data have, from what was released."""

    @abstractmethod
    def sample(self, n: int | None = None, given: Given | None = None, seed: int = 0) -> Any:
        """Draw n rows (by default `rows`), with the given values where some are given."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give what was learned, as named arrays."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], **common: Any) -> Model:
        """Make the model of what `arrays` gave and the fields that all models share."""

    def save(self, path: str | Path) -> None:
        """Write a model file: arrays as safetensors, the rest as JSON in its header."""
        tensors = {f"model/{key}": np.ascontiguousarray(a) for key, a in self.arrays().items()}
        tensors |= {f"release/{i}": r.values for i, r in enumerate(self.releases)}
        about = {
            "method": self.method.name,
            "settings": json.dumps(asdict(self.method)),
            "schema": self.schema.to_toml(),
            "guarantee": json.dumps(self.guarantee.to_dict()),
            "statistics": json.dumps([release.statistic for release in self.releases]),
        }
        write_whole(Path(path), save(tensors, about))


def load_model(path: str | Path) -> Model:
    """Read a model file."""
    from sfumato.methods import METHODS

    if not Path(path).exists():
        raise SfumatoError(f"there is no file {path}")
    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        method_class = METHODS[about["method"]]
        guarantee = Guarantee.from_dict(json.loads(about["guarantee"]))
        statistics = json.loads(about["statistics"])
        return method_class.model_class.from_arrays(
            {k.removeprefix("model/"): a for k, a in tensors.items() if k.startswith("model/")},
            method=method_class(**json.loads(about["settings"])),
            schema=Schema.from_toml(about["schema"], str(path)),
            guarantee=guarantee,
            releases=tuple(
                Release(values=tensors[f"release/{i}"], statistic=statistic, spend=spend)
                for i, (statistic, spend) in enumerate(
                    zip(statistics, guarantee.spends, strict=True)
                )
            ),
        )
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):
        raise SfumatoError(f"{path} is not a model file of this version of sfumato") from None
