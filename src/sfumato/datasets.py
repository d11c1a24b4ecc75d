"""Data to try things on: a simulated hospital, and loaders of the benchmark sets.

`patients` needs no download. `load` takes a file from the folder that the environment variable
SFUMATO_DATA names; without it, sets that scikit-learn can fetch are downloaded once, checked
against the publisher's checksum, and cached.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.errors import SfumatoError
from sfumato.schema import Boolean, Categorical, Datetime, Identifier, Numeric, Schema

REGIONS = ("north", "south", "east", "west", "islands")
DIAGNOSES = ("cardiac", "respiratory", "orthopaedic", "metabolic", "infection", "amyloidosis")
WARDS = ("medical", "surgical", "intensive", "day clinic")
BLOOD_TYPES = ("0+", "A+", "B+", "AB+", "0-", "A-", "B-", "AB-")


def patients_schema() -> Schema:
    """Give the public schema of `patients`; some bounds are far too wide, as owners' often are."""
    return Schema(
        columns={
            "patient_id": Identifier(),
            "admitted": Datetime(low=datetime(2020, 1, 1), high=datetime(2024, 12, 31)),
            "age": Numeric(low=18, high=100, integer=True),
            "sex": Categorical(values=("female", "male")),
            "region": Categorical(values=REGIONS),
            "blood_type": Categorical(values=BLOOD_TYPES, nullable=True),
            "diagnosis": Categorical(values=DIAGNOSES),
            "ward": Categorical(values=WARDS),
            "insured": Boolean(),
            "smoker": Boolean(nullable=True),
            "height_cm": Numeric(low=100, high=230),
            "weight_kg": Numeric(low=30, high=300),
            "systolic": Numeric(low=60, high=260, integer=True),
            "diastolic": Numeric(low=30, high=160, integer=True),
            "heart_rate": Numeric(low=30, high=220, integer=True),
            "glucose": Numeric(low=20, high=1000, nullable=True),
            "creatinine": Numeric(low=0, high=50, nullable=True),
            "earlier_visits": Numeric(low=0, high=1000, integer=True),
            "days_in_hospital": Numeric(low=0, high=365, integer=True),
            "cost": Numeric(low=0, high=1_000_000),
            "readmitted": Boolean(),
        }
    )


def patients(rows: int = 10_000, seed: int = 0) -> pa.Table:
    """Simulate a hospital's admissions; `readmitted` depends on the rest through interactions.

    >>> patients(3).num_columns
    21
    """
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(62, 18, rows), 18, 100).astype(int)
    male = rng.random(rows) < 0.48
    old = age > 65
    diagnosis = _choose(
        rng,
        np.where(old[:, None], [5, 3, 2, 3, 1.4, 0.05], [1.5, 2, 4, 2, 2, 0.02]),
    )
    ward = _choose(
        rng,
        np.array([[6, 1, 2, 2], [6, 1, 2, 1], [1, 8, 0.5, 2], [5, 1, 1, 3]])[
            np.minimum(diagnosis, 3)
        ],
    )
    smoker = rng.random(rows) < np.where(diagnosis == 1, 0.5, 0.2)
    height = rng.normal(np.where(male, 177, 164), 7, rows)
    weight = np.clip(
        (height - 100) * rng.lognormal(0.05 + 0.12 * (diagnosis == 3), 0.16, rows), 35, 250
    )
    systolic = rng.normal(112 + 0.35 * age + 12 * (diagnosis == 0), 14, rows)
    glucose = rng.lognormal(np.log(98 + 70 * (diagnosis == 3)), 0.22, rows)
    creatinine = rng.lognormal(-0.1 + 0.01 * (age - 60), 0.35, rows)
    visits = rng.poisson(np.where(rng.random(rows) < 0.6, 0, 0.5 + 3 * old))
    days = rng.poisson(np.array([4, 5, 12, 0])[ward] + 3 * (diagnosis == 5) + 0.03 * age)
    days[ward == 3] = 0
    cost = np.where(days > 0, 600 * (1 + days) * rng.lognormal(0, 0.5, rows), 350.0)
    insured = rng.random(rows) < 0.93
    risk = (
        -3.2
        + 1.3 * (visits > 1)
        + 2.4 * (old & (diagnosis == 0))
        + 2.2 * (smoker & (diagnosis == 1))
        + 2.0 * ((glucose > 150) & (weight > 90))
        + 1.6 * ((ward == 1) & (age > 75))
        - 1.5 * (ward == 3)
        + 1.2 * (creatinine > 1.5)
    )
    start = np.datetime64("2020-01-01")
    day = (1827 * rng.beta(1.4, 1.1, rows)).astype(int)
    table: dict[str, Any] = {
        "patient_id": [f"P{number:07d}" for number in rng.permutation(rows)],
        "admitted": pa.array(start + day.astype("timedelta64[D]")),
        "age": age,
        "sex": np.where(male, "male", "female"),
        "region": _named(REGIONS, _choose(rng, np.tile([30, 28, 22, 19, 0.8], (rows, 1)))),
        "blood_type": _named(
            BLOOD_TYPES,
            _choose(rng, np.tile([35, 37, 9, 4, 6, 6, 2, 1], (rows, 1))),
            rng.random(rows) < 0.1,
        ),
        "diagnosis": _named(DIAGNOSES, diagnosis),
        "ward": _named(WARDS, ward),
        "insured": insured,
        "smoker": pa.array(smoker, mask=rng.random(rows) < 0.08),
        "height_cm": height.round(1),
        "weight_kg": weight.round(1),
        "systolic": systolic.round().astype(int),
        "diastolic": (0.45 * systolic + rng.normal(22, 7, rows)).round().astype(int),
        "heart_rate": rng.normal(76 + 14 * (diagnosis == 4), 12, rows).round().astype(int),
        "glucose": pa.array(glucose.round(1), mask=rng.random(rows) < 0.15),
        "creatinine": pa.array(creatinine.round(2), mask=rng.random(rows) < 0.25),
        "earlier_visits": visits,
        "days_in_hospital": days,
        "cost": cost.round(2),
        "readmitted": rng.random(rows) < 1 / (1 + np.exp(-risk)),
    }
    return pa.table(table)


