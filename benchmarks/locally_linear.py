"""How exact are locally linear maps, and at what price in privacy and time?

    python benchmarks/locally_linear.py images mnist 2 locally-linear 3    # epsilon 2, three seeds
    python benchmarks/locally_linear.py curves      # over epsilon, maps and projections (MNIST)
    python benchmarks/locally_linear.py tables      # Adult and the simulated patients
    python benchmarks/locally_linear.py speed       # against plain steps; the paper's settings
    python benchmarks/locally_linear.py pictures    # maps, explanations and attributions

Without arguments: everything. Needs the benchmark data (SFUMATO_DATA). The defaults were chosen
among some 60 settings (112 runs) on the last 10,000 training images. The baselines were hardly
tuned: logistic regression takes over the defaults, and one setting was tried for the network. No
setting was chosen by test images.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import sfumato as sf
from harness import Section, mark, percent, picture, read, result, shown, table, timed, write_result
from sfumato.classify.base import Classifier, ClassifierModel
from sfumato.classify.convolutional import Convolutional
from sfumato.classify.locally_linear import LocallyLinear
from sfumato.classify.pictures import COLOURS, feature_bars, map_bank, write_figure
from sfumato.datasets import load, patients, patients_schema
from sfumato.loading import load as load_file
from sfumato.privacy.budget import TrainingSpend
from sfumato.privacy.noise import poisson_sample
from tables import prepare

DELTA = 1e-5
SEEDS = 3
SETS = ("mnist", "fashion_mnist")
PAPER = LocallyLinear(
    maps=30, beta=1 / 30, frequencies=None, projection=300, rate=500 / 60_000, epochs=20, clip=1e-3,
    learning_rate=1e-3,
)  # fmt: skip
MODELS: dict[str, Classifier] = {
    "locally-linear": LocallyLinear(),
    "logistic-regression": LocallyLinear(maps=1),
    "convolutional": Convolutional(epochs=12, learning_rate=0.008),
}
IMAGES = sf.Schema(images=sf.Images(height=28, width=28, classes=tuple(range(10))))


def budget(epsilon: float) -> sf.Budget:
    return sf.Budget(epsilon=epsilon, delta=DELTA)


def without_noise(method: Classifier, data: Any, schema: sf.Schema) -> ClassifierModel:
    """Train with the same steps but no noise and next to no clipping: not private."""
    from sfumato.privacy.dpsgd import as_tensors, first_state, grid_sum, noisy_steps

    layout = method.space(schema)
    learner = method.learner(layout)
    batches = [learner.examples(layout.codec.encode(raw)) for raw in raw_batches(data)]
    spend = TrainingSpend(
        name="none", dim=learner.dim, clip=100.0, noise_multiplier=1.0, rate=method.rate,
        steps=method.schedule.steps, epsilon=1.0, delta=0.5,
    )  # fmt: skip
    rows = as_tensors(tuple(np.concatenate(arrays) for arrays in zip(*batches, strict=True)))
    state = noisy_steps(
        learner,
        method.schedule,
        spend,
        lambda: grid_sum(learner, rows, poisson_sample(len(rows[0]), spend.rate), spend),
        start=first_state(learner),
        save=lambda state: None,
    )
    return method.model_class(
        method=method,
        schema=schema,
        guarantee=sf.Guarantee.of(budget(1), ()),
        weights={k.removeprefix("weights/"): v for k, v in state.arrays.items() if "weights/" in k},
    )


def raw_batches(data: Any) -> list[Any]:
    if isinstance(data, pa.Table):
        return data.to_batches()
    x, y = data
    return [(x[i : i + 2048, ..., None], y[i : i + 2048]) for i in range(0, len(x), 2048)]


def accuracy(model: ClassifierModel, test: dict[str, Any]) -> float:
    return float((model.predict(test["test_x"]) == test["test_y"]).mean())


def fit(name: str, method: Classifier, epsilon: float) -> Any:
    data = load(name)
    return method.fit((data["train_x"], data["train_y"]), IMAGES, budget(epsilon))


def kept(name: str, model: str, epsilon: float) -> Any:
    """Give the first model of `images`, where it was run on this machine; else train one."""
    path = kept_file(name, model, epsilon)
    return load_file(path) if path.exists() else fit(name, MODELS[model], epsilon)


def kept_file(name: str, model: str, epsilon: float) -> Path:
    return Path(tempfile.gettempdir()) / f"locally_linear_{name}_{epsilon:g}_{model}.sfumato"


def images(name: str, epsilon: float, model: str, seeds: int = SEEDS) -> None:
    data = load(name)
    runs = []
    for seed in range(seeds):
        method = replace(MODELS[model], seed=seed)
        with timed() as taken:
            fitted = fit(name, method, epsilon)
        if seed == 0:
            fitted.save(kept_file(name, model, epsilon))
        runs.append({"accuracy": accuracy(fitted, data), "seconds": taken["seconds"]})
        print(name, epsilon, model, seed, runs[-1], flush=True)
        found = [run["accuracy"] for run in runs]
        write_result(
            f"locally_linear_{name}_{epsilon:g}_{model}",
            {
                "accuracy": round(float(np.mean(found)), 4),
                "deviation": round(float(np.std(found)), 4),
                "noise_multiplier": fitted.guarantee.trainings[0].noise_multiplier,
                "runs": runs,
            },
        )


def curves(seeds: int = SEEDS) -> None:
    """Accuracy on MNIST over epsilon, the number of maps, and the size of the inputs.

    Points that the result file has are kept: delete it to run them anew.
    """
    data = load("mnist")
    train = data["train_x"], data["train_y"]
    base = LocallyLinear()
    asked: list[tuple[str, float, LocallyLinear, float]] = [
        *[("epsilon", e, base, e) for e in (0.1, 0.5, 1, 2, 8)],
        *[("maps", m, replace(base, maps=m), 2) for m in (1, 2, 5, 20, 40)],
        *[("frequencies", f**2, replace(base, frequencies=f), 2) for f in (6, 12, 16, 28)],
        *[("projection", p, replace(base, frequencies=None, projection=p), 2) for p in (100, 300)],
    ]
    # The same model is a point of several curves, and of the tables.
    known = {
        (replace(MODELS[model], maps=maps), epsilon): accuracies(f"mnist_{epsilon:g}_{model}")
        for model, maps in (("locally-linear", 20), ("logistic-regression", 1))
        for epsilon in (0.5, 2)
    }
    points = (read("locally_linear_curves") or {}).get("points", [])
    done = {(point["curve"], point["value"]) for point in points}
    for curve, value, method, epsilon in asked:
        if (curve, value) in done:
            continue
        key = replace(method, maps=method.maps or 20), epsilon
        if not known.get(key):
            known[key] = [
                accuracy(replace(method, seed=seed).fit(train, IMAGES, budget(epsilon)), data)
                for seed in range(seeds)
            ]
        plain = [accuracy(without_noise(method, train, IMAGES), data)] if curve != "epsilon" else []
        points.append({"curve": curve, "value": value, "private": known[key], "plain": plain})
        print(points[-1], flush=True)
        write_result("locally_linear_curves", {"points": points})


def accuracies(name: str) -> list[float]:
    return [run["accuracy"] for run in (read(f"locally_linear_{name}") or {}).get("runs", [])]


def tables(seeds: int = SEEDS) -> None:
    """Accuracy and AUC with two maps per class, over epsilon, beside models without privacy."""
    adult = prepare("adult")
    rows = patients(30_000)
    sets = {
        "adult": (adult.train, adult.test, adult.schema, adult.target),
        "patients": (rows.slice(0, 24_000), rows.slice(24_000), patients_schema(), "readmitted"),
    }
    result: dict[str, Any] = {}
    for name, (train, test, schema, target) in sets.items():
        method = LocallyLinear(target=target)
        found: dict[str, Any] = {
            "without noise": mean([scores(without_noise(method, train, schema), test)])
        }
        for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0, 8.0):
            runs = [
                scores(replace(method, seed=seed).fit(train, schema, budget(epsilon)), test)
                for seed in range(seeds)
            ]
            found[f"{epsilon:g}"] = mean(runs)
        result[name] = found | {"boosted trees": boosted(method, train, test, schema)}
        print(name, result[name], flush=True)
        write_result("locally_linear_tables", result)


def scores(model: ClassifierModel, test: pa.Table) -> dict[str, float]:
    truth = test.column(model.method.target).to_pylist()
    chances = model.predict_proba(test)
    right = model.names(chances.argmax(axis=1)) == np.array(truth)
    positive = [label == model.classes[1] for label in truth]
    return {
        "accuracy": float(right.mean()),
        "auc": float(roc_auc_score(positive, chances[:, 1])),
    }


def boosted(method: LocallyLinear, train: pa.Table, test: pa.Table, schema: sf.Schema) -> Any:
    """Give what a strong learner without privacy or explanations reaches on the same inputs."""
    layout = method.space(schema)
    parts = []
    for rows in (train, test):
        batches = [method.codec(schema).encode(raw) for raw in rows.to_batches()]
        inputs = np.concatenate([method.inputs(layout)(batch) for batch in batches])
        labels = np.concatenate([batch.codes[:, layout.class_column] for batch in batches])
        parts.append((inputs, labels))
    learner = HistGradientBoostingClassifier(random_state=0).fit(*parts[0])
    x, y = parts[1]
    auc = roc_auc_score(y, learner.predict_proba(x)[:, 1])
    return mean([{"accuracy": learner.score(x, y), "auc": auc}])


def mean(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}


def speed() -> None:
    """Time a private step against a plain one, and the whole training at the paper's settings."""
    import torch
    from torch import nn

    from sfumato.modelling.network_learner import total_loss
    from sfumato.privacy.gradients import clipped_gradients

    data = load("mnist")
    result: dict[str, Any] = {}
    for model, rows in (("locally-linear", 2000), ("convolutional", 512)):
        learner = MODELS[model].learner(MODELS[model].space(IMAGES))
        batch = learner.space.codec.encode(
            (data["train_x"][:rows, ..., None], data["train_y"][:rows])
        )
        examples = [torch.from_numpy(array) for array in learner.examples(batch)]

        def plain() -> None:
            learner.module.zero_grad()  # noqa: B023
            total_loss(learner.module(examples[0]), examples[1]).backward()  # noqa: B023

        times = {
            "plain": best_time(plain),
            "clipped": best_time(lambda: learner.clipped_sum(examples, 1.0)),  # noqa: B023
        }
        result[model] = times | {"rows": rows, "ratio": times["clipped"] / times["plain"]}
    large = nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )  # fmt: skip
    x, y = torch.rand(256, 1, 28, 28), torch.randint(0, 10, (256,))

    def plain_large() -> None:
        large.zero_grad()
        total_loss(large(x), y).backward()

    times = {
        "plain": best_time(plain_large),
        "clipped": best_time(lambda: clipped_gradients(large, total_loss, x, y, 1.0)),
    }
    result["the paper's network"] = times | {
        "rows": 256,
        "ratio": times["clipped"] / times["plain"],
    }
    with timed() as taken:
        fitted = PAPER.fit((data["train_x"], data["train_y"]), IMAGES, budget(2))
    result["the paper's settings"] = {
        "seconds": taken["seconds"],
        "accuracy": accuracy(fitted, data),
        "noise_multiplier": fitted.guarantee.trainings[0].noise_multiplier,
    }
    print(result)
    write_result("locally_linear_speed", result)


