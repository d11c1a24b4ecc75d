"""How the classifier of `moments` learns from private images: up a few noisy slopes.

Its features have the spread 1 and no correlations among draws, so plain steps go about as straight
to the top as Newton's, and a handful of them, each a release of its own, is enough: of more steps,
each would bear more noise.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.methods.moments.classifier import DrawClassifier
from sfumato.methods.moments.image_model import ImageModel
from sfumato.privacy.budget import Budget, Spend
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_spend
from sfumato.progress import Progress
from sfumato.statistics.exact_map import ExactMap
from sfumato.statistics.slopes import Slopes, SlopeSizes

_STEPS, _RATE, _MOMENTUM = 4, 10.0, 0.5
_BOUND = 0.3  # of a row's slope, over the usual length of its features
_FEATURES = (20, 600)  # with fewer than these there is no classifier; the most
_ROWS_PER_FEATURE = 10.0  # over the noise of a step
_DRAWS = 20_000  # in all, to learn how what is seen varies


def plan_classifier(classes: int, budget: Budget, share: float) -> tuple[Spend, ...]:
    """Say what its training would release at the most."""
    slopes = SlopeSizes(_FEATURES[1] + 1, classes)
    return tuple(plan_spend(_name(step), slopes, budget, share / _STEPS) for step in range(_STEPS))


def feature_count(classes: int, budget: Budget, rows: float, share: float) -> int:
    """Give as many features as the noise allows; 0 where they are too few, or classes one."""
    slopes = SlopeSizes(1, classes)
    sigma = plan_spend(_name(0), slopes, budget, share / _STEPS).sigma
    fewest, most = _FEATURES
    allowed = rows * slopes.largest_entry / (_ROWS_PER_FEATURE * sigma)
    return 0 if classes == 1 or allowed < fewest else min(int(allowed), most)


def learn_classifier(
    curator: Curator,
    model: ImageModel,
    coordinates: ExactMap,
    size: int,
    share: float,
    progress: Progress,
) -> DrawClassifier:
    """Learn features from draws, and the weights of `size` of them from private images."""
    rows = float(model.class_counts.sum())
    laid = curator.layout(_name(0), lambda: _of_draws(model, size, progress).arrays())
    start = DrawClassifier.from_arrays(laid)
    features, weights = start.features, start.weights
    speed = np.zeros_like(weights)
    bound = _BOUND * math.sqrt(features.dim)
    for step in range(_STEPS):
        progress("learning classes", step / _STEPS)
        slopes = Slopes.of(coordinates, features, weights, bound)
        release = curator.release(_name(step), slopes, share / _STEPS)
        speed = _MOMENTUM * speed + slopes.read(release.values) / rows
        weights = weights + _RATE * speed
    return DrawClassifier(features, weights)


def _of_draws(model: ImageModel, size: int, progress: Progress) -> DrawClassifier:
    progress("learning features", None)
    shares = model.class_counts / model.class_counts.sum()
    sizes = np.ceil(_DRAWS * shares).astype(int).tolist()
    # Randomness of its own: the state of others depends on whether layouts were computed or kept.
    rng = np.random.default_rng(0)
    points = [model.basis.coordinates(images) for _, images in model.drawn(sizes, rng)]
    labels = np.repeat(np.arange(len(sizes)), sizes)
    see = model.basis.scattering()
    return DrawClassifier.of_draws(see, np.concatenate(points), labels, len(shares), size)


def _name(step: int) -> str:
    return f"classifier {step + 1}"
