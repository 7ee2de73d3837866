"""Rounds that do only necessary work: work that they leave out is done when it matters, and soon enough."""

from __future__ import annotations

import asyncio

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import Message
from support.node_world import World
from support.nodes import increment, put, read


def test_a_leaders_own_disk_and_the_last_acknowledgement_are_no_rounds_of_a_lone_write() -> None:
    """One appends it, one counts the acknowledgement that decides it."""
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        driver, taken = n1.meta.driver, []
        for number in range(10):
            await world.sleep(5)
            before = driver.measures.rounds
            await n1.meta.write(put("k", b"%d" % number))
            taken.append(driver.measures.rounds - before)
        # But for heartbeats, which come when they do.
        assert sorted(taken)[len(taken) // 2] == 2

    world.run(scenario)


def test_the_last_acknowledgement_is_heard_soon_though_nobody_waits_for_it() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        # The third disk is slow: its word comes when the write is answered.
        world.places["n3"].disk.hold()
        await n1.meta.write(put("k", b"v"))
        last = n1.meta.log.last[0]
        world.places["n3"].disk.release()
        began_ms = world.now_ms

        def is_heard() -> bool:
            return all(each.match_index == last for each in n1.meta.member_progress())

        assert not is_heard()
        await world.until(is_heard, "both followers are known to have the entry")
        assert world.now_ms - began_ms < 10, "well before the next heartbeat"

    world.run(scenario)


def test_what_comes_while_the_disk_is_busy_is_evaluated_without_a_whole_round_and_becomes_one_entry() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        storage = world.places["n1"].disk
        driver = n1.meta.driver
        storage.hold()
        first = asyncio.ensure_future(n1.meta.write(increment("n")))
        await world.until(lambda: storage.waiting == 1, "the first batch is being stored")
        last = n1.meta.log.last[0]
        rest = []
        before = driver.measures.rounds
        for _ in range(10):
            rest.append(asyncio.ensure_future(n1.meta.write(increment("n"))))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert driver.measures.rounds == before
        assert driver.pipeline.open.commands == 10
        storage.release()
        results = await asyncio.gather(first, *rest)
        assert [result.value for result in results] == list(range(1, 12))
        assert n1.meta.log.last[0] == last + 1
        await world.until(lambda: n2.meta.read_ts() == results[-1].ts, "a follower has applied all")
        assert read(n2, "n") == b"11"

    world.run(scenario)


def test_a_report_of_the_disk_with_a_caller_waiting_is_one_round() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        driver, disk = n1.meta.driver, world.places["n1"].disk
        disk.hold()
        first = asyncio.ensure_future(n1.meta.write(put("k", b"1")))
        await world.until(lambda: disk.waiting == 1, "the first batch is being stored")
        second = asyncio.ensure_future(n1.meta.write(put("k", b"2")))
        await world.until(lambda: driver.pipeline.open.commands == 1, "the second batch is open")
        answer, answers = driver.pipeline.answer_committed, list[int]()

        def answered() -> int:
            answers.append(driver.measures.rounds)
            return answer()

        driver.pipeline.answer_committed = answered  # type: ignore[method-assign]
        before = driver.measures.rounds
        disk.let_one_through()
        assert answers == [before + 1]
        disk.release()
        await asyncio.gather(first, second)

    world.run(scenario)


def test_a_commit_that_the_next_entry_tells_needs_no_notice() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        notices, carry = list[str](), world.carry

        def watched(sender: str, group_id: int, message: Message) -> None:
            body = pb.RaftMessage.FromString(message.body)
            if body.HasField("heartbeat") and not body.heartbeat.round:
                notices.append(message.to)
            carry(sender, group_id, message)

        world.carry = watched  # type: ignore[method-assign]
        for number in range(40):
            await n1.meta.write(put("k", b"%d" % number))
            await world.sleep(5)
        assert not notices
        last, began_ms = n1.meta.log.last[0], world.now_ms
        await world.until(lambda: n2.meta.log.durable_commit_index == n3.meta.log.durable_commit_index == last, "told")
        assert sorted(notices) == ["n2", "n3"]
        assert world.now_ms - began_ms < 2 * n1.process.raft.notice_ms + 10, "well before the next heartbeat"

    world.run(scenario)
