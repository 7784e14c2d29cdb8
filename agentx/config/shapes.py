"""What all settings are made of: tables that refuse unknown keys, and numbers that are no truth values."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def no_truth(value: Any) -> Any:
    """*value*, unless it is true or false, which Python would take for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"expected a number, got {str(value).lower()}")
    return value


Whole = Annotated[int, BeforeValidator(no_truth)]
Number = Annotated[float, BeforeValidator(no_truth)]
Tokens = Annotated[Whole, Field(ge=256, le=20_000_000)]
Seconds = Annotated[Number, Field(gt=0, allow_inf_nan=False)]
Hours = Annotated[Number, Field(ge=0, allow_inf_nan=False)]


class Table(BaseModel):
    """A table of settings: unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
