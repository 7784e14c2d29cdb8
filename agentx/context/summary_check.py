"""Is this a summary? What a model answers is untrusted: errors, refusals, plans and calls come as a 200 too."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, cast

from agentx.context.clip import SMALLEST_CLIP, clip
from agentx.context.measure import text_tokens, water_level
from agentx.windows.overflow import read_overflow
from agentx.wires.messages import Reply

SHRINKS = 0.6
"""A summary longer than this share of what it replaces is none."""
TOLERATED = 1.5
"""A whole summary that is at most so many times what it may have is shortened by code; a longer one is refused."""
BRIEF = 150
"""Tokens: a longer text without headings is a summary in somebody's own form, not a message of a server."""
SUBSTANTIAL, THIN = 1_000, 8
"""What stands for more than so many tokens has at least so many characters."""

THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
HEADING = re.compile(
    r"^[#*>\t \d.)-]*(?:goal|task|objective|user|constraints?|corrections?|done|completed|in progress|progress"
    r"|decisions?|facts?|files?|commands?|errors|open|next|state)\b[^:\n]{0,40}:"
    r"|^#{1,6} \w[^\n]*|^\*\*[^*\n]{2,60}\*\*\s*$",
    re.IGNORECASE | re.MULTILINE,
)
FAILED = re.compile(
    r"\s*(?:\{\s*\"?error\b|(?:\w+\.)*\w*(?:error|exception)\b\s*(?:code\b[^:(]*)?[:(]"
    r"|(?:internal server|api|http)[ _]error\b|<!doctype|<html|<\?xml|traceback \(most recent)",
    re.IGNORECASE,
)
FAILED_IN_WORDS = re.compile(
    r"\A(?:http/[\d.]+ |status )?[45]\d\d\b|internal server error|bad gateway|gateway time-?out"
    r"|service (?:is )?(?:temporarily )?unavailable"
    r"|upstream (?:connect|request|time)|too many requests|rate.?limit|over(?:loaded|capacity)|quota|insufficient_"
    r"|unauthori[sz]ed|forbidden|(?:invalid|missing|incorrect)[ _]api[ _]?key|access denied|permission denied"
    r"|connection (?:refused|reset|error|aborted|closed)|(?:request|operation|read) timed? ?out|timed out"
    r"|errors? (?:has |have )?(?:occur|happen|generating|while|when|during|processing)|an? (?:\w+ )?error\b"
    r"|unexpected (?:error|endpoint)|something went wrong|(?:please )?try again"
    r"|model\b.{0,60}\b(?:not found|not loaded|is loading|does not exist|unavailable)|no such model"
    r"|(?:fail(?:ed|ure)|unable|not able) to|could ?n[o']t\b|can ?n[o']t\b|\bsorry\b|as an ai\b|i apologi[sz]e"
    r"|maximum context length|exceed\w* .{0,40}\b(?:context|limit|length|tokens)|too many tokens"
    r"|too long to|no summary|summary (?:is )?(?:not available|unavailable|failed)",
    re.IGNORECASE,
)
PLANS = re.compile(
    r"(?:okay|ok|alright|hmm+|right|well|so|now|first)?[,.\s]*(?:let me|let's|let us|i need to|i should|i must"
    r"|i have to|i'll|i will|i'm going to|i am going to|we need to|we should|we must"
    r"|the user (?:wants|asks|is asking|asked|has asked)|my task is"
    r"|the task (?:here )?is to (?:write|create|produce|make) a summary)\b",
    re.IGNORECASE,
)
SAYS_NOTHING = re.compile(
    r"(?:[\W_]|i understand|understood|okay|ok|sure|done|got it|noted|n/a|none|null|nil|undefined|ready|summary"
    r"|empty)*",
    re.IGNORECASE,
)
CALL = re.compile(
    r"\s*(?:<tool_call|<function[=_]|<\|tool_call|<\|python_tag\|>|\[TOOL_CALLS\]|<｜tool|<invoke\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Summary:
    text: str


@dataclass(frozen=True, slots=True)
class Refused:
    """`cause` is the breaker's, `why` is for people. `down`: no answer came, so another model may give one.
    `window` is that of a server which read only a part of the request, where its count shows it."""

    cause: str
    why: str
    down: bool = False
    window: int | None = None


def looked_at(reply: Reply, *, replaced: int, limit_tokens: int) -> Summary | Refused:
    """The summary in *reply*, of at most *limit_tokens*, or why it is none. *replaced* is the estimate of what it
    stands for."""
    if reply.message.tool_calls:
        return Refused("no_summary", "the model called a tool instead")
    if reply.finish in ("length", "window"):
        return Refused("cut", "the summary was cut at its length limit")
    if reply.finish == "content_filter":
        return Refused("no_summary", "the summary was filtered")
    text = _unfenced(THINKING.sub("", reply.message.text).strip())
    if not text:
        only_thought = reply.message.reasoning or reply.message.text.strip()
        return Refused("empty", "the model only thought" if only_thought else "the summary is empty")
    if (refused := _no_summary(text)) is not None:
        return refused
    text = _without_plan(text)
    if replaced > SUBSTANTIAL and len(text) < THIN:
        return Refused("empty", f"the summary says next to nothing: {text}")
    size = text_tokens(text)
    if size > limit_tokens * TOLERATED or size > replaced * SHRINKS:
        most = min(limit_tokens, int(replaced * SHRINKS))
        return Refused("too_long", f"the summary has {size:,} tokens, {most:,} are the most for {replaced:,}")
    return Summary(shortened_to(text, limit_tokens))


def shortened_to(text: str, limit_tokens: int) -> str:
    """*text* in at most *limit_tokens*: the longest sections lose their middle."""
    if text_tokens(text) <= limit_tokens:
        return text
    starts = sorted({0, *(found.start() for found in HEADING.finditer(text))})
    sections = [text[start:end].strip("\n") for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    sizes = [text_tokens(section) + 1 for section in sections]
    cap = water_level(sizes, limit_tokens) - 1
    if cap >= SMALLEST_CLIP:
        text = "\n".join(clip(section, cap).text for section in sections)
    return clip(text, limit_tokens).text


def _no_summary(text: str) -> Refused | None:
    """Why *text* is no summary, by what it says; None when nothing speaks against it."""
    if CALL.match(text) or _is_call(text):
        return Refused("no_summary", "the model called a tool instead")
    if FAILED.match(text) or _is_error(text):
        return Refused("no_summary", f"the summary is an error text: {_start(text)}")
    words = HEADING.sub("", text)
    if SAYS_NOTHING.fullmatch(words):
        return Refused("empty", "the summary says nothing")
    if HEADING.search(text):
        return None
    brief = text_tokens(text) <= BRIEF
    if brief and (FAILED_IN_WORDS.search(text) or read_overflow(None, text) is not None):
        return Refused("no_summary", f"the summary is an error text: {_start(text)}")
    if PLANS.match(text):
        return Refused("empty", f"the model only thought: {_start(text)}")
    return None


def _without_plan(text: str) -> str:
    """*text* from its first heading on, where what stands before is the model talking to itself."""
    found = HEADING.search(text)
    return text[found.start() :] if found is not None and PLANS.match(text[: found.start()]) else text


def _unfenced(text: str) -> str:
    found = FENCE.fullmatch(text)
    return found[1].strip() if found else text


def _object(text: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if isinstance(value, list) and value:
        value = cast(list[Any], value)[0]
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _is_error(text: str) -> bool:
    """Whether *text* is the JSON of a failure, in one of the forms that servers and gateways give it."""
    keys = {key.lower(): value for key, value in _object(text).items()}
    if keys.get("error") or keys.get("errors") or "detail" in keys or keys.get("object") == "error":
        return True
    return "message" in keys and bool({"code", "status", "statuscode", "type"} & set(keys))


def _is_call(text: str) -> bool:
    keys = set(_object(text))
    return bool({"name", "function", "tool"} & keys) and bool({"arguments", "parameters", "function"} & keys)


def _start(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:100]}..."