def best_time(work: Callable[[], Any], repeats: int = 7) -> float:
    found = []
    for _ in range(repeats):
        with timed() as taken:
            work()
        found.append(taken["seconds"])
    return min(found)


def pictures() -> None:
    draw_curves()
    for name in SETS:
        data = load(name)
        fitted = {e: kept(name, "locally-linear", e) for e in (0.5, 2)}
        write_figure(
            picture(f"locally-linear-{name}-maps.png"), map_bank(fitted[2].maps(), range(10), 12)
        )
        network = kept(name, "convolutional", 2)
        draw_comparison(name, data["test_x"], fitted, network)
    adult = prepare("adult")
    model = LocallyLinear(target=adult.target).fit(adult.train, adult.schema, budget(1))
    write_figure(
        picture("locally-linear-adult.png"), feature_bars(model.explain(adult.test, row=0))
    )


def draw_comparison(name: str, x: Any, fitted: dict[float, Any], network: Any) -> None:
    """Draw inputs, the top maps at two budgets, and attributions of the network (Figs 2 and 4)."""
    from sfumato.classify.attribution import integrated_gradients, smooth_gradients

    rows = [0, 1, 2, 3]
    figure = Figure(figsize=(11, 1.35 * len(rows) + 0.3), layout="constrained")
    axes = figure.subplots(len(rows), 9)
    for line, row in zip(axes, rows, strict=True):
        line[0].imshow(x[row], cmap="gray")
        line[0].set_title("input", fontsize=8)
        place = 1
        for epsilon, model in fitted.items():
            found = model.explain(x, row)
            for each in found.maps:
                show(
                    line[place],
                    each.weights,
                    f"{found.prediction}: {each.share:.0%} (ε = {epsilon:g})",
                )
                place += 1
        show(line[7], integrated_gradients(network, x, row), "network: IG (ε = 2)")
        show(line[8], smooth_gradients(network, x, row), "network: SG (ε = 2)")
        for axis in line:
            axis.set_axis_off()
    write_figure(picture(f"locally-linear-{name}.png"), figure)


