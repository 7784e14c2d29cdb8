"""The policy that the settings ask for: one that agentx brings, or one of the user's own made of it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from agentx.context.policies import LAST, Policy, PolicyStep, policy_named

if TYPE_CHECKING:
    from agentx.config.policy import PolicySettings
    from agentx.config.settings import CompactionSettings

NULL_SAYS_SOMETHING = frozenset({"cap", "most_a_turn", "summary_bytes"})
"""Numbers that may be none at all; for all others null leaves what the other policy has."""


def policy_of(settings: CompactionSettings) -> Policy:
    """The policy in use, with the numbers that the settings put over its own. Raises ConfigError."""
    own = settings.policies.get(settings.policy)
    policy = own_policy(settings.policy, own) if own else policy_named(settings.policy)
    over: dict[str, Any] = {"fraction": settings.fraction, "cap": settings.cap}
    policy = replace(policy, **{name: value for name, value in over.items() if value is not None})
    return policy if settings.background is None else prepared(policy, settings.background)


def prepared(policy: Policy, wanted: bool) -> Policy:
    """*policy* with or without summaries that are prepared beside the work."""
    if policy.prepares == wanted:
        return policy
    if not wanted:
        return replace(policy, steps=tuple(step for step in policy.steps if step.tier != "prepared"))
    steps: list[PolicyStep] = []
    for step in policy.steps:
        if step.tier == "summary":
            steps.append(PolicyStep("prepared", step.above))
        steps.append(step)
    return replace(policy, steps=tuple(steps))


def own_policy(name: str, settings: PolicySettings) -> Policy:
    """The policy *name*: what *settings* say, and all else as in the policy that it is like."""
    known = {field.name for field in fields(Policy)} - {"name", "steps"}
    said = {key: getattr(settings, key) for key in settings.model_fields_set & known}
    said = {key: value for key, value in said.items() if value is not None or key in NULL_SAYS_SOMETHING}
    policy = replace(policy_named(settings.like), name=name, **said)
    return policy if settings.steps is None else replace(policy, steps=_steps(settings))


def _steps(settings: PolicySettings) -> tuple[PolicyStep, ...]:
    steps = tuple(PolicyStep(step.tier, step.above) for step in settings.steps or ())
    return steps if any(step.tier == LAST.tier for step in steps) else (*steps, LAST)
