"""The bytes of the index of changes: a change here is a new format of the data directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import kv_key
from cortado.store.mvcc.versions import Item, encode_version
from cortado.store.replica.feed import index
from cortado.store.replica.feed.index import BrokenIndex, IndexWriter, decode_item
from cortado.store.staging.records import record_key
from support.memory_engine import MemoryEngine

GOLDEN = Path(__file__).with_name("index.txt")
TIMES = [Timestamp(1, 1_763_643_600_000, logical) for logical in range(6)]


def put(name: str, ts: Timestamp) -> Item:
    return encode_version(kv_key("n", name.encode()), b"", ts)


def stored() -> list[Item]:
    """One put, a commit of two lengths, an entry of two commands, and one whose large transaction moved two pieces."""
    engine = MemoryEngine()
    with engine.write() as txn:
        writer = IndexWriter(txn, 1, Timestamp(0, 0, 0))
        writer.add(TIMES[0], [put("a", TIMES[0])], [], is_one=True)
        writer.add(TIMES[1], [put("a", TIMES[1]), put("bc", TIMES[1])], [], is_one=True)
        writer.add(TIMES[3], [put("a", TIMES[2]), put("b", TIMES[3])], [], is_one=False)
        writer.add(TIMES[4], [encode_version(record_key(bytes(16)), b"", TIMES[4])], [], is_one=True)
        writer.add(TIMES[5], [], [put("row 1", TIMES[4]), put("row 2", TIMES[4])], is_one=True)
        assert writer.finish(Timestamp(0, 0, 0), has_risen=False) == TIMES[4]
    with engine.read() as txn:
        page = txn.page(Space.CHANGES, b"", b"\xff", max_items=100)
    return list(zip(page.keys, page.values, strict=True))


def lines() -> Iterator[str]:
    for key, value in stored():
        yield f"{key.hex(' ', -4)}\n    {value.hex(' ', -4)}\n"


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_PIECE_KEYS_MAX", 1)


def test_the_index_has_these_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "".join(lines()) == GOLDEN.read_text()
    assert [item.kind for item in (decode_item(*each) for each in stored())] == [0, 0, 0, 0, 0, 0, 1, 2, 2]


def test_an_item_that_is_not_what_was_written_is_no_item() -> None:
    for key, value in stored():
        with pytest.raises(BrokenIndex):
            decode_item(key[:-1] + bytes([key[-1] ^ 1]), value)
        for place in range(len(value)):
            with pytest.raises(BrokenIndex):
                decode_item(key, value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :])
            with pytest.raises(BrokenIndex):
                decode_item(key, value[:place])


if __name__ == "__main__":
    index._PIECE_KEYS_MAX = 1  # type: ignore[misc]
    sys.stdout.writelines(lines())
