"""Training a generator so that its mean embedding meets a released one.

For each class c, let t_c be the released mean embedding, with noise of known size, and mu_c the
mean embedding of what the generator makes of class c. The loss is the weighted sum over classes
of ||t_c - mu_c||². The plug-in estimate, the squared norm of one batch's residual, is too large by
the variance of the embedding over the batch's size, and a generator that minimises it learns too
little variance. Here the batch is made in two halves, and the loss is the inner product of their
residuals: the halves are independent, so its expectation is exact, whatever normalisation over a
half the generator uses.

If mu_c met the private mean embedding exactly, its loss would be the squared norm of the noise,
whose expectation is known. To go far below is to fit the noise: a class rests while it is at half
of it, and training ends when all do.

Nothing in this file can reach private rows, so everything in it may be run again at no cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import Tensor

from sfumato.modelling.networks import Generator
from sfumato.modelling.shrinkage import class_means
from sfumato.progress import Progress, silent
from sfumato.storage import write_whole

Embedding: TypeAlias = Callable[[Tensor], Tensor]
"""Gives the mean embedding of each class, of points (classes, n, size), differentiably."""
Judge: TypeAlias = Callable[[Generator], float]
"""Says how far a generator's samples are from a second release; less is better."""

_PAUSE = 20  # steps between two looks at the progress
_JUDGED = 20  # how often a generator is judged, where it is
_FEWEST = 8  # samples of each class in a step
# Where a class rests, as a part of the noise: a generator with the freedom to learn the truth
# takes up some noise with it, so its loss ends below.
_REST = 0.5


@dataclass(frozen=True, kw_only=True)
class Target:
    """The mean embedding of each class, and its expected squared distance from the truth.

    Where a second release tells when to stop, `judge` knows it.
    """

    means: NDArray[np.float32]
    noise: NDArray[np.float64]
    sigma: float = 0.0
    """The noise on each entry of a class's sum."""
    judge: Judge | None = None

    @classmethod
    def of(
        cls,
        sums: NDArray[Any],
        counts: NDArray[Any],
        sigma: float,
        parts: Sequence[tuple[int, int]],
    ) -> Target:
        """Make means of noisy sums; a generator can follow some directions of each part."""
        means, noise = class_means(sums, counts, sigma, parts)
        return cls(means=means.astype(np.float32), noise=noise, sigma=sigma)

    @property
    def rest(self) -> NDArray[np.float64]:
        """The loss at which a class rests."""
        return _REST * self.noise

    @property
    def weights(self) -> NDArray[np.float64]:
        """What each class counts for: less, the more noise drowns its embedding, of norm 1."""
        weights = 1 / (1 + self.noise)
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True, kw_only=True)
class Training:
    """How long, how fast and on how many samples a step to train."""

    steps: int
    batch: int = 500
    rate: float = 0.01
    memory: float = 0.99  # of the moving averages of losses and of weights


