"""Long work runs beside the loop, and each token has one work at a time in line."""

from __future__ import annotations

import asyncio
import threading

from cortado.store.client.authorization import ON_BEHALF
from cortado.store.gateway.beside import ON_THE_LOOP_BYTES, beside

ONE, OTHER = (f"Bearer ctd_{number:016x}_{'A' * 43}" for number in (1, 2))
LARGE = ON_THE_LOOP_BYTES + 1


def test_small_work_runs_on_the_loop_and_large_work_beside_it() -> None:
    async def where() -> list[bool]:
        here = threading.get_ident()
        return [await beside(size, threading.get_ident) == here for size in (0, ON_THE_LOOP_BYTES, LARGE)]

    assert asyncio.run(where()) == [True, True, False]


def test_a_caller_waits_for_one_work_of_each_other_caller_at_most() -> None:
    done: list[str] = []
    begun = threading.Event()

    async def work(header: str, name: str) -> None:
        ON_BEHALF.set(header)
        await beside(LARGE, lambda: (begun.wait(10), done.append(name)))

    async def fill() -> None:
        many = [asyncio.create_task(work(ONE, f"one {i}")) for i in range(5)]
        await asyncio.sleep(0)
        other = asyncio.create_task(work(OTHER, "other"))
        await asyncio.sleep(0)
        begun.set()
        await asyncio.gather(*many, other)

    asyncio.run(fill())
    assert done[:2] == ["one 0", "other"]
    assert sorted(done[2:]) == ["one 1", "one 2", "one 3", "one 4"]


def test_work_that_fails_gives_its_turn_on() -> None:
    async def fail() -> None:
        for _ in range(2):
            try:
                await beside(LARGE, lambda: 1 // 0)
            except ZeroDivisionError:
                continue
            raise AssertionError("it did not fail")
        assert await beside(LARGE, lambda: 1) == 1

    asyncio.run(fail())
