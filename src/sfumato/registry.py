"""Methods and classifiers by name, imported when they are asked for.

Other packages can have methods, too: a class of `Method`, named as an entry point of the group
``sfumato.methods``.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from sfumato.errors import SfumatoError
from sfumato.modelling.base import Method

GROUP = "sfumato.methods"

SYNTHESIZERS = {
    "dre": "sfumato.methods.dre.method.Dre",
    "gan": "sfumato.papers.gan.method.Gan",
    "hp": "sfumato.papers.embedding.hp.Hp",
    "mepf": "sfumato.papers.embedding.mepf.Mepf",
    "merf": "sfumato.papers.embedding.merf.Merf",
    "mge": "sfumato.papers.mge.method.Mge",
    "moments": "sfumato.methods.moments.method.Moments",
    "pairs": "sfumato.methods.pairs.method.Pairs",
}
CLASSIFIERS = {
    "convolutional": "sfumato.classify.convolutional.Convolutional",
    "locally-linear": "sfumato.classify.locally_linear.LocallyLinear",
}


def method_class(name: str, allowed: Collection[str] | None = None) -> type[Method]:
    """Give a method or classifier by its name.

    Where only some methods of other packages are `allowed`, no other one is imported.

    >>> method_class("pairs").name
    'pairs'
    """
    own = SYNTHESIZERS | CLASSIFIERS
    if name in own:
        module, _, kind = own[name].rpartition(".")
        found: type[Method] = getattr(import_module(module), kind)
        return found
    others = {each.name: each for each in entry_points(group=GROUP)}
    if name not in others:
        raise SfumatoError(f"there is no method '{name}'; there are: {', '.join([*own, *others])}")
    if allowed is not None and name not in allowed:
        raise SfumatoError(
            f"method '{name}' is of another package ({_package(others[name])}), whose code would "
            f"be run: if you trust it, name it (--allow {name})"
        )
    return _loaded(others[name])


def _loaded(entry: EntryPoint) -> type[Method]:
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise SfumatoError(
            f"method '{entry.name}' of {_package(entry)} cannot be imported: {error}"
        ) from None
    if not (isinstance(found, type) and issubclass(found, Method) and found.name == entry.name):
        raise SfumatoError(f"{_package(entry)} has no method '{entry.name}' at {entry.value}")
    return found


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module
