"""Where a public input comes from: what a plan and a certificate say of it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """A network, or another input, that anyone may see: its name, source, digest and licence.

    >>> made = Provenance(name="tiny", source="made here", digest="0" * 64, licence="Apache-2.0")
    >>> made.in_words()
    'tiny (made here; licence Apache-2.0; SHA-256 000000000000…)'
    """

    name: str
    source: str
    digest: str
    licence: str
    preparation: str = ""
    """How an input is prepared for it."""

    def in_words(self) -> str:
        """Tell it in one line."""
        told = f"{self.name} ({self.source}; licence {self.licence}; SHA-256 {self.digest[:12]}…)"
        return f"{told}, {self.preparation}" if self.preparation else told


def digest_of_file(path: Path) -> str:
    """Give the SHA-256 of a file, read piece by piece."""
    found = sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def digest_of_module(module: nn.Module) -> str:
    """Give the SHA-256 of a network's state: names and bytes, in order."""
    found = sha256()
    for name, values in module.state_dict().items():
        found.update(name.encode())
        found.update(values.detach().cpu().numpy().tobytes())
    return found.hexdigest()
