"""Images from elliptical groups in a basis of low frequencies, mended cell by cell.

A class is a mixture of groups, each an ellipsoid with a log-normal radius. Draws are turned into
images and back, so that what clipping to the pixel range does is part of the model; then cells of
draws are reweighted and shifted to what was released about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.features.frequencies import LowFrequencies
from sfumato.features.vectors import Codebook

Floats = NDArray[np.float64]

_OVERSAMPLING = 3  # draws for each one that cells keep
_PIECE = 4096  # images at a time


@dataclass(frozen=True, eq=False)
class Basis:
    """Coordinates z of coefficients v: ``z = (v - centre) @ axes * scale``, axes orthonormal."""

    frequencies: LowFrequencies
    centre: Floats
    axes: Floats  # (coefficients, dim)
    scale: Floats  # (dim,)

    def images(self, z: Floats) -> Floats:
        """Give images with pixels in [0, 1]."""
        return self.frequencies.decode((z / self.scale) @ self.axes.T + self.centre)

    def coordinates(self, images: Floats) -> Floats:
        """Give the coordinates of images."""
        found: Floats = ((self.frequencies.encode(images) - self.centre) @ self.axes) * self.scale
        return found


@dataclass(frozen=True, eq=False)
class Ellipses:
    """Groups: to which class each belongs, its size, mean, shape and radius."""

    owner: NDArray[np.int64]
    counts: Floats
    means: Floats  # (groups, dim)
    roots: Floats  # (groups, dim, dim), Cholesky factors
    radius_mean: Floats  # of the log radius
    radius_deviation: Floats


@dataclass(frozen=True, eq=False)
class Cells:
    """What cells of draws are to be mended by: a weight ratio and a shift each."""

    codebook: Codebook
    weights: Floats
    shifts: Floats


@dataclass(frozen=True, eq=False)
class ImageModel:
    """Draws images of a class."""

    basis: Basis
    ellipses: Ellipses
    class_counts: Floats
    cells: Cells | None = None

    def draw(self, label: int, count: int, rng: np.random.Generator) -> Floats:
        """Draw the coordinates of images of a class."""
        if self.cells is None:
            return self._clipped(self._elliptical(label, count, rng))
        pool = self._clipped(self._elliptical(label, _OVERSAMPLING * count, rng))
        cell = self.cells.codebook.assign(pool, np.full(len(pool), label))
        # Weighted sampling without replacement (Efraimidis and Spirakis 2006).
        kept = np.argsort(rng.exponential(size=len(pool)) / self.cells.weights[cell])[:count]
        drawn: Floats = pool[kept] + self.cells.shifts[cell[kept]]
        return drawn

    def images(self, label: int, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw images of a class, pixels in [0, 1]."""
        z = self.draw(label, count, rng)
        pieces = [self.basis.images(z[s : s + _PIECE]) for s in range(0, count, _PIECE)]
        size = int(np.prod(self.basis.frequencies.shape))
        return np.concatenate([np.empty((0, size)), *pieces]).astype(np.float32)

    def _elliptical(self, label: int, count: int, rng: np.random.Generator) -> Floats:
        e = self.ellipses
        groups = np.flatnonzero(e.owner == label)
        sizes = rng.multinomial(count, e.counts[groups] / e.counts[groups].sum())
        parts = []
        for group, size in zip(groups, sizes, strict=True):
            direction = rng.standard_normal((size, e.means.shape[1]))
            log_radius = e.radius_mean[group] + e.radius_deviation[group] * rng.standard_normal(
                size
            )
            length = np.exp(log_radius) * np.sqrt(direction.shape[1])
            direction *= (length / np.linalg.norm(direction, axis=1))[:, None]
            parts.append(e.means[group] + direction @ e.roots[group].T)
        return np.concatenate(parts)

    def _clipped(self, z: Floats) -> Floats:
        pieces = [
            self.basis.coordinates(self.basis.images(z[s : s + _PIECE]))
            for s in range(0, len(z), _PIECE)
        ]
        return np.concatenate([np.empty((0, z.shape[1])), *pieces])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give plain arrays, to be stored."""
        basis, e = self.basis, self.ellipses
        arrays: dict[str, NDArray[Any]] = {
            "shape": np.array(basis.frequencies.shape),
            "centre": basis.centre,
            "axes": basis.axes,
            "scale": basis.scale,
            "class_counts": self.class_counts,
            "owner": e.owner,
            "counts": e.counts,
            "means": e.means,
            "roots": e.roots,
            "radius_mean": e.radius_mean,
            "radius_deviation": e.radius_deviation,
        }
        if self.cells is not None:
            arrays |= {
                "cell_centres": self.cells.codebook.centres,
                "cell_sizes": np.array(self.cells.codebook.sizes),
                "cell_weights": self.cells.weights,
                "cell_shifts": self.cells.shifts,
            }
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ImageModel:
        """Read what `arrays` gave."""
        height, width, channels = arrays["shape"].tolist()
        frequencies = LowFrequencies((height, width, channels), len(arrays["centre"]))
        basis = Basis(frequencies, arrays["centre"], arrays["axes"], arrays["scale"])
        names = ("owner", "counts", "means", "roots", "radius_mean", "radius_deviation")
        model = cls(basis, Ellipses(*(arrays[name] for name in names)), arrays["class_counts"])
        if "cell_centres" not in arrays:
            return model
        codebook = Codebook(arrays["cell_centres"], tuple(arrays["cell_sizes"].tolist()))
        cells = Cells(codebook, arrays["cell_weights"], arrays["cell_shifts"])
        return replace(model, cells=cells)


def k_means(points: Floats, count: int, rng: np.random.Generator, steps: int = 12) -> Floats:
    """Give the centres of Lloyd's algorithm from random points."""
    centres = points[rng.choice(len(points), count, replace=False)]
    for _ in range(steps):
        nearest = (2 * points @ centres.T - (centres * centres).sum(axis=1)).argmax(axis=1)
        sizes = np.bincount(nearest, minlength=count)
        member = np.zeros((count, len(points)))
        member[nearest, np.arange(len(points))] = 1
        moved = member @ points / np.maximum(sizes, 1)[:, None]
        centres = np.where(sizes[:, None] > 0, moved, centres)
    return centres
