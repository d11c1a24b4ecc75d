"""Training by noisy gradients (DP-SGD, Abadi et al. 2016).

Contract of `noisy_steps`: in each step every row is taken with probability `rate`, independently
of the others (Poisson sampling, never a shuffled batch); the gradients of the taken rows are
clipped one by one and summed, in pieces that fit the memory; the sum is rounded to a public grid,
noise on the same grid is added; and only that leaves. How many rows were taken, their losses and
their gradients are seen by nobody. So the state after each step is a function of noisy sums, and a
saved state is as public as the last one.

The grid is what makes the noise hide the sum down to the last bit. Sum and noise in floating point
would not: which doubles can come out depends on the sum (Mironov 2012). On the grid, noise is drawn
from the discrete Gaussian, exactly, as for releases; its distance from a rounded Gaussian, for
which the accountant speaks, is paid for (`TrainingSpend.missed`). Rounding the sum moves it by up
to half a step per coordinate, which is paid for, too (`TrainingSpend.sensitivity`).

A step is drawn once. After a crash, training goes on from the last state that was saved, with
fresh randomness: the steps after it were seen by nobody, so it is as if they had never been made.

The sampling rate is a setting, and not a batch size divided by the number of rows: that number is
private where presence is. Nor is a sum divided by it: gradients are in units of the clipping norm,
and optimisers such as Adam do not care about the scale. For others, put 1 / (rate · rows), with a
public or released number of rows, into the learning rate.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError, positive
from sfumato.privacy.budget import TrainingSpend
from sfumato.progress import Progress, silent

MOST_ROWS = 1 << 26
"""So many rows of one unit of length each can be summed in 64 bits."""

_SAVES = 20

Examples = tuple[NDArray[Any], ...]
"""Arrays with one entry for each row, such as points and labels."""
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long a learner is trained, and how it sees rows. All of it is public.

    Parameters
    ----------
    rate
        The probability with which each row is in a step's sum.
    epochs
        How often each row is seen, on average.
    clip
        The norm to which each row's gradient is clipped.
    learning_rate
        The first step's; it falls evenly to zero.
    """

    rate: float
    epochs: float
    clip: float
    learning_rate: float

    def __post_init__(self) -> None:
        positive(
            rate=self.rate, epochs=self.epochs, clip=self.clip, learning_rate=self.learning_rate
        )
        if self.rate > 1:
            raise SfumatoError(f"rate must be at most 1, got {self.rate}")
        if not 1e-30 <= self.clip <= 1e30:
            raise SfumatoError(f"clip must lie between 1e-30 and 1e30, got {self.clip:g}")

    @property
    def steps(self) -> int:
        """The number of noisy sums."""
        return math.ceil(self.epochs / self.rate)


class Learner(ABC):
    """What is trained: a module, the form in which it takes rows, and its clipped gradients.

    All that a learner does beside `examples` and `clipped_sum` sees no row: it may keep public side
    state, such as a generator that is trained against a discriminator, or moving averages of
    weights, and change it after each step.
    """

    module: nn.Module
    piece: int = 1024
    """How many rows' gradients are computed at once."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Give the public facts that determine the training, with the seed of the first weights."""

    @abstractmethod
    def examples(self, batch: Batch) -> Examples:
        """Give what training needs of rows; each row's entry depends on that row alone."""

    @abstractmethod
    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        """Sum the rows' gradients, each clipped, in units of `clip`: each row adds at most 1.

        In the order of the trainable parameters and in double precision. A row's part should be a
        function of that row alone, bit by bit, whichever rows stand beside it: a learner whose
        parts are whole multiples of 2^-36 can be tested for that by equality.
        """

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What is trained; everything else in the module stays as it is."""
        return [each for each in self.module.parameters() if each.requires_grad]

    @property
    def dim(self) -> int:
        """The number of trained parameters."""
        return sum(parameter.numel() for parameter in self.parameters)

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Make the optimiser; the learning rate is set at each step."""
        return torch.optim.Adam(parameters)

    def after_step(self, step: int) -> None:
        """Change the side state after step number `step`, the first being 1; sees no row.

        Randomness that it draws must follow from `step` and a public seed, so that a training that
        was interrupted goes on as if it had not been.
        """

    def side_state(self) -> Arrays:
        """Give the public state beside the module, as arrays that are saved with it."""
        return {}

    def restore_side(self, arrays: Arrays) -> None:
        """Take up what `side_state` gave."""


