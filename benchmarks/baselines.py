"""All methods side by side, in one harness with one accounting.

    python benchmarks/baselines.py mnist gan 1 0                  # set, method, epsilon, seed
    python benchmarks/baselines.py mnist gan 1 0 start=public     # with other settings
    python benchmarks/baselines.py all                            # every row that is not there yet
    python benchmarks/baselines.py all mnist dre                  # of those, the ones so named
    python benchmarks/baselines.py papers                         # gan, as the papers measure
    python benchmarks/baselines.py sheet mnist 1                  # a picture of all methods

Add-remove, delta = 1e-5. Epsilon "inf" leaves the noise out: of `merf`, that is the full mean
embedding without privacy. Three more methods are ends of the scale: "real" images themselves;
"decoded", the private images' own vectors through the public decoder; "public" images, drawn all
alike. Public images are those of `latent_sets.py`; methods that look at private images through
public networks have its 10,000 private ones, for looking takes long.

MNIST and FashionMNIST are judged as in `images.py`: logistic regression and an MLP on 10,000
generated images, and how 5,000 of them look to a small network that was trained on real ones.
CIFAR-10 as in `latent.py`, Adult as in `tabular.py`. Each run adds a row to the result; a row that
is there is not run again. Needs the benchmark data (SFUMATO_DATA).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import latent
import matched
import sfumato as sf
from harness import (
    CACHE,
    SHOWN,
    SOURCES,
    Section,
    add_run,
    mark,
    mean_of,
    peak_memory,
    picture,
    read,
    result,
    runs_of,
    shown,
    table,
    timed,
)
from images import MOST_FOR_OTHERS, looks, schema
from latent_sets import Sets
from sfumato.datasets import load
from sfumato.evaluation import train_on_synthetic
from sfumato.evaluation.frechet import unit_pixels
from sfumato.papers.gan.method import Gan
from sfumato.registry import method_class
from tables import HARDER, prepare

NO_NOISE = 1e4  # the epsilon that stands for "inf"
OF_CLASS = 2  # images of each class on the sheet
GANS = ("gan", "gan start=public", "gan space=features")
ENDS = ("real inf", "decoded inf", "public inf")
IMAGE_ROWS = (
    "gan 1", *ENDS, "gan 10", "gan 1 start=public", "gan 1 space=features", "gan 0.2",
    "merf inf", "merf 1", "hp 1", "mge 1", "dre 1", "mepf 1", "gan 10 space=features",
    "gan 0.2 space=features",
)  # fmt: skip
PLAN = {
    "mnist": IMAGE_ROWS,
    "fashion_mnist": IMAGE_ROWS,
    "adult": ("gan 1", "hp 1", "merf 1", "gan 10", "merf inf"),
    "cifar10": (*(f"gan {each} space=features" for each in (1, 10)), *ENDS),
}

# Harder et al. (2021), Tables 9, 10 and 1: the better of DP-CGAN and DP-GAN, those of images at
# epsilon 9.6, for they publish none at 1.
PUBLISHED_IMAGES = {("mnist", 1.0): 0.500, ("fashion_mnist", 1.0): 0.457}
PUBLISHED_TABLES = {"adult": (0.511, 0.445)}


def run(name: str, kind: str, epsilon: float, seed: int, settings: dict[str, Any]) -> Any:
    """Fit, draw and judge once."""
    budget = sf.Budget(epsilon=min(epsilon, NO_NOISE), delta=1e-5)
    if name == "adult":
        return run_table(kind, budget, seed, settings)
    seen = kind in ("mge", "dre", "decoded") or "space" in settings  # by a public network
    sets = image_sets(name, few=seen)
    rng = np.random.default_rng(seed)
    n = latent.JUDGED[3] if name == "cifar10" else MOST_FOR_OTHERS
    pair = None
    if seen or "start" in settings:
        file, pair, _ = latent.pair_of(name, "gallery", sets)
        settings = {"pair": file, **settings}
        if seen:
            pair.encoder.of_images(sets.x)  # which is kept: its time is told apart
        pair.encoder.view.seconds = 0.0  # type: ignore[attr-defined]
    started = time.process_time()
    with timed() as taken:
        if kind == "public":
            places = rng.integers(len(sets.public), size=n)
            x, y = sets.public[places], rng.integers(10, size=n)
        elif kind in ("real", "decoded"):
            places = rng.choice(len(sets.x), min(n, len(sets.x)), replace=False)
            x, y = sets.x[places], sets.y[places]
            if kind == "decoded":
                x = pair.decode(pair.encoder.of_images(x), seed)
        else:
            method: Any = method_class(kind)(seed=seed, **settings)  # type: ignore[call-arg]
            drawn = method.fit((sets.x, sets.y), schema(sets.x.shape[1:]), budget).sample(
                n, seed=seed
            )
            x, y = drawn.x.reshape(-1, *sets.x.shape[1:]), drawn.y
    told = _told(taken["seconds"], started)
    if pair and pair.encoder.view.seconds:  # type: ignore[attr-defined]
        told["seconds of encoding"] = pair.encoder.view.seconds  # type: ignore[attr-defined]
    _keep_for_sheet(name, kind, epsilon, settings, x, y)
    if name == "cifar10":
        return told | latent.judged(name, sets, x, y, seed) | latent.looked_at(name, sets, x)
    return told | judged(name, sets, x, y, seed)


def image_sets(name: str, few: bool) -> Sets:
    """Give private and public images; few private ones where a network has to look at each."""
    sets = latent.private_and_public(name)
    if few or name == "cifar10":
        return sets
    whole = load(name)
    return replace(sets, x=whole["train_x"][..., None], y=whole["train_y"].astype(np.int64))


def run_table(kind: str, budget: sf.Budget, seed: int, settings: dict[str, Any]) -> Any:
    """Fit Adult, draw and judge once."""
    table = prepare("adult")
    method: Any = method_class(kind)(target=table.target, seed=seed, **settings)  # type: ignore[call-arg]
    started = time.process_time()
    with timed() as taken:
        drawn = method.fit(table.train, table.schema, budget).sample(seed=seed)
    told = _told(taken["seconds"], started)
    found = train_on_synthetic(drawn, table.test, None, table.schema, table.target, "six")
    return told | {"AUC": found.mean["synthetic"]["roc_auc"]}


def _told(seconds: float, started: float) -> dict[str, float]:
    """Tell what fitting and drawing took: also of the processor, which others use, too."""
    busy = time.process_time() - started
    return {"seconds": seconds, "processor seconds": busy, "megabytes": peak_memory()}


def judged(name: str, sets: Sets, x: Any, y: Any, seed: int) -> dict[str, float]:
    """Train on drawn images, test on real ones; and look at the drawn ones."""
    flat, test = unit_pixels(x), unit_pixels(sets.test_x)
    learners = {
        "logistic regression": LogisticRegression(max_iter=50),
        "MLP": MLPClassifier(max_iter=10, random_state=seed),
    }
    accuracy = {
        key: float(learner.fit(flat, y).score(test, sets.test_y))
        for key, learner in learners.items()
    }
    return accuracy | looks(name)[0](x[..., 0])


def papers() -> None:
    """Measure `gan` as Harder et al. (2021) do: replace-one, twelve classifiers."""
    matched.images(Gan, PUBLISHED_IMAGES)  # type: ignore[arg-type]
    os.environ.setdefault("TABLES", "adult")
    matched.tables(Gan, PUBLISHED_TABLES, HARDER)  # type: ignore[arg-type]


def _keep_for_sheet(
    name: str, kind: str, epsilon: float, settings: dict[str, Any], x: Any, y: Any
) -> None:
    told = [f"{key}={value}" for key, value in settings.items() if key != "pair"]
    shown = np.stack([x[y == label][:OF_CLASS] for label in range(10)], axis=1)
    CACHE.mkdir(parents=True, exist_ok=True)
    np.save(_sheet_file(name, epsilon, " ".join([kind, *told])), shown)


def _sheet_file(name: str, epsilon: float, title: str) -> Path:
    return CACHE / f"sheet-{name}-{epsilon:g}-{title.replace(' ', '-')}.npy"


def draw_sheet(name: str, epsilon: float) -> None:
    """Put samples of all methods side by side, a band for each, the ends above and below.

    Methods that were not run here come from the pictures that their own benchmarks left.
    """
    own = ("moments", "merf", "hp", "mepf", "mge", "dre", *GANS)
    bands = [
        (title, shown)
        for title, at in [("real", np.inf), *((each, epsilon) for each in own), ("public", np.inf)]
        if (shown := _shown(name, at, title)) is not None
    ]
    wide = 130
    height, width = bands[0][1].shape[2:4]
    tall = OF_CLASS * (height + 1) + 5
    sheet = Image.new("RGB", (wide + 10 * (width + 1), tall * len(bands)), "white")
    for order, (title, shown) in enumerate(bands):
        ImageDraw.Draw(sheet).text((4, order * tall + tall // 2 - 8), title, "black")
        for row in range(OF_CLASS):
            for label in range(10):
                place = (wide + label * (width + 1), order * tall + row * (height + 1))
                sheet.paste(Image.fromarray(np.squeeze(shown[row, label])), place)
    sheet = sheet.resize((2 * sheet.width, 2 * sheet.height), Image.Resampling.NEAREST)
    sheet.quantize(256).save(SHOWN / f"baselines-{name}-{epsilon:g}.png", optimize=True)
    print(*(title for title, _ in bands), sep=", ")


def _shown(name: str, epsilon: float, title: str) -> NDArray[np.uint8] | None:
    """Give images (shown, class, height, width, ...), if there are any."""
    path = _sheet_file(name, epsilon, title)
    if path.exists():
        return np.asarray(np.load(path))
    grid = picture(f"{title}-{name}-{epsilon:g}.png")
    if not grid.exists():
        return None
    side = 32 if name == "cifar10" else 28
    step = side + 2
    whole = Image.open(grid)
    cells = np.asarray(whole.resize((10 * step - 2, 10 * step - 2), Image.Resampling.NEAREST))
    starts = [slice(step * place, step * place + side) for place in range(10)]
    return np.stack([[cells[starts[i], starts[j]] for i in range(10)] for j in range(OF_CLASS)])


def fill(words: list[str]) -> None:
    """Run every row of the plan that is missing, each in a process of its own."""
    for name, rows in PLAN.items():
        for row in rows:
            kind, epsilon, *settings = row.split()
            if not words or set(words) <= {name, kind, epsilon, *settings}:
                command = [sys.executable, __file__, name, kind, epsilon, "0", *settings]
                subprocess.run(command, check=False)


def recorded() -> dict[str, Any]:
    """Give the rows that are there."""
    return runs_of("baselines")


def main() -> None:
    """Run what is asked for and add it to the result."""
    if sys.argv[1] == "all":
        return fill(sys.argv[2:])
    if sys.argv[1] == "papers":
        return papers()
    if sys.argv[1] == "sheet":
        return draw_sheet(sys.argv[2], float(sys.argv[3]))
    name, kind, epsilon, seed, *rest = sys.argv[1:]
    settings = {
        key: json.loads(value) if value[:1].isdigit() else value
        for key, value in (each.split("=", 1) for each in rest)
    }
    key = " ".join(sys.argv[1:])
    if key in recorded():
        return print(f"{key} is there")
    result = run(name, kind, float(epsilon), int(seed), settings)
    print(key, result, flush=True)
    add_run("baselines", key, result)
    return None


SETS = ("mnist", "fashion_mnist", "cifar10")
ORDER = ("real", "decoded", "pairs", "moments", "merf", "hp", "mepf", "mge", "dre", "gan", "public")


def cited() -> dict[tuple[str, str, str], tuple[str, list[dict[str, Any]]]]:
    """Give runs of other scripts by set, method and epsilon, in the words of this one."""
    found: dict[tuple[str, str, str], tuple[str, list[dict[str, Any]]]] = {}
    for name, epsilon in product(("mnist", "fashion_mnist"), ("10", "1", "0.2")):
        if told := read(f"images_{name}_{epsilon}_add-remove"):
            found[name, "moments", epsilon] = "images.py", [told["mean"] | stamp_of(told)]
        for kind in ("merf", "hp"):
            if told := read(f"{kind}_{name}_{epsilon}"):
                runs = [_as_judged(run) for run in told["runs"]]
                found[name, kind, epsilon] = f"{kind}.py", runs
    for key, run in runs_of("mepf").items():
        name, epsilon, _, *settings = key.split(" ")
        if name != "cifar10" and not settings:
            taken = run["seconds of features"] + run["seconds of training"]
            runs = found.setdefault((name, "mepf", epsilon), ("mepf.py", []))[1]
            runs.append(run | {"seconds": taken})
    for (name, kind, settings, epsilon), runs in latent.means().items():
        if name in SETS and not settings and kind in ("moments", "mge", "dre"):
            taken = [
                run | {"seconds": run.get("seconds of encoding", 0) + run["seconds of the rest"]
                       + run.get("seconds of sampling", 0)}
                for run in runs
            ]  # fmt: skip
            if name != "cifar10" or epsilon == "1":  # the others stand above
                found[name, kind, epsilon] = "latent.py", taken
    return found


def stamp_of(found: dict[str, Any]) -> dict[str, Any]:
    return {"measured": found["measured"]} if "measured" in found else {}


def _as_judged(run: dict[str, Any]) -> dict[str, Any]:
    return run | {
        "logistic regression": run["accuracy"]["logistic regression"],
        "MLP": run["accuracy"]["multi-layer perceptron"],
        "megabytes": run["peak_memory_mb"],
    }


def all_runs() -> dict[tuple[str, str, str], tuple[str, list[dict[str, Any]]]]:
    """Give all runs in order; those that were made here take the place of others."""
    found = cited()
    for key, run in recorded().items():
        name, kind, epsilon, _, *settings = key.split(" ")
        looking = run.get("seconds of encoding", 0.0)
        told = run | {"seconds": run["seconds"] + looking}
        found[name, " ".join([kind, *settings]), epsilon] = "", [told]
    return dict(
        sorted(
            found.items(),
            key=lambda each: (
                ORDER.index(each[0][1].split(" ")[0]),
                each[0][1],
                -float(each[0][2]),
            ),
        )
    )


def _cells(runs: list[dict[str, Any]], *measures: str) -> str:
    there = [each for each in measures if all(each in run for run in runs)]
    return ", ".join(f"{mean_of(runs, each):.3g}" for each in there)


def _cost(runs: list[dict[str, Any]]) -> str:
    if "megabytes" not in runs[0]:
        return ""
    own = f" ({mean_of(runs, 'processor seconds'):.0f})" if "processor seconds" in runs[0] else ""
    return f"{mean_of(runs, 'seconds'):.0f} s{own}, {mean_of(runs, 'megabytes'):.0f} MB"


def _title(kind: str, runs: list[dict[str, Any]]) -> str:
    method = kind.split(" ")[0]
    return kind + mark(method if method in SOURCES else "evaluation", *runs)


def grey_table() -> str:
    found = all_runs()
    sets = ("mnist", "fashion_mnist")
    rows = []
    for kind, epsilon in dict.fromkeys((k, e) for name, k, e in found if name in sets):
        both = [found.get((name, kind, epsilon), ("", [])) for name in sets]
        cells = [
            text
            for _, runs in both
            for text in (
                (_cells(runs, "logistic regression", "MLP"),
                 _cells(runs, "frechet", "precision", "recall"), _cost(runs))
                if runs else ("", "", "")
            )
        ]  # fmt: skip
        every = [run for _, runs in both for run in runs]
        rows.append([_title(kind, every), epsilon, *cells, max(each[0] for each in both)])
    heads = ["LR, MLP", "Fréchet, precision, recall", "cost"]
    titles = [f"{name}: {head}" for name in ("MNIST", "Fashion") for head in heads]
    return table(["method", "epsilon", *titles, "from"], rows)


def colour_table() -> str:
    rows = [
        [_title(kind, runs), epsilon, _cells(runs, "ResNet9"), _cells(runs, "FID"),
         _cells(runs, "precision", "recall"), _cost(runs), script]
        for (name, kind, epsilon), (script, runs) in all_runs().items()
        if name == "cifar10"
    ]  # fmt: skip
    heads = ["method", "epsilon", "ResNet9", "FID", "precision, recall", "cost", "from"]
    return table(heads, rows)


def adult_table() -> str:
    adult = result("tabular_adult")
    ours, real = adult["epsilon 1"], adult["real data"]
    rows = [
        ["real" + mark("evaluation", adult), "inf", f"{real['auc']:.3f}", "", "tabular.py"],
        ["pairs" + mark("pairs", adult), "1", f"{ours['auc']:.3f}", f"{ours['seconds']:.0f} s",
         "tabular.py"],
        *(
            [_title(kind, runs), epsilon, _cells(runs, "AUC"), _cost(runs), ""]
            for (name, kind, epsilon), (_, runs) in all_runs().items()
            if name == "adult"
        ),
    ]  # fmt: skip
    return table(["method", "epsilon", "AUC of six", "cost", "from"], rows)


def papers_told() -> str:
    """Compare `gan` as the papers measure it; `merf` and `hp` are in their sections."""
    images, adult = (result(f"gan_{each}") for each in ("mnist_1", "tables_adult"))
    runs = images["runs"] + adult["runs"]
    roc, prc = (adult["mean"][f"{each}_auc_hard"] for each in ("roc", "pr"))
    return (
        "As the papers measure, with twelve classifiers on 5,000 rows or images and replaced rows "
        "as neighbours, "
        f"`gan` has at epsilon = 1{mark('gan', *runs)} {images['mean']['accuracy_of_twelve']:.3f} "
        f"on MNIST "
        f"(published at 9.6: {images['published']:.3f}) and {roc:.3f} / {prc:.3f} on Adult "
        f"(published: "
        + " / ".join(f"{figure:.3f}" for figure in adult["published"])
        + "), one seed. Published is the better of DP-CGAN and DP-GAN (Harder et al. 2021).\n"
    )


def body() -> str:
    return f"""\
{grey_table()}
CIFAR-10, with 10,000 public pictures:

