"""How good are the synthetic images of `moments`?

Classifiers are trained on synthetic images and tested on real ones; Fréchet distance, precision
and recall say how the images look to a small network trained on real ones.

    python benchmarks/images.py mnist 1 add-remove 3              # set, epsilon, relation, seeds
    python benchmarks/images.py mnist 1 add-remove 3 deform=1.5   # with other settings
    python benchmarks/images.py pneumonia                         # chest X-rays: ROC-AUC
    python benchmarks/images.py twelve mnist axes=60              # the papers' twelve classifiers
    python benchmarks/images.py twelve mnist real                 # and on real images
    python benchmarks/images.py larger mnist 1 deform=1.5         # ResNet9, and FID by Inception
    python benchmarks/images.py scaling                           # time of the releases

The setting ``delta=dpimagebench`` is delta = 1 / (n ln n), as that benchmark has it; ``held=10000``
sets so many of the training images apart and judges by them instead of by test images;
``draws=180000`` draws so many images, and not as many as there are real ones.

Without arguments: the whole table. Needs the benchmark data (SFUMATO_DATA).
"""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

import sfumato as sf
from harness import (
    RESULTS,
    Section,
    add_run,
    mark,
    peak_memory,
    percent,
    picture,
    result,
    runs_of,
    shown,
    table,
    timed,
    write_result,
)
from sfumato.data.rows import encoded_rows
from sfumato.datasets import load
from sfumato.evaluation.classifiers import classifiers
from sfumato.evaluation.cnn import SmallCNN
from sfumato.evaluation.frechet import frechet_distance, trained_extractor
from sfumato.evaluation.grids import sample_grid
from sfumato.evaluation.modes import precision_recall
from sfumato.privacy.answers import Release
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.statistic import Statistic

SHOWN = [("mnist", 1.0, "add-remove", 0), ("fashion_mnist", 1.0, "add-remove", 0)]
SEEDS = 3
MOST_LOOKED_AT = 5_000  # images that are looked at through the network
MOST_FOR_OTHERS = 10_000  # images that logistic regression and MLP are trained on
MOST_FOR_INCEPTION = 1_000
MOST_FOR_TWELVE, TO_THE_END = 5_000, "logistic regression to its end"
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


def one(
    name: str, epsilon: float, relation: str, seed: int, settings: dict[str, Any]
) -> dict[str, float]:
    settings = dict(settings)
    data = images(name)
    if held := settings.pop("held", 0):
        data = {
            f"{split}_{part}": data[f"train_{part}"][chosen]
            for split, chosen in (("train", slice(-held)), ("test", slice(-held, None)))
            for part in ("x", "y")
        }
    x, y = data["train_x"], data["train_y"]
    shape = (*x.shape[1:3], 1 if x.ndim == 3 else 3)
    other_delta = settings.pop("delta", None)
    delta = delta_of_dpimagebench(len(x)) if other_delta else 1e-5
    draws = settings.pop("draws", None)
    budget = sf.Budget(epsilon=epsilon, delta=delta, relation=sf.Relation(relation))
    with timed() as taken:
        model = sf.Moments(seed=seed, **settings).fit((x, y), schema(shape), budget)
        drawn = model.sample(draws, seed=seed)
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
    if (name, epsilon, relation, seed) in SHOWN and not (held or other_delta or draws):
        told = "".join(f"-{key}" for key in settings if key != "axes")
        sheet = picture(f"moments-{name}-{epsilon:g}{told}.png")
        sheet.write_bytes(sample_grid(drawn.x, drawn.y))
    print(name, epsilon, relation, seed, result, flush=True)
    return result


