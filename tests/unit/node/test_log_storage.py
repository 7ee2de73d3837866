"""Small writes of the log run on the loop while the disk is quick, and never beside or before an earlier write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from cortado.store.engine.failures import StorageFailed
from cortado.store.process.log_storage import PAUSE_MS, QUICK_MS, QUICK_WRITES, SLOW_MS, LogStorage, LoopStorage
from cortado.store.process.storage_thread import Done, Job


class Held:
    """A storage that runs its jobs when told, in order."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Job, Done]] = []
        self.is_stopped = False

    def submit(self, job: Job, done: Done, *, is_small: bool = False) -> None:
        self.jobs.append((job, done))

    def stop(self) -> None:
        self.is_stopped = True

    def run_one(self) -> None:
        job, done = self.jobs.pop(0)
        try:
            outcome = job()
        except BaseException as error:
            outcome = error
        done(outcome)


class Disk:
    """A log storage over a thread and a loop that wait to be told, on a clock that stands still."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.thread, self.here = Held(), Held()
        self.log = LogStorage(self.thread, self.here, lambda: self.now_ms)
        self.ran: list[str] = []
        self.heard: list[object] = []

    def submit(self, name: str = "", *, takes_ms: float = 0.0, is_small: bool = True) -> None:
        def job() -> str:
            self.now_ms += takes_ms
            self.ran.append(name)
            return name

        self.log.submit(job, self.heard.append, is_small=is_small)

    def write(self, takes_ms: float, *, is_small: bool = True) -> str:
        """Write once, and return where that ran."""
        self.submit(takes_ms=takes_ms, is_small=is_small)
        where = "loop" if self.here.jobs else "thread"
        (self.here if self.here.jobs else self.thread).run_one()
        return where

    def become_quick(self) -> None:
        for _ in range(QUICK_WRITES):
            assert self.write(QUICK_MS / 2) == "thread"


@pytest.fixture
def disk() -> Disk:
    return Disk()


def test_a_small_write_runs_on_the_loop_after_enough_quick_ones(disk: Disk) -> None:
    for _ in range(QUICK_WRITES):
        assert disk.write(QUICK_MS / 2, is_small=False) == "thread"
    assert disk.write(QUICK_MS / 2) == "loop"


def test_a_write_that_is_not_small_goes_by_the_thread(disk: Disk) -> None:
    disk.become_quick()
    assert disk.write(QUICK_MS / 2, is_small=False) == "thread"
    assert disk.write(QUICK_MS / 2) == "loop"


@pytest.mark.parametrize("is_small", [True, False])
def test_one_write_that_is_not_quick_begins_the_count_anew(disk: Disk, is_small: bool) -> None:
    disk.become_quick()
    disk.write(QUICK_MS, is_small=is_small)
    disk.become_quick()
    assert disk.write(QUICK_MS / 2) == "loop"


def test_a_slow_write_sends_the_next_ones_to_the_thread_for_a_while(disk: Disk) -> None:
    disk.become_quick()
    assert disk.write(SLOW_MS + 1) == "loop"
    again_ms = disk.now_ms + PAUSE_MS
    for _ in range(2 * QUICK_WRITES):
        assert disk.write(QUICK_MS / 2) == "thread"
    disk.now_ms = again_ms - 0.5
    assert disk.write(0.25) == "thread"
    disk.now_ms = again_ms
    assert disk.write(QUICK_MS / 2) == "loop"


def test_a_write_of_middling_time_costs_the_count_and_no_more(disk: Disk) -> None:
    disk.become_quick()
    assert disk.write(SLOW_MS) == "loop"
    disk.become_quick()
    assert disk.write(QUICK_MS / 2) == "loop"


def test_nothing_runs_on_the_loop_while_the_thread_has_something(disk: Disk) -> None:
    disk.become_quick()
    disk.submit("first", is_small=False)
    disk.submit("second")
    assert not disk.here.jobs
    disk.thread.run_one()
    disk.thread.run_one()
    assert disk.ran[-2:] == disk.heard[-2:] == ["first", "second"]
    assert disk.write(QUICK_MS / 2) == "loop"


def test_the_thread_gets_nothing_before_the_loop_has_run_its_own(disk: Disk) -> None:
    disk.become_quick()
    disk.submit("first")
    disk.submit("second")
    disk.submit("third", is_small=False)
    disk.submit("fourth")
    assert (len(disk.here.jobs), len(disk.thread.jobs)) == (2, 0)
    disk.here.run_one()
    assert not disk.thread.jobs
    disk.here.run_one()
    assert (len(disk.here.jobs), len(disk.thread.jobs)) == (0, 2)
    disk.thread.run_one()
    disk.thread.run_one()
    assert disk.ran[-4:] == disk.heard[-4:] == ["first", "second", "third", "fourth"]


def test_a_report_may_submit_the_next_write(disk: Disk) -> None:
    disk.become_quick()
    disk.log.submit(lambda: "first", lambda _outcome: disk.submit("next"), is_small=True)
    disk.here.run_one()
    assert len(disk.here.jobs) == 1


@pytest.mark.parametrize("is_quick", [True, False])
def test_a_failure_is_heard_on_either_side(disk: Disk, is_quick: bool) -> None:
    if is_quick:
        disk.become_quick()
    failed = StorageFailed("the disk is gone")

    def job() -> None:
        raise failed

    disk.log.submit(job, disk.heard.append, is_small=True)
    (disk.here if is_quick else disk.thread).run_one()
    assert disk.heard[-1] is failed


def test_a_stop_ends_the_thread(disk: Disk) -> None:
    disk.log.stop()
    assert disk.thread.is_stopped


def test_the_loop_runs_a_write_behind_what_is_in_line() -> None:
    async def order() -> list[str]:
        loop, seen = asyncio.get_running_loop(), list[str]()

        def say(word: str) -> Callable[[], str]:
            return lambda: seen.append(word) or word

        ended = loop.create_future()
        loop.call_soon(say("in line"))
        LoopStorage(loop).submit(say("written"), ended.set_result)
        seen.append("the round's rest")
        assert await ended == "written"
        return seen

    assert asyncio.run(order()) == ["the round's rest", "in line", "written"]


def test_the_loop_tells_an_exception_of_any_kind() -> None:
    async def outcome() -> object:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        LoopStorage(loop).submit(partial(int, "no number"), ended.set_result)
        return await ended

    assert isinstance(asyncio.run(outcome()), ValueError)
