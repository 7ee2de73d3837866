"""The loop's one timer: it rings when it is due, once, and not for an earlier setting."""

from __future__ import annotations

import asyncio
import math

from cortado.store.replica.scheduler import Alarm
from support.node_world import World


def rings(*settings: tuple[float, float]) -> list[float]:
    """Return when an alarm rang that was set at each time (first) to be due at the second. In milliseconds."""
    world = World()
    rang: list[float] = []
    alarm = Alarm(world.loop, lambda: world.now_ms, lambda: rang.append(round(world.now_ms, 1)))

    async def scenario() -> None:
        for at_ms, due_ms in settings:
            await asyncio.sleep((at_ms - world.now_ms) / 1000)
            alarm.set(due_ms)
        await asyncio.sleep(1)

    world.run(scenario)
    return rang


def test_it_rings_once_when_it_is_due() -> None:
    assert rings((0, 20)) == [20]


def test_it_rings_earlier_where_it_is_set_to_an_earlier_time() -> None:
    assert rings((0, 20), (5, 10)) == [10]


def test_it_waits_on_where_it_was_set_to_a_later_time_meanwhile() -> None:
    assert rings((0, 20), (5, 50)) == [50]
    assert rings((0, 20), (5, 50), (10, 30)) == [30]


def test_it_does_not_ring_for_what_is_not_due_any_more() -> None:
    assert rings((0, 20), (5, math.inf)) == []
    assert rings((0, 20), (5, math.inf), (100, 120)) == [120]