def run(
    name: str, epsilon: float, relation: str, seeds: int = SEEDS, rest: Sequence[str] = ()
) -> None:
    """Run all seeds; settings become a part of the result's name."""
    settings = _settings(rest)
    told = "".join(f"+{each}" for each in rest)
    runs: list[dict[str, float]] = []
    for seed in range(seeds):
        runs.append(one(name, epsilon, relation, seed, settings))
        mean = {k: round(float(np.mean([r[k] for r in runs])), 4) for k in runs[0]}
        found = {"rows": len(images(name)["train_x"]), "mean": mean}
        write_result(
            f"images_{name}_{epsilon:g}_{relation}{told}",
            found | {"fresh": looks(name)[1], "runs": runs},
        )


def _settings(rest: Sequence[str]) -> dict[str, Any]:
    return {
        key: json.loads(value) if value[:1].isdigit() or value == "true" else value
        for key, value in (each.split("=") for each in rest)
    }


def pneumonia() -> None:
    """How well does a small network that learned from synthetic X-rays find pneumonia?"""
    data = images("pneumoniamnist_28")
    test = data["test_x"].reshape(len(data["test_x"]), -1) / np.float32(255)
    described = sf.Schema(images=sf.Images(height=28, width=28, classes=(0, 1)))
    found: dict[str, list[float]] = {}
    for epsilon, seed in product((math.inf, 1.0, 3.0, 10.0), range(SEEDS)):
        x, y = data["train_x"], data["train_y"]
        if epsilon < math.inf:
            budget = sf.Budget(epsilon=epsilon, delta=1e-5)
            drawn = sf.Moments(seed=seed).fit((x, y), described, budget).sample(seed=seed)
            x, y = drawn.x, drawn.y
            if (epsilon, seed) == (1.0, 0):
                picture(f"moments-pneumonia-{epsilon:g}.png").write_bytes(sample_grid(x, y))
        learner = SmallCNN((28, 28, 1), epochs=8, seed=seed, width=32)
        learner.fit(x.reshape(len(x), -1) / np.float32(255), y)
        area = roc_auc_score(data["test_y"], learner.predict_proba(test)[:, 1])
        found.setdefault("real" if epsilon == math.inf else f"{epsilon:g}", []).append(area)
        print("pneumonia", epsilon, seed, area, flush=True)
    write_result("pneumonia", {"rows": len(data["train_x"]), "ROC-AUC": found})


def twelve(name: str, rest: Sequence[str]) -> None:
    """Train the papers' twelve classifiers as for `merf` and `hp`: replace-one, 5,000 images.

    Beside them stands logistic regression to its end, on 20,000 images as for `mepf`.
    """
    data = images(name)
    test = data["test_x"].reshape(len(data["test_x"]), -1) / np.float32(255)
    for own in [None] if rest == ["real"] else [("detail=true",), ()]:
        told = "real images" if own is None else ", ".join([*own, *rest])
        x, y = _for_twelve(data, None if own is None else _settings([*own, *rest]))
        flat = x.reshape(len(x), -1) / np.float32(255)
        last = {TO_THE_END: LogisticRegression(max_iter=5000)}
        scores: dict[str, float] = {}
        for key, learner in (classifiers("twelve", 10) | last).items():
            most = len(flat) if key == TO_THE_END else MOST_FOR_TWELVE
            learner.fit(flat[:most], y[:most])
            scores[key] = float(learner.score(test, data["test_y"]))
            print(name, told, key, scores[key], flush=True)
        add_run(f"moments_twelve_{name}", told, scores)


def _for_twelve(data: dict[str, Any], settings: dict[str, Any] | None) -> tuple[Any, Any]:
    """Give 20,000 real or drawn images and their classes."""
    if settings is None:
        chosen = np.random.default_rng(0).permutation(len(data["train_x"]))[:20_000]
        return data["train_x"][chosen], data["train_y"][chosen]
    budget = sf.Budget(epsilon=1.0, delta=1e-5, relation=sf.Relation.REPLACE_ONE)
    model = sf.Moments(**settings).fit(
        (data["train_x"], data["train_y"]), schema((28, 28, 1)), budget
    )
    drawn = model.sample(20_000)
    return drawn.x, drawn.y


