"""Time, reads and places of several nodes: read-ahead over a change of leader, staleness, clocks, hand-overs, room."""

from __future__ import annotations

import asyncio
import re

import pytest

from cortado.errors import InvalidArgument, NotLeader, ResourceExhausted, Unavailable
from cortado.raft.settings import RaftSettings
from cortado.store.catalog.declare import create_database
from cortado.store.clock.hlc import MAX_OFFSET_MS
from cortado.store.clock.timestamp import LOGICAL_MAX, Timestamp
from cortado.store.engine.failures import StorageFailed
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.replica.controls import epoch_after
from cortado.store.replica.read.read_timestamps import Stale
from support.node_world import World
from support.nodes import NOW_MS, increment, put, read


def test_no_later_leader_writes_at_or_below_a_time_that_was_read_at() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        for other in ("n2", "n3"):
            world.places[other].wall_offset_ms = -3_600_000
        now_ms = NOW_MS + int(world.now_ms)
        await n1.meta.reads.resolve(Timestamp(0, now_ms + 100, 0))
        await world.settled()
        # Below the ceiling that the first one raised: nothing is written for it.
        ahead = Timestamp(0, now_ms + 200, LOGICAL_MAX)
        last = node_status(n1).last_index
        assert await n1.meta.reads.resolve(ahead) == ahead
        assert read(n1, "n", ahead) is None
        assert n1.meta.applied.last_ts < ahead
        assert node_status(n1).last_index == last
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        result = await leader.meta.write(increment("n"))
        assert result.ts > ahead
        assert read(leader, "n", ahead) is None

    world.run(scenario)


def test_a_read_ahead_is_the_leaders_and_one_at_what_is_applied_is_anybodys() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        result = await n1.meta.write(put("k", b"v"))
        await world.settled()
        assert read(n2, "k", await n2.meta.reads.resolve(result.ts)) == b"v"
        with pytest.raises(NotLeader) as refused:
            await n2.meta.reads.resolve(result.ts.next())
        assert refused.value.leader == "n1.test:7621"
        assert await n1.meta.reads.resolve(result.ts.next()) == result.ts.next()

    world.run(scenario)


def test_a_read_ahead_ends_with_leadership() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await n1.meta.reads.resolve(Timestamp(0, NOW_MS + int(world.now_ms) + 50, 0))
        world.cut_off("n1")
        in_flight = asyncio.ensure_future(n1.meta.write(put("k", b"v")))
        await world.sleep(1)
        waits_for_it = asyncio.ensure_future(n1.meta.reads.resolve(Timestamp(0, NOW_MS + int(world.now_ms) + 100, 0)))
        raises_the_ceiling = asyncio.ensure_future(
            n1.meta.reads.resolve(Timestamp(0, NOW_MS + int(world.now_ms) + 249, 0))
        )
        for each in (waits_for_it, raises_the_ceiling):
            with pytest.raises(NotLeader):
                await each
        assert isinstance((await asyncio.gather(in_flight, return_exceptions=True))[0], Exception)

    world.run(scenario)


def test_a_stale_read_is_served_by_any_replica_that_heard_of_the_leader_lately() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        result = await n1.meta.write(put("k", b"v"))
        await world.sleep(1_000)
        for node in (n1, n2):
            assert await node.meta.reads.resolve(Stale(500)) >= result.ts
        world.cut_off("n2")
        await world.sleep(2_000)
        with pytest.raises(Unavailable, match=r"this replica is \d+ ms stale, 500 ms were asked for"):
            await n2.meta.reads.resolve(Stale(500))
        assert await n2.meta.reads.resolve(Stale(5_000)) == result.ts
        assert await n1.meta.reads.resolve(Stale(0)) == result.ts

    world.run(scenario)


def test_a_replica_that_never_heard_of_a_leader_answers_no_stale_read() -> None:
    world = World()

    async def scenario() -> None:
        node = await world.place("n2").start()
        assert (node_status(node).role, node_status(node).state, node.meta.ready) == ("learner", "no leader", False)
        with pytest.raises(Unavailable, match="it is not known how stale"):
            await node.meta.reads.resolve(Stale(60_000))
        with pytest.raises(NotLeader, match="no leader is known"):
            await node.meta.reads.linearize()

    world.run(scenario)


