"""Whether a server read all that it was sent: what a reply's counts say, held against the view and a counter.

To be asked before a reply is committed; `truncation` has the rules, and this what is known of one job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentx.config.links import Link
from agentx.context.measure import estimate, message_tokens, rendered
from agentx.context.state import State
from agentx.context.tokenizer import least_tokens
from agentx.context.truncation import (
    READ,
    Earlier,
    Suspicion,
    Truncation,
    in_doubt,
    learned_window,
    looks_like_a_window,
    suspicion,
    verdict,
)
from agentx.context.view import View
from agentx.wires.messages import Reply

FELL = 0.6
"""Below this share of the count before, the rough count of a local tokenizer decides on a server that cuts."""
SENT_AT_MOST = 1.15


@dataclass(frozen=True, slots=True)
class Doubt:
    """Judges replies by what the journal has told `state`; `counter` is a real tokenizer for one text."""

    state: State
    counter: Callable[[str], int | None]

    def suspicious(self, link: Link, view: View, reply: Reply) -> bool:
        """Whether it is worth to ask a real counter how large *view* is; costs nothing."""
        return reply.usage is not None and self._suspicion(link, view, reply) is not None

    def truncated(self, link: Link, view: View, reply: Reply, *, counted: int | None = None) -> Truncation | None:
        """What was cut in silence when *link* read *view*; None when it read all of it.

        *counted* is the size of the view by the server's own counter; without it a local tokenizer counts when
        something is suspicious. That is no proof against a server which is not known to cut: tokenizers differ,
        and another one may have answered.
        """
        usage = reply.usage
        why = self._suspicion(link, view, reply)
        if why is None or usage is None:
            return None
        earlier = self.state.samples.get((link.identity, view.generation))
        reported, plain = usage.input, view.estimate
        if why != "said" and not link.provider.cuts:
            if counted is None and why == "growth":
                counted = self._counted(link, view)
            cut = counted is not None and reported < READ * counted
            return self._truncation(link, view, reported, why) if cut else None
        if why == "slow_growth" and earlier is not None:
            newer = [item.message for item in self.state.transcript.between(earlier.last, view.last)]
            reported, plain, counted = reported - earlier.input, estimate(newer), self._least(rendered(newer))
        elif why == "growth" and earlier and reported < earlier.input * (FELL if counted is None else 1):
            counted = self._counted(link, view) if counted is None else counted
            if counted is not None and reported >= READ * counted:
                return None  # it read all: the count before was wrong, or of thinking that did not go back
        elif why not in ("said", "growth") and counted is None:
            counted = self._counted(link, view)
        if not verdict(why, reported=reported, estimate=plain, counted=counted):
            return None
        return self._truncation(link, view, usage.input, why)

    def in_doubt(self, link: Link, view: View, reply: Reply) -> int | None:
        """The tokens that a longer request must go beyond to tell whether *link* dropped a little of *view*.

        None where the server is known not to cut, or nothing speaks for it.
        """
        if reply.usage is None or not link.provider.cuts:
            return None
        reported = reply.usage.input
        if link.identity not in self.state.calibrations:  # a first request: its estimate is rough
            doubt = reported < view.estimate and looks_like_a_window(reported)
            return view.estimate if doubt else None
        sample = self.state.samples.get((link.identity, view.generation))
        grown = None if sample is None else view.measured - sample.input
        return in_doubt(reported, view.measured, grown=grown, final=not reply.message.tool_calls)

    def _suspicion(self, link: Link, view: View, reply: Reply) -> Suspicion | None:
        if reply.usage is None:
            return "said" if reply.said_truncated else None
        sample = self.state.samples.get((link.identity, view.generation))
        earlier = None if sample is None else Earlier(sample.input, sample.estimate)
        return suspicion(reply.usage.input, view.estimate, earlier, said=reply.said_truncated)

    def _counted(self, link: Link, view: View) -> int | None:
        """The fewest tokens that *view* may be, by a real tokenizer.

        Tools count only on links that have called one: templates without support for tools leave them out in
        silence.
        """
        counted = self._least(rendered(view.messages))
        if counted is None or link.identity not in self.state.calling:
            return counted
        system = sum(message_tokens(message) for message in view.messages if message.role == "system")
        return counted + max(0, view.fixed - system)

    def _least(self, text: str) -> int | None:
        return least_tokens(text, self.counter)

    def _truncation(self, link: Link, view: View, reported: int, why: Suspicion) -> Truncation:
        ratio = self.state.calibration(link.identity).ratio or 1.0
        sizes = [round(message_tokens(m) * ratio) for m in view.messages if m.role != "system"]
        sent = max(reported, round(view.estimate * ratio * SENT_AT_MOST))  # an estimate may be too low
        learned = learned_window(reported, min(view.window, sent), sizes, fixed=round(view.fixed * ratio))
        return Truncation(reported=reported, estimate=view.estimate, learned=learned, why=why)
