"""What a run is made with, whatever is asked in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.errors import SfumatoError, within
from sfumato.privacy.gate import Gate
from sfumato.privacy.ledger import Ledger
from sfumato.progress import Progress, silent

_DEFAULT_GATE = Gate()


@dataclass(frozen=True, kw_only=True)
class Run:
    """Who pays, where answers are kept, and how rows are read.

    >>> Run(workers=2).gate.most
    0.01

    Parameters
    ----------
    ledger
        Where every spend is recorded; the user's own (`Ledger.default`) unless one is given.
        `Ledger(":memory:")` is forgotten with the process.
    dataset
        The name under which it is recorded: by default that of the file.
    folder
        Where answers are saved. A run that asks the same takes them up at no cost, whatever the
        rows are by then. Without a folder they live in memory only.
    pay_again
        Whether everything is asked anew and paid for, whatever was answered before. Only a run that
        began so and was interrupted is gone on with. Otherwise saved answers are taken up, and
        paying where there are answers to questions of the same name is refused.
    use_saved
        Whether saved answers alone are used: nothing is paid then.
    gate
        How much of a column may lie outside the schema.
    workers
        How many processes read large data; by default one for each core. Results are the same.
    progress
        Told how far the run is.
    """

    ledger: Ledger | None = None
    dataset: str | None = None
    folder: Path | None = None
    pay_again: bool = False
    use_saved: bool = False
    gate: Gate = _DEFAULT_GATE
    workers: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        within(workers=(self.workers, 1, 1024))
        if self.pay_again and self.use_saved:
            raise SfumatoError("--use-saved pays nothing and --pay-again always: choose one")

    @property
    def tell(self) -> Progress:
        """Where progress is told, if anywhere."""
        return self.progress or silent

    def named(self, dataset: str) -> Run:
        """Give the run with a ledger, and a name for the data set unless it has one."""
        return replace(
            self, ledger=self.ledger or Ledger.default(), dataset=self.dataset or dataset
        )
