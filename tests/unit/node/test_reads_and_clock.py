"""The timestamps of reads, their promises, and a clock that goes to the year 2071 and comes back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from cortado.errors import InvalidArgument, ResourceExhausted, TimestampInFuture
from cortado.store.clock.timestamp import LOGICAL_MAX, Timestamp
from cortado.store.host.host import Host
from cortado.store.replica.controls import epoch_after
from support.node_world import World
from support.nodes import NOW_MS, NodeDisk, SetClock, increment, put, read, run, running_node, until

MS_2071 = int(datetime(2071, 1, 1, tzinfo=UTC).timestamp() * 1000)


async def value_at(node: Host, name: str, at: Timestamp | None) -> bytes | None:
    return read(node, name, await node.meta.reads.resolve(at))


def test_a_read_sees_every_acknowledged_write() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            for number in range(1, 50):
                await node.meta.write(increment("n"))
                assert await value_at(node, "n", None) == str(number).encode()

    run(scenario)


def test_a_read_in_the_past_sees_the_past() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            results = [await node.meta.write(increment("n")) for _ in range(5)]
            for number, result in enumerate(results, start=1):
                assert await value_at(node, "n", result.ts) == str(number).encode()

    run(scenario)


def test_a_read_ahead_of_the_log_is_never_overtaken_by_a_later_write() -> None:
    async def scenario() -> None:
        clock = SetClock()
        async with running_node(clock=clock) as node:
            await node.meta.write(increment("n"))
            at = Timestamp(0, clock.now_ms + 200, LOGICAL_MAX)
            assert await value_at(node, "n", at) == b"1"
            assert (await node.meta.write(increment("n"))).ts > at
            assert await value_at(node, "n", at) == b"1"

    run(scenario)


def test_a_read_ahead_waits_for_what_is_in_flight_below_it() -> None:
    async def scenario() -> None:
        disk, clock = NodeDisk(), SetClock()
        async with running_node(disk, clock=clock) as node:
            at = Timestamp(0, clock.now_ms + 100, 0)
            await node.meta.reads.resolve(at)
            await node.meta.reads.caught_up()
            assert node.meta.applied.ceiling > at.next(), "the next read ahead needs no entry of its own"
            disk.hold()
            write = asyncio.ensure_future(node.meta.write(put("k", b"v")))
            await until(lambda: disk.held == 1, "the write is being stored")
            reading = asyncio.ensure_future(node.meta.reads.resolve(Timestamp(0, at.wall_ms, LOGICAL_MAX)))
            for _ in range(10):
                await asyncio.sleep(0.001)
            assert not reading.done()
            disk.release()
            at = await reading
            assert (await write).ts < at
            assert read(node, "k", at) == b"v"

    run(scenario)


def test_a_read_within_an_entry_waits_for_it_though_a_later_one_finds_no_room() -> None:
    """The entry is committed, and not applied yet. The one behind it is taken back."""
    world = World()

    async def scenario() -> None:
        [node] = await world.grow("n1")
        place = world.places["n1"]
        place.data.hold()
        place.disk.hold()
        two = [asyncio.ensure_future(node.meta.write(put(name, b"v"))) for name in ("a", "b")]
        await world.until(lambda: place.disk.waiting == 1, "both are one entry, which is being stored")
        place.disk.let_one_through()
        first, second = [(await each).ts for each in two]
        place.disk.failures.append(ResourceExhausted("no room", 1_000, "disk"))
        refused = asyncio.ensure_future(node.meta.write(put("c", b"v")))
        await world.until(lambda: place.disk.waiting == 1, "the next one is being stored")
        assert first < second
        reading = asyncio.ensure_future(node.meta.reads.resolve(first))
        await world.sleep(1)
        place.disk.release()
        with pytest.raises(ResourceExhausted):
            await refused
        await world.sleep(10)
        assert not reading.done(), "its entry is not applied"
        place.data.release()
        assert read(node, "b", await reading) is None

    world.run(scenario)


def test_what_was_read_ahead_holds_over_a_restart_with_a_clock_that_went_back() -> None:
    async def scenario() -> None:
        disk, clock = NodeDisk(), SetClock()
        async with running_node(disk, clock=clock) as node:
            await node.meta.reads.resolve(Timestamp(0, clock.now_ms + 100, 0))
            # Below the ceiling that the first one raised, so that nothing is written for it.
            at = Timestamp(0, clock.now_ms + 200, 7)
            assert await value_at(node, "n", at) is None
            assert node.meta.applied.last_ts < at
        clock.now_ms -= 3_600_000
        async with running_node(disk, clock=clock) as node:
            assert (await node.meta.write(increment("n"))).ts > at
            assert await value_at(node, "n", at) is None

    run(scenario)


def test_the_ceiling_is_raised_a_little_ahead_and_an_idle_group_writes_nothing() -> None:
    async def scenario() -> None:
        disk, clock = NodeDisk(), SetClock()
        async with running_node(disk, clock=clock) as node:
            commits = disk.appends
            await asyncio.gather(*(node.meta.reads.resolve(Timestamp(0, clock.now_ms + i, 9)) for i in range(100)))
            assert disk.appends == commits + 1
            for _ in range(100):
                await node.meta.reads.resolve(None)
            assert disk.appends == commits + 1

    run(scenario)


@pytest.mark.parametrize(
    "at", [Timestamp(0, NOW_MS + 60_000, 0), Timestamp(1, 0, 0), Timestamp(65535, 0, 0)], ids=["wall", "epoch", "last"]
)
def test_a_read_in_the_future_is_refused_with_the_servers_time(at: Timestamp) -> None:
    async def scenario() -> None:
        async with running_node() as node:
            with pytest.raises(TimestampInFuture) as refused:
                await node.meta.reads.resolve(at)
            assert refused.value.now.startswith(f"0.{NOW_MS}.")
            if at.epoch == 0:
                means = "it means 2025-11-20T13:01:00.000Z, and the server's time is 2025-11-20T13:00:00.000Z"
                assert means in refused.value.message()
            assert (await node.meta.write(increment("n"))).ts < at, "the clock did not follow"

    run(scenario)


def test_time_never_goes_back_over_a_restart() -> None:
    async def scenario() -> None:
        disk, clock = NodeDisk(), SetClock()
        last = Timestamp(0, 0, 0)
        for step in (0, 50, -10_000, -3_600_000, 5):
            clock.now_ms += step
            async with running_node(disk, clock=clock) as node:
                for _ in range(3):
                    result = await node.meta.write(increment("n"))
                    assert result.ts > last
                    last = result.ts
        assert result.value == 15

    run(scenario)


def test_a_clock_in_2071_and_back_by_a_bump_every_read_and_write_right() -> None:
    async def scenario() -> None:
        disk, clock = NodeDisk(), SetClock()
        history: list[tuple[Timestamp, bytes]] = []

        async def write_and_read_back(node: Host) -> Timestamp:
            result = await node.meta.write(increment("n"))
            history.append((result.ts, str(result.value).encode()))
            assert [ts for ts, _ in history] == sorted(ts for ts, _ in history)
            for ts, value in history:
                assert await value_at(node, "n", ts) == value
            assert await value_at(node, "n", None) == history[-1][1]
            return result.ts

        async with running_node(disk, clock=clock) as node:
            await write_and_read_back(node)
            clock.now_ms = MS_2071
            assert (await write_and_read_back(node)).wall_ms == MS_2071
            clock.now_ms = NOW_MS + 1_000
            assert (await write_and_read_back(node)).wall_ms == MS_2071, "it cannot go back within the epoch"
        async with running_node(disk, clock=clock) as node:
            assert (await write_and_read_back(node)).wall_ms == MS_2071
            bumped = await node.meta.write(epoch_after(0))
            assert bumped.ts == Timestamp(1, clock.now_ms, 0), "the wall time is true again at once"
            assert (await write_and_read_back(node)).wall_ms == clock.now_ms
            clock.now_ms += 10
            assert (await write_and_read_back(node)) == Timestamp(1, clock.now_ms, 0)
        async with running_node(disk, clock=clock) as node:
            assert (await write_and_read_back(node)).epoch == 1

    run(scenario)


def test_a_second_bump_by_mistake_is_refused() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            outcomes = await asyncio.gather(
                *(node.meta.write(epoch_after(0)) for _ in range(5)), return_exceptions=True
            )
            assert sum(isinstance(each, InvalidArgument) for each in outcomes) == 4
            assert node.process.clock.epoch == 1

    run(scenario)


def test_writes_around_a_bump_sort_around_it() -> None:
    async def scenario() -> None:
        async with running_node(NodeDisk()) as node:
            writes = [asyncio.ensure_future(node.meta.write(increment("n"))) for _ in range(10)]
            bump = asyncio.ensure_future(node.meta.write(epoch_after(0)))
            later = [asyncio.ensure_future(node.meta.write(increment("n"))) for _ in range(10)]
            before, after = await asyncio.gather(*writes), await asyncio.gather(*later)
            await bump
            assert {result.ts.epoch for result in before} == {0}
            assert {result.ts.epoch for result in after} == {1}
            assert [result.value for result in [*before, *after]] == list(range(1, 21))

    run(scenario)


def test_a_bump_without_room_leaves_the_epoch_as_it_was() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            disk.failures.append(ResourceExhausted("no room", 1000, "map"))
            bump = asyncio.ensure_future(node.meta.write(epoch_after(0)))
            write = asyncio.ensure_future(node.meta.write(increment("n")))
            with pytest.raises(ResourceExhausted):
                await bump
            assert (await write).ts.epoch == 0
            assert (await node.meta.write(epoch_after(0))).ts.epoch == 1

    run(scenario)


def test_a_node_starts_without_room_and_serves_reads() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            await node.meta.write(put("k", b"v"))
        disk.failures.append(ResourceExhausted("no room", 1000, "map"))
        async with running_node(disk) as node:
            assert read(node, "k") == b"v"
            assert (await node.meta.write(increment("n"))).value == 1

    run(scenario)
