"""What keeps `moments` from teaching a CNN what real images teach it: noise, axes, or its shapes?

    python benchmarks/ceilings.py fashion_mnist mnist

Without any privacy: training images are projected on leading axes, or replaced by draws of Gaussian
mixtures that are fitted to them in these axes, class by class, and a CNN that learned from them is
judged by 10,000 held-out training images. A method that draws from such mixtures cannot do better
by having less noise. One seed. No private data: public benchmark sets (SFUMATO_DATA).
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from harness import Section, mark, percent, result, table, write_result
from images import images
from sfumato.evaluation.cnn import SmallCNN

HELD = 10_000
CASES = [(60, 0), (120, 0), (120, 1), (120, 20), (120, 100)]  # axes; groups of a class, 0: none
SHRUNK_BY = 40  # images' worth of the class's own shape in the shape of a group

Singles = NDArray[np.float32]


def mixture_draws(z: Singles, groups: int, rng: np.random.Generator) -> Singles:
    """Draw as many points as there are from a mixture of full Gaussians around k-means' centres."""
    labels = MiniBatchKMeans(groups, random_state=0, n_init=1, batch_size=2048).fit(z).labels_
    centres = np.stack([z[labels == group].mean(axis=0) for group in range(groups)])
    pooled = np.cov((z - centres[labels]).T)
    drawn = []
    for group in range(groups):
        own = z[labels == group]
        shape = (len(own) * np.cov(own.T) if len(own) > 1 else 0) + SHRUNK_BY * pooled
        shape = shape / (len(own) + SHRUNK_BY) + 1e-6 * np.eye(len(pooled))
        drawn.append(rng.multivariate_normal(centres[group], shape, len(own), method="cholesky"))
    return np.concatenate(drawn).astype(np.float32)


def run(name: str) -> None:
    data = images(name)
    x = data["train_x"].reshape(len(data["train_x"]), -1) / np.float32(255)
    y = data["train_y"]
    train, labels, held, held_labels = x[:-HELD], y[:-HELD], x[-HELD:], y[-HELD:]
    shape = (*data["train_x"].shape[1:3], 1)

    def score(images: Singles, classes: NDArray[np.integer]) -> float:
        learner = SmallCNN(shape, epochs=2, seed=0, width=32).fit(images, classes)
        return float(learner.score(held, held_labels))

    middle = train.mean(axis=0)
    axes = np.linalg.eigh(np.cov((train - middle)[::3].T))[1][:, ::-1].astype(np.float32)
    found = {"real images": score(train, labels)}
    for count, groups in CASES:
        z = (train - middle) @ axes[:, :count]
        classes = labels
        if groups:
            rng = np.random.default_rng(0)
            classes = np.sort(labels)
            z = np.concatenate([mixture_draws(z[labels == c], groups, rng) for c in range(10)])
        pictures = np.clip(z @ axes[:, :count].T + middle, 0, 1)
        told = f"{groups} Gaussians a class, {count} axes" if groups else f"real, on {count} axes"
        found[told] = score(pictures, classes)
        print(name, told, found[told], flush=True)
    write_result(f"ceilings_{name}", {"held": HELD, "CNN": found})


def body() -> str:
    rows = [
        [told + mark("evaluation", found), percent(score)]
        for found in [result("ceilings_fashion_mnist")]
        for told, score in found["CNN"].items()
    ]
    return table(["learned from", "CNN"], rows)


SECTION = Section(
    "Without any privacy",
    "ceilings.py",
    """\
What a CNN learns, judged by 10,000 held-out training images of FashionMNIST, from the other
50,000; from these on leading axes; and from draws of Gaussian mixtures that are fitted to them
without noise: what `moments` could reach with none. One seed.""",
    body,
)


if __name__ == "__main__":
    for each in sys.argv[1:] or ["fashion_mnist", "mnist"]:
        run(each)
