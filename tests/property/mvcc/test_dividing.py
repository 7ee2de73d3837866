"""A range that is divided by pages: adjacent parts of whole keys, and none if there are few pages."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.engine.tree_bounds import page_bounds
from cortado.store.keys.keyspace import row_key
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc import dividing
from cortado.store.mvcc.dividing import PARTS_MAX, divided
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version
from support.memory_engine import MemoryEngine
from support.scans_alike import HIGHEST, LOWEST, History, a_key, at

pytestmark = pytest.mark.slow


def fill(engine: LmdbEngine, rows: int, payload: bytes, versions: int = 1) -> list[LogicalKey]:
    keys = [row_key(1, (KeyPart("a", KeyType.INT64),), [number]) for number in range(rows)]
    with engine.write() as txn:
        txn.put_many(Space.DATA, [encode_version(k, payload, at(v)) for k in keys for v in reversed(range(versions))])
    return keys


def test_parts_are_about_equal_and_hold_each_row_once(engine: LmdbEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dividing, "PAGES_PER_PART", 4)
    keys = fill(engine, 60_000, bytes(100))
    cuts = divided(engine, (LOWEST, HIGHEST))
    assert 3 <= len(cuts) < PARTS_MAX
    ends = [LOWEST, *cuts, HIGHEST]
    assert ends == sorted(set(ends))
    sizes = [sum(start <= key < end for key in keys) for start, end in pairwise(ends)]
    assert sum(sizes) == len(keys)
    assert max(sizes) < 2 * len(keys) / len(sizes)
    # Also of what is left of it, which may begin with the first key of a page.
    monkeypatch.setattr(dividing, "PAGES_PER_PART", 1)
    for start in cuts:
        assert all(start < each for each in divided(engine, (start, HIGHEST)))
    start, end = keys[20_000], keys[50_000]
    rest = divided(engine, (start, end))
    assert rest == sorted(set(rest))
    assert rest and all(start < each < end for each in rest)


def test_there_are_no_more_parts_than_the_bound(engine: LmdbEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(engine, 60_000, bytes(100))
    monkeypatch.setattr(dividing, "PAGES_PER_PART", 4)
    assert len(divided(engine, (LOWEST, HIGHEST))) >= 3
    monkeypatch.setattr(dividing, "PARTS_MAX", 3)
    assert len(divided(engine, (LOWEST, HIGHEST))) == 2


def test_a_range_with_few_pages_is_not_divided(engine: LmdbEngine) -> None:
    keys = fill(engine, 60_000, bytes(100))
    within = keys[10], keys[20_000]
    mapped = engine.mapped
    assert not isinstance(mapped, str)
    assert 2 <= len(page_bounds(mapped, Space.DATA, *within, 1_000)) < dividing.PAGES_PER_PART
    assert divided(engine, within) == []
    assert divided(engine, (HIGHEST, LogicalKey(HIGHEST + b"\x01"))) == []


def test_no_engine_but_lmdb_is_divided() -> None:
    assert divided(MemoryEngine(), (LOWEST, HIGHEST)) == []


@pytest.mark.parametrize("seed", range(3))
def test_versions_of_one_key_are_in_one_part(engine: LmdbEngine, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dividing, "PAGES_PER_PART", 1)
    draw = Random(seed)
    history, store = History(engine, draw), VersionStore(engine)
    for _ in range(40):
        history.commit(100, 2_100)
    assert divided(engine, (LOWEST, HIGHEST)), "there are several pages"
    for _ in range(10):
        start, end = sorted((a_key(draw), a_key(draw))) if draw.random() < 0.5 else (LOWEST, HIGHEST)
        now = at(draw.randrange(history.commits + 2))
        whole = [each for each, _ in store.snapshot(now).scan(start, end)]
        cuts = divided(engine, (start, end))
        ends = [start, *cuts, end]
        found = [each for bounds in pairwise(ends) for each, _ in store.snapshot(now).scan(*bounds)]
        assert found == whole
