"""The main job on embedded examples, from private data to reports: ``python -m sfumato.demo``."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from sfumato.cli.console import progress_display
from sfumato.data.writing import write_synthetic
from sfumato.datasets import patients, patients_schema
from sfumato.evaluation import Evaluation, evaluate, evaluate_images
from sfumato.evaluation.report import certificate_html, internal_html, report_name
from sfumato.methods.moments.method import Moments
from sfumato.methods.pairs.method import Pairs
from sfumato.modelling.base import Model
from sfumato.privacy.budget import Budget
from sfumato.privacy.run import Run
from sfumato.progress import Progress
from sfumato.public.provenance import digest_of_file
from sfumato.schema import Images, Schema
from sfumato.storage import local, write_whole

TARGET = "readmitted"


def main(folder: Path) -> None:
    """Synthesize a hospital's table and a set of digits, and tell how good the results are."""
    local(folder).mkdir(parents=True, exist_ok=True)
    with progress_display(quiet=False) as progress:
        hospital = _patients(folder, progress)
        digits = _digits(folder, progress)
    for name, (model, found) in {"patients": hospital, "digits": digits}.items():
        print(
            f"\n{name}: epsilon = {model.guarantee.epsilon:.4g}, delta = {model.guarantee.delta:g}"
        )
        for headline in found.headlines:
            print(
                f"  {headline.name}: {headline.value:.3f} (worst {headline.worst:.3f}, "
                f"real data {headline.held_out:.3f})"
            )
        print(f"  certificate (to publish): {folder / report_name(name, 'certificate')}")
        print(f"  report (to keep):         {folder / report_name(name, 'internal')}")
    print(f"\nsynthetic patients: {folder / 'synthetic-patients.csv'}")
    print(f"synthetic digits:   {folder / 'synthetic-digits.npz'}")


def _patients(folder: Path, progress: Progress) -> tuple[Model, Evaluation]:
    """A simulated hospital: 20,000 admissions at epsilon = 1."""
    private, held_out, schema = patients(20_000, seed=1), patients(5_000, seed=2), patients_schema()
    pa.csv.write_csv(private, folder / "patients.csv")
    (folder / "patients.toml").write_text(schema.to_toml())
    model = Pairs(target=TARGET).fit(
        folder / "patients.csv", schema, Budget(epsilon=1), Run(progress=progress)
    )
    synthetic = model.sample()
    write_synthetic(folder / "synthetic-patients.csv", synthetic, schema)
    found = evaluate(private, synthetic, schema, TARGET, test=held_out, progress=progress)
    _write_reports(folder, "patients", "synthetic-patients.csv", model, found)
    return model, found


def _digits(folder: Path, progress: Progress) -> tuple[Model, Evaluation]:
    """Scikit-learn's 1,797 digits of 8 x 8 pixels at epsilon = 10.

    So few images need a budget that is called weak: at epsilon = 1 the noise would be as large as
    the digits.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x, y = (bunch.images * 255 / 16).astype(np.uint8)[..., None], bunch.target
    schema = Schema(images=Images(height=8, width=8, classes=tuple(range(10))))
    model = Moments().fit((x[:1400], y[:1400]), schema, Budget(epsilon=10), Run(progress=progress))
    drawn = model.sample(4000)
    write_synthetic(folder / "synthetic-digits.npz", drawn, schema)
    found = evaluate_images(
        x[:1400], y[:1400], drawn.x, drawn.y, x[1400:], y[1400:], progress=progress
    )
    _write_reports(folder, "digits", "synthetic-digits.npz", model, found)
    return model, found


def _write_reports(
    folder: Path, name: str, synthetic: str, model: Model, found: Evaluation
) -> None:
    model.save(folder / f"{name}.sfumato")
    files = {"synthetic data": synthetic, "model": f"{name}.sfumato"}
    certificate = certificate_html(
        model,
        title=f"Synthetic {name}",
        date=date.today().isoformat(),
        files={f"{what} ({file})": digest_of_file(folder / file) for what, file in files.items()},
    )
    write_whole(folder / report_name(name, "certificate"), certificate.encode())
    internal = internal_html(found, model.guarantee, title=f"Synthetic {name} against real ones")
    write_whole(folder / report_name(name, "internal"), internal.encode())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
