"""Reads a refusal: are the prompt, the output budget or the bytes too many, and what is the limit?

The wordings are those of facts/windows section 7; a card may teach more. About half of the "maximum context
length" errors mean that the *output budget* is too big: the cure is a smaller one, not compaction, so the two are
told apart here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from agentx.windows.record import believable
from agentx.windows.unwrap import error_text

Cause = Literal["input", "output", "bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """All numbers are tokens, None where the refusal does not say them.

    `limit` is what the endpoint holds (of prompts alone, where it says only that). `actual` is the prompt's
    size; a lower bound stands in `at_least` instead. `output` is the output budget that was asked for.
    `excess` is by how much the prompt is too long, where only that is said.
    """

    cause: Cause
    limit: int | None = None
    actual: int | None = None
    output: int | None = None
    at_least: int | None = None
    excess: int | None = None


@dataclass(frozen=True, slots=True)
class Wording:
    """One sentence of one family of servers. Groups: L limit, A actual, B more of actual, O output, M "at least",
    X excess. With `cause` None the numbers decide: a prompt that fits alone leaves the output to blame."""

    pattern: str
    cause: Cause | None


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """*pattern*, ready to search with: most programs that import this never read a refusal."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def _wording(pattern: str, cause: Cause | None = "input") -> Wording:
    number = r"(?P<{}>\d[\d,_]*)"
    for name in "LABOX":
        pattern = pattern.replace(f"<{name}>", number.format(name))
    return Wording(pattern, cause)


NEVER_STATUS = frozenset((401, 402, 403, 404, 408, 429))

# Rates, counts of tools and limits of single fields speak of tokens and lengths too, and are something else.
VETOES = (
    r"tokens per (min|day|hour|sec)|\bT[PD]M\b|rate.?limit|too many tokens, please wait|throttl"
    r"|string_above_max_length|string too long|array_above_max_length|too many tools|number of tools"
    r"|max_(completion_|output_)?tokens`?'? (must|should|is too small)"
)

LIMIT = r"maximum context length (?:is|of) <L> tokens"

