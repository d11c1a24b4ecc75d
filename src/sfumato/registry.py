"""Methods and classifiers by name, imported when they are asked for."""

from __future__ import annotations

from importlib import import_module

from sfumato.errors import SfumatoError
from sfumato.methods.base import Method

SYNTHESIZERS = {
    "dre": "sfumato.methods.latent.dre.Dre",
    "gan": "sfumato.methods.gan.method.Gan",
    "hp": "sfumato.methods.embedding.hp.Hp",
    "mepf": "sfumato.methods.embedding.mepf.Mepf",
    "merf": "sfumato.methods.embedding.merf.Merf",
    "mge": "sfumato.methods.latent.mge.Mge",
    "moments": "sfumato.methods.moments.method.Moments",
    "pairs": "sfumato.methods.pairs.method.Pairs",
}
CLASSIFIERS = {
    "convolutional": "sfumato.classify.convolutional.Convolutional",
    "locally-linear": "sfumato.classify.locally_linear.LocallyLinear",
}


def method_class(name: str) -> type[Method]:
    """Give a method or classifier by its name.

    >>> method_class("pairs").name
    'pairs'
    """
    known = SYNTHESIZERS | CLASSIFIERS
    if name not in known:
        raise SfumatoError(f"there is no method '{name}'; there are: {', '.join(known)}")
    module, _, kind = known[name].rpartition(".")
    found: type[Method] = getattr(import_module(module), kind)
    return found
