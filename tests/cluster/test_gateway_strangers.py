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
"""Values of 100 KiB each: more than a connection's buffers hold."""
END = b"\r\n"


@dataclass
class World:
    gateway: GatewayProcess
    token: str
    root: str

    def get(self) -> Answer:
        """A read of the caller that is known."""
        return self.gateway.send(head("/v1/kv/carts/a", self.token) + END)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("strangers")
    with running_server(folder / "data") as server:
        with Client(server.endpoint) as client:
            client.kv("carts").put(b"a", b"value")
            alice = client.admin.auth.create("alice").token
            client.admin.auth.grant("alice", "owner", "namespace:carts")
            root = client.admin.auth.enable("root").token
        assert alice is not None and root is not None
        own = folder / "token"
        own.write_text(root.text)
        own.chmod(0o600)
        options = ("--limit.calls-max", str(CALLS_MAX), "--token-file", str(own))
        with gateway_process(server.endpoint, folder, *options) as gateway:
            yield World(gateway, alice.text, root.text)


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


def test_the_token_of_the_gateway_reads_its_samples_and_serves_no_caller(world: World) -> None:
    wait_until(lambda: b'class="charts"' in world.gateway.send(head("/ui", world.root) + END).body, "charts")
    assert b'class="charts"' not in world.gateway.send(head("/ui", world.token) + END).body
    for token in ("", unknown_token()):
        assert world.gateway.send(head("/v1/kv/carts/a", token) + END).status == 401
