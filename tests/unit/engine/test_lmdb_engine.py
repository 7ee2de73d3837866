"""LMDB's own behaviour: threads, room in the map, and the errors without room."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.errors import DataDirectoryError, Internal, InvalidArgument, ResourceExhausted
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import MAP_BYTES_DEFAULT, LmdbEngine
from support.engines import IDENTITY, open_lmdb


@pytest.fixture
def lmdb_engine(tmp_path: Path) -> Iterator[LmdbEngine]:
    engine = open_lmdb(tmp_path / "data")
    yield engine
    engine.close()


def put(engine: LmdbEngine, key: bytes, value: bytes) -> None:
    with engine.write() as txn:
        txn.put(Space.DATA, key, value)


def value_of(engine: LmdbEngine, key: bytes) -> bytes | None:
    with engine.read() as txn:
        return txn.get(Space.DATA, key)


def test_a_write_transaction_ends_on_its_own_thread(lmdb_engine: LmdbEngine) -> None:
    scope = lmdb_engine.write()
    scope.__enter__()
    refused: list[BaseException] = []

    def end_elsewhere() -> None:
        try:
            scope.__exit__(None, None, None)
        except Internal as error:
            refused.append(error)

    thread = threading.Thread(target=end_elsewhere)
    thread.start()
    thread.join()
    assert "ends on the thread that it began on" in str(refused[0])
    scope.__exit__(None, None, None)
    put(lmdb_engine, b"k", b"v")


def test_a_key_that_was_not_checked_is_a_defect_and_harms_nothing(lmdb_engine: LmdbEngine) -> None:
    for bad in (b"", b"k" * 512):
        with pytest.raises(Internal, match="1 to 511 bytes"), lmdb_engine.write() as txn:
            txn.put(Space.DATA, bad, b"v")
    put(lmdb_engine, b"k", b"v")


def test_what_was_written_is_there_after_a_reopen(tmp_path: Path) -> None:
    for number in range(3):
        engine = open_lmdb(tmp_path / "data")
        assert [value_of(engine, b"%d" % each) for each in range(number)] == [b"v"] * number
        put(engine, b"%d" % number, b"v")
        assert engine.identity == IDENTITY
        engine.close()


def test_the_default_map_is_large_and_costs_no_disk(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "data", map_bytes=None)
    assert engine.use().limit_bytes == MAP_BYTES_DEFAULT
    assert (tmp_path / "data" / "engine" / "data.mdb").stat().st_size < 2 << 20
    engine.close()


@pytest.mark.parametrize("limited", ["RLIMIT_AS", "RLIMIT_FSIZE"])
def test_the_default_map_is_what_the_process_may_have(tmp_path: Path, limited: str) -> None:
    """A write beyond the limit on files would be cut short, which looks like a broken disk."""
    limit = 8 << 30
    script = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.{limited}, ({limit}, {limit}))\n"
        "from support.engines import open_lmdb\n"
        "from pathlib import Path\n"
        "print(open_lmdb(Path(sys.argv[1]), map_bytes=None).use().limit_bytes)\n"
    )
    tests = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "data")],
        env={"PYTHONPATH": str(tests), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert limit // 4 <= int(ended.stdout) <= limit


def test_a_map_that_the_process_cannot_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match="Cannot allocate memory"):
        open_lmdb(tmp_path / "data", map_bytes=1 << 60)
    with pytest.raises(InvalidArgument, match=r"map_bytes: must be at least 1048576 \(got 4096\)"):
        open_lmdb(tmp_path / "data", map_bytes=4096)
    open_lmdb(tmp_path / "data").close()


def test_a_full_map_refuses_the_write_whole_and_goes_on_reading(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "data", map_bytes=4 << 20)
    put(engine, b"first", b"here")
    written = 0
    with pytest.raises(ResourceExhausted) as full:
        while True:
            with engine.write() as txn:
                txn.put(Space.DATA, b"%06d" % written, b"v" * 100_000)
                txn.put(Space.META, b"applied", b"%d" % written)
            written += 1
    assert full.value.resource == "map"
    assert full.value.limit == 4 << 20
    assert "larger one" in str(full.value)
    assert written > 20
    assert value_of(engine, b"first") == b"here"
    assert value_of(engine, b"%06d" % written) is None
    with engine.read() as txn:
        assert txn.get(Space.META, b"applied") == b"%d" % (written - 1)
    with engine.write() as txn:
        txn.delete_range(Space.DATA, b"000000", b"000010")
    # LMDB keeps the last two states whole, so space that one commit frees is used from the one after the next.
    put(engine, b"between", b"")
    for again in range(8):
        put(engine, b"again%d" % again, b"v" * 100_000)
    engine.close()


def test_a_full_map_takes_writes_again_when_it_is_opened_with_a_larger_one(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "data", map_bytes=2 << 20)
    with pytest.raises(ResourceExhausted):
        put(engine, b"large", b"v" * (3 << 20))
    engine.close()
    engine = open_lmdb(tmp_path / "data", map_bytes=8 << 20)
    put(engine, b"large", b"v" * (3 << 20))
    engine.close()


def test_writes_are_admitted_only_above_the_reserve(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "data", map_bytes=16 << 20)
    assert engine.reserve_bytes == 2 << 20
    written = 0
    with pytest.raises(ResourceExhausted) as full:
        while True:
            engine.admit(100_000)
            use = engine.use()
            assert engine.room().is_tight == (use.limit_bytes - use.used_bytes < 2 * engine.reserve_bytes)
            put(engine, b"%06d" % written, b"v" * 100_000)
            written += 1
    assert full.value.resource == "map"
    assert engine.room().is_tight
    use = engine.use()
    assert engine.reserve_bytes - 200_000 <= use.limit_bytes - use.used_bytes <= engine.reserve_bytes + 300_000
    # Writes that make room are let in down to the last part of the reserve.
    engine.admit(100_000, frees=True)
    engine.admit(engine.reserve_bytes // 4, frees=True)
    with pytest.raises(ResourceExhausted):
        engine.admit(engine.reserve_bytes // 2 - engine.reserve_bytes // 16, frees=True)
    with engine.write() as txn:
        txn.delete_range(Space.DATA, b"000000", b"000030")
    engine.admit(100_000)
    engine.close()


def test_what_is_admitted_and_not_stored_counts_where_room_is_looked_at_and_that_is_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_lmdb(tmp_path / "data", map_bytes=16 << 20)
    with pytest.raises(ResourceExhausted):
        engine.admit(100, behind_bytes=8 << 20)
    use, looks = engine.use, []
    monkeypatch.setattr(engine, "use", lambda: looks.append(1) or use())
    for number in range(200):
        engine.admit(100, behind_bytes=(4 << 20) + 100 * number)
    assert len(looks) == 1
    engine.close()


def test_a_write_larger_than_all_room_is_not_admitted(lmdb_engine: LmdbEngine) -> None:
    lmdb_engine.admit(1 << 20)
    with pytest.raises(ResourceExhausted):
        lmdb_engine.admit(1 << 50)
    lmdb_engine.admit(1 << 20)
