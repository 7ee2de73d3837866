"""The keys of roles are damaged, or given up. Until roles are switched off from outside, all callers whose rights may
be affected are denied."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cortado.errors import CortadoError, DataLoss, Unauthenticated
from cortado.raft.settings import RaftSettings
from cortado.store.auth import changes
from cortado.store.auth.caller import Caller, denial
from cortado.store.auth.current import Credential
from cortado.store.auth.roles import Demand, Permission
from cortado.store.auth.state import AuthState
from cortado.store.auth.stored import AUTH_KEY, Kind, Switch, principal_key
from cortado.store.auth.tokens import make_token
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Reader
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.repair.by_operator import accept_loss
from cortado.store.server.locked_out import MARK, switch_off_where_marked
from support.damaged_nodes import NAMES, equal, fill, patrol, rot
from support.node_world import Place, World
from support.nodes import put

ROOT = make_token(lambda count: bytes(count))
ENABLE = changes.enable("root", Kind.TOKEN, changes.NewToken(ROOT.token_id, ROOT.digest))


def refusal(node: Host, token: str = ROOT.text) -> CortadoError | None:
    def no_reader() -> Reader:
        raise AssertionError("no demand stands in what is stored")

    caller = Caller(Credential(token), (Demand(Permission.KNOWN),))
    return denial(node.meta.roles.committed, caller, lambda: 0, no_reader)


def stored(place: Place, key: LogicalKey) -> bytes:
    with place.engine.read() as txn:
        found = txn.seek(Space.DATA, key)
    assert found is not None
    assert found[0].startswith(key)
    return found[0]


async def with_roles(world: World) -> None:
    # An older version of the key says that they are off: it must never come back.
    await world.leader().meta.write(changes.create("app", Kind.CERTIFICATE, None), size_bytes=1)
    await world.leader().meta.write(ENABLE, size_bytes=1)
    await world.settled()


def damage(world: World, key: LogicalKey, *, with_key: bool = False) -> bytes:
    damaged = stored(world.places["n1"], key)
    for place in world.places.values():
        rot(place, damaged, with_key=with_key)
    return damaged


async def restart(world: World) -> None:
    for place in world.places.values():
        if place.is_running:
            place.crash()
    for place in world.places.values():
        await place.start()
    await world.led()
    await world.settled()


async def until_lost(world: World, lost: bytes) -> None:
    for place in world.places.values():
        await patrol(world, place.node)
    nodes = [place.node.meta for place in world.places.values()]
    await world.until(
        lambda: all((Space.DATA, lost) in node.integrity.repairs.lost() for node in nodes), "it is known to be lost"
    )


async def switch_off(world: World, directory: Path) -> None:
    """Switch roles off as it is done offline, on each that may lead."""
    marks = []
    waiting = []
    for name in NAMES:
        (directory / name).mkdir()
        marks.append(directory / name / MARK)
        marks[-1].touch()
        waiting.append(asyncio.ensure_future(switch_off_where_marked(world.places[name].node, directory / name)))
    await world.until(lambda: not any(mark.exists() for mark in marks), "the marks are gone")
    await asyncio.gather(*waiting)
    await world.settled()


@pytest.mark.parametrize("with_key", [False, True])
def test_the_loss_of_the_switch_locks_everybody_out_and_the_way_out_is_offline(tmp_path: Path, with_key: bool) -> None:
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        await world.grow(*NAMES)
        await fill(world)
        await with_roles(world)
        lost = damage(world, AUTH_KEY, with_key=with_key)
        await until_lost(world, lost)
        # The copy in memory is right: no node has to stop.
        assert [refusal(place.node) for place in world.places.values()] == [None] * 3
        await accept_loss(world.leader().meta, lost)
        await world.settled()
        for _ in range(2):
            for place in world.places.values():
                assert isinstance(refusal(place.node), DataLoss)
                assert isinstance(refusal(place.node, ""), DataLoss)
                assert place.node.meta.applied.roles_on
            await restart(world)
        await switch_off(world, tmp_path)
        for place in world.places.values():
            assert refusal(place.node, "") is None
            assert not place.node.meta.applied.roles_on
        assert equal(world)
        leader = world.leader().meta
        await leader.write(changes.enable("next", Kind.CERTIFICATE, None), size_bytes=1)
        # The principals of before are there.
        assert AuthState(leader.reader(leader.read_ts())).switch() == Switch(True, principals=3, admins=2)
        assert refusal(world.leader()) is None

    world.run(scenario)


@pytest.mark.parametrize("with_key", [False, True])
def test_damage_that_hides_the_switch_on_every_replica_is_left_offline(tmp_path: Path, with_key: bool) -> None:
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        await world.grow(*NAMES)
        await fill(world)
        await with_roles(world)
        lost = damage(world, AUTH_KEY, with_key=with_key)
        await restart(world)
        await until_lost(world, lost)
        for place in world.places.values():
            assert isinstance(refusal(place.node), DataLoss)
        await switch_off(world, tmp_path)
        await restart(world)
        for place in world.places.values():
            assert refusal(place.node, "") is None
        await world.leader().meta.write(put("k1", b"goes on"), size_bytes=1)
        await until_lost(world, lost)
        await accept_loss(world.leader().meta, lost)
        await world.sleep(1_000)
        await world.leader().meta.write(changes.enable("next", Kind.CERTIFICATE, None), size_bytes=1)
        await world.settled()
        assert [refusal(place.node) for place in world.places.values()] == [None] * 3

    world.run(scenario)


def test_a_lost_principal_is_nobody_at_once_and_the_others_go_on() -> None:
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        await world.grow(*NAMES)
        await fill(world)
        await with_roles(world)
        other = make_token(lambda count: b"\1" * count)
        new = changes.NewToken(other.token_id, other.digest)
        await world.leader().meta.write(changes.create("other", Kind.TOKEN, new), size_bytes=1)
        await world.settled()
        for place in world.places.values():
            assert refusal(place.node) is refusal(place.node, other.text) is None
        lost = damage(world, principal_key("other"))
        await until_lost(world, lost)
        await accept_loss(world.leader().meta, lost)
        await world.settled()
        for place in world.places.values():
            assert isinstance(refusal(place.node, other.text), Unauthenticated)
            assert refusal(place.node) is None

    world.run(scenario)


def test_a_replica_whose_switch_is_damaged_takes_it_from_another_one() -> None:
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        await world.grow(*NAMES)
        await fill(world)
        await with_roles(world)
        place = world.places["n2"]
        place.crash()
        rot(place, stored(place, AUTH_KEY))
        n2 = await place.start()
        assert isinstance(refusal(n2), DataLoss)
        await world.until(lambda: refusal(n2) is None, "it is repaired")

    world.run(scenario)


def test_a_new_member_has_roles_on_from_its_snapshot_on() -> None:
    world = World(settings=RaftSettings(retain_entries=0, retain_bytes=0))

    async def scenario() -> None:
        await world.grow("n1")
        await with_roles(world)
        await fill(world, count=40)
        n2 = await world.join("n2")
        await world.until(lambda: n2.meta.applied.roles_on, "the snapshot is installed")
        assert world.fetches
        assert refusal(n2) is None
        assert isinstance(refusal(n2, ""), Unauthenticated)

    world.run(scenario)
