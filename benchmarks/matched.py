"""The papers' experiments with generators that meet mean embeddings: what both scripts share.

Replace-one and delta = 1e-5, as in Harder et al. (2021) and Vinaroz et al. (2022). Classifiers are
trained on at most 5,000 synthetic rows or images (the papers: as many as there are private ones),
to keep the time bounded. Each part writes after every run, and a run that is there is not made
again, so an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness import RESULTS, peak_memory, timed, write_result
from sfumato.datasets import load
from sfumato.evaluation.classifiers import classifiers
from sfumato.evaluation.grids import sample_grid
from sfumato.evaluation.utility import LabelledRows, train_and_score, train_on_synthetic
from sfumato.papers.embedding.base import EmbeddingMethod
from sfumato.privacy.budget import Budget, Relation
from sfumato.schema import Categorical, Images, Numeric, Schema
from tables import prepare

PICTURES = Path(__file__).parents[1] / "docs" / "images"
MOST_ROWS = 5_000
SEEDS = range(int(os.environ.get("SEEDS", "3")))

SPACING, DEVIATION, SIDE = 1.0, 0.2, 5
MODES = SPACING * (np.array([(i, j) for i in range(SIDE) for j in range(SIDE)]) - SIDE // 2)
MODE_CLASS = np.array([(i + 2 * j) % SIDE for i in range(SIDE) for j in range(SIDE)])

MIXTURE_NLL = 3.8e5  # DP-MERF's, Harder et al. (2021)


def budget(epsilon: float) -> Budget:
    return Budget(epsilon=epsilon, delta=1e-5, relation=Relation.REPLACE_ONE)


def recorded(name: str) -> list[dict[str, Any]]:
    """Give the runs of a study that are there."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["runs"] if path.exists() else []


def record(name: str, runs: list[dict[str, Any]], **about: Any) -> None:
    """Write the runs of a study, with the mean of their figures."""
    keys = [key for key, value in runs[0].items() if isinstance(value, int | float)]
    mean = {key: float(np.mean([run[key] for run in runs])) for key in keys}
    write_result(name, {**about, "mean": mean, "runs": runs})


def mixture(make: type[EmbeddingMethod]) -> None:
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
    name = f"{make.name}_mixture"
    runs = recorded(name)
    for seed in SEEDS[len(runs) :]:
        method = make(target="class", balanced=True, seed=seed)
        with timed() as taken:
            made = method.fit(table, schema, budget(1.0)).sample(90_000, seed=seed)
        runs.append(_mixture_figures(made) | taken)
        print(name, runs[-1], flush=True)
        if seed == 0:
            _draw_mixture(table, made, make.name)
        record(name, runs, data=_mixture_figures(table), published_nll=MIXTURE_NLL)


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


def _draw_mixture(real: pa.Table, made: pa.Table, name: str) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
    titles = ("data", f"DP-{name.upper()}, ε = 1")
    for axis, table, title in zip(axes, (real, made), titles, strict=True):
        kept = table.take(np.random.default_rng(0).choice(table.num_rows, 6000, replace=False))
        colours = kept["class"].to_numpy().astype(int)
        axis.scatter(kept["x"], kept["y"], c=colours, s=1, cmap="tab10", vmax=9)
        axis.set_title(title)
        axis.set_aspect("equal")
    figure.tight_layout()
    PICTURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURES / f"{name}-mixture.png", dpi=100)


def tables(
    make: type[EmbeddingMethod], published: dict[str, tuple[float, ...]], kept: Mapping[str, float]
) -> None:
    """The eight tables, largest classes thinned as the authors did; twelve classifiers."""
    wanted = os.environ.get("TABLES", ",".join(published)).split(",")
    for seed in SEEDS:
        for table_name in wanted:
            name = f"{make.name}_tables_{table_name}"
            runs = recorded(name)
            if len(runs) > seed:
                continue
            table = prepare(table_name, kept)
            with timed() as taken:
                method = make(target=table.target, seed=seed)
                made = method.fit(table.train, table.schema, budget(1.0)).sample(seed=seed)
            utility = train_on_synthetic(
                made, table.test, None, table.schema, table.target, "twelve", most_rows=MOST_ROWS
            )
            figures = utility.mean["synthetic"]
            keys = ("roc_auc_hard", "pr_auc_hard", "f1_weighted", "roc_auc", "pr_auc")
            runs.append({key: figures[key] for key in keys if key in figures} | taken)
            print(name, runs[-1], "published", published[table_name], flush=True)
            record(name, runs, published=published[table_name])


def images(make: type[EmbeddingMethod], published: dict[tuple[str, float], float]) -> None:
    """MNIST and FashionMNIST: accuracy of twelve classifiers on the test images."""
    wanted = os.environ.get("IMAGES")
    for seed in SEEDS:
        for (data, epsilon), figure in published.items():
            if wanted and f"{data}-{epsilon:g}" not in wanted.split(","):
                continue
            name = f"{make.name}_{data}_{epsilon:g}"
            runs = recorded(name)
            if len(runs) <= seed:
                runs.append(_image_run(make, data, epsilon, seed))
                print(name, runs[-1], "published", figure, flush=True)
                record(name, runs, published=figure)


def _image_run(make: type[EmbeddingMethod], data: str, epsilon: float, seed: int) -> dict[str, Any]:
    schema = Schema(images=Images(height=28, width=28, classes=tuple(range(10))))
    arrays = load(data)
    private = (arrays["train_x"], arrays["train_y"])
    test = LabelledRows(_unit(arrays["test_x"]), arrays["test_y"].astype(int))
    with timed() as taken:
        made = make(seed=seed).fit(private, schema, budget(epsilon)).sample(60_000, seed=seed)
    memory = peak_memory()
    if seed == 0:
        PICTURES.mkdir(parents=True, exist_ok=True)
        picture = PICTURES / f"{make.name}-{data}-{epsilon:g}.png"
        picture.write_bytes(sample_grid(made.x, made.y))
    train = LabelledRows(_unit(made.x[:MOST_ROWS]), made.y[:MOST_ROWS].astype(int))
    learners = classifiers("twelve", 10, seed)
    scored = train_and_score(learners, {"synthetic": (train, test)}, 10)["synthetic"]
    accuracy = {learner: figures["accuracy"] for learner, figures in scored.items()}
    mean = float(np.mean(list(accuracy.values())))
    return {"accuracy_of_twelve": mean, "accuracy": accuracy, "peak_memory_mb": memory} | taken


def _unit(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    return (pixels.reshape(len(pixels), -1) / 255).astype(np.float32)


def run(parts: dict[str, Callable[[], None]], wanted: Iterable[str]) -> None:
    """Run the named parts, or all."""
    for part in list(wanted) or parts:
        parts[part]()
