"""The side that has the state: one snapshot for all, made beside writes, and never from damaged data."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cortado.errors import DataLoss, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from cortado.raft.log import PeerProgress
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.mvcc.damage import Damage
from cortado.store.process.snapshot_files import SnapshotFiles
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.file_reader import Verification, WholeFile
from cortado.store.replica.snapshots.file_writer import SnapshotWriter
from support.engines import open_lmdb
from support.memory_snapshot_files import MemorySnapshotFiles
from support.nodes import run
from support.snapshots import (
    CLUSTER,
    MEMBERS,
    SMALL,
    CountingEngine,
    Network,
    Replica,
    contents,
    fill,
    is_gone,
    offer,
    read_all,
    stop_all,
    until,
)


def leader(rows: int = 200, index: int = 50, network: Network | None = None) -> Replica:
    replica = Replica(network or Network(), "n1")
    fill(replica.engine, index=index, rows=rows)
    return replica


def heard(name: str, ms: float) -> PeerProgress:
    return PeerProgress(name, True, 0, ms, True, None)


def verified(files: SnapshotFiles, name: str) -> WholeFile:
    verification = Verification(files, name, META_GROUP, cluster_id=CLUSTER, slice_bytes=3_000)
    while (whole := verification.step()) is None:
        pass
    return whole


def test_two_members_in_need_share_one_snapshot() -> None:
    async def scenario() -> None:
        sender = leader()
        sender.log.snapshot_needs = ("n2", "n3")
        await until(lambda: len(sender.log.offered) == 2, sender)
        (first, meta), (second, same) = sender.log.offered
        assert (first, second) == ("n2", "n3")
        assert meta is same
        assert (meta.index, meta.term, meta.roster) == (50, 3, MEMBERS)
        assert len(await read_all(sender, meta.snapshot_id)) == meta.size_bytes
        for _ in range(20):
            sender.poll()
        assert len(sender.log.offered) == 2, "an offer is repeated by the log, not here"
        await stop_all(sender)

    run(scenario)


def test_the_log_is_held_from_before_a_copy_begins_until_it_is_known_where() -> None:
    """The members as of the copy's place must still be known when the copy is begun on another thread."""

    async def scenario() -> None:
        sender = leader()
        sender.log.first_index = 7
        held: list[int | None] = []
        run_scan = sender.sender._run_scan

        def watched(step):  # type: ignore[no-untyped-def]
            held.append(sender.sender.held_index)
            return run_scan(step)

        sender.sender._run_scan = watched  # type: ignore[method-assign]
        sender.log.snapshot_needs = ("n2",)
        await until(lambda: sender.log.offered, sender)
        assert held[0] == 6
        assert held[1] == 50
        await stop_all(sender)

    run(scenario)


def test_a_copy_that_the_log_moved_past_while_it_began_is_begun_again() -> None:
    async def scenario() -> None:
        sender = leader()
        run_scan = sender.sender._run_scan

        def watched(step):  # type: ignore[no-untyped-def]
            sender.log.first_index = 60 if not sender.scan_steps else 1
            return run_scan(step)

        sender.sender._run_scan = watched  # type: ignore[method-assign]
        sender.log.snapshot_needs = ("n2",)

        def later() -> bool:
            sender.now_ms += 100
            return bool(sender.log.offered)

        await until(later, sender)
        assert sender.sender.made == 1
        assert [each for each in sender.files.names() if each.startswith("out-")] != []
        await stop_all(sender)

    run(scenario)


def test_a_snapshot_that_the_log_no_longer_continues_is_replaced() -> None:
    async def scenario() -> None:
        sender = leader()
        sender.log.snapshot_needs = ("n2",)
        await until(lambda: sender.log.offered, sender)
        sender.log.first_index = 51
        sender.poll()
        await asyncio.sleep(0.01)
        assert len(sender.log.offered) == 1, "the log still has the entry after the snapshot's index"
        fill(sender.engine, index=60, rows=10)
        sender.log.first_index = 52
        await until(lambda: len(sender.log.offered) == 2, sender)
        assert sender.log.offered[1][1].index == 60
        await stop_all(sender)

    run(scenario)


