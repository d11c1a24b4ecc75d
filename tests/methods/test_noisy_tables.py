"""Released tables: what they say together."""

from __future__ import annotations

import numpy as np

from sfumato.methods.pairs.noisy_tables import NoisyTables


def test_class_counts_are_the_inverse_variance_mean() -> None:
    tables = NoisyTables(
        sizes=(2,), classes=1, sigma=1.0, pairs={}, singles={0: np.array([[4.0, 6.0]])}
    )
    # variances: 2 for the table's total of 10, 4 for the prior of 40
    assert np.allclose(tables.class_counts(np.array([40.0]), 2.0), [20.0])
