"""The papers' experiments with generators that meet mean embeddings: what both scripts share.

Replace-one and delta = 1e-5, as in Harder et al. (2021) and Vinaroz et al. (2022). Classifiers are
trained on at most 5,000 synthetic rows or images (the papers: as many as there are private ones),
to keep the time bounded. Each part writes after every run, and a run that is there is not made
again, so an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness import (
    digits,
    mark,
    mean_of,
    peak_memory,
    picture,
    read,
    result,
    stamp,
    table,
    timed,
    write_result,
)
from sfumato.datasets import load
from sfumato.evaluation.classifiers import classifiers
from sfumato.evaluation.grids import sample_grid
from sfumato.evaluation.utility import LabelledRows, train_and_score, train_on_synthetic
from sfumato.papers.embedding.base import EmbeddingMethod
from sfumato.privacy.budget import Budget, Relation
from sfumato.schema import Categorical, Images, Numeric, Schema
from tables import prepare

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
    return (read(name) or {}).get("runs", [])


def record(name: str, runs: list[dict[str, Any]], **about: Any) -> None:
    """Write the runs of a study, with the mean of their figures."""
    keys = [key for key, value in runs[0].items() if isinstance(value, int | float)]
    mean = {key: float(np.mean([run[key] for run in runs])) for key in keys}
    write_result(name, {**about, "mean": mean, "runs": runs}, collected=True)


def mixture(make: type[EmbeddingMethod]) -> None:
    """25 Gaussians in 5 classes, 90,000 points."""
    rng = np.random.default_rng(0)
    mode = np.repeat(np.arange(len(MODES)), 3600)
    places = MODES[mode] + rng.normal(0, DEVIATION, (len(mode), 2))
    points = _table(places, MODE_CLASS[mode])
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
            made = method.fit(points, schema, budget(1.0)).sample(90_000, seed=seed)
        runs.append(_mixture_figures(made) | taken | stamp())
        print(name, runs[-1], flush=True)
        if seed == 0:
            _draw_mixture(points, made, make.name)
        record(name, runs, data=_mixture_figures(points), published_nll=MIXTURE_NLL)


def _table(places: NDArray[np.float64], labels: NDArray[np.integer[Any]]) -> pa.Table:
    return pa.table({"x": places[:, 0], "y": places[:, 1], "class": labels.astype(str)})


def _mixture_figures(points: pa.Table) -> dict[str, float]:
    places = np.stack([points["x"].to_numpy(), points["y"].to_numpy()], axis=1)
    labels = points["class"].to_numpy().astype(int)
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
    for axis, points, title in zip(axes, (real, made), titles, strict=True):
        kept = points.take(np.random.default_rng(0).choice(points.num_rows, 6000, replace=False))
        colours = kept["class"].to_numpy().astype(int)
        axis.scatter(kept["x"], kept["y"], c=colours, s=1, cmap="tab10", vmax=9)
        axis.set_title(title)
        axis.set_aspect("equal")
    figure.tight_layout()
    figure.savefig(picture(f"{name}-mixture.png"), dpi=100)


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
            prepared = prepare(table_name, kept)
            with timed() as taken:
                method = make(target=prepared.target, seed=seed)
                made = method.fit(prepared.train, prepared.schema, budget(1.0)).sample(seed=seed)
            utility = train_on_synthetic(
                made,
                prepared.test,
                None,
                prepared.schema,
                prepared.target,
                "twelve",
                most_rows=MOST_ROWS,
            )
            figures = utility.mean["synthetic"]
            keys = ("roc_auc_hard", "pr_auc_hard", "f1_weighted", "roc_auc", "pr_auc")
            runs.append({key: figures[key] for key in keys if key in figures} | taken | stamp())
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
        sheet = picture(f"{make.name}-{data}-{epsilon:g}.png")
        sheet.write_bytes(sample_grid(made.x, made.y))
    train = LabelledRows(_unit(made.x[:MOST_ROWS]), made.y[:MOST_ROWS].astype(int))
    learners = classifiers("twelve", 10, seed)
    scored = train_and_score(learners, {"synthetic": (train, test)}, 10)["synthetic"]
    accuracy = {learner: figures["accuracy"] for learner, figures in scored.items()}
    mean = float(np.mean(list(accuracy.values())))
    return (
        {"accuracy_of_twelve": mean, "accuracy": accuracy, "peak_memory_mb": memory}
        | taken
        | stamp()
    )


def _unit(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    return (pixels.reshape(len(pixels), -1) / 255).astype(np.float32)


def run(parts: dict[str, Callable[[], None]], wanted: Iterable[str]) -> None:
    """Run the named parts, or all."""
    for part in list(wanted) or parts:
        parts[part]()


def tables_table(method: str, title: str, published: dict[str, tuple[float, ...]]) -> str:
    """Show the papers' tables."""
    rows = []
    for name, figures in published.items():
        found = result(f"{method}_tables_{name}")
        ours = found["mean"]
        labels, scores = (
            (["roc_auc_hard", "pr_auc_hard"], ["roc_auc", "pr_auc"])
            if len(figures) == 2
            else (["f1_weighted"], ["roc_auc"])
        )
        rows.append([name + mark(method, *found["runs"]),
                     *(" / ".join(digits(ours, *keys, of=3)) for keys in (labels, scores)),
                     " / ".join(f"{figure:.3f}" for figure in figures),
                     f"{ours['seconds']:.0f} s", str(len(found["runs"]))])  # fmt: skip
    return table(["table", "labels", "scores", title, "time", "seeds"], rows)


