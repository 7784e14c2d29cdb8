"""The four policies: their numbers are those of the systems they come from (seeds.md section 2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.context.budget import Budget, budget_for
from agentx.context.engine import Context
from agentx.context.own import prepared
from agentx.context.policies import HALF_WINDOW, KEEP_RECENT, NOTES, POLICIES, THREE_STEPS, Policy, summary_limit
from agentx.context.summarise import Ask
from agentx.context.view import View
from agentx.errors import RequestFailed, WindowTooSmall
from agentx.wires.messages import Message, Reply, Usage

if TYPE_CHECKING:
    from tests.context.conftest import Bench

SUMMARY = "Goal: answer with all codes.\nFacts: K0 K1 K2 K3"


def results(bench: Bench, number: int, tokens: int, start: int = 0) -> None:
    """So many files read, each of *tokens* (plain estimate)."""
    for n in range(start, start + number):
        bench.reads(f"{n}.md", f"[{n}] " + "x" * (4 * tokens - 8))


@pytest.mark.parametrize(
    ("policy", "window", "threshold", "reserve"),
    [
        (HALF_WINDOW, 200_000, 100_000, 8_192),
        (HALF_WINDOW, 400_000, 128_000, 8_192),
        (THREE_STEPS, 4_096, 1_843, 1_024),
        (THREE_STEPS, 16_000, 7_200, 4_000),
        (THREE_STEPS, 32_768, 14_745, 8_192),
        (KEEP_RECENT, 32_768, 26_214, 6_553),
        (KEEP_RECENT, 200_000, 160_000, 8_192),
        (KEEP_RECENT, 1_000_000, 800_000, 8_192),
        (NOTES, 6_000, 4_200, 1_500),
        (NOTES, 200_000, 140_000, 8_192),
    ],
)
def test_each_policy_starts_where_its_numbers_say(
    policy: Policy, window: int, threshold: int, reserve: int
) -> None:
    budget = policy.budget(window)
    assert (budget.threshold, budget.reserve) == (threshold, reserve)


@pytest.mark.parametrize(("window", "most"), [(4_096, 1_024), (16_000, 4_000), (32_768, 8_192), (200_000, 8_192)])
def test_three_steps_sends_its_reserve_as_the_output_budget(window: int, most: int) -> None:
    assert THREE_STEPS.budget(window).max_tokens == most
    assert THREE_STEPS.budget(window, 500).max_tokens == THREE_STEPS.budget(window, 500).reserve == 500
    assert THREE_STEPS.budget(window, output_cap=300).max_tokens == 300


@given(
    st.sampled_from(list(POLICIES.values())),
    st.integers(2_256, 10_000_000),
    st.none() | st.integers(1, 2_000_000),
    st.none() | st.integers(1, 2_000_000),
)
def test_no_budget_of_any_policy_starves_another(
    policy: Policy, window: int, max_tokens: int | None, output_cap: int | None
) -> None:
    budget = policy.budget(window, max_tokens, output_cap=output_cap)
    assert budget.threshold >= max(1, policy.floor)
    assert 1 <= budget.reserve <= window // 2
    assert budget.threshold + budget.reserve <= window
    assert 1 <= summary_limit(policy, window) <= 10_000


@given(st.integers(2_256, 10_000_000), st.integers(0, 5_000_000), st.floats(0.05, 0.5))
def test_a_floor_that_is_larger_than_the_window_leaves_a_reply(window: int, floor: int, share: float) -> None:
    budget = budget_for(window, floor=floor, reserve_share=share)
    assert budget.threshold + budget.reserve <= window
    assert budget.reserve >= 1


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_no_policy_works_in_a_window_without_room(policy: Policy) -> None:
    with pytest.raises(WindowTooSmall):
        policy.budget(2_255)


def test_half_window_still_is_the_default_with_the_tiers_of_the_design() -> None:
    assert [step.tier for step in HALF_WINDOW.steps] == ["summary", "markers", "images", "cheap", "prune"]
    assert all(step.above is None for step in HALF_WINDOW.steps)


class TestThreeSteps:
    """A window of 32,768: usable input 24,576, of which 60 % are 14,745 and 85 % are 20,889."""

    def test_above_sixty_per_cent_old_results_are_cleared_at_once_and_the_six_newest_stay(
        self, bench: Bench
    ) -> None:
        context = bench.open(policy=THREE_STEPS)
        bench.start()
        results(bench, 12, 1_000)
        ask = bench.scripted(SUMMARY)
        view = bench.view(THREE_STEPS.budget(32_768), ask, context=context)
        (event,) = bench.events("compaction")
        assert [(tier["name"], tier["ok"]) for tier in event.tiers] == [("markers", True)]
        assert ask.seen == [], "no model is asked below 85 %"
        shown = [message.text for message in view.messages if message.role == "tool"]
        assert [text.startswith("[result of read_file left out") for text in shown] == [True] * 6 + [False] * 6
        assert sum(len(message.tool_calls) for message in view.messages) == 12, "the calls stay"

    def test_below_sixty_per_cent_nothing_is_rewritten(self, bench: Bench) -> None:
        context = bench.open(policy=THREE_STEPS)
        bench.start()
        results(bench, 11, 1_000)
        assert bench.view(THREE_STEPS.budget(32_768), None, context=context).generation == 0
        assert bench.events("compaction") == []

    def test_still_above_eighty_five_per_cent_a_summary_replaces_the_conversation(self, bench: Bench) -> None:
        context = bench.open(policy=THREE_STEPS)
        bench.start()
        bench.says("never touch main.py")
        results(bench, 6, 2_800)
        view = bench.view(THREE_STEPS.budget(32_768), bench.scripted(SUMMARY), context=context)
        (event,) = bench.events("compaction")
        assert [(tier["name"], tier["ok"]) for tier in event.tiers] == [("markers", False), ("summary", True)]
        assert [message.role for message in view.messages] == ["system", "user"]
        text = bench.text(view)
        assert all(words in text for words in (bench.task, "never touch main.py", SUMMARY))
        assert "xxx" not in text

    def test_between_the_two_with_nothing_to_clear_nothing_is_done_and_nothing_is_counted_as_failed(
        self, bench: Bench
    ) -> None:
        context = bench.open(policy=THREE_STEPS)
        bench.start()
        results(bench, 6, 2_200)
        for _ in range(4):
            assert bench.view(THREE_STEPS.budget(32_768), bench.scripted(SUMMARY), context=context).generation == 0
        assert bench.events("compaction") == bench.events("breaker") == []

    def test_small_clearings_do_not_keep_the_model_from_being_asked_above_eighty_five_per_cent(
        self, bench: Bench
    ) -> None:
        context = bench.open(policy=THREE_STEPS)
        bench.start()
        bench.says("never touch main.py. " + "x" * 20_000)
        results(bench, 6, 1_500)
        ask = bench.scripted(SUMMARY)
        for _ in range(8):
            results(bench, 1, 1_500)
            bench.view(THREE_STEPS.budget(32_768), ask, context=context)
        assert len(bench.events("compaction")) >= 4
        assert (bench.events("breaker"), ask.seen) == ([], [])
        results(bench, 6, 3_000)
        bench.view(THREE_STEPS.budget(32_768), ask, context=context)
        assert ("summary", True) in [(tier["name"], tier["ok"]) for tier in bench.events("compaction")[-1].tiers]

    def test_a_refused_summary_leaves_the_conversation_as_it_was(self, bench: Bench) -> None:
        context = bench.open(policy=THREE_STEPS)
        bench.start()
        results(bench, 6, 2_800)
        view = bench.view(THREE_STEPS.budget(32_768), bench.scripted(""), context=context)
        assert view.generation == 0
        assert bench.text(view).count("xxx")


class TestKeepRecent:
    def test_at_eighty_per_cent_the_last_ten_thousand_tokens_stay(self, bench: Bench) -> None:
        context = bench.open(policy=KEEP_RECENT)
        bench.start()
        results(bench, 64, 2_000)
        view = bench.view(KEEP_RECENT.budget(200_000), bench.scripted(SUMMARY), context=context)
        (event,) = bench.events("compaction")
        assert [(tier["name"], tier["ok"]) for tier in event.tiers] == [("summary", True)]
        shown = [message.text[:4] for message in view.messages if message.role == "tool"]
        assert shown == ["[60]", "[61]", "[62]", "[63]"], (
            "four exchanges of 2,000 and some tokens are within 10,000"
        )

    def test_a_summary_has_at_most_sixteen_thousand_bytes(self, bench: Bench) -> None:
        context = bench.open(policy=KEEP_RECENT)
        bench.start()
        results(bench, 400, 2_000)
        bench.view(KEEP_RECENT.budget(1_000_000), bench.scripted("Goal: all. " + "word " * 3_300), context=context)
        assert bench.events("compaction")
        assert all(len(one.summary.encode()) <= 16_000 for one in context.state.checkpoints.values())

    def test_below_eighty_per_cent_nothing_is_done(self, bench: Bench) -> None:
        context = bench.open(policy=KEEP_RECENT)
        bench.start()
        results(bench, 62, 2_000)
        assert bench.view(KEEP_RECENT.budget(200_000), None, context=context).generation == 0

    def test_there_are_at_most_three_compactions_in_a_turn(self, bench: Bench) -> None:
        context = bench.open(policy=KEEP_RECENT)
        bench.start()
        for round_ in range(5):
            results(bench, 64, 2_000, start=64 * round_)
            bench.view(KEEP_RECENT.budget(1_000_000), bench.scripted(SUMMARY), context=context)
            bench.view(KEEP_RECENT.budget(120_000), bench.scripted(SUMMARY), context=context)
        by_model = [e for e in bench.events("compaction") if any(t["name"] == "summary" for t in e.tiers)]
        assert len(by_model) == 3

    def test_the_limit_is_one_of_a_turn(self, bench: Bench) -> None:
        context = bench.open(policy=KEEP_RECENT)
        bench.start()
        for round_ in range(5):
            results(bench, 64, 2_000, start=64 * round_)
            view = bench.view(KEEP_RECENT.budget(120_000), bench.scripted(SUMMARY), context=context)
            bench.answers("ok", view=view, usage=Usage(input=view.estimate, output=10))
        assert len(bench.events("compaction")) == 5


class TestNotes:
    """The counter adds input and output of every reply; a compaction sets it back."""

    def reply(self, bench: Bench, usage: Usage, *, budget: Budget, size: int = 1_200) -> int:
        """A reply to the view of this moment, with a result of *size*; what the counter stands at then."""
        view = bench.view(budget, bench.scripted(SUMMARY), context=self.context, system=bench.system)
        bench.answers("", ("read_file", {"path": "a"}), view=view, usage=usage)
        bench.result(f"c{bench.calls}", "y" * size)
        self.context.replied(bench.link(), view, usage)
        return self.context.state.replies

    def test_the_exercise_compacts_after_the_fourth_reply_and_counts_from_there(self, bench: Bench) -> None:
        """0.75 of 6,000 is 4,500; 1,200, 1,500, 900 and 1,100 make 4,700; then 300 + 100 are 400."""
        policy = Policy(
            name="exercise",
            steps=NOTES.steps,
            counts="replies",
            fraction=0.75,
            cap=None,
            floor=0,
            reserve_share=0.25,
            tail_most=0,
        )
        budget = policy.budget(6_000)
        assert budget.threshold == 4_500
        self.context = bench.open(policy=policy)
        bench.start()
        usages = [(1_100, 100), (1_300, 200), (800, 100), (1_000, 100)]
        counts = [self.reply(bench, Usage(input=i, output=o), budget=budget) for i, o in usages]
        assert counts == [1_200, 2_700, 3_600, 4_700]
        assert bench.events("compaction") == []
        assert self.reply(bench, Usage(input=300, output=100), budget=budget) == 400
        assert len(bench.events("compaction")) == 1

    def test_the_example_run_counts_as_told(self, bench: Bench) -> None:
        """Window 2,000, ratio 0.7: 400, 1,050, 1,850, compaction, 280, 490."""
        budget = Budget(window=2_000, reserve=500, threshold=1_400)
        self.context = bench.open(policy=NOTES)
        bench.system = "You are a careful agent. " * 50  # about what the first request holds
        bench.start()
        usages = [(350, 50), (600, 50), (750, 50), (230, 50), (180, 30)]
        counts = [self.reply(bench, Usage(input=i, output=o), budget=budget, size=800) for i, o in usages]
        assert counts == [400, 1_050, 1_850, 280, 490]
        assert len(bench.events("compaction")) == 1

    def test_the_conversation_is_replaced_whole_with_task_corrections_and_notes_beside_the_summary(
        self, bench: Bench
    ) -> None:
        self.context = bench.open(policy=NOTES)
        bench.start()
        bench.says("use B, not A")
        bench.notes("decision: B, because A leaks")
        budget = NOTES.budget(6_000)
        for _ in range(3):
            self.reply(bench, Usage(input=1_400, output=50), budget=budget)
        bench.nudge("the check failed: 3 tests")
        view = bench.view(budget, bench.scripted(SUMMARY), context=self.context)
        assert [message.role for message in view.messages] == ["system", "user"]
        text = bench.text(view)
        assert all(w in text for w in (bench.task, "use B, not A", SUMMARY, "decision: B, because A leaks"))
        assert "the check failed: 3 tests" in text, "what nobody has read yet stays"
        assert "yyy" not in text
        assert text.count("decision: B") == 1

    def test_what_was_replaced_stays_replaced_and_a_new_process_knows_the_counter(self, bench: Bench) -> None:
        self.context = bench.open(policy=NOTES)
        bench.start()
        budget = NOTES.budget(6_000)
        for _ in range(3):
            self.reply(bench, Usage(input=1_400, output=50), budget=budget)
        first = bench.view(budget, bench.scripted(SUMMARY), context=self.context)
        bench.answers("ok", view=first, usage=Usage(input=300, output=20))
        again = bench.open(policy=NOTES)
        second = bench.view(budget, bench.scripted("another"), context=again)
        assert (second.generation, again.state.replies) == (first.generation, 320)
        assert second.messages[: len(first.messages)] == first.messages

    def test_a_larger_model_is_shown_the_whole_again(self, bench: Bench) -> None:
        self.context = bench.open(policy=NOTES)
        bench.start()
        for _ in range(3):
            self.reply(bench, Usage(input=1_400, output=50), budget=NOTES.budget(6_000))
        small = bench.view(NOTES.budget(6_000), bench.scripted(SUMMARY), context=self.context)
        bench.answers("ok", view=small, usage=Usage(input=300, output=20))
        assert bench.view(NOTES.budget(200_000), None, context=self.context).generation == 0

    def test_a_compaction_that_fails_is_no_storm(self, bench: Bench) -> None:
        self.context = bench.open(policy=NOTES)
        bench.start()
        budget = NOTES.budget(6_000)
        for _ in range(3):
            self.reply(bench, Usage(input=1_400, output=50), budget=budget)
        ask = bench.scripted("")
        for _ in range(6):
            assert bench.view(budget, ask, context=self.context).generation == 0
        assert len(ask.seen) == 3

    def test_replies_without_a_count_are_counted_by_estimate(self, bench: Bench) -> None:
        self.context = bench.open(policy=NOTES)
        bench.start()
        view = bench.view(NOTES.budget(6_000), None, context=self.context)
        bench.answers("x" * 400, view=view)
        self.context.replied(bench.link(), view, None)
        assert self.context.state.replies == view.measured + 104


class TestBackground:
    """A summary that is prepared beside the work, from three quarters of the threshold on."""

    POLICY = prepared(KEEP_RECENT, wanted=True)

    def job(self, bench: Bench, work: Callable[[Context], Awaitable[None]], policy: Policy = POLICY) -> Any:
        """*work* on a job that holds about 125,000 of 160,000 tokens; the one compaction that it made."""
        bench.start()
        results(bench, 50, 2_000)

        async def run() -> None:
            context = bench.open(policy=policy)
            await work(context)
            await context.close()

        asyncio.run(run())
        (event,) = bench.events("compaction")
        return event

    @staticmethod
    async def view(bench: Bench, context: Context, ask: Ask) -> View:
        budget = KEEP_RECENT.budget(200_000)
        return await context.view(bench.link(), budget, system=bench.system, tools=bench.tools, ask=ask)

    def test_a_ready_summary_is_used_without_calling_the_model(self, bench: Bench) -> None:
        ask = bench.scripted(SUMMARY)

        async def work(context: Context) -> None:
            assert (await self.view(bench, context, ask)).generation == 0
            await context.beside.prepared(60)
            bench.says("never touch main.py")
            results(bench, 15, 2_000, start=50)
            text = bench.text(await self.view(bench, context, ask))
            assert all(words in text for words in (bench.task, "never touch main.py", SUMMARY, "[64]"))

        event = self.job(bench, work)
        assert [(tier["name"], tier["ok"]) for tier in event.tiers] == [("prepared", True)]
        assert len(ask.seen) == 1

    def test_one_that_is_still_being_written_is_waited_for(self, bench: Bench) -> None:
        go, asked = asyncio.Event(), 0

        async def ask(messages: Sequence[Message], max_tokens: int) -> Reply:
            nonlocal asked
            asked += 1
            await go.wait()
            return bench.reply(SUMMARY)

        async def work(context: Context) -> None:
            await self.view(bench, context, ask)
            await asyncio.sleep(0)
            results(bench, 15, 2_000, start=50)
            asyncio.get_running_loop().call_later(0.05, go.set)
            await self.view(bench, context, ask)

        event = self.job(bench, work)
        assert [(tier["name"], tier["ok"]) for tier in event.tiers] == [("prepared", True)]
        assert asked == 1

    def test_one_that_does_not_come_is_waited_for_briefly_and_then_the_model_is_asked(self, bench: Bench) -> None:
        asked = 0

        async def ask(messages: Sequence[Message], max_tokens: int) -> Reply:
            nonlocal asked
            asked += 1
            if asked == 1:
                await asyncio.Event().wait()
            return bench.reply(SUMMARY)

        async def work(context: Context) -> None:
            await self.view(bench, context, ask)
            results(bench, 15, 2_000, start=50)
            await self.view(bench, context, ask)

        event = self.job(bench, work, replace(self.POLICY, prepared_wait_seconds=0.02))
        assert [(tier["name"], tier["ok"]) for tier in event.tiers] == [("prepared", False), ("summary", True)]

    def test_one_that_is_out_of_date_is_not_used(self, bench: Bench) -> None:
        ask = bench.scripted("an old one", SUMMARY)

        async def work(context: Context) -> None:
            await self.view(bench, context, ask)
            await context.beside.prepared(60)
            results(bench, 90, 2_000, start=50)
            assert SUMMARY in bench.text(await self.view(bench, context, ask))

        event = self.job(bench, work)
        assert [(tier["name"], tier["ok"]) for tier in event.tiers][:2] == [("prepared", False), ("summary", True)]

    def turns(self, bench: Bench, ask: Ask, number: int, tokens: int, *, window: int) -> Context:
        """*number* turns that each read a file of *tokens*; what is prepared gets time to end between them."""
        context = bench.open(policy=self.POLICY)
        budget = self.POLICY.budget(window)

        async def run() -> None:
            for n in range(number):
                view = await context.view(bench.link(), budget, system=bench.system, tools=bench.tools, ask=ask)
                usage = Usage(input=view.estimate * 5 // 4, output=10)
                bench.answers("ok", view=view, usage=usage)
                context.replied(bench.link(), view, usage)
                results(bench, 1, tokens, start=n)
                for _ in range(50):
                    await asyncio.sleep(0)
            await context.close()

        asyncio.run(run())
        return context

    def test_failures_beside_the_work_are_braked_as_those_of_the_model_whose_turn_it_is(
        self, bench: Bench
    ) -> None:
        bench.start()
        results(bench, 50, 2_000)
        ask = bench.scripted(RequestFailed("no", phase="connect", error_class="server"))
        self.turns(bench, ask, 10, 50, window=200_000)
        assert len(ask.seen) == 3
        assert [(event.cause, event.state) for event in bench.events("breaker")][-1] == ("server", "open")

    def test_a_summary_that_was_prepared_closes_the_breaker(self, bench: Bench) -> None:
        bench.start()
        results(bench, 50, 2_000)
        blip = RequestFailed("no", phase="connect", error_class="server")
        context = self.turns(bench, bench.scripted(blip, SUMMARY), 20, 2_000, window=200_000)
        (event,) = bench.events("compaction")
        assert [(tier["name"], tier["ok"]) for tier in event.tiers] == [("prepared", True)]
        assert context.state.breaker.causes == {}

    def test_without_background_nothing_is_prepared(self, bench: Bench) -> None:
        ask = bench.scripted(SUMMARY)

        async def work(context: Context) -> None:
            await self.view(bench, context, ask)
            assert ask.seen == []
            results(bench, 15, 2_000, start=50)
            await self.view(bench, context, ask)

        event = self.job(bench, work, KEEP_RECENT)
        assert [tier["name"] for tier in event.tiers] == ["summary"]
