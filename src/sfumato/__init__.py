"""Differentially private synthetic tables and images."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.classify.locally_linear import LocallyLinear
    from sfumato.errors import SfumatoError
    from sfumato.evaluation import evaluate
    from sfumato.loading import load
    from sfumato.methods.dre.method import Dre
    from sfumato.methods.moments.method import Moments
    from sfumato.methods.pairs.method import Pairs
    from sfumato.modelling.base import Method, Model, Plan
    from sfumato.papers.embedding.hp import Hp
    from sfumato.papers.embedding.mepf import Mepf
    from sfumato.papers.embedding.merf import Merf
    from sfumato.papers.gan.method import Gan
    from sfumato.papers.mge.method import Mge
    from sfumato.privacy.budget import Budget, Guarantee, Relation
    from sfumato.privacy.gate import Gate
    from sfumato.privacy.ledger import Ledger
    from sfumato.privacy.run import Run
    from sfumato.schema import (
        Boolean,
        Categorical,
        CsvFormat,
        Datetime,
        Identifier,
        Images,
        Numeric,
        Schema,
        read_schema,
    )
    from sfumato.synthesis import synthesize

__version__ = version("sfumato")

# Where each public name lives: it is loaded when it is asked for, so that commands start at once.
_HOMES = {
    "sfumato.classify.locally_linear": ["LocallyLinear"],
    "sfumato.errors": ["SfumatoError"],
    "sfumato.evaluation": ["evaluate"],
    "sfumato.loading": ["load"],
    "sfumato.modelling.base": ["Method", "Model", "Plan"],
    "sfumato.papers.embedding.hp": ["Hp"],
    "sfumato.papers.embedding.mepf": ["Mepf"],
    "sfumato.papers.embedding.merf": ["Merf"],
    "sfumato.papers.gan.method": ["Gan"],
    "sfumato.methods.dre.method": ["Dre"],
    "sfumato.papers.mge.method": ["Mge"],
    "sfumato.methods.moments.method": ["Moments"],
    "sfumato.methods.pairs.method": ["Pairs"],
    "sfumato.privacy.budget": ["Budget", "Guarantee", "Relation"],
    "sfumato.privacy.gate": ["Gate"],
    "sfumato.privacy.ledger": ["Ledger"],
    "sfumato.privacy.run": ["Run"],
    "sfumato.schema": [
        "Boolean", "Categorical", "CsvFormat", "Datetime", "Identifier", "Images", "Numeric",
        "Schema", "read_schema",
    ],
    "sfumato.synthesis": ["synthesize"],
}  # fmt: skip

__all__ = [
    "Boolean",
    "Budget",
    "Categorical",
    "CsvFormat",
    "Datetime",
    "Dre",
    "Gan",
    "Gate",
    "Guarantee",
    "Hp",
    "Identifier",
    "Images",
    "Ledger",
    "LocallyLinear",
    "Mepf",
    "Merf",
    "Method",
    "Mge",
    "Model",
    "Moments",
    "Numeric",
    "Pairs",
    "Plan",
    "Relation",
    "Run",
    "Schema",
    "SfumatoError",
    "__version__",
    "evaluate",
    "load",
    "read_schema",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            found = getattr(import_module(home), name)
            globals()[name] = found  # also over a submodule of the same name
            return found
    raise AttributeError(f"module 'sfumato' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
