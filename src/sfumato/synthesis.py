"""The main job in one call: private rows in, synthetic rows and their guarantee out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from sfumato.data.address import is_address
from sfumato.data.new_table import NewTable, new_table
from sfumato.data.writing import check_output, write_synthetic
from sfumato.errors import SfumatoError, within
from sfumato.modelling.base import MOST_ROWS, Method, Model
from sfumato.notebook import usual_progress
from sfumato.privacy.budget import Budget
from sfumato.privacy.run import Run
from sfumato.registry import method_class
from sfumato.sampling import Draw
from sfumato.schema import Schema, read_schema
from sfumato.storage import refuse_overwriting

Settings = TypeVar("Settings", bound=Method)


@dataclass(frozen=True)
class Synthesis:
    """A synthetic data set and the model that it was drawn from.

    Data that were written in several parts, or to a database, are not held here: there may be too
    many.
    """

    data: Any
    model: Model


def default_method(schema: Schema) -> str:
    """Give the name of the method that serves most users of such data."""
    return "moments" if schema.images else "pairs"


def make_method(name: str, settings: dict[str, Any]) -> Method:
    """Make a method by name, with settings as values or as the texts of a command line.

    >>> make_method("pairs", {"target": "income", "components": "20"}).components
    20
    """
    return with_settings(method_class(name), settings)


def with_settings(kind: type[Settings], settings: dict[str, Any]) -> Settings:
    """Make a method of settings, given as values or as the texts of a command line."""
    hints = get_type_hints(kind)
    known = {field.name: hints[field.name] for field in fields(kind)}
    parsed = {}
    for key, value in settings.items():
        if key not in known:
            raise SfumatoError(f"{kind.name} has no setting '{key}'; it has: {', '.join(known)}")
        parsed[key] = _parsed(key, value, known[key])
    return kind(**parsed)


def releases_beside(output: Path) -> Path:
    """Name the folder in which a run that writes `output` keeps what it paid for."""
    if not output.name:
        raise SfumatoError(f"{output} names no file: name one")
    return output.with_name(output.name + ".releases")


def synthesize(
    data: Any,
    schema: Schema | str | Path | Mapping[str, Any],
    budget: Budget | float,
    *,
    method: Method | None = None,
    output: Path | str | NewTable | None = None,
    rows: int | None = None,
    seed: int = 0,
    run: Run = Run(),
) -> Synthesis:
    """Fit a method to private rows, draw a synthetic data set from it, and write it.

    The row count is by default the noisy count of the private rows. With an `output`, what was paid
    for is kept beside it unless the `run` names another folder; everything that could be wrong with
    the output is noticed before anything is paid. It may be the address of a new table in a
    database, beside which nothing is kept.

    >>> import pyarrow as pa
    >>> from sfumato.schema import Numeric
    >>> schema = Schema(columns={"age": Numeric(low=0, high=99, integer=True)})
    >>> made = synthesize(pa.table({"age": [30, 40] * 500}), schema, Budget(epsilon=5), rows=3)
    >>> made.data.num_rows, made.model.guarantee.epsilon <= 5
    (3, True)
    """
    schema, budget = read_schema(schema), Budget.of(budget)
    run = replace(run, progress=run.progress or usual_progress())
    method = method or make_method(default_method(schema), {"seed": seed})
    if not issubclass(method.model_class, Model):
        raise SfumatoError(f"{method.name} is a classifier: it draws no rows")
    if rows is not None and rows < 0:
        raise SfumatoError(f"rows must not be negative, got {rows}")
    within(rows=(rows, 0, MOST_ROWS))
    if isinstance(output, str):
        output = new_table(output) if is_address(output) else Path(output)
    if isinstance(output, Path):
        run = replace(run, folder=run.folder or releases_beside(output))
        inputs = [data, run.folder]
        refuse_overwriting({"output": output}, inputs=inputs, force=True, folder=output)
    if output:
        check_output(output, schema, data)
    model = method.fit(data, schema, budget, run)
    run.tell("sampling", None)
    draw = Draw(model, rows, seed=seed)
    if isinstance(output, NewTable) or (output and draw.parts > 1):
        draw.write(output, run.workers)
        return Synthesis(None, model)
    drawn = draw.whole(run.workers)
    if output:
        run.tell(f"writing {output}", None)
        write_synthetic(output, drawn, model.schema)
    return Synthesis(drawn, model)


def _parsed(key: str, value: Any, hint: Any) -> Any:
    """Read the text of a setting by its type; "none" where none is allowed."""
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    if not isinstance(value, str) or kinds[0] is str or not isinstance(kinds[0], type):
        return value
    if len(kinds) < len(get_args(hint)) and value.lower() == "none":
        return None
    try:
        if kinds[0] is bool:
            return {"true": True, "false": False}[value.lower()]
        return kinds[0](value)
    except (ValueError, KeyError):
        raise SfumatoError(f"{key} must be a {kinds[0].__name__}, got '{value}'") from None