def show(axis: Any, weights: Any, title: str) -> None:
    flat = weights.mean(axis=-1)
    most = float(np.abs(flat).max()) or 1.0
    axis.imshow(flat, cmap=COLOURS, vmin=-most, vmax=most)
    axis.set_title(title, fontsize=8)


def draw_curves() -> None:
    """Draw accuracy over epsilon, maps and inputs (Fig. 5)."""
    points = result("locally_linear_curves")["points"]
    figure = Figure(figsize=(10, 3), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    panels = [("epsilon", axes[0], "ε"), ("maps", axes[1], "maps per class")]
    panels += [
        ("frequencies", axes[2], "inputs of a map"),
        ("projection", axes[2], "inputs of a map"),
    ]
    for curve, axis, label in panels:
        own = sorted((p for p in points if p["curve"] == curve), key=lambda p: p["value"])
        if not own:
            continue
        values = [p["value"] for p in own]
        means = [100 * np.mean(p["private"]) for p in own]
        spread = [200 * np.std(p["private"]) for p in own]
        named = {"frequencies": "low frequencies", "projection": "random projections"}.get(curve)
        axis.errorbar(values, means, spread, marker="o", capsize=3, label=named)
        plain = [100 * p["plain"][0] for p in own if p["plain"]]
        if plain:
            axis.plot(values, plain, "--", color=axis.lines[-1].get_color(), alpha=0.5)
        axis.set_xscale("log")
        axis.set_xlabel(label)
        shown = ("frequencies", "projection") if axis is axes[2] else (curve,)
        ticks = sorted({p["value"] for p in points if p["curve"] in shown})
        axis.set_xticks(ticks, [f"{value:g}" for value in ticks], fontsize=7, rotation=45)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy on MNIST, %")
    axes[2].legend(fontsize=8, loc="lower right")
    write_figure(picture("locally-linear-curves.png"), figure)


def main() -> None:
    if sys.argv[1:2] == ["images"]:
        images(sys.argv[2], float(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
        return
    if len(sys.argv) == 1:
        for model in MODELS:
            for name in SETS:
                for epsilon in (2.0, 0.5):
                    images(name, epsilon, model)
    parts = {"curves": curves, "tables": tables, "speed": speed, "pictures": pictures}
    for name, part in parts.items():
        if sys.argv[1:] in ([], [name]):
            part()


PUBLISHED = {("mnist", "2"): 94.2, ("mnist", "0.5"): 91.8,
             ("fashion_mnist", "2"): 83.2, ("fashion_mnist", "0.5"): 80.7}  # fmt: skip


def images_table() -> str:
    rows = []
    for (name, epsilon), paper in PUBLISHED.items():
        found = [result(f"locally_linear_{name}_{epsilon}_{model}") for model in MODELS]
        slowest = max(run["seconds"] for run in found[0]["runs"])
        cells = [f"{percent(each['accuracy'])} ± {percent(each['deviation'])} ({len(each['runs'])})"
                 for each in found]  # fmt: skip
        rows.append([name + mark("classify", *found), epsilon, *cells, f"{paper:.1f}",
                     f"{slowest:.0f} s"])  # fmt: skip
    heads = ["images", "epsilon", "locally linear", "logistic regression", "network", "published",
             "slowest fit"]  # fmt: skip
    return table(heads, rows)


def tables_table() -> str:
    found = result("locally_linear_tables")
    kinds = ["0.1", "0.2", "0.5", "1", "2", "8", "without noise", "boosted trees"]
    rows = [
        [name + mark("classify", found),
         *(f"{100 * found[name][k]['accuracy']:.1f} / {found[name][k]['auc']:.3f}" for k in kinds)]
        for name in ("adult", "patients")
    ]  # fmt: skip
    return table(["table", *(f"ε = {k}" if k[0].isdigit() else k for k in kinds)], rows)


def body() -> str:
    found = result("locally_linear_speed")
    ratios = ", ".join(f"{k} {v['ratio']:.1f}" for k, v in found.items() if "ratio" in v)
    own = found["the paper's settings"]
    return (
        images_table()
        + "\n" + shown("Accuracy over epsilon, maps and inputs", "locally-linear-curves.png") + "\n"
        + "\nTables, two maps per class: accuracy in per cent / AUC, mean of three runs.\n\n"
        + tables_table()
        + "\nBefore sums were on a grid, a clipped gradient step took this many times a plain one: "
        f"{ratios}. MNIST at the paper's settings (30 maps, 300 random projections, 20 epochs of "
        f"batches of 500) "
        f"took {own['seconds']:.0f} s on one core; their small learning rate, which falls to zero "
        f"here, reaches "
        f"{100 * own['accuracy']:.1f}% at epsilon = 2.\n"
    )  # fmt: skip


def glance() -> list[list[str]]:
    maps, network = (
        percent(result(f"locally_linear_mnist_2_{model}")["accuracy"])
        for model in ("locally-linear", "convolutional")
    )
    return [
        ["MNIST: a classifier that explains itself", "2", f"**{maps}** (`classify`)",
         f"published 94.2, a private CNN {network}", "half a minute; the CNN was hardly tuned"],
    ]  # fmt: skip


SECTION = Section(
    "Locally linear maps",
    "locally_linear.py",
    """\
Accuracy on test images in per cent, mean ± standard deviation (runs), all training images. The
defaults were chosen among some 60 settings on the last 10,000 training images. The baselines
were tuned less: logistic regression is the same model with one map per class and the same
settings; the network (22,000 weights, 12 epochs) was tried with one setting, on MNIST, and is
what two cores could train in minutes. So read its column as a low mark, not as what networks
can do. Published: Harder, Bauer and Park (2020), by the moments accountant. Since these runs,
gradients are summed in whole numbers on a grid ([privacy](privacy.md)); only the locally linear
column at epsilon = 2 was run again with that.""",
    body,
    glance,
)


if __name__ == "__main__":
    main()
