"""Damage of the data that large transactions have stored: it is repaired, or given up, and never taken for other
data."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss, NotFound, Unavailable
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.keys.keyspace import meta_range, row_key, row_range, staged_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.staged import Staged
from cortado.store.replica.duties import large_transactions
from cortado.store.replica.repair.by_operator import accept_loss
from cortado.store.staging.records import record_key
from cortado.store.staging.stage import take_strays_away
from support.damaged_nodes import NAMES, equal, rot, until_whole
from support.large_transactions import LONG, A, B, Scene, committed_at, nothing_put_in_place
from support.node_world import Place, World
from support.nodes import put

ROWS = [(1, 10, 0), (2, 20, 0), (3, 30, 0)]


def stored_under(place: Place, key: LogicalKey) -> bytes:
    """Return the stored key of its newest version."""
    with place.engine.read() as txn:
        found = txn.seek(Space.DATA, key)
    assert found is not None
    assert found[0].startswith(key)
    return found[0]


def count(scene: Scene, node: Host) -> int:
    reader = node.meta.store.snapshot(node.meta.applied.last_ts)
    return len(list(reader.scan(*row_range(scene.table_id, LONG))))


async def lost(world: World, stored: bytes) -> None:
    def is_lost(place: Place) -> bool:
        return (Space.DATA, stored) in place.node.meta.integrity.repairs.lost()

    await world.until(lambda: all(map(is_lost, world.places.values())), "it is lost")


def test_a_record_that_was_damaged_at_a_start_is_known_once_it_is_repaired() -> None:
    world = World()

    async def scenario() -> None:
        n1, *_ = await world.grow(*NAMES)
        scene = await Scene.make(n1)
        await scene.begin()
        await scene.stage(ROWS)
        await world.settled()
        place = world.places["n3"]
        place.crash()
        rot(place, stored_under(place, record_key(A)))
        n3 = await place.start()
        await world.until(lambda: A in n3.meta.store.unresolved.all, "it is repaired, and known")
        await scene.begin(B)
        await world.settled()
        assert set(n3.meta.store.unresolved.all) == {A, B}
        with nothing_put_in_place() as release:
            await scene.commit()
            await world.settled()
            assert count(scene, n3) == len(ROWS)
            release.set()
            await scene.resolved()
        await world.settled()
        assert count(scene, n3) == len(ROWS)
        assert equal(world)

    world.run(scenario)


def test_a_record_that_is_repaired_while_its_range_is_in_doubt_is_known_once_the_doubt_ends() -> None:
    world = World()

    async def scenario() -> None:
        n1, *_ = await world.grow(*NAMES)
        scene = await Scene.make(n1)
        await scene.begin()
        await world.settled()
        for place in world.places.values():
            place.crash()
        place = world.places["n3"]
        rot(place, stored_under(place, record_key(A)))
        n3 = await place.start()
        doubt = Damage(Space.DATA, *meta_range("txn"), "records of large transactions")
        n3.meta.store.distrust(doubt)
        n3.meta.integrity.report(doubt)
        assert n3.meta.features.is_closed
        # Only now can the record be had.
        await world.places["n1"].start()
        await world.places["n2"].start()
        await until_whole(world, n3)
        await world.until(lambda: A in n3.meta.store.unresolved.all, "it is known")
        assert not n3.meta.features.is_closed
        assert not n3.meta.store.suspect

    world.run(scenario)


def test_callers_of_a_node_whose_record_was_damaged_at_its_start_are_told_to_come_again() -> None:
    """It cannot tell whether a restore is under way. It does not say that one is."""
    world = World()

    async def scenario() -> None:
        n1, *_ = await world.grow("n1")
        scene = await Scene.make(n1)
        await scene.begin()
        await world.settled()
        place = world.places["n1"]
        place.crash()
        rot(place, stored_under(place, record_key(A)))
        n1 = await place.start()
        for call in (n1.meta.reads.linearize(), n1.meta.write(put("k", b"v"))):
            with pytest.raises(Unavailable) as refused:
                await call
            assert refused.value.retry_delay_ms and "damaged records" in str(refused.value)
        assert "damaged records" in node_status(n1).restoring

    world.run(scenario)


def test_a_leader_whose_record_was_damaged_at_its_start_serves_once_it_is_repaired() -> None:
    world = World()

    async def scenario() -> None:
        n1, *_ = await world.grow(*NAMES)
        scene = await Scene.make(n1)
        await scene.begin()
        await scene.stage(ROWS)
        await world.settled()
        for place in world.places.values():
            place.crash()
        place = world.places["n2"]
        rot(place, stored_under(place, record_key(A)))
        for each in world.places.values():
            await each.start()
        leader = await world.led()
        scene = Scene(leader, 1, scene.table_id)
        await world.until(lambda: A in place.node.meta.store.unresolved.all, "it is repaired, and known")
        if leader is not place.node:
            await leader.meta.members.transfer("n2")
            scene = Scene(await world.led(but=leader.process.identity.node_id), 1, scene.table_id)
        await scene.commit()
        await scene.resolved()
        assert await scene.rows() == ROWS

    world.run(scenario)


def test_a_record_that_nobody_has_whole_is_given_up_alike_by_all() -> None:
    world = World()

    async def scenario() -> None:
        n1, *_ = await world.grow(*NAMES)
        scene = await Scene.make(n1)
        await scene.begin()
        await scene.stage(ROWS)
        await world.settled()
        stored = stored_under(world.places["n1"], record_key(A))
        for place in world.places.values():
            rot(place, stored)
            with pytest.raises(DataLoss):
                place.node.meta.store.snapshot(place.node.meta.applied.last_ts).get(record_key(A))
        await lost(world, stored)
        await accept_loss(n1.meta, stored)
        await world.settled()
        for place in world.places.values():
            assert not place.node.meta.store.unresolved
        with pytest.raises(NotFound):
            await scene.commit()
        await scene.put((1, 11, 0))
        place = world.places["n3"]
        place.crash()
        n3 = await place.start()
        assert not n3.meta.store.unresolved
        await world.settled()
        assert equal(world)

    world.run(scenario)


def test_rows_whose_record_was_given_up_are_taken_away_once_there_is_no_other_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setattr(large_transactions, "_FORGET_EVERY_MS", 100.0)

    async def scenario() -> None:
        n1, *_ = await world.grow(*NAMES)
        scene = await Scene.make(n1)
        await scene.begin()
        await scene.stage(ROWS)
        await world.settled()
        stored = stored_under(world.places["n1"], record_key(A))
        for place in world.places.values():
            rot(place, stored)
            with pytest.raises(DataLoss):
                place.node.meta.store.snapshot(place.node.meta.applied.last_ts).get(record_key(A))
        await lost(world, stored)
        await accept_loss(n1.meta, stored)
        await scene.begin(B)
        await scene.stage([(7, 70, 0)], B)
        await world.settled()
        staged = scene.staged()
        await world.sleep(1_000)
        assert scene.staged() == staged
        await scene.abort(B)
        await world.until(lambda: scene.staged() == 0, "nobody's rows are gone")
        await world.settled()
        assert equal(world)

    world.run(scenario)


def test_rows_are_nobodys_only_if_there_is_no_record_when_they_are_to_go() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        scene = await Scene.make(n1)
        await scene.begin()
        reader = n1.meta.reader(n1.meta.read_ts())
        found = [(b"s2", Staged(B, {})), (b"s1", Staged(A, {})), (b"s0", Staged(B, {}))]
        removal = take_strays_away(reader, found).removal
        assert removal is not None
        assert removal.keys == [b"s0", b"s2"]
        assert take_strays_away(reader, [(b"s1", Staged(A, {}))]).removal is None

    world.run(scenario)


def test_a_staged_row_that_nobody_has_whole_is_given_up_and_keeps_no_other_transaction_open() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        scene = await Scene.make(n1)
        await scene.begin()
        await scene.stage(ROWS)
        await scene.begin(B, ttl_ms=3_000)
        await world.settled()
        stored = stored_under(world.places["n1"], staged_key(row_key(scene.table_id, LONG, [2])))
        rot(world.places["n1"], stored)
        await scene.commit()
        await world.until(lambda: n1.meta.store.unresolved.all[B].is_aborted, "nobody kept it alive", 20_000)
        assert not n1.meta.store.unresolved.all[A].is_open
        with pytest.raises(DataLoss):
            count(scene, n1)
        await world.until(lambda: (Space.DATA, stored) in n1.meta.integrity.repairs.lost(), "it is lost")
        await accept_loss(n1.meta, stored)
        await scene.resolved()
        await world.settled()
        assert count(scene, n1) == len(ROWS) - 1
        assert scene.staged() == 0

    world.run(scenario)


def test_a_staged_row_that_is_damaged_at_the_leader_is_brought_by_another_member() -> None:
    world = World()

    async def scenario() -> None:
        n1, *_ = await world.grow(*NAMES)
        scene = await Scene.make(n1)
        await scene.begin()
        await scene.stage(ROWS)
        await world.settled()
        rot(world.places["n1"], stored_under(world.places["n1"], staged_key(row_key(scene.table_id, LONG, [2]))))
        ts = committed_at(await scene.commit())
        await scene.resolved()
        await until_whole(world, n1)
        assert await scene.rows(ts) == ROWS
        await world.settled()
        assert equal(world)

    world.run(scenario)
