"""How good are the images of `mge` and `dre`, for private and public image sets that never overlap?

    python benchmarks/latent.py cifar10 dre 1 0                      # set, method, epsilon, seed
    python benchmarks/latent.py cifar10 mge 1 0 decoder=flow
    python benchmarks/latent.py dogs dre 1 0 ratio=discriminator

Epsilon "inf" leaves the noise out; the method "public" draws public images all alike, which is the
lower end, and "decoded" decodes the private images' own vectors, which is the upper one. Private
and public: cifar10 with Tiny-ImageNet at 32 x 32; mnist and fashion_mnist with QuickDraw, notMNIST,
Kuzushiji and Omniglot; dogs (with cats) and vehicles, halves of classes of Tiny-ImageNet at
64 x 64, with the other half of all its classes (ImageNet networks have seen them).

Add-remove, delta = 1e-5. Each run adds a row to the result; a row that is there is not run again.
Feature vectors and pairs are kept in the user's cache with the time that they took. Needs the
benchmark data (SFUMATO_DATA), and for CIFAR-10 the file cifar10.npz in SFUMATO_CIFAR10.
"""

from __future__ import annotations

import io
import json
import os
import sys
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import sfumato as sf
import sfumato.methods.latent.base as latent
from fid import features_of, kept_features, some
from harness import RESULTS, peak_memory, timed, write_result
from mepf import CACHE, PICTURES, images
from resnet9 import ResNet9
from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import EncodedImages
from sfumato.evaluation.frechet import frechet_distance
from sfumato.evaluation.grids import sample_grid
from sfumato.evaluation.modes import NDB_BINS, different_bins, precision_recall
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.release import Curator
from sfumato.public.encoder import Encoder
from sfumato.public.pair import Pair, load_pair
from sfumato.registry import method_class

LOOKED_AT = 1000  # pictures that Inception sees, generated and real
JUDGED = 20_000  # generated pictures that classifiers are trained on
STROKES = 20_000  # public pictures of strokes
DOGS, VEHICLES = range(24, 33), (70, 81, 94, 103, 107, 116, 121, 133, 145, 153, 164, 166)
SUPERCLASSES = {"dogs": DOGS, "vehicles": VEHICLES}
Data = dict[str, NDArray[Any]]


class KeptEncoder(Encoder):
    """An encoder of public benchmark images, whose vectors are kept with the time they took."""

    def __call__(self, batch: Batch) -> NDArray[np.float64]:
        asked = sha256(json.dumps(self.describe()).encode() + batch.numbers.tobytes())
        path = CACHE / f"vectors-{asked.hexdigest()[:16]}.npz"
        if not path.exists():
            with timed() as taken:
                found = super().__call__(batch)
            np.savez(path, found=found, seconds=taken["seconds"])
        kept = np.load(path)
        Clock.seconds += float(kept["seconds"])
        vectors: NDArray[np.float64] = kept["found"]
        return vectors


class Clock:
    """What encoding took when it was done."""

    seconds = 0.0


def tiny_imagenet() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Unpack 15,000 pictures of 64 x 64."""
    packed = np.load(Path(os.environ["SFUMATO_DATA"]) / "tiny_imagenet_64_sample15k.npz")
    content, ends = packed["train_bytes"], packed["train_off"]
    pictures = [
        np.asarray(Image.open(io.BytesIO(content[a:b].tobytes())).convert("RGB"))
        for a, b in pairwise(ends)
    ]
    return np.stack(pictures), packed["train_y"].astype(np.int64)


def strokes() -> NDArray[np.uint8]:
    """Gather public pictures of strokes and glyphs."""
    found = []
    for file in ("quickdraw345_28", "notmnist_test", "kmnist_test", "omniglot_small"):
        arrays = np.load(Path(os.environ["SFUMATO_DATA"]) / f"{file}.npz")
        found += [arrays[key] for key in arrays.files if arrays[key].ndim == 3]
    whole = np.concatenate(found)
    return whole[np.random.default_rng(0).permutation(len(whole))[:STROKES], ..., None]


def private_and_public(name: str) -> tuple[Data, NDArray[np.uint8], NDArray[np.int64]]:
    """Give the private set, the public images, and the public images' own classes, if known."""
    if name in SUPERCLASSES:
        x, y = tiny_imagenet()
        half = np.random.default_rng(0).permutation(len(x)) < len(x) // 2
        own = half & np.isin(y, SUPERCLASSES[name])
        return {"train_x": x[own]}, x[~half], y[~half]
    data = images(name)
    if name == "cifar10":
        x, y = tiny_imagenet()
        small = x.reshape(-1, 32, 2, 32, 2, 3).mean(axis=(2, 4))
        return data, np.rint(small).astype(np.uint8), y
    return data | {"train_x": data["train_x"][..., None]}, strokes(), np.zeros(0, np.int64)


def pair_of(name: str, decoder: str, public: NDArray[np.uint8]) -> tuple[str, float]:
    """Make the pair, or find the one that was made; give its file and the time that it took."""
    path = CACHE / f"{name}-{decoder}.pair"
    seconds = path.with_suffix(".seconds")
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with timed() as taken:
            made = Pair.train(
                public, name=path.name, source="benchmark data", licence="see data", decoder=decoder
            )
        made.save(path)
        seconds.write_text(str(taken["seconds"]))
    return str(path), float(seconds.read_text())


