"""The side that has the state: one spool for all, made beside writes, and never from what is damaged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cortado.errors import DataLoss, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from cortado.raft.configuration import Member
from cortado.raft.log import PeerProgress
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.mvcc.damage import Damage
from cortado.store.node.snapshots.group_range import GroupRange
from cortado.store.node.snapshots.spool_copy import SpoolCopy
from cortado.store.node.snapshots.spool_reader import Verification, WholeSpool
from cortado.store.node.snapshots.spools import MemorySpools, SpoolDirectory
from support.engines import open_lmdb
from support.nodes import run
from support.spools import (
    CLUSTER,
    GROUP,
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
    return PeerProgress(Member(name, f"{name}:7621"), True, 0, ms, True)


def verified(spools: SpoolDirectory, name: str) -> WholeSpool:
    verification = Verification(spools, name, GroupRange(GROUP), cluster_id=CLUSTER, slice_bytes=3_000)
    while (whole := verification.step()) is None:
        pass
    return whole


def test_two_members_in_need_share_one_spool() -> None:
    async def scenario() -> None:
        source = leader()
        source.log.snapshot_needs = ("n2", "n3")
        await until(lambda: len(source.log.offered) == 2, source)
        (first, meta), (second, same) = source.log.offered
        assert (first, second) == ("n2", "n3")
        assert meta is same
        assert (meta.index, meta.term, meta.configuration) == (50, 3, MEMBERS)
        assert len(await read_all(source, meta.snapshot_id)) == meta.size_bytes
        for _ in range(20):
            source.snapshots.poll()
        assert len(source.log.offered) == 2, "an offer is repeated by the log, not here"
        await stop_all(source)

    run(scenario)


def test_the_log_is_held_from_before_a_copy_begins_until_it_is_known_where() -> None:
    """The members as of the copy's place must still be known when the copy is begun on another thread."""

    async def scenario() -> None:
        source = leader()
        source.log.first_index = 7
        held: list[int | None] = []
        run_scan = source.snapshots._source._run_scan

        def watched(step):  # type: ignore[no-untyped-def]
            held.append(source.snapshots.held_index)
            return run_scan(step)

        source.snapshots._source._run_scan = watched  # type: ignore[method-assign]
        source.log.snapshot_needs = ("n2",)
        await until(lambda: source.log.offered, source)
        assert held[0] == 6
        assert held[1] == 50
        await stop_all(source)

    run(scenario)


def test_a_copy_that_the_log_moved_past_while_it_began_is_begun_again() -> None:
    async def scenario() -> None:
        source = leader()
        run_scan = source.snapshots._source._run_scan

        def watched(step):  # type: ignore[no-untyped-def]
            source.log.first_index = 60 if not source.scan_steps else 1
            return run_scan(step)

        source.snapshots._source._run_scan = watched  # type: ignore[method-assign]
        source.log.snapshot_needs = ("n2",)

        def later() -> bool:
            source.now_ms += 100
            return bool(source.log.offered)

        await until(later, source)
        assert source.snapshots._source.made == 1
        assert [each for each in source.spools.names() if each.startswith("out-")] != []
        await stop_all(source)

    run(scenario)


def test_a_spool_that_the_log_no_longer_continues_is_replaced() -> None:
    async def scenario() -> None:
        source = leader()
        source.log.snapshot_needs = ("n2",)
        await until(lambda: source.log.offered, source)
        source.log.first_index = 51
        source.snapshots.poll()
        await asyncio.sleep(0.01)
        assert len(source.log.offered) == 1, "the log still has the entry after the spool's index"
        fill(source.engine, index=60, rows=10)
        source.log.first_index = 52
        await until(lambda: len(source.log.offered) == 2, source)
        assert source.log.offered[1][1].index == 60
        await stop_all(source)

    run(scenario)


