"""A lease of the client: acquired once, kept alive beside its block, ended with it; a holder hears of its loss."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from cortado.errors import HoldExpired, InvalidArgument, NotLeader, SnapshotTooOld, Unsupported
from cortado.proto.v1 import collection_pb2 as pb
from cortado.proto.v1 import common_pb2
from cortado.store.client import Client, GcStatus, HoldInfo, Stale
from cortado.store.clock.timestamp import Timestamp
from support.faces import FACES, open_client
from support.fake_server import FakeServer, break_off, header, refuse
from support.server_process import wait_until

AT = Timestamp(0, 5_000, 7)


def acquired(request: pb.AcquireLeaseRequest, context: Any) -> pb.AcquireLeaseResponse:
    lease = pb.Lease(lease_id=request.lease_id, timestamp=common_pb2.Timestamp(wall_ms=AT.wall_ms, logical=AT.logical))
    return pb.AcquireLeaseResponse(header=header(), lease=lease)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().running() as running:
        running.handlers["Collection.AcquireLease"] = acquired
        running.handlers["Collection.KeepLease"] = lambda request, context: pb.KeepLeaseResponse(header=header())
        running.handlers["Collection.ReleaseLease"] = lambda request, context: pb.ReleaseLeaseResponse(
            header=header(), ended=True
        )
        yield running


@pytest.fixture(params=FACES)
def client(server: FakeServer, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint) as opened:
        yield opened


def test_it_is_kept_alive_for_its_block_and_ends_with_it(client: Client, server: FakeServer) -> None:
    with client.hold(label="a job", ttl_s=1) as lease:
        assert lease.timestamp == AT
        wait_until(lambda: len(server.calls("Collection.KeepLease")) >= 2, "it was kept alive twice")
    [asked] = server.calls("Collection.AcquireLease")
    [released] = server.calls("Collection.ReleaseLease")
    ids = {asked.lease_id, released.lease_id, *(each.lease_id for each in server.calls("Collection.KeepLease"))}
    assert ids == {bytes.fromhex(lease.hold_id)}
    assert (asked.ttl_ms, asked.label, asked.WhichOneof("at"), len(asked.request_id)) == (1_000, "a job", None, 20)
    kept = len(server.calls("Collection.KeepLease"))
    with pytest.raises(HoldExpired):
        _ = lease.timestamp
    with client.hold(ttl_s=1):
        wait_until(lambda: len(server.calls("Collection.KeepLease")) > kept, "another is kept alive")
    others = server.calls("Collection.KeepLease")[kept:]
    assert all(each.lease_id != asked.lease_id for each in others), "nobody keeps the first one any more"


def test_two_leases_have_two_ids(client: Client, server: FakeServer) -> None:
    with client.hold() as one, client.hold() as other:
        assert one.hold_id != other.hold_id


def test_a_lost_answer_is_asked_for_again_under_the_same_ids(client: Client, server: FakeServer) -> None:
    lost = [1]

    def answer(request: pb.AcquireLeaseRequest, context: Any) -> pb.AcquireLeaseResponse:
        if lost:
            lost.pop()
            break_off(context)
        return acquired(request, context)

    server.handlers["Collection.AcquireLease"] = answer
    with client.hold():
        first, again = server.calls("Collection.AcquireLease")
        assert first == again


def test_its_holder_hears_at_the_next_use_that_it_was_lost(client: Client, server: FakeServer) -> None:
    with client.hold(ttl_s=1) as lease:
        server.handlers["Collection.KeepLease"] = lambda request, context: refuse(
            context, HoldExpired(request.lease_id.hex())
        )

        def is_lost() -> bool:
            try:
                return not lease.timestamp
            except HoldExpired as lost:
                assert lost.hold_id == lease.hold_id
                return True

        wait_until(is_lost, "the holder hears of it")


def test_while_nobody_can_be_told_it_goes_on_telling(client: Client, server: FakeServer) -> None:
    with client.hold(ttl_s=1) as lease:
        server.handlers["Collection.KeepLease"] = lambda request, context: refuse(context, NotLeader("an election"))
        wait_until(lambda: len(server.calls("Collection.KeepLease")) >= 3, "it tries again")
        assert lease.timestamp == AT
        server.handlers["Collection.KeepLease"] = lambda request, context: pb.KeepLeaseResponse(header=header())
        count = len(server.calls("Collection.KeepLease"))
        wait_until(lambda: len(server.calls("Collection.KeepLease")) >= count + 2, "it has success again")
        assert lease.timestamp == AT


def test_a_block_ends_where_its_end_cannot_be_told(client: Client, server: FakeServer) -> None:
    server.handlers["Collection.ReleaseLease"] = lambda request, context: break_off(context)
    with client.with_timeout(1).hold():
        pass
    with pytest.raises(ZeroDivisionError), client.with_timeout(1).hold():
        _ = 1 / 0


def test_what_it_is_refused_with_is_raised(client: Client, server: FakeServer) -> None:
    server.handlers["Collection.AcquireLease"] = lambda request, context: refuse(
        context, SnapshotTooOld("0.1.0", "0.2.0")
    )
    with pytest.raises(SnapshotTooOld), client.hold("0.1.0"):
        pass
    assert server.calls("Collection.ReleaseLease") == []


def test_a_shared_one_is_found_by_all_who_say_the_same_and_outlives_their_blocks(
    client: Client, server: FakeServer
) -> None:
    alive: set[bytes] = set()

    def acquire(request: pb.AcquireLeaseRequest, context: Any) -> pb.AcquireLeaseResponse:
        alive.add(request.lease_id)
        return acquired(request, context)

    def keep(request: pb.KeepLeaseRequest, context: Any) -> pb.KeepLeaseResponse:
        if request.lease_id not in alive:
            refuse(context, HoldExpired(request.lease_id.hex()))
        return pb.KeepLeaseResponse(header=header())

    server.handlers |= {"Collection.AcquireLease": acquire, "Collection.KeepLease": keep}
    for kept in (2, 4):
        with client.hold(AT, label="a job", ttl_s=1, shared=True) as lease:
            assert lease.timestamp == AT
            wait_until(lambda least=kept: len(server.calls("Collection.KeepLease")) >= least, "it is kept alive")
    assert len(server.calls("Collection.AcquireLease")) == 1
    assert server.calls("Collection.ReleaseLease") == []
    alive.clear()
    with client.hold(str(AT), label="a job", ttl_s=1, shared=True) as again:
        assert again.hold_id == lease.hold_id
        assert len(server.calls("Collection.AcquireLease")) == 2, "one that has ended is acquired again"
    for other in ({"at": Timestamp(0, 5_000, 8)}, {"label": "another"}, {"ttl_s": 2}):
        different = client.hold(**{"at": AT, "label": "a job", "ttl_s": 1, "shared": True, **other})  # type: ignore[arg-type]
        assert different.hold_id != lease.hold_id


@pytest.mark.parametrize(
    ("at", "field", "value"),
    [
        (AT, "timestamp", common_pb2.Timestamp(wall_ms=5_000, logical=7)),
        ("0.5000.7", "timestamp", common_pb2.Timestamp(wall_ms=5_000, logical=7)),
        (datetime.fromtimestamp(5, UTC), "wall_ms", 5_000),
    ],
)
def test_it_may_be_at_any_time_that_can_be_read_at(
    client: Client, server: FakeServer, at: Any, field: str, value: Any
) -> None:
    with client.hold(at):
        [asked] = server.calls("Collection.AcquireLease")
        assert (asked.WhichOneof("at"), getattr(asked, field)) == (field, value)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"ttl_s": 0.9}, "ttl_s"),
        ({"ttl_s": 601}, "ttl_s"),
        ({"ttl_s": True}, "ttl_s"),
        ({"ttl_s": float("nan")}, "ttl_s"),
        ({"label": "x" * 201}, "label"),
        ({"label": 7}, "label"),
        ({"at": Stale(5)}, "at"),
        ({"shared": True}, "at"),
        ({"at": datetime.fromtimestamp(5, UTC), "shared": True}, "at"),
        ({"at": AT, "shared": 1}, "shared"),
        ({"at": 7}, "at"),
    ],
)
def test_wrong_arguments_are_named_before_anything_is_sent(
    client: Client, server: FakeServer, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        client.hold(**options)
    assert refused.value.field == field
    assert server.calls("Collection.AcquireLease") == []


def test_it_is_used_in_its_block_once_and_through_no_view(client: Client) -> None:
    lease = client.hold()
    with pytest.raises(Unsupported, match="outside of its block"):
        _ = lease.timestamp
    with lease, pytest.raises(Unsupported, match="entering a hold again"), lease:
        pass
    with pytest.raises(Unsupported, match="a hold through a view"):
        client.at(AT).hold()


def test_leases_are_listed_and_any_of_them_can_be_ended(client: Client, server: FakeServer) -> None:
    held = pb.Lease(
        lease_id=bytes(16),
        timestamp=common_pb2.Timestamp(wall_ms=1),
        ttl_ms=1_500,
        label="a job",
        acquired=common_pb2.Timestamp(wall_ms=2),
        silent_ms=250,
    )
    server.handlers["Collection.ListLeases"] = lambda request, context: pb.ListLeasesResponse(
        header=header(), leases=[held]
    )
    [found] = client.admin.gc.holds()
    assert found == HoldInfo("00" * 16, Timestamp(0, 1, 0), 1.5, "a job", Timestamp(0, 2, 0), 0.25)
    assert client.admin.gc.end_hold(found.hold_id)
    for wrong in ("", "00", "zz" * 16, "00" * 17):
        with pytest.raises(InvalidArgument, match="32 hexadecimal digits"):
            client.admin.gc.end_hold(wrong)


def test_how_far_back_reads_can_go_is_told_with_who_holds_it(client: Client, server: FakeServer) -> None:
    reply = pb.CollectionStatusResponse(
        header=header(),
        safepoint=common_pb2.Timestamp(wall_ms=5),
        retention_ms=-1,
        lag_ms=1_500,
        removed=7,
        pieces=3,
        pieces_pending=2,
        tables=[pb.TableSafepoint(table="shop.items", safepoint=common_pb2.Timestamp(wall_ms=4))],
    )
    server.handlers["Collection.Status"] = lambda request, context: reply
    tables = {"shop.items": Timestamp(0, 4, 0)}
    found = client.admin.gc.status()
    assert found == GcStatus(Timestamp(0, 5, 0), -1, 1.5, None, 7, 3, 2, tables)
    reply.holder.lease_id = bytes(16)
    holder = client.admin.gc.status().holder
    assert holder is not None
    assert holder.hold_id == "00" * 16


def test_a_run_returns_what_it_removed_at_its_end(client: Client, server: FakeServer) -> None:
    def go(request: Any, context: Any) -> Iterator[pb.RunCollectionResponse]:
        for removed, done in ((0, False), (5, False), (8, True)):
            yield pb.RunCollectionResponse(header=header(), removed=removed, done=done)

    server.handlers["Collection.Run"] = go
    assert client.admin.gc.run() == 8


def test_a_consumers_place_has_one_id_and_is_moved(client: Client, server: FakeServer) -> None:
    for at in (AT, str(AT)):
        client.admin.gc.advance_consumer("me", at, label="a stream", ttl_s=86_400, owner="stream 1")
    client.admin.gc.advance_consumer("another", None)
    mine, again, other = server.calls("Collection.AcquireLease")
    assert (mine.lease_id, mine.timestamp) == (again.lease_id, again.timestamp)
    assert (mine.consumer, mine.label, mine.ttl_ms, mine.HasField("timestamp")) == ("me", "a stream", 86_400_000, True)
    assert (other.consumer, other.ttl_ms, other.WhichOneof("at")) == ("another", 7 * 86_400_000, None)
    assert (mine.owner, other.owner) == ("stream 1", "")
    with pytest.raises(InvalidArgument, match="owner: must have at most 100 characters"):
        client.admin.gc.advance_consumer("me", AT, owner="x" * 101)
    assert other.lease_id != mine.lease_id
    for consumer, ttl_s in (("", 60), ("x" * 101, 60), ("me", 30 * 86_400 + 1), ("me", 0)):
        with pytest.raises(InvalidArgument):
            client.admin.gc.advance_consumer(consumer, AT, ttl_s=ttl_s)
    assert len(server.calls("Collection.AcquireLease")) == 3
