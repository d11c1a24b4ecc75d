"""Constraints: what is publicly known of how the columns of a table hang together.

Rows that are made always obey them, and nothing is spent on learning them. What a row is changed
to that breaks one follows from that row alone (`data/constraints.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from sfumato.declaration import Declared, Value

Names = Annotated[tuple[str, ...], Field(min_length=2, strict=False)]
Choice = Value | Annotated[tuple[Value, ...], Field(strict=False)]
Combinations = Annotated[
    tuple[Annotated[tuple[Choice, ...], Field(strict=False)], ...],
    Field(min_length=1, strict=False),
]
Function = Literal[
    "year", "quarter", "month", "weekday", "day", "hour", "date", "sum", "difference", "product"
]


class Order(Declared):
    """Numbers or moments of which none lies before the one that is named before it.

    `span` is how far apart neighbours may be at the most, in the columns' own unit.

    >>> Order(order=("admitted", "discharged")).made
    ('discharged',)
    """

    order: Names
    span: float | None = Field(None, gt=0)

    @property
    def made(self) -> tuple[str, ...]:
        """The columns that are not modelled themselves."""
        return self.order[1:]

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that they follow from."""
        return self.order[:1]

    def in_words(self) -> str:
        """Say it in a line."""
        within = "" if self.span is None else f", at most {self.span:g} apart"
        return " <= ".join(self.order) + within


class Combination(Declared):
    """Categories of which only some combinations exist.

    Those that are `allowed` are listed, or those that are `forbidden`: one value for each column,
    or a list of several. A value that is missing or not listed goes with all others.

    >>> Combination(columns=("city", "state"), allowed=(("Ulm", "BW"), ("Bonn", "NW"))).in_words()
    'city, state: 2 allowed combinations'
    """

    columns: Names
    allowed: Combinations | None = None
    forbidden: Combinations | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Combination:
        if (self.allowed is None) == (self.forbidden is None):
            raise ValueError("list the combinations that are allowed, or those that are forbidden")
        for combination in self.listed:
            if len(combination) != len(self.columns):
                raise ValueError(
                    f"the combination {list(combination)} needs {len(self.columns)} values, one "
                    f"for each of {', '.join(self.columns)}"
                )
        return self

    @property
    def listed(self) -> tuple[tuple[Choice, ...], ...]:
        """The combinations that are listed."""
        return self.allowed or self.forbidden or ()

    @property
    def made(self) -> tuple[str, ...]:
        """The columns that are not modelled themselves."""
        return self.columns

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that they follow from: none."""
        return ()

    def in_words(self) -> str:
        """Say it in a line."""
        kind = "allowed" if self.allowed else "forbidden"
        return f"{', '.join(self.columns)}: {len(self.listed):,} {kind} combinations"


class Derived(Declared):
    """A column that follows from others, by a named function, by a mapping, or by both in turn.

    A mapping's keys are values of what it maps, or "18.." for 18 and above, up to the next key.

    >>> Derived(column="month", of="admitted", function="month").in_words()
    'month = month of admitted'
    """

    column: str
    of: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    function: Function | None = None
    mapping: Annotated[dict[str, Value], Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_is_a_list(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("of"), str):
            return given | {"of": (given["of"],)}
        return given

    @model_validator(mode="after")
    def _follows_somehow(self) -> Derived:
        if self.function is None and self.mapping is None:
            raise ValueError(f"say how '{self.column}' follows: by a function or by a mapping")
        least, most = {"sum": (2, 1000), "product": (2, 1000), "difference": (2, 2)}.get(
            self.function or "", (1, 1)
        )
        if not least <= len(self.of) <= most:
            several = "two columns" if most == 2 else "two columns or more"
            raise ValueError(
                f"of must name {'one column' if most == 1 else several}, not {len(self.of)}"
            )
        return self

    @property
    def made(self) -> tuple[str, ...]:
        """The column itself."""
        return (self.column,)

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that it follows from."""
        return self.of

    def in_words(self) -> str:
        """Say it in a line."""
        names = ", ".join(self.of)
        inner = names if self.function is None else f"{self.function} of {names}"
        return f"{self.column} = {inner}" + (", by a mapping" if self.mapping else "")


Constraint = Order | Combination | Derived

_KINDS: dict[str, type[Constraint]] = {
    "order": Order,
    "columns": Combination,
    "column": Derived,
}


def constraint_kind(settings: Iterable[str]) -> type[Constraint] | None:
    """Tell which kind of constraint a table of a schema file is, by the names of its settings.

    >>> constraint_kind(["column", "of", "function"]).__name__
    'Derived'
    """
    return next((_KINDS[name] for name in settings if name in _KINDS), None)


def in_turn(constraints: Sequence[Constraint], columns: Collection[str]) -> tuple[Constraint, ...]:
    """Put constraints in an order in which each finds what it needs; derived columns come last.

    What names no column, makes one twice or goes round in a circle is an error.
    """
    made: dict[str, Constraint] = {}
    for each in constraints:
        named = [*each.needed, *each.made]
        for name in named:
            if name not in columns:
                raise ValueError(f"a constraint names '{name}', which is no modelled column")
            if named.count(name) > 1:
                raise ValueError(f"a constraint names '{name}' twice: {each.in_words()}")
        for name in each.made:
            if name in made:
                raise ValueError(
                    f"'{name}' would follow from two constraints ({made[name].in_words()}; "
                    f"{each.in_words()}): leave one of them out"
                )
            made[name] = each
    for each in constraints:
        for name in each.needed:
            if isinstance(each, Order) and isinstance(made.get(name), Derived):
                raise ValueError(
                    f"'{name}' follows from other columns, and cannot begin an order: name a "
                    "column that does not"
                )
    left = sorted(constraints, key=lambda each: isinstance(each, Derived))
    found: list[Constraint] = []
    while left:
        waiting = {name for each in left for name in each.made}
        ready = next((each for each in left if waiting.isdisjoint(each.needed)), None)
        if ready is None:
            raise ValueError(f"constraints go round in a circle: {left[0].in_words()}")
        found.append(ready)
        left.remove(ready)
    return tuple(found)
