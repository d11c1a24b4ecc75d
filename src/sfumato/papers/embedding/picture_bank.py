"""A bank of pictures in a generator's place, which are moved until they meet a released mean.

Where pictures are at hand to start from, no generator need learn from nothing what they look like.
Public images are chosen for each class by how much likelier they are in it than among the public
ones, by the released means of their embeddings (`latent/ratio.py`). Then the pictures are changed,
step by step, so that the mean embedding of a class meets the released one.

A step changes a few pictures of each class. The embeddings of all others are remembered from when
they were last looked at, so that the mean of a class is known without looking at all of them.

Nothing in this file can reach private rows, so everything in it may be run again at no cost.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import Tensor, nn

from sfumato.modelling.networks import Generator
from sfumato.modelling.ratio import class_weights
from sfumato.papers.embedding.training import Embedding, Target
from sfumato.progress import Progress, silent
from sfumato.storage import write_whole

_DIRECTIONS = 128  # of the public images' embeddings, in which ratios are taken
_LEARNED_FROM = 4000  # public images, from which these directions are learned
_EACH = 10  # pictures of each class that a step changes
_AT_ONCE = 250  # pictures
_PAUSE = 60.0  # seconds between two states that are kept


class PictureBank(Generator):
    """Pictures of each class, (classes, each, size); a code's one number chooses among them."""

    code = 1

    def __init__(self, classes: int, each: int, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape = shape
        self.pictures = nn.Parameter(torch.zeros(classes, each, math.prod(shape)))

    def forward(self, codes: Tensor, classes: Tensor) -> Tensor:
        """Give a picture for each code."""
        each = self.pictures.shape[1]
        place = (torch.special.ndtr(codes[:, 0]) * each).long().clamp(0, each - 1)
        return self.pictures[classes.argmax(dim=1), place]


def fill(
    bank: PictureBank,
    embed: Embedding,
    target: Target,
    counts: NDArray[np.float64],
    public: NDArray[np.uint8],
    seed: int,
) -> None:
    """Choose public images (n, height, width, channels) for each class."""
    rng = np.random.default_rng(seed)
    points = torch.from_numpy(public.reshape(len(public), -1))
    some = _each(embed, points[rng.permutation(len(points))[:_LEARNED_FROM]])
    mean = some.mean(0)
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        _, _, found = torch.svd_lowrank(some - mean, min(_DIRECTIONS, *some.shape), niter=4)
    # Short vectors at once: the embeddings of all would take gigabytes.
    vectors = _each(lambda part: (embed(part) - mean) @ found, points).double().numpy()
    means = ((torch.from_numpy(target.means) - mean) @ found).double().numpy()
    logs = class_weights(vectors, means, counts, target.sigma)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    each = bank.pictures.shape[1]
    for label, chances in enumerate(weights / weights.sum(axis=1, keepdims=True)):
        few = bool(np.count_nonzero(chances) < each)
        chosen = rng.choice(len(public), each, replace=few, p=chances)
        bank.pictures.data[label] = points[chosen].float() / 255


@dataclass(frozen=True)
class Moving:
    """How pictures are moved.

    Parameters
    ----------
    steps
        How many steps there are.
    rate
        How far a step moves a pixel, from 0 to 1; less and less far to the end.
    shift
        By how many pixels, at most, pictures are shifted before a step looks at them, all alike, so
        that no pattern is drawn that only one place shows.
    """

    steps: int
    rate: float
    shift: int = 0


def refine(
    bank: PictureBank,
    embed: Embedding,
    target: Target,
    moving: Moving,
    *,
    seed: int,
    checkpoint: Path | None = None,
    progress: Progress = silent,
) -> None:
    """Move the pictures so that the mean embedding of each class meets its target.

    A class rests where it is as near as the noise lets it be known. With a `checkpoint` the state
    is kept in that file, and a run that was interrupted goes on from there.
    """
    means, rest = torch.from_numpy(target.means), torch.from_numpy(target.rest)
    state = _State(bank, embed, checkpoint)
    classes, each, size = bank.pictures.shape
    turns = max(1, each // _EACH)  # until each picture was moved once
    for done in range(state.done, moving.steps):
        left = 1 - done / moving.steps
        turn, part = divmod(done, turns)
        if part == 0 or done == state.done:
            progress("moving pictures", 1 - left)
            order = np.array_split(np.random.default_rng([seed, turn]).permutation(each), turns)
        apart = state.known.mean(1) - means
        active = (apart.square().sum(1) > rest) | (rest <= 0)
        if not active.any():
            break
        chosen = order[part]
        some = bank.pictures.data[:, chosen].reshape(-1, size).requires_grad_()
        by = np.random.default_rng([seed, done]).integers(-moving.shift, moving.shift + 1, 2)
        seen = embed(_shifted(some, bank.shape, by)[:, None])
        seen = seen.view(classes, len(chosen), -1)
        (slope,) = torch.autograd.grad((apart[:, None] * seen).sum(), some)
        state.move(chosen, slope.view(classes, -1, size), turn + 1, moving.rate * left, active)
        state.known[:, chosen] = seen.detach()
        state.keep(done + 1)
    progress("moving pictures", 1.0)


class _State:
    """All that the next step depends on: pictures, their slopes and their known embeddings."""

    def __init__(self, bank: PictureBank, embed: Embedding, checkpoint: Path | None) -> None:
        self._pictures = bank.pictures.data
        self._path = checkpoint
        self._kept = time.monotonic()
        if checkpoint and checkpoint.exists():
            state = load_file(checkpoint)
            self.done = int(state["done"])
            self._pictures.copy_(state["pictures"])
            self.known, self._first, self._second = (state[k] for k in ("known", "first", "second"))
            return
        self.done = 0
        self.known = torch.stack([_each(embed, own) for own in self._pictures])
        self._first = torch.zeros_like(self._pictures)
        self._second = torch.zeros(*self._pictures.shape[:2], 1)

    def move(
        self, chosen: NDArray[np.int64], slope: Tensor, times: int, rate: float, active: Tensor
    ) -> None:
        """Move some pictures of the active classes down their slopes, as Adam does."""
        first = self._first[:, chosen].lerp(slope, 0.1)
        second = self._second[:, chosen].lerp(slope.square().mean(2, keepdim=True), 0.01)
        self._first[:, chosen], self._second[:, chosen] = first, second
        slow, slower = 1 - 0.9**times, 1 - 0.99**times
        step = first / slow / (second / slower).sqrt().clamp_min(1e-20) * active[:, None, None]
        self._pictures[:, chosen] = (self._pictures[:, chosen] - rate * step).clamp_(0, 1)

    def keep(self, done: int) -> None:
        """Write the state, once a minute."""
        if self._path is None or time.monotonic() - self._kept < _PAUSE:
            return
        state = {
            "pictures": self._pictures,
            "known": self.known,
            "first": self._first,
            "second": self._second,
            "done": torch.tensor(done),
        }
        write_whole(self._path, save(state))
        self._kept = time.monotonic()


def _each(embed: Embedding, points: Tensor) -> Tensor:
    """Embed points (n, size), bytes or in [0, 1], one by one."""
    unit = 255 if points.dtype is torch.uint8 else 1
    with torch.no_grad():
        return torch.cat([embed(part[:, None] / unit) for part in torch.split(points, _AT_ONCE)])


def _shifted(points: Tensor, shape: tuple[int, int, int], by: NDArray[np.int64]) -> Tensor:
    return points.view(-1, *shape).roll(tuple(by.tolist()), (1, 2)).flatten(1)
