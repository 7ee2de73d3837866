"""A full disk refuses writes and takes them again; a failed sync ends everything; a killed process loses nothing."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cortado.errors import ResourceExhausted
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from support.engines import IDENTITY, open_lmdb
from support.needs import need, need_root

pytestmark = pytest.mark.process

TESTS = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from support.engines import IDENTITY

engine = LmdbEngine.open(Path(sys.argv[1]), new_identity=lambda: IDENTITY, map_bytes=1 << 30)
print("open", flush=True)
for number in range(int(sys.argv[2])):
    try:
        with engine.write() as txn:
            txn.put_many(Space.DATA, [(b"%06d-%d" % (number, part), b"v" * 3_000) for part in range(4)])
            txn.put(Space.META, b"applied", b"%d" % number)
        print(number, flush=True)
    except BaseException as error:
        print(type(error).__name__, flush=True)
try:
    with engine.read() as txn:
        print("read", txn.get(Space.META, b"applied"), flush=True)
except BaseException as error:
    print(error, flush=True)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    need_root()
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], check=False)
    need(mounted.returncode == 0, "the privilege to mount a tmpfs")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(engine: LmdbEngine, name: bytes, value_bytes: int) -> int:
    """Write until there is no room; how many were written."""
    for number in range(100_000):
        try:
            with engine.write() as txn:
                txn.put(Space.DATA, name + b"%06d" % number, b"v" * value_bytes)
                txn.put(Space.META, name, b"%d" % number)
        except ResourceExhausted as full:
            assert full.resource == "disk"
            assert "full" in str(full)
            return number
    raise AssertionError("the disk never filled")


@pytest.mark.parametrize("value_bytes", [300, 30_000, 1_000_000])
def test_a_full_disk_refuses_writes_and_takes_them_again(small_disk: Path, value_bytes: int) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"b" * (3 << 20))
    engine = open_lmdb(small_disk / "data", reserve_bytes=1 << 20)
    engine.admit(100_000)
    written = fill(engine, b"a", value_bytes)
    assert written > 0
    with pytest.raises(ResourceExhausted, match="full"):
        engine.admit(100_000)
    with engine.read() as txn:
        assert txn.get(Space.META, b"a") == b"%d" % (written - 1)
        assert txn.get(Space.DATA, b"a%06d" % (written - 1)) == b"v" * value_bytes
        assert txn.get(Space.DATA, b"a%06d" % written) is None
    for _ in range(50):
        with pytest.raises(ResourceExhausted), engine.write() as txn:
            txn.put_many(Space.DATA, [(b"refused%d" % number, b"v" * 1_000_000) for number in range(4)])
    ballast.unlink()
    engine.admit(100_000)
    assert fill(engine, b"b", value_bytes) > 0
    engine.close()
    engine = open_lmdb(small_disk / "data")
    with engine.read() as txn:
        assert txn.get(Space.META, b"a") == b"%d" % (written - 1)
    engine.close()


def test_where_a_write_was_refused_a_smaller_one_is_too(small_disk: Path) -> None:
    engine = open_lmdb(small_disk / "data", reserve_bytes=4 << 20)
    engine.admit(1)
    (small_disk / "ballast").write_bytes(b"b" * (shutil.disk_usage(small_disk).free - (2 << 20)))
    with pytest.raises(ResourceExhausted, match="full"):
        engine.admit(16 << 20)
    with pytest.raises(ResourceExhausted, match="full"):
        engine.admit(1)
    engine.close()


def fill_up(disk: Path) -> None:
    """Fill the disk to the last byte, from another process."""
    with (disk / "others").open("wb", buffering=0) as others, suppress(OSError):
        while True:
            others.write(b"b" * 4096)


def test_what_was_admitted_has_room_whoever_fills_the_disk_in_between(small_disk: Path) -> None:
    """It is committed and acknowledged before it is applied: without room for that, no read that must see it ends."""
    engine = open_lmdb(small_disk / "data", reserve_bytes=3 << 20)
    for number in range(4):
        admitted = 0
        with suppress(ResourceExhausted):
            while admitted < 100:
                engine.admit(10_000)
                admitted += 1
                if admitted == 1:
                    fill_up(small_disk)
        assert admitted > 0
        with engine.write() as txn:
            txn.put_many(Space.DATA, [(b"%d-%06d" % (number, each), b"v" * 10_000) for each in range(admitted)])
        (small_disk / "others").unlink()
        with engine.write() as txn:
            txn.put(Space.META, b"room", b"%d" % number)
    engine.close()


def run_under_strace(path: Path, trace: Path, *, writes: int, inject: str = "") -> list[str]:
    """Return the lines that the writer printed. ``inject`` is a fault, in strace's words."""
    need(shutil.which("strace") is not None, "strace")
    faults = ["-e", f"inject={inject}"] if inject else []
    command = ["strace", "-f", "-o", str(trace), "-e", "trace=fdatasync,pwrite64", *faults]
    ended = subprocess.run(
        [*command, sys.executable, "-c", WRITER, str(path), str(writes)],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    need("PTRACE" not in ended.stderr, f"the privilege to trace processes: {ended.stderr[-200:]}")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def calls(trace: Path, call: str) -> list[str]:
    return [line for line in trace.read_text().splitlines() if re.search(rf"\b{call}\(", line)]


def test_after_a_failed_sync_nothing_is_written_any_more(tmp_path: Path) -> None:
    open_lmdb(tmp_path / "data").close()
    trace = tmp_path / "trace"
    printed = run_under_strace(tmp_path / "data", trace, writes=5, inject="fdatasync:error=EIO:when=3")
    assert printed == ["open", "0", "1", "StorageFailed", "StorageFailed", "StorageFailed", "read b'1'"]
    assert len(calls(trace, "fdatasync")) == 3
    assert calls(trace, "(?:fdatasync|pwrite64)")[-1].endswith("EIO (Input/output error) (INJECTED)")
    engine = open_lmdb(tmp_path / "data")
    with engine.read() as txn:
        assert txn.get(Space.META, b"applied") == b"1"
    engine.close()


def test_a_meta_page_that_could_not_be_written_is_the_end_even_if_the_disk_was_only_full(tmp_path: Path) -> None:
    open_lmdb(tmp_path / "data").close()
    trace = tmp_path / "trace"
    assert run_under_strace(tmp_path / "data", trace, writes=2) == ["open", "0", "1", "read b'1'"]
    # 120 bytes at a page's meta data: the last write of each commit.
    place = max(at for at, call in enumerate(calls(trace, "pwrite64"), 1) if ", 120, " in call)
    shutil.rmtree(tmp_path / "data")
    open_lmdb(tmp_path / "data").close()
    printed = run_under_strace(tmp_path / "data", trace, writes=4, inject=f"pwrite64:error=ENOSPC:when={place}")
    assert printed == ["open", "0", *["StorageFailed"] * 3, "the disk failed under a write; this process must end"]
    engine = open_lmdb(tmp_path / "data")
    with engine.read() as txn:
        assert txn.get(Space.META, b"applied") == b"0"
    engine.close()


def test_each_write_is_synced_before_it_is_acknowledged(tmp_path: Path) -> None:
    open_lmdb(tmp_path / "data").close()
    trace = tmp_path / "trace"
    run_under_strace(tmp_path / "data", trace, writes=10)
    assert len(calls(trace, "fdatasync")) == 10
    assert len([call for call in calls(trace, "pwrite64") if ", 120, " in call]) == 10


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    for round_number in range(3):
        path = tmp_path / f"data{round_number}"
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), "1000000"],
            env=os.environ | {"PYTHONPATH": str(TESTS)},
            stdout=subprocess.PIPE,
            text=True,
        )
        with writer:
            assert writer.stdout is not None
            acknowledged = -1
            while acknowledged < 50 + 37 * round_number:
                line = writer.stdout.readline().strip()
                acknowledged = int(line) if line.isdigit() else acknowledged
            writer.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.strip().isdigit())])
        engine = LmdbEngine.open(path, new_identity=lambda: IDENTITY, map_bytes=1 << 30)
        with engine.read() as txn:
            applied = int(txn.get(Space.META, b"applied") or b"-1")
            keys, _ = txn.keys(Space.DATA, b"", b"\xff", max_items=1_000_000)
        engine.close()
        # The one that was being written may be there too, and then it is there whole.
        assert acknowledged <= applied <= acknowledged + 1
        assert keys == [b"%06d-%d" % (number, part) for number in range(applied + 1) for part in range(4)]
