"""A cluster that takes a backup serves no caller, through changes of leaders and restarts, and then all of it at
once."""

from __future__ import annotations

import asyncio
import zlib
from contextlib import aclosing

import pytest

from cortado.errors import DataLoss, InvalidArgument, NotFound, NotLeader, Restoring, SnapshotTooOld
from cortado.proto.v1 import backups_pb2 as pb
from cortado.proto.v1 import common_pb2, kv_pb2, tables_pb2, watch_pb2
from cortado.store.backup.runs import Run, decode_run
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.keys.keyspace import kv_key, kv_range, meta_key
from cortado.store.replica.controls import epoch_after
from cortado.store.server.backups_service import BackupsService
from cortado.store.server.convert import timestamp_message, timestamp_value
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.restores_service import RestoresService
from cortado.store.server.tables_service import TablesService
from cortado.store.server.watch_service import WatchService
from support.node_world import World

AT, SINCE, NAME = Timestamp(0, 50, 7), Timestamp(0, 20, 0), "one"
BEGIN = pb.BeginRestoreRequest(
    restore_id=NAME, timestamp=timestamp_message(AT), readable_from=timestamp_message(SINCE), parts=2
)
OLD, NEW, GONE = Timestamp(0, 10, 0), Timestamp(0, 40, 3), Timestamp(0, 45, 0)
FIRST = Run([kv_key("n", b"a")] * 2, [bytes(NEW), bytes(OLD)], [b"Pnew", b"Pold"])
SECOND = Run([kv_key("n", b"b")] * 2, [bytes(GONE), bytes(OLD)], [b"D", b"Pgone"])


def puts(run: Run, part_done: int | None = None, restore_id: str = NAME) -> pb.PutRestoreRequest:
    body = run.encode()
    return pb.PutRestoreRequest(restore_id=restore_id, run=body, checksum=zlib.crc32(body), part_done=part_done)


async def restored(node: Host) -> RestoresService:
    """Put all rows, and do not end the restore."""
    service = RestoresService(node)
    await service.begin(BEGIN)
    await service.put(puts(FIRST, 0))
    await service.put(puts(SECOND, 1))
    return service


async def value(node: Host, key: bytes, at: Timestamp | None = None) -> bytes | None:
    request = kv_pb2.KvGetRequest(namespace="n", key=key)
    if at is not None:
        request.at.timestamp.CopyFrom(timestamp_message(at))
    reply = await KeyValueService(node).get(request)
    return reply.pair.value if reply.HasField("pair") else None


PUT = kv_pb2.KvPutRequest(namespace="n", key=b"mine", value=b"1")


async def served_nothing(node: Host) -> None:
    """Check that every caller is refused."""
    asked = [
        KeyValueService(node).get(kv_pb2.KvGetRequest(namespace="n", key=b"a")),
        KeyValueService(node).get(kv_pb2.KvGetRequest(namespace="n", key=b"a", at=common_pb2.ReadAt(stale_ms=100_000))),
        KeyValueService(node).put(PUT),
        TablesService(node).create_database(tables_pb2.CreateDatabaseRequest(database="shop")),
        TablesService(node).list_tables(tables_pb2.ListTablesRequest()),
        BackupsService(node).plan(pb.PlanBackupRequest()),
        anext(WatchService(node).key_value(watch_pb2.WatchKeyValueRequest(namespace="n"))),
        node.meta.write(epoch_after(0)),
    ]
    for each in asked:
        with pytest.raises((Restoring, NotLeader)) as refused:
            await each
        if node.meta.driver.leadership.is_ready:
            assert isinstance(refused.value, Restoring)
            assert (refused.value.restore_id, refused.value.timestamp) == (NAME, str(AT))


def test_versions_are_back_at_their_own_timestamps_and_below_the_safepoint_nothing_is_read() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        service = await restored(n1)
        await served_nothing(n1)
        assert node_status(n1).state == f"restoring: the backup of {AT}, 2 of 2 parts"
        await service.end(pb.EndRestoreRequest(restore_id=NAME))
        assert node_status(n1).state == "serving"
        assert (await value(n1, b"a"), await value(n1, b"b")) == (b"new", None)
        assert (await value(n1, b"a", SINCE), await value(n1, b"b", SINCE)) == (b"old", b"gone")
        with pytest.raises(SnapshotTooOld):
            await value(n1, b"a", OLD)
        reply = kv_pb2.KvPutResponse.FromString(await KeyValueService(n1).put(PUT))
        assert reply.header.timestamp.wall_ms > AT.wall_ms

    world.run(scenario)


