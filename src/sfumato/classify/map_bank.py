"""The bank of linear maps and its gradients in closed form, the same bits in any batch.

With g_km = w_km'x + b_km, the maps' weights s_km = softmax_m(beta g_km) and f_k = sum_m s_km g_km,

    df_k / dg_km = s_km (1 + beta (g_km - f_k)),      dL / df_k = p_k - [y = k]

for the cross-entropy L of p = softmax(f). So a row's gradient is the outer product of its errors
e_km = dL / dg_km and its inputs (x, 1), of squared norm sum_km e_km² (|x|² + 1). With a projection
R_m, the maps see R_m x in the place of x. A private step costs about what a plain one does.

What one row adds must not depend on the rows beside it, not by a bit, or the sum would move by
more than was paid for. So every sum here is one of whole multiples of a power of two that stays
below 2^53 of them, which doubles hold exactly in any order; exponentials are looked up in a table
of such multiples; and the rest is +, -, *, / and square roots number by number, which IEEE 754
rounds correctly wherever a number stands. The errors of this arithmetic are some 1e-5 of a
gradient, which any direction of descent can bear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, cached_property, reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sfumato.classify.inputs import INPUT_BITS, Inputs
from sfumato.data.batch import Batch
from sfumato.modelling.class_learner import ClassLearner
from sfumato.privacy.dpsgd import Examples

_FIRST_SCALE = 0.01
_CLIP_SLACK = 1e-9  # far more than the rounding of the few products behind a clipping factor
_VALUE_BITS, _VALUE_REACH = 20, 2.0**12  # of maps' values and scores
_SHARE_BITS = 20  # of maps' weights; times a value: 2^(12 + 20 + 20) at most
_ERROR_BITS = 20  # of errors, in units of the clipping norm; times inputs: 2^-36
_EXP_BITS, _EXP_STEPS, _EXP_REACH = 31, 1 << 12, 22


class MapBank(nn.Module):
    """Maps by (map, class, input), with biases; `projections` is empty or by (map, kept, input)."""

    projections: Tensor

    def __init__(self, maps: int, classes: int, size: int, beta: float, kept: int | None) -> None:
        super().__init__()
        self.beta = beta
        self.weights = nn.Parameter(_FIRST_SCALE * torch.randn(maps, classes, kept or size))
        self.biases = nn.Parameter(torch.zeros(maps, classes))
        projections = torch.randn(maps, kept or 0, size) / max(kept or 0, 1) ** 0.5
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


class MapLearner(ClassLearner):
    """A bank in training."""

    module: MapBank

    def __init__(
        self,
        inputs: Inputs,
        maps: int,
        beta: float,
        kept: int | None,
        seed: int,
        about: dict[str, Any],
    ) -> None:
        self.space = inputs.space
        self.piece = 512 if kept else 2048
        self._inputs = inputs
        self._about = about
        # Torch's own generator is left alone: a seed here must not fix anything elsewhere.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = MapBank(maps, inputs.space.class_cells, inputs.size, beta, kept)

    def describe(self) -> dict[str, Any]:
        """Give the settings."""
        return self._about

    def inputs(self, batch: Batch) -> NDArray[np.float32]:
        """Give the inputs of the maps."""
        return self._inputs(batch)

    def examples(self, batch: Batch) -> Examples:
        """Give what the maps see, and classes: inputs, or their projections, made once."""
        inputs, labels = super().examples(batch)
        if not len(self.module.projections):
            return inputs, labels
        projected = torch.einsum(
            "nd,mpd->nmp", torch.from_numpy(inputs).double(), self._projections
        )
        # As coarse as it takes for squares to add up exactly; 24 bits hold what is left.
        bits = min(INPUT_BITS, 23 - math.ceil(math.log2(self._reach)))
        return _rounded(projected, bits).float().flatten(1).numpy(), labels

    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        """Sum the clipped gradients, given in closed form above: multiples of 2^-36, exactly."""
        flat, labels = examples
        with torch.no_grad():
            seen = flat.double()[None]
            if len(self.module.projections):
                maps = len(self.module.projections)
                seen = seen.reshape(len(labels), maps, -1).transpose(0, 1)
            errors = _errors(self._values(seen), labels, self.module.beta)
            errors = _clipped(errors, _squared_lengths(seen), clip)
            if len(self.module.projections):
                total = torch.einsum("nmk,mnd->mkd", errors, seen)
            else:
                total = (errors.flatten(1).T @ seen[0]).reshape(*errors.shape[1:], -1)
            return [total * 2.0**-_ERROR_BITS, errors.sum(0) * 2.0**-_ERROR_BITS]

    @cached_property
    def _projections(self) -> Tensor:
        """The projections in whole steps; they never change."""
        return _rounded(self.module.projections.double(), INPUT_BITS)

    def _values(self, seen: Tensor) -> Tensor:
        """Give the value of each map, by (row, map, class).

        The weights are rounded so that no product of norms, and so no partial sum, passes 2^52.
        """
        weights = _bounded(self.module.weights)
        longest = float(weights.norm(dim=2).max()) * self._reach
        bits = 52 - INPUT_BITS - math.ceil(math.log2(max(longest, 1e-30)))
        weights = _rounded(weights, bits)
        if len(self.module.projections):
            values = torch.einsum("mnd,mkd->nmk", seen, weights)
        else:
            values = (seen[0] @ weights.flatten(0, 1).T).reshape(-1, *weights.shape[:2])
        values += _bounded(self.module.biases)
        return _rounded(values.clamp_(-_VALUE_REACH, _VALUE_REACH), _VALUE_BITS)

    @cached_property
    def _reach(self) -> float:
        """A bound on the length of what a map sees."""
        reach = self._inputs.reach
        if not len(self.module.projections):
            return reach
        longest = float(self.module.projections.double().flatten(1).norm(dim=1).max())
        return reach * longest + math.sqrt(self.module.projections.shape[1])


def _errors(values: Tensor, labels: Tensor, beta: float) -> Tensor:
    """Give the derivative of each row's loss in each map's value, up to a common factor 2^20."""
    shares = _shares(values, beta, dim=1).mul_(2.0**_SHARE_BITS).round_()
    scores = (shares * values).sum(1, keepdim=True).mul_(2.0**-_SHARE_BITS)
    scores = _rounded(scores, _VALUE_BITS)
    wrong = _shares(scores, 1.0, dim=2)
    wrong[torch.arange(len(labels)), 0, labels] -= 1
    return (values - scores).mul_(beta).add_(1).mul_(shares).mul_(wrong)


def _clipped(errors: Tensor, squared_lengths: Tensor, clip: float) -> Tensor:
    """Scale each row's errors so that its gradient, errors times inputs, is no longer than `clip`.

    `errors` come from `_errors`, `squared_lengths` are those of the inputs by (row, map or one for
    all). What comes back is in whole steps of 2^-20 of `clip`, rounded towards zero, which only
    shortens it. Errors are first brought to a largest entry of 2^bits, so that squares of whole
    numbers add up exactly.
    """
    bits = min(_ERROR_BITS, (52 - math.ceil(math.log2(errors[0].numel()))) // 2)
    largest = errors.abs().amax(dim=(1, 2)).clamp(min=1e-300)
    steps = errors.mul_((2.0**bits / largest)[:, None, None]).round_()
    squares = steps.square().sum(dim=2) * squared_lengths
    # Number by number, in the order of the maps: a sum of what is not exact.
    norms = reduce(torch.add, squares.unbind(dim=1)).sqrt()
    most = (1 - _CLIP_SLACK) / norms.clamp(min=1e-300)
    factors = torch.minimum(largest * (2.0 ** -(bits + _SHARE_BITS) / clip), most)
    return steps.mul_((factors * 2.0**_ERROR_BITS)[:, None, None]).trunc_()


def _squared_lengths(seen: Tensor) -> Tensor:
    """Give the squared length of each row's inputs, with the one of the bias."""
    return seen.square().sum(dim=2).T + 1


def _shares(values: Tensor, beta: float, dim: int) -> Tensor:
    """Give softmax(beta values): shares of exponentials, which are whole numbers from a table."""
    below = values.amax(dim=dim, keepdim=True) - values
    steps = below.mul_(beta * _EXP_STEPS).round_().clamp_(max=_EXP_REACH * _EXP_STEPS).long()
    parts = torch.take(_exponentials(), steps)
    return parts.div_(parts.sum(dim=dim, keepdim=True))


@cache
def _exponentials() -> Tensor:
    steps = torch.arange(_EXP_REACH * _EXP_STEPS + 1, dtype=torch.float64)
    return (2.0**_EXP_BITS * torch.exp(-steps / _EXP_STEPS)).round()


def _bounded(weights: Tensor) -> Tensor:
    """Give weights as doubles within reason, whatever noise has made of them."""
    return torch.nan_to_num(weights.double()).clamp(-1e30, 1e30)


def _rounded(values: Tensor, bits: int) -> Tensor:
    return (values * 2.0**bits).round_().mul_(2.0**-bits)