def run(
    name: str, kind: str, epsilon: float, seed: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """Fit, draw and judge once."""
    data, public, classes = private_and_public(name)
    x, y = data["train_x"], data.get("train_y")
    file, made_in = pair_of(name, str(settings.pop("decoder", "gallery")), public)
    pair = load_pair(file)
    kept = Pair(
        KeptEncoder(*(getattr(pair.encoder, k) for k in ("view", "centre", "weights", "radius"))),
        pair.decoder, pair.features, pair.network, pair.about,
    )  # fmt: skip
    result: dict[str, Any] = {"seconds of the pair": made_in}
    rng = np.random.default_rng(seed)
    drawn_y = None if y is None else rng.integers(10, size=JUDGED)
    if kind == "public":
        drawn_x = public[rng.integers(len(public), size=JUDGED)]
    elif kind == "decoded":
        chosen = rng.choice(len(x), min(LOOKED_AT, len(x)), replace=False)
        drawn_x, drawn_y = kept.decode(kept.encoder.of_images(x[chosen]), seed), None
    else:
        drawn_x, drawn_y, more = synthesized(kind, file, kept, x, y, epsilon, seed, settings)
        result |= more
        if name in SUPERCLASSES and "weights" in more:
            right = np.isin(classes, SUPERCLASSES[name])
            result["mass on the superclass"] = float(result.pop("weights")[0][right].sum())
    result.pop("weights", None)
    result |= judged(name, data, drawn_x, drawn_y, seed)
    if seed == 0 and not settings:
        PICTURES.mkdir(exist_ok=True)
        labels = np.zeros(len(drawn_x), np.int64) if drawn_y is None else drawn_y
        picture = sample_grid(drawn_x, labels)
        (PICTURES / f"{kind}-{name}-{epsilon:g}.png").write_bytes(picture)
    return result


def synthesized(
    kind: str, file: str, pair: Pair, x: Any, y: Any, epsilon: float, seed: int, settings: Any
) -> tuple[NDArray[np.uint8], NDArray[np.int64] | None, dict[str, Any]]:
    """Fit and draw."""
    height, width, channels = x.shape[1:]
    labels = () if y is None else tuple(range(10))
    form = sf.Images(height=height, width=width, channels=channels, classes=labels)
    schema = sf.Schema(images=form)
    method: Any = method_class(kind)(pair=file, seed=seed, **settings)  # type: ignore[call-arg]
    latent._pair = lambda _: pair  # type: ignore[assignment]  # the one that keeps vectors
    rows = EncodedImages((x, y), ImageCodec(form))
    budget = sf.Budget(epsilon=min(epsilon, 1e4), delta=1e-5)
    curator = Curator(rows, budget, ledger=Ledger(":memory:"), dataset="benchmark", schema=schema)
    Clock.seconds = 0.0
    with timed() as taken:
        model = method.learn(curator)
    told = {
        "seconds of encoding": Clock.seconds,
        "seconds of the rest": taken["seconds"],
        "epsilon spent": model.guarantee.epsilon,
        "megabytes": peak_memory(),
    }
    if "weights" in model.learned:
        weights = model.learned["weights"].astype(np.float64)
        sizes = 1 / np.square(weights / weights.sum(1, keepdims=True)).sum(1)
        told |= {"effective images, least": float(sizes.min()), "weights": weights}
    with timed() as taken:
        drawn = model.sample(JUDGED if y is not None else LOOKED_AT, seed=seed)
    told["seconds of sampling"] = taken["seconds"]
    return drawn.x.reshape(-1, height, width, channels), drawn.y, told


def judged(name: str, data: Data, x: Any, y: Any, seed: int) -> dict[str, float]:
    """Compare with real images; where there are labels, train on drawn ones and test on real."""
    found: dict[str, float] = {}
    if x.shape[-1] == 3:
        real = kept_features(name, some(data["train_x"], LOOKED_AT))
        made = features_of(some(x, LOOKED_AT))
        found["FID"] = frechet_distance(real, made)
        found |= precision_recall(real, made)
        found["NDB"] = different_bins(real, made, NDB_BINS)
    if y is None:
        return found
    if name == "cifar10":
        learner = ResNet9((32, 32, 3), epochs=4, seed=seed, width=0.25)
        learner.fit(x, y)
        return found | {"ResNet9": learner.score(data["test_x"], data["test_y"])}
    flat = x.reshape(len(x), -1) / np.float32(255)
    test = data["test_x"].reshape(len(data["test_x"]), -1) / np.float32(255)
    learners = {
        "logistic regression": LogisticRegression(max_iter=5000),
        "MLP": MLPClassifier(max_iter=5000, random_state=seed),
    }
    for key, learner in learners.items():
        found[key] = float(learner.fit(flat, y).score(test, data["test_y"]))
    return found


def main() -> None:
    """Run what is asked for and add it to the result."""
    name, kind, epsilon, seed, *rest = sys.argv[1:]
    settings = {
        key: json.loads(value) if value[:1].isdigit() else value
        for key, value in (each.split("=", 1) for each in rest)
    }
    path = RESULTS / "latent.json"
    key = " ".join(sys.argv[1:])
    if path.exists() and key in json.loads(path.read_text())["runs"]:
        return print(f"{key} is there")
    result = run(name, kind, float(epsilon), int(seed), settings)
    print(key, result, flush=True)
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    write_result("latent", {"runs": runs | {key: result}})
    return None


if __name__ == "__main__":
    main()
