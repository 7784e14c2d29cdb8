"""Rests are absolute times in a file that all jobs share, and the file never stops a job."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentx.chain.health import FADE_SECONDS, Health, Rest, rest_seconds
from agentx.config.links import Link
from agentx.events import Event, Warned
from agentx.testing.clock import VirtualClock

LinkOf = Callable[..., Link]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def health(tmp_path: Path, clock: VirtualClock) -> Iterator[Health]:
    made = Health(tmp_path / "state" / "health.db", environ={}, now=clock.now)
    yield made
    made.close()


def test_a_rest_lasts_until_its_time(health: Health, clock: VirtualClock, link_of: LinkOf) -> None:
    link = link_of("a")
    now = clock.now()
    assert health.resting(link) is None
    health.rest(link, now + 60, "rate_limit", "slow down")
    expected = Rest(until=now + 60, since=now, error_class="rate_limit", message="slow down", failures=1)
    assert health.resting(link) == expected
    clock.advance(60)
    assert (health.resting(link), health.failures(link)) == (None, 1)


def test_without_a_time_rests_double_from_five_seconds_to_fifteen_minutes(
    health: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link, seconds = link_of("a"), list[float]()
    for _ in range(10):
        rest = health.rest(link, None, "server", "down")
        seconds.append(rest.until - clock.now())
        clock.advance(seconds[-1])
    assert seconds == [5, 10, 20, 40, 80, 160, 320, 640, 900, 900]
    assert rest_seconds("quota", 0) == 3600


def test_a_stated_time_that_is_too_short_does_not_let_a_failing_link_be_hammered(
    health: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link, seconds = link_of("a"), list[float]()
    for _ in range(4):
        seconds.append(health.rest(link, clock.now() + 1, "rate_limit", "x").until - clock.now())
        clock.advance(seconds[-1])
    assert seconds == [1, 5, 10, 20]


def test_a_failure_while_it_rests_neither_counts_again_nor_shortens_the_rest(
    health: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    """Two jobs asked it at the same time."""
    link = link_of("a")
    health.rest(link, clock.now() + 100, "rate_limit", "x")
    rest = health.rest(link, None, "rate_limit", "x")
    assert (rest.until - clock.now(), rest.failures) == (100, 1)


def test_success_forgets_everything_that_was_known_before_it_was_asked(
    health: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link = link_of("a")
    health.rest(link, None, "server", "x")
    clock.advance(5)
    health.succeeded(link, clock.now())
    assert (health.resting(link), health.failures(link)) == (None, 0)


@pytest.fixture
def other(tmp_path: Path, health: Health, clock: VirtualClock) -> Iterator[Health]:
    """The health of another job, on the same file."""
    made = Health(tmp_path / "state" / "health.db", environ={}, now=clock.now)
    yield made
    made.close()


def test_the_longer_rest_of_another_job_stays(
    health: Health, other: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link = link_of("a")
    other.rest(link, clock.now() + 3600, "quota", "an hour")
    clock.advance(1)
    health.rest(link, None, "server", "a blip")
    rest = other.resting(link)
    assert rest is not None
    assert (rest.until - clock.now(), rest.error_class, rest.message) == (3599, "quota", "an hour")
    health.rest(link, clock.now() + 7200, "quota", "two hours")
    rest = other.resting(link)
    assert rest is not None
    assert (rest.until - clock.now(), rest.message) == (7200, "two hours")


def test_what_another_job_writes_in_between_is_not_lost(tmp_path: Path, link_of: LinkOf) -> None:
    """The clock is read between reading and writing: at that very moment another job wants to write, too."""
    file, link, wrote = tmp_path / "health.db", link_of("a"), list[bool]()
    rival = sqlite3.connect(file, timeout=0, isolation_level=None)

    def now() -> float:
        try:
            rival.execute("insert or replace into rests values ('x', 1, 1, 'server', 'x', 1, null)")
            wrote.append(True)
        except sqlite3.OperationalError as error:
            wrote.append("locked" not in str(error))
        return 1000.0

    health = Health(file, environ={}, now=now)
    health.rest(link, None, "server", "x")
    health.out(link, "auth", "x")
    health.close()
    rival.close()
    assert wrote == [False, False]


def test_out_is_not_turned_into_a_short_rest(
    health: Health, other: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link = link_of("a")
    other.out(link, "auth", "the key is refused")
    clock.advance(1)
    assert health.rest(link, None, "server", "a blip").out
    rest = other.resting(link)
    assert rest is not None
    assert (rest.out, rest.until - clock.now()) == (True, 3599)


def test_a_late_answer_does_not_end_a_rest_that_another_job_has_learned_since(
    health: Health, other: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link, sent = link_of("a"), clock.now()
    clock.advance(10)
    other.rest(link, clock.now() + 3600, "rate_limit", "an hour")
    clock.advance(10)
    health.succeeded(link, sent)
    assert other.resting(link) is not None
    health.succeeded(link, clock.now())
    assert other.resting(link) is None


def test_rests_belong_to_endpoint_model_and_key(health: Health, link_of: LinkOf) -> None:
    health.rest(link_of("a", key="ONE"), None, "server", "x")
    assert health.resting(link_of("a", key="TWO")) is None
    assert health.resting(link_of("b", key="ONE")) is None


def test_other_processes_and_restarts_see_the_same_time(
    tmp_path: Path, clock: VirtualClock, link_of: LinkOf
) -> None:
    one = Health(tmp_path / "health.db", environ={}, now=clock.now)
    two = Health(tmp_path / "health.db", environ={}, now=clock.now)
    one.rest(link_of("a"), clock.now() + 60, "quota", "x")
    one.close()
    seen = two.resting(link_of("a"))
    two.close()
    assert seen is not None
    assert seen.until == clock.now() + 60


def test_a_link_that_is_out_comes_back_when_its_key_changes(
    tmp_path: Path, clock: VirtualClock, link_of: LinkOf
) -> None:
    environ = {"KEY": "old"}
    health = Health(tmp_path / "health.db", environ=environ, now=clock.now)
    link = link_of("a", key="KEY")
    assert health.out(link, "auth", "refused").out
    assert health.resting(link) is not None
    environ["KEY"] = "new"
    assert health.resting(link) is None
    health.close()
    assert b"old" not in (tmp_path / "health.db").read_bytes()


@pytest.fixture
def keyed(tmp_path: Path, clock: VirtualClock) -> Iterator[Health]:
    made = Health(tmp_path / "keyed.db", environ={"KEY": "old", "SAME": "old", "OTHER": "new"}, now=clock.now)
    yield made
    made.close()


def test_a_new_key_has_no_past_and_the_old_one_keeps_its_own(
    tmp_path: Path, clock: VirtualClock, link_of: LinkOf
) -> None:
    environ = {"KEY": "old"}
    health = Health(tmp_path / "health.db", environ=environ, now=clock.now)
    link = link_of("a", key="KEY")
    health.rest(link, clock.now() + 900, "rate_limit", "slow down")
    health.rest(link, None, "quota", "no money", reach="key")
    environ["KEY"] = "new"
    assert (health.resting(link), health.failures(link)) == (None, 0)
    environ["KEY"] = "old"
    rest = health.resting(link)
    assert rest is not None
    assert rest.error_class == "quota"
    health.close()


def test_what_concerns_a_key_holds_for_all_models_with_it(
    keyed: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link = link_of("a", key="KEY")
    sibling = replace(link_of("a", key="SAME"), model="m2", name="a/m2")
    others = [link_of("a", key="OTHER"), link_of("b", key="KEY")]
    keyed.out(link, "auth", "refused", reach="key")
    seen = keyed.resting(sibling)
    assert seen is not None
    assert (seen.out, seen.error_class, seen.reach) == (True, "auth", "key")
    assert [keyed.resting(other) for other in others] == [None, None]
    clock.advance(1)
    keyed.succeeded(sibling, clock.now())
    assert keyed.resting(link) is None


def test_without_a_key_a_refusal_holds_for_one_model(keyed: Health, link_of: LinkOf) -> None:
    link = link_of("a", self_hosted=True)
    keyed.rest(link, None, "quota", "the cloud's", reach="key")
    assert keyed.resting(link) is not None
    assert keyed.resting(replace(link, model="m2")) is None


def test_an_empty_purse_leaves_the_free_models(keyed: Health, link_of: LinkOf) -> None:
    link = link_of("a", key="KEY")
    keyed.rest(link, None, "quota", "no money", reach="key")
    assert keyed.resting(replace(link, model="m2")) is not None
    assert keyed.resting(replace(link, model="m2:free")) is None


def test_what_concerns_an_address_holds_for_all_that_stands_there(keyed: Health, link_of: LinkOf) -> None:
    link = link_of("a", key="KEY")
    keyed.rest(link, None, "network", "refused", reach="address")
    other_path = replace(link.provider, base_url="https://a.example/other")
    other_port = replace(link.provider, base_url="https://a.example:8443/v1")
    assert keyed.resting(replace(link, provider=other_path, api_key_env="OTHER", model="m2")) is not None
    assert keyed.resting(replace(link, provider=other_port)) is None
    keyed.forget(replace(link, model="m3"))
    assert keyed.resting(link) is None


def test_one_job_asks_for_all_that_share_a_rest(
    health: Health, other: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    one, two = link_of("a"), replace(link_of("a"), model="m2")
    health.rest(one, None, "network", "refused", reach="address")
    clock.advance(5)
    assert (health.claim(one), other.claim(two)) == (True, False)
    health.release(one)
    assert other.claim(two)


def test_old_failures_are_forgotten(health: Health, clock: VirtualClock, link_of: LinkOf) -> None:
    link = link_of("a")
    for _ in range(3):
        health.rest(link, None, "server", "x")
        clock.advance(20)
    clock.advance(FADE_SECONDS - 1)
    assert health.failures(link) == 3
    clock.advance(2)
    assert (health.failures(link), health.last(link), health.claim(link)) == (0, None, True)
    assert health.rest(link, None, "server", "x").until - clock.now() == 5


def test_after_a_rest_one_job_asks_and_the_others_wait_for_it(
    health: Health, other: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link = link_of("a")
    assert (health.claim(link), other.claim(link)) == (True, True), "a link that is well may be asked by all"
    health.rest(link, clock.now() + 10, "rate_limit", "x")
    assert other.claim(link) is False
    clock.advance(10)
    assert (health.claim(link), other.claim(link)) == (True, False)
    assert (health.resting(link) is None, other.resting(link) is None) == (True, False)
    health.succeeded(link, clock.now())
    health.release(link)
    assert (other.resting(link), other.claim(link)) == (None, True)


def test_the_failure_of_the_one_that_asked_counts_and_rests_as_ever(
    health: Health, other: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link, seconds = link_of("a"), list[float]()
    for _ in range(3):
        assert health.claim(link)
        seconds.append(health.rest(link, None, "server", "x").until - clock.now())
        health.release(link)
        seen = other.resting(link)
        assert seen is not None
        assert seen.until - clock.now() == seconds[-1]
        clock.advance(seconds[-1])
    assert seconds == [5, 10, 20]


def test_one_that_asked_and_learned_nothing_leaves_the_link_to_the_others(
    health: Health, other: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link = link_of("a")
    health.rest(link, None, "server", "x")
    clock.advance(5)
    assert health.claim(link)
    health.release(link)
    assert (other.claim(link), health.claim(link), other.failures(link)) == (True, False, 1)


def test_one_that_was_killed_while_it_asked_is_waited_for_no_longer_than_a_minute(
    health: Health, other: Health, clock: VirtualClock, link_of: LinkOf
) -> None:
    link = link_of("a")
    health.rest(link, None, "server", "x")
    clock.advance(5)
    assert (health.claim(link), other.claim(link)) == (True, False)
    clock.advance(60)
    assert other.claim(link)


def test_out_is_not_for_ever(health: Health, clock: VirtualClock, link_of: LinkOf) -> None:
    hosted, own = link_of("a"), link_of("b", self_hosted=True)
    health.out(hosted, "not_found", "x")
    health.out(own, "not_found", "x")
    clock.advance(301)
    assert (health.resting(hosted) is None, health.resting(own) is None) == (False, True)
    clock.advance(3600)
    assert health.resting(hosted) is None


@pytest.mark.parametrize("trouble", ["garbage", "folder", "no folder"])
def test_a_file_that_cannot_be_used_is_said_once_and_stops_nobody(
    tmp_path: Path, clock: VirtualClock, link_of: LinkOf, trouble: str
) -> None:
    file = tmp_path / "health.db"
    if trouble == "garbage":
        file.write_text("this is no database, and it is long enough to be taken for one" * 50)
    elif trouble == "folder":
        file.mkdir()
    else:
        (tmp_path / "x").write_text("a file where a folder should be")
        file = tmp_path / "x" / "health.db"
    told: list[Event] = []
    health = Health(file, environ={}, now=clock.now, tell=told.append)
    health.rest(link_of("a"), None, "server", "x")
    assert health.resting(link_of("a")) is not None
    health.close()
    (warned,) = told
    assert isinstance(warned, Warned)
    assert warned.message.startswith(f"{file}: cannot be used")


def test_a_file_that_breaks_while_it_is_used_is_replaced_by_memory(
    tmp_path: Path, clock: VirtualClock, link_of: LinkOf
) -> None:
    told: list[Event] = []
    health = Health(tmp_path / "health.db", environ={}, now=clock.now, tell=told.append)
    other = sqlite3.connect(tmp_path / "health.db")
    other.execute("drop table rests")
    other.commit()
    other.close()
    health.rest(link_of("a"), None, "server", "x")
    assert health.resting(link_of("a")) is not None
    health.close()
    assert len(told) == 1


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    Health(tmp_path / "health.db", environ={}).close()
    assert (tmp_path / "health.db").stat().st_mode & 0o777 == 0o600


SCRIPT = """
import sys
from pathlib import Path
from agentx.chain.health import Health
from agentx.config.links import Link, Provider

told = []
health = Health(Path(sys.argv[1]), environ={}, tell=told.append)
for number in range(20):
    link = Link(provider=Provider(name="p", card="p", wire="openai"), model=f"{sys.argv[2]}-{number}", name="x")
    health.rest(link, None, "server", "x")
    assert health.resting(link)
health.close()
assert not told, told
"""


def test_ten_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "health.db"
    processes = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, str(file), str(number)], stderr=subprocess.PIPE, text=True)
        for number in range(10)
    ]
    errors = [process.communicate()[1] for process in processes]
    assert errors == [""] * 10
    db = sqlite3.connect(file)
    assert db.execute("select count(*) from rests").fetchone() == (200,)
    db.close()
