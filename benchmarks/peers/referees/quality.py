"""SDMetrics' quality report: its score, and the parts of which it is the mean.

SDMetrics is under the MIT licence, copulas, which one of its other metrics imports, is not free:
it is left out, and a hollow module stands in its place.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy<3", "pandas==2.3.3", "plotly==7.1.0", "scikit-learn==1.9.1", "tqdm"]
# [tool.peers]
# alone = ["sdmetrics==0.32.0"]
# ///

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "adapters"))
for name in ("copulas", "copulas.univariate", "copulas.univariate.base"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["copulas.univariate.base"].Univariate = object

from exchange import Job, read_rows  # noqa: E402
from sdmetrics.reports.single_table import QualityReport  # noqa: E402

job = Job.given()
kinds = {
    name: {"sdtype": "categorical" if "values" in known else "numerical"}
    for name, known in job.columns.items()
}
report = QualityReport()
synthetic = read_rows(job.folder / "synthetic.csv", job.columns)
report.generate(job.train(), synthetic, {"columns": kinds}, verbose=False)
parts = report.get_properties().set_index("Property")["Score"]
score = {"quality": report.get_score()} | {
    name.lower().replace(" ", "_"): float(part) for name, part in parts.items()
}
(job.folder / "quality.json").write_text(json.dumps(score))
