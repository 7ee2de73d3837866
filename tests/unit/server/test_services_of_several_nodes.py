"""Services on nodes of one group. Writes that the leader has acknowledged are seen by the next call. Followers name the
leader, or serve reads that need not be the newest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortado.errors import NotLeader, OutcomeUnknown, Unavailable
from cortado.proto.v1 import cluster_pb2, common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.replica.controls import epoch_after
from cortado.store.server.cluster_service import ClusterService
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from support.node_world import World

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}'
TABLE = documents_pb2.TableName(database="d", table="t")


def stale(ms: int) -> common_pb2.ReadAt:
    return common_pb2.ReadAt(stale_ms=ms)


def chunk(sequence: int, *ids: str) -> documents_pb2.BulkRequest:
    rows = [f'{{"id": "{each}"}}' for each in ids]
    return documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=sequence, json_rows=rows))


def test_followers_serve_stale_reads_and_times_that_are_closed_and_send_others_to_the_leader() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        written = kv_pb2.KvPutResponse.FromString(
            await KeyValueService(n1).put(kv_pb2.KvPutRequest(namespace="a", key=b"k", value=b"v"))
        )
        await world.sleep(1_000)
        follower = KeyValueService(n2)
        for at in (stale(500), common_pb2.ReadAt(timestamp=written.header.timestamp)):
            found = await follower.get(kv_pb2.KvGetRequest(namespace="a", key=b"k", at=at))
            assert (found.pair.value, found.header.node_id) == (b"v", "n2")
            assert (found.header.region_id, found.header.region_epoch) == (1, 1)
        with pytest.raises(NotLeader) as elsewhere:
            await follower.get(kv_pb2.KvGetRequest(namespace="a", key=b"k"))
        assert elsewhere.value.leader == "n1.test:7621"
        world.cut_off("n2")
        await world.sleep(1_000)
        with pytest.raises(Unavailable, match="stale"):
            await follower.get(kv_pb2.KvGetRequest(namespace="a", key=b"k", at=stale(500)))

    world.run(scenario)


def test_what_was_acknowledged_of_the_catalogue_is_there_for_the_next_call() -> None:
    """Acknowledged is committed, and applied a little later: here it takes its time."""
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        tables, schemas, documents = TablesService(n1), SchemasService(n1), DocumentsService(n1)
        await tables.create_database(tables_pb2.CreateDatabaseRequest(database="d"))
        assert list((await tables.list_databases(tables_pb2.ListDatabasesRequest())).databases) == ["d"]
        await schemas.register(schemas_pb2.RegisterSchemaRequest(subject="s", schema=SCHEMA))
        await tables.create_table(
            tables_pb2.CreateTableRequest(database="d", name="t", subject="s", key=[tables_pb2.KeyPart(path="id")])
        )

        async def requests() -> AsyncIterator[documents_pb2.BulkRequest]:
            yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=TABLE))
            yield chunk(1, "a", "b")
            yield chunk(2, "c")

        written = [documents_pb2.BulkResponse.FromString(reply).written async for reply in documents.bulk(requests())]
        assert written == [2, 1]
        request = documents_pb2.ScanRequest(table=TABLE, format=common_pb2.DOCUMENT_FORMAT_JSON)
        replies = [documents_pb2.ScanResponse.FromString(reply) async for reply in documents.scan(request)]
        assert sum(len(reply.json_rows) for reply in replies) == 3

    world.run(scenario)


def test_a_bulk_stream_ends_with_what_is_known_of_its_chunks_when_leadership_is_lost() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        tables, schemas, documents = TablesService(n1), SchemasService(n1), DocumentsService(n1)
        await tables.create_database(tables_pb2.CreateDatabaseRequest(database="d"))
        await schemas.register(schemas_pb2.RegisterSchemaRequest(subject="s", schema=SCHEMA))
        await tables.create_table(
            tables_pb2.CreateTableRequest(database="d", name="t", subject="s", key=[tables_pb2.KeyPart(path="id")])
        )
        await world.settled()
        answered = 0

        async def requests() -> AsyncIterator[documents_pb2.BulkRequest]:
            yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=TABLE))
            yield chunk(1, "a")
            await world.until(lambda: answered == 1, "the first chunk is answered")
            world.cut_off("n1")
            yield chunk(2, "b")
            yield chunk(3, "c")
            await asyncio.sleep(60)

        async def load() -> None:
            nonlocal answered
            async for _ in documents.bulk(requests()):
                answered += 1

        with pytest.raises((OutcomeUnknown, NotLeader)):
            await load()
        assert answered == 1
        use = {each.name: each.count for each in node_status(n1).queues}
        assert (use["writes"], use["bulk streams"]) == (0, 0)

    world.run(scenario)


def test_who_is_asked_for_the_time_moves_no_clock_and_the_leader_alone_answers_for_request_ids() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _n3 = await world.grow("n1", "n2", "n3")
        await world.sleep(60_000)
        for node in (n1, n2):
            last = node.process.clock.last
            reply = await _cluster(node).clock(cluster_pb2.ClockRequest())
            assert reply.now.wall_ms > last.wall_ms  # type: ignore[attr-defined]
            assert node.process.clock.last == last
        assert (await _cluster(n1).clock(cluster_pb2.ClockRequest(at_leader=True))).IsInitialized()
        with pytest.raises(NotLeader, match="only the leader's time will do") as refused:
            await _cluster(n2).clock(cluster_pb2.ClockRequest(at_leader=True))
        assert refused.value.leader == n1.process.identity.address

    world.run(scenario)


def test_a_member_that_fell_silent_is_down_and_nobody_knows_what_it_is_behind() -> None:
    world = World()

    async def scenario() -> None:
        n1, *_ = await world.grow("n1", "n2", "n3")

        async def told() -> dict[str, tuple[bool, int]]:
            reply = await _cluster(n1).members(cluster_pb2.MembersRequest(at_leader=True))
            return {each.node_id: (each.down, each.behind) for each in reply.members}  # type: ignore[attr-defined]

        assert await told() == {"n1": (False, 0), "n2": (False, 0), "n3": (False, 0)}
        world.places["n3"].crash()
        await n1.meta.write(epoch_after(0))
        await world.sleep(n1.process.raft.election_ms_max + 2 * n1.process.raft.heartbeat_ms)
        assert await told() == {"n1": (False, 0), "n2": (False, 0), "n3": (True, 0)}
        await world.places["n3"].start()
        await world.settled()
        await world.sleep(2 * n1.process.raft.heartbeat_ms)
        assert await told() == {"n1": (False, 0), "n2": (False, 0), "n3": (False, 0)}

    world.run(scenario)


def _cluster(node: Host) -> ClusterService:
    return ClusterService(node, Path("data"), state=lambda: "serving")
