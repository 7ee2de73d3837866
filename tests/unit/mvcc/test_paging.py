"""Page tokens go on with their own request, and with no other."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidPageToken
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.paging import TOKEN_BYTES_MAX, PageToken, decode_token, encode_token, request_shape

SHAPE = request_shape("kv", "ns", b"start", True, 0, None)
TOKEN = PageToken(Timestamp(1, 2, 3), b"resume", 17)


def test_a_token_comes_back_as_it_was() -> None:
    assert decode_token(encode_token(TOKEN, SHAPE), SHAPE) == TOKEN
    unlimited = PageToken(Timestamp(0, 0, 0), b"", None)
    assert decode_token(encode_token(unlimited, SHAPE), SHAPE) == unlimited


def test_the_bytes_of_a_token_are_pinned() -> None:
    assert encode_token(TOKEN, bytes(range(16))).hex() == (
        "01"  # version
        "000100000000000200000003"  # read timestamp
        "0000000000000011"  # remaining
        "000102030405060708090a0b0c0d0e0f"  # shape
        "726573756d65"  # resume
        "3559aff5c0e057dd"  # checksum
    )


def test_a_token_of_another_request_is_refused() -> None:
    with pytest.raises(InvalidPageToken, match="another request"):
        decode_token(encode_token(TOKEN, SHAPE), request_shape("kv", "ns", b"start", True, 1, None))


def test_every_flipped_bit_and_every_truncation_is_refused() -> None:
    encoded = encode_token(TOKEN, SHAPE)
    for i in range(len(encoded) * 8):
        damaged = bytearray(encoded)
        damaged[i // 8] ^= 1 << i % 8
        with pytest.raises(InvalidPageToken):
            decode_token(bytes(damaged), SHAPE)
    for length in range(len(encoded)):
        with pytest.raises(InvalidPageToken):
            decode_token(encoded[:length], SHAPE)
    with pytest.raises(InvalidPageToken):
        decode_token(b"x" * (TOKEN_BYTES_MAX + 1), SHAPE)


def test_a_forged_token_cannot_leave_its_request_s_range() -> None:
    for resume in (b"a", b"z"):
        with pytest.raises(InvalidPageToken):
            PageToken(Timestamp(0, 0, 1), resume).resume_within(b"b", b"y")
    assert PageToken(Timestamp(0, 0, 1), b"y").resume_within(b"b", b"y") == b"y"


def test_shapes_tell_boundaries_and_types_apart() -> None:
    shapes = [
        request_shape("ab"),
        request_shape("a", "b"),
        request_shape(b"ab"),
        request_shape("1"),
        request_shape(1),
        request_shape(True),
        request_shape("True"),
        request_shape(None),
        request_shape(""),
        request_shape(),
    ]
    assert len(set(shapes)) == len(shapes)