{colour_table()}
Adult:

{adult_table()}
{papers_told()}
{shown("All methods on MNIST, epsilon 1", "baselines-mnist-1.png")}
{shown("All methods on FashionMNIST, epsilon 1", "baselines-fashion_mnist-1.png")}
"""


SECTION = Section(
    "All methods in one bench",
    "baselines.py",
    """\
All with their defaults. Rows without *from* were run here, one seed; the others are means over the
seeds of the script that is named. `moments` and `pairs` have the same protocol there. `merf`, `hp`
and `mepf` had replaced rows as neighbours, which costs more, and classifiers until they converge,
on 5,000 (`mepf`: 20,000) images. Methods that look at private images through a public network have
10,000 of them. `gan` is DP-GAN by class (DP-CGAN), `gan start=public` DP-GAN-FT, `gan
space=features` DP-GAN-MI. It is here to be compared with, not to be recommended.

Ends of the scale: *real* images; *decoded*, the private images' own vectors through the public
decoder, without privacy; `merf` at epsilon inf, the mean embedding without noise; *public*
images drawn all alike, with labels at random. Here, logistic regression (50 iterations) and an
MLP (10) learn from 10,000 images; Fréchet distance, precision and recall are as for `moments`.
On CIFAR-10, FID, precision and recall are by 500 images: not to be compared with published FIDs
(DP-GAN: 55 to 75), which are by 50,000 and lower for that alone; compare with *real*. Cost:
seconds of a machine that others used, too, with what a public network took to look at private
images; in brackets those of a processor, without that look; memory.""",
    body,
)


if __name__ == "__main__":
    main()
