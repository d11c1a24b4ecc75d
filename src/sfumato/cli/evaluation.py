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
from sfumato.errors import not_negative


def evaluate(
    real: Annotated[Path, typer.Argument(help="The private data.")],
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
    from sfumato import evaluate as measures
    from sfumato.cli.console import print_table, progress_display
    from sfumato.evaluate.report import internal_html, report_name
    from sfumato.storage import refuse_overwriting, write_whole

    if report and report.is_dir():
        report = report / report_name(synthetic.stem, "internal")
    inputs = [real, synthetic, schema, test]
    refuse_overwriting({"--json": json, "--report": report}, inputs, force)
    not_negative(seed=seed)
    public = load_schema(schema, delimiter, encoding)
    with progress_display(quiet) as progress:
        found = measures.evaluate(
            real, synthetic, public, target, test=test, full=full, seed=seed, progress=progress
        )
    if json:
        write_whole(json, found.to_json().encode())
    if report:
        page = internal_html(found, title=f"{synthetic.name} against {real.name}")
        write_whole(report, page.encode())
    print_table(
        "PRIVATE: computed on real data, do not publish",
        ["measure", "value", "worst", "best", "what it means"],
        [
            [h.name, f"{h.value:.3f}", f"{h.worst:.3f}", f"{h.best:.3f}", h.meaning]
            for h in found.headlines
        ],
    )
    for weakness in found.weaknesses:
        print(f"weak: {weakness}")