WORDINGS: tuple[Wording, ...] = (
    # llama.cpp, llamafile, and Ollama and LM Studio on top of it
    _wording(r"request \(<A> tokens\) exceeds the available context size \(<L>"),
    _wording(r"input \(<A> tokens\) is (?:larger|longer) than the max(?:imum)? context size \(<L>"),
    _wording(r"exceeds the available context size(?: \(<L>)?"),
    _wording(r"exceeds? (?:the )?(?:slot context|n_ctx(?:_slot)?\b)(?:[ =:(]{1,3}<L>)?"),
    # LM Studio: A is the part that must be kept
    _wording(r"n_keep:? \(?<A>\)? >= n_ctx:? \(?<L>"),
    _wording(r"keep the first <A> tokens.{0,200}?(?:context length of )?only <L> tokens"),
    # Ollama
    _wording(r"input length \(<A> tokens\) exceeds the model's maximum context length \(<L>"),
    _wording(r"prompt is longer than the context length currently available"),
    _wording(r"exceeded max context length(?: by <X> tokens)?"),
    _wording(r"input length exceeds (?:the )?maximum context length"),
    _wording(
        r"input length \(?<A>\)? exceeds (?:the )?(?:model's )?(?:maximum )?context length(?: \(?(?:of )?<L>)?"
    ),
    # vLLM: first those where the output is to blame
    _wording(r"max_(?:completion_)?tokens=<O> cannot be greater than max_model_len=<L>", "output"),
    _wording(
        r"'max_tokens' or 'max_completion_tokens' is too large: <O>\.?.{0,80}?<L> tokens.{0,80}?has <A> input",
        None,
    ),
    _wording(
        LIMIT + r".{0,80}?requested <O> output tokens.{0,80}?contains (?P<M>at least )?<A> input tokens", None
    ),
    _wording(LIMIT + r".{0,80}?prompt contains (?P<M>at least )?<A> input tokens"),
    _wording(LIMIT + r".{0,80}?prompt contains [\d,_]+ characters"),
    _wording(LIMIT + r".{0,80}?your request has <A> input tokens"),
    _wording(
        r"(?:prompt|prompt length|engine prompt length) \(?(?:length )?<A>\)? exceeds the max_model_len \(?<L>"
    ),
    _wording(r"(?:longer|greater) than the maximum model length (?:of )?<L>"),
    # OpenRouter, old vLLM, DeepSeek, llama-cpp-python, SGLang's total
    _wording(
        LIMIT + r".{0,80}?requested about [\d,_]+ tokens \(<A> of text input(?:, <B> of tool input)?"
        r"(?:[^)]*?, <O> in the output)?",
        None,
    ),
    _wording(
        LIMIT + r".{0,80}?requested [\d,_]+ tokens \(<A> in (?:the|your) (?:messages|prompt)"
        r"(?:, <B> in the functions)?[;,] <O> (?:in|for) the completion",
        None,
    ),
    _wording(
        LIMIT + r".{0,80}?total of [\d,_]+ tokens: <A> tokens from the input messages and <O> tokens for", None
    ),
    # SGLang, Together
    _wording(r"input \(<A> tokens\) is longer than the model's context length \(<L>"),
    _wording(r"input length \(<A> tokens\) exceeds the maximum allowed length \(<L>"),
    # Groq
    _wording(r"exceeds the maximum allowed input length of <L> tokens"),
    # TGI
    _wording(r"`?inputs`? must have less than <L> tokens\. Given: <A>"),
    _wording(r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= <L>\. Given: <A> .{0,40}?and <O>", None),
    # Anthropic
    _wording(r"prompt is too long(?:: <A> tokens > <L>)?"),
    _wording(r"exceed context limit: <A> \+ <O> > <L>", None),
    # OpenAI, Azure
    _wording(LIMIT + r".{0,80}?messages resulted in <A> tokens"),
    _wording(r"configured limit of <L> tokens.{0,80}?resulted in <A> tokens"),
    _wording(
        r"(?:input|prompt|request|messages|tokens)[^.\n]{0,40} exceeds? the (?:model's )?context (?:window|length)"
    ),
    # Gemini, Vertex
    _wording(r"input token count \(?<A>\)? exceeds the maximum number of tokens allowed \(?<L>"),
    _wording(r"input token count(?: \(?<A>\)?)? exceeds the maximum(?: number of tokens allowed \(?<L>)?"),
    _wording(r"exceeds the maximum number of input tokens"),
    # Mistral, xAI, Cerebras, Copilot, Moonshot, Qwen, and a server called DS4
    _wording(r"prompt contains <A> tokens.{0,120}?too large for model with <L> maximum context length"),
    _wording(r"too large for model with <L> maximum context length"),
    _wording(r"maximum prompt length is <L>(?: but the request contains <A> tokens)?"),
    _wording(r"current length is <A> while limit is <L>"),
    _wording(r"prompt token count of <A> exceeds the limit of <L>"),
    _wording(r"\b(?:prompt|input|context)\b[^.\n]{0,40} exceeds the limit of <L>"),
    _wording(r"exceeded model token limit: <L>"),
    _wording(r"range of input length should be \[\d+, ?<L>\]"),
    _wording(r"prompt has <A> tokens, but the configured context size is <L> tokens"),
    # Bedrock, Groq, MiniMax, z.ai: no numbers
    _wording(r"input is too long for (?:the )?requested model|too many input tokens"),
    _wording(r"context window exceeds limit"),
    _wording(
        r"prompt exceeds max(?:imum)? length|prompt 超长|输入.{0,12}超过|超[过出]最大长度|上下文(?:长度|窗口)"
    ),
    # What many servers say: the limit alone, in a sentence that is not known; no numbers; then the codes
    _wording(LIMIT + r"(?=.{0,200}(?:exceed|reduce|too (?:long|large|many)|requested))"),
    _wording(r"(?:greater|longer|larger) than the (?:model's )?(?:maximum )?context (?:length|window)"),
    _wording(r"context length is only <L> tokens"),
    _wording(r"reduce the length of (?:the|your) (?:messages|prompt|input)"),
    _wording(
        r"\b(?:context_length_exceeded|model_max_prompt_tokens_exceeded|exceed_context_size_error"
        r"|model_context_window_exceeded|context_window_exceeded|ContextWindowExceededError|prompt_too_long)\b"
    ),
)

TOO_MANY_BYTES = (
    r"request_too_large|(request|payload|body|entity).{0,30}too (large|big)"
    r"|exceeds the maximum (number of bytes|size)"
)
POOL = re.compile(r"^context size has been exceeded", re.IGNORECASE | re.MULTILINE)
"""llama.cpp's slots share one pool: no proof that *this* prompt is too long, and asking again alone works."""


def read_overflow(status: int | None, body: str) -> Overflow | None:
    """What a refusal with *status* and *body* says about sizes; None when it is about something else.

    *status* None stands for an error inside a stream. Never raises, whatever the body is.
    """
    if status in NEVER_STATUS:
        return None
    found = error_text(body)
    limit, actual = believable(found.numbers.get("n_ctx")), found.numbers.get("n_prompt_tokens")
    if limit and actual and actual >= limit:
        return Overflow(cause="input", limit=limit, actual=actual)
    if compiled(VETOES).search(found.text) or POOL.search(found.text):
        return None
    for wording in WORDINGS:
        if match := compiled(wording.pattern).search(found.text):
            return _read(match, wording.cause)
    if status == 413 or compiled(TOO_MANY_BYTES).search(found.text):
        return Overflow(cause="bytes")
    return None


def read_own(match: re.Match[str], cause: Cause) -> Overflow:
    """What a card's own words say: its groups `limit`, `actual` and `output`, each of which may be absent."""
    values = {name: _number(text) for name, text in match.groupdict().items()}
    return Overflow(
        cause=cause,
        limit=believable(values.get("limit")),
        actual=values.get("actual"),
        output=values.get("output"),
    )


def _read(match: re.Match[str], cause: Cause | None) -> Overflow:
    values = {name: _number(text) for name, text in match.groupdict().items() if name != "M"}
    limit, actual = believable(values.get("L")), values.get("A")
    output = values.get("O")
    if actual is not None:
        actual += values.get("B") or 0
    bound = bool(match.groupdict().get("M"))
    if cause is None:
        # Where the prompt was counted only as far as the limit, it may be of any size: it is to blame.
        fits = limit is not None and actual is not None and actual < limit and not bound
        cause = "output" if fits else "input"
    return Overflow(
        cause=cause,
        limit=limit,
        actual=None if bound else actual,
        output=output,
        at_least=actual if bound else None,
        excess=values.get("X"),
    )


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    digits = re.sub(r"[,_\s']", "", text)
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None
