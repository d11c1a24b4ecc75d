"""A small convolutional network trained by noisy gradients: the baseline for images.

Two small convolutions with bounded activations, which bear noise better than others (Papernot et
al. 2021). It explains nothing by itself; see `attribution.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from sfumato.classify.base import Classifier, ClassifierModel
from sfumato.errors import SfumatoError
from sfumato.modelling.base import GRADIENT_ARITHMETIC
from sfumato.modelling.spaces import ImageSpace, PointSpace

if TYPE_CHECKING:
    from sfumato.modelling.class_learner import ClassLearner


@dataclass(frozen=True, kw_only=True)
class Convolutional(Classifier):
    """A network of two convolutions and two dense layers, for image sets."""

    name: ClassVar[str] = "convolutional"
    arithmetic: ClassVar[str] = GRADIENT_ARITHMETIC

    learning_rate: float = 0.005

    def untrained(self, space: PointSpace) -> ClassLearner:
        """Make a network with its first weights."""
        from sfumato.classify.network import network
        from sfumato.modelling.network_learner import NetworkLearner

        if not isinstance(space, ImageSpace):
            raise SfumatoError("convolutional is for images: use locally-linear for tables")
        return NetworkLearner(space, network, self.seed, {"classifier": self.name, **asdict(self)})


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvolutionalModel(ClassifierModel):
    """A trained network."""

    method: Convolutional


Convolutional.model_class = ConvolutionalModel
