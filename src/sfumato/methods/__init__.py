"""The methods of synthesis, by name."""

from __future__ import annotations

from sfumato.methods.base import Method
from sfumato.methods.hp import Hp
from sfumato.methods.merf import Merf
from sfumato.methods.moments import Moments
from sfumato.methods.pairs import Pairs

METHODS: dict[str, type[Method]] = {"hp": Hp, "merf": Merf, "moments": Moments, "pairs": Pairs}
