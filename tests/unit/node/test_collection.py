"""Old versions are collected, on virtual time: by retention, leases and drops, over leaders, and never too early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cortado.errors import SnapshotTooOld
from cortado.proto.v1 import schemas_pb2, tables_pb2
from cortado.raft.settings import RaftSettings
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import Drop, DropKind
from cortado.store.catalog.dropped import drop_ranges
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.clock.timestamp import Timestamp
from cortado.store.collection.leases import acquire, end
from cortado.store.engine.interface import ABOVE_KEYS, Space
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import kv_range
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from support.node_world import World
from support.nodes import key, put, read

RETENTION_MS = 10_000

Scenario = Callable[[World], Awaitable[None]]


def scene(scenario: Scenario, retention_ms: int = RETENTION_MS) -> None:
    world = World(retention_ms=retention_ms)
    world.run(lambda: scenario(world))


def delete(name: str) -> Evaluate:
    def evaluate(_reader: object, _commit_ts: object) -> Evaluation:
        mutations = Mutations()
        mutations.delete(key(name))
        return Evaluation(mutations, None)

    return evaluate


def stored(node: Host, name: str) -> list[bytes]:
    """Return the stored versions of a key, the newest first."""
    start = bytes(key(name))
    with node.process.engine.read() as txn:
        return txn.page(Space.DATA, start, start + b"\xff" * 13, max_items=1_000).keys


def all_stored(node: Host) -> list[tuple[bytes, bytes]]:
    with node.process.engine.read() as txn:
        page = txn.page(Space.DATA, b"", ABOVE_KEYS, max_items=10_000)
    return list(zip(page.keys, page.values, strict=True))


def test_old_versions_go_after_the_retention_and_reads_below_are_refused() -> None:
    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        written = [(await node.meta.write(put("k", b"%d" % i))).ts for i in range(10)]
        await world.sleep(RETENTION_MS - 1_000)
        assert len(stored(node, "k")) == 10
        assert read(node, "k", written[0]) == b"0"
        await world.until(lambda: len(stored(node, "k")) == 1, "all but the newest are gone", 3 * RETENTION_MS)
        assert read(node, "k") == b"9"
        with pytest.raises(SnapshotTooOld):
            read(node, "k", written[0])

    scene(scenario)


def test_a_deleted_key_leaves_nothing_behind() -> None:
    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        await node.meta.write(put("k", b"1"))
        await node.meta.write(put("other", b"1"))
        await node.meta.write(delete("k"))
        await world.until(lambda: stored(node, "k") == [], "nothing is left", 4 * RETENTION_MS)
        assert read(node, "k") is None
        assert read(node, "other") == b"1"

    scene(scenario)


def test_an_idle_cluster_comes_to_rest() -> None:
    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        for i in range(3):
            await node.meta.write(put("k", b"%d" % i))
        await world.sleep(10 * RETENTION_MS)
        index = node.meta.applied.index
        assert len(stored(node, "k")) == 1
        await world.sleep(20 * RETENTION_MS)
        assert node.meta.applied.index == index

    scene(scenario)


def test_what_is_dropped_last_is_cleared_though_no_version_is_garbage() -> None:
    def drop(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        mutations = Mutations()
        what = Drop(DropKind.NAMESPACE, "test", 0, 0, (kv_range("test"),))
        drop_ranges(Catalog(reader), mutations, [what], commit_ts)
        return Evaluation(mutations, None)

    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        await node.meta.write(put("k", b"1"))
        await world.sleep(RETENTION_MS / 4)
        # The safepoint comes to stand between the last two writes; neither leaves garbage.
        await node.meta.write(drop)
        await world.until(lambda: stored(node, "k") == [], "it is cleared", 4 * RETENTION_MS)
        await world.sleep(10 * RETENTION_MS)
        index = node.meta.applied.index
        await world.sleep(20 * RETENTION_MS)
        assert node.meta.applied.index == index, "at rest"

    scene(scenario)


@pytest.mark.parametrize("own_ms", [2 * RETENTION_MS, KEEP_ALL])
def test_a_cluster_with_a_table_of_its_own_retention_comes_to_rest(own_ms: int) -> None:
    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        tables = TablesService(node)
        await tables.create_database(tables_pb2.CreateDatabaseRequest(database="d"))
        schema = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}'
        await SchemasService(node).register(schemas_pb2.RegisterSchemaRequest(subject="s", schema=schema))
        key_parts = [tables_pb2.KeyPart(path="id")]
        created = tables_pb2.CreateTableRequest(database="d", name="t", subject="s", key=key_parts, retention_ms=own_ms)
        await tables.create_table(created)
        for i in range(3):
            await node.meta.write(put("k", b"%d" % i))
        await world.until(lambda: len(stored(node, "k")) == 1, "all but the newest are gone", 4 * RETENTION_MS)
        await world.sleep(10 * RETENTION_MS)
        # Its own writes, whenever a safepoint rises, are no reason to rise again; nor are versions that are kept for
        # ever.
        index = node.meta.applied.index
        await world.sleep(20 * RETENTION_MS)
        assert (node.meta.applied.index, node.meta.collector.status().pending) == (index, 0)

    scene(scenario)


def test_a_leader_that_came_by_its_state_in_a_snapshot_collects_though_nobody_writes() -> None:
    async def scenario() -> None:
        node, other, _ = await world.grow("n1", "n2", "n3")
        world.cut_off("n2")
        for i in range(30):
            await node.meta.write(put("k", b"%d" % i))
        fetched = world.fetches
        world.heal()
        await world.until(lambda: other.meta.applied == node.meta.applied, "a snapshot brought it up")
        assert world.fetches > fetched
        await node.meta.members.transfer("n2")
        await world.led(but="n1")
        assert len(stored(other, "k")) == 30
        await world.until(lambda: len(stored(other, "k")) == 1, "all but the newest are gone", 4 * RETENTION_MS)

    world = World(retention_ms=RETENTION_MS, settings=RaftSettings(retain_entries=4))
    world.run(scenario)


def test_no_safepoint_passes_a_lease_and_what_waited_goes_when_it_ends() -> None:
    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        first = (await node.meta.write(put("k", b"1"))).ts
        lease_id = bytes(16)
        await node.meta.keep_house(acquire(lease_id, first, 600_000, "a test"))
        await node.meta.write(put("k", b"2"))
        await world.sleep(4 * RETENTION_MS)
        assert read(node, "k", first) == b"1"
        assert node.meta.collector.status().holder is not None
        await node.meta.keep_house(end(lease_id))
        await world.until(lambda: len(stored(node, "k")) == 1, "what was held is collected", 3 * RETENTION_MS)

    scene(scenario)


def test_a_cluster_that_keeps_everything_keeps_everything() -> None:
    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        first = (await node.meta.write(put("k", b"1"))).ts
        await node.meta.write(put("k", b"2"))
        await world.sleep(40 * RETENTION_MS)
        assert read(node, "k", first) == b"1"

    scene(scenario, retention_ms=-1)


def test_replicas_hold_the_same_bytes_over_a_change_of_leader() -> None:
    async def scenario(world: World) -> None:
        await world.grow("n1", "n2", "n3")
        for i in range(40):
            await world.leader().meta.write(put(f"k{i % 4}", b"%d" % i))
        await world.sleep(RETENTION_MS)
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        for i in range(40):
            await leader.meta.write(put(f"k{i % 4}", b"again %d" % i))
        await world.places["n1"].start()
        await world.sleep(5 * RETENTION_MS)
        await world.settled()
        nodes = [place.node for place in world.places.values()]
        assert all_stored(nodes[0]) == all_stored(nodes[1]) == all_stored(nodes[2])
        assert [len(stored(nodes[0], f"k{i}")) for i in range(4)] == [1, 1, 1, 1]
        assert [node.meta.store.safepoints for node in nodes[1:]] == 2 * [nodes[0].meta.store.safepoints]

    scene(scenario)


def test_a_restart_refuses_what_was_refused_before() -> None:
    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        first = (await node.meta.write(put("k", b"1"))).ts
        await node.meta.write(put("k", b"2"))
        await world.until(lambda: len(stored(node, "k")) == 1, "it is collected", 4 * RETENTION_MS)
        safepoints = node.meta.store.safepoints
        world.places["n1"].crash()
        node = await world.places["n1"].start()
        assert node.meta.store.safepoints == safepoints
        with pytest.raises(SnapshotTooOld):
            read(node, "k", first)

    scene(scenario)


def test_a_clock_that_jumps_collects_nothing_that_is_young() -> None:
    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        world.places["n1"].wall_offset_ms = 45 * 365 * 86_400_000
        await world.sleep(100)
        first = (await node.meta.write(put("k", b"1"))).ts
        await node.meta.write(put("k", b"2"))
        await world.sleep(RETENTION_MS - 1_000)
        assert read(node, "k", first) == b"1"

    scene(scenario)


def test_a_table_without_writes_is_not_looked_at_again() -> None:
    async def scenario(world: World) -> None:
        [node] = await world.grow("n1")
        await asyncio.gather(*(node.meta.write(put(f"k{i}", b"v")) for i in range(100)))
        await world.sleep(5 * RETENTION_MS)
        assert node.meta.collector.status().pending == 0

    scene(scenario)
