"""A classifier in training: what it takes of a row, and the probabilities it gives."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.modelling.spaces import PointSpace
from sfumato.privacy.dpsgd import Examples, Learner


class ClassLearner(Learner):
    """A learner whose module gives one score for each class."""

    space: PointSpace

    @abstractmethod
    def inputs(self, batch: Batch) -> NDArray[np.float32]:
        """Give what the module takes; each row's entry depends on that row alone."""

    def examples(self, batch: Batch) -> Examples:
        """Give inputs and classes."""
        return self.inputs(batch), self.space.labels(batch)

    def load(self, weights: dict[str, NDArray[Any]]) -> None:
        """Take up trained weights."""
        self.module.load_state_dict({name: torch.tensor(v) for name, v in weights.items()})

    def probabilities(self, batch: Batch) -> NDArray[np.float64]:
        """Give the probability of each class."""
        with torch.no_grad():
            scores = self.module(torch.from_numpy(self.inputs(batch)))
        return np.asarray(scores.double().softmax(dim=1).numpy())
