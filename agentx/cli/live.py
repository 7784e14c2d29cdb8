"""A job's events as lines for people: what happens now, in a few words."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

from agentx.cli.output import clean, local_time
from agentx.cli.provisional import Provisional
from agentx.cli.words import count, duration, failures, instructed, lost, meter, short
from agentx.events import (
    BreakerChanged,
    Compacted,
    Event,
    JobEnded,
    JobResumed,
    JobStarted,
    LinkFailed,
    LinkSelected,
    LinkSwitched,
    NotesUpdated,
    Nudged,
    PlanUpdated,
    Replied,
    Requested,
    ToolEnded,
    ToolStarted,
    Truncated,
    UserMessage,
    Waiting,
    Warned,
    WindowLearned,
    Woken,
)
from agentx.jobs.status import shortened
from agentx.journal import Entry

ERASE = "\r\x1b[K"


class Teller:
    """Turns events into lines. It remembers the link and its window, so that each turn can show them."""

    def __init__(self) -> None:
        self.link = ""
        self.window: int | None = None
        self.asked = 0
        """The estimate of the newest request of a turn, in tokens."""
        self.turn = 0
        self.started: dict[str, ToolStarted] = {}
        self.died: set[str] = set()
        self.switched = False

    def line(self, event: Event, said: str = "") -> str | None:
        """The line for *event*, where *said* is what a tool answered; None for what people need not see."""
        match event:
            case JobStarted():
                return f"job: {' → '.join(event.chain)} · {event.workspace}{instructed(event.instructions)}"
            case JobResumed(purpose="compact"):
                return "compacted on request, and nothing else"
            case JobResumed():
                self.died = set(self.started)
                return f"resumed (was {event.reason}){instructed(event.instructions)}"
            case LinkSelected():
                return self._link(event)
            case LinkSwitched():
                self.switched = True
                return trouble(event)
            case Requested(purpose="turn"):
                self.asked = event.estimate
                return None
            case Replied(purpose="turn"):
                return self._reply(event)
            case ToolStarted():
                self.started[event.id] = event
                self.died.discard(event.id)
                return None
            case ToolEnded():
                return self._tool(event, said)
            case UserMessage():
                return f"you: {shortened({'text': event.text}, 100)}"
            case _:
                return trouble(event) or ending(event)

    def now(self, event: Event) -> str | None:
        """What the job is doing while it waits for something: for the live line of a terminal."""
        match event:
            case Requested(purpose="summary"):
                doing = "summarising"
            case Requested():
                doing = "thinking"
            case ToolStarted():
                doing = f"{event.name} {shortened(event.arguments)}"
            case Waiting():
                doing = f"waiting until {local_time(event.until)}"
            case _:
                return None
        return f"{self.link} · {doing}"

    def _link(self, selected: LinkSelected) -> str:
        """The link, and why it is not the first one, unless that was just told."""
        passed_over = ": " in selected.reason and selected.link != self.link and not self.switched
        why = f" · {selected.reason}" if passed_over else ""
        self.link, self.window, self.switched = selected.link, selected.window, False
        return (
            f"link: {selected.link} · window {selected.window:,} ({selected.window_source})"
            f" · compacts at {selected.threshold:,}{why}"
        )

    def _reply(self, reply: Replied) -> str:
        self.turn += 1
        if reply.usage is None:  # the provider counts nothing: what was sent is estimated
            used, about = self.asked, True
        else:
            used, about = int(reply.usage.get("input", 0)) + int(reply.usage.get("output", 0)), False
        cost = f" · ${reply.cost:.4f}" if reply.cost else ""
        return (
            f"{self.turn:3} {reply.link} · {meter(used, self.window, about=about)} · {reply.seconds:.1f} s{cost}"
        )

    def _tool(self, ended: ToolEnded, said: str) -> str:
        started = self.started.pop(ended.id, None)
        arguments = shortened(started.arguments) if started else ""
        mark = "" if ended.ok else " · failed"
        if ended.id in self.died:
            mark = " · outcome unknown"
        elif not ended.ok and said:
            mark += f": {shortened({'said': said.strip().partition(chr(10))[0]}, 90)}"
        clipped = " · clipped" if ended.clipped else ""
        return f"    {ended.name} {arguments}{mark}{clipped} · {ended.seconds:.1f} s"


def trouble(event: Event) -> str | None:
    """What went wrong, and what agentx did about it."""
    match event:
        case LinkFailed(class_="truncated"):
            return None  # `truncated` and `window.learned` say it all
        case LinkFailed():
            until = f" · rests until {local_time(event.retry_at)}" if event.retry_at else ""
            return f"  ! {event.link}: {event.class_}: {shortened({'m': event.message}, 120)}{until}"
        case LinkSwitched():
            why = event.reason.removeprefix(f"{event.from_}: ")
            return f"  → {event.to} instead of {event.from_} ({why})" + (" · paid" if event.paid else "")
        case Waiting():
            return f"  ~ waiting until {local_time(event.until)}, because {event.reason}"
        case Woken():
            return f"  ~ going on early: {event.reason}"
        case WindowLearned():
            was = f"{event.was:,}" if event.was else "unknown"
            return f"  ! {event.link}: the window is {event.value:,}, not {was}"
        case Truncated():
            read = f"read only {event.reported:,} of about {event.estimate:,} tokens"
            return f"  ! {event.link}: cut the conversation in silence: {read}"
        case Compacted():
            return f"  · {compaction(event)}"
        case BreakerChanged():
            return f"  ! compaction breaker {event.state}: {event.cause}"
        case Warned():
            return f"  ! {event.message}" + (f" ({event.hint})" if event.hint else "")
        case _:
            return None


def compaction(event: Compacted) -> str:
    """What a compaction did, or why it came to nothing."""
    if event.after < event.before:
        steps = ", ".join(str(tier["name"]) for tier in event.tiers if tier.get("ok"))
        return f"compacted {short(event.before)} → {short(event.after)} ({event.cause}; {steps})"
    reasons = "; ".join(f"{tier['name']}: {tier['why']}" for tier in event.tiers if tier.get("why"))
    return f"not compacted ({event.cause}; {reasons or 'there is nothing to leave out'})"


def ending(event: Event) -> str | None:
    """The model's own records, and the end."""
    match event:
        case NotesUpdated():
            return "    notes updated"
        case PlanUpdated():
            done = sum(bool(item.get("done")) for item in event.items)
            return f"    plan: {done} of {len(event.items)} done"
        case Nudged():
            return f"  · told the model: {shortened({'text': event.text}, 100)}"
        case JobEnded():
            return f"{event.ending}: {event.message}{spent(event.totals)}"
        case _:
            return None


