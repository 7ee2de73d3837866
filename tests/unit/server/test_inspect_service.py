"""Nodes of one group are inspected: each answers for itself, under any leader, and not for entries that it has not
applied."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument, ResourceExhausted, Unavailable, Unsupported
from cortado.proto.v1 import cluster_pb2, common_pb2, kv_pb2
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.log_files.segments import segment_name
from cortado.store.server.cluster_service import ClusterService
from cortado.store.server.inspect_service import InspectService
from cortado.store.server.kv_service import KeyValueService
from support.inspected import flipped
from support.log_disk import LogDisk
from support.node_world import World

PAIR = pb.ReadVersionsRequest(kv=pb.KvTarget(namespace="a", key=b"k"))


def service_of(world: World, node: Host) -> InspectService:
    return InspectService(node, lambda: world.places[node.process.identity.node_id].log_disk)


def test_every_node_answers_for_itself_and_alike() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2", "n3")
        put = kv_pb2.KvPutRequest(namespace="a", key=b"k", value=b"v")
        written = kv_pb2.KvPutResponse.FromString(await KeyValueService(nodes[0]).put(put)).header.timestamp
        await world.sleep(1_000)
        services = [service_of(world, node) for node in nodes]
        versions = [await each.read_versions(PAIR) for each in services]
        assert [reply.header.node_id for reply in versions] == ["n1", "n2", "n3"]
        assert len({reply.versions[0].SerializeToString() for reply in versions}) == 1
        digests = [await each.verify_range(pb.VerifyRangeRequest(up_to=written)) for each in services]
        assert {(reply.digest_items, reply.digest) for reply in digests} == {(1, digests[0].digest)}
        logs = [await each.read_log(pb.ReadLogRequest()) for each in services]
        assert len({reply.state.applied_index for reply in logs}) == 1
        [change] = logs[2].entries[-1].commands[0].changes
        assert change.key.text.startswith("kv (\"a\", b'k') @")

    world.run(scenario)


def test_a_node_does_not_speak_for_a_time_that_it_has_not_applied() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        service = service_of(world, n1)
        later = common_pb2.Timestamp(wall_ms=n1.process.clock.now().wall_ms + 1_000)
        for call in (
            service.verify_range(pb.VerifyRangeRequest(up_to=later)),
            service.list_items(pb.ListItemsRequest(up_to=later)),
        ):
            with pytest.raises(Unavailable, match="has applied up to"):
                await call

    world.run(scenario)


def test_the_log_is_read_from_memory_as_far_as_it_is_durable() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        put = kv_pb2.KvPutRequest(namespace="a", key=b"k", value=b"v")
        await KeyValueService(n1).put(put)
        service, disk = service_of(world, n1), world.places["n1"].disk
        before = (await service.read_log(pb.ReadLogRequest())).state
        disk.hold()
        writing = asyncio.ensure_future(KeyValueService(n1).put(put))
        await world.until(lambda: node_status(n1).last_index > before.last_index, "it is in the log")
        reply = await service.read_log(pb.ReadLogRequest())
        assert (reply.state.last_index, reply.entries[-1].index) == (before.last_index, before.last_index)
        disk.release()
        await writing
        reply = await service.read_log(pb.ReadLogRequest())
        assert reply.state.last_index == reply.entries[-1].index == before.last_index + 1
        assert [each.index for each in reply.entries] == list(range(reply.state.first_index, before.last_index + 2))
        part = pb.ReadLogRequest(from_index=before.last_index, to_index=before.last_index + 1)
        assert [each.index for each in (await service.read_log(part)).entries] == [before.last_index]

    world.run(scenario)


def test_what_the_log_let_go_of_is_not_shown() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        window = n1.meta.log.window
        put = kv_pb2.KvPutRequest(namespace="a", key=b"k", value=b"v")
        for _ in range(5):
            await KeyValueService(n1).put(put)
        await n1.meta.reads.caught_up()
        window.compact(n1.meta.applied.index - 1)
        state = (await service_of(world, n1).read_log(pb.ReadLogRequest())).state
        assert state.base_index == window.base[0]
        assert state.first_index in (0, state.base_index + 1)

    world.run(scenario)


def test_the_log_files_of_a_node_that_runs_are_verified_beside_it() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        service = service_of(world, n1)
        request = pb.VerifyRangeRequest(space=pb.STORED_SPACE_LOG)
        reply = await service.verify_range(request)
        assert (list(reply.problems), reply.resume) == ([], b"")
        assert reply.bytes == n1.process.log_files.durable_end[1]
        disk, name = world.places["n1"].log_disk, segment_name(1)
        rotten = LogDisk({name: bytearray(flipped(disk.read(name, 0, disk.size(name)), 100))})
        [problem] = (await InspectService(n1, lambda: rotten).verify_range(request)).problems
        assert (problem.kind, problem.key.text) == ("CHECKSUM", "log file 0000000000000001 byte 96")

    world.run(scenario)


def test_inspection_takes_a_place_among_the_scans() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        for _ in range(n1.process.limits.scans_max):
            n1.process.scans.enter()
        with pytest.raises(ResourceExhausted):
            await service_of(world, n1).read_versions(PAIR)

    world.run(scenario)


def test_a_node_rebuilds_itself_alone_and_only_where_another_has_a_copy() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        service = ClusterService(n1, Path(), state=lambda: "")
        with pytest.raises(InvalidArgument, match="this is node n1"):
            await service.rebuild_replica(cluster_pb2.RebuildReplicaRequest(node_id="n2"))
        with pytest.raises(Unsupported, match="no other member has a copy"):
            await service.rebuild_replica(cluster_pb2.RebuildReplicaRequest(node_id="n1"))

    world.run(scenario)
