"""A learner small enough to be seen through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seeded import drawing
from sfumato.data.batch import Batch
from sfumato.privacy import wall
from sfumato.privacy.budget import TrainingSpend
from sfumato.privacy.dpsgd import (
    Examples,
    Learner,
    Schedule,
    State,
    as_tensors,
    first_state,
    noisy_steps,
)
from sfumato.privacy.gradients import clipped_sum_of


class Vectors(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros(size))


class Adder(Learner):
    """Its gradient for a row is the row's numbers, whatever its place: sums can be predicted."""

    def __init__(self, size: int = 1, piece: int = 1024) -> None:
        self.module = Vectors(size)
        self.piece = piece

    def describe(self) -> dict[str, Any]:
        return {"learner": "adder", "size": len(self.module.place)}

    def examples(self, batch: Batch) -> Examples:
        return (batch.unit,)

    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        return clipped_sum_of([examples[0]], clip)

    def optimizer(self, parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, momentum=0.5)


class Plain(Adder):
    """Its place after a step is minus the sum of all noisy sums, in units of the clipping norm."""

    def optimizer(self, parameters: Any) -> torch.optim.Optimizer:
        optimizer = torch.optim.SGD(parameters)
        optimizer.register_step_pre_hook(self._whole_steps)
        return optimizer

    @staticmethod
    def _whole_steps(optimizer: torch.optim.Optimizer, *_: object) -> None:
        for group in optimizer.param_groups:
            group["lr"] = 1.0


def unit_rows(values: Sequence[Sequence[float]]) -> Batch:
    """Rows of numbers only."""
    return Batch(np.zeros((len(values), 1), np.int32), np.array(values, np.float32))


def trained(
    learner: Learner,
    examples: Examples,
    schedule: Schedule,
    spend: TrainingSpend,
    random: Any,
    start: State | None = None,
    save: Callable[[State], None] = lambda state: None,
) -> State:
    """Make the steps of a training as a curator does, with what is drawn from here."""
    rows = as_tensors(examples)
    with drawing(random):
        return noisy_steps(
            learner, schedule, spend, lambda: wall.noisy_gradient(learner, rows, spend),
            start=start or first_state(learner), save=save,
        )  # fmt: skip
