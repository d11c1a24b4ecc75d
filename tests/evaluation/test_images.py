from __future__ import annotations

import io
import json
from statistics import NormalDist

import numpy as np
import pytest
from PIL import Image
from scipy.linalg import sqrtm
from scipy.stats import multivariate_normal

from evaluation.models import IMAGES, images
from sfumato.errors import SfumatoError
from sfumato.evaluation import evaluate, evaluate_images
from sfumato.evaluation.cnn import SmallCNN, has_torch
from sfumato.evaluation.density import mixture_nll
from sfumato.evaluation.frechet import (
    Extractor,
    frechet_distance,
    inception_extractor,
    trained_extractor,
)
from sfumato.evaluation.grids import sample_grid
from sfumato.evaluation.modes import (
    different_bins,
    different_proportions,
    max_f,
    precision_recall,
    precision_recall_curve,
)


def test_the_frechet_distance_agrees_with_a_case_worked_out_by_hand() -> None:
    # One dimension: (m1 - m2)² + (s1 - s2)², with standard deviations 1 and 2 by construction.
    first = np.array([[-1.0], [1.0]]) / np.sqrt(2)
    second = 2 * first + 3
    assert frechet_distance(first, second) == pytest.approx(9 + 1)


def test_the_frechet_distance_agrees_with_a_matrix_root_by_scipy() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    second = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5)) + 1
    a, b = np.cov(first.T), np.cov(second.T)
    gap = first.mean(axis=0) - second.mean(axis=0)
    expected = gap @ gap + np.trace(a + b - 2 * np.real(sqrtm(a @ b)))
    assert frechet_distance(first, second) == pytest.approx(expected)
    assert frechet_distance(first, first) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("counts", [(20, 30), (20, 300), (300, 30), (300, 200)])
def test_the_frechet_distance_is_right_with_fewer_pictures_than_features(
    counts: tuple[int, int],
) -> None:
    rng = np.random.default_rng(1)
    first, second = (rng.normal(size=(count, 40)) * np.geomspace(1, 0.01, 40) for count in counts)
    second = second @ rng.normal(size=(40, 40)) / 4 + 1
    a, b = np.cov(first.T), np.cov(second.T)
    gap = first.mean(axis=0) - second.mean(axis=0)
    # Twenty pictures span 19 directions: the roots of the other eigenvalues are roots of rounding.
    shared = np.sqrt(np.sort(np.abs(np.linalg.eigvals(a @ b)))[::-1][: min(counts) - 1]).sum()
    expected = gap @ gap + np.trace(a + b) - 2 * shared
    assert frechet_distance(first, second) == pytest.approx(expected, rel=1e-6)


def test_the_frechet_distance_heeds_neither_turns_nor_a_common_shift() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=(50, 8)), 2 * rng.normal(size=(5, 8)) + 1
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    moved = frechet_distance(first @ turn + 3, second @ turn + 3)
    assert moved == pytest.approx(frechet_distance(first, second))
    assert moved == pytest.approx(frechet_distance(second, first))
    gap = np.arange(8.0)
    assert frechet_distance(first, first + gap) == pytest.approx(gap @ gap)


def test_precision_and_recall_of_identical_and_of_disjoint_sets() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 3))
    same = precision_recall(points, points)
    assert same["precision"] == pytest.approx(1, abs=1e-3)
    assert same["recall"] == pytest.approx(1, abs=1e-3)
    apart = precision_recall(points, points + 100)
    assert max(apart.values()) < 1e-3


def test_a_lost_mode_costs_recall_and_an_invented_one_precision() -> None:
    half, full = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    precision, recall = precision_recall_curve(real=full, synthetic=half)
    assert max_f(precision, recall, 1 / 8) > 0.95
    # At slope 2 precision is 1 and recall 1/2: F_8 = 65 * 0.5 / (64 + 0.5).
    assert max_f(precision, recall, 8) == pytest.approx(65 * 0.5 / 64.5, abs=1e-3)
    precision, recall = precision_recall_curve(real=half, synthetic=full)
    assert max_f(precision, recall, 8) > 0.95


def test_different_proportions_agree_with_the_z_test() -> None:
    first, second = np.array([60, 40]), np.array([45, 55])
    pooled = 105 / 200
    z = 0.15 / np.sqrt(pooled * (1 - pooled) * 2 / 100)
    assert z > NormalDist().inv_cdf(0.975)
    assert different_proportions(first, second).tolist() == [True, True]
    assert different_proportions(first, np.array([55, 45])).tolist() == [False, False]


