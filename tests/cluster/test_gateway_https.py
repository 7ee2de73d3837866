"""A gateway over HTTPS: the callers that are served, the certificate, and silent callers, which keep no other out."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from cortado import Client
from cortado.errors import InvalidArgument
from cortado.store.cli.app import run
from cortado.store.gateway.certificate import ServedFiles
from cortado.store.gateway.limits import HANDSHAKES_MAX
from support.certificates import DAYS, NOW, Certifier
from support.gateway_process import GatewayProcess, gateway_process
from support.server_process import running_server, wait_until

pytestmark = pytest.mark.process

PAIR = "/v1/kv/carts/a"


@dataclass
class World:
    gateway: GatewayProcess
    certifier: Certifier
    endpoint: str

    def http(self, token: str = "") -> httpx.Client:
        """Checks the certificate, as every caller does."""
        trusting = ssl.create_default_context(cafile=self.certifier.ca)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"https://127.0.0.1:{self.gateway.port}"
        return httpx.Client(base_url=url, verify=trusting, headers=headers, timeout=30, trust_env=False)

    def shown(self) -> bytes:
        """The certificate that a new connection is shown."""
        trusting = ssl.create_default_context(cafile=self.certifier.ca)
        with (
            self.gateway.connect() as plain,
            trusting.wrap_socket(plain, server_hostname="localhost") as encrypted,
        ):
            return encrypted.getpeercert(binary_form=True) or b""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    certifier = Certifier(tmp_path / "certs")
    files = certifier.gateway("gw")
    options = ("--https-cert", str(files.cert), "--https-key", str(files.key), "--limit.head-ms", "2000")
    with (
        running_server(tmp_path / "data") as server,
        gateway_process(server.endpoint, tmp_path, *options) as gateway,
    ):
        yield World(gateway, certifier, server.endpoint)


def test_it_serves_only_where_roles_are_on_and_only_who_shows_a_token(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with Client(world.endpoint) as client, world.http() as nobody:
        client.kv("carts").put(b"a", b"1")
        for headers in ({}, {"Authorization": "Bearer ctd_0000000000000000_" + "A" * 43}):
            refused = nobody.get(PAIR, headers=headers)
            assert (refused.status_code, refused.json()["reason"]) == (401, "UNAUTHENTICATED")
            assert "roles are off" in refused.json()["detail"]
        octets = {"Content-Type": "application/octet-stream"}
        assert nobody.put(PAIR, content=b"2", headers=octets).status_code == 401
        assert client.kv("carts").get(b"a") is not None
        root = client.admin.auth.enable("root").token
        assert root is not None
    with world.http(root.text) as http:
        assert http.get(PAIR).content == b"1"
        # By whatever name it is reached: the certificate proves its identity.
        assert http.get(PAIR, headers={"Host": "gw.example.com"}).content == b"1"
        assert http.get(PAIR, headers={"Authorization": "bearer " + root.text}).content == b"1"
        assert http.get(PAIR, headers={"Authorization": "Bearer-with-roles " + root.text}).status_code == 401
        assert http.get(PAIR, headers={"Origin": "https://other.example.com"}).status_code == 403
    with world.http() as nobody:
        assert nobody.get(PAIR).status_code == 401
        assert nobody.get("/healthz").status_code == 200
    address = f"127.0.0.1:{world.gateway.port}"
    assert run(["health", "--gateway", f"https://{address}", "--tls-ca", str(world.certifier.ca)]) == 0
    assert run(["health", "--gateway", f"https://{address}"]) == 6
    assert run(["health", "--gateway", address]) == 6
    assert "certificate verify failed" in capsys.readouterr().out


def test_a_renewed_certificate_is_served_and_a_broken_one_is_not(world: World) -> None:
    first = world.shown()
    files = world.certifier.gateway("gw", now=NOW + timedelta(minutes=1))
    second = world.shown()
    assert second != first
    files.cert.write_bytes(b"no certificate")
    assert world.shown() == second
    assert world.shown() == second
    log = world.gateway.log.read_text()
    assert log.count("changed certificate files are not used, those read before are: ") == 1
    assert "holds no certificate in PEM form" in log
    files = world.certifier.gateway("gw")
    assert world.shown() not in (first, second)


def test_who_does_not_finish_the_handshake_keeps_nobody_out(world: World) -> None:
    silent = [world.gateway.connect() for _ in range(HANDSHAKES_MAX + 8)]
    try:
        with world.http() as http:
            assert http.get("/healthz").status_code == 200
        # Those that waited longest were ended for those behind them; the rest once their time was over.
        assert silent[0].recv(1) == b""
        assert silent[-1].recv(1) == b""
        silent.append(world.gateway.connect())
        silent[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert not silent[-1].recv(4096).startswith(b"HTTP")
    finally:
        for each in silent:
            each.close()
    with world.http() as http:
        assert http.get("/healthz").status_code == 200


def test_one_that_stands_still_within_its_call_is_cut_off(world: World) -> None:
    trusting = ssl.create_default_context(cafile=world.certifier.ca)
    with world.gateway.connect() as plain, trusting.wrap_socket(plain, server_hostname="localhost") as encrypted:
        encrypted.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        assert encrypted.recv(1) == b""


def test_it_stops_while_connections_are_open(world: World) -> None:
    with world.gateway.connect(), world.http() as http:
        assert http.get("/healthz").status_code == 200
        world.gateway.process.terminate()
        assert world.gateway.process.wait(30) == 0
    with pytest.raises(OSError, match="refused"), socket.socket() as late:
        late.connect(("127.0.0.1", world.gateway.port))


def test_files_that_are_not_good_are_named(tmp_path: Path) -> None:
    certifier = Certifier(tmp_path)
    good, other = certifier.gateway("gw"), certifier.gateway("other")
    ServedFiles(good.cert, good.key).check()
    late = NOW.timestamp() + (DAYS + 1) * 86_400
    wrong = [
        (good.cert, other.key, {}, "other.key", "is not the key of"),
        (tmp_path / "none.crt", good.key, {}, "none.crt", "cannot be read"),
        (good.key, good.key, {}, "gw.key", "holds no certificate"),
        (good.cert, good.cert, {}, "gw.crt", "holds no private key"),
        (good.cert, good.key, {"wall_s": lambda: late}, "gw.crt", "expired on"),
        (good.cert, good.key, {"wall_s": lambda: 0.0}, "gw.crt", "valid only from"),
        (certifier.client("app").cert, certifier.client("app").key, {}, "app.crt", "is no server's"),
    ]
    for cert, key, more, name, problem in wrong:
        with pytest.raises(InvalidArgument, match=problem) as refused:
            ServedFiles(cert, key).check(**more)
        assert refused.value.field.endswith(name)


def test_the_log_does_not_grow_with_strangers(world: World) -> None:
    before = world.gateway.log.stat().st_size
    for _ in range(20):
        with world.gateway.connect() as stranger:
            stranger.sendall(b"hello\r\n\r\n")
            wait_until(lambda stranger=stranger: stranger.recv(100) is not None, "an end")  # type: ignore[misc]
    assert world.gateway.log.stat().st_size == before
