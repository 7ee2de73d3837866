"""Threads for scans: steps in line, and work beside a step on threads that would be idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from cortado.store.process.scan_threads import Lent, ScanThreads
from support.nodes import run

WAIT_S = 30.0


class Held:
    """A step, or work, that runs until it is let go."""

    def __init__(self) -> None:
        self.began, self.go = Event(), Event()
        self.may_go_on: Callable[[], bool] = bool

    def __call__(self, may_go_on: Callable[[], bool] = bool) -> str:
        self.may_go_on = may_go_on
        self.began.set()
        assert self.go.wait(WAIT_S)
        return "done"


async def begun(held: Held) -> None:
    assert await asyncio.to_thread(held.began.wait, WAIT_S)


def wide(threads: int) -> ScanThreads:
    made = ScanThreads(None)
    made.widen(threads)
    return made


def lent_by(threads: ScanThreads, most: int, work: Callable[[Callable[[], bool]], Any]) -> list[Lent]:
    """Return what a step is lent, once that step has ended."""
    return run(lambda: threads.scan_stream(lambda: [threads.lend(most, work)]))


@pytest.mark.parametrize(("threads", "most", "lent"), [(1, 8, 0), (2, 8, 1), (8, 3, 3), (8, 99, 7)])
def test_a_step_alone_has_all_other_threads(threads: int, most: int, lent: int) -> None:
    work, made = Held(), wide(threads)
    work.go.set()
    [found] = lent_by(made, most, work)
    found.join()
    assert len(found) == lent
    made.stop()


def test_one_scan_thread_for_all_lends_nothing() -> None:
    threads = ScanThreads(None)
    [lent] = lent_by(threads, 8, Held())
    assert len(lent) == 0
    threads.stop()


def test_streams_have_equal_shares_of_the_threads() -> None:
    """Two steps on eight threads: three others each, so that the second finds them, too."""

    async def scenario() -> None:
        threads, other, work = wide(8), Held(), Held()
        work.go.set()
        running = asyncio.ensure_future(threads.scan_stream(other))
        await begun(other)
        lent = await threads.scan_stream(lambda: threads.lend(8, work))
        lent.join()
        assert len(lent) == 3
        other.go.set()
        assert await running == "done"
        threads.stop()

    run(scenario)


def test_threads_that_are_lent_are_not_lent_again_and_a_step_that_waits_calls_them_back() -> None:
    async def scenario() -> None:
        threads, work, first, second = wide(2), Held(), Held(), Held()
        lent: list[Lent] = []

        def step() -> str:
            lent.append(threads.lend(8, work))
            lent.append(threads.lend(8, work))
            return first()

        running = asyncio.ensure_future(threads.scan_stream(step))
        await begun(work)
        await begun(first)
        assert list(map(len, lent)) == [1, 0]
        assert work.may_go_on()
        waiting = asyncio.ensure_future(threads.scan_stream(second))
        while work.may_go_on():
            await asyncio.sleep(0)
        assert not second.began.is_set()
        work.go.set()
        await begun(second)
        first.go.set()
        second.go.set()
        assert await running == await waiting == "done"
        for each in lent:
            each.join()
        threads.stop()

    run(scenario)


def test_all_threads_are_free_after_steps_and_work_of_every_end() -> None:
    async def scenario() -> None:
        threads, work = wide(3), Held()
        work.go.set()

        began = Event()

        def failing(_: object = None) -> None:
            began.set()
            raise ZeroDivisionError

        def step() -> None:
            began.clear()
            lent = threads.lend(2, failing)
            assert began.wait(WAIT_S)
            with pytest.raises(ZeroDivisionError):
                lent.join()

        for _ in range(3):
            await threads.scan_stream(step)
            with pytest.raises(ZeroDivisionError):
                await threads.scan_stream(failing)
        # A step that is cancelled while it waits never runs.
        held = [Held() for _ in range(3)]
        running = [asyncio.ensure_future(threads.scan_stream(each)) for each in held]
        for each in held:
            await begun(each)
        given_up = Held()
        waiting = asyncio.ensure_future(threads.scan_stream(given_up))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        for each in held:
            each.go.set()
        await asyncio.gather(*running)
        lent = await threads.scan_stream(lambda: threads.lend(8, work))
        lent.join()
        assert len(lent) == 2
        assert not given_up.began.is_set()
        threads.stop()

    run(scenario)


def test_work_that_has_not_begun_is_taken_back() -> None:
    """A step that ends while all its helpers wait for threads does not wait for them."""

    async def scenario() -> None:
        threads, work, first = wide(2), Held(), Held()
        behind: list[str] = []

        def step() -> None:
            lent = threads.lend(1, work)
            assert work.began.wait(WAIT_S)
            # The one other thread is in use, so this waits in line; the bounds alone would not have lent it.
            more = Lent([threads._streams._executor.submit(behind.append, "ran")])
            more.join()
            assert behind == []
            work.go.set()
            lent.join()

        await threads.scan_stream(step)
        first.go.set()
        threads.stop()
        assert behind == []

    run(scenario)


def test_stopped_threads_lend_nothing_and_end_what_runs() -> None:
    async def scenario() -> None:
        threads, held = wide(2), Held()
        lent: list[int] = []

        def step() -> None:
            held()
            lent.append(len(threads.lend(1, held)))

        running = asyncio.ensure_future(threads.scan_stream(step))
        await begun(held)
        stopping = asyncio.ensure_future(asyncio.to_thread(threads.stop))
        while not threads._streams._is_stopped:
            await asyncio.sleep(0)
        held.go.set()
        await stopping
        await running
        assert lent == [0]
        with pytest.raises(RuntimeError):
            await threads.scan_stream(held)

    run(scenario)