def larger(name: str, epsilon: float, rest: Sequence[str]) -> None:
    """Let larger networks judge: a ResNet9, and Inception by FID. DPImageBench's delta, one seed.

    ResNet9 stands for the residual networks of that benchmark, which take hours on two cores.
    """
    from fid import fid_of  # these need torch
    from resnet9 import ResNet9

    data = images(name)
    x, y = data["train_x"], data["train_y"]
    shape = (*x.shape[1:3], 1 if x.ndim == 3 else 3)
    budget = sf.Budget(epsilon=epsilon, delta=delta_of_dpimagebench(len(x)))
    drawn = sf.Moments(**_settings(rest)).fit((x, y), schema(shape), budget).sample(seed=0)
    with timed() as taken:
        learner = ResNet9(shape, epochs=3, width=0.25, flips=False).fit(drawn.x, drawn.y)
    found = {
        "ResNet9": learner.score(data["test_x"], data["test_y"]),
        "seconds of ResNet9": taken["seconds"],
        "FID": fid_of(drawn.x, name, x, MOST_FOR_INCEPTION),
        "FID of test images": fid_of(data["test_x"], name, x, MOST_FOR_INCEPTION),
    }
    key = " ".join([name, f"{epsilon:g}", *rest])
    print(key, found, flush=True)
    add_run("images_larger", key, found)


def delta_of_dpimagebench(rows: int) -> float:
    return 1 / (rows * math.log(rows))


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
            described,
            sf.Run(ledger=Ledger(":memory:"), dataset="mnist"),
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
    if sys.argv[1:] == ["pneumonia"]:
        pneumonia()
        return
    if sys.argv[1:2] == ["larger"]:
        larger(sys.argv[2], float(sys.argv[3]), sys.argv[4:])
        return
    if sys.argv[1:2] == ["twelve"]:
        twelve(sys.argv[2], sys.argv[3:])
        return
    if len(sys.argv) >= 5:
        run(sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:])
        return
    for name, epsilon, relation in RUNS:
        run(name, epsilon, relation)
    scaling()


FETA_PRO = {
    ("mnist", "1"): "97.3", ("mnist", "10"): "98.6",
    ("fashion_mnist", "1"): "83.4", ("fashion_mnist", "10"): "88.3",
}  # fmt: skip


def look_cell(figures: dict[str, float]) -> str:
    return "{frechet:.2f} ({precision:.3f}, {recall:.3f})".format(**figures)


def body() -> str:
    rows: list[list[str]] = []
    fresh = {}
    for path in sorted(RESULTS.glob("images_*_*_*.json")):
        *parts, epsilon, relation = path.stem.removeprefix("images_").split("_")
        name, found = "_".join(parts), result(path.stem)
        told, own = found["mean"], relation.removeprefix("add-remove").strip("+")
        fresh[name] = look_cell(found["fresh"])
        scores = [f"{100 * told[key]:.2f}" for key in ("CNN", "logistic regression", "MLP")]
        # Later runs of a process stand on what classifiers of the first one took.
        cost = f"{told['seconds']:.0f} s, {found['runs'][0]['megabytes']:.0f} MB"
        rows.append([name + mark("moments", found), epsilon, own.replace("+", ", "), *scores,
                     look_cell(told), cost, str(len(found["runs"]))])  # fmt: skip
    rows.sort(key=lambda row: (row[0], float(row[1])))
    heads = ["set", "epsilon", "settings", "CNN", "LR", "MLP", "Fréchet", "cost", "seeds"]
    scaling = result("images_scaling")
    few, many = (scaling["seconds"][count]["releases"] for count in ("6000", "60000"))
    return (
        table(heads, rows)
        + "\nFresh real images: " + ", ".join(" ".join(each) for each in fresh.items()) + ".\n"
        + f"\nThe releases of 60,000 MNIST images took {many:.1f} s, those of 6,000 {few:.1f} s: "
        f"{scaling['ratio']:.1f} times as long, noise included.\n\n"
        "The first samples of each class at epsilon = 1: MNIST with `deform=1.5`, FashionMNIST "
        "plain and with `detail=true`.\n\n"
        + shown("MNIST, deformed", "moments-mnist-1-deform.png") + "\n"
        + shown("FashionMNIST", "moments-fashion_mnist-1.png") + "\n"
        + shown("FashionMNIST with detail", "moments-fashion_mnist-1-detail.png") + "\n"
    )  # fmt: skip