@dataclass(frozen=True)
class State:
    """Where a training stands: the steps made; weights, optimiser's memory and side state."""

    step: int
    arrays: Arrays

    @property
    def weights(self) -> Arrays:
        """The module's own state."""
        start = "weights/"
        return {k.removeprefix(start): v for k, v in self.arrays.items() if k.startswith(start)}


def first_state(learner: Learner) -> State:
    """Give the state before the first step: public weights."""
    return State(0, _arrays(learner, learner.optimizer(learner.parameters)))


def noisy_steps(
    learner: Learner,
    schedule: Schedule,
    spend: TrainingSpend,
    noisy_gradient: Callable[[], NDArray[np.int64]],
    *,
    start: State,
    save: Callable[[State], None],
    progress: Progress = silent,
) -> State:
    """Make the steps that are left after `start`; `save` is called now and then, and at the end.

    `noisy_gradient` gives the noisy sum at the learner's weights, in whole steps of the grid: it is
    all that is seen of the rows.
    """
    parameters = learner.parameters
    optimizer = learner.optimizer(parameters)
    _restore(learner, optimizer, start.arrays)
    state = start
    every = max(1, schedule.steps // _SAVES)
    for step in range(state.step, schedule.steps):
        progress("training", step / schedule.steps)
        _set_gradients(parameters, noisy_gradient() * 2.0**-spend.grid_bits)
        for group in optimizer.param_groups:
            group["lr"] = schedule.learning_rate * (1 - step / schedule.steps)
        optimizer.step()
        learner.after_step(step + 1)
        if (step + 1) % every == 0 or step + 1 == schedule.steps:
            state = State(step + 1, _arrays(learner, optimizer))
            save(state)
    progress("training", 1.0)
    return state


def as_tensors(examples: Examples) -> list[Tensor]:
    """Give arrays as tensors that share their memory."""
    return [torch.from_numpy(array) for array in examples]


def grid_sum(
    learner: Learner, rows: Sequence[Tensor], chosen: NDArray[np.int64], spend: TrainingSpend
) -> NDArray[np.int64]:
    """Sum the clipped gradients of the chosen rows, exactly, in whole steps of the grid.

    Pieces are added up as integers, so that how rows fall into pieces changes nothing for a learner
    that is exact on the grid. An empty sample is one.
    """
    total = np.zeros(learner.dim, np.int64)
    places = torch.from_numpy(chosen)
    for piece in torch.split(places, learner.piece) if len(places) else ():
        parts = learner.clipped_sum([array[piece] for array in rows], spend.clip)
        flat = torch.cat([part.detach().double().flatten() for part in parts])
        if not bool((flat.abs() <= len(piece)).all()):
            raise SfumatoError("a row added more than the clipping norm: the learner is at fault")
        total += (flat * 2.0**spend.grid_bits).round().long().numpy()
    return total


def _set_gradients(parameters: list[nn.Parameter], total: NDArray[np.floating[Any]]) -> None:
    flat = torch.from_numpy(total)
    parts = torch.split(flat, [parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.reshape(parameter.shape).to(parameter.dtype)


def _arrays(learner: Learner, optimizer: torch.optim.Optimizer) -> Arrays:
    found = {f"weights/{k}": v.numpy().copy() for k, v in learner.module.state_dict().items()}
    for index, memory in optimizer.state_dict()["state"].items():
        for key, value in memory.items():
            if isinstance(value, Tensor):
                found[f"optimizer/{index}/{key}"] = value.numpy().copy()
    for key, array in learner.side_state().items():
        found[f"side/{key}"] = np.array(array, order="C")
    return found


def _restore(learner: Learner, optimizer: torch.optim.Optimizer, arrays: Arrays) -> None:
    weights: dict[str, Tensor] = {}
    memory: dict[int, dict[str, Tensor]] = {}
    side: Arrays = {}
    for name, array in arrays.items():
        kind, _, rest = name.partition("/")
        if kind == "weights":
            weights[rest] = torch.tensor(array)
        elif kind == "side":
            side[rest] = array
        else:
            index, _, key = rest.partition("/")
            memory.setdefault(int(index), {})[key] = torch.tensor(array)
    try:
        learner.module.load_state_dict(weights)
        optimizer.load_state_dict(optimizer.state_dict() | {"state": memory})
        learner.restore_side(side)
    except (RuntimeError, ValueError, KeyError):
        raise SfumatoError("the saved training does not fit this learner") from None