def load(name: str) -> pa.Table | dict[str, NDArray[Any]]:
    """Load a benchmark set by its name: a table, or the arrays of an image set.

    Sets that can be downloaded: adult, covtype, creditcard, fashion_mnist, isolet,
    kddcup99_10percent, mnist, usps. Others need SFUMATO_DATA.
    """
    folder = os.environ.get("SFUMATO_DATA")
    if folder:
        for path in (Path(folder) / f"{name}.parquet", Path(folder) / f"{name}.npz"):
            if path.suffix == ".parquet" and path.exists():
                return pa.parquet.read_table(path)
            if path.exists():
                with np.load(path) as arrays:
                    return dict(arrays)
        raise SfumatoError(f"SFUMATO_DATA={folder} holds no {name}.parquet or {name}.npz")
    if name not in _FETCH:
        raise SfumatoError(
            f"'{name}' cannot be downloaded: set SFUMATO_DATA to a folder that has it"
        )
    try:
        return _FETCH[name]()
    except OSError as error:
        raise SfumatoError(f"cannot download '{name}': {error}; or set SFUMATO_DATA") from None


def _openml_table(identity: int) -> Callable[[], pa.Table]:
    def fetch() -> pa.Table:
        from sklearn.datasets import fetch_openml

        return pa.Table.from_pandas(fetch_openml(data_id=identity, as_frame=True).frame)

    return fetch


def _openml_images(identity: int, side: int, train: int) -> Callable[[], dict[str, NDArray[Any]]]:
    def fetch() -> dict[str, NDArray[Any]]:
        from sklearn.datasets import fetch_openml

        x, y = fetch_openml(data_id=identity, as_frame=False, return_X_y=True)
        x = np.asarray(x).reshape(-1, side, side)
        if x.min() < 0:  # USPS comes in [-1, 1]
            x = (x + 1) * 127.5
        x, y = x.round().astype(np.uint8), y.astype(int)
        return {
            "train_x": x[:train],
            "train_y": y[:train],
            "test_x": x[train:],
            "test_y": y[train:],
        }

    return fetch


def _sklearn_table(fetcher: str, **options: Any) -> Callable[[], pa.Table]:
    def fetch() -> pa.Table:
        from sklearn import datasets

        frame = getattr(datasets, fetcher)(as_frame=True, **options).frame
        return pa.Table.from_pandas(frame)

    return fetch


_FETCH: dict[str, Callable[[], Any]] = {
    "adult": _openml_table(1590),
    "creditcard": _openml_table(1597),
    "isolet": _openml_table(300),
    "covtype": _sklearn_table("fetch_covtype"),
    "kddcup99_10percent": _sklearn_table("fetch_kddcup99", percent10=True),
    "mnist": _openml_images(554, 28, 60_000),
    "fashion_mnist": _openml_images(40996, 28, 60_000),
    "usps": _openml_images(41082, 16, 7_291),
}


def _choose(rng: np.random.Generator, weights: NDArray[Any]) -> NDArray[np.int64]:
    """Draw one index per row in proportion to the row's weights."""
    edges = np.cumsum(weights, axis=1)
    chosen: NDArray[np.int64] = (rng.random((len(weights), 1)) * edges[:, -1:] > edges).sum(axis=1)
    return chosen


def _named(
    names: tuple[str, ...], codes: NDArray[np.int64], missing: NDArray[np.bool_] | None = None
) -> pa.Array:
    return pa.array(np.array(names)[codes], mask=missing)
