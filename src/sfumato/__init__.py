"""Differentially private synthetic tables and images."""

from importlib.metadata import version

from sfumato.classify.locally_linear import LocallyLinear
from sfumato.errors import SfumatoError
from sfumato.loading import load
from sfumato.methods.base import Method, Model, Plan
from sfumato.methods.embedding.hp import Hp
from sfumato.methods.embedding.merf import Merf
from sfumato.methods.moments.method import Moments
from sfumato.methods.pairs.method import Pairs
from sfumato.privacy.budget import Budget, Guarantee, Relation
from sfumato.privacy.ledger import Ledger
from sfumato.schema import Boolean, Categorical, Datetime, Identifier, Images, Numeric, Schema
from sfumato.synthesis import synthesize

__version__ = version("sfumato")

__all__ = [
    "Boolean",
    "Budget",
    "Categorical",
    "Datetime",
    "Guarantee",
    "Hp",
    "Identifier",
    "Images",
    "Ledger",
    "LocallyLinear",
    "Merf",
    "Method",
    "Model",
    "Moments",
    "Numeric",
    "Pairs",
    "Plan",
    "Relation",
    "Schema",
    "SfumatoError",
    "__version__",
    "load",
    "synthesize",
]