def test_a_snapshot_that_is_read_is_not_replaced_though_the_log_left_it_behind() -> None:
    async def scenario() -> None:
        sender = leader()
        sender.log.snapshot_needs = ("n2",)
        await until(lambda: sender.log.offered, sender)
        reading = sender.sender.read(sender.log.offered[0][1].snapshot_id, 0)
        await anext(reading)
        fill(sender.engine, index=90, rows=10)
        sender.log.first_index = 80
        for _ in range(50):
            sender.poll()
            await asyncio.sleep(0)
        assert len(sender.files.names()) == 1
        await reading.aclose()
        await until(lambda: len(sender.log.offered) == 2, sender)
        assert sender.log.offered[1][1].index == 90
        await stop_all(sender)

    run(scenario)


def test_the_log_is_asked_to_keep_what_follows_a_snapshot_until_it_is_installed() -> None:
    async def scenario() -> None:
        sender = leader()
        assert sender.sender.held_index is None
        sender.log.snapshot_needs = ("n2",)
        sender.poll()
        await until(lambda: sender.files.names())
        assert sender.log.offered == []
        assert sender.sender.held_index == 50, "while it is made"
        await until(lambda: sender.log.offered, sender)
        assert sender.sender.held_index == 50, "while it is offered"
        sender.now_ms = 59_000
        assert sender.sender.held_index == 50, "while it may be installed"
        sender.now_ms = 61_000
        assert sender.sender.held_index is None, "nobody came for it"
        reading = sender.sender.read(sender.log.offered[0][1].snapshot_id, 0)
        await anext(reading)
        assert sender.sender.held_index == 50, "while it is read"
        await reading.aclose()
        sender.log.snapshot_needs = ()
        assert sender.sender.held_index is None, "whoever needed it has it"
        await read_all(sender, "since-50")
        assert sender.sender.held_index == 50, "whose data is damaged needs it, and its log does not say so"
        sender.now_ms += 61_000
        assert sender.sender.held_index is None
        await stop_all(sender)

    run(scenario)


def test_nothing_is_copied_for_a_member_that_does_not_speak() -> None:
    async def scenario() -> None:
        sender = leader()
        sender.log.snapshot_needs = ("n2", "n3")
        sender.log.progress = (heard("n2", 60_000), heard("n3", 60_000))
        for _ in range(20):
            sender.poll()
            await asyncio.sleep(0)
        assert sender.files.names() == []
        sender.log.progress = (heard("n2", 60_000), heard("n3", 100))
        await until(lambda: sender.log.offered, sender)
        assert [to for to, _ in sender.log.offered] == ["n3"]
        await stop_all(sender)

    run(scenario)


def test_a_new_term_is_told_of_the_snapshot_again() -> None:
    async def scenario() -> None:
        sender = leader()
        sender.log.snapshot_needs = ("n2",)
        await until(lambda: sender.log.offered, sender)
        sender.log.term += 1
        sender.poll()
        assert len(sender.log.offered) == 2
        sender.log.snapshot_needs = ()
        sender.poll()
        sender.log.snapshot_needs = ("n2",)
        sender.poll()
        assert len(sender.log.offered) == 3, "it came back in need"
        await stop_all(sender)

    run(scenario)


def test_a_snapshot_goes_when_nobody_has_read_it_for_a_while() -> None:
    async def scenario() -> None:
        sender = leader()
        sender.log.snapshot_needs = ("n2",)
        await until(lambda: sender.log.offered, sender)
        meta = sender.log.offered[0][1]
        sender.log.snapshot_needs = ()
        reading = sender.sender.read(meta.snapshot_id, 0)
        for _ in range(3):
            await anext(reading)
            sender.now_ms += 59_000
            sender.poll()
            await asyncio.sleep(0.01)
            assert not is_gone(sender.files, f"out-1-{meta.snapshot_id}"), "somebody reads it"
        await reading.aclose()
        sender.now_ms += 59_000
        sender.poll()
        sender.now_ms += 2_000
        await until(lambda: sender.files.names() == [], sender)
        with pytest.raises(NotFound):
            await read_all(sender, meta.snapshot_id)
        await stop_all(sender)

    run(scenario)


