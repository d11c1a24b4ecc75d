"""The vault: the identity of a question, and the answers that were saved.

A question is the same if everything public that led to it is: the data's name and place, the
schema, the budget, the method with those of its settings that determine what is asked, the values
that were released before, and how often it was asked anew. The rows are no part of it: whether an
answer is taken up or paid for follows from the folder, the ledger and the options alone, so that
nobody can tell from it whether a row has changed. Where floating-point results go into a question
(axes, cells), they are saved with the answer as its layout, and the next run takes them from there.

What lies on disk is not believed: it must agree with the plan, and with the ledger, which keeps a
digest of each question that it paid for and of each answer that was saved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import SfumatoError
from sfumato.privacy.answers import Arrays, Release, digest_of, told_values
from sfumato.privacy.budget import Spend
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.privacy.run import Run
from sfumato.privacy.selection import Selection
from sfumato.privacy.statistic import Statistic
from sfumato.storage import next_of, take_place


class Vault:
    """The saved answers of one run, in the order in which it asks.

    Parameters
    ----------
    run
        Where answers are saved, which ledger bears them out, and whether they are taken up.
    about
        Everything public that is the same for all questions of the run.
    """

    def __init__(self, run: Run, about: Mapping[str, Any]) -> None:
        assert run.ledger is not None
        assert run.dataset is not None
        self.folder = run.folder
        self.taken_up: list[str] = []  # when what was taken up had been paid for
        self._ledger: Ledger = run.ledger
        self._dataset: str = run.dataset
        self._pay_again, self._use_saved, self._tell = run.pay_again, run.use_saved, run.tell
        self._about = dict(about)
        self._answered = 0
        self._earlier: list[bytes] = []  # answers, in the order in which they were given
        self._round: int | None = None  # how often what this run asks was asked anew before
        self.laid_out: Arrays = {}  # the next question, by its arrays

    # --- what is asked

    def place(self, name: str, about: Mapping[str, Any] | None = None) -> tuple[Path | None, str]:
        """Give the file of the next question's answer, and the digest of everything that asks it.

        Both without a folder: nothing is kept then, and nothing found.
        """
        if self.folder is None:
            return None, ""
        identity = self._about | {
            "name": name,
            "number": self._answered,
            "earlier": digest_of(b"".join(self._earlier)),
            **(about or {}),
        }
        question = digest_of(json.dumps(identity, sort_keys=True).encode())
        if self._round is None:
            self._round = self._round_of(name, question)
        return self._named(name, question, self._round)

    def answered(self, *answers: bytes, release: bool = True) -> None:
        """Note an answer: what is asked next may depend on it."""
        self._answered += release
        self._earlier += answers
        if release:
            self.laid_out = {}

    def layout(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Give the arrays by which the next question is laid out: the saved ones, if there are."""
        path, question = self.place(name)
        saved = self._saved(path, question) if path and path.exists() else None
        self.laid_out = saved[0].layout if saved else compute()
        return self.laid_out

    def alone(self, name: str, question: str) -> AbstractContextManager[None]:
        """Let no other run ask the same meanwhile: a payment without an answer is a crash's."""
        if not question:
            return nullcontext()
        waiting = f"waiting for another run that asks for '{name}'"
        return self._ledger.holding(question, lambda: self._tell(waiting, None))

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
    def run(self) -> str:
        """The digest of what makes a run the same as one that was interrupted, if it is kept."""
        return self._run_in(self._round or 0)

    @property
    def reserved(self) -> int | None:
        """The number of what this run reserved before it was interrupted."""
        return self._reserved_in(self._round or 0)

    def _run_in(self, asked: int) -> str:
        if self.folder is None:
            return ""
        place = {"folder": str(self.folder.resolve())} | ({"round": asked} if asked else {})
        return digest_of(json.dumps(self._about | place, sort_keys=True).encode())

    def _reserved_in(self, asked: int) -> int | None:
        return self._ledger.open_reservation(self._dataset, self._run_in(asked))

    # --- what was answered

    def refuse_paying(self, path: Path | None, question: str, name: str) -> None:
        """Refuse to pay for what was answered already, unless that was asked for."""
        if self._use_saved:
            raise SfumatoError(
                f"no saved release answers '{name}': leave --use-saved out to pay for it"
            )
        if path is None or self._pay_again:
            return
        if self._ledger.paid(self._dataset, question):
            raise SfumatoError(
                f"'{name}' was paid for and answered before, with the same data, schema, "
                "budget and settings. Name the folder that holds the answer (--releases); or, to "
                "pay for another one, say so (--pay-again)"
            )
        rounds = (_round_in(file, name) for file in path.parent.glob("*"))
        if any(each is not None and each >= (self._round or 0) for each in rounds):
            raise SfumatoError(
                f"{path.parent} holds an answer to '{name}' already, but for other data, "
                "another schema or budget, or other settings. To pay for this one as well, say so "
                "(--pay-again); or name another output or folder for releases"
            )

    def holds(self, path: Path | None, question: str, what: str) -> bool:
        """Tell whether an answer was saved; one that waits, and was agreed on, takes its place."""
        if path is None:
            return False
        waiting = next_of(path)
        if waiting.exists():
            digest = digest_of(waiting.read_bytes())
            if self._entry(question, digest):
                take_place(path)  # a crash came just before this
            else:
                waiting.unlink()  # the ledger never heard of it, and nobody else may
        if path.exists():
            self._tell(f"taking up the saved {what} ({path})", None)
        return path.exists()

    def release(
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

    def _saved(self, path: Path, question: str) -> tuple[Release, Entry]:
        """Read a release that was paid for, and is what was saved then."""
        content = path.read_bytes()
        release = Release.from_bytes(content, path)
        return release, self.bearing_out(path, question, digest_of(content))

    def bearing_out(self, path: Path, question: str, digest: str) -> Entry:
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

    def _entry(self, question: str, digest: str) -> Entry | None:
        """Find the entry that paid for a question and whose newest answer has this digest."""
        for entry in self._ledger.paid(self._dataset, question):
            if self._ledger.last_answer(entry.number) == digest:
                return entry
        return None


def _round_in(file: Path, name: str) -> int | None:
    """Tell in which round a file's question of this name was asked; None if it holds none."""
    found = re.fullmatch(re.escape(name) + r"-[0-9a-f]{16}(?:\.([0-9]+))?\.safetensors", file.name)
    return int(found[1] or 0) if found else None