def test_a_spool_that_is_read_is_not_replaced_though_the_log_left_it_behind() -> None:
    async def scenario() -> None:
        source = leader()
        source.log.snapshot_needs = ("n2",)
        await until(lambda: source.log.offered, source)
        reading = source.snapshots.read(source.log.offered[0][1].snapshot_id, 0)
        await anext(reading)
        fill(source.engine, index=90, rows=10)
        source.log.first_index = 80
        for _ in range(50):
            source.snapshots.poll()
            await asyncio.sleep(0)
        assert len(source.spools.names()) == 1
        await reading.aclose()
        await until(lambda: len(source.log.offered) == 2, source)
        assert source.log.offered[1][1].index == 90
        await stop_all(source)

    run(scenario)


def test_the_log_is_asked_to_keep_what_follows_a_spool_until_it_is_installed() -> None:
    async def scenario() -> None:
        source = leader()
        assert source.snapshots.held_index is None
        source.log.snapshot_needs = ("n2",)
        source.snapshots.poll()
        await until(lambda: source.spools.names())
        assert source.log.offered == []
        assert source.snapshots.held_index == 50, "while it is made"
        await until(lambda: source.log.offered, source)
        assert source.snapshots.held_index == 50, "while it is offered"
        source.now_ms = 59_000
        assert source.snapshots.held_index == 50, "while it may be installed"
        source.now_ms = 61_000
        assert source.snapshots.held_index is None, "nobody came for it"
        reading = source.snapshots.read(source.log.offered[0][1].snapshot_id, 0)
        await anext(reading)
        assert source.snapshots.held_index == 50, "while it is read"
        await reading.aclose()
        source.log.snapshot_needs = ()
        assert source.snapshots.held_index is None, "whoever needed it has it"
        await read_all(source, "since-50")
        assert source.snapshots.held_index == 50, "whose data is damaged needs it, and its log does not say so"
        source.now_ms += 61_000
        assert source.snapshots.held_index is None
        await stop_all(source)

    run(scenario)


def test_nothing_is_copied_for_a_member_that_does_not_speak() -> None:
    async def scenario() -> None:
        source = leader()
        source.log.snapshot_needs = ("n2", "n3")
        source.log.progress = (heard("n2", 60_000), heard("n3", 60_000))
        for _ in range(20):
            source.snapshots.poll()
            await asyncio.sleep(0)
        assert source.spools.names() == []
        source.log.progress = (heard("n2", 60_000), heard("n3", 100))
        await until(lambda: source.log.offered, source)
        assert [to for to, _ in source.log.offered] == ["n3"]
        await stop_all(source)

    run(scenario)


def test_a_new_term_is_told_of_the_spool_again() -> None:
    async def scenario() -> None:
        source = leader()
        source.log.snapshot_needs = ("n2",)
        await until(lambda: source.log.offered, source)
        source.log.term += 1
        source.snapshots.poll()
        assert len(source.log.offered) == 2
        source.log.snapshot_needs = ()
        source.snapshots.poll()
        source.log.snapshot_needs = ("n2",)
        source.snapshots.poll()
        assert len(source.log.offered) == 3, "it came back in need"
        await stop_all(source)

    run(scenario)


def test_a_spool_goes_when_nobody_has_read_it_for_a_while() -> None:
    async def scenario() -> None:
        source = leader()
        source.log.snapshot_needs = ("n2",)
        await until(lambda: source.log.offered, source)
        meta = source.log.offered[0][1]
        source.log.snapshot_needs = ()
        reading = source.snapshots.read(meta.snapshot_id, 0)
        for _ in range(3):
            await anext(reading)
            source.now_ms += 59_000
            source.snapshots.poll()
            await asyncio.sleep(0.01)
            assert not is_gone(source.spools, f"out-{meta.snapshot_id}"), "somebody reads it"
        await reading.aclose()
        source.now_ms += 59_000
        source.snapshots.poll()
        source.now_ms += 2_000
        await until(lambda: source.spools.names() == [], source)
        with pytest.raises(NotFound):
            await read_all(source, meta.snapshot_id)
        await stop_all(source)

    run(scenario)


