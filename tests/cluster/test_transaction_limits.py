"""A server that is told to take smaller transactions refuses larger ones, and says which limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cortado.errors import TooLarge
from cortado.store.client import Client
from cortado.store.client.kv import Put
from support.server_process import running_server

pytestmark = pytest.mark.process

OPERATIONS, BYTES, KEYS, RANGES = 20, 2 << 20, 8, 3
OPTIONS = {
    "transaction-operations-max": OPERATIONS,
    "transaction-bytes-max": BYTES,
    "footprint-keys-max": KEYS,
    "footprint-ranges-max": RANGES,
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    options = [part for name, value in OPTIONS.items() for part in (f"--limit.{name}", str(value))]
    with running_server(tmp_path_factory.mktemp("small") / "data", *options) as server, Client(server.endpoint) as each:
        yield each


def puts(count: int, size: int = 1) -> list[Put]:
    return [Put(b"%d" % number, b"v" * size) for number in range(count)]


def test_a_commit_has_so_many_operations(small: Client) -> None:
    small.kv("n").batch(puts(OPERATIONS))
    with pytest.raises(TooLarge, match="operations: a transaction may have 20 operations") as refused:
        small.kv("n").batch(puts(OPERATIONS + 1))
    assert (refused.value.length, refused.value.limit) == (OPERATIONS + 1, OPERATIONS)


def test_a_commit_has_so_many_bytes(small: Client) -> None:
    small.kv("n").batch(puts(2, (BYTES >> 1) - 1))
    small.kv("n").put(b"2", b"v")
    with pytest.raises(TooLarge, match=f"a transaction may write {BYTES} bytes") as refused:
        small.kv("n").batch(puts(3, BYTES // 3))
    assert refused.value.limit == BYTES
    found = small.kv("n").get(b"2")
    assert found is not None and found.value == b"v"


def test_own_writes_are_so_many(small: Client) -> None:
    with pytest.raises(TooLarge, match="own_writes"), small.transaction() as txn:
        for each in puts(OPERATIONS + 1):
            txn.kv("n").put(each.key, each.value)
        txn.kv("n").get(b"1")


def read_and_write(client: Client, keys: int = 0, ranges: int = 0) -> None:
    with client.transaction(isolation="serializable") as txn:
        for number in range(keys):
            txn.kv("read").get(b"%d" % number)
        for number in range(ranges):
            list(txn.kv("read").scan(b"%d" % number, b"%d1" % number))
        txn.kv("n").put(b"k", b"v")


def test_a_commit_rests_on_so_many_keys(small: Client) -> None:
    # One of them gives the meaning of the namespace's name.
    read_and_write(small, keys=KEYS - 1)
    with pytest.raises(TooLarge, match="footprints: a transaction may rest on 8 keys") as refused:
        read_and_write(small, keys=KEYS)
    assert (refused.value.length, refused.value.limit) == (KEYS + 1, KEYS)


def test_a_commit_rests_on_so_many_ranges(small: Client) -> None:
    read_and_write(small, ranges=RANGES)
    with pytest.raises(TooLarge, match="footprints: a transaction may rest on 3 ranges"):
        read_and_write(small, ranges=RANGES + 1)
