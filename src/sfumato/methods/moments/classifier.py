"""The class that a classifier sees in an image, for images whose class is given last.

Ellipsoids are fitted class by class, and overlap otherwise than real classes do: what lies between
a shirt and a coat is drawn for both, and labelled by where it came from. A classifier that was
trained on private images, as they look on the same axes, knows better. It is linear in a hidden
layer that learned from the draws themselves, for free; only its last weights see private images,
by a few noisy sums of slopes (`statistics/slopes.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier

from sfumato.statistics.rectified import Rectified
from sfumato.statistics.slopes import chances

Floats = NDArray[np.float64]
Classes = NDArray[np.integer[Any]]

_UNITS, _EPOCHS, _BATCH = 1024, 3, 256  # of the layer that learns from draws
_FIRST_STEPS, _FIRST_RATE = 8, 5.0  # few: what tells draws apart is not all true of images
_DRAWS_FOR_SPREAD = 20_000
_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Classifier:
    """Gives points the class of the largest score."""

    features: Rectified
    weights: Floats  # (features, classes)

    @classmethod
    def of_draws(cls, points: Floats, labels: Classes, classes: int, size: int) -> Classifier:
        """Learn a layer, and first weights, from draws; of its features the `size` widest stay."""
        units, offsets = _hidden_layer(points, labels, classes)
        every = max(1, len(points) // _DRAWS_FOR_SPREAD)  # draws come class by class
        points, labels = points[::every], labels[::every]
        hidden = np.maximum(points @ units + offsets, 0.0)
        middle = hidden.mean(axis=0)
        values, axes = np.linalg.eigh(np.cov(hidden.T))
        values, axes = values[::-1][:size], axes[:, ::-1][:, :size]
        turn = axes / np.sqrt(np.maximum(values, 1e-8 * values[0]))
        features = Rectified.of(units, offsets, turn, middle @ turn)
        return cls(features, _first_weights(features(points), labels, classes))

    def __call__(self, points: Floats) -> NDArray[np.int64]:
        """Give the likeliest class of each point."""
        parts = [points[start : start + _AT_ONCE] for start in range(0, len(points), _AT_ONCE)]
        found = [(self.features(part) @ self.weights).argmax(axis=1) for part in parts]
        return np.concatenate([np.empty(0, np.int64), *found])

    def arrays(self) -> dict[str, Floats]:
        """Give plain arrays, to be stored."""
        return {
            "classifier_units": self.features.units,
            "classifier_offsets": self.features.offsets,
            "classifier_turn": self.features.turn,
            "classifier_shift": self.features.shift,
            "classifier_weights": self.weights,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Classifier:
        """Read what `arrays` gave."""
        names = ("units", "offsets", "turn", "shift")
        features = Rectified(*(arrays[f"classifier_{name}"] for name in names))
        return cls(features, arrays["classifier_weights"])


def _hidden_layer(points: Floats, labels: Classes, classes: int) -> tuple[Floats, Floats]:
    """Train a network of one hidden layer to tell draws apart; give that layer."""
    middle, unit = points.mean(axis=0), max(float(points.std(axis=0).mean()), 1e-6)
    network = MLPClassifier((_UNITS,), batch_size=_BATCH, random_state=0)
    scaled = ((points - middle) / unit).astype(np.float32)
    for _ in range(_EPOCHS):
        network.partial_fit(scaled, labels, classes=np.arange(classes))
    units = network.coefs_[0].astype(np.float64) / unit
    return units, network.intercepts_[0] - middle @ units


def _first_weights(features: Floats, labels: Classes, classes: int) -> Floats:
    """Fit weights to draws, a little."""
    truth = np.eye(classes)[labels]
    weights = np.zeros((features.shape[1], classes))
    for _ in range(_FIRST_STEPS):
        missing = truth - chances(features @ weights)
        weights += _FIRST_RATE / len(features) * (features.T @ missing)
    return weights
