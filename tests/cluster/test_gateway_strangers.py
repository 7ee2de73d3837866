"""A gateway before a cluster with roles: callers that the cluster does not know keep out no caller that it knows."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from cortado import Client
from support.gateway_process import Answer, GatewayProcess, gateway_process
from support.server_process import running_server, wait_until

pytestmark = pytest.mark.process

CALLS_MAX = 8
ANSWERS = 60
"""Of 100 KiB each: more than a connection's buffers hold."""
END = b"\r\n"


@dataclass
class World:
    gateway: GatewayProcess
    token: str

    def get(self) -> Answer:
        """A read of the caller that is known."""
        return self.gateway.send(head("/v1/kv/carts/a", self.token) + END)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("strangers")
    with running_server(folder / "data") as server:
        with Client(server.endpoint) as client:
            client.kv("carts").put(b"a", b"value")
            alice = client.auth.create("alice").token
            client.auth.grant("alice", "owner", "namespace:carts")
            client.auth.enable("root")
        assert alice is not None
        with gateway_process(server.endpoint, folder, "--limit.calls-max", str(CALLS_MAX)) as gateway:
            yield World(gateway, alice.text)


def head(path: str, token: str = "") -> bytes:
    shown = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{shown}".encode()


def unknown_token() -> str:
    return f"ctd_{secrets.token_hex(8)}_{secrets.token_urlsafe(32)}"


@pytest.mark.parametrize("with_tokens", [False, True], ids=["without a token", "each with another token"])
def test_answers_that_strangers_do_not_read_keep_no_known_caller_out(world: World, with_tokens: bool) -> None:
    assert world.get().body == b"value"
    with ExitStack() as stack:
        for _ in range(2 * CALLS_MAX):
            unread = stack.enter_context(world.gateway.connect(receive_bytes=4_096))
            call = head("/openapi.json", unknown_token() if with_tokens else "") + END
            unread.sendall(call * ANSWERS)
        wait_until(lambda: world.gateway.send(head("/openapi.json") + END).status == 429, "strangers have their share")
        for _ in range(20):
            assert world.get().body == b"value"
