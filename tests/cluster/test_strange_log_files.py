"""Strange files in place of a node's log files: a start serves everything that was acknowledged, or it names the wrong
file and the reason, and serves nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.cluster import running_cluster
from support.server_process import ServerProcess, running_server

pytestmark = pytest.mark.process

PUTS = 20
Change = Callable[[Path, Path], None]
"""To the directory of a stopped node; the second one is a copy of it from before its last writes."""


def newest(data_dir: Path) -> Path:
    return max((data_dir / "log").iterdir())


def swap(path: Path, other: Path) -> None:
    shutil.rmtree(path)
    shutil.copytree(other, path)


def has_grown(data_dir: Path, _: Path) -> None:
    os.truncate(newest(data_dir), 2 << 30)


def is_followed_by_a_huge_one(data_dir: Path, _: Path) -> None:
    following = newest(data_dir).with_name(f"{int(newest(data_dir).name) + 1:016d}")
    following.touch()
    os.truncate(following, 2 << 30)


def is_a_directory(data_dir: Path, _: Path) -> None:
    path = newest(data_dir)
    path.unlink()
    path.mkdir()


def is_a_link(data_dir: Path, _: Path) -> None:
    path = newest(data_dir)
    path.rename(data_dir / "elsewhere")
    path.symlink_to(data_dir / "elsewhere")


def is_no_regular_file(data_dir: Path, _: Path) -> None:
    path = newest(data_dir)
    path.unlink()
    os.mkfifo(path)


def folder_leads_nowhere(data_dir: Path, _: Path) -> None:
    shutil.rmtree(data_dir / "log")
    (data_dir / "log").symlink_to("nowhere")


def log_is_older_than_the_data(data_dir: Path, before: Path) -> None:
    swap(data_dir / "log", before / "log")


def data_is_older_than_the_log(data_dir: Path, before: Path) -> None:
    swap(data_dir / "engine", before / "engine")


REFUSED: list[tuple[Change, str]] = [
    (has_grown, "2147483648 bytes, and no log file has more"),
    (is_followed_by_a_huge_one, "2147483648 bytes, and no log file has more"),
    (is_a_directory, "its log cannot be opened: the log file 0000000000000001: [Errno 21] Is a directory"),
    (
        is_a_link,
        "its log cannot be opened: the log file 0000000000000001: [Errno 40] it is a link, and is not followed",
    ),
    (is_no_regular_file, "its log cannot be opened: the log file 0000000000000001: [Errno 22] it is no regular file"),
    (folder_leads_nowhere, "damaged data: the log files (there are none, and there were"),
    (log_is_older_than_the_data, "damaged data: the log of group 1 (it ends at entry"),
]


def put_some(server: ServerProcess, begin: int) -> None:
    with Client(server.endpoint) as client:
        for number in range(begin, begin + PUTS):
            client.kv("n").put(b"%d" % number, b"value %d" % number)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A node that was killed, and a copy from before its last writes."""
    folder = tmp_path_factory.mktemp("stopped")
    with running_server(folder / "n1", "--node-id", "n1") as server:
        put_some(server, 0)
        server.kill()
        shutil.copytree(folder / "n1", folder / "before")
        server.start()
        put_some(server, PUTS)
        server.kill()
    return folder / "n1", folder / "before"


@pytest.mark.parametrize(("change", "said"), REFUSED, ids=[change.__name__ for change, _ in REFUSED])
def test_what_is_no_log_is_refused_by_name(
    tmp_path: Path, stopped: tuple[Path, Path], change: Change, said: str
) -> None:
    data_dir = tmp_path / "n1"
    shutil.copytree(stopped[0], data_dir)
    change(data_dir, stopped[1])
    server = ServerProcess(data_dir, "--node-id", "n1")
    with pytest.raises(AssertionError, match="the server ended with"):
        server.start()
    assert said in server.log
    assert "Traceback" not in server.log
    assert "internal error" not in server.log


def test_data_that_is_older_than_the_log_is_brought_up_to_it(tmp_path: Path, stopped: tuple[Path, Path]) -> None:
    data_dir = tmp_path / "n1"
    shutil.copytree(stopped[0], data_dir)
    data_is_older_than_the_log(data_dir, stopped[1])
    with running_server(data_dir, "--node-id", "n1") as server, Client(server.endpoint) as client:
        for number in range(2 * PUTS):
            found = client.kv("n").get(b"%d" % number)
            assert found is not None
            assert found.value == b"value %d" % number


def test_the_log_of_another_cluster_is_refused_also_where_it_would_fit(
    tmp_path: Path, stopped: tuple[Path, Path]
) -> None:
    data_dir = tmp_path / "n1"
    shutil.copytree(stopped[1], data_dir)
    with running_server(tmp_path / "other", "--node-id", "n1") as other:
        put_some(other, 0)
        put_some(other, 2 * PUTS)
        other.kill()
    swap(data_dir / "log", tmp_path / "other" / "log")
    server = ServerProcess(data_dir, "--node-id", "n1")
    with pytest.raises(AssertionError, match="the server ended with"):
        server.start()
    assert "the log of group 1 (it is that of the data directory" in server.log
    assert "Traceback" not in server.log


def test_the_log_of_another_member_is_refused(tmp_path: Path) -> None:
    """It fits: but with it would come that member's vote, and this node could give its own a second time."""
    with running_cluster(tmp_path) as cluster:
        with Client(cluster.endpoints) as client:
            for number in range(PUTS):
                client.kv("n").put(b"%d" % number, b"value")
        cluster.wait_converged()
        one, other = (cluster.nodes[name] for name in cluster.nodes if name != cluster.leader())
        cluster.kill(*cluster.nodes)
        swap(one.data_dir / "log", other.data_dir / "log")
        with pytest.raises(AssertionError, match="the server ended with"):
            one.start()
        assert "the log of group 1 (it is that of the data directory" in one.log
        assert "Traceback" not in one.log
