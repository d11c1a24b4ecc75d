"""The measures that an evaluation takes, in the order in which they are shown."""

from __future__ import annotations

from sfumato.evaluate.discriminator import TELLING_APART
from sfumato.evaluate.measure import ImageMeasure, TableMeasure
from sfumato.evaluate.modes import DIFFERENT_MODES
from sfumato.evaluate.neighbours import NEAREST_ROWS
from sfumato.evaluate.queries import COUNTING_QUERIES

TABLE_MEASURES: tuple[TableMeasure, ...] = (COUNTING_QUERIES, TELLING_APART, NEAREST_ROWS)
IMAGE_MEASURES: tuple[ImageMeasure, ...] = (DIFFERENT_MODES,)
