"""One journal, many views: the whole of the context on a real journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.context.budget import budget_for
from agentx.context.engine import Context
from agentx.context.measure import estimate
from agentx.errors import ConfigError, ContextOverflow, RequestFailed
from agentx.events import Replied
from agentx.wires.messages import Message, Request, Tool, ToolCall, Usage

if TYPE_CHECKING:
    from tests.context.conftest import Bench

SUMMARY = "Goal: answer with all codes.\nFacts: K0 K1 K2 K3"


def fill(bench: Bench, tokens: int, *, each: int = 1_000) -> None:
    """Turns of about *tokens* estimated tokens in all."""
    for n in range(tokens // each):
        bench.reads(f"{n}.md", f"[{n}] " + "word " * (each * 4 // 5 - 20))


def test_a_short_task_pays_nothing(bench: Bench) -> None:
    bench.start()
    fill(bench, 10_000)
    ask = bench.scripted(SUMMARY)
    view = bench.view(200_000, ask)
    assert (view.generation, view.fits, ask.seen) == (0, True, [])
    assert bench.events("compaction") == []
    assert view.messages[0].text == bench.system
    assert view.estimate == estimate(view.messages, bench.tools)
    assert view.measured == round(view.estimate * 1.25)


def test_the_same_journal_and_budget_give_the_same_bytes(bench: Bench) -> None:
    bench.start()
    fill(bench, 30_000)
    first = bench.view(32_000, bench.scripted(SUMMARY))
    assert first.generation
    assert bench.view(32_000, bench.scripted("another")).messages == first.messages
    assert bench.view(32_000, context=bench.open()).messages == first.messages


def test_compaction_at_the_threshold_asks_the_active_model_and_keeps_the_recent(bench: Bench) -> None:
    bench.start()
    bench.says("never touch main.py")
    fill(bench, 15_000)
    ask = bench.scripted(SUMMARY)
    view = bench.view(32_000, ask)
    (event,) = bench.events("compaction")
    assert event.policy == "half-window"
    assert event.cause == "threshold"
    assert event.effective
    assert [(tier["tier"], tier["ok"]) for tier in event.tiers] == [(0, True)]
    text = bench.text(view)
    assert bench.task in text
    assert "never touch main.py" in text
    assert SUMMARY in text
    assert view.messages[-1].text.startswith("[14] ")
    assert view.measured <= 16_000 // 2 + 500
    assert len(ask.seen) == 1


def test_a_fall_to_a_small_model_shows_a_small_view_and_the_return_the_large_one(bench: Bench) -> None:
    bench.start()
    fill(bench, 60_000)
    large = bench.view(200_000, None, model="large")
    bench.turn(large, "large one", model="large")
    small = bench.view(32_000, bench.scripted(SUMMARY), model="small")
    assert 0 < small.measured <= 16_000
    bench.turn(small, "small one", model="small")
    bench.reads("new.md", "what happened meanwhile")
    back = bench.view(200_000, None, model="large")
    assert back.generation == 0
    assert back.messages[: len(large.messages)] == large.messages
    assert "what happened meanwhile" in bench.text(back)
    assert len(bench.events("compaction")) == 1
    again = bench.view(32_000, None, model="small")
    assert again.generation == small.generation


def test_moving_to_a_larger_model_never_compacts(bench: Bench) -> None:
    bench.start()
    for _ in range(4):
        fill(bench, 30_000)
        bench.turn(bench.view(32_000, bench.scripted(SUMMARY), model="small"), model="small")
    made = len(bench.events("compaction"))
    view = bench.view(200_000, bench.scripted(SUMMARY), model="large")
    assert len(bench.events("compaction")) == made
    assert view.measured <= 100_000
    smaller = bench.view(32_000, bench.scripted(SUMMARY), model="small")
    assert view.estimate >= smaller.estimate


def test_a_large_model_that_outgrows_its_threshold_does_not_fall_to_a_small_models_view(bench: Bench) -> None:
    bench.start()
    fill(bench, 70_000)
    bench.turn(bench.view(32_000, bench.scripted(SUMMARY), model="small"), model="small")
    bench.turn(bench.view(200_000, None, model="large"), model="large")
    fill(bench, 40_000)
    view = bench.view(200_000, bench.scripted("the large model's own summary"), model="large")
    assert "the large model's own summary" in bench.text(view)
    assert view.measured <= 100_000


def test_a_link_keeps_the_view_that_it_was_shown_last_and_its_cached_beginning(bench: Bench) -> None:
    """Views that a small model was shown meanwhile would show a little more than its own compaction."""
    bench.start()
    fill(bench, 60_000)
    bench.turn(bench.view(32_000, bench.scripted(SUMMARY), model="small"), model="small")
    fill(bench, 20_000)
    bench.turn(bench.view(200_000, None, model="large"), model="large")
    fill(bench, 30_000)
    before = bench.view(200_000, bench.scripted("the large model's own summary"), model="large")
    assert "the large model's own summary" in bench.text(before)
    for _ in range(3):
        bench.turn(before, model="large")
        fill(bench, 5_000)
        view = bench.view(200_000, None, model="large")
        assert view.messages[: len(before.messages)] == before.messages
        before = view


def test_the_providers_count_decides_and_not_the_estimate(bench: Bench) -> None:
    bench.start()
    fill(bench, 10_000)
    view = bench.view(32_000)
    bench.turn(view, reported=view.estimate * 2)
    assert bench.view(32_000, bench.scripted(SUMMARY)).generation
    (event,) = bench.events("compaction")
    assert event.before > 16_000


def test_a_calibration_belongs_to_its_link_and_survives_a_restart(bench: Bench) -> None:
    bench.start()
    fill(bench, 5_000)
    view = bench.view(200_000)
    bench.turn(view, reported=view.estimate * 2)
    for context in (bench.context, bench.open()):
        known = bench.view(200_000, context=context)
        assert known.measured == pytest.approx(view.estimate * 2, abs=60)  # pyright: ignore[reportUnknownMemberType]  pytest
        other = bench.view(200_000, model="other", context=context)
        assert other.measured == round(other.estimate * 1.25)


def test_an_estimate_alone_is_confirmed_by_the_servers_counter_before_anything_is_paid(bench: Bench) -> None:
    bench.start()
    fill(bench, 16_000)
    asked: list[Request] = []

    async def count(request: Request) -> int | None:
        asked.append(request)
        return 14_000

    ask = bench.scripted(SUMMARY)
    view = bench.view(32_000, ask, count=count)
    assert (view.measured, view.generation, ask.seen) == (14_000, 0, [])
    assert asked[0].messages == view.messages


def test_an_estimate_near_the_threshold_is_confirmed_by_a_local_counter(bench: Bench) -> None:
    bench.start()
    fill(bench, 14_000)
    bench.counter = lambda text: len(text) // 5
    ask = bench.scripted(SUMMARY)
    view = bench.view(32_000, ask)
    assert view.measured == view.estimate
    assert ask.seen == []


def test_a_refused_summary_leaves_everything_and_the_next_tiers_run(bench: Bench) -> None:
    bench.start()
    fill(bench, 20_000)
    view = bench.view(32_000, bench.scripted(""))
    (event,) = bench.events("compaction")
    assert [(tier["tier"], tier["ok"]) for tier in event.tiers][:2] == [(0, False), (1, True)]
    assert event.tiers[0]["why"] == "the summary is empty"
    assert view.measured <= 16_000
    assert "restore_tool_result id `r" in bench.text(view)


def test_a_failed_compaction_never_ends_a_job_whose_request_still_fits(bench: Bench) -> None:
    """One turn of parallel calls that nothing can shorten but the last resort, which keeps it small."""
    bench.start()
    fill(bench, 20_000)
    for _ in range(5):
        view = bench.view(32_000, bench.scripted(RequestFailed("refused", phase="connect")))
        assert view.measured <= 24_000
        bench.turn(view)
        fill(bench, 8_000)


def test_three_failures_of_one_cause_stop_asking_for_summaries_until_it_cooled_down(bench: Bench) -> None:
    bench.start()
    ask = bench.scripted(RequestFailed("refused", phase="connect"))
    for _ in range(4):
        fill(bench, 20_000)
        bench.view(32_000, ask)
        bench.clock += 1
    # Each time the transcript grew by more than a quarter, so that the attempt was allowed.
    assert len(ask.seen) == 4
    assert [event.state for event in bench.events("breaker")][-1] == "open"
    fill(bench, 10_000)
    bench.view(32_000, ask)
    assert len(ask.seen) == 4
    (last,) = bench.events("compaction")[-1:]
    assert last.tiers[0]["why"] == "the breaker is open: network"
    bench.clock += 600
    fill(bench, 10_000)
    bench.view(32_000, ask, context=bench.open())
    assert len(ask.seen) == 5


def test_compactions_that_do_not_help_open_the_breaker_and_growth_closes_it(bench: Bench) -> None:
    """The provider reports the same size after each: what the estimates say does not count."""
    bench.start()
    fill(bench, 17_000)
    ask = bench.scripted(SUMMARY)
    view = bench.view(200_000)
    bench.turn(view, reported=17_000)
    seen = 0
    for _ in range(4):
        view = bench.view(32_000, ask)
        bench.turn(view, reported=17_000)
        seen = len(bench.events("compaction"))
    assert seen == 3
    (*_, last) = bench.events("breaker")
    assert (last.state, last.cause) == ("open", "ineffective")
    assert bench.view(32_000, ask).fits is False
    fill(bench, 6_000)
    bench.view(32_000, ask)
    assert len(bench.events("compaction")) == 4


def test_a_view_that_does_not_fit_runs_the_last_tier_breaker_or_not(bench: Bench) -> None:
    bench.start()
    fill(bench, 17_000)
    bench.turn(bench.view(200_000), reported=17_000)
    ask = bench.scripted(SUMMARY)
    for _ in range(3):
        bench.turn(bench.view(32_000, ask), reported=17_000)
    asked = len(ask.seen)
    (id_,) = bench.answers("", ("read_file", {"path": "big"}))
    bench.result(id_, "b" * 16_000)
    view = bench.view(20_000, ask)
    assert view.measured <= budget_for(20_000).usable
    (*_, last) = bench.events("compaction")
    assert [tier["tier"] for tier in last.tiers] == [4]
    assert len(ask.seen) == asked


def test_system_prompt_and_tools_that_fill_the_window_are_a_context_overflow(bench: Bench) -> None:
    bench.start()
    tools = tuple(Tool(f"t{n}", "d" * 900, {"type": "object"}) for n in range(40))
    with pytest.raises(ContextOverflow, match="system prompt and tools take"):
        bench.view(8_192, bench.scripted(SUMMARY), tools=tools)


def test_an_irreducible_request_over_the_threshold_does_not_compact_for_ever(bench: Bench) -> None:
    """Window 65,536, output 32,000: system, tools and the newest turn take nearly all of what is usable."""
    bench.start()
    tools = tuple(Tool(f"t{n}", "d" * 1_900, {"type": "object"}) for n in range(40))
    fill(bench, 4_000)
    budget = budget_for(65_536, 32_000)
    ask = bench.scripted(SUMMARY)
    for _ in range(12):
        view = bench.view(budget, ask, tools=tools)
        assert view.measured <= budget.usable
        bench.turn(view)
        bench.reads("x", "x" * 2_000)
    assert len(ask.seen) <= 4


def test_nothing_is_compacted_again_after_a_restart(bench: Bench) -> None:
    bench.start()
    fill(bench, 20_000)
    view = bench.view(32_000, bench.scripted(SUMMARY))
    for _ in range(3):
        assert bench.view(32_000, bench.scripted(SUMMARY), context=bench.open()).messages == view.messages
    assert len(bench.events("compaction")) == 1


def test_the_usage_before_a_compaction_is_not_taken_for_the_size_after_it(bench: Bench) -> None:
    bench.start()
    fill(bench, 17_000)
    bench.turn(bench.view(200_000), reported=150_000)
    view = bench.view(200_000, bench.scripted(SUMMARY))
    assert view.generation
    bench.answers("no usage", view=view)
    bench.view(200_000, bench.scripted(SUMMARY))
    assert len(bench.events("compaction")) == 1


def test_plan_notes_and_edited_files_come_back_with_the_summary(bench: Bench) -> None:
    bench.start()
    bench.plan(("write the report", False))
    bench.notes("the gate is closed")
    (id_,) = bench.answers("", ("write_file", {"path": "report.md", "content": "old"}))
    bench.result(id_, "written", name="write_file")
    bench.files["report.md"] = "# as it is now"
    fill(bench, 20_000)
    text = bench.text(bench.view(32_000, bench.scripted(SUMMARY)))
    for part in ("- [ ] write the report", "the gate is closed", "# as it is now"):
        assert part in text
    bench.files["report.md"] = "changed since"
    assert "# as it is now" in bench.text(bench.view(32_000))  # a prefix does not change between compactions


def test_a_manual_compaction_says_what_it_did_or_why_nothing(bench: Bench) -> None:
    bench.start()

    def compact() -> Any:
        return asyncio.run(
            bench.context.compact_now(
                bench.link(),
                budget_for(200_000),
                system=bench.system,
                tools=bench.tools,
                ask=bench.scripted(SUMMARY),
            )
        )

    nothing = compact()
    assert (nothing.generation, "nothing is older" in nothing.why) == (None, True)
    fill(bench, 60_000)
    done = compact()
    assert done.generation is not None
    assert done.after < done.before // 2


@pytest.mark.parametrize("depth", [500, 100_000])
def test_a_call_with_deeply_nested_arguments_never_keeps_a_job_from_being_compacted(
    bench: Bench, depth: int
) -> None:
    nested = '{"path": "a.json", "content": ' + '{"a":' * depth + "1" + "}" * depth + "}"
    call = ToolCall("deep", "write_file", nested)
    bench.start()
    message = Message(role="assistant", tool_calls=(call,))
    event = Replied(link="box/m", model="m", finish="stop", usage=None, seconds=0.1)
    bench.journal.append(event, {"message": message.to_json()})
    bench.result("deep", "wrote 1 file", name="write_file")
    for _ in range(60):
        bench.answers("a step is told here " * 100)
    for ask in (bench.scripted(SUMMARY), None):
        view = bench.view(32_000, ask, context=bench.open())
        assert view.generation
        assert view.measured < 16_000


@pytest.mark.parametrize("policy", ["half-window", "three-steps", "keep-recent", "notes"])
def test_results_of_calls_that_were_still_to_run_when_a_job_was_compacted_are_shown(
    bench: Bench, policy: str
) -> None:
    bench.context = bench.open(policy=policy)
    bench.start()
    for n in range(10):
        bench.reads(f"{n}.md", "word " * 800)
    first, second = bench.answers("", ("read_file", {"path": "x"}), ("read_file", {"path": "y"}))
    bench.result(first, "the first")
    ask, budget = bench.scripted(SUMMARY), bench.context.policy.budget(32_000)
    asyncio.run(bench.context.compact_now(bench.link(), budget, system=bench.system, tools=bench.tools, ask=ask))
    bench.context = bench.open(policy=policy)
    bench.result(second, "the second")
    text = bench.text(bench.view(budget, ask))
    assert "the first" in text
    assert "the second" in text


def test_an_unknown_policy_is_refused_with_those_there_are(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="no policy is called `half`"):
        bench.open(policy="half")


@given(st.lists(st.tuples(st.integers(0, 9_000), st.booleans(), st.integers(0, 3)), max_size=30), st.data())
@settings(max_examples=25, deadline=None)
def test_a_view_never_exceeds_what_can_be_sent_and_always_has_task_and_system(
    new_bench: Callable[[], Bench], turns: list[tuple[int, bool, int]], data: st.DataObject
) -> None:
    bench = new_bench()
    bench.start()
    for length, speaks, number in turns:
        ids = bench.answers("t" * (length // 9), *[("read_file", {"path": "p"})] * number)
        for id_ in ids[: number - 1 if speaks else number]:
            bench.result(id_, "r" * length)
        if speaks:
            bench.says(f"correction {length}")
    before = bench.journal.query("select seq, data, payload from entries")
    answer = data.draw(st.sampled_from([SUMMARY, "", "blah " * 9_000]))
    for window in data.draw(st.lists(st.sampled_from([2_400, 4_096, 8_192, 32_000, 200_000]), max_size=4)):
        budget = budget_for(window)
        view = bench.view(budget, bench.scripted(answer), model=str(window))
        assert view.measured <= budget.usable
        assert estimate(view.messages, bench.tools) == view.estimate
        assert view.messages[0].text == bench.system
        assert bench.task in view.messages[1].text
        assert bench.journal.query("select seq, data, payload from entries")[: len(before)] == before
        bench.turn(view, model=str(window))
    assert bench.journal.query("select seq, data, payload from entries")[: len(before)] == before


class Silent:
    """A server that keeps *window* tokens, drops the oldest messages in silence, and answers 200."""

    def __init__(self, window: int) -> None:
        self.window = window

    def kept(self, messages: tuple[Message, ...]) -> list[Message]:
        kept = list(messages)
        while self.count(kept) > self.window and len(kept) > 2:
            del kept[1]
        return kept

    def count(self, messages: list[Message]) -> int:
        """Real models read 0.88 of the plain estimate."""
        return int(estimate(messages) * 0.88)


def conversation_of_27(bench: Bench) -> None:
    """A key in the first message of the user, twelve notes, a question: about 6,200 estimated tokens."""
    bench.start("My personal key is BRAVO-2846. Remember it. I will now send some notes.")
    for n in range(1, 13):
        bench.says(f"Note {n}: " + "the harbour crew wrote down the level of the water. " * 39)
        bench.answers("Understood.")
    bench.says("What is the system key and what is my personal key?")


@pytest.mark.parametrize("real", [2_304, 4_096])
def test_the_27_messages_are_found_cut_and_then_fit_with_both_keys(bench: Bench, real: int) -> None:
    """Nobody knows the window, the card claims 131,072, and the server keeps less."""
    bench.system = "You are careful. The system key is ALPHA-7391."
    bench.tools = ()
    bench.counter = lambda text: int(len(text) / 4 * 0.88)
    conversation_of_27(bench)
    server, window = Silent(real), 131_072
    kept: list[Message] = []
    for _ in range(3):
        view = bench.view(
            window, bench.scripted("Facts: twelve notes on the harbour."), system=bench.system, tools=()
        )
        kept = server.kept(view.messages)
        reply = bench.reply("ok", usage=Usage(input=server.count(kept), output=5))
        found = bench.context.doubt.truncated(bench.link(), view, reply)
        if found is None:
            break
        assert found.reported < found.estimate
        assert 2_256 <= found.learned < window
        window = found.learned
    text = "\n".join(message.text for message in kept)
    assert "ALPHA-7391" in text
    assert "BRAVO-2846" in text
    assert window in (2_304, 4_096)


def test_a_truncated_reply_does_not_calibrate_and_a_grown_conversation_is_caught(bench: Bench) -> None:
    bench.start()
    fill(bench, 3_000)
    view = bench.view(131_072)
    bench.turn(view, reported=int(view.estimate * 0.9))
    fill(bench, 3_000)
    grown = bench.view(131_072)
    reply = bench.reply("ok", usage=Usage(input=int(view.estimate * 0.9) + 20, output=5))
    assert bench.context.doubt.suspicious(bench.link(), grown, reply)
    found = bench.context.doubt.truncated(bench.link(), grown, reply)
    assert found is not None
    assert found.why == "growth"
    assert (
        bench.context.doubt.truncated(bench.link("other"), grown, reply) is None
    )  # no counter, nothing to compare
    assert bench.view(131_072).measured == grown.measured


def test_a_context_is_usable_without_files(bench: Bench) -> None:
    context = Context(
        bench.journal,
        policy="half-window",
        now=lambda: 0.0,
        read_file=lambda path: None,
        background=lambda: "",
        output=bench.folder,
    )
    bench.start("hello")
    assert bench.view(4_096, context=context).messages[1].text == "hello"


def test_a_link_that_cannot_hold_what_is_fixed_is_known_before_anything_is_made(bench: Bench) -> None:
    bench.start()
    context, system = bench.open(), "word " * 4_000
    error = context.cannot_hold(bench.link(), budget_for(4_096), system=system, tools=bench.tools)
    assert error is not None and error.limit == 2_048
    assert error.actual is not None and error.actual > 4_000
    assert f"take {error.actual:,} tokens or more; a window of 4,096 has 2,048" in error.message
    assert context.cannot_hold(bench.link(), budget_for(32_000), system=system, tools=bench.tools) is None
    assert bench.events("compaction") == []
