"""The key-value API through the client, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cortado.errors import ConditionFailed, InvalidArgument, KeyTooLong, TooLarge, WriteConflict
from cortado.store.client import Client, Delete, KeyValue, Put
from support.faces import open_client
from support.server_process import ServerProcess

pytestmark = pytest.mark.process


@pytest.fixture(params=[("sync", False), ("sync", True), ("async", True)], ids=["alone", "merged", "async"])
def client(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Client]:
    """Once with calls of their own, once with calls on the coalescing stream, once over asyncio: the same rules hold
    for all."""
    face, coalesce = request.param
    with open_client(face, server.endpoint, timeout_s=10, coalesce=coalesce) as opened:
        yield opened


@pytest.fixture
def kv(client: Client, database: str) -> KeyValue:
    return client.kv(database)


def test_a_value_comes_back_byte_for_byte(kv: KeyValue) -> None:
    key, value = bytes(range(256)), b"\x00\xff" * 1_000
    etag = kv.put(key, value)
    found = kv.get(key)
    assert found is not None
    assert (found.key, found.value, found.etag) == (key, value, etag)
    assert kv.delete(key)
    assert not kv.delete(key)
    assert kv.get(key) is None


def test_empty_values_are_values(kv: KeyValue) -> None:
    kv.put(b"k", b"")
    found = kv.get(b"k")
    assert found is not None
    assert found.value == b""


def test_many_keys_are_read_in_their_order_at_one_time_however_large_they_are(client: Client, kv: KeyValue) -> None:
    large = {b"large-%d" % number: bytes([number]) * 900_000 for number in range(12)}
    for key, value in large.items():
        kv.put(key, value)
    kv.batch([Put(b"%05d" % number, b"") for number in range(9_000)])
    asked = [b"nothing", *large, *(b"%05d" % number for number in range(12_000)), b"nothing"]
    found = kv.get_many(asked)
    assert [pair and pair.key for pair in found] == [key if key in large or key < b"09000" else None for key in asked]
    assert all(pair is None or pair.value == large.get(pair.key, b"") for pair in found)
    assert kv.get_many([]) == []
    with pytest.raises(InvalidArgument, match=r"keys\[1\]: must not be empty"):
        kv.get_many([b"a", b""])
    before = client.now()
    kv.put(b"large-3", b"later")
    past = kv.get_many([b"large-3", b"none"], at=before)
    assert [pair and len(pair.value) for pair in past] == [900_000, None]


def test_many_keys_are_read_in_a_transaction_with_its_own_writes(client: Client, kv: KeyValue) -> None:
    kv.put(b"a", b"1")
    kv.put(b"b", b"2")
    with client.transaction(isolation="serializable") as txn:
        own = txn.kv(kv.namespace)
        own.put(b"c", b"3")
        own.delete(b"b")
        assert [pair and pair.value for pair in own.get_many([b"c", b"b", b"a", b"z"])] == [b"3", None, b"1", None]
        kv.put(b"z", b"somebody was faster")
        with pytest.raises(WriteConflict) as refused:
            txn.commit()
    assert (refused.value.kind, "z" in refused.value.key) == ("read", True)


def test_conditions_hold_or_nothing_changes(kv: KeyValue) -> None:
    with pytest.raises(ConditionFailed):
        kv.put(b"k", b"1", if_present=True)
    first = kv.put(b"k", b"1", if_absent=True)
    with pytest.raises(ConditionFailed):
        kv.put(b"k", b"2", if_absent=True)
    kv.put(b"k", b"2", if_etag=first)
    with pytest.raises(ConditionFailed):
        kv.put(b"k", b"3", if_etag=first)
    kv.put(b"k", b"3", if_value=b"2")
    with pytest.raises(ConditionFailed):
        kv.delete(b"k", if_value=b"2")
    found = kv.get(b"k")
    assert found is not None
    assert found.value == b"3"


def test_compare_and_set_loses_no_increment(kv: KeyValue) -> None:
    kv.put(b"n", b"0")

    def increment(_: int) -> None:
        while True:
            found = kv.get(b"n")
            assert found is not None
            try:
                kv.put(b"n", b"%d" % (int(found.value) + 1), if_value=found.value)
                return
            except ConditionFailed:
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(increment, range(64)))
    found = kv.get(b"n")
    assert found is not None
    assert found.value == b"64"


def test_scans_follow_the_order_of_bytes(client: Client, kv: KeyValue) -> None:
    keys = [b"\x00", b"\x00\x00", b"\x00\xff", b"a", b"a\x00", b"ab", b"b", b"\xff", b"\xff\xff"]
    for key in reversed(keys):
        kv.put(key, b"v")
    before = client.now()
    kv.put(b"later", b"v")
    kv.delete(b"a")
    assert [pair.key for pair in kv.scan(at=before)] == keys
    assert [pair.key for pair in kv.scan(at=before, reverse=True)] == keys[::-1]
    assert [pair.key for pair in kv.scan(b"a", b"b", at=before)] == [b"a", b"a\x00", b"ab"]
    assert [pair.key for pair in kv.scan(prefix=b"\xff", at=before)] == [b"\xff", b"\xff\xff"]
    assert [pair.key for pair in kv.scan(limit=2, at=before)] == keys[:2]
    assert b"later" in [pair.key for pair in kv.scan()]


def test_a_range_is_deleted_at_once_and_only_when_it_is_given(kv: KeyValue) -> None:
    kv.batch([Put(b"%02d" % i, b"v") for i in range(20)])
    with pytest.raises(InvalidArgument):
        kv.delete_range()
    assert kv.delete_range(b"05", b"10") == 5
    assert kv.delete_range(prefix=b"1") == 10
    assert kv.delete_range(prefix=b"") == 5
    assert list(kv.scan()) == []


def test_a_batch_is_all_or_nothing(kv: KeyValue) -> None:
    etag = kv.batch([Put(b"a", b"1"), Put(b"b", b"2", if_absent=True)])
    assert {pair.etag for pair in kv.scan()} == {etag}
    with pytest.raises(ConditionFailed):
        kv.batch([Delete(b"a"), Put(b"b", b"3", if_etag="0.1.1")])
    assert [(pair.key, pair.value) for pair in kv.scan()] == [(b"a", b"1"), (b"b", b"2")]


def test_bad_input_is_refused_with_its_limit(client: Client, kv: KeyValue) -> None:
    with pytest.raises(KeyTooLong, match="499"):
        kv.put(b"k" * 600, b"")
    with pytest.raises(TooLarge, match="1048576"):
        kv.put(b"k", b"v" * ((1 << 20) + 1))
    with pytest.raises(InvalidArgument, match="namespace"):
        client.kv("no spaces")
    with pytest.raises(InvalidArgument, match="bytes"):
        kv.put("k", b"v")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="one alone"):
        kv.put(b"k", b"v", if_absent=True, if_present=True)
    assert list(kv.scan()) == []


def test_one_client_serves_many_threads(kv: KeyValue) -> None:
    def work(thread: int) -> None:
        for i in range(20):
            kv.put(b"%d-%d" % (thread, i), b"%d" % i)
            found = kv.get(b"%d-%d" % (thread, i))
            assert found is not None
            assert found.value == b"%d" % i

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert len(list(kv.scan())) == 320


@pytest.mark.parametrize("reverse", [False, True])
def test_a_limited_scan_goes_on_where_its_first_page_is_full(kv: KeyValue, reverse: bool) -> None:
    keys = [b"%03d" % i for i in range(40)]
    for start in (0, 20):
        kv.batch([Put(key, bytes(50_000) + key) for key in keys[start : start + 20]])
    expected = keys[::-1] if reverse else keys
    for limit in (1, 10, 11, 39, 40, 1_000):  # about ten fit into a page
        found = list(kv.scan(limit=limit, reverse=reverse))
        assert [pair.key for pair in found] == expected[:limit]
        assert all(pair.value == bytes(50_000) + pair.key for pair in found)
