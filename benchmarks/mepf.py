"""How good are the images of `mepf`, beside the figures of Harder et al. (2023)?

Replace-one and delta = 1e-5, as in the paper, classes taken as balanced. MNIST and FashionMNIST:
logistic regression and an MLP on generated images. CIFAR-10: a ResNet9, and FID by Inception.

    python benchmarks/mepf.py mnist 1 0                     # set, epsilon, seed
    python benchmarks/mepf.py cifar10 10 0 network=vgg19    # with other settings
    python benchmarks/mepf.py apart                         # what a centre does for the embeddings
    python benchmarks/mepf.py agreement                     # what whole numbers cost in accuracy

Each run adds a row to the result; a row that is there is not run again. The exact sums over private
images depend on neither epsilon nor seed: they are kept in the user's cache with the time that they
took. Needs the benchmark data (SFUMATO_DATA), and for CIFAR-10 the file cifar10.npz in it or in
SFUMATO_CIFAR10.
"""

from __future__ import annotations

import json
import os
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import sfumato as sf
from fid import fid_of
from harness import RESULTS, peak_memory, timed, write_result
from resnet9 import ResNet9
from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import EncodedImages, Summable
from sfumato.datasets import load
from sfumato.evaluation.grids import sample_grid
from sfumato.methods.embedding.mepf import Mepf
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.release import Curator
from sfumato.public.catalogue import load_network
from sfumato.public.perceptual import PerceptualMap

PICTURES = Path(__file__).parent.parent / "docs" / "images"
CACHE = Path.home() / ".cache" / "sfumato" / "benchmarks"
JUDGED = 20_000  # generated images that classifiers are trained on
LOOKED_AT = 2_000  # generated images, and real ones, that Inception sees


class RememberedImages(EncodedImages):
    """Public benchmark images whose sums are kept: they are the same at every epsilon."""

    seconds = 0.0
    """What the sums took when they were worked out."""
    waited = 0.0
    """What they took in this run."""

    def sum(self, statistic: Summable) -> NDArray[np.int64]:
        """Give the kept sum, or work it out and keep it."""
        asked = json.dumps([self.name, statistic.describe()], sort_keys=True)  # type: ignore[attr-defined]
        path = CACHE / f"sums-{sha256(asked.encode()).hexdigest()[:16]}.npz"
        if not path.exists():
            with timed() as taken:
                found = super().sum(statistic)
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, sums=found, seconds=taken["seconds"])
            self.waited += taken["seconds"]
        kept = np.load(path)
        self.seconds += float(kept["seconds"])
        sums: NDArray[np.int64] = kept["sums"]
        return sums

    def __init__(self, name: str, data: Any, codec: ImageCodec) -> None:
        super().__init__(data, codec)
        self.name = name


def images(name: str) -> dict[str, NDArray[Any]]:
    """Give train_x, train_y, test_x, test_y."""
    own = os.environ.get("SFUMATO_CIFAR10")
    return dict(np.load(own)) if name == "cifar10" and own else load(name)


