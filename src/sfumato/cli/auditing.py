"""`sfumato audit`: the promise, measured from outside."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.options import Allow, Delta, Force, Quiet, RelationOption, Report, Settings
from sfumato.errors import SfumatoError, within
from sfumato.privacy.budget import Budget, Relation


def audit(
    model: Annotated[
        Path | None,
        typer.Argument(help="Measure this model's method, with its schema, settings and budget."),
    ] = None,
    method: Annotated[
        str,
        typer.Option("--method", "-m", help="Without a model: pairs, moments, …, or a classifier."),
    ] = "pairs",
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Without a model.")] = 5.0,
    delta: Delta = 1e-6,
    relation: RelationOption = Relation.ADD_REMOVE,
    runs: Annotated[int, typer.Option("--runs", help="How often releases are repeated.")] = 1000,
    canaries: Annotated[
        int, typer.Option("--canaries", help="How many rows a training is tried on.")
    ] = 200,
    settings: Settings = None,
    allow: Allow = None,
    report: Report = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Attack releases on worst-case neighbours, or a training on canaries. Needs no private data.

    Exits with 2 if the attack succeeds better than is claimed to be possible.
    """
    from sfumato.cli.console import progress_display
    from sfumato.loading import load
    from sfumato.privacy.measured import NOTE
    from sfumato.storage import refuse_overwriting

    within(runs=(runs, 1, 10**7), canaries=(canaries, 20, 100_000))
    refuse_overwriting({"--report": report}, [model], force)
    if report and model is None:
        raise SfumatoError("a certificate is a model's: name the model file to --report on")
    fitted = load(model, allow or ()) if model else None
    with progress_display(quiet) as progress:
        progress("attacking", None)
        if fitted is None:
            budget = Budget(epsilon=epsilon, delta=delta, relation=relation)
            results = _without_model(method, settings, budget, runs, canaries, progress)
        else:
            results = _of_model(fitted, runs, canaries, progress)
    for each in results:
        print(each.in_words())
    print(NOTE)
    if report:
        from sfumato.cli.synthesis import write_certificate

        write_certificate(fitted, report, str(model), model=model, measured=results)
    if any(each.violated for each in results):
        raise SfumatoError("the promise does not hold: report this, and do not publish anything")


def _without_model(
    name: str, settings: list[str] | None, budget: Budget, runs: int, canaries: int, progress: Any
) -> list[Any]:
    from sfumato.cli.options import pairs
    from sfumato.synthesis import make_method

    method = make_method(name, {**_QUICK.get(name, {}), **pairs(settings, "--set")})
    return _measure(method, _schema(name), budget, runs, canaries, progress)


def _of_model(fitted: Any, runs: int, canaries: int, progress: Any) -> list[Any]:
    from sfumato.privacy.measured import asked_by_method

    promised = fitted.guarantee
    budget = Budget(
        epsilon=promised.epsilon,
        delta=promised.delta,
        relation=promised.relation,
        max_rows_per_unit=promised.max_rows_per_unit,
    )
    asked = asked_by_method(promised)
    if len(asked) < len(promised.spends) and not promised.trainings:
        budget = budget.part(sum(spend.rho for spend in asked) / budget.rho)
        others = ", ".join(spend.name for spend in promised.spends if spend not in asked)
        print(f"not measured, because it came before the method: {others}")
    return _measure(fitted.method, fitted.schema, budget, runs, canaries, progress)


def _measure(
    method: Any, schema: Any, budget: Budget, runs: int, canaries: int, progress: Any
) -> list[Any]:
    from sfumato.privacy.measured import measure_releases, measure_training

    told = partial(progress, "attacking")
    if method.trains:
        return list(measure_training(method, schema, budget, canaries, progress=told))
    return [measure_releases(method, schema, budget, runs, progress=told)]


# Few numbers, so that many runs can be made; and the fit after them is not what is measured.
_QUICK: dict[str, dict[str, Any]] = {
    "pairs": {"components": 2, "restarts": 1, "target": "sick"},
    "merf": {"steps": 1, "target": "sick", "features": 20},
    "hp": {"steps": 1, "target": "sick"},
    "gan": {"epochs": 1, "target": "sick"},
    "locally-linear": {"maps": 2, "target": "sick"},
    "convolutional": {"epochs": 1},
}


def _schema(name: str) -> Any:
    """Give a small schema: few numbers to draw noise for, and so many runs."""
    from sfumato.schema import Schema

    if name in ("moments", "convolutional"):
        return Schema.from_toml('[images]\nheight = 4\nwidth = 4\nclasses = ["a", "b"]\n')
    return Schema.from_toml(
        '[columns.age]\nkind = "integer"\nlow = 0\nhigh = 9\n'
        '[columns.town]\nkind = "categorical"\nvalues = ["a", "b", "c"]\n'
        '[columns.sick]\nkind = "boolean"\n'
    )
