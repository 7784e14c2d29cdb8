"""A policy is data: when a view is made smaller, by which steps in which order, and what each part may have."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from agentx.context.budget import CAP, DEFAULT_OUTPUT_SHARE, FLOOR, FRACTION, Basis, Budget, budget_for
from agentx.context.clip import CLIP_MOST, CLIP_SHARE, result_limit
from agentx.errors import ConfigError, Problem

TierName = Literal["prepared", "summary", "markers", "images", "cheap", "prune"]
Counts = Literal["view", "replies"]
"""What is held against the threshold: the tokens of the view, or the sum of input and output of all replies since
the last compaction."""


@dataclass(frozen=True, slots=True)
class PolicyStep:
    """One tier, and from which size of a view on it runs.

    `above` is a share of the usable input. None: it runs while the view is over the low-water mark.
    """

    tier: TierName
    above: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Shares are of the threshold if nothing else is said; `most` are tokens."""

    name: str
    steps: tuple[PolicyStep, ...]
    """They run in this order, each only while the view is as large as it asks for."""
    counts: Counts = "view"
    fraction: float = FRACTION
    """Of the window, or of the usable input: where compaction starts."""
    of: Basis = "window"
    cap: int | None = CAP
    """The largest window, in tokens, that the fraction is taken of."""
    floor: int = FLOOR
    """No threshold is lower, in tokens."""
    reserve_share: float = DEFAULT_OUTPUT_SHARE
    """Of the window: the most that is kept free for the reply."""
    sends_reserve: bool = False
    """The reserve is also the `max_tokens` that is sent."""
    most_a_turn: int | None = None
    """So many compactions between two replies; then only the last resort, and only when nothing else fits."""
    low_water: float = 0.5
    tail_share: float = 0.25
    tail_most: int = 20_000
    """With 0 a summary replaces everything but the user's words."""
    summary_share: float = 0.05
    """Of the window."""
    summary_most: int = 10_000
    summary_bytes: int | None = None
    memory_share: float = 0.2
    memory_most: int = 10_000
    index_share: float = 0.2
    """Of what is for memory: for the ids of results that are left out."""
    index_most: int = 1_000
    newest_results: int = 6
    """So many tool results are never cleared."""
    worth_clearing: float = 0.05
    """Clearing that frees less is not done: it would spoil the provider's cache for nothing."""
    clip_share: float = CLIP_SHARE
    """Of the usable input: the most that one tool result may have in the conversation."""
    clip_most: int = CLIP_MOST
    gain: float = 0.1
    """A compaction that gains less did not help."""
    summary_seconds: float = 300.0
    """For all parts of one summary together."""
    prepare_at: float = 0.75
    """Where a summary is prepared beside the work, if `prepared` is one of the steps."""
    prepared_wait_seconds: float = 10.0
    """So long a summary is waited for that is still being prepared."""

    def budget(self, window: int, max_tokens: int | None = None, *, output_cap: int | None = None) -> Budget:
        """What a link with this *window* may be sent. Raises WindowTooSmall."""
        return budget_for(
            window,
            max_tokens,
            output_cap=output_cap,
            fraction=self.fraction,
            of=self.of,
            cap=self.cap,
            floor=self.floor,
            reserve_share=self.reserve_share,
            sends_reserve=self.sends_reserve,
        )

    def result_limit(self, budget: Budget, *, factor: float = 1.0) -> int:
        """The tokens (plain estimate) that one tool result may have. *factor* is what estimates are wrong by."""
        return result_limit(budget, factor=factor, share=self.clip_share, most=self.clip_most)

    @property
    def prepares(self) -> bool:
        """Whether summaries are prepared beside the work."""
        return any(step.tier == "prepared" for step in self.steps)

    @property
    def in_words(self) -> str:
        """When it starts and what it does, on one line."""
        of = "the window" if self.of == "window" else "the usable input"
        what = "compacts at" if self.counts == "view" else "compacts when the replies together reach"
        capped = "" if self.cap is None else f" (of at most {self.cap:,} tokens)"
        steps = [
            step.tier if step.above is None else f"{step.tier} above {round(100 * step.above)} %"
            for step in self.steps
        ]
        return f"{what} {round(100 * self.fraction)} % of {of}{capped}; {', '.join(steps)}"

    def to_json(self) -> dict[str, Any]:
        """Its numbers by name, and its steps."""
        return asdict(self)

    def counted_out(self, budget: Budget, replies: int) -> bool:
        """Whether the counter alone asks for a compaction; *replies* is what it stands at, in tokens."""
        return self.counts == "replies" and replies >= budget.threshold


