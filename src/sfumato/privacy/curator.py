"""The curator: it holds a run's private rows and budget, and answers with releases only.

Contract of `Curator.release`: all rows are read once and found readable; then the spend is durable;
then the wall sums rows and adds noise; the release is on disk, whole, before it is returned. What
comes back can be used again for ever at no cost, and a run that asks for the same release again
gets the saved one instead of a second look at the rows. `Curator.train` is the other way.

Here things are put in order only. What may be spent is the purse's to say, what a question is and
whether its answer is believed the vault's, and noise is added by the wall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import PrivateRows, encoded_rows
from sfumato.data.sources import dataset_name, source_name
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.privacy import wall
from sfumato.privacy.answers import Arrays, Release
from sfumato.privacy.asking import Asking
from sfumato.privacy.budget import Budget, Guarantee, SelectionSpend, Spend, TrainingSpend
from sfumato.privacy.held_rows import HeldRows
from sfumato.privacy.ledger import ROW
from sfumato.privacy.planning import plan_spend, refuse_training
from sfumato.privacy.purse import Purse
from sfumato.privacy.run import Run
from sfumato.privacy.search_budget import SearchBudget
from sfumato.privacy.selection import Selection
from sfumato.privacy.statistic import Statistic
from sfumato.privacy.training import Training
from sfumato.privacy.vault import Vault
from sfumato.schema import Schema
from sfumato.storage import check_folder

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.privacy.dpsgd import Learner, Schedule, State

Integers = NDArray[np.int64]


class Curator:
    """Asks the wall for a method that never sees a row.

    Parameters
    ----------
    rows
        Encoded rows, which are asked for one sum per release, and for a review before the first.
    budget
        What all releases of this curator together may cost.
    schema
        The public description through which the rows were encoded.
    run
        Who pays, where answers are kept, and how rows are read; with its data set's name.
    source
        Where the rows come from, so that no other source's releases are taken up.
    asker
        Who asks: the name of the method and those of its settings that determine its questions.
    ahead
        What is kept back of the budget for finding what the schema leaves open.
    """

    def __init__(
        self,
        rows: PrivateRows,
        budget: Budget,
        schema: Schema,
        run: Run,
        *,
        source: str = "",
        asker: Mapping[str, Any] | None = None,
        ahead: SearchBudget = SearchBudget(),
    ) -> None:
        run = run.named("")
        purse = Purse(budget, ahead, run, schema.unit_column or ROW)
        self.schema, self.folder = schema, run.folder
        self.whole_budget, self.budget = (
            purse.whole,
            purse.budget,
        )  # all of it; what is not kept back
        self.releases: list[Release] = []
        self.trainings = purse.trainings
        about = {
            "dataset": run.dataset,
            "source": source,
            "schema": schema.to_toml(),  # the declared one, also where another is found
            "budget": asdict(purse.budget),
            "asker": dict(asker or {}),
        }
        vault = Vault(run, about)
        self.taken_up = vault.taken_up  # when what was taken up had been paid for
        self._asking = Asking(purse, vault, HeldRows(rows, source, run), run)

    @classmethod
    def of(
        cls,
        data: Any,
        codec: TableCodec | ImageCodec,
        schema: Schema,
        budget: Budget,
        run: Run = Run(),
        *,
        asker: Mapping[str, Any] | None = None,
        ahead: SearchBudget = SearchBudget(),
    ) -> Curator:
        """Open private data: a path, a frame, or arrays of images. Reads no row.

        Encoded rows of large data are kept in the run's folder for as long as they are asked about
        (`asking`).
        """
        if run.folder:
            check_folder(run.folder)
            if not isinstance(data, str | Path) and run.dataset is None:
                raise SfumatoError("name the dataset: releases in a folder are found by its name")
        run, most = run.named(dataset_name(data)), budget.max_rows_per_unit
        spool = run.folder / ".rows" if run.folder else None
        return cls(
            encoded_rows(data, codec, most, run.workers, spool), budget, schema, run,
            source=source_name(data), asker=asker, ahead=ahead,
        )  # fmt: skip

    @property
    def left(self) -> float:
        """The share of the budget that is not spent yet; after a training, what it has left."""
        return self._asking.purse.left

    @property
    def guarantee(self) -> Guarantee:
        """What has been promised so far."""
        return self._asking.purse.guarantee(self.schema.unit_column)

    @property
    def codec(self) -> TableCodec | ImageCodec:
        """The code in which the rows were encoded."""
        return self._asking.held.codec

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Leave no encoded rows on disk after this, nor a folder in which nothing was paid for."""
        try:
            with self._asking.held.open():
                yield
        finally:
            if self.folder is not None:
                with suppress(OSError):
                    self.folder.rmdir()

    def close(self) -> None:
        """Free what was reserved and not spent: nothing more will be asked."""
        self._asking.close()

    def layout(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Give the arrays by which the next question is laid out: the saved ones, if there are.

        They are saved with the answer. What is computed must follow from earlier releases, the
        schema and the settings.
        """
        return self._asking.vault.layout(name, compute)

    def release(self, name: str, statistic: Statistic, share: float) -> Release:
        """Spend a share of the budget on a noisy sum, or take it up again where it was saved."""
        spend = plan_spend(name, statistic, self.budget, share)
        self._asking.purse.refuse(spend)
        return self._answer(statistic, spend)

    def release_misfits(self, name: str, statistic: Statistic) -> Release:
        """Spend the gate's share of the budget on noisy counts of values that do not fit.

        The statistic sees, of each row and column, 1 for such a value and 0 for another.
        """
        if self._asking.purse.costs:
            raise SfumatoError(f"'{name}' comes before all other questions, and once")
        spend = plan_spend(name, statistic, self.whole_budget, self._asking.run.gate.share)
        return self._answer(statistic, spend, ahead=True, flags=True)

    def release_search(self, name: str, statistic: Statistic | Selection, share: float) -> Release:
        """Spend what is kept back on something that the schema leaves open."""
        if isinstance(statistic, Selection):
            spend: Spend = statistic.plan(name, self.whole_budget, share)
        else:
            spend = plan_spend(name, statistic, self.whole_budget, share)
        self._asking.purse.refuse_ahead(spend)
        return self._answer(statistic, spend, ahead=True)

    def foretell(self, selections: Mapping[Selection, SelectionSpend]) -> None:
        """Have the owner warned, before the first payment, of columns of which little will be told.

        What is counted for that is private and on the owner's screen alone; it changes nothing in
        what is asked.
        """
        self._asking.held.foretold = selections

    def recode(self, schema: Schema, codec: TableCodec) -> None:
        """Go on with a schema that leaves nothing open, as far as what was released tells."""
        self._asking.held.recode(codec)
        self.schema = schema

    def refuse_training(self, name: str) -> None:
        """Refuse what no training can go on with; to be asked before anything is paid."""
        refuse_training(self.budget, name)
        self._asking.held.rows.refuse_training()

    def train(
        self, name: str, learner: Learner, schedule: Schedule, share: float | None = None
    ) -> State:
        """Train for what is left of the budget, or go on where a training was left.

        With a `share`, releases may follow, for all but that share of the budget: the training's
        noise is worked out so that both together keep to it. There is one training in a run.
        """
        self.refuse_training(name)
        later = self._asking.purse.later(name, share)
        state = Training(
            name=name, learner=learner, schedule=schedule, later=later, asking=self._asking,
            noisy_gradient=self._noisy_gradient,
        ).run()  # fmt: skip
        self._asking.purse.leave(later)
        self._asking.vault.answered(
            *(array.tobytes() for _, array in sorted(state.arrays.items())), release=False
        )
        return state

    def _answer(self, statistic: Statistic | Selection, spend: Spend, **how: bool) -> Release:
        release = self._asking.answer(statistic, spend, self._noisy_sum, **how)
        self.releases.append(release)
        return release

    def _noisy_sum(self, rows: PrivateRows, statistic: Statistic, spend: Spend) -> Integers:
        return wall.noisy_sum(rows, statistic, spend)

    def _noisy_gradient(
        self, learner: Learner, rows: Sequence[Tensor], spend: TrainingSpend
    ) -> Integers:
        return wall.noisy_gradient(learner, rows, spend)
