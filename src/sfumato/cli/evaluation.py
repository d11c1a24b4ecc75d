"""`sfumato evaluate`: how good a synthetic data set is, measured on real data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import (
    Delimiter,
    Encoding,
    Force,
    Quiet,
    SchemaFile,
    Seed,
    Target,
    load_schema,
)
from sfumato.errors import not_negative, within


def evaluate(
    real: Annotated[str, typer.Argument(help="The private data.")],
    synthetic: Annotated[Path, typer.Argument(help="The synthetic data.")],
    schema: SchemaFile,
    target: Target = None,
    test: Annotated[
        Path | None, typer.Option("--test", help="Real rows to test on; else a fifth is held out.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Every measure and all twelve classifiers, on all rows.")
    ] = False,
    json: Annotated[
        Path | None, typer.Option("--json", help="Also write every figure as JSON.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Also write the internal report, to a file or into a folder."
        ),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Measure synthetic data against real ones. The output is private: do not publish it."""
    from sfumato import evaluation
    from sfumato.cli.console import print_table, progress_display, stderr
    from sfumato.data.address import is_address
    from sfumato.data.sources import dataset_name
    from sfumato.evaluation.report import MOST_POINTS, internal_html, report_name
    from sfumato.storage import refuse_overwriting, write_whole

    if report and report.is_dir():
        report = report / report_name(synthetic.stem, "internal")
    inputs = [real, synthetic, schema, test]
    refuse_overwriting({"--json": json, "--report": report}, inputs, force)
    not_negative(seed=seed)
    within(seed=(seed, 0, 2**31))  # scikit-learn takes no larger ones
    public = load_schema(schema, delimiter, encoding)
    with progress_display(quiet) as progress:
        found = evaluation.evaluate(
            real, synthetic, public, target, test=test, full=full, seed=seed, progress=progress
        )
    if json:
        write_whole(json, found.to_json().encode())
    if report:
        against = dataset_name(real) if is_address(real) else Path(real).name
        page = internal_html(found, title=f"{synthetic.name} against {against}")
        write_whole(report, page.encode())
    print_table(
        "PRIVATE: computed on real data, do not publish",
        ["measure", "value", "worst", "best", "real rows", "what it means"],
        [
            [
                line.name,
                *map(_figure, (line.value, line.worst, line.best, line.held_out)),
                line.meaning,
            ]
            for line in found.headlines
        ],
    )
    for misfit in getattr(found, "misfits", ()):
        stderr.print(f"MISFIT: {misfit}", style="bold red", highlight=False, markup=False)
    for weakness in found.weaknesses[:MOST_POINTS]:
        print(f"weak: {weakness}")
    if len(found.weaknesses) > MOST_POINTS:
        print(f"… and {len(found.weaknesses) - MOST_POINTS} more: see --report or --json")


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