def test_a_reader_that_takes_nothing_keeps_no_other_member_from_its_snapshot() -> None:
    async def scenario() -> None:
        source = leader()
        source.log.snapshot_needs = ("n2", "n3")
        await until(lambda: source.log.offered, source)
        meta = source.log.offered[0][1]
        reading = source.snapshots.read(meta.snapshot_id, 0)
        await anext(reading)
        source.log.first_index = meta.index + 2
        fill(source.engine, index=meta.index + 5, rows=10)
        source.snapshots.poll()
        assert source.snapshots.held_index == meta.index
        source.now_ms += 61_000
        await until(lambda: source.log.offered[-1][1].index > meta.index, source)
        with pytest.raises(NotFound):
            while True:
                await anext(reading)
        await stop_all(source)

    run(scenario)


def test_leftovers_of_an_earlier_life_are_deleted_at_the_start() -> None:
    async def scenario() -> None:
        source = leader()
        for name in ("out-0123", "in-4567", "in-89"):
            source.spools.write(name, 0, b"half a spool")
            source.spools.sync(name)
        await source.restart()
        assert source.spools.names() == []
        await stop_all(source)

    run(scenario)


@pytest.mark.parametrize("offset", [0, 1, 699, 700, 5_001, -1, -2])
def test_a_spool_is_read_from_any_byte_on(offset: int) -> None:
    async def scenario() -> None:
        source = leader()
        whole = await read_all(source, "since-0")
        (name,) = source.spools.names()
        at = offset % len(whole)
        assert await read_all(source, name.removeprefix("out-"), at) == whole[at:]
        assert await read_all(source, name.removeprefix("out-"), len(whole)) == b""
        await stop_all(source)

    run(scenario)


def test_what_is_asked_for_wrongly_is_refused() -> None:
    async def scenario() -> None:
        source = leader()
        size = len(await read_all(source, "since-0"))
        (name,) = source.spools.names()
        snapshot_id = name.removeprefix("out-")
        for offset in (-1, size + 1):
            with pytest.raises(InvalidArgument, match=r"offset: must be between 0 and"):
                await read_all(source, snapshot_id, offset)
        for wrong in ("", "feed", "since-", "since-x", "../identity", "since--1", "since-²"):
            with pytest.raises(NotFound):
                await read_all(source, wrong)
        with pytest.raises(Unavailable, match="stands at 50, behind 51"):
            await read_all(source, "since-51")
        await stop_all(source)

    run(scenario)


def test_too_many_readers_are_refused_at_once() -> None:
    async def scenario() -> None:
        source = leader()
        await read_all(source, "since-0")
        readers = [source.snapshots.read("since-0", 0) for _ in range(SMALL.readers_max)]
        for reader in readers:
            await anext(reader)
        with pytest.raises(ResourceExhausted):
            await read_all(source, "since-0")
        await readers[0].aclose()
        await read_all(source, "since-0")
        for reader in readers:
            await reader.aclose()
        await stop_all(source)

    run(scenario)


def test_who_asks_gets_what_is_there_and_a_new_one_only_where_it_must_be() -> None:
    async def scenario() -> None:
        source = leader()
        await asyncio.gather(*(read_all(source, "since-50") for _ in range(4)))
        assert len(source.spools.names()) == 1
        fill(source.engine, index=60, rows=10)
        await read_all(source, "since-50")
        assert len(source.spools.names()) == 1
        await read_all(source, "since-60")
        assert len(source.spools.names()) == 2
        await stop_all(source)

    run(scenario)


def test_a_spool_is_one_state_however_much_is_written_meanwhile() -> None:
    engine, spools = CountingEngine(), MemorySpools()
    state = fill(engine, index=50, rows=300)
    copy = SpoolCopy(engine, spools, "out-1", GroupRange(GROUP), SMALL)
    assert copy.begin() == state
    copy.write_header("1", CLUSTER, state, MEMBERS)
    steps = 0
    while not copy.step():
        steps += 1
        fill(engine, index=50 + steps, rows=400)
    copy.close()
    assert steps > 10
    whole = verified(spools, "out-1")
    assert whole.state == state
    assert copy.size_bytes == whole.size_bytes


def test_a_reader_of_lmdb_ends_with_the_copy(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "data")
    state = fill(engine, index=50, rows=500)
    for is_finished in (True, False):
        copy = SpoolCopy(engine, MemorySpools(), "out-1", GroupRange(GROUP), SMALL)
        copy.begin()
        copy.write_header("1", CLUSTER, state, MEMBERS)
        while not copy.step() and is_finished:
            pass
        assert readers(engine) == 1
        copy.close()
        copy.close()
        assert readers(engine) == 0
    engine.close()


