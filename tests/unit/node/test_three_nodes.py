"""Three nodes on virtual time: acknowledged writes stay, under any leader; unknown outcomes are said to be unknown."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cortado.errors import ConditionFailed, InvalidArgument, NotLeader, OutcomeUnknown, ResourceExhausted, Unavailable
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.mvcc.evaluation import Absent, Evaluation, check_condition
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.write.group_commit import APPLY_WAIT_MS
from cortado.store.replica.write.proposals import WriteResult
from support.node_world import World
from support.nodes import increment, key, put, read


def test_three_nodes_replicate_what_is_written() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        results = await asyncio.gather(*(n1.meta.write(increment("n")) for _ in range(64)))
        assert sorted(result.value for result in results) == list(range(1, 65))
        nodes = (n1, n2, n3)
        await world.until(lambda: all(node.meta.read_ts() == results[-1].ts for node in nodes), "all have applied all")
        for node in nodes:
            assert read(node, "n") == b"64"
            assert read(node, "n", results[9].ts) == b"10"
        assert [each.node_id for each in n2.meta.roster.voters] == ["n1", "n2", "n3"]

    world.run(scenario)


def test_the_leader_stops_and_another_one_goes_on_with_everything() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        written = await n1.meta.write(put("k", b"v"))
        world.places["n1"].crash()
        began_ms = world.now_ms
        leader = await world.led(but="n1")
        assert world.now_ms - began_ms < 2_000
        assert read(leader, "k", await leader.meta.reads.linearize()) == b"v"
        again = await leader.meta.write(put("k", b"w"))
        assert again.ts > written.ts
        await world.places["n1"].start()
        n1 = world.places["n1"].node
        await world.until(lambda: n1.meta.applied.last_ts == again.ts, "the one that was away has caught up")
        assert read(n1, "k") == b"w"
        assert node_status(n1).role == "follower"

    world.run(scenario)


def test_a_follower_sends_callers_to_the_leaders_address() -> None:
    world = World()

    async def scenario() -> None:
        _, n2, _ = await world.grow("n1", "n2", "n3")
        for call in (n2.meta.write(put("k", b"v")), n2.meta.reads.linearize(), n2.meta.members.add("n4", "n4.test:1")):
            with pytest.raises(NotLeader) as refused:
                await call
            assert refused.value.leader == "n1.test:7621"

    world.run(scenario)


def test_who_announces_a_member_again_is_answered_when_the_first_announcement_is_decided() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.cut_off("n1")
        first = asyncio.ensure_future(n1.meta.members.add("n4", "n4.test:7621"))
        await world.until(lambda: n1.meta.roster.member("n4") is not None, "it is appended")
        again = asyncio.ensure_future(n1.meta.members.add("n4", "n4.test:7621"))
        await world.sleep(300)
        assert not again.done()
        world.heal()
        assert (await first).member("n4") == (await again).member("n4") is not None
        assert (await n1.meta.members.add("n4", "n4.test:7621")).learners == n1.meta.roster.learners

    world.run(scenario)


def test_the_next_leader_completes_a_removal_of_which_it_has_the_first_entry_alone() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        await world.join("n4")
        # As a leader that dies between the two.
        log = n1.meta.log
        log.members._configure(log.configuration.without("n4"))
        n1.meta.driver.schedule()
        await world.until(lambda: all("n4" not in each.meta.configuration.members for each in (n2, n3)), "they have it")
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        await world.until(lambda: leader.meta.is_removed("n4"), "its id is used up, and that is committed")
        with pytest.raises(InvalidArgument, match="an id is never used again"):
            await leader.meta.members.add("n4", "n4.test:7621")

    world.run(scenario)


def test_a_node_that_moves_changes_no_configuration_on_any_node() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2", "n3")
        before = [each.meta.configuration for each in nodes]
        moved = replace(world.places["n2"].member, peer_address="elsewhere.test:2")
        await nodes[0].meta.bind_member(moved)
        await world.until(lambda: all(each.meta.roster.member("n2") == moved for each in nodes), "all know")
        assert all(each.meta.configuration is old for each, old in zip(nodes, before, strict=True))
        assert all(world.places[name].transport.rosters[-1].member("n2") == moved for name in ("n1", "n3"))

    world.run(scenario)


def test_a_cut_off_leader_says_that_it_does_not_know_and_answers_no_read() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await n1.meta.write(put("k", b"old"))
        world.cut_off("n1")
        write = asyncio.ensure_future(n1.meta.write(put("k", b"lost?")))
        reading = asyncio.ensure_future(n1.meta.reads.linearize())
        leader = await world.led(but="n1")
        await leader.meta.write(put("k", b"new"))
        with pytest.raises(OutcomeUnknown):
            await write
        with pytest.raises(NotLeader):
            await reading
        with pytest.raises(NotLeader):
            await n1.meta.write(put("k", b"never"))
        world.heal()
        await world.until(lambda: n1.meta.applied == leader.meta.applied, "it has caught up")
        assert read(n1, "k") == b"new"

    world.run(scenario)


def test_messages_that_come_twice_change_nothing() -> None:
    world = World()
    world.copies = 2

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2", "n3")
        results = await asyncio.gather(*(nodes[0].meta.write(increment("n")) for _ in range(50)))
        last = await nodes[0].meta.write(increment("n"))
        assert sorted(result.value for result in results) == list(range(1, 51))
        await world.until(lambda: all(node.meta.read_ts() == last.ts for node in nodes), "all have applied all")
        assert [read(node, "n") for node in nodes] == [b"51"] * 3
        assert len({node.meta.applied for node in nodes}) == 1

    world.run(scenario)


def test_an_idle_group_writes_nothing_and_stays_with_its_leader() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2", "n3")
        await nodes[0].meta.write(put("k", b"v"))
        await world.sleep(1_000)
        done = [each.disk.done for each in world.places.values()]
        term = nodes[0].meta.term
        await world.sleep(60_000)
        for node in nodes:
            assert node.meta.ready
        await nodes[0].meta.reads.linearize()
        assert [each.disk.done for each in world.places.values()] == done
        assert (nodes[0].meta.term, node_status(nodes[0]).role) == (term, "leader")

    world.run(scenario)


def test_leadership_lost_says_of_each_write_what_is_known_of_it() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.cut_off("n1")
        disk = world.places["n1"].disk
        disk.hold()
        appended = asyncio.ensure_future(n1.meta.write(put("a", b"1")))
        await world.until(lambda: disk.waiting == 1, "the first one is appended, and being stored")
        opened = asyncio.ensure_future(n1.meta.write(put("b", b"1")))
        resting = asyncio.ensure_future(n1.meta.write(_refuse))
        await world.until(lambda: node_status(n1).role != "leader", "it knows that it is alone")
        disk.release()
        with pytest.raises(OutcomeUnknown):
            await appended
        for did_not_happen in (opened, resting):
            with pytest.raises(NotLeader):
                await did_not_happen
        assert node_status(n1).queues[0].count == 0

    world.run(scenario)


def _refuse(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
    raise ConditionFailed("k", "absent", "present")


def test_a_refusal_of_a_leader_that_was_deposed_is_not_given() -> None:
    """Not even if all that it rests on is committed: a majority had acknowledged it before the other leader came."""
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.hold("n2", "n1")
        world.hold("n3", "n1")
        insert = asyncio.ensure_future(n1.meta.write(put("k", b"here")))
        await world.sleep(10)
        world.cuts = {("n1", "n2"), ("n1", "n3")}
        acknowledgements, world.held = world.held, []
        leader = await world.led(but="n1")
        await leader.meta.write(_remove)
        # n1 has not heard of it. It sees the insert, which becomes committed now.
        assert node_status(n1).role == "leader"
        refused = asyncio.ensure_future(n1.meta.write(_insert))
        without_effect = asyncio.ensure_future(n1.meta.write(_nothing))
        await world.sleep(1)
        world.held = acknowledgements
        world.let_go()
        await insert
        await world.sleep(1)
        assert node_status(n1).role == "leader"
        assert not refused.done()
        assert not without_effect.done()
        world.heal()
        for each in (refused, without_effect):
            with pytest.raises(NotLeader):
                await each

    world.run(scenario)


def _remove(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
    mutations = Mutations()
    mutations.delete(key("k"))
    return Evaluation(mutations, None)


def _insert(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
    check_condition(Absent(), "k", reader.get(key("k")))
    mutations = Mutations()
    mutations.put(key("k"), b"again")
    return Evaluation(mutations, None)


def _nothing(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
    return Evaluation(Mutations(), reader.get(key("k")))


def test_a_write_is_answered_when_it_is_committed_and_read_before_it_is_applied() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await world.sleep(100)
        disk, data = world.places["n1"].disk, world.places["n1"].data
        disk.hold()
        data.hold()
        id_ = bytes(n1.meta.read_ts()) + bytes(8)
        write = asyncio.ensure_future(n1.meta.write(increment("n"), request_id=id_, request_hash=b"h" * 16))
        await world.until(lambda: disk.waiting == 1, "the entry is being stored")
        await world.sleep(10)
        assert not write.done(), "a leader's own disk is asked, too"
        disk.let_one_through()
        result = await write
        await world.until(lambda: data.waiting == 1, "it is being applied")
        assert await n1.meta.reads.linearize() == result.ts
        assert read(n1, "n", result.ts) == b"1"
        assert read(n1, "n", n1.meta.applied.last_ts) is None
        again = await n1.meta.write(increment("n"), request_id=id_, request_hash=b"h" * 16)
        assert (again.ts, again.repeated) == (result.ts, True), "a retry finds it before the table has it"
        scanning = asyncio.ensure_future(n1.meta.reads.applied_to(result.ts))
        await world.sleep(20)
        assert not scanning.done(), "the engine does not have it yet"
        disk.release()
        data.release()
        assert await scanning == result.ts
        assert read(n1, "n", await n1.meta.reads.linearize()) == b"1"

    world.run(scenario)


def test_what_was_read_from_memory_is_not_read_any_more_where_leadership_was_lost() -> None:
    """Until the entry is applied, a deposed leader does not know of the row that it had promised."""
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.places["n1"].data.hold()
        written = await n1.meta.write(put("k", b"v"))
        assert read(n1, "k", written.ts) == b"v"
        world.cut_off("n1")
        await world.until(lambda: not n1.meta.driver.leadership.is_elected, "it gives up")
        assert n1.meta.read_ts() < written.ts
        with pytest.raises(Unavailable, match="leadership was lost"):
            n1.meta.reader(written.ts)
        world.places["n1"].data.release()
        assert await n1.meta.reads.applied_to(written.ts) == written.ts
        assert read(n1, "k", written.ts) == b"v"

    world.run(scenario)


@pytest.mark.parametrize("is_full", [True, False], ids=["no room", "hangs"])
def test_a_leader_whose_data_is_stuck_hands_over_and_leads_again_when_it_is_not(is_full: bool) -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        data = world.places["n1"].data
        if is_full:
            data.failures = [ResourceExhausted("full", 100, "disk", 1) for _ in range(1_000)]
        else:
            data.hold()
        written = await n1.meta.write(put("k", b"v"))
        led = await world.led(but="n1")
        await led.meta.write(put("k", b"w"))
        data.failures = []
        data.release()
        await world.until(lambda: n1.meta.applied.last_ts > written.ts, "it has applied all")
        await led.meta.members.transfer("n1")
        assert (await world.led(but=led.process.identity.node_id)) is n1

    world.run(scenario)


def test_a_write_costs_each_node_one_write_of_its_log_and_many_are_applied_together() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2", "n3")
        n1 = nodes[0]
        places = [world.places[node.process.identity.node_id] for node in nodes]
        await world.until(lambda: all(node.meta.applied == n1.meta.applied for node in nodes), "nothing is on its way")
        before = [place.disk.done for place in places]
        applied_before = [place.data.done for place in places]
        for number in range(50):
            written = await n1.meta.write(put("k", b"%d" % number))
        after = [place.disk.done for place in places]
        assert [end - begin for begin, end in zip(before, after, strict=True)] == [50, 50, 50]
        assert all(place.data.done - begun < 25 for place, begun in zip(places, applied_before, strict=True))
        began_ms = world.now_ms
        await n1.meta.reads.caught_up()
        assert n1.meta.applied.last_ts == written.ts
        assert world.now_ms - began_ms < APPLY_WAIT_MS / 2, "it is applied at once for whoever waits for it"
        written = await n1.meta.write(put("k", b"w"))
        await world.until(lambda: n1.meta.applied.last_ts == written.ts, "it is applied though nobody asks")

    world.run(scenario)


def test_who_waits_for_what_is_decided_is_told_where_it_takes_too_long_or_the_data_is_replaced() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2", "n3")
        n3, place = nodes[2], world.places["n3"]
        place.disk.hold()
        await nodes[0].meta.write(put("k", b"v"))
        await world.until(
            lambda: n3.meta.log.durable_commit_index > n3.meta.applied.index, "n3 knows more than it has applied"
        )
        began_ms = world.now_ms
        with pytest.raises(Unavailable, match="has not applied all entries within 5 s that it knows to be committed"):
            await n3.meta.reads.caught_up()
        assert world.now_ms - began_ms < 6_000
        waiting = asyncio.ensure_future(n3.meta.reads.caught_up())
        await world.sleep(10)
        n3.meta.store.unreadable = "a snapshot is being installed"
        n3.meta.driver.schedule()
        with pytest.raises(Unavailable, match="a snapshot is being installed"):
            await waiting
        n3.meta.store.unreadable = ""
        place.disk.release()

    world.run(scenario)


def test_callers_who_ask_again_when_they_are_answered_share_entries() -> None:
    world = World()

    async def scenario() -> None:
        n1, *_ = await world.grow("n1", "n2", "n3")

        async def caller(number: int) -> None:
            # They come apart, while others wait already.
            await asyncio.sleep(number * 0.0002)
            for _ in range(20):
                await n1.meta.write(increment("n"))

        first_index = n1.meta.applied.index
        await asyncio.gather(*(caller(number) for number in range(32)))
        assert read(n1, "n", await n1.meta.reads.linearize()) == b"640"
        assert n1.meta.applied.index - first_index <= 25

    world.run(scenario)


def test_a_retry_at_the_next_leader_has_one_effect_and_the_first_answer() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        id_ = bytes(n1.meta.read_ts()) + bytes(8)
        world.hold("n2", "n1")
        world.hold("n3", "n1")
        lost = asyncio.ensure_future(_count(n1, id_))
        await world.until(lambda: node_status(n2).last_index > n2.meta.applied.index, "the entry arrived")
        await world.sleep(5)
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        first = await _count(leader, id_)
        assert (first.repeated, first.reply) == (True, b"1")
        world.let_go()
        await world.places["n1"].start()
        await world.settled()
        await leader.meta.members.transfer("n1")
        n1 = world.places["n1"].node
        await world.led(above=leader.meta.term - 1)
        again = await _count(n1, id_)
        assert (again.repeated, again.ts, again.reply) == (True, first.ts, b"1")
        assert read(n1, "n", await n1.meta.reads.linearize()) == b"1"
        assert {node.meta.applied.requests for node in (n1, n2, n3)} == {1}
        lost.cancel()

    world.run(scenario)


async def _count(node: Host, request_id: bytes) -> WriteResult:
    return await node.meta.write(
        increment("n"),
        request_id=request_id,
        request_hash=b"h" * 16,
        encode_reply=lambda _ts, number: str(number).encode(),
    )


def test_what_the_leader_forgets_every_replica_forgets() -> None:
    world = World(limits=NodeLimits(remember_requests_max=10))

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        ids = []
        for number in range(25):
            ids.append(bytes(n1.process.clock.now()) + number.to_bytes(8))
            await _count(n1, ids[-1])
        await world.settled()
        assert n2.meta.applied == n3.meta.applied == n1.meta.applied
        assert n3.meta.applied.requests == 10
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        for id_ in ids[:15]:
            with pytest.raises(OutcomeUnknown, match="too old"):
                await _count(leader, id_)
        for number, id_ in enumerate(ids[15:], start=16):
            assert (await _count(leader, id_)).reply == str(number).encode()

    world.run(scenario)
