"""Whose word on the class of a drawn image teaches a CNN most?

    python benchmarks/relabelled.py fashion_mnist 10        # set, epsilon

Draws of `moments` with the class that they were drawn for, all of the budget spent on drawing; with
the class that the private classifier sees in them, as `relabel` does; and, of the first draws, with
the class that CNNs see in them which learned from real images on the axes, without any noise: what
a better classifier could bring. And, of real images, with the class that the private classifier
sees: what better draws could bring. Judged by a CNN on 10,000 held-out training images, two seeds.
Public benchmark sets (SFUMATO_DATA).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sfumato as sf
from harness import Section, mark, percent, result, table, write_result
from images import images, schema
from sfumato.evaluation.cnn import SmallCNN

HELD = 10_000
SEEDS = 2
MORE = 3
SHAPE = (28, 28, 1)

Singles = NDArray[np.float32]


def flat(x: NDArray[np.uint8]) -> Singles:
    return x.reshape(len(x), -1) / np.float32(255)


def run(name: str, epsilon: float) -> None:
    data = images(name)
    x, y = data["train_x"][:-HELD], data["train_y"][:-HELD]
    held, truth = data["train_x"][-HELD:], data["train_y"][-HELD:]
    budget = sf.Budget(epsilon=epsilon, delta=1e-5)
    found: dict[str, Any] = {}

    def note(told: str, pictures: Singles, labels: NDArray[Any], teacher: float | None) -> None:
        networks = [SmallCNN(SHAPE, epochs=2, seed=seed, width=32) for seed in range(SEEDS)]
        scores = [float(each.fit(pictures, labels).score(flat(held), truth)) for each in networks]
        found[told] = {"CNN": scores} | ({} if teacher is None else {"teacher": teacher})
        print(name, epsilon, told, found[told], flush=True)
        write_result(f"relabelled_{name}_{epsilon:g}", {"held": HELD, "cases": found})

    own = sf.Moments(relabel=False).fit((x, y), schema(SHAPE), budget)
    drawn = own.sample(seed=0)
    pictures = flat(drawn.x)
    note("as drawn", pictures, drawn.y, None)

    model = sf.Moments().fit((x, y), schema(SHAPE), budget)
    classifier, basis = model.images.classifier, model.images.basis
    relabelled = model.sample(seed=0)
    right = float((classifier(basis.coordinates(flat(held))) == truth).mean())
    note("the private classifier", flat(relabelled.x), relabelled.y, right)
    more = model.sample(MORE * len(x), seed=0)
    note(f"the private classifier, {MORE} times as many draws", flat(more.x), more.y, right)
    del more
    real = flat(x)
    labels = classifier(basis.coordinates(real))
    note("the private classifier, of real images", real, labels, right)

    basis = own.images.basis
    on_axes = basis.images(basis.coordinates(flat(x)))
    teachers = [SmallCNN(SHAPE, epochs=3, seed=s, width=32).fit(on_axes, y) for s in range(2)]

    def seen(pixels: Singles) -> NDArray[np.integer[Any]]:
        return np.sum([each.predict_proba(pixels) for each in teachers], axis=0).argmax(axis=1)

    right = float((seen(flat(held)) == truth).mean())
    note("CNNs that saw real images, no noise", pictures, seen(pictures), right)


def body() -> str:
    rows = []
    for epsilon in ("1", "10"):
        found = result(f"relabelled_fashion_mnist_{epsilon}")
        for told, case in found["cases"].items():
            itself = percent(case["teacher"]) if "teacher" in case else ""
            rows.append([epsilon + mark("moments", found), told, itself, percent(*case["CNN"])])
    return table(["epsilon", "class by", "right on held-out images", "CNN"], rows)


SECTION = Section(
    "Who says of which class a draw is",
    "relabelled.py",
    """\
FashionMNIST, 10,000 held-out training images, the mean of two CNNs, one fit each. Draws have
the class that they were drawn for (all of the budget spent on drawing), that of the private
classifier, as `moments` does, or that of CNNs which learned from real images on the axes
without any noise: what a better classifier could bring. Real images with the class that the
private classifier sees in them tell what better draws could bring.""",
    body,
)


if __name__ == "__main__":
    run(sys.argv[1], float(sys.argv[2]))
