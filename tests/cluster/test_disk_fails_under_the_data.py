"""The disk fails under the data file, or a log file: the process ends with the disk's exit code, in whichever part it
is met first."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from cortado.errors import CortadoError
from cortado.store.client import Client
from cortado.store.server.exits import EXIT_IO
from support.needs import need_tool
from support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.process

DATA_FILE = "engine/data.mdb"
LOG_FILE = "log/0000000000000001"


@pytest.mark.parametrize("error", ["EIO", "EROFS"])
@pytest.mark.parametrize("place", [1, 5, 9])
def test_a_write_that_fails_under_lmdb_ends_the_node_with_the_code_of_the_disk(
    tmp_path: Path, error: str, place: int
) -> None:
    server = _under_faults(tmp_path, "pwrite64,pwritev", error, place)
    assert server.code == EXIT_IO, server.log


@pytest.mark.parametrize("place", [5, 9, 30])
def test_a_look_at_the_data_file_that_fails_ends_the_node_and_blames_the_disk(tmp_path: Path, place: int) -> None:
    """Before it serves, or under the looks for room of a write or of a duty."""
    server = _under_faults(tmp_path, "read", "EIO", place)
    assert server.code == EXIT_IO, server.log
    assert "standard output" not in server.log
    assert "a defect" not in server.log
    assert "data.mdb cannot be read" in server.log


@pytest.mark.parametrize(("calls", "error"), [("fdatasync", "EIO"), ("pread64", "EIO"), ("openat", "EROFS")])
def test_a_log_that_the_disk_does_not_let_be_opened_is_the_disks_fault(tmp_path: Path, calls: str, error: str) -> None:
    server = _under_faults(tmp_path, calls, error, 1, LOG_FILE)
    assert server.code == EXIT_IO, server.log
    assert "the log file 0000000000000001" in server.log


def test_a_log_file_that_the_disk_does_not_let_be_closed_is_named(tmp_path: Path) -> None:
    server = _made_under_faults(tmp_path, "close", "EIO", 1, LOG_FILE).start()
    assert server.stop() == EXIT_IO
    assert "the log file 0000000000000001 can't be closed" in server.log
    assert "standard output" not in server.log


def _under_faults(folder: Path, calls: str, error: str, place: int, file: str = DATA_FILE) -> ServerProcess:
    """A server, ended, for which these calls on a file of its directory fail from their ``place`` on."""
    server = _made_under_faults(folder, calls, error, place, file)
    try:
        # The first ones fail before it serves.
        server.launch()
        wait_until(lambda: not server.is_running or bool(server.served_at), "it serves, or has ended")
        with suppress(CortadoError), Client(server.served_at or "127.0.0.1:1", timeout_s=5) as client:
            for number in range(200):
                client.kv("n").put(b"%d" % number, b"v")
                client.kv("n").get(b"%d" % number)
        wait_until(lambda: not server.is_running, "the process has ended")
    except BaseException:
        server.kill()
        raise
    return server


def _made_under_faults(folder: Path, calls: str, error: str, place: int, file: str) -> ServerProcess:
    need_tool("strace")
    ServerProcess(folder / "n", "--node-id", "n1").start().stop()
    inject = f"inject={calls}:error={error}:when={place}+"
    strace = ["strace", "-D", "-f", "-o", str(folder / "trace"), "-P", str(folder / "n" / file), "-e", f"trace={calls}"]
    return ServerProcess(folder / "n", "--node-id", "n1", under=[*strace, "-e", inject])
