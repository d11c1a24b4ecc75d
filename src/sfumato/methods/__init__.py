"""The methods of synthesis, by name."""

from __future__ import annotations

from sfumato.methods.base import Method
from sfumato.methods.embedding.hp import Hp
from sfumato.methods.embedding.merf import Merf
from sfumato.methods.moments.method import Moments
from sfumato.methods.pairs.method import Pairs

METHODS: dict[str, type[Method]] = {"hp": Hp, "merf": Merf, "moments": Moments, "pairs": Pairs}
