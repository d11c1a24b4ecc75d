"""Who takes part: each peer is an adapter and its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ADAPTERS = Path(__file__).parent / "adapters"
REFEREES = Path(__file__).parent / "referees"
AUTHORS_MEGABYTES = 80
"""The model size that the authors of AIM ask for in any comparison."""


@dataclass(frozen=True)
class Peer:
    name: str
    adapter: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def script(self) -> Path:
        return ADAPTERS / f"{self.adapter}.py"


def _model(name: str) -> dict[str, Any]:
    return {"model": name, "megabytes": AUTHORS_MEGABYTES}


PEERS = {
    peer.name: peer
    for peer in (
        Peer("sfumato-pairs", "sfumato_pairs"),
        Peer("dpmm-mst", "dpmm_pipelines", _model("MST")),
        Peer("dpmm-privbayes", "dpmm_pipelines", _model("PrivBayes")),
        Peer("dpmm-aim", "dpmm_pipelines", _model("AIM")),
        Peer("smartnoise-mst", "smartnoise", _model("MST")),
        Peer("smartnoise-aim", "smartnoise", _model("AIM")),
        Peer("mbi-aim", "mbi_aim", {"megabytes": AUTHORS_MEGABYTES}),
        Peer("mostlyai", "mostlyai_argn"),
        Peer("resampled-rows", "resampled"),
    )
}
NOT_PRIVATE = "resampled-rows"
