"""Writes through a node: one commit a batch, order, dependent writes, no room, and the end."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import (
    ConditionFailed,
    DataLoss,
    Internal,
    OutcomeUnknown,
    ResourceExhausted,
    TooLarge,
    Unavailable,
)
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.failures import StorageFailed
from cortado.store.host.status import node_status
from cortado.store.mvcc.evaluation import Absent, Evaluation, check_condition
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.process.limits import NodeLimits
from support.nodes import NodeDisk, increment, key, put, read, run, running_node, until


def insert(name: str) -> object:
    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        check_condition(Absent(), name, reader.get(key(name)))
        mutations = Mutations()
        mutations.put(key(name), b"here")
        return Evaluation(mutations, None)

    return evaluate


def test_64_concurrent_increments_of_one_key_lose_nothing_and_share_commits() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            before = disk.appends
            results = await asyncio.gather(*(node.meta.write(increment("n")) for _ in range(64)))
            assert sorted(result.value for result in results) == list(range(1, 65))
            assert read(node, "n") == b"64"
            assert disk.appends - before <= 3
            timestamps = [result.ts for result in results]
            assert timestamps == sorted(set(timestamps)), "one timestamp for each, rising"

    run(scenario)


def test_what_arrives_while_the_disk_is_busy_sees_what_is_in_flight_and_becomes_one_commit() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            disk.hold()
            first = asyncio.ensure_future(node.meta.write(increment("n")))
            await until(lambda: disk.held == 1, "the first batch is being stored")
            rest = [asyncio.ensure_future(node.meta.write(increment("n"))) for _ in range(10)]
            await asyncio.sleep(0)
            commits = disk.appends
            assert read(node, "n") is None, "nothing is visible before it is durable"
            disk.release()
            assert [(await each).value for each in [first, *rest]] == list(range(1, 12))
            assert disk.appends == commits + 2

    run(scenario)


def test_one_of_many_racing_inserts_wins() -> None:
    async def scenario() -> None:
        async with running_node(NodeDisk()) as node:
            outcomes = await asyncio.gather(*(node.meta.write(insert("k")) for _ in range(64)), return_exceptions=True)
            refused = [each for each in outcomes if isinstance(each, ConditionFailed)]
            assert len(refused) == 63

    run(scenario)


def test_a_refusal_waits_until_what_it_rests_on_is_durable() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            disk.hold()
            winner = asyncio.ensure_future(node.meta.write(insert("k")))
            await until(lambda: disk.held == 1, "the insert is being stored")
            loser = asyncio.ensure_future(node.meta.write(insert("k")))
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert not loser.done(), "refused because of a write that may yet be lost"
            disk.release()
            await winner
            with pytest.raises(ConditionFailed):
                await loser

    run(scenario)


def test_a_refusal_that_rested_on_a_write_without_room_is_worked_out_again() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            disk.hold()
            disk.failures.append(ResourceExhausted("no room", 1000, "map"))
            first = asyncio.ensure_future(node.meta.write(insert("k")))
            await until(lambda: disk.held == 1, "the insert is being stored")
            second = asyncio.ensure_future(node.meta.write(insert("k")))
            await asyncio.sleep(0.01)
            disk.release()
            with pytest.raises(ResourceExhausted):
                await first
            await second
            assert read(node, "k") == b"here"

    run(scenario)


def test_without_room_the_batch_is_refused_whole_and_what_built_on_it_starts_from_what_is_durable() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            await node.meta.write(increment("n"))
            await node.meta.reads.caught_up()
            index = node.meta.applied.index
            disk.hold()
            disk.failures.append(ResourceExhausted("no room", 1000, "map"))
            lost = asyncio.ensure_future(node.meta.write(increment("n")))
            await until(lambda: disk.held == 1, "the increment is being stored")
            after = asyncio.ensure_future(node.meta.write(increment("n")))
            await asyncio.sleep(0.01)
            disk.release()
            with pytest.raises(ResourceExhausted, match="no room"):
                await lost
            result = await after
            assert result.value == 2, "the refused increment never happened"
            assert read(node, "n") == b"2"
            await node.meta.reads.caught_up()
            assert node.meta.applied.index == index + 1, "its place in the log was taken back"
            assert node_status(node).state == "serving"

    run(scenario)


def test_without_room_reads_go_on_and_the_state_says_why() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            await node.meta.write(put("k", b"v"))
            disk.failures.append(ResourceExhausted("the disk is full", 1000, "disk"))
            with pytest.raises(ResourceExhausted):
                await node.meta.write(put("k", b"w"))
            assert read(node, "k") == b"v"
            assert node_status(node).state == "read-only: the disk is full"
            await node.meta.write(put("k", b"x"))
            assert node_status(node).state == "serving"

    run(scenario)


def test_a_failed_disk_stops_the_node_and_the_outcome_is_unknown() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            disk.hold()
            disk.failures.append(StorageFailed("input/output error"))
            in_flight = asyncio.ensure_future(node.meta.write(put("k", b"v")))
            await until(lambda: disk.held == 1, "the write is being stored")
            behind = asyncio.ensure_future(node.meta.write(put("k", b"w")))
            await asyncio.sleep(0.01)
            disk.release()
            with pytest.raises(OutcomeUnknown):
                await in_flight
            with pytest.raises(Unavailable):
                await behind
            assert isinstance(await node.process.life.failed(), StorageFailed)
            with pytest.raises(Unavailable, match="has stopped"):
                await node.meta.write(put("k", b"x"))

    run(scenario)


def test_a_defect_in_evaluation_is_the_callers_error_alone(caplog: pytest.LogCaptureFixture) -> None:
    def defect(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        raise ZeroDivisionError

    async def scenario() -> None:
        async with running_node(NodeDisk()) as node:
            outcomes = await asyncio.gather(
                node.meta.write(put("a", b"1")),
                node.meta.write(defect),
                node.meta.write(put("b", b"2")),
                return_exceptions=True,
            )
            assert isinstance(outcomes[1], Internal)
            assert (read(node, "a"), read(node, "b")) == (b"1", b"2")

    run(scenario)
    assert "ZeroDivisionError" in caplog.text


def test_a_write_without_an_effect_commits_nothing_and_is_told_the_newest_timestamp() -> None:
    def nothing(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        return Evaluation(Mutations(), "nothing")

    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            written = await node.meta.write(put("k", b"v"))
            commits = disk.appends
            result = await node.meta.write(nothing)
            assert (result.ts, result.value) == (written.ts, "nothing")
            assert disk.appends == commits

    run(scenario)


def test_one_write_may_not_change_more_than_an_entry_may_hold() -> None:
    async def scenario() -> None:
        async with running_node(NodeDisk(), limits=NodeLimits(command_bytes_max=1000)) as node:
            with pytest.raises(TooLarge) as refused:
                await node.meta.write(put("k", bytes(1000)))
            assert refused.value.limit == 1000
            await node.meta.write(put("k", bytes(800)))

    run(scenario)


def test_a_batch_is_bounded_in_commands_and_bytes() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk, limits=NodeLimits(batch_commands_max=4, batch_bytes_max=10_000)) as node:
            before = disk.appends
            await asyncio.gather(*(node.meta.write(increment("n")) for _ in range(16)))
            assert disk.appends - before == 4
            before = disk.appends
            await asyncio.gather(*(node.meta.write(put(f"k{i}", bytes(6_000)), size_bytes=6_000) for i in range(3)))
            assert disk.appends - before == 3

    run(scenario)


def test_past_the_bound_of_writes_in_flight_the_answer_comes_at_once_with_a_delay() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk, limits=NodeLimits(writes_max=8)) as node:
            disk.hold()
            writes = [asyncio.ensure_future(node.meta.write(increment("n"))) for _ in range(8)]
            await until(lambda: node_status(node).queues[0].count == 8, "eight writes are in flight")
            with pytest.raises(ResourceExhausted) as refused:
                await node.meta.write(increment("n"))
            assert (refused.value.resource, refused.value.limit) == ("writes", 8)
            assert refused.value.retry_delay_ms > 0
            disk.release()
            await asyncio.gather(*writes)
            assert (await node.meta.write(increment("n"))).value == 9
            assert node_status(node).queues[0].count == 0

    run(scenario)


def test_a_caller_who_leaves_before_evaluation_writes_nothing() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk, limits=NodeLimits(batch_commands_max=1)) as node:
            disk.hold()
            storing = asyncio.ensure_future(node.meta.write(increment("n")))
            await until(lambda: disk.held == 1, "the first write is being stored")
            open_batch = asyncio.ensure_future(node.meta.write(increment("n")))
            waiting = asyncio.ensure_future(node.meta.write(increment("n")))
            await asyncio.sleep(0.01)
            waiting.cancel()
            disk.release()
            await asyncio.gather(storing, open_batch)
            await until(lambda: node_status(node).queues[0].count == 0, "everything left")
            assert read(node, "n") == b"2"

    run(scenario)


def test_a_caller_who_leaves_after_evaluation_does_not_stop_the_write() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            disk.hold()
            write = asyncio.ensure_future(node.meta.write(increment("n")))
            await until(lambda: disk.held == 1, "the write is being stored")
            write.cancel()
            disk.release()
            await until(lambda: read(node, "n") == b"1", "the write is durable")

    run(scenario)


def test_a_stop_finishes_what_is_in_flight_and_refuses_the_rest() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            disk.hold()
            writes = [asyncio.ensure_future(node.meta.write(increment("n"))) for _ in range(5)]
            await until(lambda: disk.held == 1, "the writes are being stored")
            stop = asyncio.ensure_future(node.stop())
            await asyncio.sleep(0.01)
            with pytest.raises(Unavailable, match="stopping"):
                await node.meta.write(increment("n"))
            disk.release()
            await stop
            assert [(await each).value for each in writes] == [1, 2, 3, 4, 5]

    run(scenario)


def test_a_node_whose_data_somebody_else_has_written_stops_and_overwrites_nothing() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as first, running_node(disk) as second:
            assert (await second.meta.write(increment("n"))).value == 1
            with pytest.raises(OutcomeUnknown):
                await first.meta.write(increment("n"))
            assert isinstance(await first.process.life.failed(), DataLoss)
            assert (await second.meta.write(increment("n"))).value == 2

    run(scenario)
