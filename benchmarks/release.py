"""How long do exact sums and exact noise take?

Noise per coordinate, and the sum of a quantised feature map beside computing its features alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import Section, mark, result, table, timed, write_result
from sfumato.data.batch import Batch
from sfumato.privacy.noise import discrete_gaussian
from sfumato.statistics.algebra import Quantized

ROWS, INPUTS, FEATURES = 20_000, 784, 2_000
NUMBERS = 5_000_000


@dataclass(frozen=True, eq=False)
class Waves:
    """Random Fourier features of norm 1."""

    frequencies: NDArray[np.float32]
    norm: float = 1.0
    nonnegative: bool = False

    @property
    def dim(self) -> int:
        return 2 * self.frequencies.shape[1]

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        angles = batch.unit @ self.frequencies
        half = angles.shape[1]
        waves = np.empty((len(batch), 2 * half), np.float32)
        np.cos(angles, out=waves[:, :half])
        np.sin(angles, out=waves[:, half:])
        waves *= half**-0.5
        return waves

    def describe(self) -> dict[str, Any]:
        return {"waves": self.dim}


def main() -> None:
    rng = np.random.default_rng(0)
    noise = {}
    for bits in (0, 2, 10, 30, 40, 55):
        with timed() as taken:
            discrete_gaussian(NUMBERS, 2.0**bits)
        noise[f"2^{bits}"] = taken["seconds"] / NUMBERS * 1e6
    waves = Waves(rng.normal(0, 0.1, (INPUTS, FEATURES // 2)).astype(np.float32))
    statistic = Quantized(waves)
    batches = [
        Batch(np.zeros((500, 1), np.int32), rng.random((500, INPUTS), dtype=np.float32))
        for _ in range(ROWS // 500)
    ]
    ratios = []
    for _ in range(3):
        with timed() as alone:
            for batch in batches:
                waves(batch)
        with timed() as summed:
            for batch in batches:
                statistic.sum(batch)
        ratios.append(summed["seconds"] / alone["seconds"])
    result = {
        "noise_microseconds_per_number": noise,
        "rows": ROWS,
        "features": FEATURES,
        "quantised_sum_over_features_alone": median(ratios),
    }
    print(result)
    write_result("release", result)


def body() -> str:
    found = result("release")
    rows = [
        [f"noise of scale {scale}, a number{mark('noise', found)}", f"{micro:.2f} µs", "0.3 µs"]
        for scale, micro in found["noise_microseconds_per_number"].items()
    ]
    ratio = f"{found['quantised_sum_over_features_alone']:.2f}"
    rows.append([f"quantised sum over its features alone{mark('noise', found)}", ratio, "2"])
    return table(["what", "measured", "aim, at most"], rows)


SECTION = Section(
    "Sums and noise",
    "release.py",
    "Exact discrete Gaussian noise on one core, and an exact sum of features beside computing "
    "these "
    "features alone.",
    body,
)


if __name__ == "__main__":
    main()
