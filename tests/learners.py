"""A learner small enough to be seen through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.data.batch import Batch
from sfumato.privacy.dpsgd import Examples, Learner
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
