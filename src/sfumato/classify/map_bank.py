"""The bank of linear maps and its gradients in closed form.

With g_km = w_km'x + b_km, the maps' weights s_km = softmax_m(beta g_km) and f_k = sum_m s_km g_km,

    df_k / dg_km = s_km (1 + beta (g_km - f_k)),      dL / df_k = p_k - [y = k]

for the cross-entropy L of p = softmax(f). So a row's gradient is the outer product of its errors
e_km = dL / dg_km and its inputs (x, 1), of squared norm sum_km e_km² (|x|² + 1). With a projection
R_m, w_km = R_m' v_km, the gradient in v_km is e_km R_m x: norms need |R_m x|² only, which never
changes, and the sum over rows is projected once. A private step costs about what a plain one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sfumato.classify.inputs import Inputs
from sfumato.classify.learner import ClassLearner
from sfumato.codec import Batch
from sfumato.privacy.dpsgd import Examples
from sfumato.privacy.gradients import clip_factors

_FIRST_SCALE = 0.01
# Bounds what rounding can add to the norm of a projected row, relative to |R_m| |x|.
_ROUNDING = 1e-5


class MapBank(nn.Module):
    """Maps by (map, class, input), with biases; `projections` is empty or by (map, kept, input)."""

    projections: Tensor

    def __init__(self, maps: int, classes: int, size: int, beta: float, kept: int) -> None:
        super().__init__()
        self.beta = beta
        self.weights = nn.Parameter(_FIRST_SCALE * torch.randn(maps, classes, kept or size))
        self.biases = nn.Parameter(torch.zeros(maps, classes))
        projections = torch.randn(maps, kept, size) / max(kept, 1) ** 0.5
        self.register_buffer("projections", projections if kept else torch.empty(0))

    @property
    def maps(self) -> Tensor:
        """The maps on inputs, by (map, class, input)."""
        if not len(self.projections):
            return self.weights
        return torch.einsum("mkp,mpd->mkd", self.weights, self.projections)

    def activations(self, inputs: Tensor) -> Tensor:
        """Give the value of each map, by (row, map, class)."""
        flat = self.maps.flatten(0, 1)
        return (inputs @ flat.T).reshape(-1, *self.biases.shape) + self.biases

    def shares(self, activations: Tensor) -> Tensor:
        """Give each map's weight among the maps of its class."""
        return (self.beta * activations).softmax(dim=1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Give the score of each class."""
        found = self.activations(inputs)
        return (self.shares(found) * found).sum(1)

    def errors(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Give the derivative of each row's loss in each map's value."""
        found = self.activations(inputs)
        shares = self.shares(found)
        scores = (shares * found).sum(1, keepdim=True)
        wrong = scores.softmax(dim=2)
        wrong[torch.arange(len(labels)), 0, labels] -= 1
        return wrong * shares * (1 + self.beta * (found - scores))


class MapLearner(ClassLearner):
    """A bank in training."""

    module: MapBank
    piece = 4096

    def __init__(
        self, inputs: Inputs, maps: int, beta: float, kept: int, seed: int, about: dict[str, Any]
    ) -> None:
        self.layout = inputs.layout
        self._inputs = inputs
        self._about = about
        # Torch's own generator is left alone: a seed here must not fix anything elsewhere.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = MapBank(maps, inputs.layout.class_cells, inputs.size, beta, kept)

    def describe(self) -> dict[str, Any]:
        """Give the settings."""
        return self._about

    def inputs(self, batch: Batch) -> NDArray[np.float32]:
        """Give the inputs of the maps."""
        return self._inputs(batch)

    def examples(self, batch: Batch) -> Examples:
        """Give inputs, classes, and the squared norm of what each map sees, with its bias."""
        inputs, labels = super().examples(batch)
        return inputs, labels, self._squared_norms(torch.from_numpy(inputs)).numpy()

    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        """Sum the clipped gradients, given in closed form above."""
        inputs, labels, squared_norms = examples
        with torch.no_grad():
            errors = self.module.errors(inputs, labels)
            by_map = errors.double().square().sum(2)
            factors = clip_factors((by_map * squared_norms).sum(1), clip)
            kept = factors > 0
            errors = errors[kept] * factors[kept, None, None].float()
            total = (errors.flatten(1).T @ inputs[kept]).reshape(*errors.shape[1:], -1)
            if len(self.module.projections):
                total = torch.einsum("mkd,mpd->mkp", total, self.module.projections)
            return [total, errors.sum(0)]

    def _squared_norms(self, inputs: Tensor) -> Tensor:
        plain = inputs.double().square().sum(1, keepdim=True)
        if not len(self.module.projections):
            return plain + 1
        projected = [
            (inputs @ projection.T).double().square().sum(1)
            + plain[:, 0] * (_ROUNDING * projection.double().norm()).square()
            for projection in self.module.projections
        ]
        return torch.stack(projected, dim=1) + 1
