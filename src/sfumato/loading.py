"""Model files, of this version and of earlier ones."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from sfumato.errors import SfumatoError, not_read
from sfumato.modelling.base import FORMAT, Fitted
from sfumato.privacy.answers import Release
from sfumato.privacy.budget import Guarantee
from sfumato.public.provenance import Provenance
from sfumato.registry import method_class
from sfumato.schema import Schema
from sfumato.storage import local

Tensors = dict[str, NDArray[Any]]

_ZERO_WAS_NONE = {"features", "length", "product_length", "maps", "frequencies", "projection"}


def load(path: str | Path, allow: Collection[str] = ()) -> Fitted:
    """Read the model file of a method or a classifier.

    Nothing is quoted from it that can be derived: its epsilon is worked out from its spends. No
    file causes code to be imported, but for methods of other packages that its reader names in
    `allow`.
    """
    if not local(path).exists():
        raise SfumatoError(f"there is no file {path}")
    try:
        with safe_open(path, "numpy") as file:
            about = dict(file.metadata() or {})
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        version = int(about.get("sfumato", 0))
    except (SafetensorError, OSError, ValueError) as error:
        raise not_read(path, error, f"{path} is not a model file of sfumato") from None
    if version > FORMAT:
        raise SfumatoError(
            f"{path} was written by a newer sfumato (format {version}, this one reads up to "
            f"{FORMAT}): update sfumato"
        )
    try:
        if version == 0:
            about, tensors = _from_version_0(about, tensors)
        return _fitted(about, tensors, str(path), allow)
    except (KeyError, TypeError, ValueError):
        raise SfumatoError(f"{path} is not a model file of sfumato, or is damaged") from None


def _fitted(about: dict[str, str], tensors: Tensors, origin: str, allow: Collection[str]) -> Fitted:
    kind = method_class(about["method"], allow)
    guarantee = Guarantee.from_dict(json.loads(about["guarantee"]))
    described = json.loads(about["releases"])
    return kind.model_class.from_arrays(
        {k.removeprefix("model/"): a for k, a in tensors.items() if k.startswith("model/")},
        method=kind(**json.loads(about["settings"])),
        schema=Schema.from_toml(about["schema"], origin),
        guarantee=guarantee,
        public=tuple(Provenance(**each) for each in json.loads(about.get("public", "[]"))),
        releases=tuple(
            Release.of(tensors[f"release/{i}"], spend, each)
            for i, (spend, each) in enumerate(zip(guarantee.spends, described, strict=True))
        ),
    )


def _from_version_0(about: dict[str, str], tensors: Tensors) -> tuple[dict[str, str], Tensors]:
    """Bring a file up to date that was written before files had versions.

    In its settings, 0 stood for what is None now.
    """
    settings = json.loads(about["settings"])
    about["settings"] = json.dumps(
        {
            key: None if key in _ZERO_WAS_NONE and not each else each
            for key, each in settings.items()
        }
    )
    if "classifier" in about:
        about |= {"method": about["classifier"], "releases": "[]"}
        return about, {f"model/{key}": array for key, array in tensors.items()}
    described = [{"statistic": each} for each in json.loads(about["statistics"])]
    return about | {"releases": json.dumps(described)}, tensors
