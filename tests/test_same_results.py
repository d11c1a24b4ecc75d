"""All methods give the same bits as before, with fixed seeds and injected noise.

Reshaping code must not change results. Digests are of released integers, of what was learned and of
what is drawn. They depend on the machine's arithmetic; where that differs from the one that wrote
them, only the first release of each method is compared, which is made of integers alone.
To write them anew after a change that is meant, run this file with SFUMATO_WRITE_RESULTS=1.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import sfumato as sf
from sfumato.datasets import patients, patients_schema
from support import seeded_fit

RESULTS = Path(__file__).parent / "same_results.json"
BUDGET = sf.Budget(epsilon=8, delta=1e-5)
DIGITS = sf.Schema(images=sf.Images(height=8, width=8, classes=tuple(range(10))))


def digits() -> tuple[np.ndarray, np.ndarray]:
    bunch = load_digits()
    return (bunch.images * 255 / 16).astype(np.uint8), bunch.target


def digest(*arrays: Any) -> str:
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return sha256(content).hexdigest()[:16]


def arithmetic() -> str:
    """Name the machine's arithmetic by what it makes of a fixed computation."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(200, 200))
    product = matrix @ matrix.T
    parts = [product, np.linalg.eigh(product)[1], np.exp(matrix), np.log(np.abs(matrix))]
    try:
        import torch

        values = torch.from_numpy(matrix.astype(np.float32))
        parts += [(values @ values).numpy(), values.exp().numpy(), values.cos().numpy()]
    except ImportError:
        pass
    return digest(*parts)


def drawn(sample: Any) -> list[Any]:
    if isinstance(sample, pa.Table):
        return [np.array([str(v) for v in column.to_pylist()]) for column in sample.columns]
    return [sample.x, np.array([str(label) for label in sample.y])]


def fitted(method: Any, images: bool) -> dict[str, Any]:
    data, schema = (digits(), DIGITS) if images else (patients(1500), patients_schema())
    model = seeded_fit(method, data, schema, BUDGET)
    return {
        "releases": [digest(release.noisy) for release in model.releases],
        "learned": digest(*(array for _, array in sorted(model.arrays().items()))),
        "drawn": digest(*drawn(model.sample(200, seed=1))),
        "spent": [[s.name, s.dim, s.sensitivity, s.sigma] for s in model.guarantee.spends],
    }


def classifier(method: Any, images: bool) -> dict[str, Any]:
    from seeded import Seeded, drawing
    from sfumato.data.rows import encoded_rows
    from sfumato.privacy.curator import Curator
    from sfumato.privacy.ledger import Ledger

    data, schema = (digits(), DIGITS) if images else (patients(1500), patients_schema())
    curator = Curator(
        encoded_rows(data, method.codec(schema)),
        BUDGET,
        schema,
        sf.Run(ledger=Ledger(":memory:"), dataset="test"),
    )
    with drawing(Seeded()):
        model = method.learn(curator)
    return {
        "learned": digest(*(array for _, array in sorted(model.weights.items()))),
        "predicted": digest(model.predict_proba(data[0] if images else data)),
        "spent": [
            [t.name, t.dim, t.noise_multiplier, t.epsilon] for t in model.guarantee.trainings
        ],
    }


def cases() -> dict[str, Callable[[], dict[str, Any]]]:
    from sfumato.classify.convolutional import Convolutional
    from sfumato.papers.embedding.hp import Hp

    small: dict[str, Any] = {"steps": 20}
    return {
        "pairs": lambda: fitted(sf.Pairs(target="readmitted", components=10, restarts=2), False),
        "pairs without target": lambda: fitted(sf.Pairs(components=10, restarts=1), False),
        "moments": lambda: fitted(sf.Moments(), True),
        "merf": lambda: fitted(sf.Merf(target="readmitted", **small), False),
        "merf on images": lambda: fitted(sf.Merf(**small), True),
        "hp": lambda: fitted(Hp(target="readmitted", **small), False),
        "hp on images": lambda: fitted(Hp(**small), True),
        "maps": lambda: classifier(sf.LocallyLinear(target="readmitted", epochs=3), False),
        "maps on images": lambda: classifier(sf.LocallyLinear(maps=3, epochs=3), True),
        "network": lambda: classifier(Convolutional(epochs=0.5), True),
    }


@pytest.mark.parametrize("name", [
    "pairs", "pairs without target", "moments", "merf", "merf on images", "hp", "hp on images",
    "maps", "maps on images", "network",
])  # fmt: skip
def test_results_are_the_same_bits(name: str) -> None:
    pytest.importorskip("torch")
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            found = json.loads(json.dumps(cases()[name]()))
            machine = arithmetic()
    finally:
        torch.set_num_threads(threads)
    written = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if os.environ.get("SFUMATO_WRITE_RESULTS"):
        RESULTS.write_text(
            json.dumps(written | {name: found, "arithmetic": machine}, indent=1) + "\n"
        )
    elif machine == written["arithmetic"]:
        assert found == written[name]
    else:
        # The accountant of trainings sums up in floating point, as this machine does it.
        for spent, expected in zip(found["spent"], written[name]["spent"], strict=True):
            assert spent[:2] == expected[:2]
            assert spent[2:] == pytest.approx(expected[2:], rel=1e-9)
        assert found.get("releases", [])[:1] == written[name].get("releases", [])[:1]
