"""Events out of bytes, however TCP cuts them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapters.http.sse import Event, read_events


def data_of(*pieces: bytes, complete: bool = True) -> list[bytes]:
    timed = [(float(i), piece) for i, piece in enumerate(pieces)]
    return [event.data for event in read_events(timed, complete=complete)]


def test_one_event_in_one_piece() -> None:
    assert read_events([(1.5, b"data: a\n\n")], complete=True) == [Event(1.5, "", b"a")]


def test_an_events_time_is_that_of_its_last_byte() -> None:
    #        t=1            t=2      t=3          t=4
    pieces = [(1.0, b"dat"), (2.0, b"a: x\n"), (3.0, b"\nda"), (4.0, b"ta: y\n\n")]
    assert read_events(pieces, complete=True) == [Event(3.0, "", b"x"), Event(4.0, "", b"y")]


def test_events_that_came_together_have_one_time() -> None:
    assert read_events([(2.0, b"data: a\n\ndata: b\n\n")], complete=True) == [
        Event(2.0, "", b"a"),
        Event(2.0, "", b"b"),
    ]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b": keep-alive\n\ndata: a\n\n", [b"a"]),  # comments
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),  # the space is optional
        (b"data:  a\n\n", [b" a"]),  # only one is dropped
        (b"data: a\ndata: b\n\n", [b"a\nb"]),  # several lines are one event
        (b"id: 7\nretry: 10\ndata: a\n\n", [b"a"]),
        (b"id: 7\n\ndata: a\n\n", [b"a"]),  # an event without data is none
        (b"\n\n\ndata: a\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),  # byte-order mark
        (b"data\n\n", [b""]),  # a field without a colon has an empty value
        ("data: 你好\n\n".encode(), ["你好".encode()]),
    ],
)
def test_what_the_standard_asks(stream: bytes, expected: list[bytes]) -> None:
    assert data_of(stream) == expected


def test_an_error_event_keeps_its_type() -> None:
    events = read_events([(0.0, b"event: error\ndata: x\n\ndata: y\n\n")], complete=True)
    assert [(event.type, event.data) for event in events] == [("error", b"x"), ("", b"y")]


def test_a_last_event_without_its_blank_line_counts_only_if_the_body_was_whole() -> None:
    assert data_of(b"data: a\n\ndata: [DONE]", complete=True) == [b"a", b"[DONE]"]
    assert data_of(b"data: a\n\ndata: [DO", complete=False) == [b"a"]
    assert data_of(b"data: a\n\ndata: b\n", complete=False) == [b"a"]


lines = st.sampled_from(
    [b"data: a", b"data: bc", b"data:", b": note", b"event: error", b"id: 1", b""]
)
streams = st.tuples(
    st.booleans(),
    st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=12),
).map(
    lambda bom_and: (
        (b"\xef\xbb\xbf" if bom_and[0] else b"") + b"".join(a + b for a, b in bom_and[1])
    )
)


@given(streams, st.lists(st.integers(0, 80), max_size=10), st.booleans())
def test_any_cut_gives_the_same_events(stream: bytes, cuts: list[int], complete: bool) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert data_of(*pieces, complete=complete) == data_of(stream, complete=complete)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.data())
def test_times_never_go_back_and_are_arrival_times(sizes: list[int], data: st.DataObject) -> None:
    stream = b"".join(b"data: " + b"x" * size + b"\n\n" for size in sizes)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    edges = [0, *sorted(cuts), len(stream)]
    pieces = [(float(i), stream[a:b]) for i, (a, b) in enumerate(itertools.pairwise(edges))]
    events = read_events(pieces, complete=True)
    position = 0
    for event, size in zip(events, sizes, strict=True):
        position += size + 8
        # The piece in which the event's last byte, at position − 1, arrived.
        holds = next(i for i, (a, b) in enumerate(itertools.pairwise(edges)) if a < position <= b)
        assert event.at_s == holds
