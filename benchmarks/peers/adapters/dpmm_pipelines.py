"""dpmm (SAS; Mahiou et al. 2025): MST, AIM and PrivBayes on columns cut by PrivTree.

Its two budgets add up: a tenth goes to the cuts, as in its documentation, the rest to the model.
Bounds and categories come from the public schema, so that none has to be found.
"""

# /// script
# requires-python = ">=3.10,<3.12"
# dependencies = ["dpmm==0.1.9"]
# ///

from __future__ import annotations

from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline
from exchange import Job

PIPELINES = {"MST": MSTPipeline, "AIM": AIMPipeline, "PrivBayes": PrivBayesPipeline}

job = Job.given()
train = job.train()
for name in job.categories:
    train[name] = train[name].astype("category")
domain = {
    name: {"categories": known["values"]}
    if "values" in known
    else {"lower": known["low"], "upper": known["high"]}
    for name, known in job.columns.items()
}
settings = {
    "epsilon": 0.9 * job.epsilon,
    "delta": job.delta,
    "proc_epsilon": 0.1 * job.epsilon,
    "n_jobs": 1,
}
if job.options["model"] == "AIM":
    settings["max_model_size"] = job.options["megabytes"]
pipeline = PIPELINES[job.options["model"]](**settings)
pipeline.fit(train, domain, random_state=job.seed)
synthetic = pipeline.generate(n_records=len(train), random_state=job.seed)
job.finish(synthetic, "dpmm", settings)
