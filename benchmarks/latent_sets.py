"""Private and public image sets that never overlap, for `latent.py`.

| set | private | public |
| --- | --- | --- |
| cifar10 | 10,000 of CIFAR-10 | Tiny-ImageNet at 32 x 32, 10,000 |
| animals | the animals of these 10,000 | their vehicles |
| birds, cars | their birds, or their automobiles, unlabelled | as for cifar10 |
| mnist, fashion_mnist | 10,000 | QuickDraw, notMNIST, Kuzushiji and Omniglot, 10,000 |
| pneumonia | PneumoniaMNIST | grey Tiny-ImageNet at 28 x 28, 6,000 |
| dogs, vehicles | half of these classes of Tiny-ImageNet | the other half of all its classes |

As in the paper, whose public set is ImageNet, images of the private kind are among the public ones
of birds, cars, dogs and vehicles. ImageNet networks have seen the classes of Tiny-ImageNet.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

DOGS, BIRDS = range(24, 33), (11, 20, 21, 22)
WHEELED = (70, 81, 94, 103, 107, 111, 114, 116, 121, 133, 145, 153, 164, 166)
SUPERCLASSES = {"dogs": DOGS, "vehicles": WHEELED, "birds": BIRDS, "cars": WHEELED}
SETS = (*SUPERCLASSES, "cifar10", "animals", "mnist", "fashion_mnist", "pneumonia")
_PICTURES, _GREY = 10_000, 6000
_ANIMALS = (2, 3, 4, 5, 6, 7)

Pictures = NDArray[np.uint8]


@dataclass(frozen=True)
class Sets:
    """Private images and labels, held-out real ones to test on, and public images."""

    x: Pictures
    y: NDArray[Any] | None
    test_x: Pictures | None
    test_y: NDArray[Any] | None
    public: Pictures
    right: NDArray[np.bool_] | None = None
    """Which public images are of the private superclass, if that is known."""

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return 0 if self.y is None else int(self.y.max()) + 1


def private_and_public(name: str) -> Sets:
    """Give the sets of a name."""
    if name in ("dogs", "vehicles"):
        x, y = tiny_imagenet()
        half = np.random.default_rng(0).permutation(len(x)) < len(x) // 2
        own = np.isin(y, SUPERCLASSES[name])
        return Sets(x[half & own], None, None, None, x[~half], own[~half])
    if name in ("mnist", "fashion_mnist"):
        return _sets(_file(name), _PICTURES, _strokes())
    if name == "pneumonia":
        return _sets(_file("pneumoniamnist_28"), None, _grey())
    whole = _sets(_file("cifar10", os.environ.get("SFUMATO_CIFAR10")), _PICTURES, _none())
    assert whole.y is not None
    if name in ("birds", "cars"):
        small, kinds = _small_tiny_imagenet()
        own = whole.x[whole.y == (2 if name == "birds" else 1)]
        return Sets(own, None, None, None, small, np.isin(kinds, SUPERCLASSES[name]))
    if name == "cifar10":
        return replace(whole, public=_small_tiny_imagenet()[0])
    assert whole.test_y is not None
    assert whole.test_x is not None
    own, own_test = (np.isin(labels, _ANIMALS) for labels in (whole.y, whole.test_y))
    return Sets(
        whole.x[own],
        np.searchsorted(_ANIMALS, whole.y[own]),
        whole.test_x[own_test],
        np.searchsorted(_ANIMALS, whole.test_y[own_test]),
        whole.x[~own],
    )


def _sets(data: dict[str, NDArray[Any]], most: int | None, public: Pictures) -> Sets:
    chosen = np.random.default_rng(0).permutation(len(data["train_x"]))[:most]
    images = [data["train_x"][chosen], data["test_x"]]
    x, test_x = (each if each.ndim == 4 else each[..., None] for each in images)
    y, test_y = (labels.astype(np.int64) for labels in (data["train_y"][chosen], data["test_y"]))
    return Sets(x, y, test_x, test_y, public)


def _file(name: str, path: str | None = None) -> dict[str, NDArray[Any]]:
    return dict(np.load(path or Path(os.environ["SFUMATO_DATA"]) / f"{name}.npz"))


def tiny_imagenet() -> tuple[Pictures, NDArray[np.int64]]:
    """Unpack 15,000 pictures of 64 x 64."""
    packed = _file("tiny_imagenet_64_sample15k")
    content, ends = packed["train_bytes"], packed["train_off"]
    pictures = [
        np.asarray(Image.open(io.BytesIO(content[a:b].tobytes())).convert("RGB"))
        for a, b in pairwise(ends)
    ]
    return np.stack(pictures), packed["train_y"].astype(np.int64)


def _small_tiny_imagenet() -> tuple[Pictures, NDArray[np.int64]]:
    x, y = tiny_imagenet()
    chosen = np.random.default_rng(0).permutation(len(x))[:_PICTURES]
    small = x[chosen].reshape(-1, 32, 2, 32, 2, 3).mean(axis=(2, 4))
    return np.rint(small).astype(np.uint8), y[chosen]


def _none() -> Pictures:
    return np.empty(0, np.uint8)


def _grey() -> Pictures:
    x, _ = tiny_imagenet()
    chosen = np.random.default_rng(0).permutation(len(x))[:_GREY]
    small = [Image.fromarray(each).convert("L").resize((28, 28), 4) for each in x[chosen]]
    return np.stack([np.asarray(each) for each in small])[..., None]


def _strokes() -> Pictures:
    """Gather public pictures of strokes and glyphs."""
    found = []
    for file in ("quickdraw345_28", "notmnist_test", "kmnist_test", "omniglot_small"):
        found += [each for each in _file(file).values() if each.ndim == 3]
    whole = np.concatenate(found)
    return whole[np.random.default_rng(0).permutation(len(whole))[:_PICTURES], ..., None]
