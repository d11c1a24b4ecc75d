"""The curator: it holds the private rows, pays, asks the wall, and keeps what it answered.

Contract of `Curator.release`: all rows are read once and found readable; then the spend is durable;
then rows are summed in integers; exact noise is added; the release is on disk, whole, before it is
returned. What comes back can be used again for ever at no cost, and a run that asks for the same
release again gets the saved one instead of a second look at the rows.

A question is the same if everything public that led to it is: the data's name and place, the
schema, the budget, the method with those of its settings that determine what is asked, the values
that were released before, and how often it was asked anew. The rows are no part of it: whether an
answer is taken up or paid for follows from the folder, the ledger and the options alone, so that
nobody can tell from it whether a row has changed. Where floating-point results go into a question
(axes, cells), they are saved with the answer as its layout, and the next run takes them from there.

`Curator.train` is the other way: noisy gradients (`dpsgd.py`), paid for as a whole, saved now and
then, and taken up where they were left.

What lies on disk is not believed: it must agree with the plan, and with the ledger, which keeps a
digest of each question that it paid for and of each answer that was saved.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import PrivateRows, encoded_rows
from sfumato.data.sources import dataset_name, source_name
from sfumato.data.table_codec import TableCodec
from sfumato.errors import PrivateWarning, SfumatoError
from sfumato.privacy import wall
from sfumato.privacy.ahead import Ahead
from sfumato.privacy.answers import (
    Arrays,
    Release,
    digest_of,
    layout_of_values,
    told_values,
    training_bytes,
    training_from_bytes,
)
from sfumato.privacy.budget import (
    GRADIENT_BITS,
    Budget,
    Cost,
    Guarantee,
    Reserved,
    SelectionSpend,
    Spend,
    TrainingSpend,
    composed_epsilon,
)
from sfumato.privacy.gate import Gate
from sfumato.privacy.ledger import ROW, Entry, Ledger
from sfumato.privacy.planning import plan_spend, plan_training, refuse_training
from sfumato.privacy.selection import Selection
from sfumato.privacy.statistic import Statistic
from sfumato.progress import Progress, silent
from sfumato.schema import Schema
from sfumato.storage import check_folder, next_of, slot, take_place

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.privacy.dpsgd import Examples, Learner, Schedule, State

_SELECTED_ROOM = 1 << 17  # numbers of eight bytes; how much will be told is not known ahead


_LITTLE = 0.5  # of the rows have a value that is told: their owner is warned of less

_LATER_VALUES = 10**6
"""So many values are expected after a training; it matters where epsilon is far above 10."""


class Curator:
    """Holds the private rows and one run's budget, and answers with releases only.

    What is asked, and for which share of the budget, may depend on earlier answers: the budget is a
    filter that no sequence of questions can pass, and for Gaussian mechanisms that is as good as a
    fixed sequence (Smith and Thakurta 2022).

    Parameters
    ----------
    rows
        Encoded rows, which are asked for one sum per release, and for a review before the first.
    budget
        What all releases of this curator together may cost.
    ledger, dataset
        Where every spend is recorded, and under which name.
    schema
        The public description through which the rows were encoded.
    source
        Where the rows come from, so that no other source's releases are taken up.
    asker
        Who asks: the name of the method and those of its settings that determine its questions.
    folder
        Where releases are saved. Without one they live in memory only.
    pay_again
        Whether everything is asked anew and paid for, whatever was answered before. Only a run that
        began so and was interrupted is gone on with. Otherwise saved answers are taken up, and
        paying where there are answers to questions of the same name is refused.
    use_saved
        Whether saved answers alone are to be used: nothing is paid then.
    gate
        How much of a column may lie outside the schema.
    ahead
        What is kept back of the budget for finding what the schema leaves open.
    reopen
        Opens the same rows through another code, once that is found.
    """

    def __init__(
        self,
        rows: PrivateRows,
        budget: Budget,
        *,
        ledger: Ledger,
        dataset: str,
        schema: Schema,
        source: str = "",
        asker: Mapping[str, Any] | None = None,
        folder: Path | None = None,
        pay_again: bool = False,
        use_saved: bool = False,
        gate: Gate = Gate(),
        ahead: Ahead = Ahead(),
        reopen: Callable[[TableCodec], PrivateRows] | None = None,
        progress: Progress = silent,
    ) -> None:
        if pay_again and use_saved:
            raise SfumatoError("--use-saved pays nothing and --pay-again always: choose one")
        self._ahead = gate.share + ahead.share
        self._chance = ahead.chance
        left = budget.without_chance(ahead.chance) - self._ahead
        self.budget = budget.part(left) if left < 1 else budget
        self.whole_budget = budget
        self._gate = gate
        self._spent_ahead = 0.0
        self._use_saved = use_saved
        self._reservation: int | None = None
        self._room = self.budget.rho  # for releases, in all
        self._earlier: list[bytes] = []  # answers, in the order in which they were given
        self.releases: list[Release] = []
        self.trainings: list[TrainingSpend] = []
        self.taken_up: list[str] = []  # when what was taken up had been paid for
        self.folder = folder
        self._rows = rows
        self._first_rows = rows  # which are reviewed
        self._reopen = reopen
        self._reviewed = False
        self._foretold: dict[Selection, SelectionSpend] = {}
        self._round: int | None = None  # how often what this run asks was asked anew before
        self._layout: Arrays = {}
        self._ledger = ledger
        self._dataset = dataset
        self.schema = schema
        self._declared = schema
        self._source = source
        self._asker = asker or {}
        self._pay_again = pay_again
        self._progress = progress

    @classmethod
    def of(
        cls,
        data: Any,
        codec: TableCodec | ImageCodec,
        schema: Schema,
        budget: Budget,
        *,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        asker: Mapping[str, Any] | None = None,
        folder: Path | None = None,
        pay_again: bool = False,
        use_saved: bool = False,
        gate: Gate = Gate(),
        ahead: Ahead = Ahead(),
        workers: int | None = 1,
        progress: Progress = silent,
    ) -> Curator:
        """Open private data: a path, a frame, or arrays of images. Reads no row.

        Without a ledger, everything is paid for in the user's own (`Ledger.default`). Large
        data are read by so many `workers` (None: all cores), and encoded rows kept in the folder
        for as long as they are asked about (`asking`).
        """
        if folder:
            check_folder(folder)
        path = isinstance(data, str | Path)
        if folder and not path and dataset is None:
            raise SfumatoError("name the dataset: releases in a folder are found by its name")
        return cls(
            encoded_rows(
                data, codec, budget.max_rows_per_unit, workers, folder / ".rows" if folder else None
            ),
            budget,
            ledger=ledger or Ledger.default(),
            dataset=dataset or dataset_name(data),
            schema=schema,
            source=source_name(data),
            asker=asker,
            folder=folder,
            pay_again=pay_again,
            use_saved=use_saved,
            gate=gate,
            ahead=ahead,
            reopen=lambda code: encoded_rows(data, code, budget.max_rows_per_unit, workers),
            progress=progress,
        )

    @property
    def codec(self) -> TableCodec | ImageCodec:
        """The code in which the rows were encoded."""
        if self._rows.codec is None:
            raise TypeError("these rows came without their code")
        return self._rows.codec

    @property
    def guarantee(self) -> Guarantee:
        """What has been promised so far."""
        return Guarantee.of(
            self.budget, self._spends, self.schema.unit_column, tuple(self.trainings)
        )

    @property
    def left(self) -> float:
        """The share of the budget that is not spent yet; after a training, what it has left."""
        return max(0.0, (self._room - self._spent) / self.budget.rho)

    @property
    def _spent(self) -> float:
        """The rho of all releases but those that have a part of the budget for themselves."""
        return sum(release.spend.rho for release in self.releases) - self._spent_ahead

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Leave no encoded rows on disk after this, nor those that a crash left before.

        Databases are let go of, too.
        """
        self._rows.clear()
        try:
            yield
        finally:
            self._rows.close()
            if self.folder is not None:
                with suppress(OSError):
                    self.folder.rmdir()  # nothing was paid for: nothing is left behind

    def close(self) -> None:
        """Free what was reserved and not spent: nothing more will be asked."""
        held = self._held
        if held is not None:
            self._ledger.close(held)
            self._reservation = None

    @property
    def _held(self) -> int | None:
        """The number of what is reserved for this run, also before it was interrupted."""
        return self._reservation or self._reserved_in(self._round or 0)

    def layout(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Give the arrays by which the next question is laid out: the saved ones, if there are.

        They are saved with the answer. What is computed must follow from earlier releases, the
        schema and the settings.
        """
        path, question = self._place(name)
        saved = self._saved(path, question) if path and path.exists() else None
        self._layout = saved[0].layout if saved else compute()
        return self._layout

    def release(self, name: str, statistic: Statistic, share: float) -> Release:
        """Spend a share of the budget on a noisy sum, or take it up again where it was saved."""
        spend = plan_spend(name, statistic, self.budget, share)
        if self._spent + spend.rho > self._room * (1 + 1e-9) or not self._affords(spend):
            raise SfumatoError(f"'{name}' would cost more than what is left of the budget")
        return self._answer(statistic, spend, self._rows)

    def _affords(self, cost: Cost) -> bool:
        """Tell whether trainings and releases, the gate's among them, keep to the budget."""
        if not self.trainings:
            return True
        costs, whole = [*self._spends, *self.trainings, cost], self.whole_budget
        return composed_epsilon(costs, whole.delta, whole.relation) <= whole.epsilon * (1 + 1e-9)

    def release_misfits(self, name: str, statistic: Statistic) -> Release:
        """Spend the gate's share of the budget on noisy counts of values that do not fit.

        The statistic sees, of each row and column, 1 for such a value and 0 for another.
        """
        if self.releases or self.trainings:
            raise SfumatoError(f"'{name}' comes before all other questions, and once")
        spend = plan_spend(name, statistic, self.whole_budget, self._gate.share)
        release = self._answer(statistic, spend, self._rows.misfit_flags())
        self._spent_ahead += spend.rho
        return release

    def foretell(self, selections: Mapping[Selection, SelectionSpend]) -> None:
        """Warn the owner, before the first payment, of columns of which little will be told.

        What is counted for that is private and on the owner's screen alone; it changes nothing in
        what is asked.
        """
        self._foretold = dict(selections)

    def release_ahead(self, name: str, statistic: Statistic | Selection, share: float) -> Release:
        """Spend what is kept back on something that the schema leaves open."""
        spend: Spend
        if isinstance(statistic, Selection):
            spend = statistic.plan(name, self.whole_budget, share)
        else:
            spend = plan_spend(name, statistic, self.whole_budget, share)
        missed = spend.missed + sum(each.missed for each in self._spends)
        if self._spent_ahead + spend.rho > self._ahead * self.whole_budget.rho * (
            1 + 1e-9
        ) or missed > self._chance * (1 + 1e-9):
            raise SfumatoError(f"'{name}' would cost more than what is kept back for it")
        release = self._answer(statistic, spend, self._rows)
        self._spent_ahead += spend.rho
        return release

    def see_through(self, schema: Schema, codec: TableCodec) -> None:
        """Go on with a schema that leaves nothing open, as far as what was released tells."""
        if self._reopen is None:
            raise TypeError("these rows cannot be opened again")
        self._rows.clear()
        self._rows = self._reopen(codec)
        self.schema = schema  # what is asked is still named by the one that was declared

    def _answer(self, statistic: Statistic | Selection, spend: Spend, rows: PrivateRows) -> Release:
        path, question = self._place(spend.name)
        with self._alone(spend.name, question):
            if path and self._lies_at(path, question):
                self._progress(f"taking up the saved release '{spend.name}' ({path})", None)
                release = self._saved_release(path, question, statistic, spend)
            else:
                release = self._new_release(path, question, statistic, spend, rows)
        self._layout = {}
        self.releases.append(release)
        self._earlier.append(release.noisy.tobytes())
        return release

    def _alone(self, name: str, question: str) -> AbstractContextManager[None]:
        """Let no other run ask the same meanwhile: a payment without an answer is a crash's."""
        if not question:
            return nullcontext()
        waiting = f"waiting for another run that asks for '{name}'"
        return self._ledger.holding(question, lambda: self._progress(waiting, None))

    def _lies_at(self, path: Path, question: str) -> bool:
        """Tell whether an answer was saved; one that waits, and was agreed on, takes its place."""
        waiting = next_of(path)
        if waiting.exists():
            digest = digest_of(waiting.read_bytes())
            if self._entry(question, digest):
                take_place(path)  # a crash came just before this
            else:
                waiting.unlink()  # the ledger never heard of it, and nobody else may
        return path.exists()

    def _entry(self, question: str, digest: str) -> Entry | None:
        """Find the entry that paid for a question and whose newest answer has this digest."""
        for entry in self._ledger.paid(self._dataset, question):
            if self._ledger.last_answer(entry.number) == digest:
                return entry
        return None

    def _saved(self, path: Path, question: str) -> tuple[Release, Entry]:
        """Read a release that was paid for, and is what was saved then."""
        content = path.read_bytes()
        release = Release.from_bytes(content, path)
        return release, self._bearing_out(path, question, digest_of(content))

    def _bearing_out(self, path: Path, question: str, digest: str) -> Entry:
        """Give the entry that bears a saved answer out; refuse one that none does."""
        if not self._ledger.paid(self._dataset, question):
            raise SfumatoError(
                f"{path} was not paid for in the ledger {self._ledger.path}: name the ledger that "
                "paid for it, or move the file away and pay for a new answer"
            )
        entry = self._entry(question, digest)
        if entry is None:
            raise SfumatoError(
                f"{path} is not the newest that was saved there: it was changed, exchanged, copied "
                "or brought back, and going on from it would spend more than was paid for"
            )
        return entry

    def _saved_release(
        self, path: Path, question: str, statistic: Statistic | Selection, spend: Spend
    ) -> Release:
        """Take up a release, and believe nothing in it that was not planned and paid for."""
        release, entry = self._saved(path, question)
        self.taken_up.append(entry.time)
        described = json.loads(json.dumps(statistic.describe()))
        if (release.spend, entry.spend, release.statistic) != (spend, spend, described):
            raise SfumatoError(
                f"{path} does not answer the question that is asked now (it may be another "
                "version's): name another folder for releases"
            )
        values = release.noisy
        numbers = len(told_values(release)) if isinstance(statistic, Selection) else statistic.dim
        if values.shape != (numbers,) or values.dtype != np.int64:
            raise SfumatoError(f"{path} is damaged: it does not hold {numbers} numbers")
        return release

    def _new_release(
        self,
        path: Path | None,
        question: str,
        statistic: Statistic | Selection,
        spend: Spend,
        rows: PrivateRows,
    ) -> Release:
        self._may_pay(path, question, spend)
        self._review()
        self._progress(f"releasing {spend.name}", None)
        # The room on disk is taken before the money is spent: a full disk costs nothing.
        dim = _SELECTED_ROOM if isinstance(statistic, Selection) else statistic.dim
        room = 8 * dim + sum(array.nbytes for array in self._layout.values())
        with slot(path, room) if path else nullcontext() as publish:
            number = self._pay(spend, question)
            if isinstance(statistic, Selection):
                release = self._selected(rows, statistic, spend)
            else:
                release = Release(
                    noisy=self._noisy_sum(rows, statistic, spend),
                    statistic=statistic.describe(),
                    spend=spend,
                    resolutions=statistic.resolutions(),
                    layout=self._layout,
                )
            if publish:
                content = release.to_bytes()
                publish(content, lambda: self._ledger.answered(number, digest_of(content)))
        return release

    def _may_pay(self, path: Path | None, question: str, cost: Cost) -> None:
        """Refuse before any row is read: what passes a limit, and what was answered already."""
        self._may_ask(path, question, cost)
        if self._unanswered(question, cost) is None:
            self._check_limit(cost)

    def _may_ask(self, path: Path | None, question: str, cost: Cost) -> None:
        """Refuse to pay for what was answered already, unless that was asked for."""
        if self._use_saved:
            raise SfumatoError(
                f"no saved release answers '{cost.name}': leave --use-saved out to pay for it"
            )
        if path is None or self._pay_again or self._unanswered(question, cost) is not None:
            return
        if self._ledger.paid(self._dataset, question):
            raise SfumatoError(
                f"'{cost.name}' was paid for and answered before, with the same data, schema, "
                "budget and settings. Name the folder that holds the answer (--releases); or, to "
                "pay for another one, say so (--pay-again)"
            )
        rounds = (_round_in(file, cost.name) for file in path.parent.glob("*"))
        if any(each is not None and each >= (self._round or 0) for each in rounds):
            raise SfumatoError(
                f"{path.parent} holds an answer to '{cost.name}' already, but for other data, "
                "another schema or budget, or other settings. To pay for this one as well, say so "
                "(--pay-again); or name another output or folder for releases"
            )

    def _check_limit(self, cost: Cost) -> None:
        """Refuse a whole run that would pass the limit, before its first question."""
        held = self._held
        if held is None and isinstance(cost, Spend):
            cost = Reserved(name="the whole run", dim=0, amount=self._still_to_spend)
        self._ledger.check_limit(self._dataset, self.budget, cost, self._unit, held)

    @property
    def _still_to_spend(self) -> float:
        ahead = self._ahead * self.whole_budget.rho - self._spent_ahead
        return ahead + self._room - self._spent

    @property
    def _unit(self) -> str:
        return self.schema.unit_column or ROW

    def _unanswered(self, question: str, cost: Cost) -> int | None:
        """Find a payment for this very question whose answer nobody has seen: a crash came before.

        The ledger lets an entry have one answer only, so that even two runs that find it at once
        give one.
        """
        for entry in self._ledger.paid(self._dataset, question):
            if entry.spend == cost and self._ledger.last_answer(entry.number) is None:
                return entry.number
        return None

    def _review(self) -> None:
        """Read all rows once: what cannot be read, or is empty, is noticed before it costs."""
        if self._reviewed:
            return
        self._progress("reading rows", None)
        found = self._first_rows.review()
        self._refuse_empty(found.kept)
        if self._gate.most is not None and not self._gate.share:
            refusal = found.refusal(self._gate.most)
            if refusal:
                raise SfumatoError(refusal)
        for sentence in (*found.sentences(), *self._little_told()):
            warnings.warn(f"PRIVATE: {sentence}", PrivateWarning, stacklevel=2)
        self._reviewed = True

    def _little_told(self) -> Iterator[str]:
        """Say of which columns most rows have a value that few rows have."""
        for selection, spend in self._foretold.items():
            counts = self._first_rows.counted_values(selection.column)
            least = selection.threshold(spend, self.whole_budget.max_rows_per_unit)
            told = sum(count for count in counts.values() if count >= least)
            rows = sum(counts.values())
            if told < _LITTLE * rows:
                yield (
                    f"column '{selection.column}' has {len(counts):,} values; those that about "
                    f"{least:,.0f} rows have are told, and {1 - told / rows:.0%} of the rows have "
                    "others, which become (other). If it is text, leave it out; if it names rows, "
                    "declare an identifier"
                )

    def _refuse_empty(self, rows: int) -> None:
        if rows == 0:
            raise SfumatoError(f"{Path(self._source).name or 'the data set'} has no rows")

    def _pay(self, cost: Cost, question: str) -> int:
        """Give the number of a payment that is there already, or of a new one."""
        number = self._unanswered(question, cost)
        if number is None:
            number = self._new_payment(cost, question)
        return number

    def _new_payment(self, cost: Cost, question: str) -> int:
        """Pay from what is reserved for the whole run; reserve it before the first question."""
        if self._reservation is None and isinstance(cost, Spend):
            self._reservation = self._ledger.reserve(
                self._dataset, self.whole_budget, self._still_to_spend, self._unit, self._run
            )
        return self._ledger.record(
            self._dataset, self.budget, cost, self._unit, question, self._reservation
        )

    def _noisy_sum(
        self, rows: PrivateRows, statistic: Statistic, spend: Spend
    ) -> NDArray[np.int64]:
        return wall.noisy_sum(rows, statistic, spend)

    def _noisy_gradient(
        self, learner: Learner, rows: Sequence[Tensor], spend: TrainingSpend
    ) -> NDArray[np.int64]:
        return wall.noisy_gradient(learner, rows, spend)

    def _selected(self, rows: PrivateRows, selection: Selection, spend: Spend) -> Release:
        """Tell which values of a column many rows have, with their noisy counts."""
        assert isinstance(spend, SelectionSpend)
        values, noisy = wall.told_values(
            rows, selection, spend, self.whole_budget.max_rows_per_unit
        )
        return Release(
            noisy=noisy,
            statistic=selection.describe(),
            spend=spend,
            layout=layout_of_values(values),
        )

    def train(
        self, name: str, learner: Learner, schedule: Schedule, share: float | None = None
    ) -> State:
        """Train for what is left of the budget, or go on where a training was left.

        With a `share`, releases may follow, for all but that share of the budget: the training's
        noise is worked out so that both together keep to it. There is one training in a run.

        All rows are read, then the whole training is paid for, and its first state is saved before
        the first step: from there on, nothing is paid again. One process at a time holds the saved
        state, and the ledger knows which state is the newest: a copy or an older one is refused.
        """
        self.refuse_training(name)
        later = 0.0 if share is None else (self.left - share) * self.budget.rho
        if self.trainings or later < 0 or (self._spends and self.left <= 0):
            raise SfumatoError(f"'{name}' would cost more than what is left of the budget")
        state = self._trained(name, learner, schedule, later)
        self._room = self._spent + later
        self._earlier += [array.tobytes() for _, array in sorted(state.arrays.items())]
        return state

    def refuse_training(self, name: str) -> None:
        """Refuse what no training can go on with; to be asked before anything is paid."""
        refuse_training(self.budget, name)
        self._rows.refuse_training()

    def _trained(self, name: str, learner: Learner, schedule: Schedule, later: float) -> State:
        costs = (*self._spends, Reserved(name="later releases", dim=_LATER_VALUES, amount=later))
        about = {"schedule": asdict(schedule), "learner": learner.describe()}
        path, question = self._place(name, about)
        with self._alone(name, question):
            if path and self._lies_at(path, question):
                self._progress(f"taking up the saved training '{name}' ({path})", None)
                entry, spend, start, newest = self._saved_training(
                    path, question, learner, schedule, costs
                )
                self.trainings.append(spend)
                if start.step == schedule.steps:
                    return start
                if self._use_saved:
                    raise SfumatoError(
                        f"the saved training '{name}' is not finished: leave --use-saved out to go "
                        "on with it"
                    )
                examples = self._examples(learner)
                return self._go_on(path, entry, newest, learner, examples, schedule, start)
            self._progress("working out the noise", None)
            spend = plan_training(name, learner.dim, schedule, self.whole_budget, costs)
            self._may_ask(path, question, spend)
            self._reserve_instead(later)
            try:
                self._may_pay(path, question, spend)
                self._review()
                examples = self._examples(learner)
            except SfumatoError:
                self.close()
                raise
            number, start, first = self._new_training(path, question, learner, spend)
            self.trainings.append(spend)
            return self._go_on(path, number, first, learner, examples, schedule, start)

    def _reserve_instead(self, rho: float) -> None:
        """Set aside what may follow a training, and free what releases alone could have cost.

        Also where nothing may: until it is closed, the run is known to have been interrupted.
        """
        try:
            self._reservation = self._ledger.reserve(
                self._dataset, self.whole_budget, rho, self._unit, self._run, self._held
            )
        except SfumatoError:
            self.close()
            raise

    def _saved_training(
        self,
        path: Path,
        question: str,
        learner: Learner,
        schedule: Schedule,
        beside: tuple[Cost, ...],
    ) -> tuple[int, TrainingSpend, State, str]:
        """Read a state, and believe nothing in it that was not planned, paid for and newest.

        The digest that was checked comes with it: it is what the next state must follow.
        """
        content = path.read_bytes()
        spend, state = training_from_bytes(content, path)
        digest = digest_of(content)
        entry = self._bearing_out(path, question, digest)
        planned = (
            learner.dim, schedule.clip, schedule.rate, schedule.steps, self.budget.delta,
            GRADIENT_BITS,
        )  # fmt: skip
        found = (spend.dim, spend.clip, spend.rate, spend.steps, spend.delta, spend.grid_bits)
        whole = self.whole_budget  # which the gate's release is counted against, too
        reached = composed_epsilon([*beside, spend], whole.delta, whole.relation)
        if entry.spend != spend or planned != found or reached > whole.epsilon * (1 + 1e-9):
            raise SfumatoError(f"{path} is not the training that is planned now")
        self.taken_up.append(entry.time)
        return entry.number, spend, state, digest

    def _new_training(
        self, path: Path | None, question: str, learner: Learner, spend: TrainingSpend
    ) -> tuple[int, State, str]:
        from sfumato.privacy.dpsgd import first_state

        state = first_state(learner)
        content = training_bytes(spend, state)
        digest = digest_of(content)
        # Weights and the optimiser's memory: about three times the weights.
        with slot(path, 3 * len(content)) if path else nullcontext() as publish:
            number = self._pay(spend, question)
            if publish:
                publish(content, lambda: self._ledger.answered(number, digest))
        return number, state, digest

    def _go_on(
        self,
        path: Path | None,
        number: int,
        newest: str,
        learner: Learner,
        examples: Examples,
        schedule: Schedule,
        start: State,
    ) -> State:
        """Make the steps that are left; each saved state must follow the one that it came from."""
        from sfumato.privacy.dpsgd import as_tensors, noisy_steps

        spend, rows = self.trainings[-1], as_tensors(examples)

        def save_state(state: State) -> None:
            nonlocal newest
            if path is None:
                return
            content = training_bytes(spend, state)
            digest = digest_of(content)
            with slot(path, len(content)) as publish:
                publish(
                    content,
                    lambda: self._ledger.answered(number, digest, step=state.step, after=newest),
                )
            newest = digest

        return noisy_steps(
            learner,
            schedule,
            spend,
            lambda: self._noisy_gradient(learner, rows, spend),
            start=start,
            save=save_state,
            progress=self._progress,
        )

    def _examples(self, learner: Learner) -> Examples:
        from sfumato.privacy.dpsgd import MOST_ROWS

        self._progress("reading rows", None)
        examples = self._rows.gathered(learner.examples)
        self._refuse_empty(len(examples[0]) if examples else 0)
        if len(examples[0]) > MOST_ROWS:
            raise SfumatoError(f"a training takes at most {MOST_ROWS:,} rows")
        return examples

    @property
    def _spends(self) -> tuple[Spend, ...]:
        return tuple(release.spend for release in self.releases)

    def _place(self, name: str, about: Mapping[str, Any] | None = None) -> tuple[Path | None, str]:
        """Give the file of the next question's answer, and the digest of everything that asks it.

        Both without a folder: nothing is kept then, and nothing found.
        """
        if self.folder is None:
            return None, ""
        identity = self._identity | {
            "name": name,
            "number": len(self.releases),
            "earlier": digest_of(b"".join(self._earlier)),
            **(about or {}),
        }
        question = digest_of(json.dumps(identity, sort_keys=True).encode())
        if self._round is None:
            self._round = self._round_of(name, question)
        return self._named(name, question, self._round)

    def _named(self, name: str, question: str, asked: int) -> tuple[Path, str]:
        """Give the file and the digest of a question in the round in which it is asked."""
        assert self.folder is not None
        more = f".{asked}" if asked else ""
        return self.folder / f"{name}-{question[:16]}{more}.safetensors", question + more

    def _round_of(self, name: str, question: str) -> int:
        """Give the round in which this run asks, by its first question: the newest, or a new one.

        With `pay_again`, a new one begins unless the newest was interrupted; otherwise the newest
        goes on of which anything lies in the folder. Nothing here depends on rows.
        """
        rounds = self._ledger.rounds(self._dataset, question)
        last = max(0, rounds - 1)
        held = self._reserved_in(last)
        _, asked = self._named(name, question, last)
        payments = self._ledger.paid(self._dataset, asked)
        if held is not None and any(entry.reservation == held for entry in payments):
            return last  # it was interrupted here
        if self._pay_again:
            return rounds
        for each in range(last, -1, -1):
            path, _ = self._named(name, question, each)
            if path.exists() or next_of(path).exists():
                return each
        return last

    @property
    def _identity(self) -> dict[str, Any]:
        return {
            "dataset": self._dataset,
            "source": self._source,
            "schema": self._declared.to_toml(),
            "budget": asdict(self.budget),
            "asker": dict(self._asker),
        }

    @property
    def _run(self) -> str:
        """The digest of what makes a run the same as one that was interrupted, if it is kept."""
        return self._run_in(self._round or 0)

    def _run_in(self, asked: int) -> str:
        if self.folder is None:
            return ""
        place = {"folder": str(self.folder.resolve())} | ({"round": asked} if asked else {})
        return digest_of(json.dumps(self._identity | place, sort_keys=True).encode())

    def _reserved_in(self, asked: int) -> int | None:
        return self._ledger.open_reservation(self._dataset, self._run_in(asked))


def _round_in(file: Path, name: str) -> int | None:
    """Tell in which round a file's question of this name was asked; None if it holds none."""
    found = re.fullmatch(re.escape(name) + r"-[0-9a-f]{16}(?:\.([0-9]+))?\.safetensors", file.name)
    return int(found[1] or 0) if found else None
