"""Connections that say nothing keep no follower out, and do not stay; and a server opens as many files as it may."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.certificates import Certifier
from support.cluster import Cluster
from support.fronts import FRONTS
from support.server_process import ServerProcess, running_server, wait_until
from support.tls_nodes import node_process

pytestmark = [pytest.mark.long, pytest.mark.process]

FILES = 256
IDLE = 300
# A server's time limit of a handshake, and some more.
CLOSED_S = 30.0


def limited(soft: int, hard: int) -> tuple[str, ...]:
    return ("sh", "-c", f'ulimit -S -n {soft}; ulimit -H -n {hard}; exec "$@"', "sh")


def soft_limit(server: ServerProcess) -> int:
    line = next(
        each
        for each in Path(f"/proc/{server.pid}/limits").read_text().splitlines()
        if each.startswith("Max open files")
    )
    return int(line.split()[3])


def address_of(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.rpartition(":")
    return host, int(port)


class Hog:
    """Keeps as many connections open at each address as it accepts, and opens another for each that ends."""

    def __init__(self, endpoints: list[str]) -> None:
        self._endpoints = endpoints
        self._sockets: dict[str, list[socket.socket]] = {each: [] for each in endpoints}
        self._stop = threading.Event()
        self._is_full = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()
        assert self._is_full.wait(30)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        for held in self._sockets.values():
            for each in held:
                each.close()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            for endpoint, held in self._sockets.items():
                held[:] = [each for each in held if not _has_ended(each)]
                while len(held) < IDLE:
                    try:
                        held.append(socket.create_connection(address_of(endpoint), timeout=1))
                    except OSError:
                        break
            self._is_full.set()


def _has_ended(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(4096) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@contextmanager
def hogged(*endpoints: str) -> Iterator[None]:
    hog = Hog(list(endpoints))
    hog.start()
    try:
        yield
    finally:
        hog.stop()


def test_a_follower_that_restarts_comes_back_while_idle_connections_take_all_of_the_leaders(tmp_path: Path) -> None:
    under = {f"n{number}": limited(FILES, FILES) for number in (1, 2, 3)}
    cluster = Cluster(tmp_path, under=under)
    try:
        cluster.form()
        leader = cluster.leader()
        with Client(cluster.addresses[leader], timeout_s=30) as client:
            client.kv("n").put(b"before", b"1")
            with hogged(cluster.addresses[leader]):
                for victim in [each for each in cluster.nodes if each != leader]:
                    cluster.kill(victim)
                    client.kv("n").put(b"without " + victim.encode(), b"1")
                    cluster.nodes[victim].start()
                _wait_heard(client, leader)
                client.kv("n").put(b"after", b"1")
        cluster.wait_converged()
    finally:
        cluster.end()


def _wait_heard(client: Client, leader: str) -> None:
    def are_heard() -> bool:
        others = [each for each in client.admin.members.list(at_leader=True).members if each.node_id != leader]
        return len(others) == 2 and all(
            each.last_heard_ms < 1_000 and each.behind is not None and each.behind < 50 for each in others
        )

    wait_until(are_heard, "both followers are back")


def test_a_server_raises_its_limit_of_open_files_as_far_as_it_may(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "n1", under=limited(128, 1_500))
    try:
        server.start()
        assert soft_limit(server) == 1_500
    finally:
        server.kill()


@pytest.mark.parametrize("front", FRONTS)
def test_who_connects_and_says_nothing_is_hung_up_on(front: str, tmp_path: Path) -> None:
    files = Certifier(tmp_path / "certs").node("n1")
    secure = node_process(tmp_path, files, "n1", "--front", front)
    with running_server(tmp_path / "plain", "--front", front) as plain:
        try:
            secure.start()
            context = ssl.create_default_context(cafile=str(files.ca))
            context.load_cert_chain(str(files.cert), str(files.key))
            context.set_alpn_protocols(["h2"])
            silent = [socket.create_connection(address_of(each.endpoint)) for each in (plain, secure)]
            # Certificates were shown, and nothing follows.
            shown = context.wrap_socket(
                socket.create_connection(address_of(secure.endpoint)), server_hostname="127.0.0.1"
            )
            for each in (*silent, shown):
                each.settimeout(CLOSED_S)
                while each.recv(4096):
                    pass
                each.close()
        finally:
            secure.kill()
