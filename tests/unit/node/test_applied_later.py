"""Committed entries are applied with later ones, a tenth of a second later, and at once for a caller that needs
them."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import Unavailable
from cortado.store.host.host import Host
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.apply.applier import Applier
from cortado.store.replica.apply.state_machine import REQUESTS_ENOUGH
from cortado.store.replica.read.read_timestamps import Stale
from cortado.store.replica.write.group_commit import APPLY_BYTES, APPLY_WAIT_MS
from support.node_world import World
from support.nodes import put, read


async def follower_that_waits(world: World) -> tuple[Host, Host]:
    """Return a leader, and a follower that knows of a committed entry, and has just begun to wait with it."""
    n1, n2, _ = await world.grow("n1", "n2", "n3")
    await n1.meta.write(put("k", b"v"))
    await world.settled()
    await n1.meta.write(put("k", b"w"))
    await world.until(lambda: n2.meta.log.applying.backlog > 0, "the follower knows that it is committed")
    return n1, n2


def test_a_follower_waits_with_what_is_committed_and_applies_it_though_nobody_asks() -> None:
    world = World()

    async def scenario() -> None:
        _, n2 = await follower_that_waits(world)
        began_ms = world.now_ms
        await world.until(lambda: read(n2, "k") == b"w", "it is applied")
        assert APPLY_WAIT_MS / 2 < world.now_ms - began_ms < 2 * APPLY_WAIT_MS

    world.run(scenario)


def test_a_stale_read_has_a_follower_apply_at_once_what_makes_it_as_fresh_as_that() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        log = n2.meta.log

        async def write_on() -> None:
            while True:
                await n1.meta.write(put("k", b"v"))

        def gains_ms() -> float:
            return (log.fresh_once_applied_ms or 0) - (log.fresh_as_of_ms or 0)

        writing = asyncio.ensure_future(write_on())
        await world.until(lambda: gains_ms() > APPLY_WAIT_MS / 3, "applying makes it fresher")
        began_ms, before, fresh_ms = world.now_ms, n2.meta.applied, log.fresh_once_applied_ms or 0
        assert await n2.meta.reads.resolve(Stale(int(began_ms - fresh_ms) + 1)) > before.last_ts
        assert world.now_ms - began_ms < APPLY_WAIT_MS / 3
        with pytest.raises(Unavailable, match="stale"):
            await n2.meta.reads.resolve(Stale(0))
        writing.cancel()

    world.run(scenario)


def test_a_follower_applies_at_once_where_much_is_committed() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        await world.settled()
        began_ms = world.now_ms
        written = await asyncio.gather(*[n1.meta.write(put(f"k{at}", bytes(APPLY_BYTES // 4))) for at in range(5)])
        await n1.meta.write(put("k", b"v"))
        await world.until(lambda: n2.meta.applied.last_ts >= written[3].ts, "it is applied")
        assert world.now_ms - began_ms < APPLY_WAIT_MS

    world.run(scenario)


def test_a_leader_applies_at_once_where_the_open_batch_waits_for_that() -> None:
    world = World(
        limits=NodeLimits(batch_bytes_max=50_000, command_bytes_max=50_000, entries_in_flight_bytes_max=200_000)
    )

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await world.settled()
        began_ms = world.now_ms
        for number in range(20):
            await n1.meta.write(put(f"k{number}", bytes(40_000)), size_bytes=40_000)
        assert world.now_ms - began_ms < 3 * APPLY_WAIT_MS, "it did not wait for each four of them"

    world.run(scenario)


def test_a_transaction_ends_behind_a_thousand_requests_and_the_rest_follows_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, ends = World(), []
    done = Applier.done
    monkeypatch.setattr(
        Applier, "done", lambda self, work, state: (ends.append(state.requests), done(self, work, state))
    )

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        world.places["n1"].data.hold()
        waiting = asyncio.ensure_future(n1.meta.reads.caught_up())
        writes = []
        for number in range(REQUESTS_ENOUGH * 5 // 2):
            request_id = bytes(n1.process.clock.now()) + b"%08d" % number
            evaluate = put(f"k{number}", b"v")
            writes.append(n1.meta.write(evaluate, request_id=request_id, request_hash=bytes(16)))
            if len(writes) == 100:
                await asyncio.gather(*writes)
                writes.clear()
        ends.clear()
        began_ms = world.now_ms
        world.places["n1"].data.release()
        await n1.meta.reads.caught_up()
        await waiting
        assert ends[-1] == REQUESTS_ENOUGH * 5 // 2
        assert all(after - before <= REQUESTS_ENOUGH + 100 for before, after in zip([0, *ends], ends, strict=False))
        assert world.now_ms - began_ms < APPLY_WAIT_MS / 2
        assert read(n1, "k2499") == b"v"

    world.run(scenario)
