"""A version that another member has and that is not here is brought by its name, and nothing older is read before."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss, Unavailable
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.versions import suffix_of
from cortado.store.replica.repair import ranges
from cortado.store.replica.repair.by_operator import accept_loss
from cortado.store.replica.write.examining import lost
from support.damaged_nodes import NAMES, equal, rot
from support.node_world import Place, World
from support.nodes import key, put, read

NEWER = 30


@pytest.fixture
def small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound an answer to a few items, as one of ordinary size holds of a key with thousands of versions."""
    monkeypatch.setattr(ranges, "ITEMS_MAX", 10)


async def written(world: World, count: int) -> list[Timestamp]:
    """Write ``count`` versions of one key, applied by all, and return their timestamps."""
    times = [(await world.leader().meta.write(put("k", b"%d" % number))).ts for number in range(count)]
    await world.settled()
    return times


def stored(ts: Timestamp) -> bytes:
    return key("k") + suffix_of(ts)


def take_out(place: Place, *times: Timestamp) -> None:
    with place.engine.write() as txn:
        for ts in times:
            txn.delete(Space.DATA, stored(ts))


def told(node: Host, *times: Timestamp) -> None:
    """Tell the node, as another member would, that it lacks these."""
    for ts in times:
        node.meta.store.distrust(lost(stored(ts)))
        node.meta.integrity.repairs.fill(lost(stored(ts)), stored(ts))


async def until_trusted(world: World, node: Host) -> None:
    await world.until(lambda: not node.meta.integrity.repairs.cases, "all is brought")
    assert not node.meta.store.suspect


@pytest.mark.usefixtures("small_answers")
@pytest.mark.parametrize("lacking", [[0], [0, 17], [29, 3, 0], list(range(NEWER))], ids=str)
def test_versions_behind_more_newer_ones_than_an_answer_holds_are_brought(lacking: list[int]) -> None:
    world = World()

    async def scenario() -> None:
        _, n2, _ = await world.grow(*NAMES)
        times = await written(world, NEWER)
        take_out(world.places["n2"], *(times[each] for each in lacking))
        told(n2, *(times[each] for each in lacking))
        await until_trusted(world, n2)
        assert equal(world)
        for number in lacking:
            assert read(n2, "k", times[number]) == b"%d" % number

    world.run(scenario)


def test_one_behind_more_than_a_thousand_is_brought() -> None:
    world = World()

    async def scenario() -> None:
        n1, _ = await world.grow("n1", "n2")
        times = await written(world, 1_200)
        take_out(world.places["n1"], times[0], times[1])
        told(n1, times[1])
        await until_trusted(world, n1)
        assert read(n1, "k", times[1]) == b"1"
        assert equal(world), "what nobody missed yet was beside it, and came as well"

    world.run(scenario)


def test_while_the_only_member_that_has_it_is_silent_nothing_older_is_read() -> None:
    world = World()

    async def scenario() -> None:
        _, n2, _ = await world.grow(*NAMES)
        times = await written(world, 3)
        take_out(world.places["n2"], times[1])
        take_out(world.places["n3"], times[1])
        world.silent = {"n1"}
        told(n2, times[1])
        await world.sleep(60_000)
        with pytest.raises(DataLoss):
            read(n2, "k", times[1])
        world.silent = set()
        await until_trusted(world, n2)
        assert read(n2, "k", times[1]) == b"1"

    world.run(scenario)


def test_one_that_every_member_says_it_does_not_have_is_missed_no_more() -> None:
    """It was collected meanwhile."""
    world = World()

    async def scenario() -> None:
        _, n2, _ = await world.grow(*NAMES)
        times = await written(world, 3)
        for place in world.places.values():
            take_out(place, times[0])
        told(n2, times[0])
        await until_trusted(world, n2)

    world.run(scenario)


def test_one_that_is_damaged_where_it_is_left_is_lost_and_its_loss_can_be_accepted() -> None:
    world = World()

    async def scenario() -> None:
        n1, _ = await world.grow("n1", "n2")
        times = await written(world, 3)
        take_out(world.places["n1"], times[1])
        rot(world.places["n2"], stored(times[1]))
        told(n1, times[1])
        repairs = n1.meta.integrity.repairs
        await world.until(lambda: (Space.DATA, stored(times[1])) in repairs.lost(), "its loss is known")
        with pytest.raises(DataLoss):
            read(n1, "k", times[1])
        await accept_loss(n1.meta, stored(times[1]))
        await until_trusted(world, n1)
        await world.settled()
        assert read(n1, "k", times[1]) is None
        assert read(n1, "k", times[0]) == b"0"
        assert equal(world)

    world.run(scenario)


def test_one_that_is_left_nowhere_is_lost_on_a_node_that_was_left_alone() -> None:
    world = World()

    async def scenario() -> None:
        n1, _ = await world.grow("n1", "n2")
        times = await written(world, 3)
        await n1.meta.members.remove("n2")
        await world.until(lambda: len(n1.meta.configuration.members) == 1, "n1 is alone")
        take_out(world.places["n1"], times[1])
        told(n1, times[1])
        await world.sleep(1_000)
        with pytest.raises(DataLoss):
            read(n1, "k", times[1])
        assert (Space.DATA, stored(times[1])) in n1.meta.integrity.repairs.lost()

    world.run(scenario)


def test_no_snapshot_is_made_of_a_state_that_lacks_a_version() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow(*NAMES)
        times = await written(world, 3)
        take_out(world.places["n1"], times[0])
        world.silent = {"n2", "n3"}
        told(n1, times[0])
        sender = n1.meta.snapshot_sender
        made, newest = sender.made, f"since-{n1.meta.applied.index}"
        with pytest.raises(Unavailable, match="missing here"):
            await anext(sender.read(newest, 0))
        assert sender.made == made
        world.silent = set()
        await until_trusted(world, n1)
        assert await anext(sender.read(f"since-{n1.meta.applied.index}", 0))
        assert sender.made == made + 1

    world.run(scenario)


def test_a_turned_key_is_not_deleted_on_the_word_of_a_member_that_lacks_its_true_name() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow(*NAMES)
        times = await written(world, 3)
        take_out(world.places["n1"], times[1])
        with world.places["n2"].engine.write() as txn:
            value = txn.get(Space.DATA, stored(times[1]))
            assert value is not None
            txn.delete(Space.DATA, stored(times[1]))
            turned = stored(times[1])[:-1] + bytes([stored(times[1])[-1] ^ 1])
            txn.put(Space.DATA, turned, value)
        world.silent = {"n3"}
        told(n1, times[1])
        n2.meta.integrity.report(Damage.at(Space.DATA, turned))
        await world.sleep(60_000)
        with world.places["n2"].engine.read() as txn:
            assert txn.get(Space.DATA, turned) is not None, "the leader's word was taken"
        world.silent = set()
        await world.until(lambda: not n2.meta.integrity.repairs.cases and not n1.meta.store.suspect, "all is whole")
        assert equal(world)
        assert read(n2, "k", times[1]) == b"1"

    world.run(scenario)
