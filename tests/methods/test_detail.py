"""Detail follows the coordinates as the covariance says, and has what variance is left."""

from __future__ import annotations

import numpy as np

from sfumato.methods.moments.detail import Detail


def test_coefficients_with_detail_have_the_covariance_they_were_split_from() -> None:
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(8, 8))
    within = mixing @ mixing.T
    axes = np.linalg.eigh(within)[1][:, -3:] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    means, scale = rng.normal(size=(2, 8)), np.array([1.0, 2.0, 0.5])
    detail = Detail.of(within, means, axes, scale)
    along = np.linalg.cholesky(axes.T @ within @ axes)
    v = means[1] @ axes + rng.normal(size=(200_000, 3)) @ along.T
    coefficients = v @ axes.T + detail.draw(1, v * scale, rng)
    # 64 entries, each within 1% of the largest: a deviation is 0.3% of it.
    assert np.abs(coefficients.mean(axis=0) - means[1]).max() < 0.02 * np.sqrt(within.max())
    assert np.abs(np.cov(coefficients.T) - within).max() < 0.03 * within.max()


def test_nothing_is_left_where_coordinates_tell_all() -> None:
    detail = Detail.of(np.diag([1.0, 1.0, 0.0]), np.zeros((1, 3)), np.eye(3)[:, :2], np.ones(2))
    drawn = detail.draw(0, np.ones((5, 2)), np.random.default_rng(0))
    assert np.abs(drawn).max() < 1e-6
