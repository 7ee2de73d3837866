"""The port for peers is taken on every address of its host that this machine has, or the start ends saying why not."""

from __future__ import annotations

import socket

import pytest

from cortado.errors import InvalidArgument, Unavailable
from cortado.store.peers.addresses import Addresses
from cortado.store.server.config import ServerConfig
from cortado.store.server.listening import bind_sockets


def test_an_address_that_this_machine_does_not_have_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(_host: str, port: int, **_: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, port)) for each in hosts]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    # One of the addresses that are kept for examples.
    hosts = ["192.0.2.1", "127.0.0.1"]
    [taken] = bind_sockets("both", 0)
    with taken:
        assert taken.getsockname()[0] == "127.0.0.1"
    hosts = ["192.0.2.1"]
    with pytest.raises(Unavailable, match="cannot listen on neither:0: Cannot assign requested address"):
        bind_sockets("neither", 0)


def test_a_port_that_is_taken_is_named() -> None:
    [taken] = bind_sockets("127.0.0.1", 0)
    with taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            bind_sockets("127.0.0.1", port)


@pytest.mark.parametrize(
    ("given", "listened", "advertised"),
    [
        ({}, ("127.0.0.1", 7622), Addresses("127.0.0.1:7621", "127.0.0.1:7622")),
        ({"listen": "[::1]:0"}, ("::1", 0), Addresses("[::1]:5", "[::1]:6")),
        ({"peer_listen": "127.0.0.1:9"}, ("127.0.0.1", 9), Addresses("127.0.0.1:7621", "127.0.0.1:9")),
        ({"advertise": "db1:80"}, ("127.0.0.1", 7622), Addresses("db1:80", "db1:7622")),
        ({"peer_advertise": "db1:81"}, ("127.0.0.1", 7622), Addresses("127.0.0.1:7621", "db1:81")),
    ],
)
def test_where_peers_reach_a_node_follows_from_what_is_said(
    given: dict[str, str], listened: tuple[str, int], advertised: Addresses
) -> None:
    config = ServerConfig(**given)  # type: ignore[arg-type]
    config.check()
    assert config.peer_address() == listened
    bound = ("[::1]:5", "[::1]:6") if listened[1] == 0 else ("127.0.0.1:7621", f"127.0.0.1:{listened[1]}")
    assert config.advertised(*bound) == advertised


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"listen": "127.0.0.1:65535"}, "peer-listen: must be given, since listen has the last port"),
        ({"peer_listen": "127.0.0.1:7621"}, "peer-listen: must be another address than listen"),
        ({"peer_listen": "10.0.0.1:7622"}, "peer-listen: must be a loopback address while nothing is encrypted"),
        ({"peer_listen": "0.0.0.0:7622", "insecure": True}, "peer-advertise: must be given"),
        ({"peer_advertise": "0.0.0.0:7622"}, "peer-advertise: must be an address that other hosts can reach"),
        ({"advertise": "a:1", "peer_advertise": "a:1"}, "peer-advertise: must be another address than advertise"),
        ({"peer_listen": "nowhere"}, "peer-listen: must be host:port"),
    ],
)
def test_addresses_that_do_not_fit_each_other_stop_the_start(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{said}"):
        ServerConfig(**given).check()  # type: ignore[arg-type]
