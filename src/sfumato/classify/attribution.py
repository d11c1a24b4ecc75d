"""What a network looked at: Integrated Gradients and SmoothGrad.

Both average the gradient of a class's score in the input: over the way from a blank image to the
input (Sundararajan, Taly and Yan 2017), or over noisy copies of it (Smilkov et al. 2017). Applied
to a privately trained network they are post-processing and cost nothing; nor do they make it clear
why, which is the comparison that Harder et al. (2020) draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sfumato.classify.base import ClassifierModel

STEPS = 50
SPREAD = 0.15  # of the noise, relative to the inputs' range


def integrated_gradients(
    model: ClassifierModel, data: Any, row: int = 0, steps: int = STEPS
) -> NDArray[np.float32]:
    """Give how each input added to the predicted class's score, from a blank input on.

    They sum to the difference in score between the input and the blank, up to the error of
    `steps` midpoints.
    """
    score, point = _score(model, data, row)
    blank = torch.full_like(point, float(point.min()))
    ways = (torch.arange(steps) + 0.5) / steps
    path = blank + ways.reshape(-1, *[1] * (point.ndim - 1)) * (point - blank)
    return _shown(_gradient(score, path) * (point - blank)[0])


def smooth_gradients(
    model: ClassifierModel, data: Any, row: int = 0, steps: int = STEPS, seed: int = 0
) -> NDArray[np.float32]:
    """Give the gradient of the predicted class's score, averaged over noisy copies of the input."""
    score, point = _score(model, data, row)
    noise = torch.randn((steps, *point.shape[1:]), generator=torch.Generator().manual_seed(seed))
    return _shown(_gradient(score, point + SPREAD * float(point.max() - point.min()) * noise))


def _score(model: ClassifierModel, data: Any, row: int) -> tuple[Any, Tensor]:
    learner = model.trained()
    point = torch.from_numpy(learner.inputs(model.row(data, row)))
    with torch.no_grad():
        predicted = int(learner.module(point).argmax())

    def score(points: Tensor) -> Tensor:
        scores: Tensor = learner.module(points)[:, predicted]
        return scores

    return score, point


def _gradient(score: Any, points: Tensor) -> Tensor:
    points = points.requires_grad_(True)
    (gradient,) = torch.autograd.grad(score(points).sum(), points)
    return gradient.mean(0)


def _shown(gradient: Tensor) -> NDArray[np.float32]:
    """Give an image's axes as (height, width, channels); a vector as it is."""
    found = gradient.detach().numpy()
    return np.ascontiguousarray(found.transpose(1, 2, 0) if found.ndim == 3 else found)