def test_every_member_refuses_through_changes_of_leaders_and_restarts_and_any_goes_on() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        await RestoresService(n1).begin(BEGIN)
        await RestoresService(n1).put(puts(FIRST, 0))
        await world.settled()
        for node in (n1, n2, n3):
            await served_nothing(node)
            assert (await RestoresService(node).status(pb.RestoreStatusRequest())).state.parts_done == [0]
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        await served_nothing(leader)
        begun = await RestoresService(leader).begin(BEGIN)
        assert begun.state.parts_done == [0]
        await RestoresService(leader).put(puts(FIRST))
        await RestoresService(leader).put(puts(SECOND, 1))
        back = await world.places["n1"].start()
        await world.settled()
        await served_nothing(back)
        await RestoresService(leader).end(pb.EndRestoreRequest(restore_id=NAME))
        await world.settled()
        for node in (leader, back):
            assert await value(node, b"a", AT) == b"new"

    world.run(scenario)


def test_a_cluster_that_ever_held_something_is_refused_by_its_name() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await KeyValueService(n1).put(PUT)
        await KeyValueService(n1).delete(kv_pb2.KvDeleteRequest(namespace="n", key=b"mine"))
        with pytest.raises(InvalidArgument, match=r"has versions of kv .*b'mine'"):
            await RestoresService(n1).begin(BEGIN)

    world.run(scenario)


def test_what_is_written_while_a_restore_begins_is_not_overlooked() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        beginning = asyncio.ensure_future(RestoresService(n1).begin(BEGIN))
        writing = asyncio.ensure_future(KeyValueService(n1).put(PUT))
        begun, written = await asyncio.gather(beginning, writing, return_exceptions=True)
        assert isinstance(begun, InvalidArgument) != isinstance(written, Restoring)

    world.run(scenario)


def test_what_is_put_late_or_twice_changes_nothing() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        service = await restored(n1)
        with pytest.raises(Restoring):
            await service.put(puts(FIRST, restore_id="other"))
        await service.put(puts(FIRST, 0))
        await service.end(pb.EndRestoreRequest(restore_id=NAME))
        assert (await service.end(pb.EndRestoreRequest(restore_id=NAME))).ended == NAME
        with pytest.raises(NotFound):
            await service.put(puts(SECOND, 1))
        again = await service.begin(BEGIN)
        assert (again.ended, again.HasField("state")) == (NAME, False)
        await KeyValueService(n1).put(PUT)

    world.run(scenario)


def test_a_restore_ends_only_when_all_is_there() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        service = RestoresService(n1)
        with pytest.raises(NotFound):
            await service.end(pb.EndRestoreRequest(restore_id=NAME))
        await service.begin(BEGIN)
        await service.put(puts(FIRST, 0))
        with pytest.raises(InvalidArgument, match="has 1 parts that are not there yet"):
            await service.end(pb.EndRestoreRequest(restore_id=NAME))
        other = pb.BeginRestoreRequest(restore_id="other", timestamp=timestamp_message(AT), parts=1)
        with pytest.raises(Restoring):
            await service.begin(other)

    world.run(scenario)


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (Run([kv_key("n", b"a")], [bytes(AT.next())], [b"P"]), "must have versions up to 0.50.7 alone"),
        (Run([meta_key("gc")], [bytes(OLD)], [b"P"]), "must have keys that a backup holds"),
        (
            Run([meta_key("catalog"), meta_key("gc")], [bytes(OLD)] * 2, [b"P"] * 2),
            "must have keys that a backup holds",
        ),
    ],
)
def test_what_no_backup_holds_is_not_put(run: Run, problem: str) -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await RestoresService(n1).begin(BEGIN)
        with pytest.raises(InvalidArgument, match=problem):
            await RestoresService(n1).put(puts(run))
        damaged = puts(FIRST)
        damaged.checksum += 1
        with pytest.raises(DataLoss, match="arrived with a wrong checksum"):
            await RestoresService(n1).put(damaged)

    world.run(scenario)


def test_a_clock_at_or_below_the_backup_is_refused() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        request = pb.BeginRestoreRequest(restore_id=NAME, timestamp=common_pb2.Timestamp(epoch=3), parts=1)
        with pytest.raises(InvalidArgument, match=r"is above the cluster's clock, .*: begin an epoch first"):
            await RestoresService(n1).begin(request)

    world.run(scenario)