def spent(totals: Mapping[str, Any]) -> str:
    """What the job took, and what of that was lost: the end of its last line."""
    if not totals:
        return ""
    gone = lost(totals)
    parts = [count(totals["turns"], "turn"), duration(totals["seconds"])]
    parts += [f"lost {gone}"] if gone else []
    return "".join(f" · {part}" for part in (*parts, failures(totals)) if part)


def said_in(entry: Entry) -> str:
    """The text of the message that *entry* carries, where there is one."""
    return str((entry.payload or {}).get("message", {}).get("text") or "")


class Live:
    """Tells the story on *stream*: a live line on a terminal, plain lines otherwise.

    On a terminal a reply is shown while it comes, marked line by line as provisional; when it is dropped, that is
    said. *earlier* events were told by another process: turns are counted on from there. *hide* takes secrets out.
    """

    def __init__(self, stream: TextIO, *, earlier: Iterable[Event] = (), hide: Callable[[str], str] = str) -> None:
        self.out = stream
        self.hide = hide
        self.teller = Teller()
        for event in earlier:
            self.teller.line(event)
        self.terminal = stream.isatty()
        self.coming = Provisional()

    def listen(self, entry: Entry) -> None:
        for line in (*self.coming.after(entry.event), self.teller.line(entry.event, said_in(entry))):
            if line:
                self._line(line)
        if self.terminal and (doing := self.teller.now(entry.event)):
            self._now(doing)
        self.out.flush()

    def hear(self, text: str) -> None:
        """A piece of a reply that may yet be dropped."""
        for line in self.coming.lines(text):
            self._line(self.hide(line))
        self._now(self.hide(self.coming.begun))
        self.out.flush()

    def _line(self, text: str) -> None:
        self.out.write(f"{ERASE if self.terminal else ''}{clean(text)}\n")

    def _now(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self.out.write(f"{ERASE}{clean(text)[:width]}")