def mixture_told(method: str) -> str:
    """Tell of the 25 Gaussians."""
    found = result(f"{method}_mixture")
    runs = found["runs"]
    nll = sorted(run["nll"] for run in runs)
    modes = sorted(run["modes_with_half_their_share"] for run in runs)
    far = max(run["farther_than_4_deviations_from_all"] for run in runs)
    return (
        f"\n25 Gaussians in 5 classes, 90,000 points, epsilon = 1, {len(runs)} seeds"
        f"{mark(method, *runs)}: {modes[0]} to {modes[-1]} of 25 modes have at least half their "
        f"share; "
        f"at most {far:.1%} of samples lie farther than 4 deviations from every mode; NLL "
        f"{nll[0]:.3g} to "
        f"{nll[-1]:.3g} (the data themselves: {found['data']['nll']:.3g}; DP-MERF published: "
        f"3.8e5).\n"
    )


def images_table(method: str, published: dict[tuple[str, float], float]) -> str:
    """Show the accuracy of the twelve classifiers on images."""
    rows = []
    for name, epsilon in published:
        found = result(f"{method}_{name}_{epsilon:g}")
        runs = found["runs"]
        scores = [
            mean_of(runs, "accuracy_of_twelve"),
            found["published"],
            mean_of(runs, "accuracy", "logistic regression"),
            mean_of(runs, "accuracy", "multi-layer perceptron"),
        ]
        cost = f"{mean_of(runs, 'seconds'):.0f} s, {mean_of(runs, 'peak_memory_mb'):.0f} MB"
        title, figures = name + mark(method, *runs), [f"{score:.3f}" for score in scores]
        rows.append([title, f"{epsilon:g}", *figures, cost, str(len(runs))])
    heads = ["set", "epsilon", "twelve", "published or aim", "LR", "MLP", "cost", "seeds"]
    return (
        "\nAccuracy on real test images, mean of the twelve classifiers, trained on 5,000 "
        "synthetic images:"
        "\n\n" + table(heads, rows)
    )


PROTOCOL = """\
Replace-one; tables at epsilon = 1. *Labels*: ROC and PRC (average precision) of what twelve
classifiers predict, trained on at most 5,000 synthetic rows, or weighted F1. *Scores*: the same
areas of their scores. Times are of one thread of a machine at full load."""
