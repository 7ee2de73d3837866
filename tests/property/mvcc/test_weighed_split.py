"""Parts that are cut by pages: adjacent, all of the range for any pages, and about equal if there are many pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import cast

import numpy as np
import pytest

from cortado.store.engine.interface import LentMap, Space, Tree
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.engine.tree_bounds import page_bounds
from cortado.store.keys.keyspace import KeyRange, row_key
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc.split import Part, SplitPass
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version, suffix_of
from cortado.store.mvcc.weighed_split import Split, WeighedSplit, begin_split
from support.damaged_scans import damage, pages_below
from support.kernels import row_kernel
from support.scans_alike import HIGHEST, LOWEST, History, a_key, at, tree_of

pytestmark = pytest.mark.slow


def mapped_of(engine: LmdbEngine) -> LentMap:
    assert not isinstance(engine.mapped, str), engine.mapped
    return engine.mapped


def divided(split: Split, max_keys: int = 10_000) -> list[Part]:
    while not split.step(max_keys):
        pass
    return split.parts()


def weighed(engine: LmdbEngine, within: KeyRange, parts: int, number: int, pages: tuple[int, int]) -> WeighedSplit:
    def count(first: LogicalKey, last: LogicalKey, wanted: int) -> SplitPass:
        return SplitPass(engine, first, last, wanted, suffix_of(at(number)), row_kernel())

    return WeighedSplit(count, mapped_of(engine), within, parts, pages)


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_adjacent_and_hold_what_they_say_where_every_page_is_counted(engine: LmdbEngine, seed: int) -> None:
    draw = Random(seed)
    history, store = History(engine, draw), VersionStore(engine)
    for _ in range(40):
        history.commit(100, 2_100)
    for _ in range(10):
        start, end = sorted((a_key(draw), a_key(draw))) if draw.random() < 0.5 else (LOWEST, HIGHEST)
        number, parts, keys = draw.randrange(history.commits + 2), draw.randrange(2, 9), draw.choice([1, 70, 10_000])
        if start == end:
            continue
        found = divided(weighed(engine, (start, end), parts, number, (2, 1_000)), keys)
        starts = [part.start for part in found]
        assert starts[0] == start
        assert starts == sorted(set(starts))
        assert len(found) <= parts
        ends = [*starts[1:], end]
        counted = [divided(store.split(*each, 1, at(number))) for each in zip(starts, ends, strict=True)]
        assert [part.rows for part in found] == [sum(each.rows for each in part) for part in counted]
        assert sum(part.rows for part in found) == sum(p.rows for p in divided(store.split(start, end, 1, at(number))))


def fill(engine: LmdbEngine, first: int, last: int, payload: bytes, versions: int = 1) -> None:
    key = (KeyPart("a", KeyType.INT64),)
    with engine.write() as txn:
        keys = [row_key(1, key, [number]) for number in range(first, last)]
        txn.put_many(Space.DATA, [encode_version(k, payload, at(v)) for k in keys for v in reversed(range(versions))])


def test_many_pages_are_weighed_and_parts_are_about_equal_where_rows_are_not(engine: LmdbEngine) -> None:
    # Small rows, large ones, and some with many versions.
    fill(engine, 0, 20_000, b"head" + bytes(60))
    fill(engine, 20_000, 26_000, b"head" + bytes(600))
    fill(engine, 26_000, 29_000, b"head" + bytes(60), versions=8)
    found = divided(weighed(engine, (LOWEST, HIGHEST), 4, 100, (10, 10)))
    exact = divided(begin_split(engine, None, (LOWEST, HIGHEST), 4, suffix_of(at(100))))
    assert sum(part.rows for part in exact) == 29_000
    assert sum(part.rows for part in found) == pytest.approx(29_000, rel=0.1)
    ends = [*(part.start for part in found[1:]), HIGHEST]
    for part, end in zip(found, ends, strict=True):
        (counted,) = divided(begin_split(engine, row_kernel(), (part.start, end), 1, suffix_of(at(100))))
        # To within a page at each end, of a hundred leaf pages with 40 rows each.
        assert abs(counted.rows - 29_000 / 4) < 9_000


def test_a_range_with_few_pages_is_counted(engine: LmdbEngine) -> None:
    fill(engine, 0, 1_000, b"head")
    found = divided(begin_split(engine, row_kernel(), (LOWEST, HIGHEST), 4, suffix_of(at(100))))
    assert [part.rows for part in found] == [250] * 4


def test_a_range_without_rows_is_one_part(engine: LmdbEngine) -> None:
    assert divided(weighed(engine, (LOWEST, HIGHEST), 4, 0, (1, 10))) == [Part(LOWEST, 0)]
    fill(engine, 0, 5_000, b"head" + bytes(100))
    before_all = weighed(engine, (LOWEST, HIGHEST), 4, -4, (2, 10))
    assert divided(before_all) == [Part(LOWEST, 0)]


class Lent:
    """A file's content as if it were mapped."""

    def __init__(self, content: np.ndarray, whole: Tree) -> None:
        self._content = content
        self._tree = (content.ctypes.data, whole[1], len(content) // whole[1] - 1, *whole[3:])

    @contextmanager
    def tree(self, _space: Space) -> Iterator[Tree]:
        yield self._tree


def test_bounds_of_a_damaged_tree_are_in_order_or_there_are_none(engine: LmdbEngine, tmp_path: Path) -> None:
    history = History(engine, Random(11))
    for _ in range(40):
        history.commit(50, 9_000)
    whole = tree_of(mapped_of(engine))
    assert whole[4] > 2, "there are branch pages below the root"
    content = next((tmp_path / "data").rglob("data.mdb")).read_bytes()
    live = pages_below(content, whole[3], whole[4])
    refused = 0
    for seed in range(200):
        changed = bytearray(content)
        for _ in range(3):
            damage(changed, live, Random(seed))
        lent = Lent(np.frombuffer(bytes(changed), np.uint8), whole)
        found = page_bounds(cast(LentMap, lent), Space.DATA, LOWEST, HIGHEST, 1_000)
        refused += not found
        assert found == sorted(set(found))
        assert all(LOWEST < each < HIGHEST for each in found)
    assert 0 < refused < 200
