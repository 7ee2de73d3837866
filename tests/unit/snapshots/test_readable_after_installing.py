"""A replica is readable once all that its state implies is known: safepoints, a restore, large transactions."""

from __future__ import annotations

import pytest

from cortado.errors import SnapshotTooOld
from cortado.raft.settings import RaftSettings
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from support.node_world import World
from support.nodes import key, put, read

RETENTION_MS = 2_000


def when_readable(node: Host, ts: Timestamp) -> list[str]:
    """Return the answers of a read at ``ts``, from the first moment at which the node calls its data readable: scans
    and point reads run on threads of their own, and wait for no step of the loop."""
    seen = list[str]()
    store = node.meta.store
    was_unreadable = False

    def read_now(value: str) -> None:
        nonlocal was_unreadable
        if was_unreadable and not value:
            try:
                seen.append(str(store.snapshot(ts).get(key("k"))))
            except SnapshotTooOld:
                seen.append("too old")
        was_unreadable = bool(value)

    class Watched(type(store)):  # type: ignore[misc]
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "unreadable":
                read_now(str(value))

    store.__class__ = Watched
    return seen


@pytest.mark.parametrize("was_cut_off", [False, True])
def test_below_the_safepoints_that_a_snapshot_brought_nothing_is_ever_absent(*, was_cut_off: bool) -> None:
    world = World(retention_ms=RETENTION_MS, settings=RaftSettings(retain_entries=2, retain_bytes=1))

    async def scenario() -> None:
        n1, _ = await world.grow("n1", "n2")
        await n1.meta.write(put("k", b"old"))
        old = (await n1.meta.write(put("k", b"older"))).ts
        await world.settled()
        await world.join("n3")
        place = world.places["n3"]
        await world.settled()
        assert read(place.node, "k", old) == b"older"
        await place.stop()
        for number in range(20):
            await n1.meta.write(put("k", b"%d" % number))
        await world.until(lambda: n1.meta.store.safepoints.cluster > old, "the old version may go")
        await world.until(lambda: _is_gone(n1, old), "it went")
        for number in range(20):
            await n1.meta.write(put("other", b"%d" % number))
        n3 = await place.start()
        if was_cut_off:
            await world.until(lambda: bool(n3.meta.store.unreadable), "the installation has begun")
            place.crash()
            n3 = await place.start()
        seen = when_readable(n3, old)
        await world.until(lambda: n3.meta.snapshot_receiver.installed > 0, "a snapshot was installed")
        assert seen == ["too old"]
        assert n3.meta.store.safepoints.cluster > old
        await world.settled()
        assert read(n3, "other") == b"19"

    world.run(scenario)


def _is_gone(node: Host, ts: Timestamp) -> bool:
    try:
        read(node, "k", ts)
    except SnapshotTooOld:
        return len(list(_versions(node))) == 1
    return False


def _versions(node: Host) -> list[bytes]:
    with node.process.engine.read() as txn:
        return list(txn.keys(Space.DATA, key("k"), key("k") + b"\xff" * 13, max_items=100)[0])
