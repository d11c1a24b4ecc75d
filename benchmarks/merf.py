"""Does DP-MERF reach what its authors published, and how long does it take?

Replace-one and delta = 1e-5, as in Harder et al. (2021); beside each figure the published one.
Run all parts, or the named ones: ``python benchmarks/merf.py mixture tables images speed``.

Classifiers are trained on at most 5,000 synthetic rows or images (the papers: as many as
there are private ones), to keep the time bounded.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness import peak_memory, timed, write_result
from sfumato.codec import Batch
from sfumato.datasets import load
from sfumato.evaluate.classifiers import classifiers
from sfumato.evaluate.grids import sample_grid
from sfumato.evaluate.utility import Examples, train_and_score, train_on_synthetic
from sfumato.methods.merf import MeanEmbedding, Merf
from sfumato.privacy.budget import Budget, Relation
from sfumato.schema import Categorical, Images, Numeric, Schema
from tables import prepare

PICTURES = Path(__file__).parents[1] / "docs" / "images"
MOST_ROWS = 5_000
SEEDS = range(int(os.environ.get("SEEDS", "3")))

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
MIXTURE_NLL = 3.8e5

SPACING, DEVIATION, SIDE = 1.0, 0.2, 5
MODES = SPACING * (np.array([(i, j) for i in range(SIDE) for j in range(SIDE)]) - SIDE // 2)
MODE_CLASS = np.array([(i + 2 * j) % SIDE for i in range(SIDE) for j in range(SIDE)])


def budget(epsilon: float) -> Budget:
    return Budget(epsilon=epsilon, delta=1e-5, relation=Relation.REPLACE_ONE)


def mixture() -> None:
    """25 Gaussians in 5 classes, 90,000 points."""
    rng = np.random.default_rng(0)
    mode = np.repeat(np.arange(len(MODES)), 3600)
    places = MODES[mode] + rng.normal(0, DEVIATION, (len(mode), 2))
    table = _table(places, MODE_CLASS[mode])
    schema = Schema(
        columns={
            "x": Numeric(low=-3, high=3),
            "y": Numeric(low=-3, high=3),
            "class": Categorical(values=tuple(str(label) for label in range(SIDE))),
        }
    )
    runs = []
    for seed in SEEDS:
        method = Merf(target="class", balanced=True, seed=seed)
        with timed() as taken:
            made = method.fit(table, schema, budget(1.0)).sample(90_000, seed=seed)
        runs.append(_mixture_figures(made) | taken)
        print("mixture", runs[-1], flush=True)
        if seed == 0:
            _draw_mixture(table, made)
    result = {"data": _mixture_figures(table), "published_nll": MIXTURE_NLL, "runs": runs}
    write_result("merf_mixture", result)


def _table(places: NDArray[np.float64], labels: NDArray[np.integer[Any]]) -> pa.Table:
    return pa.table({"x": places[:, 0], "y": places[:, 1], "class": labels.astype(str)})


def _mixture_figures(table: pa.Table) -> dict[str, float]:
    places = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    labels = table["class"].to_numpy().astype(int)
    squared = np.square(places[:, None] - MODES).sum(axis=2)
    own = labels[:, None] == MODE_CLASS
    density = np.where(own, np.exp(-squared / (2 * DEVIATION**2)), 0).sum(axis=1)
    density /= len(MODES) * 2 * np.pi * DEVIATION**2
    distance = np.sqrt(squared)
    nearest = np.where(own, distance, np.inf)
    hit = nearest.argmin(axis=1)[nearest.min(axis=1) < 2 * DEVIATION]
    share = np.bincount(hit, minlength=len(MODES)) / len(places)
    return {
        "nll": float(-np.log(np.maximum(density, 1e-300)).sum()),
        "farther_than_4_deviations_from_all": float((distance.min(axis=1) > 4 * DEVIATION).mean()),
        "farther_than_4_deviations_from_own": float((nearest.min(axis=1) > 4 * DEVIATION).mean()),
        "modes_with_half_their_share": int((share > 0.5 / len(MODES)).sum()),
    }


def _draw_mixture(real: pa.Table, made: pa.Table) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
    for axis, table, title in zip(axes, (real, made), ("data", "DP-MERF, ε = 1"), strict=True):
        kept = table.take(np.random.default_rng(0).choice(table.num_rows, 6000, replace=False))
        colours = kept["class"].to_numpy().astype(int)
        axis.scatter(kept["x"], kept["y"], c=colours, s=1, cmap="tab10", vmax=9)
        axis.set_title(title)
        axis.set_aspect("equal")
    figure.tight_layout()
    PICTURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURES / "merf-mixture.png", dpi=100)


def tables() -> None:
    """The eight tables, largest classes thinned as the authors did; twelve classifiers."""
    result: dict[str, Any] = {}
    wanted = os.environ.get("TABLES", ",".join(TABLES)).split(",")
    for name in wanted:
        table = prepare(name, undersample=True)
        runs = []
        for seed in SEEDS:
            with timed() as taken:
                method = Merf(target=table.target, seed=seed)
                made = method.fit(table.train, table.schema, budget(1.0)).sample(seed=seed)
            utility = train_on_synthetic(
                made, table.test, None, table.schema, table.target, "twelve", most_rows=MOST_ROWS
            )
            figures = utility.mean["synthetic"]
            keys = ("roc_auc_hard", "pr_auc_hard", "f1_weighted", "roc_auc", "pr_auc")
            runs.append({key: figures[key] for key in keys if key in figures} | taken)
            print(name, runs[-1], "published", TABLES[name], flush=True)
        mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        result[name] = {"published": TABLES[name], "mean": mean, "runs": runs}
        write_result(f"merf_tables_{name}", result[name])


def images() -> None:
    """MNIST and FashionMNIST: accuracy of twelve classifiers on the test images."""
    schema = Schema(images=Images(height=28, width=28, classes=tuple(range(10))))
    wanted = os.environ.get("IMAGES")
    for (name, epsilon), published in IMAGES.items():
        if wanted and f"{name}-{epsilon:g}" not in wanted.split(","):
            continue
        arrays = load(name)
        private = (arrays["train_x"], arrays["train_y"])
        test = Examples(_unit(arrays["test_x"]), arrays["test_y"].astype(int))
        runs = []
        for seed in SEEDS:
            with timed() as taken:
                made = Merf(seed=seed).fit(private, schema, budget(epsilon)).sample(60_000)
            memory = peak_memory()
            print(name, epsilon, "fitted in", taken, "MB", memory, flush=True)
            if seed == 0:
                PICTURES.mkdir(parents=True, exist_ok=True)
                picture = PICTURES / f"merf-{name}-{epsilon:g}.png"
                picture.write_bytes(sample_grid(made.x, made.y))
            train = Examples(_unit(made.x[:MOST_ROWS]), made.y[:MOST_ROWS].astype(int))
            scored = train_and_score(
                classifiers("twelve", 10, seed),
                {"synthetic": (train, test)},
                10,
                progress=lambda stage, part: print(stage, part, flush=True),
            )["synthetic"]
            accuracy = {learner: figures["accuracy"] for learner, figures in scored.items()}
            mean = float(np.mean(list(accuracy.values())))
            runs.append({"mean": mean, "accuracy": accuracy, "peak_memory_mb": memory} | taken)
            print(name, epsilon, runs[-1], "published", published, flush=True)
        write_result(f"merf_{name}_{epsilon:g}", {"published": published, "runs": runs})


def _unit(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    return (pixels.reshape(len(pixels), -1) / 255).astype(np.float32)


def speed() -> None:
    """The embedding of 60,000 images of 784 pixels in 10,000 features, beside the bare product."""
    schema = Schema(images=Images(height=28, width=28, classes=tuple(range(10))))
    embedding = MeanEmbedding(Merf().layout(schema), 10_000, 0)
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


PARTS = {"mixture": mixture, "tables": tables, "images": images, "speed": speed}


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
