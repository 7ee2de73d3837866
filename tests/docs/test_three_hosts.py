"""The steps of docs/operations.md on three hosts: set up, lose a host, lose the majority, back up.

The hosts are directories and ports of this machine. The page's files and commands are taken as they stand; only names
of hosts and paths are put in their place.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cortado import Client
from cortado.store.client import Tls
from support.page_runner import PORTS, PageRunner
from support.pages import Block, page
from support.ports import free_ports
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

PAGE = page("docs/operations.md")
TEXT = (Path(__file__).parents[2] / PAGE.name).read_text()


def block(language: str, beginning: str) -> Block:
    """The one block of the page that begins so."""
    [found] = [each for each in PAGE.blocks if each.language == language and each.text.startswith(beginning)]
    return found


class Hosts:
    """``directory`` holds the files of each host; ``run`` runs the operator's commands."""

    def __init__(self, directory: Path, runner: PageRunner) -> None:
        self.directory = directory
        self._runner = runner
        self._ports = {f"db{number}": port for number, port in enumerate(free_ports(PORTS)[::2], start=1)}
        # The new node has the lost one's address, as the page allows.
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def address(self, host: str) -> str:
        return f"127.0.0.1:{self._ports[host]}"

    def placed(self, text: str, host: str = "") -> str:
        """``text`` with hosts and paths as they are here; paths are those of ``host``."""
        for name, port in self._ports.items():
            there = {
                f"{name}.example.org:7621": f"127.0.0.1:{port}",
                f"{name}.example.org:7622": f"127.0.0.1:{port + 1}",
                f"{name}.example.org": "127.0.0.1",
            }
            if name == host:
                there["0.0.0.0:7621"] = f"127.0.0.1:{port}"
            text = _replaced(text, there)
        if host:
            here = self.directory / host
            paths = {"/etc/cortado": f"{here}/etc", "/var/lib/cortado": f"{here}/data", "/backup/": f"{here}/backup-"}
            text = _replaced(text, {**paths, "/opt/cortado/bin/": ""})
        return text

    def run(self, text: str, host: str = "") -> str:
        """Return the output of the commands."""
        return self._runner.shell(PAGE.name, self.placed(text, host))

    def prepare(self, host: str, *, joins: bool) -> None:
        """The settings and certificates of a host."""
        (self.directory / host).mkdir()
        settings = block("toml", "data-dir").text.replace("db1", host)
        if joins:
            settings = block("toml", "join").text + settings
        (self.directory / host / "etc.toml").write_text(self.placed(settings, host))
        etc = self.directory / host / "etc"
        etc.mkdir()
        for name in (f"{host}.crt", f"{host}.key", "ca.crt"):
            (etc / name).write_bytes((self._runner.directory / "certs" / name).read_bytes())

    def start(self, host: str) -> None:
        [command] = re.findall(r"^ExecStart=(.*)$", block("ini", "[Unit]\nDescription=Cortado\n").text, re.M)
        words = self.placed(command, host).split()
        assert words[0] == "cortado"
        log = (self.directory / host / "log").open("ab")
        starts = self.log(host).count("listening for peers on")
        self._processes[host] = process = subprocess.Popen(
            [sys.executable, "-m", "cortado.store.cli", *words[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

        def listens() -> bool:
            assert process.poll() is None, f"{host} ended\n{self.log(host)}"
            return self.log(host).count("listening for peers on") > starts

        wait_until(listens, f"{host} listens")

    def log(self, host: str) -> str:
        return (self.directory / host / "log").read_text()

    def stop(self, host: str) -> None:
        process = self._processes.pop(host)
        process.terminate()
        assert process.wait(60) == 0, self.log(host)

    def kill(self, *hosts: str) -> None:
        for host in hosts or tuple(self._processes):
            process = self._processes.pop(host)
            process.kill()
            process.wait()

    def voters(self) -> list[str]:
        """The node ids of those who vote, as the command line tells."""
        shown = map(json.loads, self.run("cortado member list -o json").splitlines())
        return sorted(each["node_id"] for each in shown if each["voter"])


def _replaced(text: str, changes: Mapping[str, str]) -> str:
    for was, now in changes.items():
        text = text.replace(was, now)
    return text


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with PageRunner(tmp_path / "operator", free_ports(PORTS)).running() as runner:
        found = Hosts(tmp_path, runner)
        yield found
        found.kill()


def client(hosts: Hosts, *names: str) -> Client:
    certs = hosts.directory / "operator" / "certs"
    secret = Tls(ca=str(certs / "ca.crt"), cert=str(certs / "ops.crt"), key=str(certs / "ops.key"))
    return Client([hosts.address(name) for name in names], tls=secret)


def test_the_page_carries_an_operator_from_three_hosts_to_the_last_survivor(hosts: Hosts) -> None:
    hosts.run(block("sh", "cortado cert ca").text)
    hosts.prepare("db1", joins=False)
    hosts.start("db1")
    hosts.run(block("sh", "export CORTADO_ENDPOINTS").text)
    hosts.prepare("db2", joins=True)
    hosts.start("db2")
    promote = block("sh", "cortado member promote db2").text
    hosts.run(promote)
    hosts.run(block("sh", "export CORTADO_ENDPOINTS").text.replace("db2 db2", "db3 db3").splitlines()[-1])
    hosts.prepare("db3", joins=True)
    hosts.start("db3")
    hosts.run(promote.replace("db2", "db3"))
    hosts.run(block("sh", "cortado member list").text)
    assert hosts.voters() == ["db1", "db2", "db3"]
    with client(hosts, "db1", "db2", "db3") as connected:
        connected.kv("kept").put(b"before", b"1")

        # A host is lost for good; another one takes its place.
        hosts.kill("db3")
        hosts.run(block("sh", "cortado member remove db3").text)
        hosts.run("cortado cert node db4 --dir certs --host db4.example.org")
        hosts.prepare("db4", joins=True)
        hosts.start("db4")
        hosts.run(promote.replace("db2", "db4"))
        assert hosts.voters() == ["db1", "db2", "db4"]
        connected.kv("kept").put(b"between", b"2")

    # The majority is lost for good.
    hosts.kill("db2", "db4")
    hosts.kill("db1")
    hosts.run(
        block("sh", "cortado recover --force-new-cluster").text.replace(
            "--force-new-cluster --data-dir", "--force-new-cluster --yes --data-dir"
        ),
        "db1",
    )
    hosts.start("db1")
    with client(hosts, "db1") as connected:
        assert [pair.value for pair in connected.kv("kept").scan()] == [b"1", b"2"]
        connected.kv("kept").put(b"after", b"3")
        assert hosts.voters() == ["db1"]

    # A backup is a copy of a stopped node's directory.
    hosts.stop("db1")
    hosts.run(block("sh", "cp -a").text, "db1")
    [copy] = hosts.directory.glob("db1/backup-*")
    (hosts.directory / "db1" / "data").rename(hosts.directory / "db1" / "lost")
    copy.rename(hosts.directory / "db1" / "data")
    hosts.start("db1")
    with client(hosts, "db1") as connected:
        assert [pair.key for pair in connected.kv("kept").scan()] == [b"after", b"before", b"between"]
