"""Locally linear maps: a classifier that is its own explanation.

Harder, Bauer and Park (2020), "Interpretable and differentially private predictions". Each class k
has M linear maps, and its score is their average by their own softmax,

    f_k(x) = sum_m softmax_m(beta g_km(x)) g_km(x),      g_km(x) = w_km'x + b_km,

so that near any input one linear map, or a few, decide. One map per class is logistic regression.

Departures from the paper: the accountant is tighter; images have their mean taken off and their
contrast made equal, and are seen in low frequencies instead of random projections, so that noise
falls on fewer weights; the defaults serve all image sets.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.classify.base import Classifier, ClassifierModel
from sfumato.classify.explanation import ActiveMap, Explanation
from sfumato.classify.inputs import Inputs, inputs_of
from sfumato.errors import within
from sfumato.modelling.spaces import ImageSpace, PointSpace

if TYPE_CHECKING:
    from sfumato.classify.map_bank import MapBank, MapLearner

IMAGE_MAPS, TABLE_MAPS = 20, 2


@dataclass(frozen=True, kw_only=True)
class LocallyLinear(Classifier):
    """Several linear maps per class, for tables and image sets.

    Parameters
    ----------
    maps
        Linear maps per class; None takes 20 for images and 2 for tables.
    beta
        The inverse temperature: the larger, the more a single map decides.
    frequencies
        Images only: cosines along each axis that maps are made of; None takes all of them.
    projection
        The size to which each map's inputs are projected at random, as in the paper; None for none.
    """

    name: ClassVar[str] = "locally-linear"

    maps: int | None = None
    beta: float = 0.3
    frequencies: int | None = 12
    projection: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        within(maps=(self.maps, 1, 1000), beta=(self.beta, 1e-9, 1_000_000))
        within(frequencies=(self.frequencies, 1, 1024), projection=(self.projection, 1, 100_000))

    def inputs(self, space: PointSpace) -> Inputs:
        """Give what the maps see of a row."""
        return inputs_of(space, self.frequencies)

    def untrained(self, space: PointSpace) -> MapLearner:
        """Make a bank of maps with small random weights."""
        from sfumato.classify.map_bank import MapLearner

        maps = self.maps or (IMAGE_MAPS if isinstance(space, ImageSpace) else TABLE_MAPS)
        about = {"classifier": self.name, **asdict(self)}
        return MapLearner(self.inputs(space), maps, self.beta, self.projection, self.seed, about)


@dataclass(frozen=True, kw_only=True, eq=False)
class LocallyLinearModel(ClassifierModel):
    """A trained bank of maps."""

    method: LocallyLinear

    def maps(self) -> NDArray[np.float32]:
        """Give every map as weights on pixels or features, by (class, map, ...)."""
        by_class = self._bank().maps.detach().numpy().transpose(1, 0, 2)
        return self._inputs.back(by_class)

    def explain(self, data: Any, row: int = 0, top: int = 3) -> Explanation:
        """Say which maps of the predicted class one row of new data woke most."""
        import torch

        batch = self.row(data, row)
        bank = self._bank()
        inputs = self._inputs
        with torch.no_grad():
            values = bank.activations(torch.from_numpy(inputs(batch)))
            shares = bank.shares(values).numpy()[0]
            probabilities = bank(torch.from_numpy(inputs(batch))).double().softmax(1).numpy()[0]
        predicted = int(probabilities.argmax())
        every = self.maps()
        maps = every[predicted]
        blends = np.einsum("mk,km...->k...", shares, every)
        order = np.argsort(-shares[:, predicted])[:top]
        return Explanation(
            prediction=self.classes[predicted],
            probabilities=dict(zip(self.classes, probabilities.tolist(), strict=True)),
            names=inputs.names,
            features=inputs.features(batch)[0].reshape(maps.shape[1:]),
            blend=blends[predicted],
            others=np.delete(blends, predicted, axis=0).mean(axis=0),
            maps=tuple(
                ActiveMap(
                    index=int(index),
                    share=float(shares[index, predicted]),
                    value=float(values[0, index, predicted]),
                    weights=maps[index],
                )
                for index in order
            ),
        )

    @property
    def _inputs(self) -> Inputs:
        return self.method.inputs(self.space)

    def _bank(self) -> MapBank:
        return self.trained().module  # type: ignore[return-value]


LocallyLinear.model_class = LocallyLinearModel
