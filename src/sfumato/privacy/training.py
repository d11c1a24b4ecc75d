"""A training within a run: paid for as a whole, saved now and then, taken up where it was left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SfumatoError
from sfumato.privacy.answers import digest_of, training_bytes, training_from_bytes
from sfumato.privacy.asking import Asking
from sfumato.privacy.budget import GRADIENT_BITS, TrainingSpend
from sfumato.privacy.planning import plan_training
from sfumato.storage import slot

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.privacy.dpsgd import Examples, Learner, Schedule, State

NoisyGradient = Callable[["Learner", Sequence["Tensor"], TrainingSpend], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training, and what it asks with.

    All rows are read, then the whole training is paid for, and its first state is saved before the
    first step: from there on, nothing is paid again. One process at a time holds the saved state,
    and the ledger knows which state is the newest: a copy or an older one is refused.
    """

    name: str
    learner: Learner
    schedule: Schedule
    later: float
    """The rho of what may follow."""
    asking: Asking
    noisy_gradient: NoisyGradient

    def run(self) -> State:
        """Train, or go on where it was left."""
        about = {"schedule": asdict(self.schedule), "learner": self.learner.describe()}
        vault = self.asking.vault
        path, question = vault.place(self.name, about)
        with vault.alone(self.name, question):
            if path and vault.holds(path, question, f"training '{self.name}'"):
                return self._taken_up(path, question)
            return self._begun(path, question)

    def _taken_up(self, path: Path, question: str) -> State:
        number, spend, start, newest = self._saved(path, question)
        self.asking.purse.trainings.append(spend)
        if start.step == self.schedule.steps:
            return start
        if self.asking.run.use_saved:
            raise SfumatoError(
                f"the saved training '{self.name}' is not finished: leave --use-saved out to go on "
                "with it"
            )
        return self._go_on(path, number, newest, self.asking.held.examples(self.learner), start)

    def _begun(self, path: Path | None, question: str) -> State:
        asking, purse = self.asking, self.asking.purse
        asking.run.tell("working out the noise", None)
        beside = purse.beside(self.later)
        spend = plan_training(self.name, self.learner.dim, self.schedule, purse.whole, beside)
        paid = asking.refuse_paying(path, question, spend)
        try:
            purse.reserve_instead(self.later, asking.vault.run, asking.vault.reserved)
            if not paid:
                asking.check_limit(spend)
            asking.review()
            examples = asking.held.examples(self.learner)
        except SfumatoError:
            asking.close()
            raise
        number, start, first = self._first_state(path, question, spend)
        purse.trainings.append(spend)
        return self._go_on(path, number, first, examples, start)

    def _saved(self, path: Path, question: str) -> tuple[int, TrainingSpend, State, str]:
        """Read a state, and believe nothing in it that was not planned, paid for and newest.

        The digest that was checked comes with it: it is what the next state must follow.
        """
        content = path.read_bytes()
        spend, state = training_from_bytes(content, path)
        digest = digest_of(content)
        entry = self.asking.vault.bearing_out(path, question, digest)
        planned = (
            self.learner.dim, self.schedule.clip, self.schedule.rate, self.schedule.steps,
            self.asking.purse.budget.delta, GRADIENT_BITS,
        )  # fmt: skip
        found = (spend.dim, spend.clip, spend.rate, spend.steps, spend.delta, spend.grid_bits)
        kept_to = self.asking.purse.within([*self.asking.purse.beside(self.later), spend])
        if entry.spend != spend or planned != found or not kept_to:
            raise SfumatoError(f"{path} is not the training that is planned now")
        self.asking.vault.taken_up.append(entry.time)
        return entry.number, spend, state, digest

    def _first_state(
        self, path: Path | None, question: str, spend: TrainingSpend
    ) -> tuple[int, State, str]:
        """Pay, and save the state before the first step."""
        from sfumato.privacy.dpsgd import first_state

        state = first_state(self.learner)
        content = training_bytes(spend, state)
        digest = digest_of(content)
        # Weights and the optimiser's memory: about three times the weights.
        with slot(path, 3 * len(content)) if path else nullcontext() as publish:
            number = self.asking.pay(spend, question)
            if publish:
                publish(content, lambda: self.asking.ledger.answered(number, digest))
        return number, state, digest

    def _go_on(
        self, path: Path | None, number: int, newest: str, examples: Examples, start: State
    ) -> State:
        """Make the steps that are left; each saved state must follow the one that it came from."""
        from sfumato.privacy.dpsgd import as_tensors, noisy_steps

        spend, rows = self.asking.purse.trainings[-1], as_tensors(examples)
        told = self.asking.ledger.answered

        def save_state(state: State) -> None:
            nonlocal newest
            if path is None:
                return
            content = training_bytes(spend, state)
            digest = digest_of(content)
            with slot(path, len(content)) as publish:
                publish(
                    content,
                    lambda: told(number, digest, step=state.step, after=newest),
                )
            newest = digest

        return noisy_steps(
            self.learner,
            self.schedule,
            spend,
            lambda: self.noisy_gradient(self.learner, rows, spend),
            start=start,
            save=save_state,
            progress=self.asking.run.tell,
        )
