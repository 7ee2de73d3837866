"""A damaged item belongs to a range by its key, even if it is the next one that stands behind the range."""

from __future__ import annotations

from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import kv_key
from cortado.store.mvcc.versions import encode_version
from cortado.store.process.range_copies import Ask
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.repair.ranges import own_slice
from cortado.store.replica.write.examining import missing
from support.memory_engine import MemoryEngine


def test_what_is_damaged_behind_a_range_is_not_taken_for_a_part_of_it() -> None:
    engine, ts = MemoryEngine(), Timestamp(0, 1, 0)
    inside, behind = (encode_version(kv_key("test", name), b"payload", ts) for name in (b"a", b"b"))
    with engine.write() as txn:
        txn.put(Space.DATA, *inside)
        txn.put(Space.DATA, behind[0], b"turned" + behind[1])
    damage = missing(kv_key("test", b"a"), "a")
    found = own_slice(engine, META_GROUP, Ask(Space.DATA, damage.start, damage.end))
    assert not found.damaged
