"""Byte strings end to end: the bytes that come out are those that went in, and contradictions are told."""

from __future__ import annotations

import pytest

from cortado.store.keys.packing import cut, cut_equal, join


@pytest.mark.parametrize(
    "pieces", [(), (b"",), (b"ab", b"", b"c"), (b"",) * 3, (b"ab",) * 2_001, tuple(b"%d" % i for i in range(2_000))]
)
def test_what_was_joined_is_cut_again(pieces: tuple[bytes, ...]) -> None:
    joined, lengths = join(pieces)
    assert joined == b"".join(pieces)
    assert len(lengths) == 4 * len(pieces)
    assert cut(joined, lengths) == pieces


def test_lengths_are_little_endian() -> None:
    assert join([b"ab", b"", b"c"]) == (b"abc", bytes.fromhex("02000000 00000000 01000000"))


@pytest.mark.parametrize(
    ("joined", "lengths", "problem"),
    [
        (b"abc", b"\3\0\0", "3 bytes of lengths are not a multiple of 4"),
        (b"abc", b"\2\0\0\0", "there are 3 bytes, and the lengths say 2"),
        (b"", b"\xff\xff\xff\xff", "there are 0 bytes, and the lengths say 4294967295"),
        (b"a", b"", "there are 1 bytes, and the lengths say 0"),
        (b"abcd", b"\3\0\0\0" * 2, "there are 4 bytes, and the lengths say 6"),
    ],
)
def test_lengths_that_contradict_the_bytes_are_told(joined: bytes, lengths: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        cut(joined, lengths)


def test_pieces_of_one_size_come_out_even() -> None:
    assert cut_equal(b"", 3) == ()
    assert cut_equal(b"abcdef", 3) == (b"abc", b"def")
    with pytest.raises(ValueError, match="5 bytes are not a multiple of 3"):
        cut_equal(b"abcde", 3)
