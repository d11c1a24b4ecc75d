"""An extractor that is trained on the private images themselves, for a part of the budget.

What Harder et al. (2023, appendix F) do where no public images are at hand: a small classifier is
trained by noisy gradients, and its convolutions take the place of a public network's. The training
and the releases that follow are accounted for together (`Curator.train`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from sfumato.errors import SfumatoError
from sfumato.modelling.network_learner import NetworkLearner
from sfumato.modelling.spaces import ImageSpace, PointSpace
from sfumato.privacy.dpsgd import Schedule
from sfumato.public.extractor import Extractor
from sfumato.public.provenance import Provenance, digest_of_module

if TYPE_CHECKING:
    from sfumato.privacy.curator import Curator

TRAINING = "extractor"
SCHEDULE = Schedule(rate=0.02, epochs=10, clip=1.0, learning_rate=0.005)


def learner_for(space: PointSpace, seed: int) -> NetworkLearner:
    """Make the classifier, with its first weights."""
    assert isinstance(space, ImageSpace)
    if space.classes == 1:
        raise SfumatoError("an extractor is trained to tell classes apart, and there are none")
    return NetworkLearner(space, _network, seed, {"extractor": "trained", "seed": seed})


def untrained(space: PointSpace, seed: int) -> Extractor:
    """Give the extractor before its training."""
    return _extractor(learner_for(space, seed))


def trained(curator: Curator, space: PointSpace, seed: int, share: float) -> Extractor:
    """Have the curator train it for a share of the budget."""
    learner = learner_for(space, seed)
    learner.load(curator.train(TRAINING, learner, SCHEDULE, share).weights)
    return _extractor(learner)


def _extractor(learner: NetworkLearner) -> Extractor:
    about = Provenance(
        name="trained",
        source="trained on the private images by noisy gradients",
        digest=digest_of_module(learner.module),
        licence="none needed",
    )
    return Extractor(learner.module, about, (0.5,), (0.5,))


def _network(height: int, width: int, channels: int, classes: int) -> nn.Module:
    """Make three convolutions and a linear layer; of small kernels, which bear noise best."""
    return nn.Sequential(
        nn.Conv2d(channels, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 16, classes),
    )
