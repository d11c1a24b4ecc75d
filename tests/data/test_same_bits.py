"""Every method gets the same answers, bit by bit, wherever rows lie and however many read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from PIL import Image

pytest.importorskip("torch")

from questions import answers, questions
from sfumato.data import gathering, image_sources, workers
from sfumato.data.rows import encoded_rows
from sfumato.modelling.base import Method
from sfumato.privacy.budget import Budget
from sfumato.public.pair import Pair
from sfumato.registry import CLASSIFIERS, SYNTHESIZERS, method_class
from sfumato.schema import Images, Schema
from support import SCHEMA, people

BUDGET = Budget(epsilon=8, delta=1e-5)
PICTURES = Schema(images=Images(height=8, width=8, classes=(0, 1, 2)))
Form = tuple[Any, int, Path | None]
"""Where rows lie, how many workers read them, and where encoded ones may be kept."""
FEW: dict[str, Any] = {"steps": 2}
SHORT: dict[str, Any] = {"rate": 0.2, "epochs": 0.4}
TABLES: dict[str, dict[str, Any]] = {
    "pairs": {"components": 3, "restarts": 1},
    "merf": FEW,
    "hp": FEW,
    "gan": SHORT,
    "locally-linear": {"maps": 2, **SHORT},
}
IMAGES: dict[str, dict[str, Any]] = {
    "moments": {},
    "merf": FEW,
    "hp": FEW,
    "mepf": {"network": "untrained", **FEW},
    "mge": {},
    "dre": {},
    "gan": SHORT,
    "locally-linear": {"maps": 2, **SHORT},
    "convolutional": SHORT,
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PART_BYTES", 1 << 12)
    monkeypatch.setattr(workers, "WORTH", 1)
    monkeypatch.setattr(gathering, "MOST_IN_MEMORY", 1 << 12)
    monkeypatch.setattr(image_sources, "_BATCH", 16)


@pytest.fixture(scope="module")
def pair_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pair") / "some.pair"
    x = np.random.default_rng(1).integers(0, 256, (60, 8, 8, 1), np.uint8)
    about = {"name": "some", "source": "made by a test", "licence": "none"}
    Pair.train(x, **about, dim=4, network="untrained").save(path)
    return str(path)


def test_every_method_is_here() -> None:
    assert {*TABLES, *IMAGES} == {*SYNTHESIZERS, *CLASSIFIERS}


def compared(method: Method, schema: Schema, data: Any, others: Sequence[Form]) -> None:
    """Ask all that a fit to `data` asks of the same rows elsewhere."""
    codec = method.codec(schema)
    asked = questions(method, encoded_rows(data, codec), schema, BUDGET)
    assert asked
    expected = answers(asked, encoded_rows(data, codec))
    for other, count, spool in others:
        found = answers(asked, encoded_rows(other, codec, workers=count, spool=spool))
        assert found == expected, (other, count)


@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str, tmp_path: Path) -> None:
    table_of_people = people(500)
    pa.csv.write_csv(table_of_people, tmp_path / "a.csv")
    pa.parquet.write_table(table_of_people, tmp_path / "a.parquet", row_group_size=120)
    others: list[Form] = [
        (tmp_path / "a.csv", 1, None),
        (tmp_path / "a.csv", 2, tmp_path / "spool"),
        (tmp_path / "a.parquet", 2, None),
    ]
    if find_spec("duckdb"):
        import duckdb

        with duckdb.connect(tmp_path / "a.duckdb") as base:
            base.execute("CREATE TABLE people AS SELECT * FROM table_of_people")
        others.append((f"duckdb://{tmp_path / 'a.duckdb'}?table=people", 2, tmp_path / "spool"))
    method = method_class(name)(target="sick", **TABLES[name])  # type: ignore[call-arg]
    compared(method, SCHEMA, table_of_people, others)


@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str, tmp_path: Path, pair_file: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, (60, 8, 8), np.uint8)
    y = np.arange(60) % 3
    # By class, as a folder is read: a training sees rows in their order.
    order = np.argsort(y, kind="stable")
    for number, index in enumerate(order):
        place = tmp_path / "set" / str(y[index])
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(x[index]).save(place / f"{number:02}.png")
    np.savez(tmp_path / "set.npz", x=x[order], y=y[order])
    given: dict[str, Any] = {"pair": pair_file} if name in ("mge", "dre") else {}
    make: Callable[..., Method] = method_class(name)
    others: list[Form] = [
        (tmp_path / "set.npz", 1, tmp_path / "spool"),
        (tmp_path / "set", 2, tmp_path / "spool"),
    ]
    compared(make(**IMAGES[name], **given), PICTURES, (x[order], y[order]), others)
