"""What every tier is given and gives: a draft of a checkpoint, and a better one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from agentx.context.checkpoint import Checkpoint
from agentx.context.items import Item, Transcript
from agentx.context.policies import Policy, Room
from agentx.context.summarise import Summariser
from agentx.context.view import project


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A summary that was made beside the work, for a draft with that summary *before*, up to the item *since*."""

    since: int
    before: str
    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One compaction. `draft` is what earlier tiers made of it; all sizes are plain estimates."""

    transcript: Transcript
    draft: Checkpoint
    room: Room
    policy: Policy
    plan: Sequence[str] = ()
    """The open items of the plan."""
    active: Sequence[Summariser] = ()
    """Who is asked first, the next one where it is down; nobody where no model may be asked."""
    prepared: Callable[[float], Awaitable[Prepared | None]] | None = None
    """Waits at most so many seconds for a summary that is prepared beside the work."""
    cheap: Summariser | None = None
    """The configured cheap or local model."""

    def size(self, draft: Checkpoint | None = None) -> int:
        """What a view of *draft* (else of the present one) holds, system prompt and tools included."""
        return self.room.fixed + project(self.transcript, draft or self.draft).tokens

    @property
    def kept(self) -> tuple[int, ...]:
        """The seqs of the task and of the user's later words."""
        return tuple(item.seq for item in self.transcript.said)

    @property
    def cut(self) -> int:
        """The `seq` of the last item that a summary stands for; what follows stays as it is.

        Where the policy keeps no recent part that is the last reply with its results: words that came after it
        have not been read yet. A reply with calls that are still to run stays: their results will follow it.
        """
        if self.policy.tail_most:
            return self.transcript.tail(self.draft.upto, self.room.tail)
        newer = self.transcript.between(self.draft.upto)
        done = next((item.seq for item in reversed(newer) if item.kind in ("assistant", "tool")), self.draft.upto)
        return max(self.draft.upto, min(done, self.transcript.settled))

    @property
    def tells(self) -> bool:
        """Whether a summary would stand for a reply or a result that no earlier one stands for."""
        items = self.transcript.between(self.draft.upto, self.cut)
        return any(item.kind in ("assistant", "tool") for item in items)

    @property
    def task(self) -> Item | None:
        return self.transcript.said[0] if self.transcript.said else None

    def with_draft(self, draft: Checkpoint) -> Work:
        return replace(self, draft=draft)


@dataclass(frozen=True, slots=True)
class Step:
    """What a tier did: the new draft, or None with the reason. `cause` is the breaker's, when a model failed."""

    draft: Checkpoint | None
    why: str = ""
    cause: str | None = None
    by: str = ""
    """The name of the link that was asked last."""


Tier = Callable[[Work], Awaitable[Step]]
