"""How does `pairs` stand beside other libraries, also by measures that are not ours?

    python benchmarks/scoreboard.py                       # whatever is not recorded yet
    python benchmarks/scoreboard.py adult --peers dpmm-mst --epsilon 0.1 --seeds 1
    python benchmarks/scoreboard.py --again sfumato-pairs # anew, after a change in `pairs`

Needs the benchmark data (SFUMATO_DATA). Each peer runs in an environment of its own, made on first
use (see `peers`). Runs are recorded once in `results/peers_*.json` and not repeated, neither those
that failed nor those that were cut off, unless asked for with `--again`.
"""

from __future__ import annotations

import argparse
import signal
import sys
from itertools import product

from harness import Section, mark, read, result, stamp, table, write_result
from peers.contest import DELTA, LEARNERS_ROWS, TRIPLES, Contest, unjudged
from peers.roster import NOT_PRIVATE, PEERS

TABLES = ("adult", "census", "covtype", "credit")
KEY = ("peer", "epsilon", "seed")
Key = tuple[str, float, int]


def compete(name: str, asked: argparse.Namespace) -> None:
    contest, runs = Contest(name), _recorded(name)
    asked_for = [
        (peer, epsilon, seed)
        for peer, epsilon, seed in product(asked.peers, asked.epsilon, range(asked.seeds))
        if peer != NOT_PRIVATE or epsilon == 1
    ]
    for key in [key for key in runs if key[0] in asked.again] if asked.again else asked_for:
        run = {} if asked.again else runs.get(key, {})
        if run and (run["state"] != "done" or not unjudged(run.get("scores", {}))):
            continue
        if not run:
            run = contest.run(PEERS[key[0]], *key[1:], asked.minutes) | stamp()
            _write(contest, key, run)
        if run["state"] == "done":
            run = _judged(contest, key, run)
            _write(contest, key, run)
        print(name, *key, run, flush=True)


def _recorded(name: str) -> dict[Key, dict]:
    runs = (read(f"peers_{name}") or {}).get("runs", [])
    return {tuple(run[key] for key in KEY): run for run in runs}


def _judged(contest: Contest, key: Key, run: dict) -> dict:
    try:
        scores = contest.judge(PEERS[key[0]], *key[1:], run.get("scores", {}))
    except ValueError as error:  # rows that are not of the schema
        return run | {"state": "failed", "error": str(error)}
    return run | {"scores": scores}


