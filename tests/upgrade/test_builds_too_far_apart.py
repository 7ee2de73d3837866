"""A build that is too new is refused where it meets an older one, by both versions, before anything is mixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.raft import records
from cortado.store.client import Client
from cortado.store.engine import data_directory
from cortado.store.replica.write import log_entry
from support.builds import Build, changed_build
from support.cluster import cortado, running_cluster
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]


def ended(server: ServerProcess) -> str:
    """Start it; what it wrote until it ended by itself."""
    server.launch()
    try:
        wait_until(lambda: not server.is_running, "the server has ended")
        return server.log
    finally:
        server.kill()


def newer_entries(folder: Path) -> tuple[Build, str]:
    """A build that writes entries which this one cannot read, and what is said where the two meet."""
    ours, theirs, line = log_entry.FORMAT, log_entry.FORMAT + 1, "FORMAT: Final = {}\n"
    newer = changed_build(folder, "store/replica/write/log_entry.py", line.format(ours), line.format(theirs))
    return newer, f"reads version {ours}: upgrade through the versions in between"


def test_a_node_that_writes_what_others_cannot_read_does_not_join(tmp_path: Path) -> None:
    newer, problem = newer_entries(tmp_path / "newer")
    with running_server(tmp_path / "n1", "--node-id", "n1") as n1:
        cortado("member", "add", "n2", "127.0.0.1:1", "--endpoint", n1.endpoint)
        options = ("--node-id", "n2", "--join", n1.peer_address, "--peer-advertise", "127.0.0.1:1")
        said = ended(ServerProcess(tmp_path / "n2", *options, cortado=newer.cortado))
    assert f"node n2 writes version {log_entry.FORMAT + 1} of log entries, node n1 {problem}" in said


@pytest.mark.parametrize(
    ("file", "line", "ours", "said"),
    [
        (
            "store/engine/data_directory.py",
            "FORMAT_VERSION: Final = {}\n",
            data_directory.FORMAT_VERSION,
            "of format version {theirs}; this build of Cortado reads version {ours} only",
        ),
        ("raft/records.py", "FORMAT: Final = {}\n", records.FORMAT, "format {theirs}, this version knows {ours}"),
    ],
    ids=["directory", "log"],
)
def test_a_directory_of_a_newer_format_is_refused_with_both_versions(
    tmp_path: Path, file: str, line: str, ours: int, said: str
) -> None:
    newer = changed_build(tmp_path / "newer", file, line.format(ours), line.format(ours + 1))
    server = ServerProcess(tmp_path / "data", cortado=newer.cortado).start()
    assert server.stop() == 0
    assert said.format(ours=ours, theirs=ours + 1) in ended(ServerProcess(tmp_path / "data"))


def test_a_member_that_writes_what_others_cannot_read_is_kept_apart_and_loses_nothing(tmp_path: Path) -> None:
    newer, said = newer_entries(tmp_path / "newer")
    with running_cluster(tmp_path) as cluster, Client(cluster.endpoints) as client:
        changed = cluster.nodes[cluster.follower()]
        assert changed.stop() == 0
        ours, changed.cortado = changed.cortado, newer.cortado
        changed.launch()
        try:
            client.kv("n").put(b"k", b"while one is kept apart")
            wait_until(lambda: said in changed.log, "the newer build is told why it is kept apart")
            assert "Traceback" not in changed.log
        finally:
            changed.stop()
        changed.cortado = ours
        changed.start()
        cluster.wait_converged()
        assert client.kv("n").get(b"k").value == b"while one is kept apart"
