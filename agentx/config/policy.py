"""A policy of one's own, as `agentx.yaml` holds it: what differs from one that agentx brings."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic_core import CoreSchema

from agentx.config.shapes import Number, Seconds, Table, Tokens, Whole

PolicyName = Literal["half-window", "three-steps", "keep-recent", "notes"]
Tier = Literal["prepared", "summary", "markers", "images", "cheap", "prune"]
BUILT_IN: tuple[str, ...] = get_args(PolicyName)

Share = Annotated[Number, Field(ge=0, le=1)]
Half = Annotated[Number, Field(ge=0, le=0.5)]
Count = Annotated[Whole, Field(ge=0, le=20_000_000)]


class StepSettings(Table):
    """One step of a policy; a plain name of a tier is one too."""

    tier: Tier = Field(description="What the step does.")
    above: Share | None = Field(
        default=None,
        description="It runs over this share of the usable input; null: while a view is over the low-water mark.",
    )

    @model_validator(mode="before")
    @classmethod
    def plain(cls, value: Any) -> Any:
        return {"tier": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "enum": list(get_args(Tier))}, handler(core_schema)]}


class PolicySettings(Table):
    """A policy of one's own. What is not set is as in the policy that it is `like`."""

    like: PolicyName = Field(
        default="half-window", description="The policy that all other numbers are taken from."
    )
    steps: list[StepSettings] | None = Field(
        default=None,
        min_length=1,
        description="Tiers in order; without `prune`, that is the last resort all the same.",
    )
    counts: Literal["view", "replies"] | None = Field(
        default=None,
        description="What is held against the threshold: the view, or the input and output of all replies since "
        "the last compaction together.",
    )
    fraction: Annotated[Number, Field(ge=0.1, le=0.95)] | None = Field(
        default=None, description="The share of the window that starts compaction."
    )
    of: Literal["window", "usable"] | None = Field(
        default=None, description="What the fraction is taken of: the window, or what the reply leaves of it."
    )
    cap: Tokens | None = Field(
        default=None, description="The largest window, in tokens, that the fraction is taken of; null for none."
    )
    floor: Count | None = Field(default=None, description="No threshold is lower, in tokens.")
    reserve_share: Annotated[Number, Field(ge=0.05, le=0.5)] | None = Field(
        default=None, description="The most of the window that is kept free for the reply."
    )
    sends_reserve: bool | None = Field(
        default=None, description="Ask for replies of as many tokens as are kept free, and no more."
    )
    most_a_turn: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None, description="Compactions between two replies; null for any number."
    )
    low_water: Annotated[Number, Field(ge=0.1, le=0.9)] | None = Field(
        default=None, description="The share of the threshold under which a compaction is done."
    )
    tail_share: Half | None = Field(
        default=None, description="The share of the threshold that stays as it is, the newest of it."
    )
    tail_most: Count | None = Field(
        default=None, description="The same in tokens, at most; 0: a summary replaces all but the user's words."
    )
    summary_share: Annotated[Number, Field(ge=0.01, le=0.25)] | None = Field(
        default=None, description="The share of the window that a summary may have."
    )
    summary_most: Annotated[Whole, Field(ge=256, le=1_000_000)] | None = Field(
        default=None, description="The same in tokens, at most."
    )
    summary_bytes: Annotated[Whole, Field(ge=1_024)] | None = Field(
        default=None, description="The same in bytes, at most; null for no such limit."
    )
    memory_share: Half | None = Field(
        default=None, description="The share of the threshold for plan, notes and files that come back."
    )
    memory_most: Count | None = Field(default=None, description="The same in tokens, at most.")
    index_share: Half | None = Field(
        default=None, description="The share of that memory for the list of results that can be brought back."
    )
    index_most: Count | None = Field(default=None, description="The same in tokens, at most.")
    newest_results: Count | None = Field(default=None, description="So many tool results are never cleared.")
    worth_clearing: Half | None = Field(
        default=None, description="The share of the threshold that clearing must free, or it is not done."
    )
    clip_share: Annotated[Number, Field(ge=0.01, le=0.5)] | None = Field(
        default=None, description="The share of the usable input that one tool result may have."
    )
    clip_most: Annotated[Whole, Field(ge=256, le=1_000_000)] | None = Field(
        default=None, description="The same in tokens, at most."
    )
    gain: Half | None = Field(default=None, description="A compaction that gains a smaller share did not help.")
    summary_seconds: Seconds | None = Field(default=None, description="How long one summary may take.")

    prepare_at: Annotated[Number, Field(ge=0.1, le=1)] | None = Field(
        default=None, description="The share of the threshold at which the step `prepared` begins its summary."
    )
    prepared_wait_seconds: Annotated[Number, Field(ge=0, le=600)] | None = Field(
        default=None, description="How long one that is still being written is waited for."
    )

    @field_validator("steps")
    @classmethod
    def no_tier_twice(cls, steps: list[StepSettings] | None) -> list[StepSettings] | None:
        tiers = [step.tier for step in steps or ()]
        if twice := next((tier for tier in tiers if tiers.count(tier) > 1), None):
            raise ValueError(f"the step `{twice}` stands in it twice")
        return steps
