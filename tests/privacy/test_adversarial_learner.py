"""A GAN is a learner: its critic is trained by noisy gradients, its generator is public side state.

Nothing in `privacy/` knows of generators: the open loop is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from learners import unit_rows
from seeded import Seeded, drawing
from sfumato.data.batch import Batch
from sfumato.data.rows import GivenRows
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.dpsgd import Arrays, Examples, Learner, Schedule, State
from sfumato.privacy.gradients import clipped_gradients
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from support import SCHEMA

BUDGET = Budget(epsilon=50, delta=1e-5)
SCHEDULE = Schedule(rate=0.5, epochs=15, clip=1.0, learning_rate=0.05)
MIDDLE = torch.tensor([0.8, 0.3])


class TinyGan(Learner):
    """A critic of real points, minus what it thinks of generated ones, which cost nothing."""

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            frozen = nn.Linear(2, 8)
            frozen.requires_grad_(False)
            self.module = nn.Sequential(frozen, nn.Tanh(), nn.Linear(8, 1))
            self.generator = nn.Linear(2, 2)
        self._optimizer = torch.optim.SGD(self.generator.parameters(), lr=0.2)

    def describe(self) -> dict[str, Any]:
        return {"learner": "gan"}

    def examples(self, batch: Batch) -> Examples:
        return (batch.unit,)

    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        head = self.module[2]
        with torch.no_grad():
            seen = self.module[:2](examples[0])
        return clipped_gradients(head, lambda scores, _: -scores.sum(), seen, seen, clip)

    def after_step(self, step: int) -> None:
        noise = torch.randn(64, 2, generator=torch.Generator().manual_seed(step))
        score = self.module(self.generator(0.05 * noise) + 0.5).mean()
        self._optimizer.zero_grad()
        (-score).backward()
        self._optimizer.step()
        with torch.no_grad():  # the critic learns what is generated, at no cost
            made = self.module[:2](self.generator(0.05 * noise) + 0.5).mean(0)
            self.module[2].weight -= 0.05 * made

    def side_state(self) -> Arrays:
        return {key: value.numpy() for key, value in self.generator.state_dict().items()}

    def restore_side(self, arrays: Arrays) -> None:
        self.generator.load_state_dict({k: torch.tensor(v) for k, v in arrays.items()})


def train(
    folder: Path | None, ledger: Ledger, randomness: Any, learner: TinyGan | None = None
) -> State:
    points = MIDDLE.numpy() + 0.02 * np.random.default_rng(0).standard_normal((400, 2))
    curator = Curator(
        GivenRows([unit_rows(points.tolist())]),
        BUDGET,
        SCHEMA,
        Run(ledger=ledger, dataset="d", folder=folder),
    )
    with drawing(randomness):
        return curator.train("gan", learner or TinyGan(), SCHEDULE)


def test_only_the_trainable_parameters_are_trained_and_paid_for() -> None:
    learner = TinyGan()
    assert learner.dim == 9
    ledger = Ledger(":memory:")
    state = train(None, ledger, Seeded())
    assert ledger.entries()[0].spend.dim == 9
    assert np.array_equal(state.arrays["weights/0.weight"], learner.module[0].weight.numpy())
    assert not np.array_equal(
        state.arrays["weights/2.weight"], learner.module[2].weight.detach().numpy()
    )
    assert not np.array_equal(state.arrays["side/weight"], learner.generator.weight.detach())


def test_an_interrupted_gan_takes_up_its_generator_with_its_critic(tmp_path: Path) -> None:
    class Interrupted(Seeded):
        def noise(self, size: int, sigma: float) -> np.ndarray:
            if self.steps == 13:
                raise KeyboardInterrupt
            return super().noise(size, sigma)

    whole = train(None, Ledger(":memory:"), Seeded())
    ledger, random = Ledger(":memory:"), Interrupted()
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, ledger, random)
    again = Seeded()
    for _ in range(13):  # the draws that were made before
        again.chosen(400, 0.5)
        again.noise(9, 1.0)
    resumed = train(tmp_path, ledger, again)
    assert len(ledger.entries()) == 1
    for key, array in whole.arrays.items():
        assert np.array_equal(resumed.arrays[key], array), key
