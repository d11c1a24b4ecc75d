"""How good are the images of `mepf`, beside the figures of Harder et al. (2023)?

Replace-one and delta = 1e-5, as in the paper, classes taken as balanced. MNIST and FashionMNIST:
logistic regression and an MLP on generated images. CIFAR-10, with 15,000 pictures of Tiny-ImageNet
to start from: a ResNet9, and FID by Inception.

    python benchmarks/mepf.py mnist 1 0                     # set, epsilon, seed
    python benchmarks/mepf.py cifar10 10 0 network=vgg19    # with other settings
    python benchmarks/mepf.py mnist 1 0 held=10000          # by training images that are set apart
    python benchmarks/mepf.py fid cifar10 10 0              # the FID of a run that was made
    python benchmarks/mepf.py apart                         # what a centre does for the embeddings
    python benchmarks/mepf.py extractors cifar10            # how well noisy means tell classes
    python benchmarks/mepf.py agreement                     # what whole numbers cost in accuracy

Each run adds a row to the result; a row that is there is not run again. What a network sees in an
image depends on neither epsilon nor seed: it is kept in the user's cache with the time that it
took. Needs the benchmark data (SFUMATO_DATA), and for CIFAR-10 the file cifar10.npz in it or in
SFUMATO_CIFAR10.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

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
from sfumato.data.rows import EncodedImages
from sfumato.datasets import load
from sfumato.evaluation.grids import sample_grid
from sfumato.papers.embedding.mepf import Mepf
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.public.catalogue import load_network
from sfumato.public.pair import Pair
from sfumato.public.perceptual import PerceptualMap

PICTURES = Path(__file__).parent.parent / "docs" / "images"
CACHE = Path.home() / ".cache" / "sfumato" / "benchmarks"
JUDGED = 20_000  # generated images that classifiers are trained on
LOOKED_AT = 1_000  # generated images, and real ones, that Inception sees


class KeptMap(PerceptualMap):
    """What a network sees in public benchmark images: the same at every epsilon, so it is kept."""

    seconds: ClassVar[float] = 0.0
    """What it took when it was worked out."""
    waited: ClassVar[float] = 0.0
    """What it took in this run."""
    _kept: ClassVar[dict[str, tuple[dict[bytes, int], NDArray[np.int32]]]] = {}
    name: ClassVar[str]
    whole: ClassVar[NDArray[np.uint8]]

    def entries(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Look images up."""
        asked = json.dumps(replace(self, centre=None, squares=0.0).describe(), sort_keys=True)
        if asked not in self._kept:
            self._kept[asked] = self._all(asked)
        places, found = self._kept[asked]
        return found[[places[image.tobytes()] for image in images]].astype(np.float64)

    @property
    def _length(self) -> int:
        return replace(self, centre=None, squares=0.0).dim

    def _all(self, asked: str) -> tuple[dict[bytes, int], NDArray[np.int32]]:
        key = sha256(f"{self.name} {len(self.whole)} {asked}".encode()).hexdigest()[:16]
        path, seconds = CACHE / f"seen-{key}.npy", CACHE / f"seen-{key}.seconds"
        if not seconds.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            kept = np.lib.format.open_memmap(path, "w+", np.int32, (len(self.whole), self._length))
            with timed() as taken:
                for start in range(0, len(self.whole), 1000):
                    part = slice(start, start + 1000)
                    kept[part] = super().entries(self.whole[part])
            kept.flush()
            seconds.write_text(str(taken["seconds"]))
            type(self).waited += taken["seconds"]
        type(self).seconds += float(seconds.read_text())
        return {image.tobytes(): at for at, image in enumerate(self.whole)}, np.load(path, "r")


class KeptMepf(Mepf):
    """The method, with a map that is kept."""

    def _map(self, space: Any, extractor: Any) -> PerceptualMap:
        plain = super()._map(space, extractor)
        return KeptMap(plain.extractor, plain.shape, plain.grid, plain.squares)


def images(name: str) -> dict[str, NDArray[Any]]:
    """Give train_x, train_y, test_x, test_y."""
    own = os.environ.get("SFUMATO_CIFAR10")
    return dict(np.load(own)) if name == "cifar10" and own else load(name)


