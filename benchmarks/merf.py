"""Does DP-MERF reach what its authors published, and how long does it take?

Run all parts, or the named ones: ``python benchmarks/merf.py mixture tables images speed
memory``.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import matched
from harness import Section, peak_memory, result, timed, write_result
from sfumato.data.batch import Batch
from sfumato.papers.embedding.merf import MeanEmbedding, Merf
from sfumato.schema import Images, Numeric, Schema
from tables import HARDER

# Harder et al. (2021): Table 1 (ROC and PRC areas of hard labels, or weighted F1), Tables 9, 10
TABLES = {
    "adult": (0.650, 0.564),
    "census": (0.686, 0.358),
    "cervical": (0.545, 0.184),
    "credit": (0.772, 0.637),
    "epileptic": (0.611, 0.340),
    "isolet": (0.547, 0.404),
    "covtype": (0.467,),
    "intrusion": (0.850,),
}
IMAGES = {
    ("mnist", 1.0): 0.652,
    ("mnist", 0.2): 0.610,
    ("fashion_mnist", 1.0): 0.616,
    ("fashion_mnist", 0.2): 0.526,
}


def speed() -> None:
    """The embedding of 60,000 images of 784 pixels in 10,000 features, beside the bare product."""
    schema = Schema(images=Images(height=28, width=28, classes=tuple(range(10))))
    embedding = MeanEmbedding(Merf().point_space(schema), 10_000, 0)
    statistic, frequencies = embedding.statistic, embedding.fourier.frequencies
    rng = np.random.default_rng(0)
    bare = summed = 0.0
    for _ in range(30):
        pixels = rng.integers(0, 256, (2000, 784)).astype(np.float32) / 255
        batch = Batch(rng.integers(0, 10, (2000, 1)).astype(np.int32), pixels)
        with timed() as taken:
            angles = pixels @ frequencies
            np.cos(angles).sum()
            np.sin(angles).sum()
        bare += taken["seconds"]
        with timed() as taken:
            statistic.sum(batch)
        summed += taken["seconds"]
    result = {"rows": 60_000, "bare_seconds": bare, "statistic_seconds": summed}
    result |= {"ratio": summed / bare, "peak_memory_mb": peak_memory()}
    print("speed", result)
    write_result("merf_speed", result)


def memory() -> None:
    """The peak of a process that fits a file, with 100,000 rows and with a million."""
    found = {}
    for rows in (100_000, 1_000_000):
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            found[str(rows)] = fresh.submit(_peak_of_fit, rows).result()
        print("memory", rows, found[str(rows)], flush=True)
    write_result("merf_memory", {"peak_memory_mb": found})


def _peak_of_fit(rows: int) -> float:
    names = [f"column {i}" for i in range(10)]
    schema = Schema(columns={name: Numeric(low=0, high=1) for name in names})
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        with path.open("w") as file:
            print(*names, sep=",", file=file)
            for _ in range(rows // 10_000):
                np.savetxt(file, rng.random((10_000, 10)), fmt="%.4f", delimiter=",")
        Merf(steps=1).fit(path, schema, matched.budget(1.0))
    return peak_memory()


PARTS = {
    "mixture": partial(matched.mixture, Merf),
    "tables": partial(matched.tables, Merf, TABLES, HARDER),
    "images": partial(matched.images, Merf, IMAGES),
    "speed": speed,
    "memory": memory,
}


def body() -> str:
    memory = result("merf_memory")["peak_memory_mb"]
    peaks = ", ".join(f"{mb:.0f} MB for {int(rows):,} rows" for rows, mb in memory.items())
    return (
        matched.tables_table("merf", "DP-MERF", TABLES)
        + matched.mixture_told("merf")
        + matched.images_table("merf", IMAGES)
        + "\nThe embedding of 60,000 x 784 with 10,000 features took "
        f"{result('merf_speed')['ratio']:.2f} times the bare product with the same waves. Peak "
        f"memory "
        f"of a process that fits a csv file of ten numbers: {peaks}.\n"
    )


SECTION = Section(
    "merf",
    "merf.py",
    matched.PROTOCOL + " Beside: Harder et al. (2021), Table 1.",
    body,
)


if __name__ == "__main__":
    matched.run(PARTS, sys.argv[1:])
