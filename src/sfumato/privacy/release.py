"""The wall: the only place where a private value becomes a public one.

Contract of `Curator.release`: the spend is durable before the first row is read; rows are summed
in integers; exact noise is added; the release is on disk, whole, before it is returned. What
comes back can be used again for ever at no cost, and a run that asks for the same release again
gets the saved one instead of a second look at the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sfumato.codec import Batch
from sfumato.errors import SfumatoError
from sfumato.features.base import ENTRY_BITS, ROW_BITS, Statistic, unit_sensitivity
from sfumato.privacy.budget import Budget, Guarantee, Spend
from sfumato.privacy.ledger import ROW, Ledger
from sfumato.privacy.noise import Sampler, discrete_gaussian
from sfumato.privacy.zcdp import gaussian_rho, gaussian_scale
from sfumato.progress import Progress, silent
from sfumato.schema import Schema
from sfumato.storage import reserved

# Noise this wide could reach the end of 64 bits; a plan that needs it is refused.
_LARGEST_SIGMA = 2.0**55


@dataclass(frozen=True, kw_only=True)
class Release:
    """A noisy integer sum, what it is a sum of, and what it cost."""

    values: NDArray[np.int64]
    statistic: dict[str, Any]
    spend: Spend

    @property
    def name(self) -> str:
        """The name under which the method asked for it."""
        return self.spend.name

    @property
    def sigma(self) -> float:
        """The scale of the noise on each value."""
        return self.spend.sigma

    def to_bytes(self) -> bytes:
        """Give the content of its file."""
        about = {"statistic": json.dumps(self.statistic), "spend": json.dumps(asdict(self.spend))}
        return save({"values": self.values}, about)

    @classmethod
    def load(cls, path: Path) -> Release:
        """Read a saved release."""
        try:
            with safe_open(path, "numpy") as file:
                about = file.metadata()
                return cls(
                    values=file.get_tensor("values"),
                    statistic=json.loads(about["statistic"]),
                    spend=Spend(**json.loads(about["spend"])),
                )
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise SfumatoError(f"cannot read the release {path}: {error}") from None


def plan_spend(name: str, statistic: Statistic, budget: Budget, share: float) -> Spend:
    """Work out the noise for a share of the budget's rho; touches no data.

    Refuses what could overflow: entries beyond 2^24, or noise near the end of 64 bits.
    """
    sensitivity = unit_sensitivity(statistic, budget)
    sigma = gaussian_scale(sensitivity, share * budget.rho)
    if statistic.largest_entry > 1 << ENTRY_BITS or sigma > _LARGEST_SIGMA:
        raise SfumatoError(
            f"'{name}' would need numbers beyond 64 bits: raise epsilon or lower its precision"
        )
    rho = gaussian_rho(sensitivity, sigma)
    return Spend(name=name, dim=statistic.dim, sensitivity=sensitivity, sigma=sigma, rho=rho)


class Curator:
    """Holds the private rows and one run's budget, and answers with releases only.

    What is asked, and for which share of the budget, may depend on earlier answers: the budget is a
    filter that no sequence of questions can pass, and for zCDP that is as good as a fixed sequence
    (Feldman and Zrnic 2021; Whitehouse et al. 2023).

    Parameters
    ----------
    rows
        Encoded rows, iterated once per release.
    budget
        What all releases of this curator together may cost.
    ledger, dataset
        Where every spend is recorded, and under which name.
    schema
        The public description through which the rows were encoded.
    source
        Where the rows come from, so that no other source's releases are taken up.
    folder
        Where releases are saved. Without one they live in memory only.
    """

    def __init__(
        self,
        rows: Iterable[Batch],
        budget: Budget,
        *,
        ledger: Ledger,
        dataset: str,
        schema: Schema,
        source: str = "",
        folder: Path | None = None,
        sampler: Sampler = discrete_gaussian,
        progress: Progress = silent,
    ) -> None:
        self.budget = budget
        self.releases: list[Release] = []
        self._rows = rows
        self._ledger = ledger
        self._dataset = dataset
        self._schema = schema
        self._source = source
        self._folder = folder
        self._sampler = sampler
        self._progress = progress

    @property
    def guarantee(self) -> Guarantee:
        """What has been promised so far."""
        spends = tuple(release.spend for release in self.releases)
        return Guarantee.of(self.budget, spends, self._schema.unit_column)

    @property
    def left(self) -> float:
        """The share of the budget that is not spent yet."""
        return max(0.0, 1 - sum(release.spend.rho for release in self.releases) / self.budget.rho)

    def release(self, name: str, statistic: Statistic, share: float) -> Release:
        """Spend a share of the budget on a noisy sum, or take it up again where it was saved."""
        spend = plan_spend(name, statistic, self.budget, share)
        spent = sum(release.spend.rho for release in self.releases)
        if spent + spend.rho > self.budget.rho * (1 + 1e-9):
            raise SfumatoError(f"'{name}' would cost more than what is left of the budget")
        path = self._path(spend, statistic)
        if path and path.exists():
            self._progress(f"taking up the saved release '{name}' ({path})", None)
            release = Release.load(path)
        else:
            self._progress(f"releasing {name}", None)
            release = self._new_release(path, statistic, spend)
        self.releases.append(release)
        return release

    def _new_release(self, path: Path | None, statistic: Statistic, spend: Spend) -> Release:
        # The room on disk is taken before the money is spent: a full disk costs nothing.
        with reserved(path, 8 * statistic.dim) if path else nullcontext() as file:
            unit = self._schema.unit_column or ROW
            self._ledger.record(self._dataset, self.budget, spend, unit)
            values = self._noisy_sum(statistic, spend)
            release = Release(values=values, statistic=statistic.describe(), spend=spend)
            if file:
                file.write(release.to_bytes())
        return release

    def _noisy_sum(self, statistic: Statistic, spend: Spend) -> NDArray[np.int64]:
        return self._exact_sum(statistic) + self._sampler(statistic.dim, spend.sigma)

    def _exact_sum(self, statistic: Statistic) -> NDArray[np.int64]:
        total = np.zeros(statistic.dim, np.int64)
        count = 0
        for batch in self._rows:
            count += len(batch)
            if count > 1 << ROW_BITS:
                raise SfumatoError("the data have more rows than a 64-bit sum can hold")
            total += statistic.sum(batch)
        return total

    def _path(self, spend: Spend, statistic: Statistic) -> Path | None:
        """Name a release by everything public that determines it."""
        if self._folder is None:
            return None
        identity = {
            "dataset": self._dataset,
            "source": self._source,
            "schema": self._schema.to_toml(),
            "relation": str(self.budget.relation),
            "spend": asdict(spend),
            "statistic": statistic.describe(),
        }
        digest = sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        return self._folder / f"{spend.name}-{digest}.safetensors"
