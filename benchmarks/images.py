"""How good are the synthetic images of `moments`?

Classifiers are trained on synthetic images and tested on real ones; Fréchet distance, precision
and recall say how the images look to a small network trained on real ones.

    python benchmarks/images.py mnist 1 add-remove 3    # set, epsilon, relation, seeds

Without arguments: the whole table. Needs the benchmark data (SFUMATO_DATA).
"""

from __future__ import annotations

import io
import sys
from itertools import pairwise
from typing import Any

import numpy as np
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import sfumato as sf
from harness import peak_memory, timed, write_result
from sfumato.datasets import load
from sfumato.evaluate.cnn import SmallCNN

SEEDS = 3
MOST_FOR_OTHERS = 10_000  # images that logistic regression and MLP are trained on
RUNS = [
    ("mnist", 1.0, "add-remove"),
    ("fashion_mnist", 1.0, "add-remove"),
    ("mnist", 10.0, "add-remove"),
    ("fashion_mnist", 10.0, "add-remove"),
    ("mnist", 0.2, "add-remove"),
    ("fashion_mnist", 0.2, "add-remove"),
    ("usps", 1.0, "add-remove"),
    ("mnist", 1.0, "replace-one"),
    ("fashion_mnist", 1.0, "replace-one"),
    ("svhn_cropped_sample", 1.0, "add-remove"),
    ("cifar10_jpeg_sample", 1.0, "add-remove"),
]


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


def run(name: str, epsilon: float, relation: str, seeds: int = SEEDS) -> None:
    data = images(name)
    x, y = data["train_x"], data["train_y"]
    shape = (*x.shape[1:3], 1 if x.ndim == 3 else 3)
    schema = sf.Schema(
        images=sf.Images(
            height=shape[0], width=shape[1], channels=shape[2], classes=tuple(range(10))
        )
    )
    budget = sf.Budget(epsilon=epsilon, delta=1e-5, relation=sf.Relation(relation))
    test = data["test_x"].reshape(len(data["test_x"]), -1) / np.float32(255)
    runs = []
    for seed in range(seeds):
        with timed() as taken:
            model = sf.Moments(seed=seed).fit((x, y), schema, budget)
            drawn = model.sample(seed=seed)
        flat = drawn.x.reshape(len(drawn.x), -1) / np.float32(255)
        learners = {
            "logistic regression": LogisticRegression(max_iter=50),
            "MLP": MLPClassifier(max_iter=10, random_state=seed),
            "CNN": SmallCNN(shape, epochs=2, seed=seed, width=32),
        }
        result = {"seconds": taken["seconds"], "megabytes": peak_memory()}
        for key, learner in learners.items():
            most = len(flat) if key == "CNN" else MOST_FOR_OTHERS
            learner.fit(flat[:most], drawn.y[:most])
            result[key] = float(learner.score(test, data["test_y"]))
        runs.append(result)
        print(name, epsilon, relation, seed, result, flush=True)
        mean = {k: round(float(np.mean([r[k] for r in runs])), 4) for k in runs[0]}
        write_result(
            f"images_{name}_{epsilon:g}_{relation}", {"rows": len(x), "mean": mean, "runs": runs}
        )


def main() -> None:
    if len(sys.argv) == 5:
        run(sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
        return
    for name, epsilon, relation in RUNS:
        run(name, epsilon, relation)


if __name__ == "__main__":
    main()