def readers(engine: LmdbEngine) -> int:
    """Transactions that keep pages from being used again."""
    lines = engine._environment.readers().splitlines()[1:]
    return sum(1 for line in lines if line.split()[-1] != "-")


def damage(source: Replica, space: Space) -> bytes:
    """Flip a bit of an item in the middle; its key."""
    with source.engine.write() as txn:
        key = txn.page(space, b"\x00", b"\xff", max_items=10_000).keys[20]
        found = txn.get(space, key)
        assert found is not None
        txn.put(space, key, found[:9] + bytes([found[9] ^ 4]) + found[10:])
    return key


@pytest.mark.parametrize("space", [Space.DATA, Space.REQUESTS])
def test_no_spool_is_made_of_what_can_be_repaired_and_the_source_gives_nothing_up(space: Space) -> None:
    async def scenario() -> None:
        source = leader()
        before = contents(source.engine)
        key = damage(source, space)
        with pytest.raises(DataLoss):
            await read_all(source, "since-0")
        assert source.spools.names() == []
        assert source.damage == [Damage.at(space, key)]
        assert source.is_readable()
        with source.engine.write() as txn:
            txn.put(space, key, before[space][key])
        assert await read_all(source, "since-0")
        await source.snapshots.stop()

    run(scenario)


@pytest.mark.parametrize("space", [Space.DATA, Space.REQUESTS])
def test_what_no_member_has_whole_is_brought_as_it_is_and_told(space: Space) -> None:
    async def scenario() -> None:
        network = Network()
        source = leader(network=network)
        follower = Replica(network, "n2")
        key = damage(source, space)
        source.lost.add((space, key))
        await offer(source, follower)
        await until(lambda: follower.snapshots.counts.installed, follower)
        assert contents(follower.engine) == contents(source.engine)
        assert follower.damage == [Damage.at(space, key)]
        await stop_all(source, follower)

    run(scenario)


def test_without_room_no_spool_is_begun() -> None:
    async def scenario() -> None:
        source = leader()
        assert isinstance(source.spools, MemorySpools)
        source.spools.limit_bytes = 1_000
        with pytest.raises(ResourceExhausted, match=r"needs \d+ bytes of disk, 1000 are free"):
            await read_all(source, "since-0")
        source.log.snapshot_needs = ("n2",)
        for _ in range(20):
            source.now_ms += 10
            source.snapshots.poll()
            await asyncio.sleep(0)
        assert source.spools.names() == []
        source.spools.limit_bytes = 1 << 30
        source.now_ms += 10_000
        await until(lambda: source.log.offered, source)
        await stop_all(source)

    run(scenario)


def test_an_engine_that_runs_short_of_room_ends_the_copy() -> None:
    async def scenario() -> None:
        source = leader(rows=2_000)
        assert isinstance(source.engine, CountingEngine)
        source.log.snapshot_needs = ("n2",)
        source.snapshots.poll()
        await until(lambda: source.spools.names())
        source.engine.limit_bytes = 10_000
        await until(lambda: source.spools.names() == [])
        assert source.log.offered == []
        await stop_all(source)

    run(scenario)


def test_large_values_come_in_blocks_of_their_own() -> None:
    engine, spools = CountingEngine(), MemorySpools()
    state = fill(engine, index=7, rows=40, value_bytes=5_000)
    copy = SpoolCopy(engine, spools, "out-1", GroupRange(GROUP), SMALL)
    copy.begin()
    copy.write_header("1", CLUSTER, state, MEMBERS)
    while not copy.step():
        pass
    copy.close()
    assert verified(spools, "out-1").blocks >= 40


def test_an_empty_replica_has_nothing_to_give() -> None:
    async def scenario() -> None:
        source = Replica(Network(), "n1")
        with pytest.raises(Unavailable, match="no state yet"):
            await read_all(source, "since-0")
        await stop_all(source)

    run(scenario)