def run(name: str, epsilon: float, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Fit, draw and judge once."""
    data = images(name)
    x, y = data["train_x"], data["train_y"]
    shape = (*x.shape[1:3], 1 if x.ndim == 3 else 3)
    schema = sf.Schema(
        images=sf.Images(
            height=shape[0], width=shape[1], channels=shape[2], classes=tuple(range(10))
        )
    )
    assert schema.images
    budget = sf.Budget(epsilon=epsilon, delta=1e-5, relation=sf.Relation.REPLACE_ONE)
    method = Mepf(balanced=True, seed=seed, **settings)
    rows = RememberedImages(name, (x, y), ImageCodec(schema.images))
    curator = Curator(rows, budget, ledger=Ledger(":memory:"), dataset=name, schema=schema)
    started = time.perf_counter()
    model = method.learn(curator)
    result = {
        "seconds of features": rows.seconds,
        "seconds of training": time.perf_counter() - started - rows.waited,
        "epsilon spent": model.guarantee.epsilon,
        "features": model.guarantee.spends[-1].dim // 10,
        "megabytes": peak_memory(),
    }
    drawn = model.sample(JUDGED, seed=seed)
    result |= judged(name, drawn, data, seed)
    if seed == 0 and not settings:
        PICTURES.mkdir(exist_ok=True)
        (PICTURES / f"mepf-{name}-{epsilon:g}.png").write_bytes(sample_grid(drawn.x, drawn.y))
    return result


def judged(name: str, drawn: Any, data: dict[str, Any], seed: int) -> dict[str, float]:
    """Train on generated images, and test on real ones."""
    if name == "cifar10":
        learner = ResNet9((32, 32, 3), epochs=4, seed=seed, width=0.25)
        learner.fit(drawn.x, drawn.y)
        return {
            "ResNet9": learner.score(data["test_x"], data["test_y"]),
            "FID": fid_of(drawn.x, "cifar10", data["train_x"], most=LOOKED_AT),
        }
    flat = drawn.x.reshape(len(drawn.x), -1) / np.float32(255)
    test = data["test_x"].reshape(len(data["test_x"]), -1) / np.float32(255)
    learners = {
        "logistic regression": LogisticRegression(max_iter=5000),
        "MLP": MLPClassifier(max_iter=5000, random_state=seed),
    }
    return {
        key: float(learner.fit(flat, drawn.y).score(test, data["test_y"]))
        for key, learner in learners.items()
    }


def apart() -> None:
    """Measure how far classes are apart in embeddings of norm 1, with a centre and without."""
    result = {}
    for name in ("mnist", "fashion_mnist", "cifar10"):
        data = images(name)
        x = data["train_x"][:1000]
        x = x[..., None] if x.ndim == 3 else x
        y = torch.from_numpy(data["train_y"][:1000].astype(np.int64))
        for network in ("efficientnet-lite0", "vgg19"):
            mapped = PerceptualMap(load_network(network), x.shape[1:], grid=7)
            parts = torch.from_numpy(x).permute(0, 3, 1, 2).float().div(255).split(50)
            with torch.no_grad():
                plain = torch.cat([mapped.of_tensor(part) for part in parts])
            mean = plain.mean(0)
            around = torch.nn.functional.normalize(plain - mean, dim=1)
            result[f"{name} {network}"] = {
                "length of the mean": float(mean.norm()),
                "between classes": _between(plain, y),
                "between classes, centred": _between(around, y),
            }
            print(name, network, result[f"{name} {network}"], flush=True)
    write_result("mepf_apart", {"runs": result})


def agreement() -> None:
    """Measure how far embeddings in whole numbers are from those in floating point."""
    result = {}
    for name in ("mnist", "cifar10"):
        x = images(name)["train_x"][:100]
        x = x[..., None] if x.ndim == 3 else x
        for network in ("efficientnet-lite0", "vgg19", "alexnet", "mobilenet", "untrained"):
            mapped = PerceptualMap(load_network(network), x.shape[1:], grid=7)
            batch = Batch(np.zeros((len(x), 1), np.int32), x.reshape(len(x), -1))
            with timed() as taken:
                exact = mapped(batch)
            with torch.no_grad():
                plain = mapped.of_tensor(torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255)
            apart = np.linalg.norm(exact - plain.numpy(), axis=1)
            result[f"{name} {network}"] = {
                "mean distance": float(apart.mean()),
                "largest": float(apart.max()),
                "images a second": len(x) / taken["seconds"],
            }
            print(name, network, result[f"{name} {network}"], flush=True)
    write_result("mepf_agreement", {"runs": result})


def _between(vectors: torch.Tensor, labels: torch.Tensor) -> float:
    """Give the root mean square distance of the classes' means from the mean of all."""
    means = torch.stack([vectors[labels == label].mean(0) for label in range(10)])
    return float((means - vectors.mean(0)).square().sum(1).mean().sqrt())


def main() -> None:
    """Run what is asked for and add it to the result."""
    modes = {"apart": apart, "agreement": agreement}
    if sys.argv[1] in modes:
        return modes[sys.argv[1]]()
    name, epsilon, seed, *rest = sys.argv[1:]
    settings = {
        key: json.loads(value) if value[:1].isdigit() or value in ("true", "false") else value
        for key, value in (each.split("=", 1) for each in rest)
    }
    path = RESULTS / "mepf.json"
    key = " ".join(sys.argv[1:])
    if path.exists() and key in json.loads(path.read_text())["runs"]:
        return print(f"{key} is there")
    result = run(name, float(epsilon), int(seed), settings)
    print(key, result, flush=True)
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    write_result("mepf", {"runs": runs | {key: result}})
    return None


if __name__ == "__main__":
    main()
