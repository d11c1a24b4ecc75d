"""Differentially private synthetic tables and images."""

from sfumato.classify.base import load_classifier
from sfumato.classify.locally_linear import LocallyLinear
from sfumato.errors import SfumatoError
from sfumato.methods.base import Method, Model, load_model
from sfumato.methods.embedding.merf import Merf
from sfumato.methods.moments.method import Moments
from sfumato.methods.pairs.method import Pairs
from sfumato.privacy.budget import Budget, Guarantee, Relation
from sfumato.privacy.ledger import Ledger
from sfumato.schema import Boolean, Categorical, Datetime, Identifier, Images, Numeric, Schema
from sfumato.synthesis import synthesize

__all__ = [
    "Boolean",
    "Budget",
    "Categorical",
    "Datetime",
    "Guarantee",
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
    "Relation",
    "Schema",
    "SfumatoError",
    "load_classifier",
    "load_model",
    "synthesize",
]
