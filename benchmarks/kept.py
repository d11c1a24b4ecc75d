"""What a public network sees in benchmark images, worked out once for each image and kept.

Images are told apart by their bytes. Parts are written as they are done, so a run that was stopped
goes on where it was. With the rows is kept how many seconds each took.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from harness import CACHE, timed
from sfumato.data.batch import Batch
from sfumato.papers.embedding.mepf import Mepf
from sfumato.public.extractor import Extractor
from sfumato.public.inception import FidInception
from sfumato.public.perceptual import PerceptualMap
from sfumato.public.view import ExactView

_PART = 500  # images


class KeptRows:
    """A row of numbers for each image, by a name that says what they are."""

    def __init__(
        self, name: str, compute: Callable[[NDArray[np.uint8]], NDArray[np.floating[Any]]]
    ) -> None:
        self._folder, self._compute = CACHE / name, compute
        self._folder.mkdir(parents=True, exist_ok=True)
        self._found: dict[bytes, tuple[NDArray[np.float32], float]] = {}
        for path in sorted(self._folder.glob("*.npz")):
            self._read(path)

    def __call__(self, images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], float]:
        """Give the rows of images, and the seconds that they took."""
        keys = [sha256(image.tobytes() + repr(image.shape).encode()).digest() for image in images]
        missing = {key: place for place, key in enumerate(keys) if key not in self._found}
        for start in range(0, len(missing), _PART):
            now = list(missing)[start : start + _PART]
            self._work_out(now, images[[missing[key] for key in now]])
        rows = [self._found[key] for key in keys]
        return np.stack([row for row, _ in rows]), sum(seconds for _, seconds in rows)

    def _work_out(self, keys: list[bytes], images: NDArray[np.uint8]) -> None:
        started = time.perf_counter()
        rows = self._compute(images).astype(np.float32)
        each = (time.perf_counter() - started) / len(images)
        path = self._folder / f"{sha256(b''.join(keys)).hexdigest()[:16]}.npz"
        part = path.with_suffix(f".{os.getpid()}.part")
        with part.open("wb") as file:
            np.savez(file, keys=np.frombuffer(b"".join(keys), np.uint8), rows=rows, each=each)
        part.replace(path)
        self._read(path)

    def _read(self, path: Path) -> None:
        with np.load(path) as part:
            keys, rows, each = part["keys"].tobytes(), part["rows"], float(part["each"])
        for place, row in enumerate(rows):
            self._found[keys[32 * place : 32 * place + 32]] = (row, each)


class KeptView(ExactView):
    """What a network sees of benchmark images, kept; `seconds` is what it took when it was done."""

    seconds = 0.0

    def __init__(self, network: Extractor, shape: tuple[int, int, int]) -> None:
        super().__init__(network, shape)
        told = sha256(json.dumps(self.describe(), sort_keys=True).encode()).hexdigest()
        self.rows = KeptRows(f"view-{told[:16]}", self._look)

    def __call__(self, batch: Batch) -> NDArray[np.float64]:
        found, seconds = self.rows(batch.pixels.astype(np.uint8).reshape(-1, *self.shape))
        self.seconds += seconds
        return found.astype(np.float64)

    def _look(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        return super().__call__(
            Batch(np.zeros((len(images), 1), np.int32), images.reshape(len(images), -1))
        )


class KeptMap(PerceptualMap):
    """What a network sees in public benchmark images: the same at every epsilon, so it is kept."""

    seconds: ClassVar[float] = 0.0
    """What it took when it was worked out."""
    waited: ClassVar[float] = 0.0
    """What it took in this run."""
    _kept: ClassVar[dict[str, tuple[dict[bytes, int], NDArray[np.int32]]]] = {}
    name: ClassVar[str]
    whole: ClassVar[NDArray[np.uint8]]

    def entries(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Look images up."""
        asked = json.dumps(replace(self, centre=None, squares=0.0).describe(), sort_keys=True)
        if asked not in self._kept:
            self._kept[asked] = self._all(asked)
        places, found = self._kept[asked]
        return found[[places[image.tobytes()] for image in images]].astype(np.float64)

    @property
    def _length(self) -> int:
        return replace(self, centre=None, squares=0.0).dim

    def _all(self, asked: str) -> tuple[dict[bytes, int], NDArray[np.int32]]:
        key = sha256(f"{self.name} {len(self.whole)} {asked}".encode()).hexdigest()[:16]
        path, seconds = CACHE / f"seen-{key}.npy", CACHE / f"seen-{key}.seconds"
        if not seconds.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            kept = np.lib.format.open_memmap(path, "w+", np.int32, (len(self.whole), self._length))
            with timed() as taken:
                for start in range(0, len(self.whole), 1000):
                    part = slice(start, start + 1000)
                    kept[part] = super().entries(self.whole[part])
            kept.flush()
            seconds.write_text(str(taken["seconds"]))
            type(self).waited += taken["seconds"]
        type(self).seconds += float(seconds.read_text())
        return {image.tobytes(): at for at, image in enumerate(self.whole)}, np.load(path, "r")


class KeptMepf(Mepf):
    """The method, with a map that is kept."""

    def _map(self, space: Any, extractor: Any) -> PerceptualMap:
        plain = super()._map(space, extractor)
        return KeptMap(plain.extractor, plain.shape, plain.grid, plain.squares)


class HalfInception(FidInception):
    """Inception in half precision."""

    def _pooled(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return super()._pooled(x).float()


@cache
def inception() -> KeptRows:
    """What Inception sees, kept; in half precision, which is 1% of a feature and twice as fast."""
    network = HalfInception()
    return KeptRows(f"inception-{network.about.digest[:16]}", network.features)
