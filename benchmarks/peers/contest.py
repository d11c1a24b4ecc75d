"""One table of the scoreboard: its rows, the folders of its runs, and how they are judged."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from peers.adapters.exchange import read_rows
from peers.environment import CACHE, InstallError, interpreter, packages
from peers.process import watched
from peers.roster import REFEREES, Peer
from sfumato.evaluation import train_on_synthetic
from sfumato.evaluation.association import association_matrix
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.discriminator import discriminator_auc
from sfumato.evaluation.marginals import Binned, marginal_error
from sfumato.schema import Categorical, Schema
from tables import Table, prepare

DELTA = 1e-5
MOST_ROWS = 40_000
"""Some peers walk through rows one by one, so that all get at most so many of a table."""
LEARNERS_ROWS = 10_000
TRIPLES = 200


@dataclass(frozen=True)
class Contest:
    name: str

    @cached_property
    def table(self) -> Table:
        table = prepare(self.name)
        if table.train.num_rows <= MOST_ROWS:
            return table
        kept = np.random.default_rng(0).choice(table.train.num_rows, MOST_ROWS, replace=False)
        return Table(
            table.name, table.train.take(np.sort(kept)), table.test, table.schema, table.target
        )

    @cached_property
    def columns(self) -> dict[str, dict[str, Any]]:
        """The public schema, as peers are told it."""
        return {
            name: {"values": [str(v) for v in column.values], "nullable": column.nullable}
            if isinstance(column, Categorical)
            else column.model_dump(include={"low", "high", "integer", "nullable"})
            for name, column in self.table.schema.columns.items()
        }

    def folder(self, peer: Peer, epsilon: float, seed: int) -> Path:
        return CACHE / "runs" / self.name / f"{peer.name}_{epsilon:g}_{seed}"

    def run(self, peer: Peer, epsilon: float, seed: int, minutes: float) -> dict[str, Any]:
        """Let a peer make its rows, and say how that went."""
        folder = self.folder(peer, epsilon, seed)
        folder.mkdir(parents=True, exist_ok=True)
        job = {"columns": self.columns, "target": self.table.target, "epsilon": epsilon,
               "delta": DELTA, "seed": seed, "options": peer.options}  # fmt: skip
        (folder / "job.json").write_text(json.dumps(job))
        _as_text(self.table.train, self.table.schema).to_csv(folder / "train.csv", index=False)
        begun = {"peer": peer.name, "epsilon": epsilon, "delta": DELTA, "seed": seed}
        begun |= {"options": peer.options, "command": f"{peer.script.name} {folder.name}"}
        begun |= {"needs": packages(peer.script)}
        try:
            python = interpreter(peer.script)
        except InstallError as error:
            return begun | {"state": "not installed", "error": str(error)}
        outcome = begun | watched([python, peer.script, folder], folder / "log", minutes)
        if outcome["state"] == "done":
            outcome |= json.loads((folder / "told.json").read_text())
        return outcome

    def judge(self, peer: Peer, epsilon: float, seed: int, before: dict[str, Any]) -> dict:
        """Give the scores of finished rows, ours, NIST's and SDMetrics', where they are missing."""
        folder, scores = self.folder(peer, epsilon, seed), dict(before)
        if "auc" not in scores:
            scores |= self._ours(self._read(folder / "synthetic.csv"))
        for referee in unjudged(before):
            script = REFEREES / f"{referee}.py"
            ended = watched([interpreter(script), script, folder], folder / f"{referee}.log", 5)
            scores[referee] = (
                json.loads((folder / f"{referee}.json").read_text())
                if ended["state"] == "done"
                else ended
            )
        return _rounded(scores)

    def _ours(self, synthetic: pa.Table) -> dict[str, float]:
        table = self.table
        learnt = train_on_synthetic(
            synthetic, table.test, None, table.schema, table.target, "six",
            most_rows=LEARNERS_ROWS,
        )  # fmt: skip
        frames = [CodedTable.of(rows, table.schema) for rows in (table.train, synthetic)]
        binned = Binned.of(*frames)
        wanted, found = (association_matrix(frame) for frame in frames)
        above = np.triu_indices(len(wanted), 1)
        return {
            "auc": learnt.mean["synthetic"]["roc_auc"],
            "tvd_2": marginal_error(binned, 2).mean,
            "tvd_3": marginal_error(binned, 3, TRIPLES).mean,
            "told_apart": max(discriminator_auc(*frames).values()),
            "association_error": float(np.abs(wanted - found)[above].mean()),
        }

    def _read(self, path: Path) -> pa.Table:
        """Read a peer's rows; numbers are clamped and rounded as the schema says."""
        frame = read_rows(path, self.columns)
        columns: dict[str, Any] = {}
        for name, column in self.table.schema.columns.items():
            kind = self.table.train.schema.field(name).type
            if isinstance(column, Categorical):
                value = {str(v): v for v in column.values} | {None: None}
                if strange := set(frame[name]) - set(value):
                    raise ValueError(f"{name} has values that are not of the schema: {strange}")
                columns[name] = pa.array([value[text] for text in frame[name]], kind)
                continue
            numbers = frame[name].astype(float).clip(column.low, column.high)
            if column.integer:
                numbers = numbers.round()
            columns[name] = pa.array(numbers, pa.float64(), from_pandas=True)
        return pa.table(columns)


def unjudged(scores: dict[str, Any]) -> list[str]:
    """Name the referees whose verdict is missing."""
    return [name for name in ("k_marginal", "quality") if "state" in scores.get(name, {"state": 0})]


def _as_text(rows: pa.Table, schema: Schema) -> pd.DataFrame:
    frame = {}
    for name, column in schema.columns.items():
        if isinstance(column, Categorical):
            frame[name] = [None if v is None else str(v) for v in rows[name].to_pylist()]
        else:
            frame[name] = rows[name].to_pandas()
    return pd.DataFrame(frame)


def _rounded(scores: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _rounded(value) if isinstance(value, dict)
        else round(value, 4) if isinstance(value, float) else value
        for key, value in scores.items()
    }  # fmt: skip
