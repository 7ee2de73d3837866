"""Versions that are encoded all at once are those that are encoded one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc import many_versions
from cortado.store.mvcc.many_versions import encode_contents, encode_many
from cortado.store.mvcc.versions import encode_content, encode_version, encode_versions

PAYLOADS = st.none() | st.just(b"") | st.binary(max_size=40)


@given(
    st.lists(st.tuples(st.binary(max_size=40), PAYLOADS), max_size=20),
    st.lists(st.tuples(st.binary(max_size=40), st.sampled_from([b"", None])), max_size=20),
    st.builds(Timestamp, st.integers(0, 9), st.integers(0, 1 << 47), st.integers(0, 9)),
    st.data(),
)
def test_all_at_once_they_are_what_they_are_one_by_one(
    first: list[tuple[bytes, bytes | None]],
    empty: list[tuple[bytes, bytes | None]],
    ts: Timestamp,
    data: st.DataObject,
) -> None:
    keys = [LogicalKey(key) for key, _ in first + empty]
    payloads = [payload for _, payload in first + empty]
    expiries = data.draw(st.dictionaries(st.sampled_from(keys), st.integers(1, 1 << 47))) if keys else {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_versions, "MANY", 1)
        many = encode_many(keys, payloads, ts, expiries)
    assert many == encode_versions(keys, payloads, ts, expiries)
    assert many == [
        encode_version(key, each, ts, expiries.get(key, 0)) for key, each in zip(keys, payloads, strict=True)
    ]


def test_deletes_among_many_puts_are_deletes() -> None:
    keys, ts = [LogicalKey(b"%d" % number) for number in range(200)], Timestamp(0, 7, 0)
    payloads = [None if number % 3 else b"payload" for number in range(200)]
    assert encode_many(keys, payloads, ts) == encode_versions(keys, payloads, ts)


@given(st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=40))))
def test_contents_that_are_encoded_all_at_once_are_what_they_are_one_by_one(items: list[tuple[bytes, bytes]]) -> None:
    engine_keys, contents = [key for key, _ in items], [content for _, content in items]
    assert encode_contents(engine_keys, contents) == list(map(encode_content, engine_keys, contents))
