"""How good are the synthetic images of `moments`?

Classifiers are trained on synthetic images and tested on real ones; Fréchet distance, precision
and recall say how the images look to a small network trained on real ones.

    python benchmarks/images.py mnist 1 add-remove 3    # set, epsilon, relation, seeds
    python benchmarks/images.py scaling                 # time of the releases against images

Without arguments: the whole table. Needs the benchmark data (SFUMATO_DATA).
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import sfumato as sf
from harness import peak_memory, timed, write_result
from sfumato.data.rows import encoded_rows
from sfumato.datasets import load
from sfumato.evaluation.cnn import SmallCNN
from sfumato.evaluation.frechet import frechet_distance, trained_extractor
from sfumato.evaluation.grids import sample_grid
from sfumato.evaluation.modes import precision_recall
from sfumato.privacy.answers import Release
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.release import Curator
from sfumato.privacy.statistic import Statistic

PICTURES = Path(__file__).parent.parent / "docs" / "images"
SHOWN = [("mnist", 1.0, "add-remove", 0), ("fashion_mnist", 1.0, "add-remove", 0)]
SEEDS = 3
MOST_LOOKED_AT = 5_000  # images that are looked at through the network
MOST_FOR_OTHERS = 10_000  # images that logistic regression and MLP are trained on
RUNS = [
    *[(name, e, "add-remove") for e in (1.0, 0.2, 10.0) for name in ("mnist", "fashion_mnist")],
    ("usps", 1.0, "add-remove"),
    ("svhn_cropped_sample", 1.0, "add-remove"),
    ("cifar10", 10.0, "add-remove"),
    *[(name, e, "replace-one") for e in (1.0, 0.2, 10.0) for name in ("mnist", "fashion_mnist")],
]


@cache
def images(name: str) -> dict[str, Any]:
    """Give train_x, train_y, test_x, test_y; packed colour sets are unpacked."""
    arrays = load(name)
    if "train_bytes" not in arrays:
        return arrays
    found = {}
    for split in ("train", "test"):
        content, bounds = arrays[f"{split}_bytes"], arrays[f"{split}_off"]
        pictures = [
            Image.open(io.BytesIO(content[a:b].tobytes())).convert("RGB")
            for a, b in pairwise(bounds)
        ]
        found[f"{split}_x"] = np.stack([np.asarray(picture) for picture in pictures])
        found[f"{split}_y"] = arrays[f"{split}_y"]
    return found


@cache
def looks(name: str) -> tuple[Callable[[Any], dict[str, float]], dict[str, float]]:
    """Give the measure of how images look beside real test images, and what fresh ones score.

    The network is trained on a part of the training images, so that the rest is fresh to it.
    """
    data = images(name)
    order = np.random.default_rng(0).permutation(len(data["train_x"]))
    seen, fresh, _ = np.split(order, [MOST_LOOKED_AT, 2 * MOST_LOOKED_AT])
    extractor = trained_extractor(data["train_x"][seen], data["train_y"][seen])
    real = extractor.features(data["test_x"][:MOST_LOOKED_AT])

    def measure(x: Any) -> dict[str, float]:
        features = extractor.features(x[:MOST_LOOKED_AT])
        return {
            "frechet": frechet_distance(real, features),
            **precision_recall(real, features),
        }

    return measure, measure(data["train_x"][fresh])


def one(name: str, epsilon: float, relation: str, seed: int) -> dict[str, float]:
    data = images(name)
    x, y = data["train_x"], data["train_y"]
    shape = (*x.shape[1:3], 1 if x.ndim == 3 else 3)
    budget = sf.Budget(epsilon=epsilon, delta=1e-5, relation=sf.Relation(relation))
    with timed() as taken:
        model = sf.Moments(seed=seed).fit((x, y), schema(shape), budget)
        drawn = model.sample(seed=seed)
    result = {"seconds": taken["seconds"], "megabytes": peak_memory()}
    flat = drawn.x.reshape(len(drawn.x), -1) / np.float32(255)
    test = data["test_x"].reshape(len(data["test_x"]), -1) / np.float32(255)
    learners = {
        "logistic regression": LogisticRegression(max_iter=50),
        "MLP": MLPClassifier(max_iter=10, random_state=seed),
        "CNN": SmallCNN(shape, epochs=2, seed=seed, width=32),
    }
    for key, learner in learners.items():
        most = len(flat) if key == "CNN" else MOST_FOR_OTHERS
        learner.fit(flat[:most], drawn.y[:most])
        result[key] = float(learner.score(test, data["test_y"]))
    result |= looks(name)[0](drawn.x)
    if (name, epsilon, relation, seed) in SHOWN:
        picture = PICTURES / f"moments-{name}-{epsilon:g}.png"
        picture.write_bytes(sample_grid(drawn.x, drawn.y))
    print(name, epsilon, relation, seed, result, flush=True)
    return result


def run(name: str, epsilon: float, relation: str, seeds: int = SEEDS) -> None:
    runs: list[dict[str, float]] = []
    for seed in range(seeds):
        runs.append(one(name, epsilon, relation, seed))
        mean = {k: round(float(np.mean([r[k] for r in runs])), 4) for k in runs[0]}
        found = {"rows": len(images(name)["train_x"]), "mean": mean}
        write_result(
            f"images_{name}_{epsilon:g}_{relation}", found | {"fresh": looks(name)[1], "runs": runs}
        )


def schema(shape: tuple[Any, ...]) -> sf.Schema:
    height, width, channels = shape
    return sf.Schema(
        images=sf.Images(height=height, width=width, channels=channels, classes=tuple(range(10)))
    )


class Stopwatch(Curator):
    """Adds up the time that releases take."""

    seconds = 0.0

    def release(self, name: str, statistic: Statistic, share: float) -> Release:
        with timed() as taken:
            release = super().release(name, statistic, share)
        self.seconds += taken["seconds"]
        return release


def scaling() -> None:
    """Time the releases of a tenth of MNIST and of all of it."""
    data, described = images("mnist"), schema((28, 28, 1))
    method, budget = sf.Moments(), sf.Budget(epsilon=1.0, delta=1e-5)
    found = {}
    for rows in (6_000, 60_000):
        curator = Stopwatch(
            encoded_rows((data["train_x"][:rows], data["train_y"][:rows]), method.codec(described)),
            budget,
            ledger=Ledger(":memory:"),
            dataset="mnist",
            schema=described,
        )
        with timed() as taken:
            method.learn(curator)
        found[str(rows)] = {"releases": curator.seconds, "fit": taken["seconds"]}
    ratio = found["60000"]["releases"] / found["6000"]["releases"]
    write_result("images_scaling", {"seconds": found, "ratio": ratio})


def main() -> None:
    if sys.argv[1:] == ["scaling"]:
        scaling()
        return
    if len(sys.argv) == 5:
        run(sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
        return
    for name, epsilon, relation in RUNS:
        run(name, epsilon, relation)
    scaling()


if __name__ == "__main__":
    main()
