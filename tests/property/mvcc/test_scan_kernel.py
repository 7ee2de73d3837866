"""The scan kernel beside the Python path: the same rows, to the byte, after any writes, at every timestamp.

Values have 0 bytes to a megabyte, on leaves and on pages of their own; keys are deleted, expire, and have many
versions; versions are removed, so that pages are freed and used again; and a thread commits while others read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from cortado.errors import Unavailable
from cortado.store.engine.interface import LentMap, Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.keys.keyspace import kv_key, row_key
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc.slices import Slice
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version, suffix_of
from support.engines import open_lmdb
from support.kernels import row_kernel
from support.scans_alike import HIGHEST, LOWEST, History, a_key, at, by_kernel, by_python, tree_of

ROOT = Path(__file__).parents[3]
DEPTH = 4
"""The place of that number in a tree."""

pytestmark = pytest.mark.slow


def mapped_of(engine: LmdbEngine) -> LentMap:
    assert not isinstance(engine.mapped, str), engine.mapped
    return engine.mapped


@pytest.mark.parametrize("seed", range(12))
def test_both_paths_read_the_same_rows_at_every_timestamp(engine: LmdbEngine, seed: int) -> None:
    draw, kernel, mapped = Random(seed), row_kernel(), mapped_of(engine)
    history, store = History(engine, draw), VersionStore(engine)
    for _ in range(40):
        history.commit(draw.choice([1, 5, 60]), draw.choice([100, 2_000, 20_000, 1 << 20]) if seed % 4 == 0 else 2_100)
        ts = at(draw.randrange(history.commits + 2))
        within = (LOWEST, HIGHEST) if draw.random() < 0.5 else tuple(sorted((a_key(draw), a_key(draw))))
        if within[0] == within[1]:
            continue
        rows, size = draw.choice([1, 3, 40, 2_000]), draw.choice([1, 3_000, 1 << 20])
        for reverse in (False, True):
            expected = by_python(store, within, ts, reverse=reverse, rows=2_000, size=1 << 20)
            found = by_kernel(kernel, mapped, within, ts, reverse=reverse, rows=rows, size=size)
            assert found is not None, "the kernel did not know what to do"
            assert found == expected
    for number in range(history.commits + 2):
        expected = by_python(store, (LOWEST, HIGHEST), at(number), reverse=False, rows=2_000, size=1 << 20)
        assert by_kernel(kernel, mapped, (LOWEST, HIGHEST), at(number), reverse=False, rows=99, size=9_999) == expected


@pytest.mark.parametrize("reverse", [False, True])
def test_keys_of_many_versions_are_passed_by_searches(engine: LmdbEngine, reverse: bool) -> None:
    kernel, mapped, store = row_kernel(), mapped_of(engine), VersionStore(engine)
    draw = Random(7)
    keys = sorted({a_key(draw) for _ in range(30)})
    with engine.write() as txn:
        for place, key in enumerate(keys):
            for number in range(1, 1 + [1, 8, 9, 10, 400][place % 5]):
                payload = None if number % 7 == 0 else b"head%d" % number
                txn.put(Space.DATA, *encode_version(key, payload, at(number)))
    for number in (0, 1, 7, 8, 9, 10, 200, 399, 400, 500):
        expected = by_python(store, (LOWEST, HIGHEST), at(number), reverse=reverse, rows=50, size=1 << 20)
        found = by_kernel(kernel, mapped, (LOWEST, HIGHEST), at(number), reverse=reverse, rows=4, size=1 << 20)
        assert found == expected


def test_searches_from_leaf_to_leaf_of_a_deep_tree_find_what_python_finds(engine: LmdbEngine) -> None:
    kernel, mapped, store = row_kernel(), mapped_of(engine), VersionStore(engine)
    draw = Random(11)
    keys = [kv_key("n", b"key-%05d" % number) for number in range(400)]
    with engine.write() as txn:
        for place, key in enumerate(keys):
            # Neighbours have about as many, and now and then there is one that has not.
            count = [12, 4, 1, 30][place // 100] if draw.random() < 0.9 else draw.randrange(1, 15)
            for number in range(1, 1 + count):
                payload = None if draw.random() < 0.1 else draw.randbytes(draw.choice([20, 200, 900]))
                txn.put(Space.DATA, *encode_version(key, payload, at(number)))
    assert tree_of(mapped)[DEPTH] >= 3, "else all searches begin at the root"
    for number in (0, 1, 3, 4, 5, 12, 30):
        for reverse in (False, True):
            expected = by_python(store, (LOWEST, HIGHEST), at(number), reverse=reverse, rows=2_000, size=1 << 20)
            found = by_kernel(kernel, mapped, (LOWEST, HIGHEST), at(number), reverse=reverse, rows=150, size=1 << 16)
            assert found == expected


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("versions", [3, 4, 11])
def test_old_versions_do_not_end_a_slice_early(engine: LmdbEngine, reverse: bool, versions: int) -> None:
    keys = [kv_key("n", b"key-%05d" % number) for number in range(200)]
    with engine.write() as txn:
        for key in keys:
            for number in range(1, 1 + versions):
                txn.put(Space.DATA, *encode_version(key, bytes(200), at(number)))
    suffix = suffix_of(at(versions))
    wanted = Slice(LOWEST, HIGHEST, suffix, suffix, reverse, len(keys), 2 * len(keys) * 260)
    found = row_kernel().read(mapped_of(engine), wanted)
    assert found is not None and len(found.payloads) == len(keys)


@pytest.mark.parametrize("seed", range(3))
def test_a_range_is_split_alike_on_both_paths(engine: LmdbEngine, seed: int) -> None:
    history, python, compiled = History(engine, Random(seed)), VersionStore(engine), VersionStore(engine)
    compiled.kernel = row_kernel()
    for _ in range(30):
        history.commit(60, 300)
    for number in (0, 5, history.commits):
        counted = []
        for store, keys in ((python, 50), (compiled, 50), (compiled, 10_000)):
            counting = store.split(LOWEST, HIGHEST, 7, at(number))
            while not counting.step(keys):
                pass
            counted.append(counting.parts())
        assert counted[0] == counted[1] == counted[2]


def test_rows_stay_what_they_were_while_another_thread_commits(engine: LmdbEngine) -> None:
    kernel, mapped = row_kernel(), mapped_of(engine)
    history, store = History(engine, Random(3)), VersionStore(engine)
    for _ in range(30):
        history.commit(40)
    then = at(history.commits)
    # Versions removed below must not count then.
    history.stored.clear()
    expected = {
        reverse: by_python(store, (LOWEST, HIGHEST), then, reverse=reverse, rows=2_000, size=1 << 20)
        for reverse in (False, True)
    }
    stop, commits = threading.Event(), [0]

    def commit() -> None:
        while not stop.is_set():
            history.commit(8)
            commits[0] += 1

    writer = threading.Thread(target=commit)
    writer.start()
    try:
        scans = 0
        while scans < 60 or commits[0] < 60:
            for reverse in (False, True):
                found = by_kernel(kernel, mapped, (LOWEST, HIGHEST), then, reverse=reverse, rows=50, size=1 << 16)
                assert found == expected[reverse]
                scans += 1
    finally:
        stop.set()
        writer.join()


def test_an_engine_that_closes_waits_for_kernels_and_lends_no_more(tmp_path: Path) -> None:
    kernel = row_kernel()
    engine = open_lmdb(tmp_path / "data")
    history = History(engine, Random(5))
    for _ in range(20):
        history.commit(200)
    mapped, now = mapped_of(engine), at(history.commits)
    begun, ends = threading.Barrier(4), list[str]()

    def read_on() -> None:
        begun.wait()
        try:
            while True:
                by_kernel(kernel, mapped, (LOWEST, HIGHEST), now, reverse=False, rows=5_000, size=1 << 20)
        except Unavailable:
            ends.append("refused")

    readers = [threading.Thread(target=read_on) for _ in range(3)]
    for reader in readers:
        reader.start()
    begun.wait()
    engine.close()
    for reader in readers:
        reader.join(60)
    assert ends == ["refused"] * 3


def test_closing_waits_until_a_lent_tree_is_given_back(engine: LmdbEngine) -> None:
    mapped, closed = mapped_of(engine), threading.Event()
    with mapped.tree(Space.DATA):
        closing = threading.Thread(target=lambda: (mapped.close(), closed.set()))
        closing.start()
        # It refuses from now on, and has not ended.
        while True:
            try:
                with mapped.tree(Space.DATA):
                    pass
            except Unavailable:
                break
        assert not closed.is_set()
    closing.join(60)
    assert closed.is_set()


def test_a_row_too_short_for_the_id_of_its_schema_is_left_to_python(engine: LmdbEngine) -> None:
    key = row_key(1, (KeyPart("a", KeyType.INT64),), [1])
    with engine.write() as txn:
        txn.put(Space.DATA, *encode_version(key, b"abc", at(1)))
    suffix = suffix_of(at(1))
    assert row_kernel().read(mapped_of(engine), Slice(key, HIGHEST, suffix, suffix, False, 5, 5)) is None


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 600), (22_617, 1)],
    ids=["many", "a pointer among versions of a key that a search passes by"],
)
def test_no_damage_of_the_file_gives_a_wrong_row_or_ends_the_process(first: int, count: int) -> None:
    row_kernel()
    found = subprocess.run(
        [sys.executable, "-m", "support.damaged_scans", str(first), str(count)],
        env={**os.environ, "PYTHONPATH": "tests"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.startswith(f"read {count}, refused "), found.stdout


def test_an_empty_tree_and_an_empty_range_have_no_rows(engine: LmdbEngine) -> None:
    kernel, mapped = row_kernel(), mapped_of(engine)
    for reverse in (False, True):
        assert by_kernel(kernel, mapped, (LOWEST, HIGHEST), at(1), reverse=reverse, rows=5, size=5) == []
    History(engine, Random(1)).commit(50)
    suffix = suffix_of(at(1))
    assert kernel.read(mapped, Slice(HIGHEST, LOWEST, suffix, suffix, False, 5, 5)) is None, (
        "not a range: Python says so"
    )
