"""The methods of synthesis, by name."""

from __future__ import annotations

from sfumato.methods.base import Method

METHODS: dict[str, type[Method]] = {}
