"""Events and lines come out the same, however the network cuts the bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentx.wires.readers import ChatReader
from agentx.wires.stream import Event, Events, Lines

STREAM = (
    b": hello\r\n\r\n"
    b"data: one\r\ndata: two\r\n\r\n"
    b"event: error\ndata:three\n\n"
    b"id: 7\nretry: 10\ndata: gr\xc3\xbc\xc3\x9fe \xf0\x9f\x8c\x99\n\n"
    b"\n\ndata\n\n"
    b'{"error": 1}\n\n'
    b"data: last"
)
EXPECTED = [
    Event("one\ntwo"),
    Event("three", "error"),
    Event("grüße 🌙"),
    Event('{"error": 1}'),
    Event("last"),
]


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


@given(st.lists(st.integers(min_value=0), max_size=40))
def test_events_do_not_depend_on_how_the_bytes_are_cut(cuts: list[int]) -> None:
    events, found = Events(), list[Event]()
    for piece in pieces(STREAM, cuts):
        found += events.feed(piece)
    assert [*found, *events.close()] == EXPECTED


@given(st.text("ab\r\n", max_size=60), st.lists(st.integers(min_value=0), max_size=20))
def test_lines_do_not_depend_on_how_the_bytes_are_cut(text: str, cuts: list[int]) -> None:
    data = text.encode()
    lines, found = Lines(), list[str]()
    for piece in pieces(data, cuts):
        found += lines.feed(piece)
    assert [*found, *lines.close()] == [line.decode() for line in data.splitlines()]


@given(
    st.lists(st.integers(min_value=0), max_size=30), st.sampled_from(["data: ", "\ufeffdata: ", "\n\ndata:", ""])
)
def test_a_reply_does_not_depend_on_how_the_bytes_are_cut(cuts: list[int], start: str) -> None:
    chunk = '{"choices": [{"delta": {"content": "h\u00fcllo"}, "finish_reason": "stop"}]}'
    reader = ChatReader()
    for piece in pieces((start + chunk + "\n\n").encode(), cuts):
        reader.feed(piece)
    reader.close()
    assert "".join(reader.gathered.text) == "hüllo"
    assert reader.streaming == bool(start)
