"""Fidelity and variety apart: precision and recall of distributions, and modes that differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.cluster import KMeans

from sfumato.evaluation.frechet import unit_pixels
from sfumato.evaluation.image_sets import NumberedImages
from sfumato.evaluation.measure import Compared, Finding, Measure
from sfumato.evaluation.threads import one_thread

NDB_BINS = 50
WEAK_MODES = 0.5

Points = NDArray[np.floating[Any]]


def precision_recall(
    real: Points, synthetic: Points, clusters: int = 20, runs: int = 5, seed: int = 0
) -> dict[str, float]:
    """Give precision (max F_1/8) and recall (max F_8) after Sajjadi et al. (2018).

    Both sets are clustered together. With p and q the shares of the clusters among real and
    synthetic points, the curve is precision(s) = sum min(s p, q), recall(s) = precision(s) / s for
    slopes s > 0. Low precision means synthetic points unlike any real ones; low recall means real
    modes that are missing. The mean over several clusterings is taken, as there.
    """
    both = np.concatenate([real, synthetic])
    clusters = min(clusters, len(np.unique(both, axis=0)))
    figures = []
    for run in range(runs):
        with one_thread():
            labels = KMeans(clusters, n_init=1, random_state=seed + run).fit_predict(both)
        p = np.bincount(labels[: len(real)], minlength=clusters) / len(real)
        q = np.bincount(labels[len(real) :], minlength=clusters) / len(synthetic)
        precision, recall = precision_recall_curve(p, q)
        figures.append((max_f(precision, recall, 1 / 8), max_f(precision, recall, 8.0)))
    best = np.mean(figures, axis=0)
    return {"precision": float(best[0]), "recall": float(best[1])}


def precision_recall_curve(
    real: NDArray[np.float64], synthetic: NDArray[np.float64], angles: int = 1001
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give precision and recall at slopes of evenly spaced angles."""
    slopes = np.tan(np.linspace(1e-6, np.pi / 2 - 1e-6, angles))[:, None]
    precision = np.minimum(slopes * real, synthetic).sum(axis=1)
    return precision.clip(0, 1), (precision / slopes[:, 0]).clip(0, 1)


def max_f(precision: NDArray[np.float64], recall: NDArray[np.float64], beta: float) -> float:
    """Give the largest F_beta along a curve; beta above 1 weighs recall."""
    weight = beta**2
    below = np.maximum(weight * precision + recall, 1e-12)
    return float(((1 + weight) * precision * recall / below).max())


def different_bins(
    real: Points, synthetic: Points, bins: int = 50, level: float = 0.05, seed: int = 0
) -> float:
    """Give NDB / K: the share of modes whose weight differs (Richardson and Weiss 2018).

    The real points are clustered into K bins, both sets are assigned to the nearest centre, and a
    two-proportion z-test at the given level is made in each bin. Fresh real points score about
    `level`.
    """
    bins = min(bins, len(np.unique(real, axis=0)))
    with one_thread():
        centres = KMeans(bins, n_init=1, random_state=seed).fit(real)
        nearest = [centres.predict(points) for points in (real, synthetic)]
    counts = [np.bincount(bin_of, minlength=bins) for bin_of in nearest]
    return float(different_proportions(counts[0], counts[1], level).mean())


def different_proportions(
    first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], level: float = 0.05
) -> NDArray[np.bool_]:
    """Say for each bin whether its shares differ, by the z-test with pooled variance."""
    n, m = first.sum(), second.sum()
    pooled = (first + second) / (n + m)
    deviation = np.sqrt(np.maximum(pooled * (1 - pooled) * (1 / n + 1 / m), 1e-300))
    z = np.abs(first / n - second / m) / deviation
    different: NDArray[np.bool_] = z > norm.ppf(1 - level / 2)
    return different


def _find(compared: Compared[NumberedImages]) -> Finding:
    real = unit_pixels(compared.train.x)
    made, fresh = (
        different_bins(real, unit_pixels(images.x), NDB_BINS, seed=compared.seed)
        for images in compared.same_size()
    )
    weak = f"{made:.1%} of the modes of the real images have another weight."
    return Finding(
        title="Modes",
        caption=f"Shares of {NDB_BINS} modes of the real images (k-means on pixels)",
        columns=("Synthetic", "Fresh real images"),
        rows={"Modes whose weight differs (NDB/K)": (made, fresh)},
        weaknesses=(weak,) if made > WEAK_MODES else (),
    )


DIFFERENT_MODES = Measure("modes", "comparing modes", _find)
