"""The loop, the disk and the network of the simulation behave as the real ones."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import pytest

from cortado.errors import ResourceExhausted
from cortado.store.engine.failures import StorageFailed
from cortado.store.engine.interface import Space
from support.simulation.disk import Changes, Disk, SimulatedEngine, SimulatedThread
from support.simulation.groups import META_ID, ONE_GROUP
from support.simulation.loop import NodeLoop, Scheduler

# --- the loop --------------------------------------------------------------------------------------------------


def loops(count: int = 1) -> tuple[Scheduler, list[NodeLoop], list[str]]:
    scheduler, problems = Scheduler(), list[str]()
    return scheduler, [NodeLoop(scheduler, f"n{number}", problems.append) for number in range(count)], problems


def test_sleeping_takes_virtual_time_alone() -> None:
    scheduler, [loop], problems = loops()
    woken: list[tuple[int, float]] = []

    async def sleeper(number: int) -> None:
        await asyncio.sleep(3600 * number)
        woken.append((number, loop.time()))

    for number in (3, 1, 2):
        loop.create_task(sleeper(number))
    assert scheduler.run_until(lambda: len(woken) == 3, until_ms=1e9)
    assert [number for number, _ in woken] == [1, 2, 3]
    assert [round(at) for _, at in woken] == [3600, 7200, 10800]
    assert problems == []


def test_the_usual_tools_of_asyncio_work_on_it() -> None:
    scheduler, [loop], problems = loops()

    async def scenario() -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.sleep(10)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(10), 1)
        lock, event = asyncio.Lock(), asyncio.Event()
        async with lock:
            asyncio.get_running_loop().call_later(1, event.set)
            await event.wait()
        first, second = await asyncio.gather(asyncio.to_thread(lambda: 1), asyncio.sleep(1, 2))
        return f"{first} {second} {loop.time():.1f}"

    task = loop.create_task(scenario())
    assert scheduler.run_until(task.done, until_ms=60_000)
    assert task.result() == "1 2 8.0"
    assert problems == []


def test_a_dead_loop_never_runs_again_and_the_others_do_not_notice() -> None:
    scheduler, [dying, living], problems = loops(2)
    seen: list[str] = []

    async def beat(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(1)
                seen.append(name)
        finally:
            seen.append(name + " ended")

    dying.create_task(beat("dying"))
    living.create_task(beat("living"))
    scheduler.run_until(lambda: False, until_ms=2_500)
    dying.kill()
    scheduler.run_until(lambda: False, until_ms=4_500)
    assert seen == ["dying", "living", "dying", "living", "living", "living"]
    for loop in (dying, living):
        loop.bury()
    assert problems == []


def test_a_paused_loop_does_late_what_it_missed_in_its_order() -> None:
    scheduler, [loop, other], _ = loops(2)
    seen: list[tuple[str, float]] = []
    for number in range(3):
        loop.call_later(number, lambda number=number: seen.append((f"timer {number}", loop.time())))
    other.call_later(1.5, loop.call_soon, lambda: seen.append(("message", loop.time())))
    loop.pause()
    scheduler.run_until(lambda: False, until_ms=10_000)
    assert seen == []
    loop.resume()
    scheduler.run_until(lambda: False, until_ms=10_001)
    assert [what for what, _ in seen] == ["timer 0", "timer 1", "message", "timer 2"]
    assert {at for _, at in seen} == {10.0}


def test_a_loop_whose_clock_runs_fast_is_called_early_by_true_time() -> None:
    scheduler = Scheduler()
    loop = NodeLoop(scheduler, "fast", lambda _problem: None, rate=1.25, offset_s=100)
    called: list[float] = []
    loop.call_later(10, lambda: called.append(scheduler.now_ms))
    scheduler.run_until(lambda: bool(called), until_ms=1e6)
    assert called[0] == pytest.approx(8_000, abs=0.01)
    assert loop.time() >= 110


def test_an_exception_that_nobody_catches_is_a_problem() -> None:
    scheduler, [loop], problems = loops()
    loop.call_soon(lambda: 1 / 0)
    scheduler.run_until(lambda: False, until_ms=1)
    assert len(problems) == 1
    assert "ZeroDivisionError" in problems[0]


# --- the disk --------------------------------------------------------------------------------------------------


class Machine:
    """A disk and one life on it."""

    def __init__(self, seed: int = 0) -> None:
        self.scheduler = Scheduler()
        self.disk = Disk(self.scheduler, random.Random(seed), ONE_GROUP)
        self.disk.sync_ms = (10, 10)
        self.outcomes: list[object] = []
        self.restart()

    def restart(self) -> None:
        self.loop = NodeLoop(self.scheduler, "n", self.outcomes.append)
        self.io = NodeLoop(self.scheduler, "n/disk", self.outcomes.append)
        self.engine = SimulatedEngine(self.disk)
        self.storage = SimulatedThread(self.loop, self.io, self.disk, self.engine)

    def put(self, key: bytes, value: bytes) -> None:
        def job() -> str:
            with self.engine.write() as txn:
                txn.put(Space.DATA, key, value)
            return key.decode()

        self.storage.submit(job, self.outcomes.append)

    def run(self, for_ms: float) -> None:
        self.scheduler.run_until(lambda: False, until_ms=self.scheduler.now_ms + for_ms)

    def crash(self) -> None:
        for loop in (self.loop, self.io):
            loop.kill()
        self.disk.crash()
        self.restart()

    def get(self, key: bytes) -> bytes | None:
        with self.engine.read() as txn:
            return txn.get(Space.DATA, key)


def test_a_task_that_failed_while_nobody_waited_for_it_is_a_problem_at_the_latest_at_the_end() -> None:
    scheduler, problems = Scheduler(), list[str]()
    loop = NodeLoop(scheduler, "n1", problems.append)

    async def fail() -> None:
        raise ValueError("unseen")

    failed = loop.create_task(fail(), name="a stranger")
    scheduler.run_until(lambda: False, until_ms=1)
    assert failed.done()
    loop.bury()
    assert len(problems) == 1
    assert "nobody asked how a stranger ended: ValueError('unseen')" in problems[0]


def test_a_commit_is_visible_when_it_is_durable_and_not_before() -> None:
    machine = Machine()
    machine.put(b"a", b"1")
    machine.run(9)
    assert machine.get(b"a") is None
    assert machine.outcomes == []
    machine.run(2)
    assert machine.get(b"a") == b"1"
    assert machine.outcomes == ["a"]


def test_a_crash_takes_nothing_that_was_synced_and_tears_what_was_not() -> None:
    kept = []
    for seed in range(40):
        machine = Machine(seed)
        machine.put(b"a", b"1")
        machine.run(11)
        machine.put(b"b", b"2")
        machine.put(b"c", b"3")
        machine.run(5)
        machine.crash()
        assert machine.get(b"a") == b"1"
        assert machine.get(b"c") is None
        kept.append(machine.get(b"b"))
        machine.run(100)
        assert machine.outcomes == ["a"]
    assert set(kept) == {None, b"2"}


def test_a_full_disk_refuses_and_stays_as_it_was() -> None:
    machine = Machine()
    machine.put(b"a", b"1")
    machine.run(20)
    machine.disk.is_full = True
    machine.put(b"a", b"2")
    machine.run(20)
    assert isinstance(machine.outcomes[-1], ResourceExhausted)
    with pytest.raises(ResourceExhausted):
        machine.engine.admit(1)
    assert machine.get(b"a") == b"1"


def test_after_a_failed_sync_nothing_is_written_until_a_new_process_has_looked() -> None:
    machine = Machine()
    machine.disk.fails_next_sync = True
    machine.put(b"a", b"1")
    machine.put(b"b", b"2")
    machine.run(50)
    assert [type(each) for each in machine.outcomes] == [StorageFailed, StorageFailed]
    assert machine.get(b"b") is None
    machine.crash()
    machine.put(b"c", b"3")
    machine.run(20)
    assert machine.get(b"c") == b"3"


def test_a_reader_that_stays_open_keeps_its_state() -> None:
    machine = Machine()
    machine.put(b"a", b"1")
    machine.run(20)
    with machine.engine.read() as txn:
        machine.put(b"a", b"2")
        machine.run(20)
        assert txn.get(Space.DATA, b"a") == b"1"
    assert machine.get(b"a") == b"2"


def test_equal_contents_have_equal_digests_whatever_the_way_to_them() -> None:
    def disk_after(*changes: tuple[bytes, bytes | None]) -> int:
        machine = Machine()
        for key, value in changes:
            what: Changes = [(Space.DATA, key, value)]
            machine.disk.commit(what)
            machine.disk.finish_sync()
        return machine.disk.digests[META_ID]

    assert disk_after((b"a", b"1"), (b"b", b"2")) == disk_after((b"b", b"0"), (b"a", b"1"), (b"b", b"2"))
    assert disk_after((b"a", b"1"), (b"a", None)) == disk_after()
    assert disk_after((b"a", b"1")) != disk_after((b"a", b"2"))


def test_an_abandoned_generator_ends_with_its_loop_and_leaves_nothing_running() -> None:
    scheduler, [loop], problems = loops(1)
    seen: list[str] = []

    async def words(name: str) -> AsyncGenerator[str, None]:
        try:
            if name == "outer":
                async with aclosing(words("inner")) as inner:
                    async for word in inner:
                        yield word
            await asyncio.get_running_loop().create_future()
            yield name
        finally:
            seen.append(f"{name} ended")

    async def listen() -> None:
        try:
            async with aclosing(words("outer")) as found:
                async for _ in found:
                    pass
        except BaseException as ended:
            seen.append(type(ended).__name__)
            raise

    loop.create_task(listen())
    scheduler.run_until(lambda: False, until_ms=10)
    loop.bury()
    assert seen == ["inner ended", "outer ended", "CancelledError"]
    assert problems == []
