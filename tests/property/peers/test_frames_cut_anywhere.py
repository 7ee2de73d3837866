"""However the network cuts a stream, the frames that come out are those that went in; made-up bytes are refused."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from cortado.store.peers.frames import PREAMBLE, BadFrame, Frame, FrameBuffer, Kind, encode_frame

ANY = dict.fromkeys(Kind, 1 << 16)
FRAMES = st.lists(st.builds(Frame, st.sampled_from(Kind), st.binary(max_size=300)), max_size=8)


def drained(buffer: FrameBuffer) -> list[Frame]:
    found = []
    while (frame := buffer.next(ANY)) is not None:
        found.append(frame)
    return found


@given(frames=FRAMES, cuts=st.lists(st.integers(min_value=1, max_value=400), max_size=40))
def test_frames_come_out_as_they_went_in(frames: list[Frame], cuts: list[int]) -> None:
    stream = PREAMBLE + b"".join(encode_frame(*each) for each in frames)
    buffer, found = FrameBuffer(), []
    for cut in [*cuts, len(stream)]:
        piece, stream = stream[:cut], stream[cut:]
        if piece:
            buffer.feed(piece)
        found += drained(buffer)
    assert found == frames
    assert len(buffer) == 0


@given(
    begun=st.sampled_from([b"", PREAMBLE, PREAMBLE + encode_frame(Kind.HELLO, b"x")]),
    pieces=st.lists(st.binary(min_size=1, max_size=200), max_size=10),
)
def test_made_up_bytes_end_in_a_refusal_or_wait_for_more(begun: bytes, pieces: list[bytes]) -> None:
    buffer = FrameBuffer()
    with suppress(BadFrame):
        for piece in [begun, *pieces]:
            if piece:
                buffer.feed(piece)
            drained(buffer)
