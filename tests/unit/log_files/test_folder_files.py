"""The real folder: modes, a process that is killed, a disk that fills, a sync that fails."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cortado.errors import DataLoss, ResourceExhausted
from cortado.store.engine.failures import StorageFailed
from cortado.store.log_files.files import FolderFiles
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.walk import walk
from support.log_histories import SCRIPT, entry, hard_state, opened, read_back, states_of
from support.needs import need
from support.small_disk import mounted_disk

TESTS = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from cortado.store.log_files.files import FolderFiles
from cortado.store.log_files.log_files import LogFiles
from support.log_histories import entry, hard_state

log_files = LogFiles.open(FolderFiles(Path(sys.argv[1])), segment_bytes_max=1 << 16)
log_files.append([hard_state(1, 0), hard_state(2, 0)])
print("open", flush=True)
for number in range(1, int(sys.argv[2]) + 1):
    try:
        base = [hard_state(1, number - 20)] if number > 20 and number % 10 == 0 else []
        log_files.append([entry(1, number, b"%d" % number * 900), entry(2, number), *base])
        print(number, flush=True)
    except BaseException as error:
        print(type(error).__name__, flush=True)
"""


def test_a_history_comes_back_through_the_real_files(tmp_path: Path) -> None:
    states = states_of(SCRIPT)
    for place, records in enumerate(SCRIPT):
        log_files, found = opened(FolderFiles(tmp_path / "log"))
        assert found == states[place]
        log_files.append(records)
        log_files.close()
    assert read_back(FolderFiles(tmp_path / "log")) == states[-1]


def test_folder_and_files_are_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        log_files, _ = opened(FolderFiles(tmp_path / "log"))
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o700
    [file] = (tmp_path / "log").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    log_files.close()


def test_read_only_files_change_nothing(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path / "none", may_write=False)
    assert list(walk(files)) == [] and not (tmp_path / "none").exists()
    log_files, _ = opened(FolderFiles(tmp_path / "log"))
    log_files.append(SCRIPT[0])
    log_files.close()
    files = FolderFiles(tmp_path / "log", may_write=False)
    assert [found.record for found in walk(files)] == SCRIPT[0]
    with pytest.raises(StorageFailed):
        files.write("0000000000000001", 0, b"x")
    files.close()


def test_creating_and_removing_sync_the_folder_and_appending_syncs_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def recorded(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    need(Path("/proc/self/fd").exists(), "/proc")
    monkeypatch.setattr(os, "fsync", recorded)
    monkeypatch.setattr(os, "fdatasync", recorded)
    files = FolderFiles(tmp_path / "log")
    assert synced == [tmp_path.name, "log"]
    name = "0000000000000001"
    for call, expected in (
        (lambda: files.create(name, 4_096), [name, "log"]),
        (lambda: files.write(name, 0, b"x"), []),
        (lambda: files.sync(name), [name]),
        (lambda: files.remove(name), ["log"]),
    ):
        synced.clear()
        call()
        assert synced == expected


def test_a_file_that_is_not_there_or_exists_already_is_a_failure(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path / "log")
    files.create("0000000000000001", 4_096)
    assert files.read("0000000000000001", 0, 9_999) == bytes(4_096) and files.size("0000000000000001") == 4_096
    for call in (
        lambda: files.create("0000000000000001", 4_096),
        lambda: files.write("0000000000000002", 0, b""),
        lambda: files.sync("0000000000000002"),
        lambda: files.remove("0000000000000002"),
    ):
        with pytest.raises(StorageFailed, match=r"the log file 000000000000000[12]"):
            call()
    with pytest.raises(DataLoss):
        files.read("0000000000000002", 0, 1)
    files.close()


@pytest.mark.process
@pytest.mark.parametrize("round_number", range(3))
def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path, round_number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "log"), "1000000"],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        acknowledged = 0
        while acknowledged < 60 + 41 * round_number:
            line = writer.stdout.readline().strip()
            acknowledged = int(line) if line.isdigit() else acknowledged
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.strip().isdigit())])
    state = read_back(FolderFiles(tmp_path / "log"))
    assert len(state[2][1]) in (acknowledged, acknowledged + 1)
    assert state[1][1][-1].index == state[2][1][-1].index
    assert all(each.payload == b"%d" % each.index * 900 for each in state[1][1])


def test_a_disk_that_fills_refuses_and_goes_on(tmp_path: Path) -> None:
    with mounted_disk(tmp_path / "disk", 4) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(2 << 20))
        log_files = LogFiles.open(FolderFiles(disk / "log"), segment_bytes_max=1 << 20)
        log_files.append([hard_state(1, 0)])
        index = 0
        with pytest.raises(ResourceExhausted, match="full"):
            for index in range(1, 1_000):
                log_files.append([entry(1, index, b"f" * 20_000)])
        assert index > 90
        free = shutil.disk_usage(disk).free
        for _ in range(20):
            with pytest.raises(ResourceExhausted, match="full"):
                log_files.append([entry(1, index, b"f" * 20_000)])
        assert shutil.disk_usage(disk).free == free
        assert [each.index for each in read_back(FolderFiles(disk / "log"))[1][1]] == list(range(1, index))
        ballast.unlink()
        log_files.append([entry(1, index, b"f" * 20_000)])
        log_files.append([hard_state(1, index)])
        log_files.close()
        assert read_back(FolderFiles(disk / "log"))[1] == (hard_state(1, index), [])


@pytest.mark.process
def test_after_a_sync_that_failed_the_process_syncs_no_more(tmp_path: Path) -> None:
    need(shutil.which("strace") is not None, "strace")
    trace = tmp_path / "trace"
    strace = ["strace", "-f", "-o", str(trace), "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=5"]
    ended = subprocess.run(
        [*strace, sys.executable, "-c", WRITER, str(tmp_path / "log"), "6"],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    need("PTRACE" not in ended.stderr, f"the privilege to trace processes: {ended.stderr[-200:]}")
    # The first two syncs made the first segment and the hard states durable.
    assert ended.stdout.split() == ["open", "1", "2", *["StorageFailed"] * 4]
    assert trace.read_text().count("fdatasync(") == 5
    assert len(read_back(FolderFiles(tmp_path / "log"))[2][1]) in (2, 3)