def glance() -> list[list[str]]:
    larger = runs_of("images_larger")
    by_resnet = [
        percent(larger[key]["ResNet9"])
        for key in ("mnist 1 deform=1.5", "fashion_mnist 1", "fashion_mnist 10")
    ]
    mnist, strict, fashion, fashion_10, cifar = (
        f"{100 * result(f'images_{key}')['mean']['CNN']:.1f}"
        for key in ("mnist_1_add-remove+deform=1.5+axes=60",
                    "mnist_1_add-remove+delta=dpimagebench+deform=1.5+axes=60",
                    "fashion_mnist_1_add-remove", "fashion_mnist_10_add-remove",
                    "cifar10_10_add-remove")
    )  # fmt: skip
    return [
        ["MNIST: a CNN trained on synthetic images, per cent right", "1",
         f"**{mnist}** (`moments`, `deform=1.5`)", "FETA-Pro 97.3, DP-FETA 95.6, DP-MERF 80.3",
         "published by larger networks at a smaller delta; there, in older runs, the CNN has "
         f"{strict} and a small ResNet9 {by_resnet[0]}"],
        ["FashionMNIST: the same", "1; 10", f"**{fashion}**; {fashion_10}",
         "FETA-Pro 83.4; **88.3**",
         f"there, a small ResNet9 has {by_resnet[1]}; {by_resnet[2]}"],
        ["CIFAR-10 without public data: the same", "10", f"**{cifar}**",
         "DPDM 36.8, DP-FETA 34.4", "some three minutes; published by other networks"],
    ]  # fmt: skip


SECTION = Section(
    "moments",
    "images.py",
    """\
Accuracy on real test images, in per cent, of a CNN trained on as many synthetic images as there are
private ones, and of logistic regression and an MLP trained on 10,000. Published for MNIST /
FashionMNIST at epsilon = 1: DP-MERF 80.3 / 62.2, DPDM 89.2 / 76.4, DP-Kernel 94.0 / 68.4, DP-FETA
95.6 / 81.7, FETA-Pro 97.3 / 83.4 (98.6 / 88.3 at 10, 86.2 / 70.2 at 0.2); for CIFAR-10 at 10
without public data: DPDM 36.8, DP-FETA 34.4. Our aims for the CNN with add-remove neighbours, at
epsilon 0.2, 1 and 10: MNIST 94.5, 97.0, 98.3; FashionMNIST 80, 84.0, 87.5; USPS 85 at 1 by logistic
regression.

*Fréchet* distance (precision, recall; Sajjadi et al. 2018) compares 5,000 synthetic images with the
first 5,000 real test images in the features of a small network that was trained on real ones: no
FIDs, and not comparable between sets. Fresh real training images are what can be reached. (The two
halves of MNIST's test images differ: against a random half, fresh images have 0.7.) Cost: fit and
sample by one thread beside other jobs, and the peak of memory after the first.

What was chosen how: `deform` on 10,000 held-out training images of MNIST at epsilon 1; `axes` on
held-out images of FashionMNIST, MNIST, Kuzushiji, notMNIST, USPS and CIFAR-10; of the classifier
that says of which class a draw is (`relabel`), its share of the budget on held-out images of MNIST
and FashionMNIST at 1 and 0.2, and what it sees and its steps on those at 0.2, 1 and 10. Relabelled
are FashionMNIST, CIFAR-10 at 10 and USPS without settings, MNIST with nothing but `deform=1.5,
axes=60`, and the rows with `draws`; all others are older. Of 60 axes are replace-one, MNIST without
`axes`, and FashionMNIST with `deform`.

`delta=dpimagebench` is delta = 1 / (n ln n); `held=10000` judges by training images that are
set apart; with `draws=180000` three times as many images are drawn as there are private ones,
and the CNN learns from all. SVHN and cifar10_jpeg_sample are samples of 12,000 and 15,000
images.""",
    body,
    glance,
)