def match(
    generator: Generator,
    embed: Embedding,
    target: Target,
    training: Training,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    progress: Progress = silent,
) -> list[float]:
    """Train a generator in place and give its loss at each step.

    With a `checkpoint` the state is kept in that file, and a run that was interrupted goes on
    from there. With a judge, the generator that it liked best on the way is kept.
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        matcher = _Matcher(generator, embed, target, training)
        if checkpoint and checkpoint.exists():
            matcher.load(checkpoint)
        while matcher.step < training.steps and not matcher.resting:
            matcher.advance()
            if matcher.step % _PAUSE == 0:
                progress("training the generator", matcher.step / training.steps)
                if checkpoint:
                    matcher.save(checkpoint)
        matcher.finish()
    return matcher.losses


class _Matcher:
    """The state of one training run."""

    def __init__(
        self,
        generator: Generator,
        embed: Embedding,
        target: Target,
        training: Training,
    ) -> None:
        self.step = 0
        self.losses: list[float] = []
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._generator = generator.to(self._device).train()
        self._embed = embed
        self._training = training
        self._classes = len(target.means)
        self._each = max(_FEWEST, training.batch // self._classes)
        self._means = self._tensor(target.means)
        self._rest = self._tensor(target.rest)
        self._weights = self._tensor(target.weights)
        self._smoothed = torch.zeros_like(self._rest)
        self._adam = torch.optim.Adam(generator.parameters(), lr=training.rate)
        self._average = {k: v.detach().clone() for k, v in generator.state_dict().items()}
        self._judge = target.judge
        self._best: dict[str, Tensor] = {}
        self._best_score = torch.tensor(torch.inf)

    @property
    def resting(self) -> bool:
        """Whether every class has come down to its noise."""
        return self.step > 0 and not bool(self._active().any())

    def advance(self) -> None:
        """Make one step."""
        losses = self._class_losses()
        self._smoothed.lerp_(losses.detach(), 1 - self._memory())
        self.losses.append(float((self._weights * losses.detach()).sum()))
        for group in self._adam.param_groups:
            group["lr"] = self._learning_rate()
        self._adam.zero_grad()
        (self._weights * self._active() * losses).sum().backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        self.step += 1
        for name, value in self._generator.state_dict().items():
            if value.dtype.is_floating_point:
                self._average[name].lerp_(value, 1 - self._memory())
        if self._judge and self.step % max(1, self._training.steps // _JUDGED) == 0:
            self._be_judged()

    def finish(self) -> None:
        """Give the generator its averaged weights, or those that were judged best."""
        if self._judge:
            self._be_judged()
        self._generator.load_state_dict(self._best or self._average)
        self._generator.eval().to("cpu")

    def _be_judged(self) -> None:
        """Keep the averaged weights if they are the best so far. Draws nothing from the stream."""
        assert self._judge
        current = {k: v.clone() for k, v in self._generator.state_dict().items()}
        self._generator.load_state_dict(self._average)
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(0)  # the same codes each time: only the weights differ
            score = torch.tensor(self._judge(self._generator.eval()))
        if score < self._best_score:
            self._best_score = score
            self._best = {k: v.clone() for k, v in self._average.items()}
        self._generator.load_state_dict(current)
        self._generator.train()

    def _class_losses(self) -> Tensor:
        """Estimate ||t_c - mu_c||² of each class, without bias."""
        first, second = self._residuals(), self._residuals()
        return (first * second).sum(1)

    def _residuals(self) -> Tensor:
        """Give mu_c - t_c of each class, mu_c by the mean over a fresh half of the batch."""
        n = self._each // 2
        classes = torch.eye(self._classes, device=self._device).repeat_interleave(n, dim=0)
        codes = torch.randn(len(classes), self._generator.code, device=self._device)
        points = self._generator(codes, classes)
        return self._embed(points.view(self._classes, n, -1)) - self._means

    def _active(self) -> Tensor:
        """Say which classes have not come down to their noise; without noise none ever does."""
        return (self._smoothed > self._rest) | (self._rest <= 0)

    def _learning_rate(self) -> float:
        """Let the learning rate fall along a half cosine."""
        done = self.step / self._training.steps
        return self._training.rate * (1 + math.cos(math.pi * done)) / 2

    def _memory(self) -> float:
        """What moving averages keep in a step: young ones forget faster."""
        return min(self._training.memory, self.step / (self.step + 9))

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=self._device)

    def save(self, path: Path) -> None:
        """Write everything that the next step depends on."""
        state = {f"generator/{k}": v for k, v in self._generator.state_dict().items()}
        state |= {f"average/{k}": v for k, v in self._average.items()}
        for index, moments in self._adam.state_dict()["state"].items():
            state |= {f"adam/{index}/{k}": torch.as_tensor(v) for k, v in moments.items()}
        state["losses"] = torch.tensor(self.losses, dtype=torch.float64)
        state["smoothed"] = self._smoothed
        state |= {f"best/{k}": v for k, v in self._best.items()}
        state["best score"] = self._best_score
        state["random"] = torch.get_rng_state()
        write_whole(path, save({k: v.contiguous() for k, v in state.items()}))

    def load(self, path: Path) -> None:
        """Take up what `save` wrote."""
        state = load_file(path, self._device)

        def part(name: str) -> dict[str, Tensor]:
            return {
                k.removeprefix(f"{name}/"): v for k, v in state.items() if k.startswith(f"{name}/")
            }

        self._generator.load_state_dict(part("generator"))
        self._average = part("average")
        adam = self._adam.state_dict()
        for key, value in part("adam").items():
            index, name = key.split("/")
            adam["state"].setdefault(int(index), {})[name] = value
        self._adam.load_state_dict(adam)
        self.losses = state["losses"].tolist()
        self.step = len(self.losses)
        self._smoothed = state["smoothed"]
        self._best, self._best_score = part("best"), state["best score"]
        torch.set_rng_state(state["random"].cpu())
