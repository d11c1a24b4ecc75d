"""How one question of a run is answered: by what was saved, or by the wall once it is paid for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.data.rows import PrivateRows
from sfumato.privacy import wall
from sfumato.privacy.answers import Release, digest_of, layout_of_values
from sfumato.privacy.budget import Cost, SelectionSpend, Spend
from sfumato.privacy.held_rows import HeldRows
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.purse import Purse
from sfumato.privacy.run import Run
from sfumato.privacy.selection import Selection
from sfumato.privacy.statistic import Statistic
from sfumato.privacy.vault import Vault
from sfumato.storage import slot

NoisySum = Callable[[PrivateRows, Statistic, Spend], NDArray[np.int64]]

_TOLD_ROOM = 1 << 17  # numbers of eight bytes; how many will be told is not known ahead


@dataclass(frozen=True)
class Asking:
    """What a run asks with: its budget, its saved answers, its rows and its options."""

    purse: Purse
    vault: Vault
    held: HeldRows
    run: Run

    @property
    def ledger(self) -> Ledger:
        """Where every spend is recorded."""
        assert self.run.ledger is not None
        return self.run.ledger

    def refuse_paying(self, path: Path | None, question: str, cost: Cost) -> bool:
        """Refuse, before any row is read, what was answered already; tell whether it was paid."""
        paid = self.purse.unanswered(question, cost) is not None
        if not paid or self.run.use_saved:
            self.vault.refuse_paying(path, question, cost.name)
        return paid

    def check_limit(self, cost: Cost) -> None:
        """Refuse what would pass a limit."""
        self.purse.check_limit(cost, self.purse.held(self.vault.reserved))

    def review(self) -> None:
        """Read all rows once, before anything is paid."""
        self.held.review(self.purse.whole.max_rows_per_unit)

    def pay(self, cost: Cost, question: str) -> int:
        """Give the number of a payment that is there already, or of a new one."""
        return self.purse.pay(cost, question, self.vault.run)

    def close(self) -> None:
        """Free what was reserved and not spent."""
        self.purse.close(self.vault.reserved)

    def answer(
        self,
        statistic: Statistic | Selection,
        spend: Spend,
        noisy_sum: NoisySum,
        *,
        ahead: bool = False,
        flags: bool = False,
    ) -> Release:
        """Take up a saved release, or pay for it and let the wall sum rows, or their `flags`."""
        path, question = self.vault.place(spend.name)
        with self.vault.alone(spend.name, question):
            if path and self.vault.holds(path, question, f"release '{spend.name}'"):
                release = self.vault.release(path, question, statistic, spend)
            else:
                rows = self.held.rows.misfit_flags() if flags else self.held.rows
                release = self._paid(path, question, rows, statistic, spend, noisy_sum)
        self.purse.add(spend, ahead)
        self.vault.answered(release.noisy.tobytes())
        return release

    def _paid(
        self,
        path: Path | None,
        question: str,
        rows: PrivateRows,
        statistic: Statistic | Selection,
        spend: Spend,
        noisy_sum: NoisySum,
    ) -> Release:
        if not self.refuse_paying(path, question, spend):
            self.check_limit(spend)
        self.review()
        self.run.tell(f"releasing {spend.name}", None)
        layout = self.vault.laid_out
        # The room on disk is taken before the money is spent: a full disk costs nothing.
        dim = _TOLD_ROOM if isinstance(statistic, Selection) else statistic.dim
        room = 8 * dim + sum(array.nbytes for array in layout.values())
        with slot(path, room) if path else nullcontext() as publish:
            number = self.pay(spend, question)
            if isinstance(statistic, Selection):
                assert isinstance(spend, SelectionSpend)
                most = self.purse.whole.max_rows_per_unit
                values, noisy = wall.told_values(rows, statistic, spend, most)
                release = Release(
                    noisy=noisy, statistic=statistic.describe(), spend=spend,
                    layout=layout_of_values(values),
                )  # fmt: skip
            else:
                release = Release(
                    noisy=noisy_sum(rows, statistic, spend), statistic=statistic.describe(),
                    spend=spend, resolutions=statistic.resolutions(), layout=layout,
                )  # fmt: skip
            if publish:
                content = release.to_bytes()
                publish(content, lambda: self.ledger.answered(number, digest_of(content)))
        return release
