"""Hermite features: the Gaussian kernel on a line, in order of importance.

Mehler (1866): for 0 < rho < 1

    exp(-rho / (1 - rho²) (x - y)²) = sum_c phi_c(x) phi_c(y),

    phi_c(x) = ((1 + rho)(1 - rho))^(1/4) rho^(c/2) / sqrt(2^c c!) H_c(x) exp(-rho x² / (1 + rho)),

with H_c the physicists' Hermite polynomials. Their values overflow; the features themselves do
not, and obey (Vinaroz et al. 2022)

    phi_{c+1}(x) = sqrt(2 rho / (c + 1)) x phi_c(x) - rho sqrt(c / (c + 1)) phi_{c-1}(x).

With y = x the kernel is 1, so the features of any order C have norm at most 1. Keeping the first
C + 1 of them is an orthogonal projection, which brings no two points farther apart than they are
under the kernel: ||phi(x) - phi(y)||² <= 2 - 2 k(x, y) < 2, where the paper counts with 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SfumatoError, in_open_unit, positive

if TYPE_CHECKING:
    from torch import Tensor

# Deviations of the kernel's own measure from the middle to the ends: about the number that needs
# the fewest features, for lengths from 0.03 to 1.
_EDGE = 2.5


@dataclass(frozen=True)
class Hermite:
    """The features phi_0 … phi_order of numbers in the unit interval.

    A number u becomes x = reach (2 u - 1). Pairs (rho, reach) with the same kernel differ in how
    many features they need: the features are orthogonal under a Gaussian measure of deviation
    sqrt((1 + rho) / (1 - rho) / 2), and `of_length` lets the interval cover its bulk.

    >>> features = Hermite.of_length(0.2, order=8)
    >>> x, y = features(np.array([0.4, 0.7]))
    >>> round(float(x @ y), 4), round(math.exp(-(0.3**2) / (2 * 0.2**2)), 4)
    (0.3246, 0.3247)
    """

    order: int
    rho: float
    reach: float

    def __post_init__(self) -> None:
        in_open_unit(rho=self.rho)
        positive(reach=self.reach)
        if self.order < 0:
            raise SfumatoError(f"the order of Hermite features must not be negative: {self.order}")

    @classmethod
    def of_length(cls, length: float, order: int) -> Hermite:
        """Give the features of the kernel exp(-(u - v)² / (2 length²)).

        With reach² = _EDGE² (1 + rho) / (1 - rho) / 2, the kernel's exponent asks for
        4 rho / (1 - rho)² = 1 / (_EDGE length)², a quadratic in rho.
        """
        positive(length=length)
        half = 2 * (_EDGE * length) ** 2
        rho = 1 + half - math.sqrt(half * (half + 2))
        return cls(order, rho, _EDGE * math.sqrt((1 + rho) / (1 - rho) / 2))

    @property
    def length(self) -> float:
        """The length scale of the kernel on the unit interval."""
        return math.sqrt((1 - self.rho**2) / (8 * self.rho)) / self.reach

    def __call__(self, numbers: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """Give the features of numbers, in a new last axis and in the numbers' precision.

        Numbers outside the unit interval are as good as any: the bound holds on the whole line.
        """
        x = self.reach * (2 * numbers - 1)
        features = np.empty((*x.shape, self.order + 1), x.dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            features[..., 0] = self.first * np.exp(-self.fall / 2 * x * x)
            for c, (up, down) in enumerate(self.steps):
                features[..., c + 1] = up * x * features[..., c]
                if c:
                    features[..., c + 1] -= down * features[..., c - 1]
        return np.nan_to_num(features, copy=False, posinf=0.0, neginf=0.0)

    @property
    def first(self) -> float:
        """The factor of phi_0."""
        return float((1 - self.rho**2) ** 0.25)

    @property
    def fall(self) -> float:
        """How fast the features fall off: phi_0(x) ~ exp(-fall x² / 2)."""
        return 2 * self.rho / (1 + self.rho)

    @property
    def steps(self) -> list[tuple[float, float]]:
        """The two factors of the recursion, for each order above 0."""
        return [
            (math.sqrt(2 * self.rho / (c + 1)), self.rho * math.sqrt(c / (c + 1)))
            for c in range(self.order)
        ]

    def of_tensor(self, numbers: Tensor) -> Tensor:
        """Give the same features of a tensor, differentiably."""
        from sfumato.statistics.hermite_tensor import hermite_tensor

        return hermite_tensor(numbers, self)
