"""FIDs for the benchmark scripts: the features of real pictures are kept, as they cost minutes."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.frechet import frechet_distance
from sfumato.public.inception import FidInception

KEPT = Path.home() / ".cache" / "sfumato" / "benchmarks"

_network = cache(FidInception)


def fid_of(
    images: NDArray[np.uint8],
    reference_name: str,
    real_images: NDArray[np.uint8],
    most: int = 2000,
) -> float:
    """Give the FID between `most` of the images and of the real ones, drawn the same way each time.

    FIDs grow as pictures get fewer: only those of the same `most` are comparable.
    """
    generated = features_of(some(images, most))
    return frechet_distance(kept_features(reference_name, some(real_images, most)), generated)


def features_of(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Give what Inception sees in each image."""
    return _network().features(images)


def kept_features(name: str, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Give the same of public benchmark images, worked out once."""
    content = sha256(_network().about.digest.encode())
    content.update(repr(images.shape).encode())
    content.update(np.ascontiguousarray(images).tobytes())
    path = KEPT / f"fid-{name}-{content.hexdigest()[:16]}.npy"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part.npy")
        np.save(unfinished, _network().features(images))
        unfinished.replace(path)
    return np.asarray(np.load(path))


def some(images: NDArray[np.uint8], most: int) -> NDArray[np.uint8]:
    """Draw some images, the same ones each time."""
    return images[np.sort(np.random.default_rng(0).permutation(len(images))[:most])]