def test_a_transfer_under_load_refuses_nothing_that_another_try_does_not_do() -> None:
    world = World()

    async def scenario() -> None:
        nodes = dict(zip(("n1", "n2", "n3"), await world.grow("n1", "n2", "n3"), strict=True))
        done = asyncio.Event()
        counted = 0

        async def caller() -> None:
            nonlocal counted
            node = nodes["n1"]
            while not done.is_set():
                try:
                    await node.meta.write(increment("n"))
                    counted += 1
                except NotLeader as elsewhere:
                    if elsewhere.leader:
                        node = nodes[elsewhere.leader.partition(".")[0]]
                    else:
                        await world.sleep(1)  # it has not quite won yet

        callers = [asyncio.ensure_future(caller()) for _ in range(8)]
        await world.sleep(50)
        assert await nodes["n1"].meta.members.transfer("n3") == "n3"
        await world.sleep(50)
        assert node_status(nodes["n1"]).role == "follower"
        assert await nodes["n3"].meta.members.transfer() in ("n1", "n2")
        await world.sleep(50)
        done.set()
        await asyncio.gather(*callers)
        leader = await world.led()
        assert read(leader, "n", await leader.meta.reads.linearize()) == str(counted).encode()
        assert counted > 100

    world.run(scenario)


def test_a_stop_hands_over_first() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        began_ms = world.now_ms
        write = asyncio.ensure_future(n1.meta.write(put("k", b"v")))
        await world.places["n1"].stop()
        await world.led(but="n1")
        assert world.now_ms - began_ms < 100, "nobody waited for an election"
        outcome = (await asyncio.gather(write, return_exceptions=True))[0]
        assert not isinstance(outcome, Exception) or (isinstance(outcome, NotLeader) and outcome.leader)
        with pytest.raises(Unavailable, match="stopping"):
            await n1.meta.write(put("k", b"v"))

    world.run(scenario)


def test_a_leader_that_is_to_be_removed_hands_over_and_the_next_one_removes_it() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        with pytest.raises(NotLeader) as elsewhere:
            await n1.meta.members.remove("n1")
        leader = await world.led(but="n1")
        assert elsewhere.value.leader == leader.process.identity.address
        configuration = await leader.meta.members.remove("n1")
        assert [each.node_id for each in configuration.voters] == ["n2", "n3"]
        with pytest.raises(InvalidArgument):
            await leader.meta.members.remove("n9")

    world.run(scenario)


def test_the_only_voter_cannot_be_removed() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        with pytest.raises(InvalidArgument, match="only voter"):
            await n1.meta.members.remove("n1")

    world.run(scenario)


def test_a_leader_makes_its_new_addresses_known() -> None:
    world = World()

    async def scenario() -> None:
        await world.grow("n1")
        place = world.places["n1"]
        await place.stop()
        place.address, place.peer_address = "elsewhere.test:1", "elsewhere.test:2"
        node = await place.start()
        await world.until(lambda: node.meta.roster.voters == (place.member,), "they are known")
        await world.until(lambda: node.meta.applied.index == node_status(node).last_index, "and committed")

    world.run(scenario)


def test_a_leader_without_room_refuses_writes_answers_reads_and_goes_on_when_there_is_room() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await n1.meta.write(put("k", b"v"))
        await world.settled()
        disk = world.places["n1"].disk
        disk.failures += [ResourceExhausted("the disk is full", 1_000, "disk")] * 2
        stuck = asyncio.ensure_future(n1.meta.write(put("k", b"w")))
        await world.until(lambda: bool(node_status(n1).refused_for), "the disk was full")
        with pytest.raises(ResourceExhausted, match="the disk is full"):
            await n1.meta.write(put("k", b"x"))
        assert read(n1, "k", await n1.meta.reads.linearize()) == b"v"
        await stuck
        assert read(n1, "k", await n1.meta.reads.linearize()) == b"w"
        assert node_status(n1).state == "serving"
        await n1.meta.write(put("k", b"x"))

    world.run(scenario)


def test_a_follower_without_room_holds_nobody_up_and_catches_up_when_there_is_room() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        world.places["n2"].disk.failures += [ResourceExhausted("the disk is full", 1_000, "disk")] * 4
        for _ in range(20):
            await n1.meta.write(increment("n"))
        await n1.meta.reads.caught_up()
        assert n2.meta.applied.last_ts < n1.meta.applied.last_ts
        await world.settled()
        assert read(n2, "n") == b"20"

    world.run(scenario)


def test_a_leader_whose_disk_hangs_steps_aside() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.places["n1"].disk.hold()
        lost = asyncio.ensure_future(n1.meta.write(put("k", b"v")))
        began_ms = world.now_ms
        leader = await world.led(but="n1")
        assert world.now_ms - began_ms < 3_000
        await leader.meta.write(put("k", b"w"))
        world.places["n1"].disk.release()
        assert isinstance((await asyncio.gather(lost, return_exceptions=True))[0], Exception)
        await world.settled()
        assert read(n1, "k") == b"w"

    world.run(scenario)


