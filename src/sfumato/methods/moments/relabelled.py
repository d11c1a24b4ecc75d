"""Images whose class is what a classifier sees in them, as many of each class as asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.moments.classifier import DrawClassifier
from sfumato.methods.moments.image_model import ImageModel

Bytes = NDArray[np.uint8]
Finish = Callable[[NDArray[np.float32]], Bytes]

_ROUNDS, _MORE = 8, 1.1
_MOST = 30  # draws of a round for each image asked for: rare classes alone are not waited for


def relabelled(
    model: ImageModel,
    classifier: DrawClassifier,
    sizes: NDArray[np.integer[Any]],
    rng: np.random.Generator,
    finish: Finish,
) -> list[Bytes]:
    """Draw images of all classes, finish them, and keep as many as each class needs.

    What is still missing after some rounds, of classes that the classifier hardly ever sees, is
    drawn of the class itself.
    """
    shares = model.class_counts / model.class_counts.sum()
    kept: list[list[Bytes]] = [[] for _ in sizes]
    missing = sizes.copy()
    for _ in range(_ROUNDS):
        if not missing.any():
            break
        wanted = _MORE * float((missing / np.maximum(shares, 1e-12)).max())
        drawn = rng.multinomial(int(min(wanted, _MOST * sizes.sum())) + 1, shares)
        found: list[list[Bytes]] = [[] for _ in sizes]
        for _, images in model.drawn(drawn.tolist(), rng):
            classes = classifier(model.basis.coordinates(images))
            useful = np.flatnonzero(missing[classes])
            pictures = finish(images[useful])
            for label in np.unique(classes[useful]):
                found[label].append(pictures[classes[useful] == label])
        for label, parts in enumerate(found):
            if parts:
                # Any of them: draws come group by group.
                pictures = np.concatenate(parts)
                chosen = rng.permutation(len(pictures))[: missing[label]]
                kept[label].append(pictures[chosen])
                missing[label] -= len(chosen)
    for label, size in enumerate(missing):
        kept[label].append(finish(model.images(label, size, rng)))
    return [np.concatenate(parts) for parts in kept]
