"""A gateway listens on this machine alone, and says why it does not on another address."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument, Unavailable
from cortado.store.cli.app import run
from cortado.store.client import AsyncClient
from cortado.store.gateway.config import configuration
from cortado.store.gateway.serving import serve
from support.gateways import Gateway


def refused(listen: str) -> None:
    serve(configuration({"listen": listen}, {}), lambda: AsyncClient("127.0.0.1:1"))


@pytest.mark.parametrize("listen", ["0.0.0.0:7629", "[::]:7629", "10.0.0.1:7629", "db1.example.org:7629"])
def test_no_address_but_this_machines_is_listened_on(listen: str) -> None:
    with pytest.raises(InvalidArgument, match="must be a loopback address") as error:
        refused(listen)
    assert (error.value.field, error.value.value) == ("--listen", listen)


@pytest.mark.parametrize("listen", ["localhost", "localhost:99999", ":7629", "http://localhost:7629"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        refused(listen)
    assert error.value.field == "--listen"


def test_acts_without_roles_are_for_a_gateway_that_is_not_public(tmp_path: Path) -> None:
    flags = {"listen": "127.0.0.1:0", "console-acts-without-roles": True}
    assert configuration(flags, {}).acts_without_roles
    public = {**flags, "https-cert": tmp_path / "a.crt", "https-key": tmp_path / "a.key"}
    with pytest.raises(
        InvalidArgument, match="contradicts https-cert: with it, calls are served only while roles are on"
    ):
        configuration(public, {})


def test_another_address_is_listened_on_by_whoever_says_that_it_is_insecure() -> None:
    assert configuration({"listen": "0.0.0.0:7629", "insecure": True}, {}).listen == "0.0.0.0:7629"


def test_a_gateway_that_lives_says_so_and_the_command_line_hears_it(
    served: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    assert served.request("GET", "/healthz").text == "alive\n"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        thread = threading.Thread(target=_answer_once, args=(taken,))
        thread.start()
        assert run(["health", "--gateway", address]) == 0
        thread.join()
        assert run(["health", "--gateway", address, "--timeout", "0.05"]) == 6
    assert capsys.readouterr().out.splitlines() == [f"{address}: serving", f"{address}: cannot be reached: timed out"]


def _answer_once(listening: socket.socket) -> None:
    accepted, _ = listening.accept()
    with accepted:
        assert accepted.recv(4096).startswith(b"GET /healthz ")
        accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nalive\n")


def test_a_port_that_is_taken_is_refused_with_the_reason() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Unavailable, match="in use"):
            refused(f"127.0.0.1:{taken.getsockname()[1]}")


def test_settings_come_from_flags_before_the_environment() -> None:
    environment = {"CORTADO_GATEWAY_LIMIT_CALLS_MAX": "7", "CORTADO_GATEWAY_LISTEN": "127.0.0.1:1"}
    config = configuration({"listen": "[::1]:0", "limit.body-bytes-max": "1MiB"}, environment)
    assert (config.listen, config.limits.calls_max, config.limits.body_bytes_max) == ("[::1]:0", 7, 1 << 20)


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("CORTADO_GATEWAY_LIMIT_CALLS_MAX", "0", "between 1 and"),
        ("CORTADO_GATEWAY_LIMIT_HEAD_MS", "soon", "whole number"),
        ("CORTADO_GATEWAY_LIMIT_CALL_MAX", "7", "did you mean CORTADO_GATEWAY_LIMIT_CALLS_MAX"),
        ("CORTADO_GATEWAY_LISTEN", "0.0.0.0:1", "loopback"),
    ],
)
def test_a_wrong_setting_stops_the_start(variable: str, value: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as error:
        configuration({}, {variable: value})
    assert error.value.field == variable