def test_a_failed_disk_ends_one_node_and_not_the_group() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.places["n1"].disk.failures.append(StorageFailed("input/output error"))
        outcome = (await asyncio.gather(n1.meta.write(put("k", b"v")), return_exceptions=True))[0]
        assert isinstance(outcome, Exception)
        assert isinstance(await n1.process.life.failed(), StorageFailed)
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        await leader.meta.write(put("k", b"w"))

    world.run(scenario)


def test_a_new_epoch_holds_on_every_node_and_under_every_later_leader() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        before = await n1.meta.write(increment("n"))
        bumped = await n1.meta.write(epoch_after(0))
        after = await n1.meta.write(increment("n"))
        assert before.ts < bumped.ts < after.ts
        assert (bumped.ts.epoch, after.ts.epoch) == (1, 1)
        await world.settled()
        assert [node.process.clock.epoch for node in (n1, n2, n3)] == [1, 1, 1]
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        again = await leader.meta.write(increment("n"))
        assert again.ts > after.ts
        assert (again.ts.epoch, again.value) == (1, 3)

    world.run(scenario)


def test_a_node_whose_clock_is_wrong_against_a_majority_gives_up_leadership_and_does_not_seek_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        world.tell_clock(n1, "n2", -1_010, -990)
        await world.sleep(100)
        assert node_status(n1).role == "leader", "one of two others may be the one that is wrong"
        world.tell_clock(n1, "n3", -1_010, -990)
        leader = await world.led(but="n1")
        assert "this host's clock is off by more than max-clock-offset-ms" in caplog.text
        assert [each.node_id for each in node_status(n1).clock_offsets] == ["n2", "n3"]
        (other,) = (node for node in (n2, n3) if node is not leader)
        world.places[leader.process.identity.node_id].crash()
        await world.led(but=leader.process.identity.node_id)
        assert world.leader() is other
        world.tell_clock(n1, "n2", -10, 10)
        await other.meta.members.transfer("n1")
        assert world.leader() is n1

    world.run(scenario)


def test_a_leader_whose_clock_jumps_issues_the_time_that_went_by_until_most_clocks_confirm_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()

    def hears(node: Host, offset_ms: int) -> None:
        for peer in {"n1", "n2", "n3"} - {node.process.identity.node_id}:
            world.tell_clock(node, peer, offset_ms - 1, offset_ms + 1)

    async def scenario() -> None:
        n1, _n2, _n3 = await world.grow("n1", "n2", "n3")
        hears(n1, 0)
        before = (await n1.meta.write(increment("n"))).ts
        world.places["n1"].wall_offset_ms = 3_600_000
        began_ms = world.now_ms
        ahead = (await n1.meta.write(increment("n"))).ts
        assert ahead.wall_ms - before.wall_ms <= world.now_ms - began_ms + 1
        hears(n1, -3_600_000)
        await world.led(but="n1")
        said = r"the wall clock jumped by 3\d{6} ms \(60 min\), which the monotonic clock does not confirm"
        assert re.search(said, caplog.text)
        assert n1.process.host_time.jump_ms() == pytest.approx(3_600_000, abs=1)
        hears(n1, 0)
        assert n1.process.host_time.jump_ms() == 0, "all hosts slept: their clocks agree"
        assert n1.process.clock.reading().wall_ms - before.wall_ms >= 3_600_000

    world.run(scenario)


def test_a_wall_clock_that_jumps_before_an_exchange_is_reported_does_not_confirm_itself() -> None:
    world = World()

    async def scenario() -> None:
        n1, _n2, _n3 = await world.grow("n1", "n2", "n3")
        own_ms, _ = n1.process.host_time.offsets_ms()
        world.places["n1"].wall_offset_ms = 3_600_000
        for peer in ("n2", "n3"):
            # As it was measured, a moment ago.
            n1.observe_peer_clock(peer, own_ms - 1, own_ms + 1)
        await world.led(but="n1")
        assert n1.process.host_time.jump_ms() == pytest.approx(3_600_000, abs=1)

    world.run(scenario)


def test_a_node_that_was_started_with_a_wrong_clock_issues_the_time_of_most() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _n3 = await world.grow("n1", "n2", "n3")
        world.places["n2"].crash()
        world.places["n2"].wall_offset_ms = 3_600_000
        n2 = await world.places["n2"].start()
        for peer in ("n1", "n3"):
            world.tell_clock(n2, peer, -3_600_001, -3_599_999)
        assert n2.process.clock.reading().wall_ms - n1.process.clock.reading().wall_ms <= 251
        assert n2.process.host_time.jump_ms() == 0

    world.run(scenario)


