"""Every setting of `agentx.yaml`: its name, its type, its default, and one sentence on what it does."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Policy = Literal["half-window"]
Auth = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key"]


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
Address = Annotated[str, Field(pattern=r"^https?://[^\s/]+(/\S*)?$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Table(BaseModel):
    """A table of settings: unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ChainLink(Table):
    """One entry of a chain; a plain `provider/model` is one too."""

    model: str = Field(pattern=r"^[^/\s]+/\S+$", description="The model to ask, written `provider/model`.")
    name: str | None = Field(
        None, min_length=1, max_length=200, description="What the link is called in tables and events."
    )
    window: Tokens | None = Field(None, description="The window in tokens; a lower proven limit still wins.")
    force: bool = Field(False, description="Let `window` win even over a lower proven limit.")
    max_tokens: Whole | None = Field(None, ge=1, description="The most tokens that one reply may have.")
    temperature: Number | None = Field(
        None, ge=0, le=2, description="The temperature; the model's own by default."
    )
    api_key_env: Variable | None = Field(
        None, description="The variable that holds the key of this link; the provider's by default."
    )

    @model_validator(mode="before")
    @classmethod
    def plain(cls, value: Any) -> Any:
        return {"model": value} if isinstance(value, str) else value


class ProviderOverride(Table):
    """A provider of one's own: a card, and what differs from it."""

    card: str | None = Field(None, description="The card it is made from; the one of its own name by default.")
    base_url: Address | None = Field(None, description="The address that requests go to.")
    api_key_env: Variable | None = Field(None, description="The variable that holds the key; null for none.")
    key_optional: bool = Field(False, description="Ask without a key when the variable is not set.")
    auth: Auth = Field("bearer", description="How the key is sent.")
    headers: dict[str, str] = Field({}, description="Headers that every request carries.")
    self_hosted: bool = Field(False, description="One's own server: no catalogue, no price.")
    may_truncate: bool = Field(False, description="The server may cut a conversation and still answer 200.")
    clamps_output: bool = Field(False, description="The server lowers an output budget that does not fit.")
    output_field: str = Field("max_tokens", description="The name of the output budget in a request.")
    stream_usage: bool = Field(True, description="The server knows `stream_options.include_usage`.")
    catalogue: list[str] = Field([], description="Names in LiteLLM's catalogue under which its models stand.")
    default_model: str | None = Field(None, description="The model of a chain that is made without a setting.")
    options: dict[str, Any] = Field({}, description="Settings that only this card knows.")


class LimitSettings(Table):
    """What one job may use up; null is no limit."""

    cost: Number | None = Field(None, ge=0, allow_inf_nan=False, description="US dollars.")
    hours: Hours | None = Field(8.0, description="Hours from the start, waiting included: one night by default.")
    turns: Whole | None = Field(None, ge=1, description="Turns of the model.")
    tokens: Whole | None = Field(None, ge=1, description="Tokens, input and output of all replies together.")


class CompactionSettings(Table):
    """When a view is made smaller, and how."""

    policy: Policy = Field("half-window", description="The order of tiers and their numbers.")
    summaries: bool = Field(True, description="Let a model write summaries; pruning works without.")
    summary_model: str | None = Field(
        None, pattern=r"^[^/\s]+/\S+$", description="A cheap model for summaries, written `provider/model`."
    )
    fraction: Number = Field(0.5, ge=0.1, le=0.9, description="The share of the window that starts compaction.")
    cap: Tokens = Field(256_000, description="The largest window, in tokens, that the share is taken of.")


class ShellSettings(Table):
    """The shell tool."""

    timeout_seconds: Seconds = Field(600.0, description="The longest that one command may run.")


class TimerSettings(Table):
    """How long one request may take, in seconds."""

    connect: Seconds = Field(5.0, description="Until the connection stands.")
    first: Seconds = Field(300.0, description="Until the first piece of content.")
    idle: Seconds = Field(120.0, description="Between two pieces of content.")
    total: Seconds = Field(3600.0, description="The whole request.")


class WaitSettings(Table):
    """What happens when every link rests."""

    max_hours: Hours = Field(6.0, description="The longest wait for one; 0 ends the job instead of waiting.")


class ToolSettings(Table):
    """The tools that the model gets."""

    only: list[str] | None = Field(None, description="Names of the only tools to offer; null offers all.")


class Settings(Table):
    """All of `agentx.yaml`."""

    default_chain: str | None = Field(None, description="The chain that a job takes when none is named.")
    chains: dict[str, Annotated[list[ChainLink], Field(min_length=1)]] = Field(
        {}, description="Chains by name: models in order of preference."
    )
    providers: dict[str, ProviderOverride] = Field(
        {}, description="Providers by name: a card, and what differs from it."
    )
    limits: LimitSettings = Field(LimitSettings(), description="What one job may use up.")
    compaction: CompactionSettings = Field(CompactionSettings(), description="When and how a view shrinks.")
    shell: ShellSettings = Field(ShellSettings(), description="The shell tool.")
    timers: TimerSettings = Field(TimerSettings(), description="How long one request may take.")
    wait: WaitSettings = Field(WaitSettings(), description="What happens when every link rests.")
    tools: ToolSettings = Field(ToolSettings(), description="The tools that the model gets.")
