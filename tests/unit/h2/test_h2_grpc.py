"""gRPC's framing: messages in any pieces, deadlines, and trailers as clients read them."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import CortadoError, InvalidArgument, Unsupported
from cortado.store.h2.grpc import (
    PREFIX_BYTES,
    Messages,
    MessageTooLarge,
    percent_encoded,
    prefixed,
    status_trailers,
    timeout_s,
)
from cortado.store.h2.header_blocks import block

BYTES_MAX = 1_000


@given(st.lists(st.binary(max_size=50), max_size=6), st.lists(st.integers(1, 20), min_size=1))
def test_messages_come_out_as_they_went_in_whatever_the_pieces(sent: list[bytes], pieces: list[int]) -> None:
    messages, encoded, found, at, turn = Messages(BYTES_MAX), b"".join(map(prefixed, sent)), [], 0, 0
    while at < len(encoded):
        size = pieces[turn % len(pieces)]
        messages.add(encoded[at : at + size])
        at, turn = at + size, turn + 1
        while (message := messages.next()) is not None:
            found.append(message)
    messages.is_last = True
    assert messages.next() is None
    assert found == sent


def test_a_message_that_comes_two_bytes_at_a_time_takes_little_more_than_its_bytes() -> None:
    encoded = prefixed(bytes(range(256)) * 1_000)
    messages = Messages(len(encoded))
    tracemalloc.start()
    try:
        for at in range(0, len(encoded), 2):
            messages.add(encoded[at : at + 2])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * len(encoded)
    assert messages.next() == encoded[PREFIX_BYTES:]


def test_it_says_how_much_is_missing() -> None:
    messages = Messages(BYTES_MAX)
    assert messages.missing == 5
    messages.add(b"\0\0")
    assert messages.missing == 3
    messages.add(b"\0\0\7ab")
    assert messages.missing == 5
    messages.add(b"cdefg")
    assert messages.missing == 0


@pytest.mark.parametrize(
    ("sent", "refused"),
    [
        (b"\x01\0\0\0\1x", Unsupported),
        (b"\x00\0\0\x03\xe9", MessageTooLarge),
        (b"\x00\xff\xff\xff\xff", MessageTooLarge),
        (b"\x00\0\0", InvalidArgument),
        (b"\x00\0\0\0\2x", InvalidArgument),
    ],
)
def test_what_is_no_message_is_refused(sent: bytes, refused: type[CortadoError]) -> None:
    messages = Messages(BYTES_MAX)
    messages.add(sent)
    messages.is_last = True
    with pytest.raises(refused):
        messages.next()


@pytest.mark.parametrize(
    ("said", "seconds"),
    [(b"1H", 3_600), (b"2M", 120), (b"3S", 3), (b"99999999m", 99_999.999), (b"5u", 5e-6), (b"0n", 0)],
)
def test_a_timeout(said: bytes, seconds: float) -> None:
    assert timeout_s(said) == pytest.approx(seconds)


@pytest.mark.parametrize("said", [b"", b"S", b"1", b"1s", b"-1S", b"123456789S", b" 1S", b"1.5S", b"1S\n", b"\xb2S"])
def test_what_is_no_timeout_is_refused(said: bytes) -> None:
    with pytest.raises(InvalidArgument):
        timeout_s(said)


@pytest.mark.parametrize(
    ("message", "encoded"),
    [
        ("as it is: ~!", b"as it is: ~!"),
        ("50%\r\n", b"50%25%0D%0A"),
        ("é\x7f\0", b"%C3%A9%7F%00"),
        ("a lone \ud800", b"a lone ?"),
    ],
)
def test_a_message_is_encoded_by_percents(message: str, encoded: bytes) -> None:
    assert percent_encoded(message) == encoded


def test_trailers() -> None:
    assert status_trailers(5, "no", [("a-bin", b"\xff\xfe"), ("b", "c")]) == block(
        [(b"grpc-status", b"5"), (b"grpc-message", b"no"), (b"a-bin", b"//4"), (b"b", b"c")]
    )
