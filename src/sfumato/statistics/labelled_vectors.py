"""Labelled vectors of images: relative to public centres, shortened to the unit ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.statistics.exact_map import ExactMap, digest, on_steps, squared_lengths

_INSIDE = 1 - 1e-9  # keeps a shortened vector's length, as computed, below one


@dataclass(frozen=True, eq=False)
class Centres:
    """Public centres, those of one class after those of another."""

    centres: NDArray[np.float64]  # (labels, dim)
    sizes: tuple[int, ...]  # centres of each class

    @classmethod
    def of(cls, by_class: list[NDArray[np.float64]]) -> Centres:
        """Gather the centres of each class, rounded so that distances to them are exact."""
        centres = on_steps(np.concatenate(by_class))
        return cls(centres, tuple(len(centres) for centres in by_class))

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The class of each centre."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def assign(
        self, coordinates: NDArray[np.float64], classes: NDArray[np.integer[Any]]
    ) -> NDArray[np.int64]:
        """Give the nearest centre of each row's class.

        Coordinates and centres are multiples of 2^-12 below 2^9, so the products are exact.
        """
        labels = np.zeros(len(coordinates), np.int64)
        first = np.cumsum(self.sizes) - self.sizes
        for number, (start, size) in enumerate(zip(first, self.sizes, strict=True)):
            rows = np.flatnonzero(classes == number)
            centres = self.centres[start : start + size]
            closeness = 2 * coordinates[rows] @ centres.T - (centres * centres).sum(axis=1)
            labels[rows] = start + closeness.argmax(axis=1)
        return labels


class Coordinates(Protocol):
    """A public map from rows to points on the grid of `exact_map.on_steps`; each row for itself."""

    @property
    def dim(self) -> int:
        """The length of a point."""

    def __call__(self, batch: Batch) -> NDArray[np.float64]:
        """Give each row's point."""

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify this map, as plain values."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """Coordinates relative to the nearest centre of the row's class, over a bound."""

    coordinates: Coordinates
    codebook: Centres
    bound: float

    @property
    def labels(self) -> int:
        return len(self.codebook.centres)

    @property
    def dim(self) -> int:
        return self.coordinates.dim

    def __call__(self, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        coordinates = self.coordinates(batch)
        labels = self.codebook.assign(coordinates, batch.codes[:, 0])
        return labels, shortened(coordinates - self.codebook.centres[labels], self.bound)

    def describe(self) -> dict[str, Any]:
        return {
            "residuals": self.coordinates.describe(),
            "centres": digest(self.codebook.centres, np.array(self.codebook.sizes)),
            "bound": self.bound,
        }


@dataclass(frozen=True, eq=False)
class CoordinatesAndLength:
    """Coordinates u within the unit ball and their squared length: (u, |u|²) / sqrt(2)."""

    coordinates: ExactMap

    labels: int = 1

    @property
    def dim(self) -> int:
        return self.coordinates.dim + 1

    def __call__(self, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        coordinates = self.coordinates(batch)
        lengths = squared_lengths(coordinates)  # exact: multiples of 2^-24
        squared = lengths / np.maximum(lengths, 1.0)
        inside = shortened(coordinates, 1.0)
        vectors = np.concatenate([inside, squared[:, None]], axis=1) * (_INSIDE / math.sqrt(2))
        return np.zeros(len(batch), np.int64), vectors

    def describe(self) -> dict[str, Any]:
        return {"extent": self.coordinates.describe()}


@dataclass(frozen=True, eq=False)
class LogRadius:
    """How far a row lies from its group's mean, in the group's own scale.

    The vector is (t, t²) / sqrt(2) with t = log |L⁻¹ (z - mean)| / sqrt(dim), over log 4, clamped
    to [-1, 1].
    """

    residuals: Residuals  # to assign groups; its bound is not used
    means: NDArray[np.float64]  # (groups, dim)
    inverse_roots: NDArray[np.float64]  # (groups, dim, dim)

    span = math.log(4)
    dim: int = 2

    @property
    def labels(self) -> int:
        return len(self.means)

    def __call__(self, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        coordinates = self.residuals.coordinates(batch)
        labels = self.residuals.codebook.assign(coordinates, batch.codes[:, 0])
        lengths = np.empty(len(batch))
        for group in np.unique(labels):
            rows = np.flatnonzero(labels == group)
            centred = coordinates[rows] - on_steps(self.means[group])
            # Inverse roots on a grid of 2^-14 keep the products exact.
            root = np.clip(np.rint(self.inverse_roots[group] * 2.0**14) / 2.0**14, -512.0, 512.0)
            scaled = on_steps(centred @ root.T)
            lengths[rows] = squared_lengths(scaled)
        radius = np.sqrt(lengths / self.means.shape[1])
        t = np.clip(np.log(np.maximum(radius, 1e-9)) / self.span, -1.0, 1.0)
        return labels, np.stack([t, t * t], axis=1) * (_INSIDE / math.sqrt(2))

    def describe(self) -> dict[str, Any]:
        return {
            "log_radius": self.residuals.describe(),
            "groups": digest(self.means, self.inverse_roots),
        }


def shortened(vectors: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    """Divide by the bound, or by the length where that is larger.

    More than `MOST_COLUMNS` numbers are refused.
    """
    lengths = np.sqrt(squared_lengths(vectors))
    inside: NDArray[np.float64] = vectors * (_INSIDE / np.maximum(lengths, bound))[:, None]
    return inside
