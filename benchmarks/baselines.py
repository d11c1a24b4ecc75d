"""All methods side by side, in one harness with one accounting.

    python benchmarks/baselines.py mnist gan 1 0                  # set, method, epsilon, seed
    python benchmarks/baselines.py mnist gan 1 0 start=public     # with other settings
    python benchmarks/baselines.py adult gan 1 0
    python benchmarks/baselines.py sheet mnist 1                  # a picture of all methods

Add-remove, delta = 1e-5. Image sets: logistic regression and an MLP on 20,000 generated images,
tested on real ones; Adult: the mean AUC of the six classifiers. Methods that need public images
have those of `latent.py`. Each run adds a row to the result; a row that is there is not run again.
Needs the benchmark data (SFUMATO_DATA).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import sfumato as sf
from harness import RESULTS, peak_memory, timed, write_result
from latent import judged, pair_of, private_and_public
from mepf import CACHE, JUDGED, PICTURES
from sfumato.evaluation import train_on_synthetic
from sfumato.registry import method_class
from tables import prepare

SHOWN = 4  # images of each class on the sheet


def run(name: str, kind: str, epsilon: float, seed: int, settings: dict[str, Any]) -> Any:
    """Fit, draw and judge once."""
    budget = sf.Budget(epsilon=epsilon, delta=1e-5)
    if name == "adult":
        table = prepare("adult")
        method: Any = method_class(kind)(target=table.target, seed=seed, **settings)  # type: ignore[call-arg]
        with timed() as taken:
            drawn = method.fit(table.train, table.schema, budget).sample(seed=seed)
        found = train_on_synthetic(drawn, table.test, None, table.schema, table.target, "six")
        auc = found.mean["synthetic"]["roc_auc"]
        return {"AUC": auc, "seconds": taken["seconds"], "megabytes": peak_memory()}
    data, public, _ = private_and_public(name)
    x, y = data["train_x"], data["train_y"]
    if kind in ("mge", "dre") or {"start", "inside"} & set(settings):
        settings = {"pair": pair_of(name, "gallery", public)[0], **settings}
    height, width, channels = x.shape[1:]
    form = sf.Images(height=height, width=width, channels=channels, classes=tuple(range(10)))
    method = method_class(kind)(seed=seed, **settings)  # type: ignore[call-arg]
    with timed() as taken:
        model = method.fit((x, y), sf.Schema(images=form), budget)
        drawn = model.sample(JUDGED, seed=seed)
    shown = [drawn.x[drawn.y == label][:SHOWN] for label in range(10)]
    np.save(_sheet_file(name, epsilon, " ".join([kind, *map(str, settings.values())])), shown)
    pictures = drawn.x.reshape(-1, height, width, channels)
    return {
        "seconds": taken["seconds"],
        "megabytes": peak_memory(),
        **judged(name, data, pictures, drawn.y, seed),
    }


def _sheet_file(name: str, epsilon: float, kind: str) -> Path:
    plain = "".join(letter for letter in Path(kind).name if letter.isalnum())
    return CACHE / f"sheet-{name}-{epsilon:g}-{plain}.npy"


def sheet(name: str, epsilon: float) -> None:
    """Put samples of all methods that were run side by side, a band for each."""
    bands = []
    for path in sorted(CACHE.glob(f"sheet-{name}-{epsilon:g}-*.npy")):
        print(path.stem)
        images = np.load(path)
        rows = [np.concatenate(images[:, row], axis=1) for row in range(SHOWN)]
        bands.append(np.pad(np.concatenate(rows), [(0, 6), (0, 0)]))
    Image.fromarray(np.concatenate(bands)).save(PICTURES / f"baselines-{name}-{epsilon:g}.png")


def main() -> None:
    """Run what is asked for and add it to the result."""
    if sys.argv[1] == "sheet":
        return sheet(sys.argv[2], float(sys.argv[3]))
    name, kind, epsilon, seed, *rest = sys.argv[1:]
    settings = {
        key: json.loads(value) if value[:1].isdigit() else value
        for key, value in (each.split("=", 1) for each in rest)
    }
    path = RESULTS / "baselines.json"
    key = " ".join(sys.argv[1:])
    if path.exists() and key in json.loads(path.read_text())["runs"]:
        return print(f"{key} is there")
    result = run(name, kind, float(epsilon), int(seed), settings)
    print(key, result, flush=True)
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    write_result("baselines", {"runs": runs | {key: result}})
    return None


if __name__ == "__main__":
    main()
