"""Entries appended and not applied are bounded in number and in bytes, by their writes and not by their requests."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import InvalidArgument, OutcomeUnknown, ResourceExhausted, Unavailable
from cortado.raft.group import RaftLog
from cortado.store.auth.caller import CALLER, Caller
from cortado.store.auth.current import Credential
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.mvcc.drafts import Draft
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.apply.applier import Applier
from support.memory_engine import MemoryEngine
from support.node_world import World
from support.nodes import NodeDisk, increment, key, make_node, put, read, run, running_node, until
from support.work import instructions_at_most

GROWN_BYTES = 40_000
LIMITS = NodeLimits(
    batch_bytes_max=100_000, command_bytes_max=200_000, entries_in_flight_max=6, entries_in_flight_bytes_max=300_000
)


def grow(name: str, size_bytes: int = GROWN_BYTES) -> Evaluate:
    """Return a request of a few bytes that rewrites a large value: the next number, and as many bytes as asked."""

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        version = reader.get(key(name))
        count = 1 + (0 if version is None else int(version.payload[:8]))
        mutations = Mutations()
        mutations.put(key(name), b"%08d" % count + bytes(size_bytes))
        return Evaluation(mutations, count)

    return evaluate


def test_small_requests_that_write_much_never_exceed_the_bounds_of_entries_in_flight() -> None:
    world = World(limits=LIMITS)

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        pipeline = n1.meta.driver.pipeline
        for follower in ("n2", "n3"):
            world.hold(follower, "n1")
        writes = [asyncio.ensure_future(n1.meta.write(grow("k"), size_bytes=50)) for _ in range(100)]
        entries_max = bytes_max = 0
        for _ in range(400):
            await world.sleep(1)
            entries_max = max(entries_max, pipeline.use[1])
            bytes_max = max(bytes_max, pipeline.appended_bytes)
        assert 1 < entries_max <= LIMITS.entries_in_flight_max
        assert 200_000 < bytes_max <= LIMITS.entries_in_flight_bytes_max
        assert not any(each.done() for each in writes), "nothing is committed without a follower's word"
        world.let_go()
        results = await asyncio.gather(*writes)
        assert [each.value for each in results] == list(range(1, 101))
        stamps = [each.ts for each in results]
        assert stamps == sorted(set(stamps))

    world.run(scenario)


def test_a_write_that_finds_no_room_in_the_open_batch_heads_the_next_one() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk, limits=LIMITS) as node:
            driver, entries = node.meta.driver, node.meta.applied.index
            disk.hold()
            first = asyncio.ensure_future(node.meta.write(increment("n")))
            await until(lambda: disk.held == 1, "the first batch is being stored")
            rest = [asyncio.ensure_future(node.meta.write(grow("k"), size_bytes=50)) for _ in range(3)]
            last = asyncio.ensure_future(node.meta.write(increment("n")))
            await until(lambda: driver.pipeline.is_full, "the third is more than the open batch has room for")
            assert driver.pipeline.use == (1, 1), "nothing is evaluated behind it, and nothing more appended"
            assert driver.pipeline.open.commands == 2
            disk.release()
            assert [each.value for each in await asyncio.gather(first, *rest, last)] == [1, 1, 2, 3, 2]
            await node.meta.reads.caught_up()
            assert node.meta.applied.index == entries + 3

    run(scenario)


def test_a_write_that_was_drafted_has_an_entry_to_itself() -> None:
    def draft(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        counted = reader.get(key("n"))
        assert counted is not None
        return Evaluation(Draft(Mutations([key("d"), key("c")], [b"d", counted.payload])), None)

    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            entries = node.meta.applied.index
            disk.hold()
            first = asyncio.ensure_future(node.meta.write(increment("n")))
            await until(lambda: disk.held == 1, "the first batch is being stored")
            writes = [increment("n"), draft, draft, increment("n"), increment("n")]
            rest = [asyncio.ensure_future(node.meta.write(each)) for each in writes]
            await until(lambda: node.meta.driver.pipeline.is_full, "a drafted write waits for the open batch")
            disk.release()
            results = await asyncio.gather(first, *rest)
            assert [each.value for each in results] == [1, 2, None, None, 3, 4]
            stamps = [each.ts for each in results]
            assert stamps == sorted(set(stamps)), "in their order"
            await node.meta.reads.caught_up()
            assert node.meta.applied.index == entries + 5
            assert [read(node, each) for each in "ncd"] == [b"4", b"2", b"d"]

    run(scenario)


def test_a_read_at_a_time_waits_for_the_write_that_heads_the_next_batch() -> None:
    world = World(limits=LIMITS)

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        # It raises the ceiling, so that reads below it wait only for entries in flight.
        await n1.meta.reads.resolve(n1.process.clock.now())
        disk, pipeline = world.places["n1"].disk, n1.meta.driver.pipeline
        disk.hold()
        writes = [asyncio.ensure_future(n1.meta.write(increment("n")))]
        await world.until(lambda: disk.waiting == 1, "the first batch is being stored")
        writes += [asyncio.ensure_future(n1.meta.write(grow("k"), size_bytes=50)) for _ in range(3)]
        await world.until(lambda: pipeline.is_full, "one is more than the open batch has room for")
        reading = asyncio.ensure_future(n1.meta.reads.resolve(n1.process.clock.now()))
        await world.sleep(1)
        for _ in range(2):
            disk.let_one_through()
            await world.sleep(2)
        assert pipeline.use == (0, 1), "the third write alone is not durable"
        assert not reading.done()
        disk.let_one_through()
        assert (read(n1, "k", await reading) or b"")[:8] == b"%08d" % 3
        await asyncio.gather(*writes)
        disk.release()

    world.run(scenario)


def test_what_heads_the_next_batch_is_evaluated_again_where_the_batch_before_it_found_no_room() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk, limits=LIMITS) as node:
            disk.hold()
            refused = asyncio.ensure_future(node.meta.write(grow("k"), size_bytes=50))
            await until(lambda: disk.held == 1, "the first batch is being stored")
            rest = [asyncio.ensure_future(node.meta.write(grow("k"), size_bytes=50)) for _ in range(3)]
            await until(lambda: node.meta.driver.pipeline.is_full, "one is more than the open batch has room for")
            disk.failures.append(ResourceExhausted("the disk is full", 1, "disk"))
            disk.release()
            with pytest.raises(ResourceExhausted):
                await refused
            assert [each.value for each in await asyncio.gather(*rest)] == [1, 2, 3]
            await node.meta.reads.caught_up()
            assert node.meta.driver.pipeline.appended_bytes == 0

    run(scenario)


def test_what_heads_the_next_batch_is_answered_when_leadership_is_lost() -> None:
    world = World(limits=LIMITS)

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.places["n1"].disk.hold()
        writes = [asyncio.ensure_future(n1.meta.write(put("a", b"1")))]
        await world.until(lambda: world.places["n1"].disk.waiting == 1, "the first batch is being stored")
        writes += [asyncio.ensure_future(n1.meta.write(grow("k"), size_bytes=50)) for _ in range(3)]
        await world.until(lambda: n1.meta.driver.pipeline.is_full, "one is more than the open batch has room for")
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(each).__name__ for each in outcomes] == ["OutcomeUnknown", *["NotLeader"] * 3]
        assert not n1.meta.driver.pipeline.is_full
        # While its disk is held. With a disk that works it may win again: it is in the next term already.
        await world.led(but="n1")
        world.places["n1"].disk.release()
        await world.settled()

    world.run(scenario)


def test_a_batch_that_cannot_be_appended_leaves_nobody_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_node() as node:
            await node.meta.write(increment("n"))

            def fails(*_: object, **__: object) -> None:
                raise RuntimeError("a defect")

            monkeypatch.setattr(RaftLog, "append", fails)
            with pytest.raises((Unavailable, OutcomeUnknown)):
                await asyncio.wait_for(node.meta.write(increment("n")), 5)
            assert isinstance(await node.process.life.failed(), RuntimeError)

    run(scenario)


def test_the_bound_on_bytes_in_flight_must_hold_one_entry() -> None:
    with pytest.raises(InvalidArgument, match=r"entries_in_flight_bytes_max.*between 5242880"):
        make_node(limits=NodeLimits(entries_in_flight_bytes_max=1 << 20))


@pytest.mark.parametrize("frees", [False, True])
def test_writes_that_turn_out_large_leave_the_reserve_however_many_were_let_in_together(frees: bool) -> None:
    """Deletes of ranges, say: a few bytes are asked for, and each writes a delete for every key."""

    async def scenario() -> None:
        engine = MemoryEngine(limit_bytes=8 << 20)
        engine.reserve_bytes = 4 << 20
        async with running_node(NodeDisk(engine)) as node:
            CALLER.set(Caller(Credential(), (), frees=frees))
            writes = [node.meta.write(grow(f"k{number}", 200_000), size_bytes=50) for number in range(60)]
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
            refused = [each for each in outcomes if isinstance(each, BaseException)]
            assert {type(each) for each in refused} == {ResourceExhausted}
            assert 0 < len(refused) < len(writes)
            await node.meta.reads.caught_up()
            kept_bytes = engine.reserve_bytes // 4 if frees else engine.reserve_bytes
            assert engine.limit_bytes - engine.use().used_bytes >= kept_bytes

    run(scenario)


def test_what_is_in_flight_costs_a_get_and_a_put_nothing() -> None:
    """Every get looked through all of it, and every entry counted it anew."""

    async def write(node: Host, number: int) -> None:
        request_id = bytes(node.process.clock.now()) + b"%08d" % number
        evaluate = put(f"k{number}", b"v")
        await node.meta.write(evaluate, size_bytes=10, request_id=request_id, request_hash=bytes(16))

    async def scenario() -> None:
        async with running_node(NodeDisk()) as node:
            replica = node.meta
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Applier, "apply", lambda *_arguments, **_words: None)
                for number in range(1_000):
                    await write(node, number)
                assert replica.driver.log.applying.backlog >= 1_000
                replica.reader(replica.read_ts()).get(key("k1"))
                with instructions_at_most(500):
                    assert replica.reader(replica.read_ts()).get(key("k1")) is not None
                with instructions_at_most(15_000):
                    await write(node, 1_000)

    run(scenario)