def test_one_that_is_abandoned_leaves_an_empty_cluster() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        service = await restored(n1)
        abandon = pb.AbandonRestoreRequest(restore_id=NAME)
        assert (await service.abandon(abandon)).state.is_abandoned
        with pytest.raises(InvalidArgument, match="is being abandoned"):
            await service.put(puts(FIRST))
        while (await service.abandon(abandon)).HasField("state"):
            await served_nothing(n1)
        assert (await value(n1, b"a"), await value(n1, b"b")) == (None, None)
        begun = await service.begin(BEGIN)
        assert list(begun.state.parts_done) == []

    world.run(scenario)


def test_a_watch_ends_when_a_restore_begins_and_is_not_told_of_what_is_restored() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        request = watch_pb2.WatchKeyValueRequest(namespace="n")
        async with aclosing(WatchService(n1).key_value(request)) as stream:
            told = asyncio.ensure_future(anext(stream))
            await world.sleep(10)
            await RestoresService(n1).begin(BEGIN)
            middle = n1.meta.read_ts()
            service = await restored(n1)
            with pytest.raises(Restoring):
                while True:
                    await told
                    told = asyncio.ensure_future(anext(stream))
        await service.end(pb.EndRestoreRequest(restore_id=NAME))
        request.options.after.timestamp.CopyFrom(timestamp_message(middle))
        async with aclosing(WatchService(n1).key_value(request)) as stream:
            reply = watch_pb2.WatchKeyValueResponse()
            while timestamp_value(reply.resolved) < n1.meta.read_ts():
                reply = watch_pb2.WatchKeyValueResponse.FromString(await anext(stream))
                assert not reply.changes

    world.run(scenario)


def test_what_was_put_is_read_back_before_it_is_served() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await restored(n1)
        start, end = kv_range("n")
        request = pb.ReadBackupRequest(
            start=start,
            end=end,
            at=common_pb2.ReadAt(timestamp=timestamp_message(AT)),
            since=timestamp_message(ZERO),
            history=True,
            restore_id=NAME,
        )
        replies = [pb.ReadBackupResponse.FromString(each) async for each in BackupsService(n1).read(request)]
        runs = [decode_run(each.run, "a reply") for each in replies]
        assert [value for run in runs for value in run.values] == [*FIRST.values, *SECOND.values]
        request.restore_id = "other"
        with pytest.raises(NotFound):
            await anext(BackupsService(n1).read(request))

    world.run(scenario)


def test_nothing_is_collected_before_all_is_back() -> None:
    """A delete that was put, and could go, still hides the older version that is put after it."""
    world = World(retention_ms=1_000)

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        service = RestoresService(n1)
        begin = pb.BeginRestoreRequest(restore_id=NAME, timestamp=timestamp_message(AT), parts=2)
        await service.begin(begin)
        key = kv_key("n", b"b")
        await service.put(puts(Run([key], [bytes(GONE)], [b"D"]), 0))
        await world.sleep(100_000)
        await service.put(puts(Run([key], [bytes(OLD)], [b"Pgone"]), 1))
        await service.end(pb.EndRestoreRequest(restore_id=NAME))
        await world.sleep(100_000)
        assert await value(n1, b"b") is None

    world.run(scenario)


def test_a_watch_from_within_the_history_is_told_of_it_in_its_order() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await world.sleep(1_000)
        now = n1.process.clock.now()
        times = [Timestamp(now.epoch, now.wall_ms - ms, 0) for ms in (300, 200, 100, 1)]
        service = RestoresService(n1)
        begin = pb.BeginRestoreRequest(restore_id=NAME, timestamp=timestamp_message(times[3]), parts=2)
        await service.begin(begin)
        await service.put(puts(Run([kv_key("n", b"later")], [bytes(times[2])], [b"P"]), 0))
        await service.put(puts(Run([kv_key("n", b"sooner")], [bytes(times[1])], [b"P"]), 1))
        await service.end(pb.EndRestoreRequest(restore_id=NAME))
        request = watch_pb2.WatchKeyValueRequest(namespace="n")
        request.options.after.timestamp.CopyFrom(timestamp_message(times[0]))
        told: list[bytes] = []
        async with aclosing(WatchService(n1).key_value(request)) as stream:
            reply = watch_pb2.WatchKeyValueResponse()
            while timestamp_value(reply.resolved) < n1.meta.read_ts():
                reply = watch_pb2.WatchKeyValueResponse.FromString(await anext(stream))
                told += [change.key for change in reply.changes]
        assert told == [b"sooner", b"later"]

    world.run(scenario)
