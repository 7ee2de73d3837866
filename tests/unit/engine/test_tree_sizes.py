"""How many bytes a range has, told from the pages of the tree, against a sum of the items."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from cortado.store.engine.interface import LentMap, Space
from cortado.store.engine.tree_sizes import range_bytes, range_use
from support.engines import open_lmdb

ITEMS = {
    f"{letter}{number:06}".encode(): bytes([7 + number % 2] * size)
    for letter in "abc"
    for number, size in enumerate(Random(7).choices((0, 3, 40, 200, 5_000), (1, 5, 20, 5, 1), k=3_000))
}


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> LentMap:
    engine = open_lmdb(tmp_path_factory.mktemp("sizes") / "d")
    with engine.write() as transaction:
        transaction.put_many(Space.DATA, sorted(ITEMS.items()))
    assert not isinstance(engine.mapped, str)
    return engine.mapped


def _sum(start: bytes, end: bytes) -> int:
    return sum(len(key) + len(value) for key, value in ITEMS.items() if start <= key < end)


RANGES = [
    (b"", b"\xff"),
    (b"b", b"c"),
    (b"a001500", b"a001501"),
    (b"a002990", b"b000010"),
    (b"c", b"c0"),
    (b"d", b"e"),
    (b"a", b"a"),
    (b"c002999", b"\xff"),
]


@pytest.mark.parametrize(("start", "end"), RANGES)
def test_of_few_pages_it_is_exact(mapped: LentMap, start: bytes, end: bytes) -> None:
    assert range_bytes(mapped, start, end) == _sum(start, end)


def test_of_many_pages_some_tell(mapped: LentMap) -> None:
    for start, end in RANGES[:2]:
        found = range_bytes(mapped, start, end, branches_max=2, leaves_max=32)
        assert found is not None
        assert found == pytest.approx(_sum(start, end), rel=0.25)


@pytest.mark.parametrize(("start", "end"), RANGES)
def test_items_are_counted_by_their_keys_and_the_first_bytes_of_their_values(
    mapped: LentMap, start: bytes, end: bytes
) -> None:
    within = [(key, value) for key, value in sorted(ITEMS.items()) if start <= key < end]
    seen: list[tuple[bytes, int]] = []

    def counts(key: bytes, first: int) -> bool:
        seen.append((key, first))
        return first >= 0 and key.endswith(b"7")

    found = range_use(mapped, start, end, counts=counts)
    assert found is not None
    assert (found.items, found.bytes, found.is_exact) == (len(within), _sum(start, end), True)
    assert seen == [(key, value[0] if value else -1) for key, value in within]
    assert found.counted == sum(bool(value) and key.endswith(b"7") for key, value in within)


def test_of_many_pages_what_counts_is_estimated(mapped: LentMap) -> None:
    start, end = RANGES[0]
    found = range_use(mapped, start, end, branches_max=2, leaves_max=32, counts=lambda _key, first: first == 7)
    assert found is not None
    assert not found.is_exact
    expected = sum(value[:1] == b"\7" for value in ITEMS.values())
    assert found.counted == pytest.approx(expected, rel=0.25)
    assert found.items == pytest.approx(len(ITEMS), rel=0.25)


def test_an_empty_tree_has_none(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "d")
    assert not isinstance(engine.mapped, str)
    assert range_bytes(engine.mapped, b"", b"\xff") == 0
