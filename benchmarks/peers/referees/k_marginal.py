"""NIST's k-marginal score (0 to 1000), by SDNist's own code.

SDNist compares all pairs of columns, and within groups (of its own data: places) all triples of
group and pair: 1000 (1 - mean total variation distance). The target is taken for the group here.
Numbers go in 20 bins by the ranks of the real values, as SDNist does. The cutting is written anew:
SDNist's own is made for whole numbers, and puts the values of a synthetic column whose first bin
is empty (as where most are zero) in other bins than the real ones.
"""

# /// script
# requires-python = ">=3.8,<3.12"
# dependencies = ["sdnist==2.4"]
# ///

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import sdnist.report  # noqa: F401  (before its metrics: they import each other)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "adapters"))
from exchange import Job, read_rows
from sdnist.metrics.kmarginal import KMarginal

BINS = 20
GROUP = "PUMA"  # the column by which SDNist groups


def ranked(real: pd.Series, synthetic: pd.Series) -> tuple[pd.Series, np.ndarray]:
    """Bin real numbers by their ranks, and others as the real ones that they lie beside."""
    bins = np.minimum((BINS * real.rank(pct=True)).fillna(-1), BINS - 1).astype(int)
    tops = real[bins >= 0].groupby(bins[bins >= 0]).max()
    if tops.empty:
        return bins, np.full(len(synthetic), -1)
    place = np.minimum(np.searchsorted(tops.to_numpy(), synthetic.to_numpy()), len(tops) - 1)
    return bins, np.where(synthetic.isna(), -1, tops.index.to_numpy()[place])


job = Job.given()
real, synthetic = job.train(), read_rows(job.folder / "synthetic.csv", job.columns)
coded: tuple[dict, dict] = ({}, {})
for name, known in job.columns.items():
    if "values" in known:
        both = [pd.Categorical(rows[name], known["values"]).codes for rows in (real, synthetic)]
    else:
        both = ranked(real[name], synthetic[name])
    for side, codes in zip(coded, both, strict=True):
        side[name] = np.asarray(codes)
tables = [pd.DataFrame(side) for side in coded]
grouped = [table.rename(columns={job.target: GROUP}) for table in tables]
score = {
    "pairs": KMarginal(*tables).compute_score(),
    "with_target": KMarginal(*grouped, group_features=[GROUP]).compute_score(),
}
(job.folder / "k_marginal.json").write_text(json.dumps(score))
