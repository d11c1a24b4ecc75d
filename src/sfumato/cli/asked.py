"""Options in groups: a command takes a group, and the command line has its options."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from sfumato.cli.ledger import ledger_files, open_ledger
from sfumato.cli.options import (
    Dataset,
    Delimiter,
    Delta,
    Encoding,
    Engine,
    EngineOption,
    Epsilon,
    LedgerFile,
    MethodName,
    Misfit,
    MisfitBudget,
    PayAgain,
    RelationOption,
    Releases,
    SchemaFile,
    Seed,
    Settings,
    Target,
    Unit,
    UseSaved,
    Workers,
    load_schema,
    pairs,
    private_data,
    spark_name,
)
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.doubts import doubts
from sfumato.privacy.gate import Gate
from sfumato.privacy.run import Run
from sfumato.schema import Schema
from sfumato.storage import check_folder


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is to be made of which data, and whom the promise protects."""

    schema: SchemaFile
    delta: Delta = 1e-6
    target: Target = None
    method: MethodName = None
    relation: RelationOption = Relation.ADD_REMOVE
    rows_per_unit: Unit = 1
    settings: Settings = None
    delimiter: Delimiter = None
    encoding: Encoding = None

    def public(self) -> Schema:
        """Read the schema."""
        return load_schema(self.schema, self.delimiter, self.encoding)

    def at(self, epsilon: float) -> Budget:
        """Give the budget of this epsilon."""
        return Budget(
            epsilon=epsilon, delta=self.delta, relation=self.relation,
            max_rows_per_unit=self.rows_per_unit,
        )  # fmt: skip

    def method_for(self, default: str, seed: int = 0) -> Any:
        """Make the method that is named, or the default one."""
        from sfumato.synthesis import make_method

        chosen: dict[str, Any] = {"seed": seed, **pairs(self.settings, "--set")}
        if self.target is not None:
            chosen["target"] = self.target
        return make_method(self.method or default, chosen)


@dataclass(frozen=True, kw_only=True)
class Asked(Question):
    """The same, at one epsilon, with a seed."""

    epsilon: Epsilon
    seed: Seed = 0

    def budget(self) -> Budget:
        """Make the budget, and say what is doubtful about it."""
        budget = self.at(self.epsilon)
        for doubt in doubts(budget):
            print(f"sfumato: {doubt}", file=sys.stderr)
        return budget


@dataclass(frozen=True, kw_only=True)
class Paid:
    """Who pays, where answers are kept, and how rows are read."""

    dataset: Dataset = None
    ledger: LedgerFile = None
    releases: Releases = None
    pay_again: PayAgain = False
    use_saved: UseSaved = False
    misfit: Misfit = "0.01"
    misfit_budget: MisfitBudget = 0.0
    workers: Workers = None
    engine: EngineOption = Engine.OWN

    def folder(self, output: Path | None) -> Path | None:
        """Give the folder of releases: by default beside the output."""
        from sfumato.synthesis import releases_beside

        return self.releases or (releases_beside(output) if output else None)

    def files(self, output: Path | None) -> list[Path | None]:
        """Name what no output may overwrite."""
        return [self.folder(output), *ledger_files(self.ledger)]

    def data(self, text: str) -> Any:
        """Give what is to be read."""
        return private_data(text, self.dataset, self.engine)

    def run(self, text: str, output: Path | None) -> Run:
        """Make the run; what is wrong with its ledger or its folder is said."""
        folder = self.folder(output)
        if folder is not None:
            check_folder(folder)
        return Run(
            ledger=open_ledger(self.ledger),
            dataset=self.dataset or spark_name(text, self.engine),
            folder=folder,
            pay_again=self.pay_again,
            use_saved=self.use_saved,
            gate=Gate.of(self.misfit, self.misfit_budget),
            workers=self.workers,
        )


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let the fields of each group that a command takes be options of their own."""
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters
    groups = {name: hints[name] for name in parameters if is_dataclass(hints[name])}

    def told(**given: Any) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    options = []
    for name, parameter in parameters.items():
        if name not in groups:
            options.append(_option(name, parameter.default, hints[name]))
            continue
        kinds = get_type_hints(groups[name], include_extras=True)
        for field in fields(groups[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            options.append(_option(field.name, default, kinds[field.name]))
    told.__name__, told.__doc__ = command.__name__, command.__doc__
    told.__annotations__ = {each.name: each.annotation for each in options}
    told.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return told


def _option(name: str, default: Any, kind: Any) -> inspect.Parameter:
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=kind)
