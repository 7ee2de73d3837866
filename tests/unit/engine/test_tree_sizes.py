"""How many bytes a range has, told from the pages of the tree, against a sum of the items."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from cortado.store.engine.interface import Space
from cortado.store.engine.mapped import MappedFile
from cortado.store.engine.tree_sizes import range_bytes
from support.engines import open_lmdb

ITEMS = {
    f"{letter}{number:06}".encode(): bytes(size)
    for letter in "abc"
    for number, size in enumerate(Random(7).choices((0, 3, 40, 200, 5_000), (1, 5, 20, 5, 1), k=3_000))
}


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> MappedFile:
    engine = open_lmdb(tmp_path_factory.mktemp("sizes") / "d")
    with engine.write() as transaction:
        transaction.put_many(Space.DATA, sorted(ITEMS.items()))
    assert isinstance(engine.mapped, MappedFile)
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
def test_of_few_pages_it_is_exact(mapped: MappedFile, start: bytes, end: bytes) -> None:
    assert range_bytes(mapped, start, end) == _sum(start, end)


def test_of_many_pages_some_tell(mapped: MappedFile) -> None:
    for start, end in RANGES[:2]:
        found = range_bytes(mapped, start, end, branches_max=2, leaves_max=32)
        assert found is not None
        assert found == pytest.approx(_sum(start, end), rel=0.25)


def test_an_empty_tree_has_none(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "d")
    assert isinstance(engine.mapped, MappedFile)
    assert range_bytes(engine.mapped, b"", b"\xff") == 0
