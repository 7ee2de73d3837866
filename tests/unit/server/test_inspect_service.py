"""Nodes of one group are inspected: each answers for itself, whoever leads, and not for what it has not applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.errors import InvalidArgument, ResourceExhausted, Unavailable, Unsupported
from cortado.proto.v1 import cluster_pb2, common_pb2, kv_pb2
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.server.cluster_service import ClusterService
from cortado.store.server.inspect_service import InspectService
from cortado.store.server.kv_service import KeyValueService
from support.node_world import World

PAIR = pb.ReadVersionsRequest(kv=pb.KvTarget(namespace="a", key=b"k"))


def test_every_node_answers_for_itself_and_alike() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2", "n3")
        put = kv_pb2.KvPutRequest(namespace="a", key=b"k", value=b"v")
        written = kv_pb2.KvPutResponse.FromString(await KeyValueService(nodes[0]).put(put)).header.timestamp
        await world.sleep(1_000)
        services = [InspectService(node) for node in nodes]
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
        service = InspectService(n1)
        later = common_pb2.Timestamp(wall_ms=n1.host.clock.now().wall_ms + 1_000)
        for call in (
            service.verify_range(pb.VerifyRangeRequest(up_to=later)),
            service.list_items(pb.ListItemsRequest(up_to=later)),
        ):
            with pytest.raises(Unavailable, match="has applied up to"):
                await call

    world.run(scenario)


def test_inspection_takes_a_place_among_the_scans() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        for _ in range(n1.host.limits.scans_max):
            n1.host.scans.enter()
        with pytest.raises(ResourceExhausted):
            await InspectService(n1).read_versions(PAIR)

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
