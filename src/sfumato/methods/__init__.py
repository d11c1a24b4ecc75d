"""The methods of synthesis, by name."""

from __future__ import annotations

from sfumato.methods.base import Method
from sfumato.methods.pairs import Pairs

METHODS: dict[str, type[Method]] = {"pairs": Pairs}
