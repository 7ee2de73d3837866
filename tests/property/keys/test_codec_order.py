"""Byte order is value order: the promise that every scan, range and index rests on."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import EPOCH_MAX, LOGICAL_MAX, WALL_MS_MAX, Timestamp
from cortado.store.keys.codec import INVERTED, decode_parts, encode_part, encode_parts, successor_of_prefix
from cortado.store.keys.types import KeyPart, KeyType, KeyValue
from support.key_values import VALUES, compare, declared_rows, key_parts, nullable, same

TIMESTAMPS = st.builds(
    Timestamp,
    st.integers(0, 3) | st.integers(0, EPOCH_MAX),
    st.integers(0, WALL_MS_MAX),
    st.integers(0, 2) | st.integers(0, LOGICAL_MAX),
)
_FEW_BYTES = st.lists(st.sampled_from([0, 1, 0x61, 0xFE, 0xFF]), max_size=5).map(bytes)
EVERY_PART = [KeyPart("p", key_type, descending) for key_type in KeyType for descending in (False, True)]


def sign(left: bytes, right: bytes) -> int:
    return (left > right) - (left < right)


@pytest.mark.parametrize("part", EVERY_PART, ids=str)
@given(data=st.data())
def test_bytes_of_one_part_order_as_its_values_and_nulls(part: KeyPart, data: st.DataObject) -> None:
    values = data.draw(st.lists(nullable(part.type), min_size=2, max_size=8))
    encoded = [encode_parts([value], [part]) for value in values]
    for left in range(len(values)):
        for right in range(left):
            expected = compare([values[left]], [values[right]], [part])
            assert sign(encoded[left], encoded[right]) == expected, (values[left], values[right])


@given(declared_rows())
def test_bytes_of_many_parts_order_part_by_part(declared: tuple[list[KeyPart], list[list[KeyValue]]]) -> None:
    parts, rows = declared
    for left, right in pairwise(rows):
        expected = compare(left, right, parts)
        assert sign(encode_parts(left, parts), encode_parts(right, parts)) == expected, (left, right)


@given(declared_rows(), st.lists(TIMESTAMPS, min_size=2, max_size=8))
def test_versions_of_keys_order_by_key_and_then_newest_first(
    declared: tuple[list[KeyPart], list[list[KeyValue]]], times: list[Timestamp]
) -> None:
    parts, rows = declared
    versions = [(row, ts) for row in rows for ts in times]
    for (left, left_ts), (right, right_ts) in pairwise(versions):
        expected = compare(left, right, parts) or (right_ts > left_ts) - (right_ts < left_ts)
        encoded = [
            encode_parts(row, parts) + bytes(ts).translate(INVERTED) for row, ts in ((left, left_ts), (right, right_ts))
        ]
        assert sign(*encoded) == expected


@given(declared_rows())
def test_no_key_is_a_prefix_of_another(declared: tuple[list[KeyPart], list[list[KeyValue]]]) -> None:
    parts, rows = declared
    encoded = sorted({encode_parts(row, parts) for row in rows})
    for left, right in pairwise(encoded):  # a prefix would sort directly before its extension or a sibling
        assert not right.startswith(left)


@given(declared_rows(min_size=1, max_size=1))
def test_a_key_reads_back_as_its_values(declared: tuple[list[KeyPart], list[list[KeyValue]]]) -> None:
    parts, [row] = declared
    decoded = decode_parts(encode_parts(row, parts), parts)
    assert all(same(left, right) for left, right in zip(decoded, row, strict=True)), (decoded, row)
    assert encode_parts(decoded, parts) == encode_parts(row, parts)


@given(declared_rows(min_size=1, max_size=1), st.data())
def test_damaged_bytes_are_refused_or_are_the_key_of_other_values(
    declared: tuple[list[KeyPart], list[list[KeyValue]]], data: st.DataObject
) -> None:
    parts, [row] = declared
    damaged = bytearray(encode_parts(row, parts))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFE, 0xFF]) | st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))]) if data.draw(st.booleans()) else bytes(damaged)
    try:
        values = decode_parts(cut, parts)
    except DataLoss:
        return
    assert encode_parts(values, parts) == cut


@given(st.binary(max_size=40), key_parts(max_size=2))
def test_arbitrary_bytes_are_refused_or_are_a_key(noise: bytes, parts: list[KeyPart]) -> None:
    try:
        values = decode_parts(noise, parts)
    except DataLoss:
        return
    assert encode_parts(values, parts) == noise


@given(declared_rows(), st.data())
def test_a_prefix_range_holds_exactly_the_keys_with_that_prefix(
    declared: tuple[list[KeyPart], list[list[KeyValue]]], data: st.DataObject
) -> None:
    parts, rows = declared
    count = data.draw(st.integers(1, len(parts)))
    wanted = rows[0][:count]
    start = encode_parts(wanted, parts[:count])
    end = successor_of_prefix(start)
    version = bytes(data.draw(TIMESTAMPS)).translate(INVERTED)
    for row in rows:
        belongs = compare(row, wanted, parts[:count]) == 0
        assert (start <= encode_parts(row, parts) < end) == belongs
        assert (start <= encode_parts(row, parts) + version < end) == belongs


@given(_FEW_BYTES.filter(lambda prefix: prefix.strip(b"\xff")), _FEW_BYTES)
def test_exactly_what_begins_with_a_prefix_lies_between_it_and_its_successor(prefix: bytes, other: bytes) -> None:
    successor = successor_of_prefix(prefix)
    for each in (other, prefix + other, successor, successor[:-1], prefix[:-1] + other):
        assert (prefix <= each < successor) == each.startswith(prefix)


@given(VALUES[KeyType.DECIMAL], st.integers(0, 5))
def test_trailing_zeros_of_a_decimal_make_no_other_key(value: Decimal, zeros: int) -> None:
    sign_, digits, scale = value.as_tuple()
    assert isinstance(scale, int)
    padded = Decimal((sign_, digits + (0,) * zeros, scale - zeros))
    assert encode_part(padded, KeyType.DECIMAL) == encode_part(value, KeyType.DECIMAL)


@given(st.lists(st.integers(0, 9), min_size=30, max_size=200), st.integers(-400, 400), st.integers(-3, 3))
def test_decimals_of_hundreds_of_digits_keep_all_of_them(digits: list[int], scale: int, nudge: int) -> None:
    value = Decimal((0, tuple(digits), scale))
    other = Decimal((0, tuple(map(int, str(int("1" + "".join(map(str, digits))) + nudge)[1:])), scale))
    for left, right in ((value, other), (-value, -other)):
        encoded = encode_part(left, KeyType.DECIMAL), encode_part(right, KeyType.DECIMAL)
        assert sign(*encoded) == (left > right) - (left < right)
        [decoded] = decode_parts(encoded[0], [KeyPart("d", KeyType.DECIMAL)])
        assert decoded == left


@pytest.mark.parametrize("part", EVERY_PART, ids=str)
@given(data=st.data())
def test_a_tag_tells_its_direction_and_is_neither_00_nor_ff(part: KeyPart, data: st.DataObject) -> None:
    tag = encode_parts([data.draw(nullable(part.type))], [part])[0]
    assert tag not in (0x00, 0xFF)
    assert (tag >= 0x80) == part.descending