def test_a_leader_that_has_heard_no_clock_since_its_start_serves_nothing_yet() -> None:
    world = World()

    async def scenario() -> None:
        _n1, _n2, n3 = await world.grow("n1", "n2", "n3")
        world.tells_clocks = False
        for each in world.places.values():
            each.crash()
        world.places["n3"].wall_offset_ms = 3_600_000
        n3 = await world.places["n3"].start()
        await world.places["n2"].start()
        world.places["n2"].node.meta.driver.veto("another leads", True)
        await world.until(lambda: n3.meta.driver.leadership.is_elected, "the node with the wrong clock is elected")
        await world.sleep(5_000)
        assert not n3.meta.driver.leadership.is_ready
        world.tells_clocks = True
        await world.led()
        result = await n3.meta.write(put("k", b"v"))
        assert result.ts.wall_ms <= NOW_MS + world.now_ms + MAX_OFFSET_MS + 1

    world.run(scenario)


def test_a_node_with_a_wrong_clock_issues_the_time_of_most_from_the_moment_that_there_are_most() -> None:
    world = World()

    async def scenario() -> None:
        n1, _ = await world.grow("n1", "n2")
        world.places["n2"].crash()
        world.places["n2"].wall_offset_ms = 600_000
        n2 = await world.places["n2"].start()
        world.tell_clock(n2, "n1", -600_001, -599_999)
        assert n2.process.clock.reading().wall_ms - n1.process.clock.reading().wall_ms > 500_000, (
            "of two, nobody can say who is right"
        )
        await world.join("n3")
        await world.promote("n3")
        await world.until(lambda: len(n2.meta.roster.voters) == 3, "n2 knows of n3")
        await world.settled()
        assert n2.process.clock.reading().wall_ms - n1.process.clock.reading().wall_ms <= 251

    world.run(scenario)


def test_a_replica_that_fell_behind_the_log_is_brought_up_by_a_snapshot() -> None:
    world = World(settings=RaftSettings(retain_entries=10))

    async def scenario() -> None:
        n1, _, n3 = await world.grow("n1", "n2", "n3")
        fetched = world.fetches
        world.cut_off("n3")
        for _ in range(200):
            await n1.meta.write(increment("n"))
        assert n3.meta.applied.index < n1.meta.applied.index - 150
        world.heal()
        await world.until(lambda: n3.meta.applied == n1.meta.applied, "a snapshot brought it up")
        assert world.fetches == fetched + 1
        assert read(n3, "n") == b"200"
        result = await n1.meta.write(increment("n"))
        await world.until(lambda: n3.meta.read_ts() == result.ts, "and it follows on")
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        assert (await leader.meta.write(increment("n"))).value == 202

    world.run(scenario)


def test_a_paused_replica_stores_nothing_and_then_goes_on() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        await n2.meta.driver.pause()
        before, done = n2.meta.applied, world.places["n2"].disk.done
        for _ in range(10):
            await n1.meta.write(increment("n"))
        await world.sleep(500)
        assert (n2.meta.applied, world.places["n2"].disk.done) == (before, done)
        n2.meta.driver.resume(before)
        await world.settled()
        assert read(n2, "n") == b"10"

    world.run(scenario)


def test_a_new_leader_looks_for_no_request_before_it_has_applied_all() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        id_ = bytes(n1.meta.read_ts()) + bytes(8)
        await n1.meta.write(increment("n"), request_id=id_, request_hash=b"h" * 16)
        moving = asyncio.ensure_future(n1.meta.members.transfer("n2"))
        await world.until(lambda: node_status(n2).role == "leader", "it leads")
        assert not n2.meta.ready
        with pytest.raises(Unavailable, match="not ready yet"):
            await n2.meta.write(increment("n"), request_id=id_, request_hash=b"h" * 16)
        without_id = asyncio.ensure_future(n2.meta.write(increment("n")))
        reading = asyncio.ensure_future(n2.meta.reads.linearize())
        await moving
        assert (await without_id).value == 2
        assert read(n2, "n", await reading) in (b"1", b"2")
        assert (await n2.meta.write(increment("n"), request_id=id_, request_hash=b"h" * 16)).repeated

    world.run(scenario)


def test_what_was_read_of_the_catalogue_ahead_of_the_log_goes_with_leadership() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.cut_off("n1")
        lost = asyncio.ensure_future(
            n1.meta.write(lambda reader, _ts: create_database(n1.meta.catalog(reader), "lost"))
        )
        await world.sleep(5)
        seen = asyncio.ensure_future(
            n1.meta.write(lambda reader, _ts: create_database(n1.meta.catalog(reader), "lost"))
        )
        await world.sleep(5)
        changes = list(n1.meta._catalog_cache._states)
        assert len(changes) == 2
        assert changes[-1] > n1.meta.applied.last_ts, "it has looked at a change that nobody else may ever see"
        await asyncio.gather(lost, seen, return_exceptions=True)
        assert not n1.meta._catalog_cache._states

    world.run(scenario)
