"""The convolutional network."""

from __future__ import annotations

from torch import nn

_DENSE = 32
_LARGE = 16  # pixels


def network(height: int, width: int, channels: int, classes: int) -> nn.Module:
    """Make the network. Large images are halved first; any size comes down to 4 x 4 in the end."""
    halved = [nn.AvgPool2d(2)] if min(height, width) >= _LARGE else []
    return nn.Sequential(
        *halved,
        nn.Conv2d(channels, 16, 5, stride=2, padding=2),
        nn.Tanh(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.Tanh(),
        nn.AdaptiveMaxPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 16, _DENSE),
        nn.Tanh(),
        nn.Linear(_DENSE, classes),
    )
