"""The class that a classifier sees in an image, for images whose class is given last.

Ellipsoids are fitted class by class, and overlap otherwise than real classes do: what lies between
a shirt and a coat is drawn for both, and labelled by where it came from. A classifier that was
trained on private images, as they look on the same axes, knows better. It is linear in edges and
textures of an image (`statistics/scattering.py`), of which draws tell, for free, how they vary;
only its weights see private images, by a few noisy sums of slopes (`statistics/slopes.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SfumatoError
from sfumato.statistics.scattering import Scattering
from sfumato.statistics.slopes import chances
from sfumato.statistics.turned import Turned

Floats = NDArray[np.float64]
Classes = NDArray[np.integer[Any]]

_POINTS = 0.3  # the spread of a point's own numbers, over that of the values beside them
_LEAST = 1e-5  # of the largest variance: what varies less among draws is left out
_FIRST_STEPS, _FIRST_RATE = 8, 5.0  # few: what tells draws apart is not all true of images
_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class DrawClassifier:
    """Gives points the class of the largest score."""

    features: Turned
    weights: Floats  # (features, classes)

    @classmethod
    def of_draws(
        cls, see: Scattering, points: Floats, labels: Classes, classes: int, size: int
    ) -> DrawClassifier:
        """Of what is seen in draws take the `size` widest directions, and first weights."""
        values = see(points)
        middle = values.mean(axis=0)
        own = points.shape[1]
        spread = np.ones(values.shape[1])
        deviations = values.std(axis=0)
        spread[-own:] = (
            _POINTS * np.median(deviations[:-own]) / max(np.median(deviations[-own:]), 1e-9)
        )
        values = (values - middle) * spread
        variances, axes = np.linalg.eigh(values.T @ values / len(values))
        variances, axes = variances[::-1][:size], axes[:, ::-1][:, :size]
        kept = variances > _LEAST * variances[0]
        turn = spread[:, None] * axes[:, kept] / np.sqrt(variances[kept])
        features = Turned.of(see, turn, middle @ turn)
        return cls(features, _first_weights(features(points), labels, classes))

    def __call__(self, points: Floats) -> NDArray[np.int64]:
        """Give the likeliest class of each point."""
        parts = [points[start : start + _AT_ONCE] for start in range(0, len(points), _AT_ONCE)]
        found = [(self.features(part) @ self.weights).argmax(axis=1) for part in parts]
        return np.concatenate([np.empty(0, np.int64), *found])

    def arrays(self) -> dict[str, Floats]:
        """Give plain arrays, to be stored."""
        see = self.features.values
        return {
            "classifier_pixels": see.pixels,
            "classifier_middle": see.middle,
            "classifier_shape": np.array(see.shape, np.float64),
            "classifier_turn": self.features.turn,
            "classifier_shift": self.features.shift,
            "classifier_weights": self.weights,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> DrawClassifier:
        """Read what `arrays` gave."""
        if "classifier_pixels" not in arrays:
            raise SfumatoError(
                "the model's classifier is of an earlier build of sfumato, which saw images "
                "otherwise: draw with that build, or fit anew"
            )
        pixels, middle, shape, turn, shift, weights = (
            arrays[f"classifier_{name}"]
            for name in ("pixels", "middle", "shape", "turn", "shift", "weights")
        )
        height, width = shape.astype(int).tolist()
        return cls(Turned(Scattering(pixels, middle, (height, width)), turn, shift), weights)


def _first_weights(features: Floats, labels: Classes, classes: int) -> Floats:
    """Fit weights to draws, a little."""
    truth = np.eye(classes)[labels]
    weights = np.zeros((features.shape[1], classes))
    for _ in range(_FIRST_STEPS):
        missing = truth - chances(features @ weights)
        weights += _FIRST_RATE / len(features) * (features.T @ missing)
    return weights
