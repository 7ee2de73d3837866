"""Connections that rest make room for new ones: those of the address that has the most of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from cortado.store.gateway.places import STANDING_BY_MAX, Places, address_of_caller


@dataclass(eq=False)
class Connected:
    address: str
    gone: list[Connected] = field(repr=False)

    def give_way(self) -> None:
        self.gone.append(self)


class World:
    def __init__(self) -> None:
        self.places = Places(4)
        self.gone: list[Connected] = []

    def enter(self, address: str) -> tuple[Connected, bool]:
        it = Connected(address, self.gone)
        return it, self.places.enter(it)


def test_the_one_that_has_rested_longest_gives_its_place_to_a_new_one() -> None:
    world = World()
    first, second, third, fourth = (world.enter("a")[0] for _ in range(4))
    world.places.rest(first)
    world.places.work(second)
    for expected in (third, fourth, first):
        new, has_place = world.enter("a")
        world.places.work(new)
        assert has_place and world.gone[-1] is expected


def test_who_has_many_loses_some_and_keeps_no_other_out() -> None:
    world = World()
    one, _ = world.enter("one")
    many = [world.enter("many")[0] for _ in range(13)]
    assert world.gone == many[:-3] and one not in world.gone


def test_where_all_work_a_new_one_stands_by_and_the_oldest_of_those_goes() -> None:
    world = World()
    working = [world.enter("a")[0] for _ in range(4)]
    for each in working:
        world.places.work(each)
    standing = [world.enter("a") for _ in range(STANDING_BY_MAX + 2)]
    assert not any(has_place for _, has_place in standing)
    assert world.gone == [standing[0][0], standing[1][0]]
    world.places.leave(working[0])
    assert world.enter("b")[1]
    world.places.rest(standing[2][0])
    assert not world.gone[2:], "one that stands by has no place to give"


def test_a_place_is_given_back_once() -> None:
    world = World()
    entered = [world.enter("a")[0] for _ in range(4)]
    for each in (*entered, *entered):
        world.places.leave(each)
    assert all(world.enter("a")[1] for _ in range(4)) and not world.gone


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("no:address", "no:address"),
        ("", ""),
    ],
)
def test_an_address_counts_as_one_caller(host: str, address: str) -> None:
    assert address_of_caller(host) == address
