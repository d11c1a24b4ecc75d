"""`pairs`: tables by all pairs of their columns, the default for tables.

Counts are released of single columns, then of pairs of columns in groups of cells, per class of
the target; a mixture of product distributions is fitted to them. Everything that is decided on the
way (groups, pairs, components) is decided from the schema, the budget and earlier releases.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.condition import Condition, conditions_of
from sfumato.data.identifiers import shared_identifiers
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError, within
from sfumato.methods.pairs.expectations import of_columns, of_tables
from sfumato.methods.pairs.grouped_column import GroupedColumn, load_columns, save_columns
from sfumato.methods.pairs.grouping import MAX_CLASSES, MAX_GROUPS, group_cells, group_classes
from sfumato.methods.pairs.link_fit import with_links
from sfumato.methods.pairs.mixture import ImpossibleError, Mixture
from sfumato.methods.pairs.mixture_fit import fit_mixture
from sfumato.methods.pairs.noisy_tables import NoisyTables
from sfumato.methods.pairs.one_way import OneWay, even_one_way, plan_one_way, release_one_way
from sfumato.methods.pairs.outcome import Outcome
from sfumato.methods.pairs.outcome_fit import fit_outcome
from sfumato.methods.pairs.table_choice import MAX_CELLS, TableChoice, choose_tables
from sfumato.modelling.base import Given, Method, Model, Plan
from sfumato.modelling.expectation import Expectation
from sfumato.modelling.repeated_draws import draw_until
from sfumato.modelling.schema_search import left_after, plan_search, stand_in
from sfumato.modelling.target_advice import target_advice
from sfumato.privacy.budget import Budget, Spend
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_spend
from sfumato.progress import Progress, silent
from sfumato.schema import Schema
from sfumato.statistics.counts import Axis, Counts, counting_noise

_CELLS = 4096  # of a number, unless there are very many columns
_MOST_CELLS = 1 << 18  # of all numbers together
_TARGET_GROUPS = 8  # of a target that is a number
_NOTES = ("Where the rows turn out too few for all pairs, each column is counted alone.",)
_TARGET = (
    "The target's relation to every pair of columns is kept; its classes (of a number: up to "
    f"{_TARGET_GROUPS}) multiply the cells of every table, and so their noise."
)


@dataclass(frozen=True, kw_only=True)
class Pairs(Method):
    """All pairs of columns, per class of the target, matched by a mixture of products.

    Parameters
    ----------
    target
        The column that others are to predict; its relation to every pair is kept.
    components
        Components of one mixture. `restarts` of them are fitted and put together.

    Examples
    --------
    >>> from sfumato.schema import Boolean, Numeric
    >>> columns = {"age": Numeric(low=0, high=99, integer=True), "sick": Boolean()}
    >>> plan = Pairs(target="sick").plan(Schema(columns=columns), Budget(epsilon=1))
    >>> [spend.name for spend in plan.spends]
    ['one-way', 'pairs']
    """

    name: ClassVar[str] = "pairs"
    completes: ClassVar[bool] = True
    free: ClassVar[frozenset[str]] = frozenset({"seed", "components", "restarts"})

    target: str | None = None
    components: int = 200
    restarts: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        within(components=(self.components, 1, 1000), restarts=(self.restarts, 1, 100))

    def codec(self, schema: Schema) -> TableCodec:
        """Code numbers finely, with fewer cells each where there are very many columns."""
        if schema.images:
            raise SfumatoError("pairs is for tables; for image sets use moments")
        if self.target is not None:
            TableCodec(schema, 1).index(self.target)  # an unknown target is an error of its own
        numbers = max(1, len(schema.modelled))
        return TableCodec(schema, int(np.clip(_MOST_CELLS // numbers, 256, _CELLS)))

    def plan(self, schema: Schema, budget: Budget) -> Plan:
        """Say what would be released at the most: every pair, in as many groups as may be."""
        if schema.open:
            spends, notes = plan_search(schema, budget)
            rest = self.plan(stand_in(schema), left_after(schema, budget))
            return replace(
                rest, budget=budget, spends=(*spends, *rest.spends), notes=(*notes, *rest.notes)
            )
        codec = self.codec(schema)
        spends = plan_one_way(codec, budget)
        sizes = [min(cells.size, 5 * MAX_GROUPS) for cells in codec.columns]
        classes = 1
        if self.target is not None:
            classes = min(sizes.pop(codec.index(self.target)), MAX_CLASSES + 1)
        pairs = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
        tables = max(1, len(sizes) * (len(sizes) - 1) // 2)
        one_cell = (Axis(0, np.zeros(1, np.int32)),)  # noise depends on the number of tables only
        spend = plan_spend("pairs", Counts([one_cell] * tables), budget, _left(spends, budget))
        spend = replace(spend, dim=min(classes * max(pairs, sum(sizes)), MAX_CELLS))
        return Plan(
            method=self.name,
            budget=budget,
            spends=(*spends, spend),
            notes=(*_NOTES, *(() if self.target else target_advice(schema, _TARGET, numbers=True))),
        )

    def expect(self, schema: Schema, budget: Budget, rows: int) -> tuple[Expectation, ...]:
        """Say what the noise lets expect, were the rows spread evenly over each column."""
        if schema.open:
            return self.expect(stand_in(schema), left_after(schema, budget), rows)
        codec = self.codec(schema)
        spends = plan_one_way(codec, budget)
        one_way = even_one_way(codec, rows, spends[0].sigma)
        laid = self._laid_out(codec, one_way, budget, _left(spends, budget))
        choice = TableChoice.from_arrays(laid)
        classes = int(laid["classes"].max()) + 1 if "classes" in laid else 1
        sigma = counting_noise(choice.tables, budget, _left(spends, budget))
        return (*of_columns(one_way.sigma, rows), *of_tables(choice, classes, sigma, rows))

    def learn(self, curator: Curator, progress: Progress = silent) -> PairsModel:
        """Release one-way tables, then tables of pairs, and fit a mixture to them."""
        codec = curator.codec
        assert isinstance(codec, TableCodec)
        target = None if self.target is None else codec.index(self.target)
        one_way = release_one_way(curator, codec)
        features = self._features(codec)
        laid = curator.layout(
            "pairs", lambda: self._laid_out(codec, one_way, curator.budget, curator.left)
        )
        choice = TableChoice.from_arrays(laid)
        classes = None
        if target is not None:
            classes = GroupedColumn(one_way.mass[target], laid["classes"])
        grouped = {
            i: GroupedColumn(one_way.mass[i], groups)
            for i, groups in zip(features, choice.groups, strict=True)
        }
        tables = _release_tables(curator, choice, features, grouped, target, classes)
        masses = [grouped[i].group_mass for i in features]
        class_counts = tables.class_counts(
            np.array([one_way.rows]) if classes is None else classes.group_mass, one_way.sigma
        )
        mixture = fit_mixture(
            tables,
            masses,
            class_counts,
            components=self.components,
            restarts=self.restarts,
            seed=self.seed,
            progress=partial(progress, "fitting"),
        )
        along = [_along(grouped[i].groups, codec.columns[i].ordered) for i in features]
        mixture = with_links(mixture, tables, masses, along)
        if target is not None and classes is not None:
            grouped[target] = classes
        return PairsModel(
            method=self,
            schema=curator.schema,
            guarantee=curator.guarantee,
            releases=tuple(curator.releases),
            columns=[grouped[i] for i in range(len(grouped))],
            mixture=mixture,
            outcome=fit_outcome(mixture, tables, class_counts, self.seed),
            target=target,
            row_count=one_way.rows,
            at_least=one_way.at_least,
            guessed_shares=one_way.guessed,
        )

    def _features(self, codec: TableCodec) -> list[int]:
        """Give the columns besides the target."""
        return [i for i, name in enumerate(codec.names) if name != self.target]

    def _laid_out(
        self, codec: TableCodec, one_way: OneWay, budget: Budget, share: float
    ) -> dict[str, NDArray[Any]]:
        """Choose classes of the target, groups of the other columns, and tables of them."""
        features = self._features(codec)
        classes = {}
        if self.target is not None:
            classes["classes"] = _classes(codec, one_way, codec.index(self.target))
        choice = choose_tables(
            [one_way.mass[i] for i in features],
            [codec.columns[i].ordered for i in features],
            int(classes["classes"].max()) + 1 if classes else 1,
            partial(counting_noise, budget=budget, share=share),
        )
        return choice.arrays() | classes


def _left(spends: list[Spend], budget: Budget) -> float:
    """Give the share of the budget that one-way tables leave."""
    return 1 - sum(spend.rho for spend in spends) / budget.rho


def _along(groups: NDArray[np.int32], ordered: int) -> int:
    """Give how many groups, the first ones, lie along a line."""
    return int(groups[:ordered].max(initial=-1)) + 1


def _classes(codec: TableCodec, one_way: OneWay, target: int) -> NDArray[np.int32]:
    mass, cells = one_way.mass[target], codec.columns[target]
    if cells.is_category:
        return group_classes(mass, len(cells.listed), 3 * one_way.sigma)
    return group_cells(mass, cells.ordered, one_way.sigma, _TARGET_GROUPS)


def _release_tables(
    curator: Curator,
    choice: TableChoice,
    features: list[int],
    grouped: dict[int, GroupedColumn],
    target: int | None,
    classes: GroupedColumn | None,
) -> NoisyTables:
    """Count the chosen pairs and single columns per class, for all that is left of the budget."""
    axes = [Axis(i, grouped[i].groups) for i in features]
    by_class = () if target is None or classes is None else (Axis(target, classes.groups),)
    chosen = [*choice.pairs, *((single,) for single in choice.singles)]
    sigma, tables = 1.0, []
    if chosen:
        statistic = Counts([by_class + tuple(axes[place] for place in places) for places in chosen])
        release = curator.release("pairs", statistic, curator.left)
        sigma = release.sigma
        tables = [table.astype(np.float32) for table in statistic.split(release.values)]
    if classes is None:
        tables = [table[None] for table in tables]
    return NoisyTables(
        sizes=choice.sizes,
        classes=1 if classes is None else classes.size,
        sigma=sigma,
        pairs=dict(zip(choice.pairs, tables, strict=False)),
        singles=dict(zip(choice.singles, tables[len(choice.pairs) :], strict=True)),
    )


@dataclass(frozen=True, kw_only=True)
class PairsModel(Model):
    """A mixture over the grouped columns, and the cells within the groups.

    The mixture's columns are all but the target, whose groups are its classes. The outcome, where
    there is one, draws these; models of earlier versions have none.
    """

    columns: list[GroupedColumn]
    mixture: Mixture
    target: int | None
    row_count: float
    outcome: Outcome | None = None
    at_least: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))
    guessed_shares: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def rows(self) -> int:
        return max(1, round(self.row_count))

    @property
    def _codec(self) -> TableCodec:
        codec = self.method.codec(self.schema)
        assert isinstance(codec, TableCodec)
        return codec

    @property
    def guessed(self) -> dict[str, float]:
        shares = zip(self._codec.names, self.guessed_shares.tolist(), strict=False)
        return {name: share for name, share in shares if share > 0}

    def sample(self, n: int | None = None, given: Given | None = None, seed: int = 0) -> pa.Table:
        """Draw rows; conditions are met exactly.

        Those on the target are waited for, others reweight the mixture's components.
        """
        rng = np.random.default_rng(seed)
        count = self.how_many(n)
        table = self._drawn(count, conditions_of(given), rng)
        unit = self.schema.unit_column
        if unit is None or len(self.at_least) == 1:
            return table
        shared = shared_identifiers(count, self.at_least.tolist(), rng)
        return table.set_column(table.column_names.index(unit), unit, shared)

    def _drawn(self, count: int, given: Given, rng: np.random.Generator) -> pa.Table:
        codec = self._codec
        later = codec.later_conditions(given)
        conditions = codec.conditions({n: wanted for n, wanted in given.items() if n not in later})

        def draw(rows: int) -> pa.Table:
            return codec.decode(self._draw_codes(rows, conditions, rng), rng, conditions)

        def draw_met(rows: int) -> pa.Table:
            drawn = draw(rows)
            met = [each.meets(drawn[name].combine_chunks()) for name, each in later.items()]
            return drawn.filter(pa.array(np.all(met, axis=0)))

        if not later:
            return draw(count)
        found = draw_until(count, draw_met, rng)
        if found is None:
            names = " and ".join(f"'{name}'" for name in given)
            raise SfumatoError(f"the model holds hardly any row with what is given for {names}")
        parts, chosen = found
        return codec.renumbered(pa.concat_tables(parts).take(pa.array(chosen)))

    def _draw_codes(
        self, count: int, conditions: dict[int, Condition], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        kept = {i: condition.kept for i, condition in conditions.items()}
        likelihoods = {i: self.columns[i].likelihood(part) for i, part in kept.items()}
        features = [i for i in range(len(self.columns)) if i != self.target]
        given = {place: likelihoods[i] for place, i in enumerate(features) if i in likelihoods}
        given_class = None if self.target is None else likelihoods.get(self.target)
        try:
            if self.outcome is None:
                classes, drawn = self.mixture.sample(count, rng, given, given_class)
            else:
                classes, drawn = self.outcome.sample(self.mixture, count, rng, given, given_class)
        except ImpossibleError:
            names = " and ".join(f"'{self._codec.names[i]}'" for i in kept)
            raise SfumatoError(f"the model holds no row with what is given for {names}") from None
        groups = np.empty((count, len(self.columns)), np.int64, order="F")
        groups[:, features] = drawn
        if self.target is not None:
            groups[:, self.target] = classes
        for index, column in enumerate(self.columns):
            groups[:, index] = column.draw_cells(groups[:, index], rng, kept.get(index, 1.0))
        return groups

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            **_prefixed("mixture/", self.mixture.arrays()),
            **_prefixed("outcome/", {} if self.outcome is None else self.outcome.arrays()),
            **save_columns(self.columns),
            "target": np.array([] if self.target is None else [self.target], np.int64),
            "row_count": np.array([self.row_count]),
            "at_least": self.at_least,
            "guessed": self.guessed_shares,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], **common: Any) -> PairsModel:
        outcome = _with_prefix("outcome/", arrays)
        target = arrays["target"].tolist()
        return cls(
            columns=load_columns(arrays),
            mixture=Mixture.from_arrays(_with_prefix("mixture/", arrays)),
            outcome=Outcome.from_arrays(outcome) if outcome else None,
            target=target[0] if target else None,
            row_count=float(arrays["row_count"][0]),
            at_least=arrays.get("at_least", np.ones(1)),
            guessed_shares=arrays.get("guessed", np.zeros(0)),
            **common,
        )


def _prefixed(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {prefix + key: array for key, array in arrays.items()}


def _with_prefix(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}


Pairs.model_class = PairsModel
