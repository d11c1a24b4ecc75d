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
from harness import RESULTS, peak_memory, timed, write_result
from images import MOST_FOR_OTHERS, looks, schema
from latent_sets import Sets
from mepf import CACHE, PICTURES
from sfumato.datasets import load
from sfumato.evaluation import train_on_synthetic
from sfumato.evaluation.frechet import unit_pixels
from sfumato.papers.gan.method import Gan
from sfumato.registry import method_class
from tables import HARDER, prepare

NO_NOISE = 1e4  # the epsilon that stands for "inf"
SHOWN = 2  # images of each class on the sheet
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
    shown = np.stack([x[y == label][:SHOWN] for label in range(10)], axis=1)
    CACHE.mkdir(parents=True, exist_ok=True)
    np.save(_sheet_file(name, epsilon, " ".join([kind, *told])), shown)


def _sheet_file(name: str, epsilon: float, title: str) -> Path:
    return CACHE / f"sheet-{name}-{epsilon:g}-{title.replace(' ', '-')}.npy"


def sheet(name: str, epsilon: float) -> None:
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
    tall = SHOWN * (height + 1) + 5
    picture = Image.new("RGB", (wide + 10 * (width + 1), tall * len(bands)), "white")
    for order, (title, shown) in enumerate(bands):
        ImageDraw.Draw(picture).text((4, order * tall + tall // 2 - 8), title, "black")
        for row in range(SHOWN):
            for label in range(10):
                place = (wide + label * (width + 1), order * tall + row * (height + 1))
                picture.paste(Image.fromarray(np.squeeze(shown[row, label])), place)
    picture = picture.resize((2 * picture.width, 2 * picture.height), Image.Resampling.NEAREST)
    picture.save(PICTURES / f"baselines-{name}-{epsilon:g}.png", optimize=True)
    print(*(title for title, _ in bands), sep=", ")


def _shown(name: str, epsilon: float, title: str) -> NDArray[np.uint8] | None:
    """Give images (shown, class, height, width, ...), if there are any."""
    path = _sheet_file(name, epsilon, title)
    if path.exists():
        return np.asarray(np.load(path))
    grid = PICTURES / f"{title}-{name}-{epsilon:g}.png"
    if not grid.exists():
        return None
    side = 32 if name == "cifar10" else 28
    step = side + 2
    whole = Image.open(grid)
    cells = np.asarray(whole.resize((10 * step - 2, 10 * step - 2), Image.Resampling.NEAREST))
    starts = [slice(step * place, step * place + side) for place in range(10)]
    return np.stack([[cells[starts[i], starts[j]] for i in range(10)] for j in range(SHOWN)])


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
    path = RESULTS / "baselines.json"
    return json.loads(path.read_text())["runs"] if path.exists() else {}


def main() -> None:
    """Run what is asked for and add it to the result."""
    if sys.argv[1] == "all":
        return fill(sys.argv[2:])
    if sys.argv[1] == "papers":
        return papers()
    if sys.argv[1] == "sheet":
        return sheet(sys.argv[2], float(sys.argv[3]))
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
    write_result("baselines", {"runs": recorded() | {key: result}})
    return None


if __name__ == "__main__":
    main()