def test_a_reader_that_takes_nothing_keeps_no_other_member_from_its_snapshot() -> None:
    async def scenario() -> None:
        sender = leader()
        sender.log.snapshot_needs = ("n2", "n3")
        await until(lambda: sender.log.offered, sender)
        meta = sender.log.offered[0][1]
        reading = sender.sender.read(meta.snapshot_id, 0)
        await anext(reading)
        sender.log.first_index = meta.index + 2
        fill(sender.engine, index=meta.index + 5, rows=10)
        sender.poll()
        assert sender.sender.held_index == meta.index
        sender.now_ms += 61_000
        await until(lambda: sender.log.offered[-1][1].index > meta.index, sender)
        with pytest.raises(NotFound):
            while True:
                await anext(reading)
        await stop_all(sender)

    run(scenario)


def test_leftovers_of_an_earlier_life_are_deleted_at_the_start() -> None:
    async def scenario() -> None:
        sender = leader()
        for name in ("out-1-0123", "in-1-4567", "in-1-89"):
            sender.files.write(name, 0, b"half a snapshot")
            sender.files.sync(name)
        await sender.restart()
        assert sender.files.names() == []
        await stop_all(sender)

    run(scenario)


@pytest.mark.parametrize("offset", [0, 1, 699, 700, 5_001, -1, -2])
def test_a_snapshot_is_read_from_any_byte_on(offset: int) -> None:
    async def scenario() -> None:
        sender = leader()
        whole = await read_all(sender, "since-0")
        (name,) = sender.files.names()
        at = offset % len(whole)
        assert await read_all(sender, name.removeprefix("out-1-"), at) == whole[at:]
        assert await read_all(sender, name.removeprefix("out-1-"), len(whole)) == b""
        await stop_all(sender)

    run(scenario)


def test_what_is_asked_for_wrongly_is_refused() -> None:
    async def scenario() -> None:
        sender = leader()
        size = len(await read_all(sender, "since-0"))
        (name,) = sender.files.names()
        snapshot_id = name.removeprefix("out-1-")
        for offset in (-1, size + 1):
            with pytest.raises(InvalidArgument, match=r"offset: must be between 0 and"):
                await read_all(sender, snapshot_id, offset)
        for wrong in ("", "feed", "since-", "since-x", "../identity", "since--1", "since-²"):
            with pytest.raises(NotFound):
                await read_all(sender, wrong)
        with pytest.raises(Unavailable, match="stands at 50, behind 51"):
            await read_all(sender, "since-51")
        await stop_all(sender)

    run(scenario)


def test_too_many_readers_are_refused_at_once() -> None:
    async def scenario() -> None:
        sender = leader()
        await read_all(sender, "since-0")
        readers = [sender.sender.read("since-0", 0) for _ in range(SMALL.readers_max)]
        for reader in readers:
            await anext(reader)
        with pytest.raises(ResourceExhausted):
            await read_all(sender, "since-0")
        await readers[0].aclose()
        await read_all(sender, "since-0")
        for reader in readers:
            await reader.aclose()
        await stop_all(sender)

    run(scenario)


def test_who_asks_gets_what_is_there_and_a_new_one_only_where_it_must_be() -> None:
    async def scenario() -> None:
        sender = leader()
        await asyncio.gather(*(read_all(sender, "since-50") for _ in range(4)))
        assert len(sender.files.names()) == 1
        fill(sender.engine, index=60, rows=10)
        await read_all(sender, "since-50")
        assert len(sender.files.names()) == 1
        await read_all(sender, "since-60")
        assert len(sender.files.names()) == 2
        await stop_all(sender)

    run(scenario)


def test_a_snapshot_is_one_state_however_much_is_written_meanwhile() -> None:
    engine, files = CountingEngine(), MemorySnapshotFiles()
    state = fill(engine, index=50, rows=300)
    writer = SnapshotWriter(engine, files, "out-1", META_GROUP, SMALL)
    assert writer.begin() == state
    writer.write_header("1", CLUSTER, state, MEMBERS)
    steps = 0
    while not writer.step():
        steps += 1
        fill(engine, index=50 + steps, rows=400)
    writer.close()
    assert steps > 10
    whole = verified(files, "out-1")
    assert whole.state == state
    assert writer.size_bytes == whole.size_bytes


