"""The wall: the only place where a private value becomes a public one.

Contract of `Curator.release`: the spend is durable before the first row is read; rows are summed
in integers; exact noise is added; the release is on disk, whole, before it is returned. What
comes back can be used again for ever at no cost, and a run that asks for the same release again
gets the saved one instead of a second look at the rows.

`Curator.train` is the other way: noisy gradients (`dpsgd.py`), paid for as a whole before the first
row is read, saved now and then, and taken up where they were left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sfumato.codec import Batch, Codec
from sfumato.errors import SfumatoError
from sfumato.features.base import ENTRY_BITS, ROW_BITS, Statistic, unit_sensitivity
from sfumato.images import ImageCodec
from sfumato.privacy.budget import Budget, Guarantee, Spend, TrainingSpend, composed_epsilon
from sfumato.privacy.ledger import ROW, Ledger
from sfumato.privacy.noise import Sampler, discrete_gaussian
from sfumato.privacy.randomness import Randomness, SystemRandomness
from sfumato.privacy.sampled_gaussian import noise_multiplier_for, sampled_epsilon
from sfumato.privacy.zcdp import gaussian_rho, gaussian_scale
from sfumato.progress import Progress, silent
from sfumato.rows import encoded_rows
from sfumato.schema import Schema
from sfumato.sources import dataset_name
from sfumato.storage import locked, reserved, write_whole

if TYPE_CHECKING:
    from sfumato.privacy.dpsgd import Examples, Learner, Schedule, State

# Noise this wide could reach the end of 64 bits; a plan that needs it is refused.
_LARGEST_SIGMA = 2.0**55
# What a training after releases takes of delta: their exchange of rho needs some of it, too.
_TRAINING_DELTA = 0.9


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


def plan_training(
    name: str, dim: int, schedule: Schedule, budget: Budget, spends: tuple[Spend, ...] = ()
) -> TrainingSpend:
    """Work out the noise of a training with all that `spends` leave of a budget; touches no data.

    Refuses a unit of several rows: rows are sampled and clipped one by one.
    """
    epsilon, delta = _left_for_training(budget, spends, name)
    noise = noise_multiplier_for(epsilon, delta, schedule.rate, schedule.steps, budget.relation)
    reached = sampled_epsilon(noise, schedule.rate, schedule.steps, delta, budget.relation)
    return TrainingSpend(
        name=name,
        dim=dim,
        clip=schedule.clip,
        noise_multiplier=noise,
        rate=schedule.rate,
        steps=schedule.steps,
        epsilon=reached,
        delta=delta,
    )


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
        randomness: Randomness = SystemRandomness(),
        progress: Progress = silent,
    ) -> None:
        self.budget = budget
        self.releases: list[Release] = []
        self.trainings: list[TrainingSpend] = []
        self._rows = rows
        self._ledger = ledger
        self._dataset = dataset
        self._schema = schema
        self._source = source
        self.folder = folder
        self._sampler = sampler
        self._randomness = randomness
        self._progress = progress

    @classmethod
    def of(
        cls,
        data: Any,
        codec: Codec | ImageCodec,
        schema: Schema,
        budget: Budget,
        *,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        folder: Path | None = None,
        progress: Progress = silent,
    ) -> Curator:
        """Open private data: a path, a frame, or arrays of images. Reads no row."""
        path = isinstance(data, str | Path)
        if folder and not path and dataset is None:
            raise SfumatoError("name the dataset: releases in a folder are found by its name")
        return cls(
            encoded_rows(data, codec, budget.max_rows_per_unit),
            budget,
            ledger=ledger or Ledger(":memory:"),
            dataset=dataset or dataset_name(data),
            schema=schema,
            source=str(Path(data).resolve()) if path else "",
            folder=folder,
            progress=progress,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What has been promised so far."""
        return Guarantee.of(
            self.budget, self._spends, self._schema.unit_column, tuple(self.trainings)
        )

    @property
    def left(self) -> float:
        """The share of the budget that is not spent yet; a training takes all that is left."""
        if self.trainings:
            return 0.0
        return max(0.0, 1 - sum(release.spend.rho for release in self.releases) / self.budget.rho)

    def release(self, name: str, statistic: Statistic, share: float) -> Release:
        """Spend a share of the budget on a noisy sum, or take it up again where it was saved."""
        spend = plan_spend(name, statistic, self.budget, share)
        spent = sum(release.spend.rho for release in self.releases)
        if self.trainings or spent + spend.rho > self.budget.rho * (1 + 1e-9):
            raise SfumatoError(f"'{name}' would cost more than what is left of the budget")
        path = self._path(name, {"spend": asdict(spend), "statistic": statistic.describe()})
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

    def train(self, name: str, learner: Learner, schedule: Schedule) -> State:
        """Spend all that is left of the budget on training, or go on where a training was left.

        The whole training is paid for before the first row is read, and its first state is saved
        before the first step: from there on, nothing is paid again. One process at a time holds
        the saved state. What must not be done is to copy it and go on from both copies.
        """
        epsilon, delta = _left_for_training(self.budget, self._spends, name)
        if self.trainings:
            raise SfumatoError(f"'{name}' would cost more than what is left of the budget")
        path = self._path(
            name,
            {
                "budget": [epsilon, delta],
                "schedule": asdict(schedule),
                "learner": learner.describe(),
            },
        )
        with locked(path) if path else nullcontext():
            if path and path.exists():
                self._progress(f"taking up the saved training '{name}' ({path})", None)
                spend, start = _load_training(path)
            else:
                self._progress("working out the noise", None)
                spend = plan_training(name, learner.dim, schedule, self.budget, self._spends)
                start = self._new_training(path, learner, spend)
            self.trainings.append(spend)
            if start.step == schedule.steps:
                return start
            return self._go_on(path, learner, schedule, spend, start)

    def _new_training(self, path: Path | None, learner: Learner, spend: TrainingSpend) -> State:
        from sfumato.privacy.dpsgd import first_state

        state = first_state(learner)
        content = _training_bytes(spend, state)
        # Weights and the optimiser's memory: about three times the weights.
        with reserved(path, 3 * len(content)) if path else nullcontext() as file:
            unit = self._schema.unit_column or ROW
            self._ledger.record(self._dataset, self.budget, spend, unit)
            if file:
                file.write(content)
        return state

    def _go_on(
        self,
        path: Path | None,
        learner: Learner,
        schedule: Schedule,
        spend: TrainingSpend,
        start: State,
    ) -> State:
        from sfumato.privacy.dpsgd import noisy_steps

        def save_state(state: State) -> None:
            if path:
                write_whole(path, _training_bytes(spend, state))

        self._progress("reading rows", None)
        return noisy_steps(
            learner,
            self._examples(learner),
            schedule,
            spend,
            self._randomness,
            start=start,
            save=save_state,
            progress=self._progress,
        )

    def _examples(self, learner: Learner) -> Examples:
        parts = [learner.examples(batch) for batch in self._rows]
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))

    @property
    def _spends(self) -> tuple[Spend, ...]:
        return tuple(release.spend for release in self.releases)

    def _path(self, name: str, question: dict[str, Any]) -> Path | None:
        """Name an answer by everything public that determines it."""
        if self.folder is None:
            return None
        identity = {
            "dataset": self._dataset,
            "source": self._source,
            "schema": self._schema.to_toml(),
            "relation": str(self.budget.relation),
            **question,
        }
        digest = sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        return self.folder / f"{name}-{digest}.safetensors"


def _left_for_training(budget: Budget, spends: tuple[Spend, ...], name: str) -> tuple[float, float]:
    if budget.max_rows_per_unit > 1:
        raise SfumatoError(
            f"'{name}' protects single rows: use one row per unit (with an identifier that is the "
            "unit of privacy, the first row of each is kept)"
        )
    if not spends:
        return budget.epsilon, budget.delta
    delta = _TRAINING_DELTA * budget.delta
    epsilon = budget.epsilon - composed_epsilon(spends, (), budget.delta - delta)
    if epsilon <= 0:
        raise SfumatoError(f"'{name}' would cost more than what is left of the budget")
    return epsilon, delta


def _training_bytes(spend: TrainingSpend, state: State) -> bytes:
    return save(state.arrays, {"spend": json.dumps(asdict(spend)), "step": str(state.step)})


def _load_training(path: Path) -> tuple[TrainingSpend, State]:
    from sfumato.privacy.dpsgd import State

    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata()
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return TrainingSpend(**json.loads(about["spend"])), State(int(about["step"]), arrays)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise SfumatoError(f"cannot read the training {path}: {error}") from None
