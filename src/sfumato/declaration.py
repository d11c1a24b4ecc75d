"""What every part of a schema is: a declaration that is read strictly and never changes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

Value = str | int | float | bool


class Declared(BaseModel):
    """A part of a schema; a setting that it does not have is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
