"""Items are met and deleted where they stand, also those that a search passes by."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.store.engine.interface import Engine, Space
from support.damage import turn
from support.engines import open_lmdb

KEYS = [b"k%03d" % number for number in range(100)]


def fill(engine: Engine) -> None:
    with engine.write() as txn:
        txn.put_many(Space.DATA, [(key, b"v" + key) for key in KEYS])


def walked(engine: Engine, start: bytes, *, reverse: bool = False) -> list[bytes]:
    with engine.read() as txn:
        found = [(key, value_of()) for key, value_of in txn.walk(Space.DATA, start, reverse=reverse)]
    assert all(value == b"v" + key for key, value in found)
    return [key for key, _ in found]


@pytest.mark.parametrize("start", [b"\0", b"k000", b"k0005", b"k050", b"k099", b"z"])
def test_a_walk_goes_on_from_a_key_both_ways(engine: Engine, start: bytes) -> None:
    fill(engine)
    assert walked(engine, start) == [key for key in KEYS if key >= start]
    assert walked(engine, start, reverse=True) == [key for key in reversed(KEYS) if key < start]


@pytest.mark.parametrize("places", [[], [0], [0, 1, 2], [3, 50, 89], [89]])
def test_items_are_deleted_by_their_places(engine: Engine, places: list[int]) -> None:
    fill(engine)
    with engine.write() as txn:
        txn.delete_places(Space.DATA, b"k010", places)
    assert walked(engine, b"\0") == [key for key in KEYS if key not in [KEYS[10 + place] for place in places]]


@pytest.mark.parametrize("found", [b"k051", b"k049", b"k050"])
@pytest.mark.parametrize("turned", [b"a051", b"z051"])
def test_an_item_whose_key_has_turned_is_met_where_it_stands(tmp_path: Path, found: bytes, turned: bytes) -> None:
    """The item is out of its order, so a search for it, or for its neighbours, may go wrong. (A start would refuse
    it.)"""
    engine = open_lmdb(tmp_path)
    fill(engine)
    turn(tmp_path / "engine" / "data.mdb", b"k051vk051", turned + b"vk051")
    with engine.read() as txn:
        keys = [key for key, _ in txn.walk(Space.DATA, b"k000")]
    place = keys.index(turned)
    assert place == 51
    with engine.write() as txn:
        txn.delete_places(Space.DATA, b"k000", [place])
        txn.put(Space.DATA, b"k051", b"vk051")
    assert walked(engine, b"k000") == KEYS
    with engine.read() as txn:
        assert txn.get(Space.DATA, found) == b"v" + found
    engine.close()
