"""Token counts as servers report them, brought to one meaning: `input` with cached, `output` with reasoning."""

from __future__ import annotations

from typing import Any

from agentx.wires.messages import Usage

MOST = 1e12
"""Tokens; JSON can hold 1e999, which is no count."""


def usage_of(reported: dict[str, Any]) -> Usage | None:
    """Usage from a `usage` object of a chat completion; None when it holds no prompt count.

    Names seen: OpenAI's, DeepSeek's `prompt_cache_hit_tokens`, Moonshot's `cached_tokens`, and Anthropic's,
    whose `input_tokens` leaves cached tokens out.
    """
    prompt, output = _count(reported, "prompt_tokens"), _count(reported, "completion_tokens", "output_tokens")
    details = _table(reported, "prompt_tokens_details", "input_tokens_details")
    read = _count(details, "cached_tokens") or _count(
        reported, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"
    )
    written = _count(details, "cache_write_tokens", "cache_creation_tokens") or _count(
        reported, "cache_creation_input_tokens"
    )
    if not prompt and (prompt := _count(reported, "input_tokens")):
        prompt += _count(reported, "cache_read_input_tokens") + _count(reported, "cache_creation_input_tokens")
    if not prompt:
        return None
    reasoning = _count(_table(reported, "completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    # xAI and Gemini's compatible route count reasoning beside the completion; their total gives it away.
    if reasoning and _count(reported, "total_tokens") == prompt + output + reasoning:
        output += reasoning
    return Usage(input=prompt, output=output, cache_read=read, cache_write=written, reasoning=reasoning)


def usage_of_timings(timings: dict[str, Any]) -> Usage | None:
    """Usage from llama.cpp's `timings`, which come even where usage was not asked for."""
    cached, read = _count(timings, "cache_n"), _count(timings, "prompt_n")
    if not cached + read:
        return None
    return Usage(input=cached + read, output=_count(timings, "predicted_n"), cache_read=cached)


def _count(data: dict[str, Any], *names: str) -> int:
    for name in names:
        value = data.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < MOST:
            return int(value)
    return 0


def _table(data: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        if isinstance(value := data.get(name), dict):
            return value  # pyright: ignore[reportUnknownVariableType]  JSON: any object
    return {}
