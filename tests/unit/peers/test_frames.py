"""Bytes of a stream that are no valid frames are found by their first bytes, and named."""

from __future__ import annotations

import struct

import pytest

from cortado.store.peers.frames import HEADER_BYTES, PREAMBLE, BadFrame, Frame, FrameBuffer, Kind, encode_frame

ANY = dict.fromkeys(Kind, 1 << 20)


def buffer_with(*pieces: bytes, is_greeted: bool = True) -> FrameBuffer:
    buffer = FrameBuffer()
    if is_greeted:
        buffer.feed(PREAMBLE)
    for piece in pieces:
        buffer.feed(piece)
    return buffer


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03", "speaks TLS, and this connection has none"),
        (b"\x15\x03\x03\x00\x02\x02\x28\x00", "speaks TLS, and this connection has none"),
        (b"PRI * HTTP/2.0\r\n\r\nSM", "speaks gRPC"),
        (bytes.fromhex("0000120400000000000003"), "speaks gRPC"),
        (b"GET /metrics HTTP/1.1\r\n", "speaks HTTP"),
        (b"HTTP/1.1 400 Bad Request\r\n", "speaks HTTP"),
        (b"SSH-2.0-OpenSSH", "speaks SSH"),
        (b"cortado\x07abc", r"speaks version 7 of the peers' frames \(this node version 1\)"),
        (bytes(20), r"speaks something else \(its first bytes are 000000000000000000\)"),
    ],
)
def test_who_speaks_something_else_is_named(first: bytes, said: str) -> None:
    with pytest.raises(BadFrame, match=f"^{said}, not the peers' protocol$"):
        buffer_with(first, is_greeted=False).next(ANY)


def test_a_frame_of_another_kind_or_too_long_is_refused_by_its_header_alone() -> None:
    expected = {Kind.HELLO: 100, Kind.JOIN: 100, Kind.ERROR: 100}
    for header, said in (
        (struct.pack("<IBI", 5, Kind.BATCH, 0), "sent a frame BATCH where HELLO or JOIN was due"),
        (struct.pack("<IBI", 5, 77, 0), "sent a frame of the unknown kind 77 where HELLO or JOIN was due"),
        (struct.pack("<IBI", 101, Kind.HELLO, 0), "sent a frame HELLO of 101 bytes, and it may have 100"),
        (struct.pack("<IBI", (1 << 32) - 1, Kind.JOIN, 0), "of 4294967295 bytes, and it may have 100"),
    ):
        assert buffer_with(header[:-1]).next(expected) is None
        with pytest.raises(BadFrame, match=said):
            buffer_with(header).next(expected)


@pytest.mark.parametrize("place", range(4, HEADER_BYTES + 5))
def test_a_frame_that_changed_on_its_way_is_refused(place: int) -> None:
    sent = encode_frame(Kind.JOIN, b"hello")
    changed = sent[:place] + bytes([sent[place] ^ 1]) + sent[place + 1 :]
    with pytest.raises(BadFrame, match=r"checksum does not match|of the unknown kind|a frame READ_RANGE|a frame VOUCH"):
        buffer_with(changed).next(ANY)


def test_what_may_come_next_is_asked_frame_by_frame() -> None:
    """Bytes behind a Hello are not looked at before the Hello was accepted."""
    buffer = buffer_with(encode_frame(Kind.HELLO, b"h") + encode_frame(Kind.BATCH, b"b"))
    assert buffer.next({Kind.HELLO: 1}) == Frame(Kind.HELLO, b"h")
    assert buffer.next({Kind.BATCH: 1}) == Frame(Kind.BATCH, b"b")
    assert buffer.next({}) is None
    assert len(buffer) == 0
