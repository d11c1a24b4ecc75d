"""The constraints of a schema together: what is modelled, and how rows get their columns back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pyarrow as pa

from sfumato.constraints import Combination, Constraint, Derived, Order, in_turn
from sfumato.data.codes import CategoryCode, ColumnCode, DatetimeCode, NumericCode, code_of
from sfumato.data.condition import Condition, Wanted
from sfumato.data.constraints import Arrays, Broken, CombinationRule, OrderRule, Rule
from sfumato.data.derived import DerivedRule
from sfumato.data.rounding import RoundingRule
from sfumato.errors import SfumatoError
from sfumato.schema import Column, Schema

_NUMBERS: tuple[type[NumericCode | DatetimeCode], ...] = (NumericCode, DatetimeCode)


class Rules:
    """The constraints of a schema, each after those that make what it needs.

    >>> from sfumato.schema import Numeric
    >>> days = Numeric(low=0, high=99, integer=True)
    >>> order = Order(order=("in", "out"))
    >>> rules = Rules(Schema(columns={"in": days, "out": days}, constraints=(order,)))
    >>> rules.restore({"in": pa.array([40]), "out": pa.array([3])})["out"].to_pylist()
    [43]
    """

    def __init__(self, schema: Schema) -> None:
        self.codes = {name: code_of(column) for name, column in schema.modelled.items()}
        self._constraints = in_turn(schema.constraints, schema.modelled)
        self._rules: list[Rule] = [
            *(RoundingRule(name, column) for name, column in schema.often_round.items()),
            *(self._rule(each) for each in self._constraints),
        ]
        self._made = {name: each for each in self._constraints for name in each.made}
        self.modelled: dict[str, Column] = dict(schema.modelled)
        for rule in self._rules:
            left = {n: c for n, c in self.modelled.items() if n not in rule.made}
            self.modelled = left | rule.hidden

    def _rule(self, constraint: Constraint) -> Rule:
        codes = {name: self.codes[name] for name in (*constraint.needed, *constraint.made)}
        match constraint:
            case Order():
                return OrderRule(constraint, _all(codes, "a number or a datetime", *_NUMBERS))
            case Combination():
                name = " & ".join(constraint.columns)
                return CombinationRule(constraint, _all(codes, "a category", CategoryCode), name)
            case Derived():
                *sources, own = codes.values()
                return DerivedRule(constraint, tuple(sources), own)

    def refuse_made(self, name: str) -> None:
        """Refuse a column that is not modelled itself."""
        if name in self._made:
            raise SfumatoError(
                f"column '{name}' is not modelled itself, because of the constraint "
                f"{self._made[name].in_words()}: name another one"
            )

    def hide(self, rows: Arrays) -> dict[str, pa.Array]:
        """Give the columns that are modelled."""
        return self._hidden(rows)[0]

    def broken(self, rows: Arrays) -> Broken:
        """Tell which rows break which constraint, by the column that is changed for it."""
        return self._hidden(rows)[1]

    def _hidden(self, rows: Arrays) -> tuple[dict[str, pa.Array], Broken]:
        settled, hidden = dict(rows), dict(rows)
        broken: Broken = {}
        for rule in self._rules:
            values, flags = rule.hide(settled)
            for name, found in flags.items():
                broken.setdefault(name, {}).update(found)
            hidden = {n: c for n, c in hidden.items() if n not in rule.made} | values
            settled |= rule.restore(settled | values)
        return hidden, broken

    def restore(self, modelled: Arrays) -> dict[str, pa.Array]:
        """Give the declared columns back: numbers that others follow from as they are written."""
        found = dict(modelled)
        for rule in self._rules:
            if isinstance(rule, DerivedRule):
                found |= {name: self._as_written(name, found[name]) for name in rule.derived.of}
            found |= rule.restore(found)
        return found

    def _as_written(self, name: str, values: pa.Array) -> pa.Array:
        code = self.codes[name]
        derived = isinstance(self._made.get(name), Derived)
        if derived or not isinstance(code, NumericCode) or code.integer:
            return values
        numbers = code.rounded(values.to_numpy(zero_copy_only=False))
        return pa.array(numbers, mask=values.is_null().to_numpy(zero_copy_only=False))

    def later_conditions(self, given: Mapping[str, Wanted]) -> dict[str, Condition]:
        """Give the conditions that only rows with all their columns can meet."""
        made = {
            n for rule in self._rules if not isinstance(rule, CombinationRule) for n in rule.made
        }
        return {n: Condition.on(n, self.codes[n], w) for n, w in given.items() if n in made}

    def conditions(
        self, given: Mapping[str, Wanted]
    ) -> tuple[dict[str, Wanted], dict[str, Condition]]:
        """Give what is wanted of columns by themselves, and conditions on combined ones."""
        alone, joint = dict(given), {}
        for rule in self._rules:
            asked = [name for name in given if name in rule.made]
            if asked and isinstance(rule, CombinationRule):
                wanted = {n: Condition.on(n, self.codes[n], alone.pop(n)) for n in asked}
                joint[rule.name] = rule.condition(wanted)
        return alone, joint


_Kind = TypeVar("_Kind", bound=ColumnCode)


def _all(codes: Mapping[str, ColumnCode], what: str, *kinds: type[_Kind]) -> tuple[_Kind, ...]:
    """Give the codes, all of which must be of these kinds."""
    found = []
    for name, code in codes.items():
        if not isinstance(code, kinds):
            raise SfumatoError(f"column '{name}' must be {what}, because a constraint names it")
        found.append(code)
    return tuple(found)
