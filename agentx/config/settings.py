"""Every setting of `agentx.yaml`: its name, its type, its default, and one sentence on what it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from agentx.config.policy import BUILT_IN, PolicySettings
from agentx.config.shapes import Hours, Number, Seconds, Table, Tokens, Whole

Auth = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key"]


MODEL = r"^[^/\s]+/\S+$"
# No `user:password@`: a secret is named (`api_key_env`), never written into a file.
ADDRESS = r"^https?://[^\s/@]+(/\S*)?$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
MEANT: Mapping[str, str] = {
    MODEL: "a model, written `provider/model`",
    ADDRESS: "an address like `http://host:port/v1`, without name and password",
    VARIABLE: "the name of a variable, never its value",
}
"""What each pattern asks for, in words."""

ModelName = Annotated[str, Field(pattern=MODEL)]
Address = Annotated[str, Field(pattern=ADDRESS)]
Variable = Annotated[str, Field(pattern=VARIABLE)]


class LinkTimers(Table):
    """How long one request to this link may take, in seconds, where it differs from `timers`."""

    connect: Seconds | None = Field(default=None, description="Until the connection stands.")
    headers: Seconds | None = Field(default=None, description="Until the answer begins.")
    first: Seconds | None = Field(default=None, description="Until the first piece of content.")
    idle: Seconds | None = Field(default=None, description="Between two pieces of content.")
    total: Seconds | None = Field(default=None, description="The whole request.")


class ChainLink(Table):
    """One entry of a chain; a plain `provider/model` is one too."""

    model: ModelName = Field(description="The model to ask, written `provider/model`.")
    name: str | None = Field(
        default=None, min_length=1, max_length=200, description="What the link is called in tables and events."
    )
    window: Tokens | None = Field(
        default=None, description="The window in tokens; a lower proven limit still wins."
    )
    force: bool = Field(default=False, description="Let `window` win even over a lower proven limit.")
    max_tokens: Whole | None = Field(default=None, ge=1, description="The most tokens that one reply may have.")
    temperature: Number | None = Field(
        default=None, ge=0, le=2, description="The temperature; the model's own by default."
    )
    api_key_env: Variable | None = Field(
        default=None, description="The variable that holds the key of this link; the provider's by default."
    )
    paid: bool = Field(
        default=False,
        description="Asking it costs money: it is only asked within `max_cost` or `limits.cost`, and said when "
        "a job falls to it.",
    )
    max_cost: Number | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="US dollars that one job may spend on it."
    )
    timers: LinkTimers = Field(
        default=LinkTimers(), description="How long a request to this link may take, over the general `timers`."
    )

    @model_validator(mode="before")
    @classmethod
    def plain(cls, value: Any) -> Any:
        return {"model": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "pattern": MODEL}, handler(core_schema)]}


class ProviderOverride(Table):
    """A provider of one's own: a card, and what differs from it."""

    card: str | None = Field(
        default=None, description="The card it is made from; the one of its own name by default."
    )
    base_url: Address | None = Field(default=None, description="The address that requests go to.")
    api_key_env: Variable | None = Field(
        default=None, description="The variable that holds the key; null for none."
    )
    key_optional: bool = Field(default=False, description="Ask without a key when the variable is not set.")
    auth: Auth = Field(default="bearer", description="How the key is sent.")
    headers: dict[str, str] = Field(default={}, description="Headers that every request carries.")
    self_hosted: bool = Field(default=False, description="One's own server: no catalogue, no price.")
    resells: bool = Field(
        default=False,
        description="Models of others stand behind it: what a reply costs is not known, nor nothing.",
    )
    may_truncate: bool = Field(
        default=False, description="The server may cut a conversation and still answer 200."
    )
    clamps_output: bool = Field(default=False, description="The server lowers an output budget that does not fit.")
    output_field: str = Field(default="max_tokens", description="The name of the output budget in a request.")
    stream_usage: bool = Field(default=True, description="The server knows `stream_options.include_usage`.")
    gives_reason: bool = Field(
        default=True, description="The server says why a reply ended; false where only `[DONE]` ends it."
    )
    catalogue: list[str] = Field(
        default=[], description="Names in LiteLLM's catalogue under which its models stand."
    )
    default_model: str | None = Field(
        default=None, description="The model of a chain that is made without a setting."
    )
    options: dict[str, Any] = Field(default={}, description="Settings that only this card knows.")


