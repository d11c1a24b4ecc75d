"""The certificate: what a fitted model promises and how it looks, from released values alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.certificate import made_by, method_in_words
from sfumato.data.table_codec import TableCodec
from sfumato.evaluation.belief import Belief, belief_bounds, strength
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.evaluation import plain
from sfumato.evaluation.grids import as_text, sample_grid
from sfumato.evaluation.histograms import Histogram, histogram
from sfumato.evaluation.noise import LOST, ClassNoise, ColumnNoise, class_noise, column_noise
from sfumato.modelling.base import Model
from sfumato.privacy.budget import Guarantee
from sfumato.schema import (
    Categorical,
    Column,
    Datetime,
    Identifier,
    Numeric,
    Schema,
    canonical_text,
)

SAMPLED_ROWS = 5_000
SAMPLED_IMAGES = 500
MOST_LISTED = 5
MOST_VALUES = 12


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Everything the certificate shows. Nothing here was computed from private rows.

    `made_by` is the version of sfumato that drew it up, `date` the day; `files` gives the SHA-256
    of the files that it is about. `noise` is what the noise alone does to each column, `guessed`
    the share of it that a public rule has put where noise hides everything, `settled` the
    columns of which one value alone is left.
    """

    made_by: str
    date: str | None
    files: dict[str, str]
    method: str
    settings: dict[str, Any]
    guarantee: Guarantee
    strength: str
    beliefs: tuple[Belief, ...]
    content: tuple[Belief, ...]
    rows: int
    declared: tuple[dict[str, str], ...]
    columns: tuple[Histogram, ...]
    classes_of: str | None
    classes: tuple[ClassNoise, ...]
    noise: tuple[ColumnNoise, ...]
    guessed: dict[str, float]
    weaknesses: tuple[str, ...]
    settled: dict[str, str]
    grid: str | None

    @classmethod
    def of(
        cls,
        model: Model,
        seed: int = 0,
        *,
        date: str | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Certificate:
        """Draw up the certificate of a model, with histograms of rows drawn from it."""
        images = model.schema.images is not None
        look = _look_of_images(model, seed) if images else _look_of_table(model, seed)
        return cls(
            made_by=made_by(),
            date=date,
            files=dict(files or {}),
            method=method_in_words(model.method),
            settings=asdict(model.method),
            guarantee=model.guarantee,
            strength=strength(model.guarantee.epsilon),
            beliefs=belief_bounds(model.guarantee.epsilon),
            content=belief_bounds(model.guarantee.content_epsilon),
            rows=model.rows,
            declared=declared(model.schema),
            columns=look.columns,
            classes_of=look.classes_of,
            classes=tuple(look.classes),
            noise=tuple(look.noise),
            guessed=model.guessed,
            weaknesses=tuple(look.weaknesses),
            settled=model.schema.settled,
            grid=look.grid,
        )

    def to_dict(self) -> dict[str, Any]:
        """Give plain values."""
        found: dict[str, Any] = plain(asdict(self) | {"guarantee": self.guarantee.to_dict()})
        return found

    def to_json(self) -> str:
        """Give the text of a JSON file."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class _Look:
    columns: tuple[Histogram, ...]
    classes_of: str | None
    classes: list[ClassNoise]
    weaknesses: list[str]
    noise: list[ColumnNoise] = field(default_factory=list)
    grid: str | None = None


def _look_of_table(model: Model, seed: int) -> _Look:
    count = min(max(model.rows, 1), SAMPLED_ROWS)
    frame = CodedTable.of(model.sample(count, seed=seed), model.schema, "sampled rows")
    coded = TableCodec(model.schema).names
    target = getattr(model.method, "target", None)
    classes: list[ClassNoise] = []
    weak: list[str] = []
    for index in frame.categorical:
        cells = frame.codec.columns[index]
        if not cells.is_category or frame.names[index] not in coded:
            continue
        names = list(cells.names)
        found = class_noise(
            model.releases,
            coded.index(frame.names[index]),
            names,
            _rows(frame.codes[:, index], len(names), model.rows),
        )
        weak += _lost(frame.names[index], found)
        if frame.names[index] == target:
            classes = found
    columns = tuple(histogram(index, {"synthetic": frame}) for index in range(len(frame.names)))
    noise = column_noise(model.releases, coded, model.rows)
    return _Look(columns, target if classes else None, classes, weak, noise)


def _look_of_images(model: Model, seed: int) -> _Look:
    images = model.schema.images
    if images is None:
        raise TypeError("not a model of images")
    drawn = model.sample(SAMPLED_IMAGES, seed=seed)
    labels = drawn.y
    grid = as_text(sample_grid(drawn.x, labels))
    names = [canonical_text(value) for value in images.classes]
    if labels is None or not names:
        return _Look((), None, [], [], grid=grid)
    number = {name: index for index, name in enumerate(names)}
    codes = np.array([number.get(canonical_text(label), 0) for label in labels])
    found = class_noise(model.releases, 0, names, _rows(codes, len(names), model.rows))
    shares = tuple((np.bincount(codes, minlength=len(names)) / len(codes)).tolist())
    bars = Histogram(
        column="class", ordered=False, labels=tuple(names), shares={"synthetic": shares}
    )
    return _Look((bars,), "class" if found else None, found, _lost("class", found), grid=grid)


def _rows(codes: NDArray[Any], classes: int, rows: int) -> NDArray[np.float64]:
    """Estimate the rows of each class from its share of the sample."""
    return np.bincount(codes, minlength=classes) / max(len(codes), 1) * rows


def _lost(column: str, classes: list[ClassNoise]) -> list[str]:
    lost = [each.name for each in classes if each.signal_to_noise < LOST]
    if not lost:
        return []
    named = ", ".join(lost[:MOST_LISTED])
    more = f" and {len(lost) - MOST_LISTED} more" if len(lost) > MOST_LISTED else ""
    return [f"{column}: {named}{more}."]


def declared(schema: Schema) -> tuple[dict[str, str], ...]:
    """Write each column and each constraint of the schema in words."""
    if schema.images:
        look = schema.images
        size = f"{look.height} × {look.width} pixels, {look.channels} channel(s)"
        return ({"column": "images", "kind": "images", "values": size},)
    columns = [
        {"column": name, "kind": _kind(column), "values": _values(column)}
        for name, column in schema.columns.items()
    ]
    constraints = [
        {"column": ", ".join(each.made), "kind": "constraint", "values": each.in_words()}
        for each in schema.constraints
    ]
    return (*columns, *constraints)


def _kind(column: Column) -> str:
    if isinstance(column, Numeric) and column.integer:
        return "integer"
    return type(column).__name__.lower()


def _values(column: Column) -> str:
    text = ""
    if isinstance(column, Numeric):
        text = f"{column.low:g} to {column.high:g}"
    elif isinstance(column, Datetime):
        text = f"{column.low} to {column.high}, by the {column.unit}"
    elif isinstance(column, Categorical):
        named = [canonical_text(value) for value in column.values[:MOST_VALUES]]
        more = len(column.values) - len(named)
        text = ", ".join(named + [f"{more} more"] * bool(more) + ["any other"] * column.other)
    elif isinstance(column, Identifier):
        text = "never used" + (" but to limit the rows of one unit" if column.unit else "")
    parts = [text, "may be missing" if getattr(column, "nullable", False) else ""]
    return ", ".join(part for part in parts if part) or "–"
