"""The Fréchet distance between images, on features that some network sees in them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.neural_network import MLPClassifier

from sfumato.errors import SfumatoError
from sfumato.evaluation.threads import one_thread
from sfumato.public.provenance import Provenance

Features = NDArray[np.floating[Any]]
FEATURES = 64


@dataclass(frozen=True)
class Extractor:
    """A map from images (n, height, width, channels) of uint8 to features, and its name.

    A public network's provenance comes with it; one that was trained on the real images has none.
    """

    name: str
    features: Callable[[NDArray[np.uint8]], Features]
    about: Provenance | None = None


def frechet_distance(first: Features, second: Features) -> float:
    """Give the squared 2-Wasserstein distance between Gaussians with the features' moments.

    |m1 - m2|² + tr(C1 + C2 - 2 (C1^½ C2 C1^½)^½) (Fréchet 1957; Heusel et al. 2017, with Inception
    features, as FID). With C1 = AᵀA and C2 = BᵀB the last trace is the sum of the singular values
    of ABᵀ: no root of a matrix is taken, so none loses half of the digits where C1 is singular.
    """
    if min(len(first), len(second)) < 2:
        return float("nan")
    (mean1, factor1), (mean2, factor2) = _moments(first), _moments(second)
    traces = float((factor1**2).sum() + (factor2**2).sum())
    shared = float(np.linalg.svd(factor1 @ factor2.T, compute_uv=False).sum())
    return max(0.0, float(((mean1 - mean2) ** 2).sum()) + traces - 2 * shared)


def trained_extractor(
    x: NDArray[np.uint8], y: NDArray[np.integer[Any]] | None, seed: int = 0
) -> Extractor:
    """Train a small network on real images and give its last hidden layer.

    Distances in such features are not comparable with FIDs in Inception features, nor between
    data sets: hence the name. Without labels the features are principal components.
    """
    flat = unit_pixels(x)
    if y is None or len(np.unique(y)) < 2:
        components = PCA(min(FEATURES, *flat.shape), random_state=seed).fit(flat)
        return Extractor(
            "principal components of the real images",
            lambda images: np.asarray(components.transform(unit_pixels(images))),
        )
    network = MLPClassifier((128, FEATURES), max_iter=20, random_state=seed)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twenty epochs are enough for features
        network.fit(flat, y)

    def last_hidden(images: NDArray[np.uint8]) -> Features:
        hidden: Features = unit_pixels(images)
        for weights, bias in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
            hidden = np.maximum(hidden @ weights + bias, 0.0)
        return hidden

    return Extractor(
        f"a small network trained on the real images ({FEATURES} features, not Inception)",
        last_hidden,
    )


def inception_extractor(weights: str | Path | None = None) -> Extractor:
    """Give the features by which published FIDs are computed (see `public/inception.py`)."""
    try:
        from sfumato.public.inception import FidInception
    except ImportError:
        raise SfumatoError("Inception needs torch: pip install 'sfumato[neural]'") from None
    network = FidInception(weights)
    return Extractor(network.about.name, network.features, network.about)


def unit_pixels(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Give one vector of pixels in [0, 1] per image."""
    pixels: NDArray[np.float32] = images.reshape(len(images), -1).astype(np.float32)
    pixels /= 255
    return pixels


def _moments(features: Features) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the mean, and A of no more rows than columns such that AᵀA is the covariance."""
    rows = features.astype(np.float64)
    mean = rows.mean(axis=0)
    factor = (rows - mean) / np.sqrt(len(rows) - 1)
    if len(factor) > factor.shape[1]:
        factor = np.linalg.qr(factor, mode="r")
    return mean, factor
