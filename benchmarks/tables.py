"""The eight tables of Harder et al. (2021) and Vinaroz et al. (2022), prepared as they did.

The data are public, so their code books are, too: categories and bounds of the schemas are taken
from all rows that are kept, with bounds rounded outwards, as an owner would who knows the domain
but not the rows. Each table is split 80/20, stratified, with seed 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.model_selection import train_test_split

from sfumato.datasets import load
from sfumato.schema import Categorical, Column, Numeric, Schema

_VOWELS = [1, 5, 9, 15, 21]
_ATTACKS = {
    "normal": "normal",
    **dict.fromkeys(["back", "land", "neptune", "pod", "smurf", "teardrop"], "dos"),
    **dict.fromkeys(["satan", "ipsweep", "nmap", "portsweep"], "probe"),
    **dict.fromkeys(
        [
            "guess_passwd",
            "ftp_write",
            "imap",
            "phf",
            "multihop",
            "warezmaster",
            "warezclient",
            "spy",
        ],
        "r2l",
    ),
}

# How much of the largest class was kept. The files of credit and covtype here are samples, so the
# shares are of what the whole files would leave; all frauds are there.
#
# For cervical, Harder et al. state 1, but at random guessing they publish a precision of 0.2: that
# of the 0.3 in the script that Vinaroz et al. published, from which their other shares are, too.
HARDER = {
    "adult": 0.4,
    "census": 0.4,
    "cervical": 0.3,
    "credit": 0.01 * 284315 / 17355,
    "covtype": 0.03 * 581012 / 29641,
    "intrusion": 0.1,
}
VINAROZ = HARDER | {"census": 0.2, "credit": 0.002 * 284315 / 17355, "intrusion": 0.03}


@dataclass(frozen=True)
class Table:
    """A prepared table: training and test rows, the schema and the target."""

    name: str
    train: pa.Table
    test: pa.Table
    schema: Schema
    target: str


def prepare(name: str, kept: Mapping[str, float] | None = None) -> Table:
    """Load a table; `kept` tells of which tables how much of the largest class is kept."""
    table, target = _LOADERS[name]()
    table = table.set_column(
        table.column_names.index(target), target, table[target].cast(pa.string())
    )
    if kept and name in kept:
        table = _thinned(table, target, kept[name])
    schema = Schema(columns={n: _declare(table[n]) for n in table.column_names})
    train, test = train_test_split(
        np.arange(table.num_rows), test_size=0.2, random_state=0, stratify=table[target].to_numpy()
    )
    return Table(name, table.take(train), table.take(test), schema, target)


def _declare(values: pa.ChunkedArray) -> Column:
    nullable = values.null_count > 0
    known = pc.unique(values.drop_null())
    number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if number and len(known) > 2:
        return Numeric(
            low=_outwards(pc.min(known).as_py(), math.floor),
            high=_outwards(pc.max(known).as_py(), math.ceil),
            integer=pc.all(pc.equal(pc.round(known), known)).as_py(),
            nullable=nullable,
        )
    return Categorical(values=tuple(sorted(known.to_pylist(), key=str)), nullable=nullable)


def _outwards(bound: float, rounded: Callable[[float], int]) -> float:
    """Round to two digits, away from the data."""
    if bound == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(bound))) - 1)
    outer = rounded(bound / unit) * unit
    return float(round(outer)) if unit >= 1 else round(outer, 12)


def _thinned(table: pa.Table, target: str, share: float) -> pa.Table:
    labels = table[target].to_numpy()
    names, counts = np.unique(labels, return_counts=True)
    largest = np.flatnonzero(labels == names[counts.argmax()])
    rng = np.random.default_rng(0)
    kept = rng.choice(largest, round(share * len(largest)), replace=False)
    return table.take(
        np.sort(np.concatenate([np.flatnonzero(~np.isin(labels, names[counts.argmax()])), kept]))
    )


def _adult() -> tuple[pa.Table, str]:
    return load("adult"), "income"


def _census() -> tuple[pa.Table, str]:
    return load("census_kdd_train").drop_columns(["instance weight"]), "income"


def _cervical() -> tuple[pa.Table, str]:
    """Leave out rows with ten values missing or more, and fill the others: 753 rows stay."""
    frame = load("cervical").drop_columns(["STDs:vaginal condylomatosis"]).to_pandas()
    frame = frame[frame.isna().sum(axis=1) < 10]
    flags = [name for name in frame if frame[name].nunique() <= 2]
    frame[flags] = frame[flags].fillna(0)
    return pa.Table.from_pandas(
        frame.fillna(frame.median().round(1)), preserve_index=False
    ), "Biopsy"


def _credit() -> tuple[pa.Table, str]:
    return load("creditcard_sample").drop_columns(["Time"]), "Class"


def _epileptic() -> tuple[pa.Table, str]:
    table = load("epileptic")
    return _relabelled(table, "y", pc.if_else(pc.equal(table["y"], 1), "seizure", "none")), "y"


def _isolet() -> tuple[pa.Table, str]:
    table = load("isolet").slice(0, 6238)
    vowel = pc.is_in(table["class"].cast(pa.int64()), pa.array(_VOWELS))
    return _relabelled(table, "class", pc.if_else(vowel, "vowel", "consonant")), "class"


def _covtype() -> tuple[pa.Table, str]:
    return load("covtype_sample"), "Cover_Type"


def _intrusion() -> tuple[pa.Table, str]:
    table = load("kddcup99_10percent")
    groups = [_ATTACKS.get(label.rstrip("."), "u2r") for label in table["label"].to_pylist()]
    table = _relabelled(table, "label", pa.array(groups))
    return table.filter(pc.not_equal(table["label"], "u2r")), "label"


def _relabelled(table: pa.Table, name: str, labels: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, labels)


_LOADERS: dict[str, Callable[[], tuple[pa.Table, str]]] = {
    "adult": _adult,
    "census": _census,
    "cervical": _cervical,
    "credit": _credit,
    "epileptic": _epileptic,
    "isolet": _isolet,
    "covtype": _covtype,
    "intrusion": _intrusion,
}
