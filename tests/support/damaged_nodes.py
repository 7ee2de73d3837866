"""Damages data that nodes of a :class:`~support.node_world.World` have stored, and reads their reports of it."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from support.node_world import Place, World
from support.nodes import key, put

NAMES = ("n1", "n2", "n3")


def stored_key(place: Place, name: str) -> bytes:
    """Return the stored key of the newest version of a pair."""
    with place.engine.read() as txn:
        found = txn.seek(Space.DATA, key(name))
    assert found is not None
    return found[0]


def rot(place: Place, stored: bytes, space: Space = Space.DATA, *, with_key: bool = False) -> None:
    """Turn a bit of a stored value, behind the node's back. ``with_key`` turns a bit of the key's checksum as well, so
    that the checksum can't tell whether the key is the true one."""
    with place.engine.write() as txn:
        value = txn.get(space, stored)
        assert value is not None
        place_of = [len(value) - 9, *([len(value) - 8] if with_key else [])]
        txn.put(space, stored, bytes(byte ^ (at in place_of) for at, byte in enumerate(value)))


def value_of(node: Host, name: str) -> bytes | None:
    version = node.meta.reader(node.meta.read_ts()).get(key(name))
    return None if version is None else version.payload


def meet(node: Host, name: str) -> None:
    with pytest.raises(DataLoss):
        value_of(node, name)


async def fill(world: World, *, count: int = 5) -> None:
    for number in range(count):
        await world.leader().meta.write(put(f"k{number}", b"value %d" % number), size_bytes=1)
    await world.sleep(100)
    await world.settled()


async def until_whole(world: World, *nodes: Host) -> None:
    await world.sleep(1)  # The loop hears of damage that a read met.
    await world.until(lambda: not any(node.meta.integrity.repairs.cases for node in nodes), "everything is whole")


def equal(world: World) -> bool:
    def data(place: Place) -> list[tuple[bytes, bytes]]:
        with place.engine.read() as txn:
            return [(each, value()) for each, value in txn.walk(Space.DATA, b"\0")]

    first, *others = (data(place) for place in world.places.values())
    return all(other == first for other in others)


async def patrol(world: World, node: Host) -> None:
    """Let the node's pass over everything go by."""
    passes = node.patrol.progress.passes
    await world.until(lambda: node.patrol.progress.passes > passes + 1, "a whole pass", patience_ms=10_000_000)


async def lose_everywhere(world: World, name: str) -> bytes:
    stored = stored_key(world.places["n1"], name)
    for place in world.places.values():
        rot(place, stored)
        meet(place.node, name)
    await world.until(
        lambda: all(
            (Space.DATA, stored) in place.node.meta.integrity.repairs.lost() for place in world.places.values()
        ),
        "it is lost",
    )
    return stored
