"""Canaries: a learner to whom each row shows itself as openly as clipping allows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sfumato.data.batch import Batch
from sfumato.privacy.dpsgd import Examples, Learner
from sfumato.privacy.gradients import clip_factors

_LENGTH = 7.0  # of a canary's gradient: far more than is let through


class _Places(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros(size, dtype=torch.float64))


class CanaryLearner(Learner):
    """The gradient of canary i is long, in its own direction, and nothing elsewhere.

    The place after all steps is minus the sum of all noisy sums, in units of the clipping norm.
    """

    def __init__(self, canaries: int) -> None:
        self.module = _Places(canaries)
        self.canaries = canaries

    def describe(self) -> dict[str, Any]:
        """Give their number."""
        return {"learner": "canaries", "size": self.canaries}

    def examples(self, batch: Batch) -> Examples:
        """Give the number of each canary."""
        return (batch.codes[:, 0].astype("int64"),)

    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        """Cut each canary's gradient down, and add it in its place."""
        (numbers,) = examples
        factors = clip_factors(torch.full((len(numbers),), _LENGTH**2, dtype=torch.float64), clip)
        return [torch.bincount(numbers, _LENGTH * factors / clip, self.canaries)]

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Make whole steps, whatever the learning rate."""
        optimizer = torch.optim.SGD(parameters)
        optimizer.register_step_pre_hook(_whole_steps)
        return optimizer


def _whole_steps(optimizer: torch.optim.Optimizer, *_: object) -> None:
    for group in optimizer.param_groups:
        group["lr"] = 1.0
