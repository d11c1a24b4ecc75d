"""Advice on a target, where none is named: which columns could be, and what it would change."""

from __future__ import annotations

from sfumato.schema import Boolean, Categorical, Schema

_SHOWN = 8


def target_advice(schema: Schema, effect: str, *, numbers: bool) -> tuple[str, ...]:
    """Name the columns that could be a target, with numbers if they can, and say the effect.

    >>> from sfumato.schema import Numeric
    >>> schema = Schema(columns={"age": Numeric(low=0, high=99), "sick": Boolean()})
    >>> target_advice(schema, "Its classes are kept apart.", numbers=False)
    ('No target is named. It could be one of the categories: sick. Its classes are kept apart.',)
    """
    made = {name for constraint in schema.constraints for name in constraint.made}
    modelled = {name: column for name, column in schema.modelled.items() if name not in made}
    if len(modelled) < 2:
        return ()
    categories = [
        name for name, column in modelled.items() if isinstance(column, Categorical | Boolean)
    ]
    others = [name for name in modelled if name not in categories]
    kinds = [f"one of the categories: {_few(categories)}"] if categories else []
    if numbers and others:
        kinds.append(f"one of the numbers: {_few(others)}")
    if not kinds:
        return ()
    return (f"No target is named. It could be {'; or '.join(kinds)}. {effect}",)


def _few(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
