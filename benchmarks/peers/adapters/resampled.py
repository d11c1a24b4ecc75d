"""No privacy at all: the training rows drawn with replacement. What could be reached at best."""

# /// script
# dependencies = []
# [tool.peers]
# here = true
# ///

from __future__ import annotations

from exchange import Job

job = Job.given()
train = job.train()
job.finish(train.sample(len(train), replace=True, random_state=job.seed), "pandas", {})
