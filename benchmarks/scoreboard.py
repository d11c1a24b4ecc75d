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
import json
import signal
import sys
from itertools import product

from harness import RESULTS, write_result
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
            run = contest.run(PEERS[key[0]], *key[1:], asked.minutes)
            _write(contest, key, run)
        if run["state"] == "done":
            run = _judged(contest, key, run)
            _write(contest, key, run)
        print(name, *key, run, flush=True)


def _recorded(name: str) -> dict[Key, dict]:
    path = RESULTS / f"peers_{name}.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
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


if __name__ == "__main__":
    main()
