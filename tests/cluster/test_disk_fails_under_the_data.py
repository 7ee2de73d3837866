"""The disk fails under a write of the data file: the process ends with the disk's code, whoever meets it first."""

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


@pytest.mark.parametrize("error", ["EIO", "EROFS"])
@pytest.mark.parametrize("place", [1, 5, 9])
def test_a_write_that_fails_under_lmdb_ends_the_node_with_the_code_of_the_disk(
    tmp_path: Path, error: str, place: int
) -> None:
    need_tool("strace")
    ServerProcess(tmp_path / "n", "--node-id", "n1").start().stop()
    data_file = str(tmp_path / "n" / "engine" / "data.mdb")
    inject = f"inject=pwrite64,pwritev:error={error}:when={place}+"
    strace = ["strace", "-f", "-o", str(tmp_path / "trace"), "-P", data_file, "-e", "trace=pwrite64,pwritev"]
    server = ServerProcess(tmp_path / "n", "--node-id", "n1", under=[*strace, "-e", inject])
    try:
        # The first ones fail before it serves.
        server.launch()
        wait_until(lambda: not server.is_running or bool(server.served_at), "it serves, or has ended")
        with suppress(CortadoError), Client(server.served_at or "127.0.0.1:1", timeout_s=5) as client:
            for number in range(200):
                client.kv("n").put(b"%d" % number, b"v")
                client.kv("n").get(b"%d" % number)
        wait_until(lambda: not server.is_running, "the process has ended")
        assert server.code == EXIT_IO, server.log
    finally:
        server.kill()
