"""One call that measures synthetic images against real ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.data.image_codec import Labels
from sfumato.errors import SfumatoError
from sfumato.evaluation.classifiers import Learner, classifiers, has_xgboost
from sfumato.evaluation.cnn import SmallCNN, has_torch
from sfumato.evaluation.evaluation import ImageEvaluation
from sfumato.evaluation.frechet import Extractor, frechet_distance, trained_extractor, unit_pixels
from sfumato.evaluation.grids import as_text, sample_grid
from sfumato.evaluation.histograms import Histogram
from sfumato.evaluation.image_sets import NumberedImages, image_sets
from sfumato.evaluation.measure import Compared, Headline
from sfumato.evaluation.measures import IMAGE_MEASURES
from sfumato.evaluation.modes import precision_recall
from sfumato.evaluation.summary import weak_classes
from sfumato.evaluation.utility import LabelledRows, Utility, train_and_score
from sfumato.progress import Progress, silent

FAST_IMAGES = 5_000
HELD_OUT = 0.2
WEAK_MODES = 0.9


def evaluate_images(
    real_x: NDArray[np.uint8],
    real_y: Labels | None,
    synthetic_x: NDArray[np.uint8],
    synthetic_y: Labels | None,
    test_x: NDArray[np.uint8] | None = None,
    test_y: Labels | None = None,
    *,
    extractor: Extractor | None = None,
    full: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> ImageEvaluation:
    """Measure how good a set of synthetic images is; the result is as private as the real ones.

    Without test images a fifth of the real ones is held out. Without an `extractor` the Fréchet
    distance uses a small network trained on the real images. `full` takes all images and the
    papers' twelve classifiers, instead of 5,000 images, logistic regression and a perceptron; a
    small CNN joins them where torch is installed.
    """
    names, (real, made, given) = image_sets(
        ("real", real_x, real_y), ("synthetic", synthetic_x, synthetic_y), ("test", test_x, test_y)
    )
    if real is None or made is None:
        raise SfumatoError("there must be real and synthetic images")
    most = None if full else FAST_IMAGES
    real, made = real.at_most(most, seed), made.at_most(most, seed)
    held, train = (given.at_most(most, seed), real) if given else real.split(HELD_OUT, seed)
    compared = Compared(real, made, train, held, full, seed)

    progress("extracting features", 0.05)
    extractor = extractor or trained_extractor(train.x, train.y, seed)
    features = [extractor.features(each.x) for each in (train, *compared.same_size())]
    frechet = {
        "synthetic": frechet_distance(features[0], features[1]),
        "fresh": frechet_distance(features[0], features[2]),
    }
    progress("comparing modes", 0.2)
    found = precision_recall(features[0], features[1], seed=seed)
    fresh = precision_recall(features[0], features[2], seed=seed)
    findings = {measure.name: measure.find(compared) for measure in IMAGE_MEASURES}
    # As many synthetic as real images to train on: more of them alone teach more.
    taught = made.at_most(len(train), seed)
    utility = _utility(train, taught, held, names, full, seed, progress)
    headlines = [
        *([_accuracy_headline(utility, _guessing(held))] if utility else []),
        *_mode_headlines(found, fresh),
        *(line for each in findings.values() for line in each.headlines),
    ]
    return ImageEvaluation(
        rows={"real": len(real), "synthetic": len(made), "test": len(held)},
        headlines=tuple(line for line in headlines if math.isfinite(line.value)),
        weaknesses=(
            *(
                sentence
                for bars in _class_histogram(train, made, names)
                for _, sentence in weak_classes(
                    bars.labels, bars.shares["real"], bars.shares["synthetic"]
                )
            ),
            *_weak_modes(found, fresh),
            *(sentence for each in findings.values() for sentence in each.weaknesses),
        ),
        notes=(
            *_notes(full, utility),
            *(note for each in findings.values() for note in each.notes),
        ),
        findings=findings,
        full=full,
        seed=seed,
        utility=utility,
        utility_mean=utility.mean if utility else {},
        frechet=frechet,
        extractor=extractor.name,
        precision_recall=found | {f"fresh_{name}": value for name, value in fresh.items()},
        classes=_class_histogram(train, made, names),
        grids={
            "real": as_text(sample_grid(train.x, train.y)),
            "synthetic": as_text(sample_grid(made.x, made.y)),
        },
    )


def _utility(
    train: NumberedImages,
    made: NumberedImages,
    held: NumberedImages,
    names: list[str],
    full: bool,
    seed: int,
    progress: Progress,
) -> Utility | None:
    """Train on synthetic and on real images, test on held-out real ones."""
    if train.y is None or made.y is None or held.y is None:
        return None
    test = LabelledRows(unit_pixels(held.x), held.y)
    tasks = {
        "synthetic": (LabelledRows(unit_pixels(made.x), made.y), test),
        "real": (LabelledRows(unit_pixels(train.x), train.y), test),
    }
    shape = (train.x.shape[1], train.x.shape[2], train.x.shape[3])
    scored = train_and_score(
        _learners(len(names), shape, full, seed),
        tasks,
        len(names),
        jobs=-1 if full else 1,
        progress=lambda stage, part: progress(stage, 0.4 + 0.6 * (part or 0.0)),
    )
    notes = ["XGBoost is not installed, so it is left out."] if full and not has_xgboost() else []
    if len(np.unique(made.y)) == 1:
        notes.append(
            "The synthetic images are all of one class: what is trained on them always predicts it."
        )
    return Utility(
        target="class",
        task="classification",
        positive=None,
        synthetic=scored["synthetic"],
        real=scored["real"],
        rows={"synthetic": len(made), "real": len(train), "test": len(held)},
        notes=tuple(notes),
    )


def _learners(
    classes: int, shape: tuple[int, int, int], full: bool, seed: int
) -> dict[str, Learner]:
    chosen = classifiers("twelve", classes, seed)
    if not full:
        chosen = {name: chosen[name] for name in ("logistic regression", "multi-layer perceptron")}
        chosen["logistic regression"].set_params(max_iter=100)
        chosen["multi-layer perceptron"].set_params(max_iter=20)
    if has_torch():
        chosen["small CNN"] = SmallCNN(shape, seed=seed)
    return chosen


def _accuracy_headline(utility: Utility, guessing: float) -> Headline:
    real = utility.mean["real"]["accuracy"]
    return Headline(
        name="Recognising classes",
        value=utility.mean["synthetic"]["accuracy"],
        worst=guessing,
        best=max(real, guessing),  # where real images teach nothing, there is nothing to grade
        meaning="how well classifiers trained on synthetic images label real ones: mean accuracy",
        worst_is="guessing",
        best_is="trained on real images",
        held_out=real,
    )


def _guessing(held: NumberedImages) -> float:
    """Give the accuracy of always naming the most frequent class."""
    return 0.0 if held.y is None else float(np.bincount(held.y).max() / len(held))


def _mode_headlines(found: dict[str, float], fresh: dict[str, float]) -> list[Headline]:
    meanings = {
        "precision": "how much of the synthetic images looks like real ones",
        "recall": "how much of the variety of real images is there",
    }
    return [
        Headline(
            name=name.capitalize(),
            value=found[name],
            worst=0.0,
            best=fresh[name],
            meaning=meaning,
            worst_is="none",
            best_is="fresh real images",
            held_out=fresh[name],
        )
        for name, meaning in meanings.items()
    ]


def _class_histogram(
    train: NumberedImages, made: NumberedImages, names: list[str]
) -> tuple[Histogram, ...]:
    if train.y is None or made.y is None:
        return ()
    shares = {
        key: tuple((np.bincount(y, minlength=len(names)) / len(y)).round(6).tolist())
        for key, y in (("real", train.y), ("synthetic", made.y))
    }
    return (Histogram(column="class", ordered=False, labels=tuple(names), shares=shares),)


def _weak_modes(found: dict[str, float], fresh: dict[str, float]) -> Iterator[str]:
    if found["recall"] < WEAK_MODES * fresh["recall"]:
        yield f"Part of the variety of the real images is missing: recall is {found['recall']:.3f}."
    if found["precision"] < WEAK_MODES * fresh["precision"]:
        yield f"Some images look like no real ones: precision is {found['precision']:.3f}."


def _notes(full: bool, utility: Utility | None) -> tuple[str, ...]:
    notes = [] if full else [f"A fast evaluation: at most {FAST_IMAGES:,} images of each set."]
    if utility is None:
        notes.append("There are no labels for both sets, so no classifier was trained.")
    elif not has_torch():
        notes.append("torch is not installed, so no CNN was trained.")
    return (*notes, *(utility.notes if utility else ()))