MUST_LEAVE = 0.75
BYTES_PER_TOKEN = 4
"""Hardly any text has more, as tokens are estimated."""
SMALL_WINDOW = 8_192
"""Tokens: below it a summary may have more than its share."""

LAST = PolicyStep("prune", above=1.0)
"""The last resort, for what cannot be sent at all."""

HALF_WINDOW = Policy(
    name="half-window",
    steps=(
        PolicyStep("summary"),
        PolicyStep("markers"),
        PolicyStep("images"),
        PolicyStep("cheap"),
        PolicyStep("prune"),
    ),
)
THREE_STEPS = Policy(
    name="three-steps",
    steps=(
        PolicyStep("markers", above=0.6),
        PolicyStep("summary", above=0.85),
        PolicyStep("cheap", above=0.85),
        LAST,
    ),
    fraction=0.6,
    of="usable",
    cap=None,
    floor=0,
    reserve_share=0.25,
    sends_reserve=True,
    tail_most=0,
    worth_clearing=0.1,
)
KEEP_RECENT = Policy(
    name="keep-recent",
    steps=(PolicyStep("summary"), PolicyStep("cheap"), LAST),
    fraction=0.8,
    cap=None,
    floor=0,
    reserve_share=0.2,
    most_a_turn=3,
    tail_share=0.5,
    tail_most=10_000,
    summary_bytes=16_000,
)
NOTES = Policy(
    name="notes",
    steps=(PolicyStep("summary"), PolicyStep("cheap"), LAST),
    counts="replies",
    fraction=0.7,
    cap=None,
    floor=0,
    reserve_share=0.25,
    tail_most=0,
)

POLICIES = {policy.name: policy for policy in (HALF_WINDOW, THREE_STEPS, KEEP_RECENT, NOTES)}


def policy_named(name: str) -> Policy:
    """The policy called *name*. Raises ConfigError."""
    policy = POLICIES.get(name)
    if policy is None:
        known = ", ".join(f"`{known}`" for known in POLICIES)
        raise ConfigError([Problem("compaction.policy", f"no policy is called `{name}`", f"use one of {known}")])
    return policy


def summary_limit(policy: Policy, window: int) -> int:
    """The most tokens of a summary, however many went before it: 5 % of the window, at most 10,000.

    5 % of 4,096 are 204, in which a dozen facts cannot be told: a window below 8,192 gives what 8,192 would, but
    never more than an eighth.
    """
    share = max(window * policy.summary_share, min(SMALL_WINDOW * policy.summary_share, window / 8))
    by_bytes = policy.summary_most if policy.summary_bytes is None else policy.summary_bytes // BYTES_PER_TOKEN
    return min(policy.summary_most, int(share), by_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Where the tokens of one view go, as plain estimates."""

    fixed: int
    """System prompt and tools."""
    ceiling: int
    """Above it a view is compacted."""
    usable: int
    """Above it a view cannot be sent."""
    target: int
    """Compaction is done when a view is at most this."""
    tail: int
    summary: int
    memory: int
    index: int = 0
    """For the ids of results that are left out."""


def due(step: PolicyStep, room: Room, size: int) -> bool:
    """Whether a view of *size* (plain estimate) is as large as *step* asks for."""
    return size > (room.target if step.above is None else step.above * room.usable)


def ceiling(budget: Budget, must: int, factor: float) -> int:
    """Above so many tokens a view of *budget* is compacted. *must* is the estimate of system prompt, tools, the
    user's words and the newest exchange.

    Where these alone nearly fill the threshold, compacting at it could only fail; there it is what can be sent.
    """
    return budget.threshold if must * factor <= MUST_LEAVE * budget.threshold else budget.usable


def room_for(policy: Policy, budget: Budget, *, fixed: int, must: int, factor: float) -> Room:
    """How a view of *budget* is divided. *must* is the estimate of what stays whatever happens: the user's words
    and the newest exchange. *factor* is what estimates are wrong by.
    """
    threshold, usable = int(budget.threshold / factor), int(budget.usable / factor)
    most = int(ceiling(budget, fixed + must, factor) / factor)
    room = max(0, most - fixed - must)
    tail = int(min(policy.tail_most, policy.tail_share * threshold, policy.tail_share * room))
    summary = int(min(summary_limit(policy, budget.window) / factor, 0.3 * room))
    memory = int(min(policy.memory_most, policy.memory_share * threshold, 0.2 * room))
    index = int(min(policy.index_most, policy.index_share * memory))
    wanted = max(int(policy.low_water * threshold), fixed + must + tail + summary + memory)
    return Room(
        fixed=fixed,
        ceiling=most,
        usable=usable,
        target=max(0, min(wanted, int(0.95 * most))),
        tail=tail,
        summary=summary,
        memory=memory - index,
        index=index,
    )