def test_fresh_points_differ_in_few_modes_and_others_in_many() -> None:
    rng = np.random.default_rng(0)
    real, fresh = rng.normal(size=(1000, 2)), rng.normal(size=(1000, 2))
    assert different_bins(real, real) == 0
    assert different_bins(real, fresh) < 0.2
    assert different_bins(real, fresh / 3) > 0.5


def test_the_likelihood_of_a_mixture_agrees_with_scipy() -> None:
    rng = np.random.default_rng(0)
    points, means = rng.normal(size=(50, 2)), rng.normal(size=(3, 2))
    weights, scales = np.array([0.2, 0.3, 0.5]), np.array([0.5, 1.0, 2.0])
    density = sum(
        w * multivariate_normal(m, s**2 * np.eye(2)).pdf(points)
        for w, m, s in zip(weights, means, scales, strict=True)
    )
    assert mixture_nll(points, means, scales, weights) == pytest.approx(-np.log(density).mean())


def test_a_grid_has_a_row_for_each_class() -> None:
    x, y = images(60)
    picture = Image.open(io.BytesIO(sample_grid(x, y)))
    assert picture.format == "PNG"
    factor = picture.width // (10 * 8 + 9 * 2)
    assert picture.size == ((10 * 8 + 9 * 2) * factor, (3 * 8 + 2 * 2) * factor)
    colour = np.zeros((5, 4, 4, 3), np.uint8)
    assert Image.open(io.BytesIO(sample_grid(colour))).mode == "RGB"


def test_good_images_score_well_and_the_result_is_whole_in_json() -> None:
    found = evaluate_images(*images(300), *images(300, 1), *images(90, 2))
    assert found.utility_mean["synthetic"]["accuracy"] > 0.95
    assert found.frechet["synthetic"] < 10 * max(found.frechet["fresh"], 0.1)
    assert "not Inception" in found.extractor
    read = json.loads(found.to_json())
    assert read["kind"] == "images"
    assert set(read["grids"]) == {"real", "synthetic"}


def test_one_class_gets_figures_and_a_note() -> None:
    x, y = images(120)
    only = y == 0
    found = evaluate_images(x, y, x[only], y[only])
    assert found.utility_mean["synthetic"]["accuracy"] == pytest.approx(1 / 3, abs=0.2)
    assert any("one class" in note for note in found.notes)
    assert any("class 2" in sentence for sentence in found.weaknesses)


def test_unlabelled_images_are_compared_without_classifiers() -> None:
    x, _ = images(60)
    found = evaluate_images(x, None, x, None)
    assert found.utility is None
    assert found.extractor.startswith("principal components")


def test_a_given_extractor_is_used_and_named() -> None:
    x, y = images(60)
    means = Extractor("mean brightness", lambda pixels: pixels.mean(axis=(1, 2)))
    found = evaluate_images(x, y, x, y, extractor=means)
    assert found.extractor == "mean brightness"


def test_image_sets_are_read_by_their_schema() -> None:
    found = evaluate(images(60), images(60, 1), IMAGES, test=images(30, 2))
    assert found.rows == {"real": 60, "synthetic": 60, "test": 30}


def test_bad_images_are_refused_in_one_sentence() -> None:
    x, y = images(30)
    with pytest.raises(SfumatoError, match="no synthetic images"):
        evaluate_images(x, y, x[:0], y[:0])
    with pytest.raises(SfumatoError, match="30 synthetic images but 3 labels"):
        evaluate_images(x, y, x, y[:3])
    with pytest.raises(SfumatoError, match="uint8 of one shape"):
        evaluate_images(x, y, x[:, :4], y)


def test_the_features_are_the_last_hidden_layer() -> None:
    x, y = images(60)
    assert trained_extractor(x, y).features(x).shape == (60, 64)


def test_inception_without_its_weights_is_refused_in_one_sentence() -> None:
    with pytest.raises(SfumatoError, match="Inception"):
        inception_extractor("nowhere.pth")


@pytest.mark.skipif(not has_torch(), reason="torch is not installed")
def test_the_small_cnn_learns_and_leaves_the_global_seed_alone() -> None:
    import torch

    x, y = images(150)
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    flat = (x.reshape(150, -1) / 255).astype(np.float32)
    first = SmallCNN((8, 8, 1), epochs=15).fit(flat, y)
    assert (first.predict(flat) == y).mean() > 0.95
    again = SmallCNN((8, 8, 1), epochs=15).fit(flat, y)
    assert np.array_equal(first.predict_proba(flat), again.predict_proba(flat))
    assert torch.equal(before, torch.random.get_rng_state())
