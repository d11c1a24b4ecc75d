"""sfumato's `pairs`, as it is in this repository, with all defaults."""

# /// script
# dependencies = []
# [tool.peers]
# here = true
# ///

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from exchange import Job

import sfumato as sf
from sfumato.schema import Categorical, Numeric, Schema

job = Job.given()
schema = Schema(
    columns={
        name: Categorical(values=tuple(known["values"]), nullable=known["nullable"])
        if "values" in known
        else Numeric(**known)
        for name, known in job.columns.items()
    }
)
model = sf.Pairs(target=job.target, seed=job.seed).fit(
    pa.Table.from_pandas(job.train(), preserve_index=False),
    schema,
    sf.Budget(epsilon=job.epsilon, delta=job.delta),
)
synthetic = model.sample(seed=job.seed)
text = [pc.cast(synthetic[name], pa.string()) for name in job.categories]
for name, column in zip(job.categories, text, strict=True):
    synthetic = synthetic.set_column(synthetic.column_names.index(name), name, column)
commit = subprocess.run(
    ["git", "-C", Path(__file__).parent, "rev-parse", "--short", "HEAD"],
    capture_output=True, text=True, check=False,
).stdout.strip()  # fmt: skip
settings = {"method": "pairs", "target": job.target, "commit": commit}
job.finish(synthetic.to_pandas(), "sfumato", settings)
