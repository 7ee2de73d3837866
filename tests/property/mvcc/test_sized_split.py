"""Parts of about equally many stored bytes: adjacent, all of the range, near even, and no more than are worth it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.keys.keyspace import KeyRange, row_key
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc import sized_split
from cortado.store.mvcc.split import Part
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version
from support.scans_alike import HIGHEST, LOWEST, History, a_key, at

KEY = (KeyPart("a", KeyType.INT64),)


def divided(engine: LmdbEngine, parts: int, part_bytes: int, within: KeyRange = (LOWEST, HIGHEST)) -> list[Part]:
    split = VersionStore(engine).split(*within, parts, at(100), part_bytes)
    while not split.step(1_000):
        pass
    return split.parts()


def fill(engine: LmdbEngine, first: int, last: int, payload_bytes: int, versions: int = 1) -> None:
    payload = b"head" + bytes(payload_bytes)
    keys = [row_key(1, KEY, [number]) for number in range(first, last)]
    with engine.write() as txn:
        txn.put_many(Space.DATA, [encode_version(k, payload, at(v)) for k in keys for v in reversed(range(versions))])


def items(engine: LmdbEngine, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the stored items of a range, page by page."""
    exhausted = False
    while not exhausted:
        with engine.read() as txn:
            page = txn.page(Space.DATA, start, end, max_items=10_000)
        yield from zip(page.keys, page.values, strict=True)
        start, exhausted = (page.keys[-1] + b"\0" if page.keys else end), page.exhausted


def bytes_of(engine: LmdbEngine, parts: list[Part]) -> list[int]:
    """Return the stored bytes of each part of everything, summed up item by item."""
    ranges = pairwise([*(part.start for part in parts), HIGHEST])
    return [sum(len(key) + len(value) for key, value in items(engine, *each)) for each in ranges]


def fill_unevenly(engine: LmdbEngine) -> None:
    """Small rows; large ones, whose values have pages of their own; and some with many versions."""
    fill(engine, 0, 8_000, 60)
    fill(engine, 8_000, 8_200, 9_000)
    fill(engine, 8_200, 9_000, 60, versions=12)


def test_parts_have_equal_shares_of_the_bytes_where_rows_differ(engine: LmdbEngine) -> None:
    fill_unevenly(engine)
    total = sum(bytes_of(engine, [Part(LOWEST, 0)]))
    found = divided(engine, 100, total // 8 + 1)
    assert len(found) == 8
    assert max(abs(size - total / 8) for size in bytes_of(engine, found)) < 10_000
    assert sum(part.rows for part in found) == 9_000


def test_a_sample_of_the_pages_cuts_near_even(engine: LmdbEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized_split, "BRANCHES_MAX", 8)
    monkeypatch.setattr(sized_split, "LEAVES_MAX", 64)
    for part in range(4):
        fill(engine, part * 20_000, (part + 1) * 20_000, 40 * (part + 1))
    total = sum(bytes_of(engine, [Part(LOWEST, 0)]))
    found = divided(engine, 100, total // 6 + 1)
    assert len(found) == pytest.approx(6, abs=1)
    sizes = bytes_of(engine, found)
    assert max(sizes) < 1.5 * total / len(found)
    assert min(sizes) > 0.5 * total / len(found)
    assert sum(part.rows for part in found) == pytest.approx(80_000, rel=0.2)


def test_many_parts_have_a_finer_sample(engine: LmdbEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized_split, "BRANCHES_MAX", 1)
    monkeypatch.setattr(sized_split, "LEAVES_MAX", 16)
    fill(engine, 0, 60_000, 40)
    total = sum(bytes_of(engine, [Part(LOWEST, 0)]))
    found = divided(engine, 100, total // 20)
    assert len(found) > 12
    assert max(bytes_of(engine, found)) < 2 * total / len(found)


def test_there_are_no_more_parts_than_the_bytes_are_worth_nor_than_are_asked_for(
    engine: LmdbEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert divided(engine, 100, 1) == [Part(LOWEST, 0)]
    fill(engine, 0, 1_000, 60)
    assert divided(engine, 100, 64 << 20) == [Part(LOWEST, 1_000)]
    assert len(divided(engine, 5, 1)) == 5
    monkeypatch.setattr(sized_split, "PARTS_MAX", 7)
    assert len(divided(engine, 100, 1)) == 7


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_adjacent_and_a_row_is_in_one(engine: LmdbEngine, seed: int) -> None:
    draw = Random(seed)
    history = History(engine, draw)
    for _ in range(40):
        history.commit(100, 2_100)
    for _ in range(10):
        start, end = sorted((a_key(draw), a_key(draw))) if draw.random() < 0.5 else (LOWEST, HIGHEST)
        found = divided(engine, draw.randrange(1, 9), draw.choice([1, 3_000, 100_000]), (start, end))
        starts = [part.start for part in found]
        assert starts[0] == start
        assert starts == sorted(set(starts))
        stored = {key[:-TIMESTAMP_BYTES] for key, _ in items(engine, start, end)}
        assert set(starts[1:]) <= stored
        assert sum(part.rows for part in found) == len(stored)


def test_rows_are_counted_where_the_pages_cannot_be_read(engine: LmdbEngine) -> None:
    fill_unevenly(engine)
    engine._mapped = "of an unknown form"  # type: ignore[assignment]
    used_bytes = engine.use().used_bytes
    found = divided(engine, 100, used_bytes // 3 + 1)
    assert len(found) == 3
    assert max(part.rows for part in found) - min(part.rows for part in found) < 50
