"""What everything fitted is: settings, a plan without data, a fit that sees no row, a file."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from sfumato.data.condition import Given as Given
from sfumato.data.image_codec import ImageCodec
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SavedAnswersWarning, SfumatoError, not_negative, within
from sfumato.modelling.expectation import Expectation
from sfumato.modelling.misfit_gate import MisfitError, pass_noisy_gate
from sfumato.modelling.schema_search import complete, search_budget
from sfumato.notebook import usual_progress
from sfumato.privacy.answers import Release
from sfumato.privacy.budget import Budget, Guarantee, Spend, TrainingSpend
from sfumato.privacy.curator import Curator
from sfumato.privacy.run import Run
from sfumato.privacy.search_budget import SearchBudget
from sfumato.progress import Progress, silent
from sfumato.public.provenance import Provenance
from sfumato.schema import Schema, read_schema
from sfumato.storage import locked, write_whole

FORMAT = 1
"""The version of model files that `Fitted.save` writes."""

MOST_ROWS = 10**12
"""So many can be drawn at once."""

GRADIENT_ARITHMETIC = (
    "a network's gradients are computed in double precision, in which rows that stand together "
    "change each other's last bits, some 1e-13 of a gradient: clipping aims 1e-4 lower for that"
)
"""What a reader of the certificate must know where a network is trained on private rows."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a method would release or train, at which cost; sizes are upper bounds.

    >>> spend = Spend(name="counts", dim=4, sensitivity=1, sigma=9)
    >>> Plan(method="mine", budget=Budget(epsilon=1), spends=(spend,)).guarantee.epsilon < 1
    True
    """

    method: str
    budget: Budget
    spends: tuple[Spend, ...] = ()
    trainings: tuple[TrainingSpend, ...] = ()
    notes: tuple[str, ...] = ()
    public: tuple[Provenance, ...] = ()

    @property
    def guarantee(self) -> Guarantee:
        """What the run would promise."""
        return Guarantee.of(self.budget, self.spends, trainings=self.trainings)

    def _repr_html_(self) -> str:
        """Show what would be released in a notebook."""
        return self.guarantee._repr_html_()

    @property
    def memory(self) -> int:
        """About how many bytes the sums need while noise is added."""
        return 24 * max(cost.dim for cost in (*self.spends, *self.trainings))


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way of synthesis or of classification. Its fields are its settings; nothing is learned.

    `seed` fixes public randomness only (initial values, drawn features), never noise.
    """

    name: ClassVar[str]
    model_class: ClassVar[type[Fitted]]
    free: ClassVar[frozenset[str]] = frozenset({"seed"})
    """Settings that change nothing in what is asked, or only the layout that an answer keeps."""

    completes: ClassVar[bool] = False
    """Whether it plans with schemas that leave bounds or values to be found in the rows."""

    seed: int = 0

    def __post_init__(self) -> None:
        not_negative(seed=self.seed)
        within(seed=(self.seed, 0, 2**62))  # what torch takes, and some others from there on

    @property
    def trains(self) -> bool:
        """Whether private rows are trained on, and not only summed."""
        return False

    def public_inputs(self) -> tuple[Provenance, ...]:
        """Say which public networks or data it builds on."""
        return ()

    @abstractmethod
    def codec(self, schema: Schema) -> TableCodec | ImageCodec:
        """Give the code in which this method's statistics see rows."""

    @abstractmethod
    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released. Reads no row."""

    def expect(self, schema: Schema, budget: Budget, rows: int) -> tuple[Expectation, ...]:
        """Say what the noise lets expect of so many rows. Reads none."""
        return ()

    @abstractmethod
    def learn(self, curator: Curator, progress: Progress = silent) -> Any:
        """Ask the curator for releases or trainings, and make a model of its answers."""

    def fit(
        self,
        data: Any,
        schema: Schema | str | Path | Mapping[str, Any],
        budget: Budget | float,
        run: Run = Run(),
    ) -> Any:
        """Fit to private rows: a path, a frame, or arrays of images.

        The schema may also be the path of its file or a dict, the budget an epsilon. The `run` says
        who pays, where answers are kept, and how rows are read.

        All rows are read once, to see that they can be, and that they fit the schema as far as the
        run's gate asks; then every spend goes to the ledger before anything is worked out from
        them.
        """
        schema, budget = read_schema(schema), Budget.of(budget)
        if schema.open and not self.completes:
            raise SfumatoError(
                f"{self.name} needs public bounds and values, but '{next(iter(schema.open))}' is "
                "declared private: declare it from public knowledge, or use pairs"
            )
        run = replace(run, progress=run.progress or usual_progress())
        settings = {key: value for key, value in asdict(self).items() if key not in self.free}
        curator = Curator.of(
            data,
            self.codec(schema),
            schema,
            budget,
            run,
            asker={"method": self.name, "settings": settings},
            ahead=search_budget(schema, budget) if schema.open else SearchBudget(),
        )
        if self.trains:
            curator.refuse_training(self.name)
        folder = run.folder

        def waiting() -> None:
            run.tell("waiting for another run with the same folder of releases", None)

        try:
            with locked(folder / "run", waiting) if folder else nullcontext(), curator.asking():
                if run.gate.share and run.gate.most is not None:
                    pass_noisy_gate(curator, run.gate.most)
                if schema.open:
                    found = complete(curator)
                    codec = self.codec(found)
                    assert isinstance(codec, TableCodec)
                    curator.recode(found, codec)
                fitted = self.learn(curator, run.tell)
        except BaseException as stop:
            # Nothing is kept that could be gone on with, or it was decided not to.
            if folder is None or isinstance(stop, MisfitError):
                curator.close()
            raise
        curator.close()
        if curator.taken_up and not run.use_saved:
            warnings.warn(
                f"answers of {max(curator.taken_up)} were taken up from {folder}, at no cost: they "
                "are about the rows as they were then. For the rows as they are now, pay again "
                "(--pay-again); to use saved answers without this notice: --use-saved",
                SavedAnswersWarning,
                stacklevel=2,
            )
        return fitted


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted(ABC):
    """What a fit gives, with its guarantee; made from noisy sums only, so free to share."""

    method: Method
    schema: Schema
    guarantee: Guarantee
    releases: tuple[Release, ...] = ()
    public: tuple[Provenance, ...] = ()

    def _repr_html_(self) -> str:
        """Show its guarantee in a notebook."""
        return f"<p><b>{self.method.name}</b></p>{self.guarantee._repr_html_()}"

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give what was learned, as named arrays."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], **common: Any) -> Fitted:
        """Make it of what `arrays` gave and the fields that all share."""

    def save(self, path: str | Path) -> None:
        """Write a model file: arrays as safetensors, the rest as JSON in its header."""
        tensors = {f"model/{key}": np.ascontiguousarray(a) for key, a in self.arrays().items()}
        tensors |= {f"release/{i}": r.noisy for i, r in enumerate(self.releases)}
        about = {
            "sfumato": str(FORMAT),
            "method": self.method.name,
            "settings": json.dumps(asdict(self.method)),
            "schema": self.schema.to_toml(),
            "guarantee": json.dumps(self.guarantee.to_dict()),
            "releases": json.dumps([release.about() for release in self.releases]),
            "public": json.dumps([asdict(each) for each in self.public]),
        }
        write_whole(Path(path), save(tensors, about))


@dataclass(frozen=True, kw_only=True, eq=False)
class Model(Fitted):
    """A fitted generator."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """About how many rows the private data have, from what was released."""

    @property
    def guessed(self) -> dict[str, float]:
        """The share of each column that noise hides, and that a public rule has filled in."""
        return {}

    def how_many(self, n: int | None) -> int:
        """Give the number of rows to draw: by default about as many as the private data have."""
        if n is None:
            return self.rows
        not_negative(n=n)
        within(n=(n, 0, MOST_ROWS))
        return n

    @abstractmethod
    def sample(self, n: int | None = None, given: Given | None = None, seed: int = 0) -> Any:
        """Draw n rows (by default `rows`), with the given values where some are given.

        ``given={"age": (60, 70), "sex": ["F", "M"], "smoker": True}`` gives a range, which holds
        both its ends and is open where one is None; several values; and a single one.
        """
