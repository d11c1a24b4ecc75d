"""The main job in one call: private rows in, synthetic rows and their guarantee out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from sfumato.errors import SfumatoError
from sfumato.methods import METHODS
from sfumato.methods.base import Method, Model
from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import Ledger
from sfumato.progress import Progress, silent
from sfumato.schema import Schema

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Synthesis:
    """A synthetic data set and the model that it was drawn from."""

    data: Any
    model: Model


def default_method(schema: Schema) -> str:
    """Give the name of the method that serves most users of such data."""
    return "moments" if schema.images else "pairs"


def make_method(name: str, settings: dict[str, Any]) -> Method:
    """Make a method by name, with settings as values or as the texts of a command line."""
    if name not in METHODS:
        raise SfumatoError(f"there is no method '{name}'; there are: {', '.join(METHODS)}")
    return made(METHODS[name], settings)


def made(kind: type[Settings], settings: dict[str, Any]) -> Settings:
    """Make a thing of settings, given as values or as the texts of a command line."""
    known = {field.name: type(field.default) for field in fields(kind)}  # type: ignore[arg-type]
    parsed = {}
    for key, value in settings.items():
        if key not in known:
            name = kind.name  # type: ignore[attr-defined]
            raise SfumatoError(f"{name} has no setting '{key}'; it has: {', '.join(known)}")
        parsed[key] = _parsed(key, value, known[key])
    return kind(**parsed)


def synthesize(
    data: Any,
    schema: Schema,
    budget: Budget,
    *,
    method: Method | None = None,
    rows: int | None = None,
    seed: int = 0,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Synthesis:
    """Fit a method to private rows and draw a synthetic data set from it.

    The row count is by default the noisy count of the private rows.
    """
    method = method or make_method(default_method(schema), {"seed": seed})
    model = method.fit(
        data, schema, budget, ledger=ledger, dataset=dataset, folder=folder, progress=progress
    )
    progress("sampling", None)
    return Synthesis(model.sample(rows, seed=seed), model)


def _parsed(key: str, value: Any, kind: type) -> Any:
    if not isinstance(value, str) or kind is str or kind is type(None):
        return value
    try:
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        return kind(value)
    except (ValueError, KeyError):
        raise SfumatoError(f"{key} must be a {kind.__name__}, got '{value}'") from None
