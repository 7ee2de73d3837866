"""A build that is too new is refused where it meets an older one, by both versions, before anything is mixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.store.engine import data_directory
from cortado.store.node import commands
from support.builds import changed_build
from support.cluster import cortado
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process


def ended(server: ServerProcess) -> str:
    """Start it; what it wrote until it ended by itself."""
    server.launch()
    try:
        wait_until(lambda: not server.is_running, "the server has ended", 30)
        return server.log
    finally:
        server.kill()


def test_a_node_that_writes_what_others_cannot_read_does_not_join(tmp_path: Path) -> None:
    ours, theirs = commands.FORMAT, commands.FORMAT + 1
    newer = changed_build(
        tmp_path / "newer", "store/node/commands.py", f"FORMAT: Final = {ours}\n", f"FORMAT: Final = {theirs}\n"
    )
    with running_server(tmp_path / "n1", "--node-id", "n1") as n1:
        cortado("member", "add", "n2", "127.0.0.1:1", "--endpoint", n1.endpoint)
        options = ("--node-id", "n2", "--join", n1.endpoint, "--advertise", "127.0.0.1:1")
        said = ended(ServerProcess(tmp_path / "n2", *options, cortado=newer.cortado))
    assert (
        f"node n2 writes version {theirs} of log entries, node n1 reads version {ours}: "
        "upgrade through the versions in between"
    ) in said


def test_a_directory_of_a_newer_format_is_refused_with_both_versions(tmp_path: Path) -> None:
    ours, theirs = data_directory.FORMAT_VERSION, data_directory.FORMAT_VERSION + 1
    line = "FORMAT_VERSION: Final = {}\n"
    newer = changed_build(tmp_path / "newer", "store/engine/data_directory.py", line.format(ours), line.format(theirs))
    server = ServerProcess(tmp_path / "data", cortado=newer.cortado).start()
    assert server.stop() == 0
    said = ended(ServerProcess(tmp_path / "data"))
    assert f"of format version {theirs}; this build of Cortado reads version {ours} only" in said
