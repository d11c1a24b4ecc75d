"""Why a class: the maps that an input woke, with their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.schema import Value, canonical_text


@dataclass(frozen=True, kw_only=True, eq=False)
class ActiveMap:
    """One linear map of a class as an input met it.

    `share` is its weight among the maps of the class, `value` what it gave, and `weights` what it
    looks for: one number for each pixel or feature.
    """

    index: int
    share: float
    value: float
    weights: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """The maps behind one prediction, the weightiest first.

    `features` are the values that maps are applied to: a map's value is the sum of their products
    with its weights, and its bias. `blend` is all maps of the class by their shares: the one linear
    map that stands for it here; `others` is the mean of the other classes' blends.
    """

    prediction: Value
    probabilities: dict[Value, float]
    names: tuple[str, ...]
    features: NDArray[np.float32]
    blend: NDArray[np.float32]
    others: NDArray[np.float32]
    maps: tuple[ActiveMap, ...]

    @property
    def contributions(self) -> NDArray[np.float32]:
        """What each feature adds to the class's score, beyond the mean of the other classes."""
        return (self.blend - self.others) * self.features

    def to_dict(self) -> dict[str, Any]:
        """Give plain values for JSON."""
        return {
            "prediction": self.prediction,
            "probabilities": {
                canonical_text(key): value for key, value in self.probabilities.items()
            },
            "names": list(self.names),
            "features": _rounded(self.features),
            "contributions": _rounded(self.contributions),
            "maps": [
                {
                    "index": each.index,
                    "share": each.share,
                    "value": each.value,
                    "weights": _rounded(each.weights),
                }
                for each in self.maps
            ],
        }


def _rounded(array: NDArray[np.float32]) -> list[Any]:
    found: list[Any] = np.round(array.astype(np.float64), 6).tolist()
    return found
