"""For any bytes, a connection names the fault by its protocol, and holds a bounded amount of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.store.h2 import frames
from cortado.store.h2.connection import Connection
from cortado.store.h2.events import Ended, Opened
from cortado.store.h2.header_blocks import block
from cortado.store.h2.limits import ErrorCode
from support.h2 import HELLO, REQUEST, Clock
from support.h2_fuzz import DEEDS, FLAGS, IDS, LIMITS, NAMES, VALUES, drive

FIELDS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=4)
BLOCKS = st.one_of(
    st.builds(lambda more: block((*REQUEST, *more)), FIELDS),
    st.builds(block, FIELDS),
    st.builds(lambda more: block(REQUEST) + more, st.binary(max_size=12)),
    st.binary(max_size=40),
)
STREAMS = st.sampled_from(IDS)
FRAMES = st.one_of(
    st.builds(frames.frame, st.just(frames.HEADERS), st.sampled_from(FLAGS), STREAMS, BLOCKS),
    st.builds(frames.frame, st.just(frames.CONTINUATION), st.sampled_from(FLAGS), STREAMS, BLOCKS),
    st.builds(frames.frame, st.just(frames.DATA), st.sampled_from(FLAGS), STREAMS, st.binary(max_size=300)),
    st.builds(frames.window_update, STREAMS, st.sampled_from([0, 1, 1_000, (1 << 31) - 1])),
    st.builds(lambda name, value: frames.settings([(name, value)]), st.integers(0, 8), st.integers(0, (1 << 32) - 1)),
    st.builds(frames.frame, st.integers(0, 12), st.sampled_from(FLAGS), STREAMS, st.binary(max_size=20)),
    st.builds(frames.rst_stream, STREAMS, st.sampled_from(ErrorCode)),
)


@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_bytes(sent: bytes, piece: int) -> None:
    drive(sent, [], piece)
    drive(HELLO + sent, [], piece)


@given(st.lists(FRAMES, max_size=25), st.lists(st.tuples(st.sampled_from(DEEDS), STREAMS)), st.integers(5, 200))
@settings(max_examples=300)
def test_any_frames_and_any_answers(sent: list[bytes], deeds: list[tuple[str, int]], piece: int) -> None:
    drive(HELLO + b"".join(sent), deeds, piece)


@given(st.lists(FRAMES, max_size=15))
def test_any_frames_mean_the_same_in_any_pieces(sent: list[bytes]) -> None:
    whole = HELLO + b"".join(sent)
    assert drive(whole, [], 1) == drive(whole, [], len(whole))


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_any_header_blocks(blocks: list[bytes]) -> None:
    made = Connection(LIMITS, Clock())
    made.feed(HELLO + b"".join(frames.frame(frames.HEADERS, 5, 2 * n + 1, each) for n, each in enumerate(blocks)))
    told = made.advance()
    while made.has_more:
        told += made.advance()
    assert all(isinstance(each, (Opened, Ended)) for each in told)
