"""Critic and generator in training: the critic by noisy gradients, the generator beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sfumato.data.batch import Batch
from sfumato.modelling.adversary import Adversary, Arrays, believed, doubted
from sfumato.modelling.networks import Generator
from sfumato.modelling.spaces import PointSpace
from sfumato.progress import Progress
from sfumato.public.pair import Pair

if TYPE_CHECKING:
    from sfumato.papers.gan.method import Gan

_GENERATED = 128  # points in a step
_MEMORY = 0.98  # of the moving average of the generator's weights
_RATE = 1e-3  # of the generator
_PRACTICE = 1500  # steps on public images
_HIDDEN, _HIDDEN_IN_FEATURES = 128, 32  # units of the critic
_SLOPE = 0.2


class AdversarialLearner(Adversary):
    """The critic is what is trained; the generator is public side state.

    A generator sees the critic alone, which is a function of noisy sums: it may be saved, looked at
    and trained further at no cost.
    """

    def __init__(
        self,
        space: PointSpace,
        generator: Generator,
        pair: Pair | None,
        counts: NDArray[np.float64],
        method: Gan,
    ) -> None:
        with torch.random.fork_rng([]):
            torch.manual_seed(method.seed)
            critic = _critic(space, pair)
        super().__init__(critic, space, counts, method.schedule, method.seed)
        self._pair, self._method = pair, method
        self._penalty = method.chosen["penalty"]
        self._generator = generator.train()
        self._adam = torch.optim.Adam(generator.parameters(), _RATE, betas=(0.5, 0.9))
        self._average = _copied(generator)

    def describe(self) -> dict[str, Any]:
        """Give the settings, and the public images that it started from."""
        found: dict[str, Any] = {"gan": asdict(self._method) | self._method.chosen}
        if self._method.public_inputs():
            found["public"] = [each.digest for each in self._method.public_inputs()]
        return found

    def points(self, batch: Batch) -> NDArray[np.float32]:
        """Give rows as points, or their feature vectors."""
        if self._pair:
            return self._pair.in_units(self._pair.encoder(batch))
        return self._space.from_batch(batch)

    def others(self, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Generate points, each to pass for a class."""
        with torch.no_grad():
            return self._generated(rng)

    def loss_of_others(self, points: Tensor, labels: Tensor) -> Tensor:
        """Add a penalty on how steep the critic is where points are generated.

        Without it, the critic grows steep, and the generator runs to a few points of each class
        (Mescheder et al. 2018, who name this penalty R2). That on private points would cost.
        """
        points = points.detach().requires_grad_()
        scores = self.module(points)
        own = scores.gather(1, labels[:, None]).sum()
        (slopes,) = torch.autograd.grad(own, points, create_graph=True)
        return believed(scores, labels) + self._penalty / 2 * slopes.square().sum()

    def after_step(self, step: int) -> None:
        """Let the generator learn from the critic, now and then."""
        super().after_step(step)
        if step % self._method.critic_steps == 0:
            self._teach(np.random.default_rng([self._seed, step, 1]))

    def practise(self, public: NDArray[np.float32], progress: Progress) -> None:
        """Train both on public points, without noise: a start. Their classes are drawn."""
        adam = torch.optim.Adam(self.module.parameters(), self._method.chosen["learning_rate"] / 4)
        points = torch.from_numpy(public)
        for step in range(_PRACTICE):
            if step % 20 == 0:
                progress("practising on public images", step / _PRACTICE)
            rng = np.random.default_rng([self._seed, step, 2])
            real = points[torch.from_numpy(rng.integers(len(points), size=_GENERATED))]
            classes = self.drawn_classes(_GENERATED, rng)
            made, labels = self.others(rng)
            loss = doubted(self.module(real), classes) + self.loss_of_others(made, labels)
            adam.zero_grad()
            (loss / _GENERATED).backward()  # type: ignore[no-untyped-call]
            adam.step()
            self._teach(rng)

    def side_state(self) -> Arrays:
        """Give the generator, its average and its optimiser's memory."""
        found = super().side_state()
        found |= {f"generator/{k}": v.numpy() for k, v in self._generator.state_dict().items()}
        found |= {f"average/{k}": v.numpy() for k, v in self._average.items()}
        for index, memory in self._adam.state_dict()["state"].items():
            found |= {f"adam/{index}/{k}": np.asarray(v) for k, v in memory.items()}
        return found

    def restore_side(self, arrays: Arrays) -> None:
        """Take them up."""
        super().restore_side(arrays)
        self._generator.load_state_dict(dict(_part(arrays, "generator/")))
        self._average = dict(_part(arrays, "average/"))
        memory: dict[int, dict[str, Tensor]] = {}
        for name, value in _part(arrays, "adam/"):
            index, key = name.split("/")
            memory.setdefault(int(index), {})[key] = value
        self._adam.load_state_dict(self._adam.state_dict() | {"state": memory})

    def _generated(self, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        labels = self.drawn_classes(_GENERATED, rng)
        codes = rng.standard_normal((_GENERATED, self._generator.code), dtype=np.float32)
        onehot = torch.eye(len(self._shares))[labels]
        return self._generator(torch.from_numpy(codes), onehot), labels

    def _teach(self, rng: np.random.Generator) -> None:
        points, labels = self._generated(rng)
        loss = doubted(self.module(points), labels) / len(points)
        self._adam.zero_grad()
        gradients = torch.autograd.grad(loss, list(self._generator.parameters()))
        for parameter, gradient in zip(self._generator.parameters(), gradients, strict=True):
            parameter.grad = gradient
        self._adam.step()
        for key, value in self._generator.state_dict().items():
            if value.dtype.is_floating_point:
                self._average[key].lerp_(value, 1 - _MEMORY)


class _WithSquares(nn.Module):
    """Puts the squares of vectors' entries beside them, each less its mean of one."""

    def forward(self, points: Tensor) -> Tensor:
        return torch.cat([points, points.square() - 1], dim=-1)


def _critic(space: PointSpace, pair: Pair | None) -> nn.Module:
    """Make a critic of points: one hidden layer, and a score for each class.

    In features it is small, since noise grows with it, and within a class almost flat: it would
    push all vectors the same way, into one. With squares it sees how widely they lie.
    """
    size, hidden = space.size + sum(space.blocks), _HIDDEN
    if pair:
        size, hidden = 2 * pair.encoder.dim, _HIDDEN_IN_FEATURES
    layers = nn.Linear(size, hidden), nn.LeakyReLU(_SLOPE), nn.Linear(hidden, space.classes)
    return nn.Sequential(_WithSquares(), *layers) if pair else nn.Sequential(*layers)


def _copied(generator: Generator) -> dict[str, Tensor]:
    return {key: value.detach().clone() for key, value in generator.state_dict().items()}


def _part(arrays: Arrays, prefix: str) -> Iterator[tuple[str, Tensor]]:
    for key, array in arrays.items():
        if key.startswith(prefix):
            yield key.removeprefix(prefix), torch.tensor(array)
