"""Errors name a key by database, table and key, as far as the names are known."""

from __future__ import annotations

from cortado.store.keys.codec import encode_parts
from cortado.store.keys.decoded import KeyNames, shown_in_errors
from cortado.store.keys.keyspace import index_prefix, kv_key, row_key
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey

TABLE = (3 << 16) + 7
PARTS = [KeyPart("carrier", KeyType.STRING), KeyPart("flight", KeyType.INT64, descending=True)]
VALUES = ("UA", 1545)
KEY = encode_parts(VALUES, PARTS)
NAMES = KeyNames({TABLE: "shop.orders"}, {(TABLE, 2): "by_flight"})


def test_a_row_is_named_as_its_table_shows_it() -> None:
    assert shown_in_errors(row_key(TABLE, PARTS, VALUES), NAMES) == 'shop.orders("UA", 1545)'


def test_other_keys_are_named_as_far_as_is_known() -> None:
    assert shown_in_errors(LogicalKey(index_prefix(TABLE, 2) + KEY), NAMES) == (
        'index shop.orders.by_flight ("UA", 1545 desc)'
    )
    assert shown_in_errors(kv_key("sessions", b"user/1"), NAMES) == "kv (\"sessions\", b'user/1')"
    assert shown_in_errors(row_key(TABLE + 1, PARTS, VALUES), NAMES).startswith("row ")
    assert shown_in_errors(LogicalKey(b"??"), NAMES) == "raw 3f3f"