def run(name: str, epsilon: float, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Fit, draw and judge once."""
    data = images(name)
    x = data["train_x"]
    shape = (*x.shape[1:3], 1 if x.ndim == 3 else 3)
    schema = sf.Schema(
        images=sf.Images(
            height=shape[0], width=shape[1], channels=shape[2], classes=tuple(range(10))
        )
    )
    assert schema.images
    budget = sf.Budget(epsilon=epsilon, delta=1e-5, relation=sf.Relation.REPLACE_ONE)
    start = {"pair": public_pair()} if name == "cifar10" else {}
    held = settings.get("held", 0)
    of_method = {key: value for key, value in settings.items() if key != "held"}
    method = KeptMepf(balanced=True, seed=seed, **start | of_method)
    KeptMap.name, KeptMap.whole = name, x.reshape(-1, *shape)
    if held:
        data = set_apart(data, held)
    rows = EncodedImages((data["train_x"], data["train_y"]), ImageCodec(schema.images))
    curator = Curator(rows, budget, schema, sf.Run(ledger=Ledger(":memory:"), dataset=name))
    started = time.perf_counter()
    model = method.learn(curator)
    passes = 2 if method.centred else 1
    result = {
        "seconds of features": passes * KeptMap.seconds,
        "seconds of training": time.perf_counter() - started - KeptMap.waited,
        "epsilon spent": model.guarantee.epsilon,
        "features": next(
            spend.dim // 10
            for spend in model.guarantee.spends
            if spend.name == "perceptual embedding"
        ),
        "megabytes": peak_memory(),
    }
    drawn = model.sample(JUDGED, seed=seed)
    np.save(drawn_file([name, f"{epsilon:g}", str(seed), *map(str, settings.items())]), drawn.x)
    result |= judged(name, drawn, data, seed)
    if seed == 0 and set(settings) <= {"steps"}:
        PICTURES.mkdir(exist_ok=True)
        (PICTURES / f"mepf-{name}-{epsilon:g}.png").write_bytes(sample_grid(drawn.x, drawn.y))
    return result


def judged(name: str, drawn: Any, data: dict[str, Any], seed: int) -> dict[str, float]:
    """Train on generated images, and test on real ones."""
    if name == "cifar10":
        learner = ResNet9((32, 32, 3), epochs=4, seed=seed, width=0.25)
        learner.fit(drawn.x, drawn.y)
        return {"ResNet9": learner.score(data["test_x"], data["test_y"])}
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


def set_apart(data: dict[str, Any], held: int) -> dict[str, Any]:
    """Judge by so many of the training images, which are not trained on."""
    x, y = data["train_x"], data["train_y"]
    return {
        "train_x": x[:-held], "train_y": y[:-held], "test_x": x[-held:], "test_y": y[-held:],
    }  # fmt: skip


def public_pair() -> str:
    """Make the file of public pictures to start from, or find the one that was made."""
    from latent_sets import tiny_imagenet

    path = CACHE / "mepf-cifar10.pair"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        small = tiny_imagenet()[0].reshape(-1, 32, 2, 32, 2, 3).mean(axis=(2, 4))
        about = {"name": "tiny-imagenet", "source": "benchmark data", "licence": "see data"}
        # Pictures alone are asked for: any quick encoder will do.
        Pair.train(np.rint(small).astype(np.uint8), network="alexnet", dim=16, **about).save(path)
    return str(path)


def drawn_file(key: list[str]) -> Path:
    """Name the file of a run's pictures."""
    return CACHE / f"mepf-drawn-{sha256(' '.join(key).encode()).hexdigest()[:16]}.npy"


def fid() -> None:
    """Add the FID to a run that was made."""
    name, epsilon, seed, *rest = sys.argv[2:]
    drawn = np.load(drawn_file([name, f"{float(epsilon):g}", seed, *map(str, given(rest).items())]))
    found = fid_of(drawn, name, images(name)["train_x"], most=LOOKED_AT)
    runs = json.loads((RESULTS / "mepf.json").read_text())["runs"]
    runs[" ".join(sys.argv[2:])]["FID"] = found
    write_result("mepf", {"runs": runs})


def given(rest: list[str]) -> dict[str, Any]:
    """Read settings."""
    return {
        key: json.loads(value) if value[:1].isdigit() or value in ("true", "false") else value
        for key, value in (each.split("=", 1) for each in rest)
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


def extractors() -> None:
    """Measure how well class means tell classes apart, with the noise of epsilon 1 and without.

    A proxy for whole runs: 1,500 images make the means, which get the noise that those of a whole
    set would have, and 500 others are given to the nearest.
    """
    name = sys.argv[2]
    path = RESULTS / "mepf_extractors.json"
    result = json.loads(path.read_text())["runs"] if path.exists() else {}
    data = images(name)
    x = data["train_x"][:2000].reshape(2000, *data["train_x"].shape[1:3], -1)
    y = torch.from_numpy(data["train_y"][:2000].astype(np.int64))
    tensor = torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255
    for network in ("alexnet", "efficientnet-lite0", "mobilenet", "vgg19", "untrained"):
        extractor = load_network(network)
        if network == "alexnet" and name != "cifar10":
            extractor = extractor.first(2)  # further ones do not see so small an image
        for grid in (1, 6):
            mapped = PerceptualMap(extractor, x.shape[1:], grid)
            with torch.no_grad():
                seen = torch.cat([mapped.of_tensor(part) for part in tensor.split(50)])
            key = f"{name} {network} {grid}"
            result[key] = _told_apart(seen, y, len(data["train_x"]) / 10)
            print(key, result[key], flush=True)
            write_result("mepf_extractors", {"runs": result})


def _told_apart(seen: torch.Tensor, labels: torch.Tensor, of_class: float) -> dict[str, float]:
    around = torch.nn.functional.normalize(seen - seen[:1500].mean(0), dim=1)
    means = torch.stack([around[:1500][labels[:1500] == label].mean(0) for label in range(10)])
    sigma = 2 * 4.05 / of_class  # of replaced vectors of norm 1, for 85% of the budget
    noisy = means + sigma * torch.randn(means.shape, generator=torch.Generator().manual_seed(0))
    told = {"features": float(seen.shape[1]), "noise": sigma * seen.shape[1] ** 0.5}
    for key, each in (("without noise", means), ("with noise", noisy)):
        nearest = torch.cdist(around[1500:], each).argmin(1)
        told[key] = float((nearest == labels[1500:]).float().mean())
    return told


def agreement() -> None:
    """Measure how far embeddings in whole numbers are from those in floating point."""
    result = {}
    for name in ("mnist", "cifar10"):
        x = images(name)["train_x"][:100]
        x = x[..., None] if x.ndim == 3 else x
        for network in ("efficientnet-lite0", "vgg19", "alexnet", "mobilenet", "untrained"):
            extractor = load_network(network)
            if network == "alexnet":
                extractor = extractor.first(2)  # further ones do not see so small an image
            mapped = PerceptualMap(extractor, x.shape[1:], grid=7)
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
    modes = {"apart": apart, "agreement": agreement, "extractors": extractors, "fid": fid}
    if sys.argv[1] in modes:
        return modes[sys.argv[1]]()
    name, epsilon, seed, *rest = sys.argv[1:]
    settings = given(rest)
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
