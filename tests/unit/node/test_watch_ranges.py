"""The index of watched ranges, against asking every range."""

from __future__ import annotations

import random

import pytest

from cortado.store.replica.feed.ranges import RangeIndex

KEYS = [bytes([letter]) for letter in b"abcdefghijkl"]


def naive(ranges: dict[str, tuple[bytes, bytes]], key: bytes) -> set[str]:
    return {name for name, (start, end) in ranges.items() if start <= key < end}


@pytest.mark.parametrize("seed", range(30))
def test_a_key_finds_the_members_of_all_ranges_that_hold_it(seed: int) -> None:
    chosen = random.Random(seed)
    index: RangeIndex[str] = RangeIndex()
    ranges: dict[str, tuple[bytes, bytes]] = {}
    for number in range(60):
        if ranges and chosen.random() < 0.4:
            name = chosen.choice(list(ranges))
            index.remove(*ranges.pop(name), name)
        else:
            # One in some is empty, or runs backwards.
            ranges[f"r{number}"] = bounds = (chosen.choice(KEYS), chosen.choice(KEYS))
            index.add(*bounds, f"r{number}")
        for key in KEYS:
            members = next((members for _, _, members in index.runs([(key, b"")])), ())
            assert set(members) == naive(ranges, key)
    for name, bounds in ranges.items():
        index.remove(*bounds, name)
    assert index.is_empty


@pytest.mark.parametrize("seed", range(30))
def test_runs_name_each_item_that_somebody_watches_once_for_each_range(seed: int) -> None:
    chosen = random.Random(seed)
    index: RangeIndex[str] = RangeIndex()
    ranges: dict[str, tuple[bytes, bytes]] = {}
    for number in range(chosen.randrange(6)):
        start, end = sorted(chosen.sample(KEYS, 2))
        ranges[f"r{number}"] = (start, end)
        index.add(start, end, f"r{number}")
    items = [(key, b"") for key in sorted(chosen.choices(KEYS, k=chosen.randrange(10)))]
    found: dict[str, list[bytes]] = {}
    for begin, end_place, members in index.runs(items):
        for member in members:
            found.setdefault(member, []).extend(key for key, _ in items[begin:end_place])
    wanted = {name: [key for key, _ in items if start <= key < end] for name, (start, end) in ranges.items()}
    assert found == {name: keys for name, keys in wanted.items() if keys}


def test_many_watches_of_disjoint_ranges_do_not_make_a_lookup_longer() -> None:
    index: RangeIndex[int] = RangeIndex()
    for number in range(2_000):
        start = number.to_bytes(4)
        index.add(start, start + b"\0", number)
    items = [((1_234).to_bytes(4), b"")]
    assert [members for *_, members in index.runs(items)] == [(1_234,)]
