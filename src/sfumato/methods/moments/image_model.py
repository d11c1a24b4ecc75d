"""Images from elliptical groups in a basis of low frequencies, mended cell by cell.

A class is a mixture of groups, each an ellipsoid with a log-normal radius. Draws are turned into
images and back, so that what clipping to the pixel range does is part of the model; then cells of
draws are reweighted, and their images shifted, to what was released about them. Images keep the
edges that clipping makes, though the basis does not see them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.moments.classifier import DrawClassifier
from sfumato.methods.moments.deformation import Deformation
from sfumato.methods.moments.detail import Detail
from sfumato.methods.moments.levels import LevelMap
from sfumato.statistics.frequencies import LowFrequencies
from sfumato.statistics.labelled_vectors import Centres
from sfumato.statistics.scattering import Scattering

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_OVERSAMPLING = 3  # draws for each one that cells keep
_PIECE = 4096  # images at a time
_LARGEST_SEEN = 32  # pixels, the side of a picture that a classifier looks at


@dataclass(frozen=True, eq=False)
class Basis:
    """Coordinates z of coefficients v: ``z = (v - centre) @ axes * scale``, axes orthonormal."""

    frequencies: LowFrequencies
    centre: Floats
    axes: Floats  # (coefficients, dim)
    scale: Floats  # (dim,)

    @cached_property
    def _middle(self) -> Singles:
        """The image at the centre."""
        return (0.5 + self.centre @ self.frequencies.matrix).astype(np.float32)

    @cached_property
    def _to_pixels(self) -> Singles:
        return ((self.axes / self.scale).T @ self.frequencies.matrix).astype(np.float32)

    @cached_property
    def _to_coordinates(self) -> Singles:
        return (self.frequencies.matrix.T @ (self.axes * self.scale)).astype(np.float32)

    def images(self, z: Floats) -> Singles:
        """Give images with pixels in [0, 1]."""
        pixels: Singles = np.clip(self.change(z) + self._middle, 0.0, 1.0)
        return pixels

    def change(self, z: Floats) -> Singles:
        """Give the change of images that changes their coordinates by z."""
        return z.astype(np.float32) @ self._to_pixels

    def coordinates(self, images: Singles) -> Floats:
        """Give the coordinates of images."""
        return ((images - self._middle) @ self._to_coordinates).astype(np.float64)

    def scattering(self) -> Scattering:
        """See points as the grey pictures that they stand for; of large ones every few pixels."""
        height, width, channels = self.frequencies.shape
        greys = self.frequencies.matrix.reshape(-1, height, width, channels).mean(axis=3)
        down, across = (
            np.linspace(0, side - 1, min(side, _LARGEST_SEEN)).round().astype(int)
            for side in (height, width)
        )
        waves = 255 * greys[:, down[:, None], across].reshape(len(greys), -1)
        pixels = (self.axes / self.scale).T @ waves
        return Scattering.of(pixels, 127.5 + self.centre @ waves, (len(down), len(across)))


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

    codebook: Centres
    weights: Floats
    shifts: Floats


@dataclass(frozen=True, eq=False)
class ImageModel:
    """Draws images of a class."""

    basis: Basis
    ellipses: Ellipses
    class_counts: Floats
    cells: Cells | None = None
    detail: Detail | None = None
    levels: LevelMap | None = None
    classifier: DrawClassifier | None = None  # says of which class an image is, where there is one

    def draw(self, label: int, count: int, rng: np.random.Generator) -> Floats:
        """Draw the coordinates of images of a class, not mended by cells."""
        return self._seen(self._elliptical(label, count, rng))

    def images(self, label: int, count: int, rng: np.random.Generator) -> Singles:
        """Draw images of a class, pixels in [0, 1]."""
        pixels = self.unbounded(label, count, rng)
        for piece in _pieces(count):
            if self.levels is not None:
                pixels[piece] = self.levels(pixels[piece])
            np.clip(pixels[piece], 0.0, 1.0, out=pixels[piece])
        return pixels

    def deformed(self, pixels: Singles, strength: float, rng: np.random.Generator) -> Singles:
        """Deform images a little."""
        if strength:
            for piece in _pieces(len(pixels)):
                images = pixels[piece].reshape(-1, *self.basis.frequencies.shape)
                pixels[piece] = Deformation(strength)(images, rng).reshape(len(images), -1)
        return pixels

    def drawn(
        self, sizes: Sequence[int], rng: np.random.Generator
    ) -> Iterator[tuple[int, Singles]]:
        """Draw so many images of each class, piece by piece, each with its class."""
        for label, size in enumerate(sizes):
            for piece in _pieces(size):
                yield label, self.images(label, min(piece.stop, size) - piece.start, rng)

    def unbounded(self, label: int, count: int, rng: np.random.Generator) -> Singles:
        """Draw images of a class, whose pixels may leave their range by what is added last."""
        if self.cells is None:
            z = self._elliptical(label, count, rng)
            shifts = np.zeros_like(z)
        else:
            z = self._elliptical(label, _OVERSAMPLING * count, rng)
            cell = self.cells.codebook.assign(self._seen(z), np.full(len(z), label))
            # Weighted sampling without replacement (Efraimidis and Spirakis 2006).
            kept = np.argsort(rng.exponential(size=len(z)) / self.cells.weights[cell])[:count]
            z, shifts = z[kept], self.cells.shifts[cell[kept]]
        pixels = np.empty((count, int(np.prod(self.basis.frequencies.shape))), np.float32)
        for piece in _pieces(count):
            pixels[piece] = self.basis.images(z[piece]) + self.basis.change(shifts[piece])
            if self.detail is not None:
                drawn = self.detail.draw(label, z[piece], rng)
                pixels[piece] += drawn @ self.basis.frequencies.matrix.astype(np.float32)
        return pixels

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

    def _seen(self, z: Floats) -> Floats:
        """Give the coordinates that are left when images are clipped to the pixel range."""
        seen = np.empty_like(z)
        for piece in _pieces(len(z)):
            seen[piece] = self.basis.coordinates(self.basis.images(z[piece]))
        return seen

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
        if self.detail is not None:
            arrays |= {
                "detail_offsets": self.detail.offsets,
                "detail_slopes": self.detail.slopes,
                "detail_root": self.detail.root,
            }
        if self.levels is not None:
            arrays |= {
                "level_knots": self.levels.knots,
                "level_darkest": self.levels.darkest,
                "level_brightest": self.levels.brightest,
            }
        if self.classifier is not None:
            arrays |= self.classifier.arrays()
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ImageModel:
        """Read what `arrays` gave."""
        height, width, channels = arrays["shape"].tolist()
        frequencies = LowFrequencies((height, width, channels), len(arrays["centre"]))
        basis = Basis(frequencies, arrays["centre"], arrays["axes"], arrays["scale"])
        names = ("owner", "counts", "means", "roots", "radius_mean", "radius_deviation")
        model = cls(basis, Ellipses(*(arrays[name] for name in names)), arrays["class_counts"])
        if "cell_centres" in arrays:
            codebook = Centres(arrays["cell_centres"], tuple(arrays["cell_sizes"].tolist()))
            cells = Cells(codebook, arrays["cell_weights"], arrays["cell_shifts"])
            model = replace(model, cells=cells)
        if "detail_root" in arrays:
            parts = [arrays[f"detail_{part}"] for part in ("offsets", "slopes", "root")]
            model = replace(model, detail=Detail(*parts))
        if "level_knots" in arrays:
            parts = [arrays[f"level_{part}"] for part in ("knots", "darkest", "brightest")]
            model = replace(model, levels=LevelMap(*parts))
        if "classifier_weights" in arrays:
            model = replace(model, classifier=DrawClassifier.from_arrays(arrays))
        return model


def _pieces(count: int) -> list[slice]:
    return [slice(start, start + _PIECE) for start in range(0, count, _PIECE)]