def pneumonia_body() -> str:
    found = result("pneumonia")
    rows = [
        [key + mark("moments", found), f"{sum(areas) / len(areas):.3f}",
         f"{min(areas):.3f} to {max(areas):.3f}"]
        for key, areas in found["ROC-AUC"].items()
    ]  # fmt: skip
    return (
        table(["epsilon", "ROC-AUC", "of the seeds"], rows)
        + "\n" + shown("X-rays at epsilon 1", "moments-pneumonia-1.png") + "\n"
    )  # fmt: skip


PNEUMONIA = Section(
    "Chest X-rays",
    "images.py pneumonia",
    "PneumoniaMNIST, 4,708 training images of 28 x 28: ROC-AUC on real test images of a small CNN "
    "(8 epochs) that learned "
    "from as many images of `moments`; three seeds.",
    pneumonia_body,
)


def twelve_body() -> str:
    rows = []
    for name, aim in (("mnist", "0.82"), ("fashion_mnist", "0.76")):
        beside = [
            f"{result(f'{kind}_{name}_1')['mean']['accuracy_of_twelve']:.3f}"
            for kind in ("merf", "hp")
        ]
        for settings, scores in runs_of(f"moments_twelve_{name}").items():
            others = [v for k, v in scores.items() if k not in (TO_THE_END, "measured")]
            if len(others) < 12:
                continue  # it was interrupted
            rows.append([name + mark("moments", scores), settings or "as it is",
                         f"{sum(others) / 12:.3f}", *beside,
                         f"{scores[TO_THE_END]:.3f}", aim])  # fmt: skip
    return table(["set", "settings", "twelve", "merf", "hp", "LR to its end", "aim"], rows)


TWELVE = Section(
    "Twelve classifiers",
    "images.py twelve",
    "The papers' twelve, trained on 5,000 images of `moments` at epsilon = 1, replace-one, one "
    "seed, beside `merf` and `hp` under "
    "the same conditions; logistic regression to its end, on 20,000 images; and what as many real "
    "images teach. MNIST is from "
    "before draws were relabelled.",
    twelve_body,
)


def larger_body() -> str:
    rows = []
    for key, run in runs_of("images_larger").items():
        name, epsilon, *settings = key.split(" ")
        rows.append([name + mark("moments", run), epsilon, " ".join(settings),
                     f"{100 * run['ResNet9']:.2f}", FETA_PRO.get((name, epsilon), ""),
                     f"{run['FID']:.0f}", f"{run['FID of test images']:.0f}"])  # fmt: skip
    heads = ["set", "epsilon", "settings", "ResNet9", "FETA-Pro", "FID", "FID of test images"]
    return table(heads, sorted(rows))


LARGER = Section(
    "Larger networks",
    "images.py larger",
    """\
`moments` at delta = 1 / (n ln n), as DPImageBench has it, one seed. Accuracy on real test
images of a ResNet9 of a quarter of the width, three epochs with shifts, which stands for the
residual networks of that benchmark; and FID by Inception of 1,000 images, which is larger than
one of 50,000 would be and says that images are soft. FashionMNIST at 10 is relabelled, the
others are older.""",
    larger_body,
)


if __name__ == "__main__":
    main()