class LimitSettings(Table):
    """What one job may use up; null is no limit."""

    cost: Number | None = Field(default=None, ge=0, allow_inf_nan=False, description="US dollars.")
    hours: Hours | None = Field(
        default=8.0, description="Hours from the start, waiting included: one night by default."
    )
    turns: Whole | None = Field(default=None, ge=1, description="Turns of the model.")
    tokens: Whole | None = Field(
        default=None, ge=1, description="Tokens, input and output of all replies together."
    )


class CompactionSettings(Table):
    """When a view is made smaller, and how."""

    policy: str = Field(
        default="half-window",
        description="The order of tiers and their numbers, by name: one that agentx brings, or one of `policies`.",
        json_schema_extra={"anyOf": [{"enum": list(BUILT_IN)}, {"type": "string"}]},
    )
    policies: dict[str, PolicySettings] = Field(
        default={}, description="Policies of one's own by name: what differs from one that agentx brings."
    )
    background: bool | None = Field(
        default=None,
        description="Prepare summaries beside the work, before they are needed; null leaves it to the policy.",
    )
    summaries: bool = Field(default=True, description="Let a model write summaries; pruning works without.")
    summary_model: str | None = Field(
        default=None,
        pattern=r"^[^/\s]+/\S+$",
        description="A cheap model for summaries, written `provider/model`.",
    )
    fraction: Number | None = Field(
        default=None,
        ge=0.1,
        le=0.9,
        description="The share of the window that starts compaction; null for that of the policy.",
    )
    cap: Tokens | None = Field(
        default=None,
        description="The largest window, in tokens, that the share is taken of; null for that of the policy.",
    )


class ShellSettings(Table):
    """The shell tool."""

    timeout_seconds: Seconds = Field(default=600.0, description="The longest that one command may run.")
    filter: bool = Field(
        default=False,
        description="Leave progress bars and repeated lines out of what the model sees of a command's output; "
        "`AGENTX_NO_FILTER=1` switches it off always.",
    )


class TimerSettings(Table):
    """How long one request may take, in seconds."""

    connect: Seconds = Field(default=5.0, description="Until the connection stands.")
    headers: Seconds | None = Field(
        default=None, description="Until the answer begins, at most `first`; null for as long as `first`."
    )
    first: Seconds = Field(default=300.0, description="From the start to the first piece of content.")
    idle: Seconds = Field(default=120.0, description="Between two pieces of content.")
    total: Seconds = Field(default=3600.0, description="The whole request.")


class ToolSettings(Table):
    """The tools that the model gets."""

    only: list[str] | None = Field(default=None, description="Names of the only tools to offer; null offers all.")


class Settings(Table):
    """All of `agentx.yaml`."""

    default_chain: str | None = Field(default=None, description="The chain that a job takes when none is named.")
    chains: dict[str, Annotated[list[ChainLink], Field(min_length=1)]] = Field(
        default={}, description="Chains by name: models in order of preference."
    )
    providers: dict[str, ProviderOverride] = Field(
        default={}, description="Providers by name: a card, and what differs from it."
    )
    limits: LimitSettings = Field(default=LimitSettings(), description="What one job may use up.")
    compaction: CompactionSettings = Field(
        default=CompactionSettings(), description="When and how a view shrinks."
    )
    shell: ShellSettings = Field(default=ShellSettings(), description="The shell tool.")
    timers: TimerSettings = Field(default=TimerSettings(), description="How long one request may take.")
    on_exhausted: Literal["wait", "fail"] = Field(
        default="wait", description="When every link rests: wait for the first that is back, or end the job."
    )
    max_wait: Hours | None = Field(
        default=None,
        description="The most hours that one request may wait for links; null leaves it to `limits.hours`.",
    )
    tools: ToolSettings = Field(default=ToolSettings(), description="The tools that the model gets.")
