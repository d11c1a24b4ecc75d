"""The measures that an evaluation takes, in the order in which they are shown."""

from __future__ import annotations

from sfumato.evaluation.discriminator import TELLING_APART
from sfumato.evaluation.measure import ImageMeasure, TableMeasure
from sfumato.evaluation.modes import DIFFERENT_MODES
from sfumato.evaluation.neighbours import NEAREST_ROWS
from sfumato.evaluation.queries import COUNTING_QUERIES

TABLE_MEASURES: tuple[TableMeasure, ...] = (COUNTING_QUERIES, TELLING_APART, NEAREST_ROWS)
IMAGE_MEASURES: tuple[ImageMeasure, ...] = (DIFFERENT_MODES,)
