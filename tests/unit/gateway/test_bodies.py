"""Bodies that stall, and bodies of the caller that holds the most, make room for others."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from cortado.store.gateway.bodies import GRACE_S, PACE_BYTES_PER_S, Bodies, Body

MAX = 8 * PACE_BYTES_PER_S


@dataclass
class World:
    now_s: float = 0.0
    gone: list[Body] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bodies = Bodies(MAX, lambda: self.now_s)

    def body(self, caller: str, size_bytes: int = 0) -> Body:
        body: Body = self.bodies.begin(caller, lambda: self.gone.append(body))
        assert self.bodies.take(body, size_bytes)
        return body


@pytest.fixture
def world() -> World:
    return World()


def test_the_oldest_body_that_has_stalled_goes_for_another_one(world: World) -> None:
    stalled = [world.body("one", MAX // 8) for _ in range(8)]
    world.now_s += 2 * GRACE_S
    for count in (1, 2):
        new = world.body("one")
        assert world.bodies.take(new, MAX // 8)
        world.bodies.arrived(new)
        assert world.gone == stalled[:count]
    assert all(each.gave_way for each in world.gone)
    assert world.bodies.size_bytes == MAX


def test_a_body_that_comes_as_fast_as_it_should_stays(world: World) -> None:
    for _ in range(2):
        world.body("one", MAX // 2)
    world.now_s += GRACE_S
    assert not world.bodies.take(world.body("one"), 1)
    assert not world.gone


def test_who_holds_the_most_makes_room_for_another_caller_up_to_a_share(world: World) -> None:
    held = [world.body("many", MAX // 8) for _ in range(8)]
    other = world.body("other")
    for count in range(1, 5):
        assert world.bodies.take(other, MAX // 8)
        assert world.gone == held[:count]
    assert not world.bodies.take(other, MAX // 8), "both hold the same"
    assert world.gone == held[:4]


def test_the_stalled_ones_of_who_holds_the_most_go_first(world: World) -> None:
    small = world.body("small", 1)
    large = [world.body("large", MAX // 8) for _ in range(7)]
    world.now_s += 60
    assert world.bodies.take(world.body("new"), MAX // 4)
    assert world.gone == large[:2] and not small.gave_way


def test_what_has_arrived_is_not_taken_away(world: World) -> None:
    whole = world.body("one", MAX)
    world.bodies.arrived(whole)
    world.now_s += 60
    assert not world.bodies.take(world.body("other"), 1)
    world.bodies.end(whole)
    assert world.bodies.take(world.body("other"), MAX)


def test_all_is_given_back_however_a_body_ends(world: World) -> None:
    bodies = [world.body("one", MAX // 2), world.body("two", MAX // 2)]
    world.now_s += 60
    other = world.body("three", MAX // 2)
    for each in (*bodies, other, *bodies):
        world.bodies.end(each)
    assert world.bodies.size_bytes == 0
    assert world.bodies.take(world.body("four"), MAX)
