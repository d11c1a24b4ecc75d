"""The gate on noisy counts: a run stops only if released figures say that too much does not fit."""

from __future__ import annotations

import numpy as np

from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.privacy.curator import Curator
from sfumato.statistics.counts import Axis, Counts


class MisfitError(SfumatoError):
    """Released figures say that the data do not fit the schema: the run ends here."""


def pass_noisy_gate(curator: Curator, most: float) -> None:
    """Release how many values of each column do not fit, and stop where they are too many.

    Each row adds one to one of two cells of each column, so the noise grows with the root of the
    number of columns.
    """
    codec = curator.codec
    if not isinstance(codec, TableCodec):
        raise SfumatoError("misfits can be counted with noise in tables only")
    both = np.arange(2, dtype=np.int32)
    statistic = Counts([(Axis(index, both),) for index in range(len(codec.declared))])
    release = curator.release_misfits("misfits", statistic)
    tables = list(statistic.split(release.values))
    rows = float(np.mean([table.sum() for table in tables]))
    over = [
        f"'{name}' ({table[1] / rows:.1%})"
        for name, table in zip(codec.declared, tables, strict=True)
        if table[1] > most * max(rows, 1.0)
    ]
    if over:
        raise MisfitError(
            f"by noisy counts, more than {most:.1%} of the values do not fit the schema in "
            f"{', '.join(over)}: mend the schema, or accept a larger share (--misfit)"
        )
