"""A policy is data: which tiers run in which order, and how much each part of a view may have."""

from __future__ import annotations

from dataclasses import dataclass

from agentx.context.budget import Budget
from agentx.errors import ConfigError, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Shares are of the threshold if nothing else is said; `most` are tokens."""

    name: str
    tiers: tuple[str, ...]
    """Names of tiers, in the order in which they run until the view is under the low-water mark."""
    low_water: float = 0.5
    tail_share: float = 0.25
    tail_most: int = 20_000
    summary_share: float = 0.05
    """Of the window."""
    summary_most: int = 10_000
    memory_share: float = 0.2
    memory_most: int = 10_000
    index_share: float = 0.2
    """Of what is for memory: for the ids of results that are left out."""
    index_most: int = 1_000
    newest_results: int = 6
    """So many tool results are never cleared."""
    worth_clearing: float = 0.05
    """Clearing that frees less is not done: it would spoil the provider's cache for nothing."""
    gain: float = 0.1
    """A compaction that gains less did not help."""
    summary_seconds: float = 300.0
    """For all parts of one summary together."""


MUST_LEAVE = 0.75
SMALL_WINDOW = 8_192
"""Tokens: below it a summary may have more than its share."""

HALF_WINDOW = Policy(name="half-window", tiers=("summary", "markers", "images", "cheap", "prune"))

POLICIES = {policy.name: policy for policy in (HALF_WINDOW,)}


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
    return min(policy.summary_most, int(share))


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
    tail = int(min(policy.tail_share * threshold, policy.tail_most, 0.25 * room))
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
