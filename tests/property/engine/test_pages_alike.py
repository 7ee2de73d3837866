"""Pages of both engines, over values of every size: the same items, and no more bytes read than were asked for. And the
first items of runs, over runs of every length.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.store.engine.interface import Engine, Space
from support.engines import open_lmdb
from support.memory_engine import MemoryEngine

ITEMS = 600
SIZES = {
    "small values": [0, 1, 20, 100, 1_000, 2_000],
    "a few large ones": [0, 20, 100, 100, 100, 1_000, 60_000],
    "values of every size": [0, 20, 100, 1_000, 5_000, 60_000, 300_000, 1 << 20],
}
BOUNDS = [0, 1, 100, 5_000, 64_000, 1 << 20, (1 << 20) + 1, 4 << 20]


@pytest.fixture(scope="module", params=SIZES)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Engine]]:
    """Yield LMDB and its twin, filled with the same."""
    drawn = random.Random(7)
    items = [(b"k%05d" % (3 * n) + drawn.randbytes(drawn.choice([0, 4, 480])), n) for n in range(ITEMS)]
    sizes = SIZES[request.param]
    # Runs of one size beside mixed ones: a page that guesses from earlier items must be wrong now and then.
    runs = [drawn.choice(sizes) for _ in range(ITEMS // 40)]
    values = [bytes(runs[n // 40] if n % 3 and n < ITEMS // 2 else drawn.choice(sizes)) for _, n in items]
    lmdb, twin = open_lmdb(tmp_path_factory.mktemp("pages") / "data"), MemoryEngine(limit_bytes=1 << 34)
    for engine in (lmdb, twin):
        with engine.write() as txn:
            txn.put_many(Space.DATA, [(key, value) for (key, _), value in zip(items, values, strict=True)])
    yield lmdb, twin
    lmdb.close()


@given(
    st.integers(-1, 3 * ITEMS + 5),
    st.integers(-1, 3 * ITEMS + 5),
    st.booleans(),
    st.sampled_from([1, 2, 15, 16, 17, 100, 2_000]),
    st.sampled_from(BOUNDS),
)
def test_lmdb_and_its_twin_give_the_same_pages(
    both: tuple[Engine, Engine], start: int, end: int, reverse: bool, max_items: int, max_bytes: int
) -> None:
    first, last = (b"k%05d" % max(0, bound) for bound in (start, end))
    pages = []
    for engine in both:
        with engine.read() as txn:
            pages.append(txn.page(Space.DATA, first, last, reverse=reverse, max_items=max_items, max_bytes=max_bytes))
    assert pages[0] == pages[1]
    page = pages[0]
    sizes = [len(key) + len(value) for key, value in zip(page.keys, page.values, strict=True)]
    assert sum(sizes[:-1]) < max(1, max_bytes) and len(sizes) <= max_items
    assert page.exhausted or len(sizes) == max_items or sum(sizes) >= max_bytes


TAIL_BYTES = 2
GROUPS = 60


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Engine]]:
    """Yield LMDB and its twin, filled with runs of one to forty keys that differ in their last two bytes."""
    drawn = random.Random(11)
    lmdb, twin = open_lmdb(tmp_path_factory.mktemp("runs") / "data"), MemoryEngine(limit_bytes=1 << 34)
    items = [
        (b"%03d" % group + tail.to_bytes(TAIL_BYTES), bytes(drawn.choice([0, 5, 300, 5_000])))
        for group in range(GROUPS)
        for tail in drawn.sample(range(1 << 8 * TAIL_BYTES), drawn.choice([1, 2, 5, 40]))
    ]
    for engine in (lmdb, twin):
        with engine.write() as txn:
            txn.put_many(Space.DATA, sorted(items))
    yield lmdb, twin
    lmdb.close()


@given(
    st.integers(0, GROUPS),
    st.integers(0, GROUPS),
    st.binary(min_size=TAIL_BYTES, max_size=TAIL_BYTES),
    st.sampled_from([1, 2, 7, 2_000]),
    st.sampled_from(BOUNDS[1:]),
)
def test_the_first_items_of_runs_are_those_of_all_items(
    runs: tuple[Engine, Engine], start: int, end: int, tail: bytes, max_items: int, max_bytes: int
) -> None:
    first, last = b"%03d" % start, b"%03d" % end
    pages = []
    for engine in runs:
        with engine.read() as txn:
            pages.append(txn.firsts(Space.DATA, first, last, tail, max_items=max_items, max_bytes=max_bytes))
            all_keys = txn.page(Space.DATA, first, last, max_items=1 << 20, max_bytes=1 << 40).keys
    # One may say that more follows though nothing does: its next page is empty.
    assert pages[0][:2] == pages[1][:2]
    assert pages[1].exhausted or not pages[0].exhausted
    expected = []
    for _, run in groupby(all_keys, key=lambda key: key[:-TAIL_BYTES]):
        found = list(run)
        expected += dict.fromkeys([found[0], *[key for key in found if key[-TAIL_BYTES:] >= tail][:1]])
    assert pages[0].keys == expected[: len(pages[0].keys)]
    assert not pages[0].exhausted or pages[0].keys == expected
