"""Watches of nodes: their promises while nodes lead, follow, stop, stall and are replaced."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from cortado.errors import ResourceExhausted, Unavailable
from cortado.raft.settings import RaftSettings
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.keys.keyspace import kv_range
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.controls import epoch_after
from support.node_world import World
from support.nodes import put
from support.watch_history import problems
from support.watchers import Watcher, committed_in

ALL = kv_range("test")


async def write(node: Host, *names: str) -> Timestamp:
    """Write one commit each, in one batch if there are several; return the last one's timestamp."""
    results = await asyncio.gather(*[node.meta.write(put(name, b"v"), size_bytes=10) for name in names])
    return max(result.ts for result in results)


def test_a_watch_begins_with_what_it_is_complete_up_to_and_then_sees_every_commit() -> None:
    world = World()

    async def scenario() -> None:
        (node,) = await world.grow("n1")
        before = await write(node, "a")
        watcher = Watcher(node, before)
        await world.until(lambda: bool(watcher.history), "it says where it begins")
        assert watcher.resolved == before
        last = await write(node, "b", "c", "d")
        await world.until(lambda: watcher.resolved >= last, "it has seen the writes")
        assert sorted(each.key for each in watcher.changes) == [b"b", b"c", b"d"]
        watcher.stop()

    world.run(scenario)


def test_a_watch_from_the_beginning_is_behind_since_it_began_and_not_since_1970() -> None:
    world = World()

    async def scenario() -> None:
        (node,) = await world.grow("n1")
        await write(node, "a")
        await node.meta.reads.caught_up()
        release = asyncio.Event()

        async def pause() -> None:
            await release.wait()

        watcher = Watcher(node, ZERO, pause=pause)
        await world.until(lambda: bool(watcher.history), "it says where it begins")
        await world.sleep(300)
        await write(node, "b")
        await node.meta.reads.caught_up()
        assert 0 < node.meta.watches.statistics().resolved_lag_ms <= 400
        watcher.stop()

    world.run(scenario)


@pytest.mark.parametrize("progress_only", [False, True])
def test_a_watch_after_a_time_that_is_not_applied_here_resolves_nothing_before_it_is(progress_only: bool) -> None:
    world = World()

    async def scenario() -> None:
        leader, n2, _ = await world.grow("n1", "n2", "n3")
        await write(leader, "a")
        await world.settled()
        world.places["n2"].data.hold()
        after = await write(leader, "b")
        interval = {"resolved_interval_ms": 100, "progress_only": progress_only}
        with n2.meta.watches.watch(*ALL, after, **interval) as watch:
            async with aclosing(watch.batches()) as batches:
                for _ in range(3):
                    assert n2.meta.applied.last_ts < after
                    batch = await anext(batches)
                    assert (batch.items, batch.resolved) == ([], None)
                world.places["n2"].data.release()
                while batch.resolved is None:
                    batch = await anext(batches)
                assert after <= batch.resolved <= n2.meta.applied.last_ts

    world.run(scenario)


def test_what_is_decided_and_not_applied_is_above_every_resolved_mark() -> None:
    world = World()

    async def scenario() -> None:
        leader, *_ = await world.grow("n1", "n2", "n3")
        before = leader.meta.read_ts()
        watcher = Watcher(leader, before, interval_ms=5)
        world.places["n1"].disk.hold()
        for other in ("n2", "n3"):
            assert world.places[other].is_running
        writing = asyncio.ensure_future(write(leader, "a"))
        await world.sleep(400)
        # The others have it, and nothing may be said of the time since before it.
        assert watcher.resolved == before
        world.places["n1"].disk.release()
        written = await writing
        await world.until(lambda: watcher.resolved >= written, "it is applied")
        assert [each.ts for each in watcher.changes] == [written]
        watcher.stop()

    world.run(scenario)


