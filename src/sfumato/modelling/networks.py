"""Generators: networks that turn random codes and a class into rows or images.

Both take a code (n, `code`) of standard normal numbers and classes as one-hot rows (n, classes),
and give points of a space: values in the unit cube, and probabilities for each category.

Layers are normalised over the batch they are given, so points made together depend on each other a
little; points made in separate calls do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

_UNSIGNED = 4  # code numbers of a table that are used whole


class Generator(nn.Module):
    """A network that makes points of codes and classes."""

    code: int


class TableGenerator(Generator):
    """A multi-layer perceptron with typed heads.

    A sigmoid gives the numbers, a softmax each block of categories: probabilities, which keep
    the output differentiable and their mean embedding exact. Of most code numbers only the sign
    is used: a continuous map of a few signs can leave gaps between clusters, and one of normal
    numbers cannot.
    """

    def __init__(
        self, code: int, classes: int, numbers: int, blocks: Sequence[int], hidden: int = 256
    ) -> None:
        super().__init__()
        self.code = code
        self.numbers = numbers
        self.blocks = tuple(blocks)
        self.layers = nn.Sequential(
            nn.Linear(code + classes, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, numbers + sum(blocks)),
        )

    def forward(self, codes: Tensor, classes: Tensor) -> Tensor:
        """Give numbers, then blocks."""
        signs, rest = codes.tensor_split([self.code - _UNSIGNED], dim=1)
        drawn = self.layers(torch.cat([signs.sign(), rest, classes], dim=1))
        numbers, *blocks = drawn.split([self.numbers, *self.blocks], dim=1)
        return torch.cat([numbers.sigmoid(), *(block.softmax(dim=1) for block in blocks)], dim=1)


class VectorGenerator(Generator):
    """A small multi-layer perceptron that moves normal vectors to feature vectors.

    What it makes begins about as wide as public vectors lie: what begins near a point stays one.
    None is longer than real ones can be: a noisy critic would have them run away.
    """

    def __init__(self, classes: int, size: int, hidden: int = 256) -> None:
        super().__init__()
        self.code = size
        self.layers = nn.Sequential(
            nn.Linear(size + classes, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, size),
        )  # fmt: skip

    def forward(self, codes: Tensor, classes: Tensor) -> Tensor:
        """Give vectors, in units of their deviations: the longest have the root of their size."""
        made: Tensor = codes + self.layers(torch.cat([codes, classes], dim=1))
        most = math.sqrt(made.shape[1])
        lengths: Tensor = torch.linalg.vector_norm(made, dim=1, keepdim=True)
        return made * (most / lengths.clamp(min=most))


class ImageGenerator(Generator):
    """Two dense and two convolutional layers with bilinear upsampling (Harder et al. 2021).

    The dense layers draw a picture at a quarter of the resolution; each convolution follows a
    doubling of it.
    """

    def __init__(
        self,
        code: int,
        classes: int,
        shape: tuple[int, int, int],
        hidden: int = 200,
        channels: tuple[int, int] = (16, 8),
    ) -> None:
        super().__init__()
        self.code = code
        height, width, colours = shape
        self.sizes = [(-(-height // part), -(-width // part)) for part in (4, 2, 1)]
        small = channels[0] * self.sizes[0][0] * self.sizes[0][1]
        self.dense = nn.Sequential(
            nn.Linear(code + classes, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, small),
            nn.BatchNorm1d(small),
            nn.ReLU(),
            nn.Unflatten(1, (channels[0], *self.sizes[0])),
        )
        self.first = nn.Conv2d(channels[0], channels[1], 5, padding=2)
        self.second = nn.Conv2d(channels[1], colours, 5, padding=2)

    def forward(self, codes: Tensor, classes: Tensor) -> Tensor:
        """Give pixels in the order height, width, colour, as one vector per image."""
        drawn = self.dense(torch.cat([codes, classes], dim=1))
        # With few channels, convolutions are twice as fast on colours laid side by side.
        drawn = drawn.contiguous(memory_format=torch.channels_last)
        drawn = functional.interpolate(drawn, self.sizes[1], mode="bilinear")
        drawn = self.first(drawn).relu()
        drawn = functional.interpolate(drawn, self.sizes[2], mode="bilinear")
        pixels: Tensor = self.second(drawn).sigmoid()
        return pixels.permute(0, 2, 3, 1).flatten(1)


class ResidualGenerator(Generator):
    """Residual blocks, each of which doubles the resolution, for colour images.

    A dense layer draws a picture at an eighth of the resolution (at a sixteenth above 32 pixels,
    and so on: the first picture has about four pixels each way).
    """

    def __init__(
        self, code: int, classes: int, shape: tuple[int, int, int], width: int = 16
    ) -> None:
        super().__init__()
        self.code = code
        height, width_, colours = shape
        doublings = max(1, round(math.log2(min(height, width_) / 4)))
        parts = [1 << power for power in range(doublings, -1, -1)]
        self.sizes = [(-(-height // part), -(-width_ // part)) for part in parts]
        channels = [width * min(4, 1 + order) for order in range(doublings, -1, -1)]
        small = channels[0] * self.sizes[0][0] * self.sizes[0][1]
        self.dense = nn.Sequential(
            nn.Linear(code + classes, small), nn.Unflatten(1, (channels[0], *self.sizes[0]))
        )
        self.blocks = nn.ModuleList(
            _Doubling(before, after, size)
            for before, after, size in zip(channels, channels[1:], self.sizes[1:], strict=False)
        )
        self.last = nn.Sequential(
            nn.BatchNorm2d(channels[-1]), nn.ReLU(), nn.Conv2d(channels[-1], colours, 3, padding=1)
        )

    def forward(self, codes: Tensor, classes: Tensor) -> Tensor:
        """Give pixels in the order height, width, colour, as one vector per image."""
        drawn = self.dense(torch.cat([codes, classes], dim=1))
        drawn = drawn.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            drawn = block(drawn)
        pixels: Tensor = self.last(drawn).sigmoid()
        return pixels.permute(0, 2, 3, 1).flatten(1)


class _Doubling(nn.Module):
    """A residual block that enlarges what it is given."""

    def __init__(self, before: int, after: int, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size
        self.plain = nn.Conv2d(before, after, 1)
        self.first = nn.Sequential(
            nn.BatchNorm2d(before), nn.ReLU(), nn.Conv2d(before, after, 3, padding=1)
        )
        self.second = nn.Sequential(
            nn.BatchNorm2d(after), nn.ReLU(), nn.Conv2d(after, after, 3, padding=1)
        )

    def forward(self, drawn: Tensor) -> Tensor:
        """Enlarge, and add what two convolutions make of it."""
        plain = functional.interpolate(self.plain(drawn), self.size)
        added: Tensor = self.second(functional.interpolate(self.first(drawn), self.size))
        return plain + added
