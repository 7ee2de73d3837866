"""A large transaction beside a repair of its table's indexes, in a table with rows that expire, and in a cluster that
is to take a backup."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument
from cortado.proto.v1 import backups_pb2, tables_pb2
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import index_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.server.convert import timestamp_message
from cortado.store.server.large_transactions_service import LargeTransactionsService
from cortado.store.server.restores_service import RestoresService
from cortado.store.server.tables_service import TablesService
from support.large_transactions import LONG, A, Scene, committed_at, nothing_put_in_place
from support.node_world import World

ROWS = [(1, 10, 0), (2, 20, 0), (3, 30, 0)]
TTL_MS = 60_000


async def delete_entries(scene: Scene, number: int, count: int) -> list[LogicalKey]:
    """Delete the first entries of an index, as damage would."""
    gone: list[LogicalKey] = []

    def evaluate(reader: Reader, _ts: Timestamp) -> Evaluation:
        gone[:] = [key for key, _ in reader.scan(*index_range(scene.table_id, number, LONG))][:count]
        mutations = Mutations()
        for key in gone:
            mutations.delete(key)
        return Evaluation(mutations, None)

    await scene.node.meta.write(evaluate)
    return gone


async def checked(node: Host) -> tables_pb2.CheckTableResponse:
    """Return the last reply of a check with repair."""
    request = tables_pb2.CheckTableRequest(database="d", name="t", repair=True)
    replies = [each async for each in TablesService(node).check_table(request)]
    return tables_pb2.CheckTableResponse.FromString(b"".join(replies))


async def alter(node: Host, ttl_ms: int) -> None:
    await TablesService(node).alter_table(tables_pb2.AlterTableRequest(database="d", name="t", ttl_ms=ttl_ms))


def test_a_repair_leaves_what_is_staged_and_puts_the_others_right() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        scene = await Scene.make(n1)
        await scene.load(ROWS)
        await delete_entries(scene, 1, 3)
        await scene.begin()
        await scene.stage([(1, 11, 5)])
        reply = await checked(n1)
        assert (len(reply.problems), reply.repaired, reply.left) == (3, 2, 1)
        await scene.commit()
        await scene.resolved()
        assert (await checked(n1)).problems == []
        assert await scene.rows() == [(1, 11, 5), *ROWS[1:]]

    world.run(scenario)


def test_a_repair_beside_an_open_transaction_leaves_what_that_stages() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        scene = await Scene.make(n1)
        await scene.load(ROWS)
        await scene.begin()
        await scene.stage([(3, 33, 9), (7, 70, 7)])
        await delete_entries(scene, 1, 2)
        reply = await checked(n1)
        assert (reply.repaired, reply.left) == (2, 0)
        await scene.commit()
        await scene.resolved()
        assert (await checked(n1)).problems == []
        assert await scene.rows() == [*ROWS[:2], (3, 33, 9), (7, 70, 7)]

    world.run(scenario)


def test_a_repair_between_a_commit_and_its_rows_places_sees_what_is_committed() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        scene = await Scene.make(n1)
        await scene.load(ROWS)
        await delete_entries(scene, 2, 2)
        await scene.begin()
        await scene.stage([(1, 11, 5), (7, 70, 7)])
        with nothing_put_in_place() as release:
            await scene.commit()
            await checked(n1)
            assert (await checked(n1)).problems == []
            release.set()
            await scene.resolved()
        assert (await checked(n1)).problems == []
        assert await scene.rows() == [(1, 11, 5), *ROWS[1:], (7, 70, 7)]

    world.run(scenario)


def test_rows_of_a_large_transaction_expire_with_their_entries_at_one_time() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        scene = await Scene.make(n1)
        await scene.load(ROWS)
        await alter(n1, TTL_MS)
        await scene.begin(ttl_ms=300_000)
        await scene.stage([(1, 11, 1), (7, 70, 7)])
        with nothing_put_in_place() as release:
            ts = committed_at(await scene.commit())
            assert await scene.rows() == [(1, 11, 1), *ROWS[1:], (7, 70, 7)]
            await world.sleep(TTL_MS)
            await scene.put((9, 90, 9))
            assert await scene.rows() == [*ROWS[1:], (9, 90, 9)]
            release.set()
            await scene.resolved()
        assert await scene.rows() == [*ROWS[1:], (9, 90, 9)]
        assert await scene.rows(ts) == [(1, 11, 1), *ROWS[1:], (7, 70, 7)]
        await scene.load([(4, 70, 4)])
        assert (await checked(n1)).problems == []

    world.run(scenario)


def test_the_time_of_rows_counts_from_when_they_are_staged() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        scene = await Scene.make(n1)
        await alter(n1, TTL_MS)
        await scene.begin(ttl_ms=300_000)
        await scene.stage(ROWS[:2])
        await world.sleep(TTL_MS)
        await scene.stage(ROWS[2:], task=1)
        await scene.commit(attempts=[(0, 0), (1, 0)])
        assert await scene.rows() == ROWS[2:]
        await scene.resolved()
        assert await scene.rows() == ROWS[2:]
        await scene.load([(8, 10, 8)])
        assert (await checked(n1)).problems == []

    world.run(scenario)


def test_no_large_transaction_begins_without_a_table_and_none_beside_a_restore() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        calls = LargeTransactionsService(n1)
        with pytest.raises(InvalidArgument, match="tables"):
            await calls.begin(pb.BeginLargeTransactionRequest(transaction_id=A))
        scene = await Scene.make(n1)
        await scene.begin()
        restores = RestoresService(n1)
        begin = backups_pb2.BeginRestoreRequest(
            parts=1, restore_id="r", timestamp=timestamp_message(n1.meta.applied.last_ts)
        )
        with pytest.raises(InvalidArgument, match="must never have held anything"):
            await restores.begin(begin)
        await scene.stage(ROWS)
        await scene.commit()
        await scene.resolved()
        assert await scene.rows() == ROWS

    world.run(scenario)
