"""Marks of many watches come a few at a time, each at its turn, and those that have said something wait anew."""

from __future__ import annotations

import asyncio

import pytest

from cortado.store.replica.feed.marks import MARKS_A_SECOND, MARKS_AT_ONCE, Marks
from support.node_world import World


class Idle:
    """Is marked once, and counts when."""

    def __init__(self, due_s: float, *, is_open: bool = True) -> None:
        self.due_s = due_s
        self.marked_s: list[float] = []
        self._is_open = is_open

    def mark(self) -> bool:
        if self._is_open:
            self.marked_s.append(asyncio.get_running_loop().time())
        return self._is_open


def test_a_few_are_marked_when_they_are_due() -> None:
    world = World()

    async def scenario() -> None:
        marks, now_s = Marks(), asyncio.get_running_loop().time()
        all_of_them = [Idle(now_s + 0.01 * number) for number in (3, 1, 2)]
        for each in all_of_them:
            marks.put(each)
        await world.sleep(100)
        assert [each.marked_s for each in all_of_them] == [
            pytest.approx([each.due_s], abs=1e-5) for each in all_of_them
        ]

    world.run(scenario)


def test_thousands_are_marked_so_many_a_second_and_none_is_left_out() -> None:
    world = World()

    async def scenario() -> None:
        marks, now_s = Marks(), asyncio.get_running_loop().time()
        all_of_them = [Idle(now_s + 1) for _ in range(2_000)]
        for each in all_of_them:
            marks.put(each)
        await world.sleep(6_000)
        times = sorted(each.marked_s[0] for each in all_of_them)
        assert len(times) == 2_000
        for begin in range(0, 2_000, 100):
            within = [each for each in times if times[begin] <= each < times[begin] + 1]
            assert len(within) <= MARKS_A_SECOND + MARKS_AT_ONCE

    world.run(scenario)


def test_one_that_has_said_something_is_marked_later_and_a_closed_one_takes_no_turn() -> None:
    world = World()

    async def scenario() -> None:
        marks, now_s = Marks(), asyncio.get_running_loop().time()
        closed = [Idle(now_s + 0.01, is_open=False) for _ in range(100)]
        spoke, waits = Idle(now_s + 0.01), Idle(now_s + 0.01)
        for each in (*closed, spoke, waits):
            marks.put(each)
        spoke.due_s = now_s + 0.05
        await world.sleep(100)
        assert spoke.marked_s == pytest.approx([now_s + 0.05], abs=1e-5)
        assert waits.marked_s == pytest.approx([now_s + 0.01], abs=1e-5)

    world.run(scenario)
