"""A bank of pictures in a generator's place: public ones at first, then drawn to a released mean.

Where public images are at hand, a generator need not learn from nothing what pictures look like.
For each class, public images are chosen by how much likelier they are in it than among the public
ones, by the released means of their embeddings (`latent/ratio.py`). Then the chosen ones are
changed, step by step, so that the mean embedding of a class meets the released one.

A step changes a few pictures of each class. The embeddings of all others are remembered from when
they were last looked at, so that the mean of a class is known without looking at all of them.

Nothing in this file can reach private rows, so everything in it may be run again at no cost.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sfumato.methods.embedding.training import Embedding, Target
from sfumato.methods.latent.ratio import class_weights
from sfumato.methods.networks import Generator
from sfumato.progress import Progress, silent

_DIRECTIONS = 128  # of the public images' embeddings, in which ratios are taken
_LEARNED_FROM = 4000  # public images, from which these directions are learned
_EACH = 10  # pictures of each class that a step changes
_AT_ONCE = 250  # pictures
_RATE = 0.01  # how far a step moves a pixel, from 0 to 1
_SHIFT = 2  # pixels by which pictures are moved before they are looked at, at most


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


def refine(
    bank: PictureBank,
    embed: Embedding,
    target: Target,
    steps: int,
    seed: int,
    progress: Progress = silent,
) -> None:
    """Move the pictures so that the mean embedding of each class meets its target."""
    rng = np.random.default_rng(seed)
    pictures = bank.pictures.data
    classes, each, size = pictures.shape
    means = torch.from_numpy(target.means)
    known = torch.stack([_each(embed, own) for own in pictures])
    first, second = torch.zeros_like(pictures), torch.zeros(classes, each, 1)
    turns = max(1, each // _EACH)  # until each picture was moved once
    for done in range(steps):
        if done % turns == 0:
            progress("moving pictures", done / steps)
            order = np.array_split(rng.permutation(each), turns)
        chosen = order[done % turns]
        some = pictures[:, chosen].reshape(-1, size).requires_grad_()
        seen = embed(_varied(some, bank.shape, rng)[:, None]).view(classes, len(chosen), -1)
        apart = known.mean(1) - means
        (slope,) = torch.autograd.grad((apart[:, None] * seen).sum(), some)
        slope = slope.view(classes, len(chosen), size)
        known[:, chosen] = seen.detach()
        first[:, chosen] = first[:, chosen].lerp(slope, 0.1)
        second[:, chosen] = second[:, chosen].lerp(slope.square().mean(2, keepdim=True), 0.01)
        times = done // turns + 1
        slow, slower = 1 - 0.9**times, 1 - 0.99**times
        step = first[:, chosen] / slow / (second[:, chosen] / slower).sqrt().clamp_min(1e-20)
        rate = _RATE * (1 - done / steps)
        pictures[:, chosen] = (pictures[:, chosen] - rate * step).clamp_(0, 1)
    progress("moving pictures", 1.0)


def _each(embed: Embedding, points: Tensor) -> Tensor:
    """Embed points (n, size), bytes or in [0, 1], one by one."""
    unit = 255 if points.dtype is torch.uint8 else 1
    with torch.no_grad():
        return torch.cat([embed(part[:, None] / unit) for part in torch.split(points, _AT_ONCE)])


def _varied(points: Tensor, shape: tuple[int, int, int], rng: np.random.Generator) -> Tensor:
    """Shift pictures a little, all alike, so that no pattern is drawn that only one place shows."""
    images = points.view(-1, *shape)
    down, right = (int(by) for by in rng.integers(-_SHIFT, _SHIFT + 1, 2))
    return images.roll((down, right), (1, 2)).flatten(1)
