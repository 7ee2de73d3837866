"""Leases of real nodes: requests as they may come over the wire, and a holder whose leader is killed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import (
    AlreadyExists,
    HoldExpired,
    InvalidArgument,
    SnapshotTooOld,
    TimestampInFuture,
    TooLarge,
)
from cortado.proto.v1 import collection_pb2 as pb
from cortado.proto.v1 import common_pb2
from cortado.store.client import AsyncClient, Changed, Client
from cortado.store.clock.timestamp import Timestamp
from support.cluster import Cluster
from support.server_process import ServerProcess, running_server, wait_until
from support.wire import Wire, refused

pytestmark = pytest.mark.process

ID = os.urandom(16)
FUTURE = common_pb2.Timestamp(wall_ms=(1 << 48) - 1)


def held(client: Client) -> dict[str, str]:
    """Labels by ids."""
    return {each.hold_id: each.label for each in client.admin.gc.holds()}


# --- requests on the wire -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wire(server: ServerProcess) -> Wire:
    return Wire(server.endpoint)


@pytest.mark.parametrize(
    ("fields", "error", "field"),
    [
        ({"lease_id": b""}, InvalidArgument, "lease_id"),
        ({"lease_id": bytes(15)}, InvalidArgument, "lease_id"),
        ({"lease_id": bytes(60_000)}, InvalidArgument, "lease_id"),
        ({"ttl_ms": 999}, InvalidArgument, "ttl_ms"),
        ({"ttl_ms": 600_001}, InvalidArgument, "ttl_ms"),
        ({"ttl_ms": (1 << 32) - 1}, InvalidArgument, "ttl_ms"),
        ({"label": "ä" * 201}, InvalidArgument, "label"),
        ({"label": "x" * (70 << 10)}, TooLarge, "request"),
        ({"timestamp": FUTURE}, TimestampInFuture, "at"),
        ({"timestamp": common_pb2.Timestamp(epoch=1 << 16)}, InvalidArgument, "timestamp.epoch"),
        ({"wall_ms": 1 << 48}, InvalidArgument, "at.wall_ms"),
        ({"wall_ms": (1 << 48) - 1}, TimestampInFuture, "at"),
        ({"request_id": b"short"}, InvalidArgument, "request_id"),
    ],
)
def test_a_lease_that_may_not_be_so_is_refused_by_name(
    wire: Wire, client: Client, fields: dict[str, Any], error: type, field: str
) -> None:
    asked = pb.AcquireLeaseRequest(**{"lease_id": ID, **fields})
    refusal = refused(lambda: wire.collection.AcquireLease(asked, timeout=10))
    assert type(refusal) is error, refusal
    assert refusal.field == field  # type: ignore[attr-defined]
    assert ID.hex() not in held(client)


def test_one_that_there_is_not_is_not_kept_and_its_end_is_no_error(wire: Wire) -> None:
    missing = os.urandom(16)
    lost = refused(lambda: wire.collection.KeepLease(pb.KeepLeaseRequest(lease_id=missing), timeout=10))
    assert isinstance(lost, HoldExpired)
    assert lost.hold_id == missing.hex()
    assert not wire.collection.ReleaseLease(pb.ReleaseLeaseRequest(lease_id=missing), timeout=10).ended
    for wrong in (b"", bytes(17)):
        for call, request in (
            (wire.collection.KeepLease, pb.KeepLeaseRequest(lease_id=wrong)),
            (wire.collection.ReleaseLease, pb.ReleaseLeaseRequest(lease_id=wrong)),
        ):
            refusal = refused(lambda call=call, request=request: call(request, timeout=10))  # type: ignore[misc]
            assert isinstance(refusal, InvalidArgument)
            assert refusal.field == "lease_id"


def test_acquiring_again_has_the_first_answer_and_another_one_is_refused(wire: Wire) -> None:
    asked = pb.AcquireLeaseRequest(lease_id=os.urandom(16), ttl_ms=5_000, label="a job")
    first = wire.collection.AcquireLease(asked, timeout=10).lease
    again = wire.collection.AcquireLease(asked, timeout=10).lease
    assert (first.timestamp, first.acquired) == (again.timestamp, again.acquired)
    asked.timestamp.CopyFrom(first.timestamp)
    assert wire.collection.AcquireLease(asked, timeout=10).lease.timestamp == first.timestamp
    asked.label = "another job"
    refusal = refused(lambda: wire.collection.AcquireLease(asked, timeout=10))
    assert isinstance(refusal, AlreadyExists)
    assert wire.collection.ReleaseLease(pb.ReleaseLeaseRequest(lease_id=asked.lease_id), timeout=10).ended


# --- the client's --------------------------------------------------------------------------------------------------


def test_what_is_read_at_it_is_what_there_was_when_it_was_acquired(client: Client, database: str) -> None:
    pairs = client.kv(database)
    pairs.put(b"k", b"before")
    with client.hold(label="a reader") as lease:
        assert held(client)[lease.hold_id] == "a reader"
        pairs.put(b"k", b"after")
        assert client.at(lease.timestamp).kv(database).get(b"k").value == b"before"  # type: ignore[union-attr]
        with client.hold(lease.timestamp) as same:
            assert same.timestamp == lease.timestamp
    assert not held(client).keys() & {lease.hold_id, same.hold_id}


def test_it_is_there_for_asyncio_too(server: ServerProcess) -> None:
    async def scenario() -> None:
        async with AsyncClient(server.endpoint) as client:
            async with client.hold() as lease:
                assert lease.hold_id in [each.hold_id for each in await client.admin.gc.holds()]
            assert lease.hold_id not in [each.hold_id for each in await client.admin.gc.holds()]

    asyncio.run(scenario())


def test_a_lease_outlives_its_leader_who_was_killed_and_one_that_nobody_keeps_does_not(three_nodes: Cluster) -> None:
    cluster = three_nodes
    with Client(cluster.endpoints, timeout_s=20) as client:
        pairs = client.kv("leases")
        pairs.put(b"k", b"before")
        with client.hold(label="kept", ttl_s=3) as lease:
            wire = Wire(cluster.addresses[cluster.leader()])
            dead = pb.AcquireLeaseRequest(lease_id=os.urandom(16), ttl_ms=3_000, label="dead")
            wire.collection.AcquireLease(dead, timeout=20)
            pairs.put(b"k", b"after")
            leader = cluster.leader()
            cluster.kill(leader)
            cluster.leader(besides=[leader])
            # By then the renewed lease would have ended, too, without the renewals.
            wait_until(lambda: dead.lease_id.hex() not in held(client), "the lease that nobody keeps has ended")
            assert held(client)[lease.hold_id] == "kept"
            past = client.at(lease.timestamp).kv("leases").get(b"k")
            assert past is not None
            assert past.value == b"before"
            cluster.start(leader)
        assert lease.hold_id not in held(client)


# --- collection beside leases -------------------------------------------------------------------------------------


def test_what_is_leased_is_read_long_after_its_time_and_what_is_not_is_collected(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--retention", "1s") as server, Client(server.endpoint) as client:
        pairs = client.kv("kept")
        before = Timestamp.parse(pairs.put(b"k", b"before"))
        with client.hold(before, label="a reader", ttl_s=3) as lease:
            pairs.put(b"k", b"after")

            def is_held() -> bool:
                """By then the safepoint has come up to the lease, and waits."""
                found = client.admin.gc.status()
                return found.safepoint == before and found.holder is not None

            wait_until(is_held, "the lease holds the safepoint")
            found = client.admin.gc.status()
            assert found.holder is not None
            assert (found.holder.label, found.retention_ms) == ("a reader", 1_000)
            client.admin.gc.run()
            assert client.at(lease.timestamp).kv("kept").get(b"k").value == b"before"  # type: ignore[union-attr]

        def is_refused() -> bool:
            pairs.put(b"k", b"newer")
            client.admin.gc.run()
            try:
                return client.at(before).kv("kept").get(b"k") is None
            except SnapshotTooOld:
                return True

        wait_until(is_refused, "what is not leased any more is collected")
        wait_until(lambda: client.admin.gc.run() > 0 or client.admin.gc.status().removed > 0, "it is removed")
        with pytest.raises(SnapshotTooOld), client.hold(before):
            pass


def test_a_watch_that_begins_at_a_leased_timestamp_has_every_change_however_long_ago(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "node", "--retention", "1s") as server,
        Client(server.endpoint) as client,
    ):
        pairs = client.kv("feed")
        with client.hold(label="a slow consumer") as lease:
            for number in range(5):
                pairs.put(b"k", b"%d" % number)
            wait_until(lambda: client.admin.gc.status().safepoint >= lease.timestamp, "all but that may go")
            client.admin.gc.run()
            with pairs.watch(after=lease.timestamp, until=client.now()) as late:
                seen = [event.value for event in late if isinstance(event, Changed)]
            assert seen == [b"%d" % number for number in range(5)]
            began = lease.timestamp
        wait_until(lambda: client.admin.gc.status().safepoint > began, "it goes on")
        with pytest.raises(SnapshotTooOld), pairs.watch(after=began, until=client.now()) as late:
            list(late)
