"""Rows that a leader's disk hides are not overwritten: followers compare the versions under an entry with their own.

A version is taken out of one replica's engine, as a flipped bit in its key does for every search.
"""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import ConditionFailed, CortadoError, DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import Entry
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.keys.keyspace import STAGED_SPACE, kv_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.evaluation import Absent, Evaluate, Evaluation, Removal, check_condition
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, logical_of
from cortado.store.mvcc.seen import NO_READS, Reads
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version, encode_versions, suffix_of
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.examining import EXAMINED_EVERY_MS, Drawing, Examiner
from cortado.store.replica.write.log_entry import LogEntry
from support.memory_engine import MemoryEngine
from support.node_world import World
from support.nodes import put, read
from support.work import instructions_at_most

KEY = "k"
EXAMINED = NodeLimits(examined_percent=100)


def insert(key: str, payload: bytes) -> Evaluate:
    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        logical = kv_key("test", key.encode())
        check_condition(Absent(), key, reader.get(logical))
        return Evaluation(Mutations([logical], [payload]), None)

    return evaluate


def insert_many(*keys: str) -> Evaluate:
    """Insert as :func:`insert` does, by one read of all."""

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        logical = [kv_key("test", key.encode()) for key in keys]
        for key, version in zip(keys, reader.get_many(logical), strict=True):
            check_condition(Absent(), key, version)
        return Evaluation(Mutations(logical, [b"over"] * len(keys)), None)

    return evaluate


def insert_where_empty(key: str) -> Evaluate:
    """Insert if a scan finds nothing."""

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        for found, version in reader.scan(kv_key("test", b""), kv_key("test", b"zzz")):
            check_condition(Absent(), str(found), version)
        return Evaluation(Mutations([kv_key("test", key.encode())], [b"over"]), None)

    return evaluate


def hide(engine: MemoryEngine, key: str, newest: int = 1) -> None:
    """Take the newest versions of a key out of an engine."""
    logical = kv_key("test", key.encode())
    with engine.write() as txn:
        keys, _ = txn.keys(Space.DATA, logical, LogicalKey(logical + b"\xff" * 13), max_items=newest)
        for each in keys:
            assert logical_of(each) == logical
            txn.delete(Space.DATA, each)


def told_of(node: Host) -> list[Damage]:
    """Return the damage that the node is to fill from now on."""
    told, fill = list[Damage](), node.meta.integrity.repairs.fill

    def noted(damage: Damage, wanted: bytes) -> None:
        told.append(damage)
        fill(damage, wanted)

    node.meta.integrity.repairs.fill = noted  # type: ignore[method-assign]
    return told


async def value_of(node: Host, key: str) -> bytes | None:
    return read(node, key, await node.meta.reads.linearize())


WAYS = {
    "point": insert(KEY, b"over"),
    "many": insert_many("a", KEY, "b"),
    "scan": insert_where_empty("z"),
}


@pytest.mark.parametrize("voters", [2, 3])
@pytest.mark.parametrize("way", list(WAYS))
def test_an_insert_over_a_value_that_the_leader_lost_is_never_acknowledged(way: str, voters: int) -> None:
    world = World(limits=EXAMINED)

    async def scenario() -> None:
        nodes = await world.grow(*["n1", "n2", "n3"][:voters])
        await nodes[0].meta.write(put(KEY, b"first"))
        await nodes[0].meta.write(put(KEY, b"acknowledged"))
        await world.settled()
        hide(world.places["n1"].engine, KEY, newest=2)
        with pytest.raises(CortadoError) as refused:
            await asyncio.wait_for(nodes[0].meta.write(WAYS[way]), 20)
        assert not isinstance(refused.value, ConditionFailed), "n1 found the value: the test hid nothing"
        term = nodes[0].meta.term
        leader = await world.led(above=term - 1)
        for _ in range(100):
            try:
                assert await value_of(leader, KEY) == b"acknowledged"
                break
            except (CortadoError, DataLoss):
                await world.sleep(200)
                leader = await world.led()
        else:
            raise AssertionError("nobody serves")
        with pytest.raises(ConditionFailed):
            await leader.meta.write(WAYS[way])
        assert await value_of(leader, KEY) == b"acknowledged"

    world.run(scenario)


