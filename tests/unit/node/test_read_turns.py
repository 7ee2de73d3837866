"""Reads that go on together leave the loop its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.replica.read.turns import READS_A_TURN, SLICE_MS, ReadTurns
from support.node_world import World
from support.nodes import put

READS: Final = 100
PAGE_MS: Final = SLICE_MS * 0.6

Wait = Callable[[], Awaitable[object]]


async def of_a_round(_world: World, node: Host) -> Wait:
    return node.meta.reads.linearize


async def of_what_is_applied(world: World, node: Host) -> Wait:
    ts = await unapplied(world, node)
    return lambda: node.meta.reads.applied_to(ts)


async def of_all_that_is_committed(world: World, node: Host) -> Wait:
    await unapplied(world, node)
    return node.meta.reads.caught_up


async def of_a_time_between(world: World, node: Host) -> Wait:
    at = node.process.clock.now()
    assert at < await unapplied(world, node)
    return lambda: node.meta.reads.at(at)


async def unapplied(world: World, node: Host) -> Timestamp:
    """Make a commit that is applied 200 ms later; return its timestamp."""
    storage = world.places["n1"].data
    storage.hold()
    result = await node.meta.write(put("k", b"v"))
    world.loop.call_later(0.2, storage.release)
    return result.ts


async def reads_of_each_turn(world: World, wait: Wait, page_ms: float, *, cancelled: int = 0) -> list[int]:
    """Let many readers wait at once. Each then takes ``page_ms`` of the loop; the last ones of the line are
    ``cancelled`` when the first one was. Return how many went on in each turn of the loop."""
    done, counts = 0, list[int]()

    async def page() -> None:
        nonlocal done
        await wait()
        if not done:
            pages.append(asyncio.ensure_future(count()))
        done += 1
        world.scheduler.now_ms += page_ms

    async def count() -> None:
        counts.append(done)
        for each in pages[READS - cancelled : READS]:
            each.cancel()
        while sum(counts) < READS - cancelled and len(counts) < 3 * READS:
            before = done
            await asyncio.sleep(0)
            counts.append(done - before)

    pages = [asyncio.ensure_future(page()) for _ in range(READS)]
    await asyncio.wait(pages)
    await pages[READS]
    assert sum(counts) == READS - cancelled
    return counts


@pytest.mark.parametrize("begin", [of_a_round, of_what_is_applied, of_all_that_is_committed, of_a_time_between])
def test_large_reads_that_go_on_together_have_a_slice_of_each_turn(
    begin: Callable[[World, Host], Awaitable[Wait]],
) -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        assert max(await reads_of_each_turn(world, await begin(world, n1), PAGE_MS)) == 2

    world.run(scenario)


def test_quick_reads_go_on_in_one_turn() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        assert (await reads_of_each_turn(world, n1.meta.reads.linearize, SLICE_MS / READS))[0] == READS

    world.run(scenario)


def test_quick_reads_behind_a_slow_one_go_on_many_in_a_turn() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        costs = iter([2 * SLICE_MS])

        async def first_is_slow() -> None:
            await n1.meta.reads.linearize()
            world.scheduler.now_ms += next(costs, 0)

        counts = await reads_of_each_turn(world, first_is_slow, 0)
        assert max(counts) == READS_A_TURN

    world.run(scenario)


def test_a_read_in_line_that_is_given_up_keeps_no_other_from_its_turn() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await reads_of_each_turn(world, n1.meta.reads.linearize, PAGE_MS, cancelled=READS - 10)
        assert await asyncio.wait_for(n1.meta.reads.linearize(), 1)

    world.run(scenario)


def test_reads_go_on_in_the_order_of_their_coming_however_many_come_behind() -> None:
    now_ms, order = 0.0, list[int]()

    async def page(turns: ReadTurns, number: int) -> None:
        nonlocal now_ms
        if turns.is_over():
            await turns.next()
        order.append(number)
        now_ms += PAGE_MS

    async def scenario() -> None:
        turns = ReadTurns(lambda: now_ms)
        pages = [asyncio.ensure_future(page(turns, number)) for number in range(40)]
        for _ in range(100):
            await asyncio.sleep(0)
            pages += [asyncio.ensure_future(page(turns, len(pages) + number)) for number in range(2)]
        await asyncio.wait(pages)

    asyncio.run(scenario())
    late = max(place - number for place, number in enumerate(order))
    assert late < 2 * 40, "one that comes as a turn begins may find time in it, ahead of the line; no more than that"
