"""A decoder of feature vectors: noise is carried to a picture's code, given the vector.

Flow matching (Lipman et al. 2023): between a code z and noise n the straight line is
(1 - t) n + t z, and a network learns to tell its direction z - n from a point on it, the time t and
the features of the picture. To decode, noise is moved along what the network says. The code is that
of `picture_code.py`, in its leading principal directions, in which pictures are smooth enough to be
learned within minutes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sfumato.progress import Progress, silent
from sfumato.public.picture_code import CELL, PictureCode, as_images, as_pictures

Arrays = dict[str, NDArray[Any]]

_DIRECTIONS = 128
_WIDTH, _DEPTH, _CONTEXT, _TIMES = 384, 3, 256, 32
_BATCH, _RATE, _MEMORY = 256, 1e-3, 0.999
_BLUR = 0.1  # added to features in training: drawn ones are never quite those of a picture
_STEPS_OF_FLOW = 25
_AT_ONCE = 500  # pictures


class FlowDecoder:
    """Draws pictures of which a feature vector, in units of its deviations, is known."""

    kind = "flow"

    def __init__(self, arrays: Arrays, code: PictureCode, shape: tuple[int, int, int]) -> None:
        self._code, self._shape = code, shape
        self._mean, self._basis = (torch.from_numpy(arrays[key]) for key in ("mean", "basis"))
        features = arrays["network/context.0.weight"].shape[1] - 2 * _TIMES
        self._network = _Direction(self._basis.shape[1], features)
        prefix = "network/"
        self._network.load_state_dict(
            {
                key.removeprefix(prefix): torch.from_numpy(array)
                for key, array in arrays.items()
                if key.startswith(prefix)
            }
        )
        self.about = code.about

    @classmethod
    def train(
        cls,
        features: NDArray[np.float32],
        images: NDArray[np.uint8],
        code: PictureCode,
        steps: int,
        progress: Progress = silent,
    ) -> FlowDecoder:
        """Learn to draw public images (n, height, width, channels) from their features."""
        codes = []
        for start in range(0, len(images), _AT_ONCE):
            progress("encoding public images", start / len(images))
            with torch.no_grad():
                codes.append(code.encode(as_pictures(images[start : start + _AT_ONCE])).flatten(1))
        flat = torch.cat(codes)
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            mean = flat.mean(0)
            kept = min(_DIRECTIONS, *flat.shape)
            _, lengths, directions = torch.svd_lowrank(flat - mean, kept, niter=4)
            # Directions in which nothing varies stay where they are.
            spread = lengths.clamp_min(1e-3 * float(lengths[0])) / math.sqrt(len(flat))
            basis = directions * spread
            points = (flat - mean) @ directions / spread
            network = _learned(points, torch.from_numpy(features), steps, progress)
        arrays = {"mean": mean.numpy(), "basis": basis.numpy()}
        arrays |= {f"network/{key}": value.numpy() for key, value in network.state_dict().items()}
        height, width, channels = images.shape[1:]
        return cls(arrays, code, (height, width, channels))

    def arrays(self) -> Arrays:
        """Give all that it learned."""
        found = {"mean": self._mean, "basis": self._basis}
        found |= {f"network/{key}": value for key, value in self._network.state_dict().items()}
        return {key: value.numpy() for key, value in found.items()}

    def __call__(self, features: NDArray[np.float32], seed: int) -> NDArray[np.uint8]:
        """Draw an image for each feature vector."""
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((len(features), self._basis.shape[1]), dtype=np.float32)
        drawn = [np.empty((0, *self._shape), np.uint8)]
        for start in range(0, len(features), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            with torch.no_grad():
                drawn.append(
                    self._draw(torch.from_numpy(noise[part]), torch.from_numpy(features[part]))
                )
        return np.concatenate(drawn)

    def _draw(self, point: Tensor, features: Tensor) -> NDArray[np.uint8]:
        for step in range(_STEPS_OF_FLOW):
            time = torch.full((len(point),), step / _STEPS_OF_FLOW)
            point = point + self._network(point, time, features) / _STEPS_OF_FLOW
        flat = point @ self._basis.T + self._mean
        high, wide = (-(-size // CELL) for size in self._shape[:2])
        return as_images(self._code.decode(flat.view(len(flat), -1, high, wide)), self._shape)


def _learned(points: Tensor, features: Tensor, steps: int, progress: Progress) -> _Direction:
    network = _Direction(points.shape[1], features.shape[1])
    average = {key: value.detach().clone() for key, value in network.state_dict().items()}
    adam = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=0.01)
    for step in range(steps):
        if step % 50 == 0:
            progress("training the decoder", step / steps)
        for group in adam.param_groups:
            falling = (1 + math.cos(math.pi * step / steps)) / 2
            group["lr"] = _RATE * min(1, (step + 1) / 200) * falling
        chosen = torch.randint(len(points), (_BATCH,))
        ends, time = points[chosen], torch.rand(_BATCH)
        starts = torch.randn_like(ends)
        seen = features[chosen] + _BLUR * torch.randn(_BATCH, features.shape[1])
        between = torch.lerp(starts, ends, time[:, None])
        loss = functional.mse_loss(network(between, time, seen), ends - starts)
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        memory = min(_MEMORY, step / (step + 9))
        for key, value in network.state_dict().items():
            average[key].lerp_(value, 1 - memory)
    network.load_state_dict(average)
    return network


class _Direction(nn.Module):
    """Residual layers, each of which is told the time and the features."""

    def __init__(self, size: int, features: int) -> None:
        super().__init__()
        self.context = nn.Sequential(
            nn.Linear(features + 2 * _TIMES, _CONTEXT),
            nn.SiLU(),
            nn.Linear(_CONTEXT, _CONTEXT),
            nn.SiLU(),
        )
        self.first = nn.Linear(size, _WIDTH)
        self.layers = nn.ModuleList(_Layer() for _ in range(_DEPTH))
        self.last = nn.Linear(_WIDTH, size)

    def forward(self, points: Tensor, time: Tensor, features: Tensor) -> Tensor:
        """Say where points move."""
        waves = time[:, None] * torch.exp(torch.linspace(0, 5, _TIMES))
        context = self.context(torch.cat([features, waves.sin(), waves.cos()], dim=1))
        found = self.first(points)
        for layer in self.layers:
            found = layer(found, context)
        moved: Tensor = self.last(functional.silu(found))
        return moved


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(_WIDTH, elementwise_affine=False)
        self.told = nn.Linear(_CONTEXT, 2 * _WIDTH)
        self.first = nn.Linear(_WIDTH, _WIDTH)
        self.second = nn.Linear(_WIDTH, _WIDTH)
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(self.second.bias)

    def forward(self, given: Tensor, context: Tensor) -> Tensor:
        scale, shift = self.told(context).chunk(2, dim=1)
        hidden = self.first(self.norm(given) * (1 + scale) + shift)
        changed: Tensor = given + self.second(functional.silu(hidden))
        return changed
