"""Answers on disk: releases, and the states of trainings.

What is read back is a claim, and no more: the curator compares it with what was planned and with
what the ledger paid for before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Spend, TrainingSpend, spend_of
from sfumato.privacy.statistic import Resolution

if TYPE_CHECKING:
    from sfumato.privacy.dpsgd import State

Arrays = Mapping[str, NDArray[Any]]

_UNREADABLE = (SafetensorError, SfumatoError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, kw_only=True)
class Release:
    """A noisy integer sum, what it is a sum of, and what it cost.

    `noisy` is in steps of the grid on which noise was added, `values` in units of the statistic.

    `layout` holds the arrays by which the statistic was laid out (axes, cells), where it was made
    from earlier releases: a later run takes them up instead of working them out again, in which
    the last bits could differ.
    """

    noisy: NDArray[np.int64]
    statistic: dict[str, Any]
    spend: Spend
    resolutions: tuple[Resolution, ...] = ()
    layout: Arrays = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        noisy: NDArray[np.int64],
        spend: Spend,
        about: Mapping[str, Any],
        layout: Arrays | None = None,
    ) -> Release:
        """Put together what `about` gave with values and cost."""
        found = tuple(Resolution(**each) for each in about.get("resolutions", ()))
        return cls(
            noisy=noisy,
            statistic=about["statistic"],
            spend=spend,
            resolutions=found,
            layout=layout or {},
        )

    def about(self) -> dict[str, Any]:
        """Give, as plain values, what it is a sum of."""
        return {
            "statistic": self.statistic,
            "resolutions": [asdict(each) for each in self.resolutions],
        }

    @property
    def name(self) -> str:
        """The name under which the method asked for it."""
        return self.spend.name

    @property
    def values(self) -> NDArray[np.float64]:
        """The noisy sum in units of the statistic."""
        return self.noisy / self.spend.scale

    @property
    def sigma(self) -> float:
        """The scale of the noise on each value."""
        return self.spend.sigma

    def to_bytes(self) -> bytes:
        """Give the content of its file."""
        about = {"about": json.dumps(self.about()), "spend": json.dumps(asdict(self.spend))}
        layout = {f"layout/{key}": np.array(a, order="C") for key, a in self.layout.items()}
        return save({"values": self.noisy, **layout}, about)

    @classmethod
    def from_bytes(cls, content: bytes, path: Path) -> Release:
        """Read the content of a release's file; the path is for messages."""
        try:
            about, arrays = _parsed(content)
            return cls.of(
                arrays.pop("values"),
                spend_of(json.loads(about["spend"])),
                json.loads(about["about"]),
                {key.removeprefix("layout/"): array for key, array in arrays.items()},
            )
        except _UNREADABLE as error:
            raise SfumatoError(f"cannot read the release {path}: {error}") from None


def layout_of_values(values: Sequence[str]) -> Arrays:
    """Write values that a selection told as arrays: their texts and where each of them ends."""
    texts = [value.encode() for value in values]
    return {
        "texts": np.frombuffer(b"".join(texts), np.uint8),
        "ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
    }


def told_values(release: Release) -> list[str]:
    """Read back the values that a selection told."""
    texts, ends = release.layout["texts"].tobytes(), release.layout["ends"].tolist()
    return [texts[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]


def training_bytes(spend: TrainingSpend, state: State) -> bytes:
    """Give the content of the file of a training's state."""
    return save(state.arrays, {"spend": json.dumps(asdict(spend)), "step": str(state.step)})


def training_from_bytes(content: bytes, path: Path) -> tuple[TrainingSpend, State]:
    """Read the content of the file of a training's state; the path is for messages."""
    from sfumato.privacy.dpsgd import State

    try:
        about, arrays = _parsed(content)
        return TrainingSpend(**json.loads(about["spend"])), State(int(about["step"]), arrays)
    except _UNREADABLE as error:
        raise SfumatoError(f"cannot read the training {path}: {error}") from None


def digest_of(content: bytes) -> str:
    """Name a content by its SHA-256."""
    return sha256(content).hexdigest()


def _parsed(content: bytes) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Give the metadata and the arrays of a safetensors file."""
    arrays = load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return header["__metadata__"], arrays