def _write(contest: Contest, key: Key, run: dict) -> None:
    """Record a run among those that are, of which others may have been written meanwhile."""
    table, order = contest.table, list(PEERS)
    runs = _recorded(contest.name) | {key: run}
    write_result(
        f"peers_{contest.name}",
        {
            "table": {
                "rows": table.train.num_rows,
                "test_rows": table.test.num_rows,
                "columns": len(table.schema.columns),
                "target": table.target,
            },
            "delta": DELTA,
            "learners": {"set": "six", "most_rows": LEARNERS_ROWS},
            "triples": TRIPLES,
            "runs": [
                runs[key]
                for key in sorted(runs, key=lambda key: (-key[1], order.index(key[0]), key[2]))
            ],
        },
        collected=True,
    )


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("tables", nargs="*", default=TABLES, help=", ".join(TABLES))
    ask.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    ask.add_argument(
        "--again", nargs="+", choices=PEERS, default=[], help="repeat their recorded runs"
    )
    ask.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 0.1])
    ask.add_argument("--seeds", type=int, default=1)
    ask.add_argument("--minutes", type=float, default=15, help="processor time for a run")
    asked = ask.parse_args()
    if unknown := set(asked.tables) - set(TABLES):
        ask.error(f"unknown table {', '.join(sorted(unknown))}; known are {', '.join(TABLES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and the running peer with us
    for name in asked.tables:
        compete(name, asked)


# What the page shows: its name, how many digits, and whether more of it is better.
SCORES: dict[str, tuple[str, int, bool]] = {
    "auc": ("AUC", 4, True),
    "tvd_2": ("2-way", 4, False),
    "tvd_3": ("3-way", 4, False),
    "told_apart": ("told apart", 3, False),
    "association_error": ("associations", 4, False),
    "nist_pairs": ("NIST, pairs", 0, True),
    "nist_target": ("NIST, with target", 0, True),
    "quality": ("SDMetrics", 3, True),
}


def body() -> str:
    heads = ["", "epsilon", *(head for head, _, _ in SCORES.values()), "time (processor)", "memory",
             "seeds"]  # fmt: skip
    parts = []
    for name in TABLES:
        found = result(f"peers_{name}")
        shape = f"{found['table']['rows']:,} rows, {found['table']['columns']} columns"
        parts.append(f"#### {name}: {shape}\n\n" + table(heads, _standings(found["runs"])))
    return "\n".join(parts)


def standings(runs: list[dict]) -> dict[tuple[float, str], dict[str, float]]:
    """Give the mean figures of each peer at each epsilon, where there are any."""
    done: dict[tuple[float, str], list[dict]] = {}
    for run in runs:
        if "scores" in run:
            done.setdefault((run["epsilon"], run["peer"]), []).append(run)
    return {
        key: {score: sum(_score(run, score) for run in group) / len(group) for score in SCORES}
        for key, group in done.items()
    }


def _standings(runs: list[dict]) -> list[list[str]]:
    """Give a row for each peer and epsilon: means over seeds, or why there are none."""
    groups: dict[tuple[float, str], list[dict]] = {}
    for run in runs:
        groups.setdefault((run["epsilon"], run["peer"]), []).append(run)
    figures = standings(runs)
    lines = []
    for (epsilon, peer), group in groups.items():
        private = peer != NOT_PRIVATE
        title = f"{peer} {group[0].get('version', '') if private else ''}".strip()
        line = [title + (mark("pairs", *group) if peer == "sfumato-pairs" else "")]
        line.append(f"{epsilon:g}" if private else "")
        if (epsilon, peer) not in figures:
            lines.append([*line, _why_not(group[0]), *[""] * (len(SCORES) + 2)])
            continue
        rivals = [f for (e, p), f in figures.items() if e == epsilon and p != NOT_PRIVATE]
        for score, (_, digits, more) in SCORES.items():
            mine = figures[epsilon, peer][score]
            best = (max if more else min)((rival[score] for rival in rivals), default=mine)
            shown = "" if mine != mine else f"{mine:.{digits}f}"  # a referee that failed
            won = private and len(rivals) > 1 and shown == f"{best:.{digits}f}"
            line.append(f"**{shown}**" if won else shown)
        done = [run for run in group if "scores" in run]
        taken = [sum(run[key] for run in done) / len(done)
                 for key in ("seconds", "processor_seconds", "peak_megabytes")]  # fmt: skip
        lines.append([*line, f"{taken[0]:.0f} s ({taken[1]:.0f})", f"{taken[2]:.0f} MB",
                      str(len(done))])  # fmt: skip
    return lines


def _score(run: dict, score: str) -> float:
    scores = run["scores"]
    places = {"nist_pairs": ("k_marginal", "pairs"), "nist_target": ("k_marginal", "with_target"),
              "quality": ("quality", "quality")}  # fmt: skip
    if score not in places:
        return float(scores[score])
    outer, inner = places[score]
    return float(scores[outer].get(inner, "nan"))


def _why_not(run: dict) -> str:
    if run["state"] == "not finished":
        return f"not finished in {run['minutes']:g} minutes"
    return f"{run['state']}: {run.get('error', 'not judged')}".replace("|", "/")


def glance() -> list[list[str]]:
    own = "sfumato-pairs"
    found = {name: standings(result(f"peers_{name}")["runs"]) for name in TABLES}
    peers = {
        name: {p: figures for (e, p), figures in runs.items() if e == 1 and p != NOT_PRIVATE}
        for name, runs in found.items()
    }
    lost = []
    for (name, rivals), (score, (title, digits, more)) in product(peers.items(), SCORES.items()):
        best = (max if more else min)(rivals, key=lambda peer: rivals[peer][score])
        if rivals[best][score] != rivals[own][score]:
            figures = f"**{rivals[best][score]:.{digits}f}**, ours {rivals[own][score]:.{digits}f}"
            lost.append(f"{title} on {name}: {best} {figures}")
    count = len(peers) * len(SCORES)
    auc = {peer: f"{figures['auc']:.3f}" for peer, figures in peers["adult"].items()}
    rivals = sorted((peer for peer in auc if peer != own), key=auc.__getitem__, reverse=True)
    rows = found["adult"][1.0, NOT_PRIVATE]["auc"]
    return [
        ["Adult: ROC-AUC of six classifiers trained on synthetic rows", "1",
         f"**{auc[own]}** (`pairs`)", ", ".join(f"{peer} {auc[peer]}" for peer in rivals),
         f"same rows and schema for all; a table of development; resampled real rows {rows:.3f}"],
        [f"{len(peers)} tables, {len(SCORES)} measures: ours, NIST's, SDMetrics'", "1",
         f"best in **{count - len(lost)}** of {count}", "; ".join(lost),
         f"finished on {', '.join(peers)}: "
         + ", ".join(str(len(rivals) - 1) for rivals in peers.values()) + " peers, one seed each"],
    ]  # fmt: skip


SECTION = Section(
    "Beside other libraries",
    "scoreboard.py",
    """\
Every library runs as a process of its own, with its own dependencies and one thread: rows, public
schema, epsilon and delta = 1e-5 in, as many synthetic rows out. All get the same training rows, at
most 40,000. Adapters are in `benchmarks/peers/adapters`; version, settings, command and errors of
each run are in the results.

Peers get bounds and categories of the schema where they take them. Where they want whole numbers,
columns of up to a hundred of these keep them; other numbers are cut in 32 cells of equal width
between the bounds, the lower bound apart. AIM has the model size of 80 MB that its authors ask for
in comparisons. dpmm spends a tenth of epsilon on cutting numbers, mostlyai a tenth on ranges and
categories. (dpmm on credit ended near its limit without a message; that it was the limit is
inferred.)

Our measures are those of Adult above, with learners trained on 10,000 rows. Not ours: NIST's
k-marginal score (0 to 1000, SDNist 2.4, numbers in 20 bins by rank), over all pairs, and over
all pairs together with the target as SDNist does with places; SDMetrics' quality score (0.32, 0
to 1). `resampled-rows` are training rows drawn with replacement, without privacy. The best
private figure at an epsilon is in bold. Memory is that of the largest process.""",
    body,
    glance,
)


if __name__ == "__main__":
    main()
