"""The gate: how much of a column may lie outside the schema before a run stops, unpaid."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import SfumatoError


@dataclass(frozen=True)
class Gate:
    """How much misfit is let through.

    By default, misfits are counted exactly, and their owner sees them: whether a run stops is the
    owner's decision, and what is promised is promised for runs that happen. Where even that must
    not depend on a single row, `most` is None, and no run ever stops; or a `share` of the budget
    is spent on noisy counts, which then decide.

    >>> Gate.of("off").most is None, Gate.of("0.05").most
    (True, 0.05)
    """

    most: float | None = 0.01
    share: float = 0.0

    def __post_init__(self) -> None:
        if self.most is not None and not 0 <= self.most <= 1:
            raise SfumatoError(f"misfit must be a share from 0 to 1, or off, got {self.most:g}")
        if not 0 <= self.share < 1:
            raise SfumatoError(f"the gate's share of the budget must be below 1, got {self.share}")
        if self.share and self.most is None:
            raise SfumatoError("a gate that is off has no use for a share of the budget")

    @classmethod
    def of(cls, text: str, share: float = 0.0) -> Gate:
        """Read the text of a command line: a share, or "off"."""
        if text.lower() == "off":
            return cls(None, share)
        try:
            return cls(float(text), share)
        except ValueError:
            raise SfumatoError(
                f"--misfit takes a share such as 0.05, or off, not '{text}'"
            ) from None
