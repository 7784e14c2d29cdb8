"""What a reply's counts prove, on servers that may cut a conversation and on those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentx.context.tokenizer import count_tokens
from agentx.wires.messages import Usage

if TYPE_CHECKING:
    from tests.context.conftest import Bench

RUSSIAN = "Привет, меня зовут Анна. Я читаю записи о гавани и пишу ответ."


@pytest.mark.parametrize("cuts", [True, False])
def test_a_newer_tokenizer_for_another_script_is_no_truncation(bench: Bench, cuts: bool) -> None:
    bench.counter = count_tokens
    bench.start()
    bench.reads("a.md", (RUSSIAN + "\n") * 200)
    view = bench.view(128_000)
    counted = count_tokens(bench.text(view))
    assert counted is not None
    reply = bench.reply("ok", usage=Usage(input=int(counted * 0.6), output=5))
    assert bench.context.doubt.truncated(bench.link(cuts=cuts), view, reply) is None


@pytest.mark.parametrize("cuts", [True, False])
def test_a_count_that_falls_a_little_is_no_truncation_where_a_counter_says_all_was_read(
    bench: Bench, cuts: bool
) -> None:
    bench.start()
    bench.reads("a.md", "word " * 16_000)
    view = bench.view(128_000)
    bench.turn(view)
    bench.reads("b.md", "word " * 100)
    grown = bench.view(128_000)
    reply = bench.reply("ok", usage=Usage(input=int(grown.estimate * 0.94), output=5))
    bench.counter = lambda text: len(text) // 4
    own = grown.estimate if cuts else None
    assert bench.context.doubt.truncated(bench.link(cuts=cuts), grown, reply, counted=own) is None
    half = bench.reply("ok", usage=Usage(input=grown.estimate // 2, output=5))
    assert bench.context.doubt.truncated(bench.link(cuts=cuts), grown, half, counted=own) is not None


def test_only_a_server_that_may_cut_is_judged_without_a_counter(bench: Bench) -> None:
    bench.start()
    bench.reads("a.md", "word " * 16_000)
    view = bench.view(128_000)
    reply = bench.reply("ok", usage=Usage(input=4_096, output=5))
    assert bench.context.doubt.truncated(bench.link(), view, reply) is not None
    assert bench.context.doubt.truncated(bench.link(cuts=False), view, reply) is None
    assert bench.context.doubt.truncated(bench.link(cuts=False), view, reply, counted=view.estimate) is not None
