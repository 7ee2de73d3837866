"""Cortado nodes as processes of their own, one or several, which are stopped in any case."""

from __future__ import annotations

import ctypes
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cortado import Client
from cortado.errors import CortadoError, TryAgain

START_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 20.0
ELECTION_SECONDS_MAX: Final = 30.0
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class Leadership:
    """The leader, and its term."""

    node_id: str
    term: int


class Node:
    """One ``cortado server`` with default settings. ``address`` is its address for clients, once it has been started,
    and ``peer_address`` the one for other nodes."""

    def __init__(
        self,
        node_id: str,
        folder: Path,
        address: str = "127.0.0.1:0",
        peer_address: str = "127.0.0.1:0",
        join: str = "",
    ) -> None:
        self.node_id = node_id
        self.address = address
        self.peer_address = peer_address
        self._folder = folder
        self._join = join
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it serves; after a first start always on the same address."""
        log = self._folder / f"{self.node_id}.log"
        command = [sys.executable, "-m", "cortado.store.cli", "server", "--node-id", self.node_id]
        command += ["--data-dir", str(self._folder / self.node_id), "--listen", self.address]
        command += ["--peer-listen", self.peer_address]
        command += ["--join", self._join] if self._join else []
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                # A group of its own: Ctrl-C reaches the story, which then stops the node in order.
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        self.address = _address(self._process, log)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def kill(self) -> None:
        """Kill with SIGKILL: it has no time to say goodbye."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, sent: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(sent)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


class Nodes:
    """A cluster of one or several nodes, made by :func:`running_nodes`."""

    def __init__(self, folder: Path, count: int) -> None:
        addresses = [f"127.0.0.1:{port}" for port in _free_ports(2 * count)]
        peers = addresses[count:]
        self.nodes = [
            Node(f"n{number}", folder, addresses[number - 1], peers[number - 1], "" if number == 1 else peers[0])
            for number in range(1, count + 1)
        ]

    @property
    def endpoints(self) -> str:
        """All addresses, as clients take them."""
        return ",".join(node.address for node in self.nodes)

    def form(self) -> None:
        """Begin a cluster at the first node; announce and start each other one, and give it a vote."""
        first, *others = self.nodes
        first.start()
        with Client(first.address) as client:
            for node in others:
                client.admin.members.add(node.node_id, node.peer_address)
                node.start()
                _promote(client, node.node_id)

    def kill_leader(self) -> tuple[Leadership, Leadership, float]:
        """Kill the leader with SIGKILL. Returns the old leader, the new one, and the seconds between."""
        before = self.leadership()
        node = next(each for each in self.nodes if each.node_id == before.node_id)
        node.kill()
        killed = time.monotonic()
        while (after := self.leadership(besides=before.node_id)).term <= before.term:
            time.sleep(0.02)
        return before, after, time.monotonic() - killed

    def start_all(self) -> None:
        """Start the stopped nodes. To be called in a thread that goes on: a node ends with the thread that started
        it."""
        for node in self.nodes:
            if not node.is_running:
                node.start()

    def leadership(self, besides: str = "") -> Leadership:
        """Return the present leader, by its own word, as soon as there is one."""
        deadline = time.monotonic() + ELECTION_SECONDS_MAX
        while time.monotonic() < deadline:
            for node in self.nodes:
                if node.node_id != besides and (found := _leads(node)) is not None:
                    return found
            time.sleep(0.02)
        raise SystemExit(f"No node led within {ELECTION_SECONDS_MAX:.0f} seconds.")

    def wait_for_all(self) -> None:
        """Return when every node has applied the leader's log as of the call."""
        leader = self.leadership()
        with Client(next(node.address for node in self.nodes if node.node_id == leader.node_id)) as client:
            goal = client.status().applied_index
        deadline = time.monotonic() + ELECTION_SECONDS_MAX
        for node in self.nodes:
            with Client(node.address) as client:
                while client.status().applied_index < goal:
                    if time.monotonic() > deadline:
                        raise SystemExit(f"{node.node_id} did not catch up in {ELECTION_SECONDS_MAX:.0f} seconds.")
                    time.sleep(0.05)


@contextmanager
def running_nodes(folder: Path, count: int) -> Iterator[Nodes]:
    """Run ``count`` nodes on loopback, with data and logs below ``folder``. Stopped on the way out."""
    cluster = Nodes(folder, count)
    try:
        cluster.form()
        yield cluster
    finally:
        for node in cluster.nodes:
            node.stop()


def _promote(client: Client, node_id: str) -> None:
    """Give a learner its vote, as soon as it has caught up."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            client.admin.members.promote(node_id)
            return
        except TryAgain:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _leads(node: Node) -> Leadership | None:
    with suppress(CortadoError), Client(node.address, timeout_s=1.0) as client:
        status = client.status()
        if status.role == "leader":
            return Leadership(node.node_id, status.term)
    return None


def _free_ports(count: int) -> list[int]:
    """Return free ports, below those that outgoing connections take: a node that comes back must find its own."""
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def _die_with_parent() -> None:
    # Linux only: the kernel ends the node even if this process is killed outright.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for the line that names the node's address."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    deadline = time.monotonic() + START_SECONDS_MAX
    seen = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline and process.poll() is None:
            selector.select(0.2)
            seen += process.stdout.read() or b""
            for line in seen.decode(errors="replace").splitlines(keepends=True):
                if line.endswith("\n") and "listening on " in line:
                    return line.split("listening on ")[1].split()[0]
    raise SystemExit(f"The node did not start:\n{log.read_text()[-2000:]}")