def test_a_reader_of_lmdb_ends_with_the_copy(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "data")
    state = fill(engine, index=50, rows=500)
    for is_finished in (True, False):
        writer = SnapshotWriter(engine, MemorySnapshotFiles(), "out-1", META_GROUP, SMALL)
        writer.begin()
        writer.write_header("1", CLUSTER, state, MEMBERS)
        while not writer.step() and is_finished:
            pass
        assert readers(engine) == 1
        writer.close()
        writer.close()
        assert readers(engine) == 0
    engine.close()


def readers(engine: LmdbEngine) -> int:
    """Return the number of transactions that keep pages from being used again."""
    lines = engine._environment.readers().splitlines()[1:]
    return sum(1 for line in lines if line.split()[-1] != "-")


def damage(sender: Replica, space: Space) -> bytes:
    """Flip a bit of an item in the middle; its key."""
    with sender.engine.write() as txn:
        key = txn.page(space, b"\x00", b"\xff", max_items=10_000).keys[20]
        found = txn.get(space, key)
        assert found is not None
        txn.put(space, key, found[:9] + bytes([found[9] ^ 4]) + found[10:])
    return key


@pytest.mark.parametrize("space", [Space.DATA, Space.REQUESTS])
def test_no_snapshot_is_made_of_what_can_be_repaired_and_the_sender_gives_nothing_up(space: Space) -> None:
    async def scenario() -> None:
        sender = leader()
        before = contents(sender.engine)
        key = damage(sender, space)
        with pytest.raises(DataLoss):
            await read_all(sender, "since-0")
        assert sender.files.names() == []
        assert sender.damage == [Damage.at(space, key)]
        assert sender.is_readable()
        with sender.engine.write() as txn:
            txn.put(space, key, before[space][key])
        assert await read_all(sender, "since-0")
        await sender.stop()

    run(scenario)


@pytest.mark.parametrize("space", [Space.DATA, Space.REQUESTS])
def test_what_no_member_has_whole_is_brought_as_it_is_and_told(space: Space) -> None:
    async def scenario() -> None:
        network = Network()
        sender = leader(network=network)
        follower = Replica(network, "n2")
        key = damage(sender, space)
        sender.known.items.add((space, key))
        await offer(sender, follower)
        await until(lambda: follower.receiver.installed, follower)
        assert contents(follower.engine) == contents(sender.engine)
        assert follower.damage == [Damage.at(space, key)]
        await stop_all(sender, follower)

    run(scenario)


def test_without_room_no_snapshot_is_begun() -> None:
    async def scenario() -> None:
        sender = leader()
        assert isinstance(sender.files, MemorySnapshotFiles)
        sender.files.limit_bytes = 1_000
        with pytest.raises(ResourceExhausted, match=r"needs \d+ bytes of disk, 1000 are free"):
            await read_all(sender, "since-0")
        sender.log.snapshot_needs = ("n2",)
        for _ in range(20):
            sender.now_ms += 10
            sender.poll()
            await asyncio.sleep(0)
        assert sender.files.names() == []
        sender.files.limit_bytes = 1 << 30
        sender.now_ms += 10_000
        await until(lambda: sender.log.offered, sender)
        await stop_all(sender)

    run(scenario)


def test_an_engine_that_runs_short_of_room_ends_the_copy() -> None:
    async def scenario() -> None:
        sender = leader(rows=2_000)
        assert isinstance(sender.engine, CountingEngine)
        sender.log.snapshot_needs = ("n2",)
        sender.poll()
        await until(lambda: sender.files.names())
        sender.engine.limit_bytes = 10_000
        await until(lambda: sender.files.names() == [])
        assert sender.log.offered == []
        await stop_all(sender)

    run(scenario)


def test_large_values_come_in_blocks_of_their_own() -> None:
    engine, files = CountingEngine(), MemorySnapshotFiles()
    state = fill(engine, index=7, rows=40, value_bytes=5_000)
    writer = SnapshotWriter(engine, files, "out-1", META_GROUP, SMALL)
    writer.begin()
    writer.write_header("1", CLUSTER, state, MEMBERS)
    while not writer.step():
        pass
    writer.close()
    assert verified(files, "out-1").blocks >= 40


def test_an_empty_replica_has_nothing_to_give() -> None:
    async def scenario() -> None:
        sender = Replica(Network(), "n1")
        with pytest.raises(Unavailable, match="no state yet"):
            await read_all(sender, "since-0")
        await stop_all(sender)

    run(scenario)