def test_time_goes_on_for_watchers_of_an_idle_group_wherever_they_watch() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2", "n3")
        began = nodes[0].meta.read_ts()
        last_index = nodes[0].meta.applied.index
        await world.sleep(5_000)
        # There are no watchers: an idle group writes nothing.
        assert (nodes[0].meta.applied.index, nodes[0].meta.read_ts()) == (last_index, began)
        watchers = [Watcher(node, began) for node in nodes]
        await world.sleep(5_000)
        for watcher in watchers:
            assert watcher.resolved.wall_ms >= began.wall_ms + 8_000
            watcher.stop()
        assert nodes[0].meta.applied.index <= last_index + 6

    world.run(scenario)


def test_a_follower_resolves_what_it_has_applied() -> None:
    world = World()

    async def scenario() -> None:
        leader, follower, _ = await world.grow("n1", "n2", "n3")
        began = leader.meta.read_ts()
        watcher = Watcher(follower, began)
        world.cut_off("n2")
        await write(leader, "a")
        await world.sleep(500)
        assert watcher.resolved == began
        world.heal()
        written = await write(leader, "b")
        await world.until(lambda: watcher.resolved >= written, "it has caught up")
        assert [each.key for each in watcher.changes] == [b"a", b"b"]
        watcher.stop()

    world.run(scenario)


def test_a_watch_of_a_time_that_a_follower_has_not_reached_begins_there() -> None:
    world = World()

    async def scenario() -> None:
        leader, follower, _ = await world.grow("n1", "n2", "n3")
        world.cut_off("n2")
        seen_elsewhere = await write(leader, "a")
        watcher = Watcher(follower, seen_elsewhere)
        await world.sleep(300)
        world.heal()
        last = await write(leader, "b")
        await world.until(lambda: watcher.resolved >= last, "it has caught up")
        assert [each.key for each in watcher.changes] == [b"b"]
        await leader.meta.reads.caught_up()
        assert problems(watcher.history, seen_elsewhere, committed_in(leader)) == []
        watcher.stop()

    world.run(scenario)


def test_a_replica_that_knows_no_leader_ends_its_watches() -> None:
    world = World(limits=NodeLimits(watch_leaderless_ms=2_000))

    async def scenario() -> None:
        leader, follower, _ = await world.grow("n1", "n2", "n3")
        watcher = Watcher(follower, leader.meta.read_ts())
        await world.sleep(3_000)
        assert not watcher.task.done()
        world.cut_off("n2")
        await world.until(watcher.task.done, "it is told to go elsewhere")
        assert isinstance(watcher.errors[0], Unavailable)
        assert "leader" in str(watcher.errors[0])

    world.run(scenario)


def test_an_election_ends_no_watch() -> None:
    world = World()

    async def scenario() -> None:
        await world.grow("n1", "n2", "n3")
        watcher = Watcher(world.places["n2"].node, world.leader().meta.read_ts())
        await write(world.leader(), "a")
        world.places["n1"].crash()
        last = await write(await world.led(but="n1"), "b")
        await world.until(lambda: watcher.resolved >= last, "it goes on")
        assert ([each.key for each in watcher.changes], watcher.errors) == ([b"a", b"b"], [])
        watcher.stop()

    world.run(scenario)


def test_a_new_epoch_is_above_everything_before() -> None:
    world = World()

    async def scenario() -> None:
        leader, follower, _ = await world.grow("n1", "n2", "n3")
        watcher = Watcher(follower, leader.meta.read_ts())
        await write(leader, "a")
        await leader.meta.write(epoch_after(0))
        last = await write(leader, "b")
        await world.until(lambda: watcher.resolved >= last, "it has seen both")
        assert [each.ts.epoch for each in watcher.changes] == [0, 1]
        await leader.meta.reads.caught_up()
        assert problems(watcher.history, watcher.after, committed_in(leader)) == []
        watcher.stop()

    world.run(scenario)


