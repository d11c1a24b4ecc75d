"""Do draws of `moments` teach more once a network has seen in them what it sees in real images?

    python benchmarks/guided.py fashion_mnist 10        # set, epsilon

A small network looks at real images and at draws; class by class, what it sees in the draws is
taken to be Gaussian and carried over to what it sees in real images by the optimal map between the
two Gaussians, and draws are moved until the network sees that. The network has learned from real
images, without any noise (as a network trained with privacy would be at its very best), or from the
draws themselves, which is free. Either its ten outputs are met or the 64 features before them. What
it sees in real images is taken without noise, too: a trial of what such a step could bring, not a
method. Judged by a CNN on 10,000 held-out training images. Public benchmark sets (SFUMATO_DATA).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import sfumato as sf
from harness import timed, write_result
from images import images, schema
from sfumato.evaluation.cnn import SmallCNN

HELD = 10_000
FEATURES, BATCH, RATE, EPOCHS = 64, 256, 2e-3, 5
STEPS, STEP, AT_ONCE = 20, 0.03, 1000  # of moving: how often, how far, how many images

Labels = NDArray[Any]


def trained(x: Tensor, y: Labels) -> nn.Sequential:
    """Train a small smooth network; the last two layers come after its features."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 16, 5, 2, 2), nn.Tanh(), nn.Conv2d(16, 32, 5, 2, 2), nn.Tanh(), nn.Flatten(),
        nn.Linear(32 * 49, FEATURES), nn.Tanh(), nn.Linear(FEATURES, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    labels = torch.from_numpy(y.astype(np.int64))
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[batch]), labels[batch]).backward()
            optimizer.step()
    return network.eval().requires_grad_(False)


def seen(network: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([network(part) for part in x.split(2000)])


def power(matrix: Tensor, exponent: float) -> Tensor:
    values, axes = torch.linalg.eigh(matrix)
    return (axes * values.clamp_min(1e-6 * float(values.max())) ** exponent) @ axes.T


def carried_over(drawn: Tensor, real: Tensor) -> Tensor:
    """Map points by the optimal map from their own Gaussian to that of others."""
    own, other = drawn.double(), real.double()
    root, inverse = power(torch.cov(own.T), 0.5), power(torch.cov(own.T), -0.5)
    map_ = inverse @ power(root @ torch.cov(other.T) @ root, 0.5) @ inverse
    return ((own - own.mean(0)) @ map_ + other.mean(0)).float()


def moved(network: nn.Module, x: Tensor, wanted: Tensor, variance: Tensor) -> Tensor:
    """Move images until a network sees in each what is wanted."""
    parts = []
    for start, goal in zip(x.split(AT_ONCE), wanted.split(AT_ONCE), strict=True):
        part = start.clone().requires_grad_()
        optimizer = torch.optim.Adam([part], STEP)
        for _ in range(STEPS):
            optimizer.zero_grad()
            ((network(part) - goal) ** 2 / variance).mean(1).sum().backward()
            optimizer.step()
            with torch.no_grad():
                part.clamp_(-1, 1)
        parts.append(part.detach())
    return torch.cat(parts)


def pixels(x: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(x.reshape(-1, 1, 28, 28).astype(np.float32) / 127.5 - 1)


def run(name: str, epsilon: float) -> None:
    data = images(name)
    x, y = data["train_x"], data["train_y"]
    budget = sf.Budget(epsilon=epsilon, delta=1e-5)
    model = sf.Moments().fit((x[:-HELD], y[:-HELD]), schema((28, 28, 1)), budget)
    sample = model.sample(seed=0)
    real, held, drawn = pixels(x[:-HELD]), pixels(x[-HELD:]), pixels(sample.x)
    labels: Labels = np.asarray(sample.y)

    def score(images: Tensor) -> list[float]:
        learners = [SmallCNN((28, 28, 1), epochs=2, seed=seed, width=32) for seed in range(2)]
        flat, test = (((each + 1) / 2).numpy().reshape(len(each), -1) for each in (images, held))
        return [float(each.fit(flat, labels).score(test, y[-HELD:])) for each in learners]

    found: dict[str, Any] = {"as drawn": {"CNN": score(drawn)}}
    print(name, epsilon, found, flush=True)
    for source, network in (
        ("real images", trained(real, y[:-HELD])),
        ("draws", trained(drawn, labels)),
    ):
        itself = float((seen(network, held).argmax(1).numpy() == y[-HELD:]).mean())
        for what, part in (("outputs", network), ("features", network[:-2])):
            of_real, of_drawn = seen(part, real), seen(part, drawn)
            wanted = torch.empty_like(of_drawn)
            for label in range(10):
                rows = torch.from_numpy(labels == label)
                wanted[rows] = carried_over(of_drawn[rows], of_real[y[:-HELD] == label])
            with timed() as taken:
                images_moved = moved(part, drawn, wanted, of_real.var(0))
            told = f"{what} of a network that learned from {source}"
            found[told] = {"network": itself, "CNN": score(images_moved), **taken}
            print(name, epsilon, told, found[told], flush=True)
            write_result(f"guided_{name}_{epsilon:g}", {"held": HELD, "cases": found})


if __name__ == "__main__":
    run(sys.argv[1], float(sys.argv[2]))
