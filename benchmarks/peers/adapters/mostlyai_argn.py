"""MOSTLY AI's TabularARGN, trained by DP-SGD, with the defaults of its engine.

The whole budget is `max_epsilon`, of which `value_protection_epsilon` (a tenth, as in its defaults)
finds ranges and categories: it takes no public schema. Training ends when the budget is used up.
Rare categories are drawn from the others, since a placeholder would not be of the schema. What it
needs for texts only (torchvision, torchaudio, xgrammar) is not installed.
"""

# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#   "torch==2.13.0", "numpy>=2", "pandas>=2.2", "pyarrow>=16", "scikit-learn>=1.4", "joblib>=1.4.2",
#   "psutil>=5.9.5,<6", "opacus>=1.6", "accelerate>=1.5", "pydantic>=2.4.2", "transformers>=5.5.3",
#   "json-repair>=0.60.1", "peft>=0.18.2", "datasets>=3", "tokenizers>=0.21.1",
#   "huggingface-hub>=0.30.2",
# ]
# [tool.peers]
# alone = ["mostlyai-engine==2.7.3"]
# ///

from __future__ import annotations

import pandas as pd
from exchange import Job
from mostlyai import engine
from mostlyai.engine.domain import DifferentialPrivacyConfig

job = Job.given()
train = job.train()
engine.init_logging()
engine.set_random_state(job.seed)
folder = job.folder / "engine"
privacy = {
    "max_epsilon": job.epsilon,
    "delta": job.delta,
    "value_protection_epsilon": 0.1 * job.epsilon,
}
config = DifferentialPrivacyConfig(**privacy)
kinds = {
    name: "TABULAR_CATEGORICAL" if "values" in known else "TABULAR_NUMERIC_AUTO"
    for name, known in job.columns.items()
}
engine.split(train, workspace_dir=folder, tgt_encoding_types=kinds)
engine.analyze(workspace_dir=folder, differential_privacy=config)
engine.encode(workspace_dir=folder)
engine.train(workspace_dir=folder, differential_privacy=config)
engine.generate(
    workspace_dir=folder, sample_size=len(train), rare_category_replacement_method="SAMPLE"
)
synthetic = pd.read_parquet(folder / "SyntheticData")
job.finish(synthetic, "mostlyai-engine", privacy)