def test_a_snapshot_that_replaces_the_state_leaves_no_gap() -> None:
    world = World(settings=RaftSettings(retain_entries=4), limits=NodeLimits(watch_leaderless_ms=60_000))

    async def scenario() -> None:
        leader, follower, _ = await world.grow("n1", "n2", "n3")
        watcher = Watcher(follower, leader.meta.read_ts(), turn_to=lambda: follower)
        world.cut_off("n2")
        for number in range(29):
            await write(leader, f"k{number}")
        await leader.meta.reads.caught_up()
        await write(leader, "behind them, so that they are dropped from the log")
        fetched = world.fetches
        world.heal()
        await world.until(lambda: watcher.resolved >= leader.meta.read_ts(), "it has caught up")
        assert world.fetches > fetched
        assert len(watcher.changes) == 30
        assert problems(watcher.history, watcher.after, committed_in(leader)) == []
        watcher.stop()

    world.run(scenario)


def test_a_slow_watcher_catches_up_from_the_engine_and_misses_nothing() -> None:
    world = World(limits=NodeLimits(watch_queue_events_max=4, watch_recent_entries_max=2))

    async def scenario() -> None:
        (node,) = await world.grow("n1")
        watcher = Watcher(node, node.meta.read_ts(), pause=lambda: world.sleep(1_000))
        for number in range(40):
            await write(node, f"k{number}", "again")
        await world.until(lambda: watcher.resolved >= node.meta.read_ts(), "it has seen all")
        assert problems(watcher.history, watcher.after, committed_in(node)) == []
        statistics = node.meta.watches.statistics()
        assert statistics.overflows > 0
        assert statistics.passes > 0
        watcher.stop()

    world.run(scenario)


def test_entries_that_are_kept_in_memory_count_about_what_they_take_at_who_led_and_at_who_followed() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2")
        before = [node.meta.driver.feed.recent.size_bytes for node in nodes]
        result = await nodes[0].meta.write(put("large", b"v" * 100_000), size_bytes=100_000)
        await world.until(lambda: all(node.meta.applied.last_ts >= result.ts for node in nodes), "both applied it")
        for node, bytes_before in zip(nodes, before, strict=True):
            assert 100_000 < node.meta.driver.feed.recent.size_bytes - bytes_before < 101_000

    world.run(scenario)


def test_there_is_a_bound_on_watches() -> None:
    world = World(limits=NodeLimits(watches_max=2))

    async def scenario() -> None:
        (node,) = await world.grow("n1")
        watchers = [Watcher(node, ZERO) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(ResourceExhausted) as refused, node.meta.watches.watch(*ALL, ZERO, resolved_interval_ms=50):
            pass
        assert (refused.value.resource, refused.value.limit) == ("watches", 2)
        for watcher in watchers:
            watcher.stop()
        await world.until(lambda: node.meta.watches.statistics().watches == 0, "their places are free")
        with node.meta.watches.watch(*ALL, ZERO, resolved_interval_ms=50):
            assert {each.name: each.count for each in node_status(node).queues}["watches"] == 1

    world.run(scenario)


def test_a_node_that_stops_ends_its_watches_at_once() -> None:
    world = World()

    async def scenario() -> None:
        (node,) = await world.grow("n1")
        watcher = Watcher(node, ZERO)
        await asyncio.sleep(0)
        await node.stop()
        await world.until(watcher.task.done, "it has ended", 100)
        assert "stopping" in str(watcher.errors[0])
        with pytest.raises(Unavailable), node.meta.watches.watch(*ALL, ZERO, resolved_interval_ms=50):
            pass

    world.run(scenario)


def test_who_takes_nothing_costs_no_more_than_a_queue() -> None:
    world = World(limits=NodeLimits(watch_queue_events_max=4))

    async def scenario() -> None:
        (node,) = await world.grow("n1")
        with node.meta.watches.watch(*ALL, node.meta.read_ts(), resolved_interval_ms=50) as watch:
            async with aclosing(watch.batches()) as batches:
                await anext(batches)
                for number in range(20):
                    await write(node, f"k{number}")
                assert node.meta.watches.statistics().queued_events <= 4
        assert node.meta.watches.statistics().queued_events == 0

    world.run(scenario)
