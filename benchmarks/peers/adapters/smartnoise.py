"""SmartNoise (OpenDP): AIM and MST, on the public grid.

Its own bins for numbers give back their middles, which would tell them from real ones at once.
Its noise cannot be seeded.
"""

# /// script
# requires-python = ">=3.10,<3.15"
# dependencies = ["smartnoise-synth==1.0.8", "torch==2.13.0"]
# ///

from __future__ import annotations

import numpy as np
import pandas as pd
from exchange import Job
from grid import CELLS, Grid
from snsynth.aim import AIMSynthesizer
from snsynth.mst import MSTSynthesizer
from snsynth.transform import LabelTransformer, TableTransformer

job = Job.given()
np.random.seed(job.seed)  # what it draws beside the noise
grid = Grid(job.columns)
codes = grid.encode(job.train())
settings = {"epsilon": job.epsilon, "delta": job.delta}
if job.options["model"] == "AIM":
    settings["max_model_size"] = job.options["megabytes"]
    synthesizer = AIMSynthesizer(**settings)
else:
    synthesizer = MSTSynthesizer(**settings)
labels = TableTransformer([LabelTransformer(nullable=False) for _ in job.columns])
synthesizer.fit(codes, transformer=labels)
drawn = pd.DataFrame(synthesizer.sample(len(codes)), columns=list(job.columns)).astype(int)
job.finish(grid.decode(drawn, job.seed), "smartnoise-synth", settings | {"cells": CELLS})
