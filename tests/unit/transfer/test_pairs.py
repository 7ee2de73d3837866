"""Pairs as rows of an exported file."""

from __future__ import annotations

from cortado.schema.documents import decode_document
from cortado.store.kv.operations import DEFAULT_LIMITS
from cortado.store.transfer.pairs import PAIR_SCHEMA, pair_body


def test_a_pair_of_the_longest_key_and_the_largest_value_is_a_row() -> None:
    key, value = b"k" * 499, bytes(DEFAULT_LIMITS.value_bytes_max)
    assert decode_document(PAIR_SCHEMA, pair_body(key, value)) == {"key": key, "value": value}
