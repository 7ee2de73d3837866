"""Whatever bytes come, a connection says what is wrong by its protocol, and holds a bounded amount of them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.store.h2 import frames
from cortado.store.h2.connection import Connection
from cortado.store.h2.events import Data, Ended, Opened
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD
from cortado.store.h2.header_blocks import block
from cortado.store.h2.limits import ErrorCode, H2Limits, Rate
from support.h2 import HELLO, REQUEST, Clock, shown

LIMITS = replace(
    H2Limits(),
    frame_bytes=400,
    header_list_bytes_max=600,
    header_block_bytes=300,
    streams=4,
    stream_window=600,
    connection_window=1_500,
    output_bytes=3_000,
    resets=Rate(20, 1),
    slice_cost=8,
)

IDS = st.sampled_from([0, 1, 1, 3, 5, 7, 2, 9, 101])
FLAGS = st.sampled_from([0, 0x1, 0x4, 0x5, 0x8, 0x20, 0x2D, 0xFF])
FIELDS = st.lists(
    st.tuples(
        st.sampled_from([b":path", b":method", b"a", b"te", b"content-length", b"A", b""]),
        st.sampled_from([b"", b"0", b"7", b"trailers", b"/x", b" b", b"\n", b"x" * 90]),
    ),
    max_size=4,
)
BLOCKS = st.one_of(
    st.builds(lambda more: block((*REQUEST, *more)), FIELDS),
    st.builds(block, FIELDS),
    st.builds(lambda more: block(REQUEST) + more, st.binary(max_size=12)),
    st.binary(max_size=40),
)
FRAMES = st.one_of(
    st.builds(frames.frame, st.just(frames.HEADERS), FLAGS, IDS, BLOCKS),
    st.builds(frames.frame, st.just(frames.CONTINUATION), FLAGS, IDS, BLOCKS),
    st.builds(frames.frame, st.just(frames.DATA), FLAGS, IDS, st.binary(max_size=300)),
    st.builds(frames.window_update, IDS, st.sampled_from([0, 1, 1_000, (1 << 31) - 1])),
    st.builds(lambda name, value: frames.settings([(name, value)]), st.integers(0, 8), st.integers(0, (1 << 32) - 1)),
    st.builds(frames.frame, st.integers(0, 12), FLAGS, IDS, st.binary(max_size=20)),
    st.builds(frames.rst_stream, IDS, st.sampled_from(ErrorCode)),
)
DEEDS = st.lists(
    st.tuples(st.sampled_from(["head", "data", "end", "reply", "reset", "consume", "expect", "take"]), IDS), max_size=20
)


def _do(made: Connection, deed: str, stream_id: int, held: dict[int, int]) -> None:
    match deed:
        case "head":
            made.send_head(stream_id, RESPONSE_HEAD)
        case "data":
            made.send_data(stream_id, bytes(200))
        case "end":
            made.send_end(stream_id, OK_TRAILERS)
        case "reply":
            made.send_reply(stream_id, RESPONSE_HEAD, bytes(50), OK_TRAILERS)
        case "reset":
            made.reset(stream_id, ErrorCode.CANCEL)
        case "consume":
            made.consumed(stream_id, held.pop(stream_id, 0))
        case "expect":
            made.expect(stream_id, 100)
        case "take":
            made.taken()


def drive(sent: bytes, deeds: list[tuple[str, int]], piece: int) -> list[str]:
    """Send in pieces, and do a deed between two of them. Returns what the connection told."""
    made, told, held = Connection(LIMITS, Clock()), [], dict[int, int]()
    ended_by_us: set[int] = set()
    for place, at in enumerate(range(0, len(sent), piece)):
        made.feed(sent[at : at + piece])
        for _ in range(1_000):
            for each in made.advance():
                told.append(shown(each))
                assert not (told[:-1] and told[-2].startswith("ended")), "nothing comes behind the end"
                if isinstance(each, Data):
                    held[each.stream_id] = held.get(each.stream_id, 0) + len(each.data)
                if isinstance(each, Opened):
                    assert each.stream_id % 2
            if not made.has_more:
                break
        assert not made.has_more, "each call gets on"
        if place < len(deeds):
            deed, stream_id = deeds[place]
            # An answer ends once.
            if stream_id not in ended_by_us:
                _do(made, deed, stream_id, held)
            if deed in ("end", "reply", "reset"):
                ended_by_us.add(stream_id)
        assert len(made._streams) <= LIMITS.streams
        assert sum(map(len, made._out)) <= LIMITS.output_bytes + 2_000
        assert made._reader.held <= max(piece, LIMITS.frame_bytes + frames.HEAD_BYTES)
        assert sum(map(len, made._block)) <= LIMITS.header_block_bytes or made.is_over
        assert made._recv_window >= 0 or made.is_over
    assert made.is_over == bool(told and told[-1].startswith("ended"))
    made.fail(ErrorCode.NO_ERROR, "")
    return told


@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_bytes(sent: bytes, piece: int) -> None:
    drive(sent, [], piece)
    drive(HELLO + sent, [], piece)


@given(st.lists(FRAMES, max_size=25), DEEDS, st.integers(5, 200))
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