def test_an_update_of_an_older_version_is_never_acknowledged() -> None:
    world = World(limits=EXAMINED)

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await n1.meta.write(put(KEY, b"1"))
        await n1.meta.write(put(KEY, b"2"))
        await world.settled()
        hide(world.places["n1"].engine, KEY)

        def append(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            logical = kv_key("test", KEY.encode())
            found = reader.get(logical)
            assert found is not None
            return Evaluation(Mutations([logical], [found.payload + b"+"]), None)

        with pytest.raises(CortadoError):
            await asyncio.wait_for(n1.meta.write(append), 20)
        leader = await world.led()
        await world.sleep(2_000)
        leader = await world.led()
        await leader.meta.write(append)
        assert await value_of(leader, KEY) == b"2+"

    world.run(scenario)


def touch(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
    """Write another key, worked out from the key."""
    assert reader.get(kv_key("test", KEY.encode())) is not None
    return Evaluation(Mutations([kv_key("test", b"other")], [b"x"]), None)


def test_a_follower_acknowledges_nothing_that_was_worked_out_from_what_it_lost() -> None:
    world = World(limits=EXAMINED)

    async def scenario() -> None:
        n1, n2 = await world.grow("n1", "n2")
        await n1.meta.write(put(KEY, b"value"))
        await world.settled()
        engine, told = world.places["n2"].engine, told_of(n2)
        logical = kv_key("test", KEY.encode())
        with engine.read() as txn:
            lost = txn.page(Space.DATA, logical, LogicalKey(logical + b"\xff" * 13), max_items=1)
        hide(engine, KEY)
        await n1.meta.write(touch)
        assert n2.meta.integrity.examiner.doubted >= 1, "its acknowledgement was needed, and it gave it as it was"
        assert told
        assert told[0].start <= lost.keys[0] < told[0].end
        assert node_status(n1).role == "leader", "who is whole goes on leading"
        with engine.read() as txn:
            assert txn.get(Space.DATA, lost.keys[0]) == lost.values[0]
        await world.settled()
        assert read(n2, KEY) == b"value"

    world.run(scenario)


def test_a_third_member_is_enough_where_a_follower_lost_a_version() -> None:
    world = World(limits=EXAMINED)

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        await n1.meta.write(put(KEY, b"value"))
        await world.settled()
        hide(world.places["n2"].engine, KEY)
        told = told_of(n2)
        await n1.meta.write(touch)
        assert node_status(n1).role == "leader"
        await world.until(lambda: bool(told), "the follower knows")

    world.run(scenario)


def test_one_entry_in_a_time_is_examined_and_a_share_of_all() -> None:
    seconds = 10

    def drawn(percent: int, rate: int) -> int:
        drawing = Drawing(percent)
        return sum(drawing.draw(1_000 * number / rate) for number in range(seconds * rate))

    by_time = seconds * 1_000 / EXAMINED_EVERY_MS
    assert drawn(0, 10) == drawn(0, 1_000) == 0
    assert drawn(100, 10) == 10 * seconds
    assert drawn(100, 1_000) == 1_000 * seconds
    assert drawn(1, 10) == 10 * seconds, "all, where there are few"
    assert by_time <= drawn(1, 1_000) <= by_time + 0.01 * 1_000 * seconds
    assert drawn(1, 100_000) >= 0.01 * 100_000 * seconds


def test_what_nobody_examines_is_not_noticed() -> None:
    """The loss that all this is about."""
    world = World(limits=NodeLimits(examined_percent=0))

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await n1.meta.write(put(KEY, b"acknowledged"))
        await world.settled()
        hide(world.places["n1"].engine, KEY)
        await n1.meta.write(insert(KEY, b"over"))
        assert await value_of(n1, KEY) == b"over"

    world.run(scenario)


def test_commands_that_see_each_other_in_one_entry_and_in_flight_raise_no_doubt() -> None:
    world = World(limits=NodeLimits(batch_commands_max=7, examined_percent=100))

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")

        def count(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            logical = kv_key("test", b"count")
            (found,) = reader.get_many([logical])
            rows = len(list(reader.scan(kv_key("test", b""), kv_key("test", b"zzz"))))
            payload = str(1 + int(found.payload if found else b"0")).encode()
            return Evaluation(Mutations([logical, kv_key("test", b"row%03d" % rows)], [payload, b"x"]), None)

        for _ in range(6):
            await asyncio.gather(*(n1.meta.write(count) for _ in range(40)))
        await world.settled()
        assert await value_of(n1, "count") == b"240"
        for node in (n2, n3):
            assert node.meta.integrity.examiner.examined > 20
            assert node.meta.integrity.examiner.doubted == 0

    world.run(scenario)


def test_what_the_leader_lost_is_not_believed_to_be_absent_while_nobody_can_bring_it() -> None:
    world = World(limits=EXAMINED)

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await n1.meta.write(put(KEY, b"acknowledged"))
        await world.settled()
        hide(world.places["n1"].engine, KEY)
        world.silent = {"n2", "n3"}
        with pytest.raises(CortadoError):
            await asyncio.wait_for(n1.meta.write(insert(KEY, b"over")), 20)
        for _ in range(50):
            await world.sleep(100)
            with pytest.raises(DataLoss):
                read(n1, KEY)
        world.silent = set()
        await world.until(lambda: not n1.meta.store.suspect, "it is brought as soon as somebody answers")
        assert read(n1, KEY) == b"acknowledged"

    world.run(scenario)


def delete(key: str) -> Evaluate:
    def evaluate(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        return Evaluation(Mutations([kv_key("test", key.encode())], [None]), None)

    return evaluate


@pytest.mark.parametrize("holder", ["n1", "n2"])
@pytest.mark.parametrize("way", list(WAYS))
def test_a_delete_that_is_collected_at_one_replica_sooner_than_at_another_is_no_damage(way: str, holder: str) -> None:
    # At one replica it is applied already that the delete goes, and at the other it is not.
    world = World(limits=EXAMINED, retention_ms=2_000)

    async def scenario() -> None:
        n1, n2 = await world.grow("n1", "n2")
        await n1.meta.write(put(KEY, b"first"))
        deleted = await n1.meta.write(delete(KEY))
        behind = world.places[holder]
        await world.until(lambda: n1.meta.store.safepoints.cluster >= deleted.ts, "the delete may go")
        await world.settled()
        # A version that collection removes on both is put back on one.
        await world.until(lambda: not _has(n1, KEY) and not _has(n2, KEY), "it went")
        with behind.engine.write() as txn:
            txn.put_many(Space.DATA, encode_versions([kv_key("test", KEY.encode())], [None], deleted.ts))
        await n1.meta.write(WAYS[way])
        await world.settled()
        assert n1.meta.integrity.examiner.doubted == n2.meta.integrity.examiner.doubted == 0
        assert n2.meta.integrity.examiner.examined > 0

    world.run(scenario)


def _has(node: Host, key: str) -> bool:
    start = kv_key("test", key.encode())
    with node.process.engine.read() as txn:
        return bool(txn.keys(Space.DATA, start, start + b"\xff" * 13, max_items=1)[0])


@pytest.mark.parametrize("stored_key", [b"x", b"\x00" * 12, b"k" * 600, bytes(kv_key("test", b"other")) + b"\xfe" * 12])
@pytest.mark.parametrize("index", [0, 1, 10**6, (1 << 64) - 1])
def test_a_doubt_of_what_an_entry_never_read_is_not_believed(stored_key: bytes, index: int) -> None:
    """One answer of a member would make its leader distrust any range, or everything, and give up entries."""
    world = World(limits=EXAMINED)

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await n1.meta.write(put(KEY, b"value"))
        await n1.meta.write(touch)
        await world.settled()
        last, told = n1.meta.log.last[0], told_of(n1)
        answer = pb.Acknowledgement(matched_index=last, doubted_index=index or last, doubted_key=stored_key)
        message = pb.RaftMessage(term=n1.meta.term, acknowledgement=answer, echo_ms=world.now_ms)
        n1.receive("n2", META_GROUP.group_id, [message.SerializeToString()])
        await world.sleep(1_000)
        assert not told
        assert not n1.meta.store.suspect
        assert n1.meta.integrity.disowned == 0
        assert read(n1, KEY) == b"value"

    world.run(scenario)


def test_what_is_not_applied_is_not_looked_through_for_each_entry_that_is_examined() -> None:
    def named(number: int) -> LogicalKey:
        return kv_key("test", b"%d" % number)

    def entry(index: int, reads: Reads = NO_READS) -> Entry:
        ts = Timestamp(0, index, 0)
        items = [encode_version(named(index), b"v", ts)]
        return Entry(index, 1, LogEntry(index - 1, 1, ts, ts, items, reads=reads))

    def read_of_7(wall_ms: int) -> Reads:
        return Reads([named(7)], [suffix_of(Timestamp(0, wall_ms, 0))], [], ZERO)

    examiner = Examiner(VersionStore(MemoryEngine()), lambda *_: None)
    before = [entry(index) for index in range(1, 1_001)]
    assert examiner.examine(before, entry(1_001, read_of_7(7))) is None
    with instructions_at_most(20_000):
        assert examiner.examine([*before[5:], entry(1_001)], entry(1_002, read_of_7(7))) is None
    assert examiner.examine(before[5:900], entry(901, read_of_7(6))) is not None, "it holds a newer one"
    assert examiner.examine(before[7:900], entry(901, read_of_7(7))) is not None, "it is neither there nor applied"


def test_nothing_is_doubted_while_what_was_staged_is_not_gone_here_as_it_is_at_the_leader() -> None:
    staged, at_1, at_2, at_3 = LogicalKey(STAGED_SPACE + b"k"), *(Timestamp(0, wall_ms, 0) for wall_ms in (1, 2, 3))
    item = encode_version(staged, b"v", at_1)
    put_there = Entry(1, 1, LogEntry(0, 0, at_1, at_1, [item]))
    taken_away = Entry(2, 1, LogEntry(1, 1, at_2, at_2, removal=Removal([item[0]])))
    reads = Reads([], [], [(STAGED_SPACE, STAGED_SPACE + b"z")], ZERO)
    examined = Entry(3, 1, LogEntry(2, 1, at_3, at_3, [], reads=reads))
    examiner = Examiner(VersionStore(MemoryEngine()), lambda *_: None)
    assert examiner.examine([put_there], examined) is not None
    assert examiner.examine([put_there, taken_away], examined) is None
