"""The optional filter for what commands print."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from agentx.tools.noise import Noise

if TYPE_CHECKING:
    from tests.tools.conftest import Bench

BAR = "printf 'begin\\n'; for n in 10 50 100; do printf '\\rload %s%%' $n; done; printf '\\nend\\n'"


def filtered(*pieces: str) -> str:
    noise = Noise()
    return "".join([*map(noise.feed, pieces), noise.flush()])


def test_of_a_progress_bar_the_last_state_is_shown_and_the_disk_has_all(bench: Bench) -> None:
    plain = bench.call("shell", command=BAR)
    bench.limits = replace(bench.limits, filter_noise=True)
    quiet = bench.call("shell", command=BAR)
    assert "load 10%\nload 50%\nload 100%\n" in plain.text
    assert plain.whole is None
    assert "begin\nload 100%\nend\n" in quiet.text
    assert "19 characters of progress and repetition left out; restore_tool_result" in quiet.text
    assert quiet.whole is not None
    assert quiet.whole.read_text() == "begin\n\nload 10%\nload 50%\nload 100%\nend\n"


def test_repeated_lines_are_counted_and_lines_of_one_bar_become_two() -> None:
    assert filtered("a\n" + "the same warning again\n" * 9 + "b\n") == (
        "a\nthe same warning again\n[the line before came 8 more times]\nb\n"
    )
    assert filtered("".join(f"fetch {n}/90 {'#' * n}\n" for n in range(1, 91)), "done\n") == (
        f"fetch 1/90 #\nfetch 90/90 {'#' * 90}\ndone\n"
    )


def test_what_is_no_noise_stays() -> None:
    text = "test 1 ok\ntest 2 ok\n\n\nx = 1\nx = 2\nwaiting for input: "
    assert filtered(text) == text
    assert Noise().feed("listening on 8080\n") == "listening on 8080\n"


@given(st.text(alphabet="ab1%#\r\n", max_size=80), st.lists(st.integers(0, 80), max_size=4))
def test_how_output_is_cut_into_pieces_does_not_matter(text: str, cuts: list[int]) -> None:
    text = text.replace("\r\n", "\n")
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    assert filtered(*pieces) == filtered(text)
