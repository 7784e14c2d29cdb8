"""Whatever bytes come, the text can be stored, sent and shown, and holds no key."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.tools.cleaning import Cleaner, Redactor, clean

SECRET = "sk-Ab/9+x=7f3a9c1e5b2d8046"
NO_SECRETS = Redactor(())


def fed(redactor: Redactor, *pieces: bytes) -> str:
    cleaner = Cleaner(redactor)
    return "".join([cleaner.feed(piece) for piece in pieces]) + cleaner.finish()


@pytest.mark.parametrize(
    ("dirty", "text"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdata\x1b\\after", "after"),
        ("10%\r20%\r\n", "10%\n20%\n"),
        ("a\0b\x08c\x7f\x9b", "abc"),
        ("tab\tstays\n", "tab\tstays\n"),
        ("half \ud800", "half ?"),
    ],
)
def test_escapes_and_controls_are_gone(dirty: str, text: str) -> None:
    assert clean(dirty) == text


def test_an_escape_across_two_pieces_is_one() -> None:
    assert fed(NO_SECRETS, b"a\x1b[3", b"1mb\x1b]0;ti", b"tle\x07c\r", b"\nd") == "ab" + "c\nd"


def test_an_escape_that_never_ends_hides_nothing() -> None:
    text = fed(NO_SECRETS, b"\x1b]" + b"x" * 10_000, b"end")
    assert text == "x" * 10_000 + "end"


def test_a_character_across_two_pieces_is_one() -> None:
    euro = "€".encode()
    assert fed(NO_SECRETS, euro[:1], euro[1:] + b"\xff") == "€\ufffd"


@pytest.mark.parametrize(
    "shown",
    [
        SECRET,
        quote(SECRET, safe=""),
        *(base64.b64encode(b"u" * before + SECRET.encode() + b":x").decode() for before in range(4)),
        *(base64.urlsafe_b64encode(b"u" * before + SECRET.encode()).decode() for before in range(4)),
    ],
)
def test_a_key_is_redacted_in_every_spelling_and_across_pieces(shown: str) -> None:
    redactor = Redactor([SECRET])
    assert "[redacted]" in redactor.redacted(f"key={shown}!")
    for cut in range(1, len(shown)):
        text = fed(redactor, f"key={shown[:cut]}".encode(), f"{shown[cut:]}!".encode())
        assert text == redactor.redacted(f"key={shown}!")


def test_a_value_too_short_to_be_a_key_stays() -> None:
    assert Redactor(["test", ""]).redacted("a test") == "a test"


def test_nothing_is_held_back_without_need() -> None:
    assert Cleaner(Redactor([SECRET])).feed(b"listening on 8080\n") == "listening on 8080\n"


@given(st.lists(st.binary(max_size=20)))
def test_any_bytes_become_text_that_can_be_stored(pieces: list[bytes]) -> None:
    text = fed(NO_SECRETS, *pieces)
    text.encode("utf-8")
    assert not any(ord(char) < 32 and char not in "\n\t" for char in text)


@given(st.text(st.sampled_from("ab\x1b[]m0;\x07\\\r\n")), st.lists(st.integers(1, 5)))
def test_how_a_stream_is_cut_changes_nothing(text: str, cuts: list[int]) -> None:
    data, pieces = text.encode(), list[bytes]()
    for cut in cuts:
        pieces.append(data[:cut])
        data = data[cut:]
    assert fed(NO_SECRETS, *pieces, data) == fed(NO_SECRETS, text.encode())
