"""Ranges of the keyspace against lists that are filtered by value, and all spaces together without a clash."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cortado.store.keys.codec import decode_parts
from cortado.store.keys.dump import dump
from cortado.store.keys.keyspace import (
    NUMBER_MAX,
    index_key,
    index_range,
    kv_key,
    kv_range,
    meta_key,
    meta_range,
    names_of,
    primary_key_of,
    primary_key_of_entry,
    row_key,
    row_prefix,
    row_range,
    show_table_id,
    table_id_of,
    user_key_of,
)
from cortado.store.keys.types import KeyPart, KeyType, KeyValue, LogicalKey
from support.key_values import compare, declared_rows

USER_KEYS = st.lists(st.sampled_from([0, 1, 0x61, 0xFE, 0xFF]), max_size=4).map(bytes)
NAMES = st.lists(st.sampled_from(["", "a", "a\0", "b", 0, 1, -1]), max_size=3)
NUMBERS = st.sampled_from([1, 2, 0x69, 0x72, 0xFF, 0x100, NUMBER_MAX])
IDS = st.sampled_from([0, 1, 0x69, 0x72, 0xFFFFFFFF])

Declared = tuple[list[KeyPart], list[list[KeyValue]]]


@given(declared_rows(), st.data())
def test_row_and_index_ranges_hold_what_lies_between_their_bounds(declared: Declared, data: st.DataObject) -> None:
    parts, rows = declared
    lower = data.draw(st.none() | st.sampled_from(rows).map(lambda row: row[: data.draw(st.integers(0, len(row)))]))
    upper = data.draw(st.none() | st.sampled_from(rows).map(lambda row: row[: data.draw(st.integers(0, len(row)))]))
    start, end = index_range(7, 2, parts, lower, upper)
    row_start, row_end = row_range(7, parts, lower, upper)
    for row in rows:
        above = lower is None or compare(row, lower, parts) >= 0
        below = not upper or compare(row, upper, parts) < 0
        for unique in (False, True):
            entry = index_key(7, 2, parts, row, b"\x14\xff\xff", unique=unique)
            assert (start <= entry < end) == (above and below)
        if None not in row:
            assert (row_start <= row_key(7, parts, row) < row_end) == (above and below)


@given(st.lists(USER_KEYS, min_size=1), USER_KEYS, USER_KEYS, USER_KEYS)
def test_ranges_of_user_keys_are_those_of_their_bytes(
    keys: list[bytes], start: bytes, end: bytes, prefix: bytes
) -> None:
    lower, upper = kv_range("n", start, end)
    prefix_lower, prefix_upper = kv_range("n", prefix=prefix)
    for key in keys:
        encoded = kv_key("n", key)
        assert (lower <= encoded < upper) == (start <= key and (not end or key < end))
        assert (prefix_lower <= encoded < prefix_upper) == key.startswith(prefix)
        assert user_key_of(encoded) == key
        assert not lower <= kv_key("n\0", key) < upper
        assert not lower <= kv_key("m", key) < upper


@given(st.lists(NAMES, min_size=1), NAMES)
def test_a_range_of_names_holds_those_that_begin_with_them(
    all_names: list[list[str | int]], wanted: list[str | int]
) -> None:
    start, end = meta_range(*wanted)
    for names in all_names:
        key = meta_key(*names)
        assert names_of(key) == tuple(names)
        assert (start <= key < end) == (names[: len(wanted)] == wanted)


@given(declared_rows(), st.lists(NAMES), st.lists(USER_KEYS), IDS, IDS, IDS)
def test_no_key_of_any_space_is_a_prefix_of_another(
    declared: Declared, names: list[list[str | int]], user_keys: list[bytes], table: int, other: int, index: int
) -> None:
    parts, rows = declared
    primary = LogicalKey(row_prefix(other) + b"\x14" + bytes(8))
    keys: set[bytes] = {meta_key(*each) for each in names} | {kv_key("n", each) for each in user_keys} | {primary}
    for row in rows:
        keys.add(index_key(table, index, parts, row, primary_key_of(primary), unique=True))
        if None not in row and table != other:
            keys.add(row_key(table, parts, row))
    for left, right in pairwise(sorted(keys)):
        assert not right.startswith(left), (dump(left), dump(right))


@given(declared_rows(min_size=1), NUMBERS, NUMBERS, NUMBERS, NUMBERS, IDS)
def test_all_keys_of_a_database_lie_in_one_range_and_no_other_s(
    declared: Declared, database: int, table: int, other: int, others_table: int, index: int
) -> None:
    parts, rows = declared
    start = b"t" + database.to_bytes(2)
    end = b"u" if database == NUMBER_MAX else b"t" + (database + 1).to_bytes(2)
    for number, owned in ((database, table), (other, others_table)):
        table_id = table_id_of(number, owned)
        assert show_table_id(table_id) == f"{number}.{owned}"
        for row in rows:
            keys = [index_key(table_id, index, parts, row, b"\x05", unique=True)]
            keys += [] if None in row else [row_key(table_id, parts, row)]
            for key in keys:
                assert (start <= key < end) == (number == database)


@given(declared_rows(min_size=1, max_size=1), st.booleans())
def test_an_index_entry_leads_back_to_its_row(declared: Declared, unique: bool) -> None:
    parts, [row] = declared
    key_parts = [KeyPart("id", KeyType.STRING), KeyPart("n", KeyType.INT64, descending=True)]
    primary = row_key(7, key_parts, ("\0x", 5))
    payload = primary_key_of(primary) if unique else b""
    entry = index_key(7, 2, parts, row, primary_key_of(primary), unique=unique)
    found = primary_key_of_entry(entry, payload, len(parts), unique=unique)
    assert row_prefix(7) + found == primary
    assert decode_parts(found, key_parts) == ("\0x", 5)


@given(st.binary(max_size=30))
def test_any_bytes_can_be_dumped(noise: bytes) -> None:
    for space in (b"", b"k", b"m", b"t\0\0\0\1r", b"t\0\0\0\1i\0\0\0\1"):
        assert "\n" not in dump(space + noise)
