"""Header blocks: the examples of RFC 7541 (appendix C), blocks that are looked up, and ours as the library has them."""

from __future__ import annotations

import pytest
from hpack import Decoder
from hypothesis import given
from hypothesis import strategies as st

from cortado.store.h2.header_blocks import HeaderBlocks, block, integer
from cortado.store.h2.limits import ConnectionFault, ErrorCode, StreamFault
from support.h2 import REQUEST

BYTES_MAX = 32 << 10

# C.3 and C.4: three requests on one connection, without Huffman's code and with it.
EXAMPLES = {
    "literally": (
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ),
    "by Huffman's code": (
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ),
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_the_examples_of_the_rfc(example: tuple[str, str, str]) -> None:
    blocks = HeaderBlocks(BYTES_MAX)
    first, second, third = (blocks.fields(bytes.fromhex(each)) for each in example)
    authority = (b":authority", b"www.example.com")
    assert first == [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), authority]
    assert second == [*first, (b"cache-control", b"no-cache")]
    assert third == [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":path", b"/index.html"),
        authority,
        (b"custom-key", b"custom-value"),
    ]


def test_a_block_that_was_seen_is_looked_up_until_the_table_changes() -> None:
    blocks = HeaderBlocks(BYTES_MAX)
    plain = block(REQUEST)
    first = blocks.request(plain)
    assert blocks.knows(plain)
    assert blocks.request(plain) is first
    adds = plain + b"\x40\x01a\x01b"
    assert blocks.request(adds).metadata == (("a", "b"),)
    assert not blocks.knows(plain), "an index in it would mean another field now"
    assert not blocks.knows(adds), "it adds to the table each time"
    refers = plain + b"\xbe"
    assert blocks.request(refers).metadata == (("a", "b"),)
    assert blocks.knows(refers)
    blocks.fields(b"\x40\x01c\x01d")
    assert blocks.request(refers).metadata == (("c", "d"),)


@pytest.mark.parametrize(
    "changes", [b"\x40\x01c\x01d", b"\x20", b"\x3f\x01", b"\x3f\x09", b"\x40\x01a" + integer(5_000, 7) + bytes(5_000)]
)
def test_whatever_changes_the_table_is_found(changes: bytes) -> None:
    blocks = HeaderBlocks(BYTES_MAX)
    blocks.fields(b"\x40\x01a\x01b")
    known = block(REQUEST) + b"\xbe"
    blocks.request(known)
    blocks.fields(changes)
    assert not blocks.knows(known)


def test_a_malformed_request_is_remembered_by_the_table_and_by_nothing_else() -> None:
    blocks = HeaderBlocks(BYTES_MAX)
    with pytest.raises(StreamFault):
        blocks.request(b"\x40\x01a\x01b")
    assert blocks.request(block(REQUEST) + b"\xbe").metadata == (("a", "b"),)


def test_few_blocks_and_small_ones_are_remembered() -> None:
    blocks = HeaderBlocks(BYTES_MAX)
    large = block([*REQUEST, (b"a", bytes(b"x" * 2_000))])
    blocks.request(large)
    assert not blocks.knows(large)
    for number in range(100):
        blocks.request(block([*REQUEST, (b"a", b"%d" % number)]))
    assert sum(blocks.knows(block([*REQUEST, (b"a", b"%d" % number)])) for number in range(100)) == 64


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\x40\x01a" + integer(30_000, 7) + bytes(30_000), ErrorCode.COMPRESSION_ERROR),
        (b"\x00\x01a" + integer(40_000, 7) + b"x" * 40_000, ErrorCode.ENHANCE_YOUR_CALM),
        (b"\x40\x01a" + integer(3_000, 7) + b"x" * 3_000 + b"\xbe" * 12, ErrorCode.ENHANCE_YOUR_CALM),
    ],
)
def test_a_list_has_a_bound(sent: bytes, code: ErrorCode) -> None:
    if code is ErrorCode.COMPRESSION_ERROR:
        sent = sent[:-1]
    with pytest.raises(ConnectionFault) as refused:
        HeaderBlocks(BYTES_MAX).fields(sent)
    assert refused.value.code is code


NAMES = st.binary(min_size=1, max_size=300)


@given(st.lists(st.tuples(NAMES, st.binary(max_size=3_000)), max_size=6))
def test_what_we_write_is_what_the_library_reads(fields: list[tuple[bytes, bytes]]) -> None:
    assert Decoder(1 << 20).decode(block(fields), raw=True) == fields
