"""Detail: what images hold beyond the coordinates in which classes are modelled.

The pooled second moments tell how the remaining coefficients follow the coordinates, and how they
vary about that. Both are taken to be alike in all classes. Detail of a class's own would be a mark
by which a classifier tells synthetic classes apart, and which real images do not bear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Detail:
    """Coefficients across the axes, given coordinates z: ``offset + z @ slopes + noise @ root.T``.

    >>> axes, covariance = np.eye(3)[:, :1], np.array([[4.0, 2, 0], [2, 2, 0], [0, 0, 0]])
    >>> detail = Detail.of(covariance, np.zeros((1, 3)), axes, np.ones(1))
    >>> detail.slopes.round(2).tolist(), (detail.root @ detail.root.T).round(2).tolist()
    ([[0.0, 0.5, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    """

    offsets: Floats  # (classes, coefficients)
    slopes: Floats  # (dim, coefficients)
    root: Floats  # (coefficients, coefficients)

    @classmethod
    def of(cls, within: Floats, means: Floats, axes: Floats, scale: Floats) -> Detail:
        """Split the covariance within classes by axes; coordinates are ``v @ axes * scale``.

        `means` are those of the classes, relative to the centre of the coordinates.
        """
        across = np.eye(len(axes)) - axes @ axes.T
        along = axes.T @ within @ axes
        least = 1e-3 * np.trace(along) / len(along)
        slopes = np.linalg.solve(along + least * np.eye(len(along)), axes.T @ within @ across)
        rest = across @ within @ across - slopes.T @ along @ slopes
        values, turned = np.linalg.eigh(rest)
        slopes = slopes / scale[:, None]
        # The symmetric root: others turn with the signs of eigenvectors, which rounding decides.
        return cls(
            offsets=means @ across - (means @ (axes * scale)) @ slopes,
            slopes=slopes,
            root=(turned * np.sqrt(np.maximum(values, 0.0))) @ turned.T,
        )

    def draw(self, label: int, z: Floats, rng: np.random.Generator) -> Singles:
        """Draw the coefficients that go with coordinates of a class."""
        noise = rng.standard_normal((len(z), len(self.root)), dtype=np.float32)
        drawn: Singles = noise @ self.root.T.astype(np.float32)
        drawn += (self.offsets[label] + z @ self.slopes).astype(np.float32)
        return drawn
