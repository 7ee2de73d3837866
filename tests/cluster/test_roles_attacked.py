"""Rights that are taken away in the middle of a call, and a search for tokens in all output of the processes. A server
and a gateway of their own, some nine seconds: other tests could not use those with roles."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import CortadoError, PermissionDenied, Unauthenticated
from cortado.store.client import Client
from support.gateway_process import GatewayProcess, gateway_process
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

WAIT_S = 10.0
FIELDS = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
SCHEMA = json.dumps({"type": "record", "name": "R", "fields": FIELDS})
ROWS = 6_000
ROW_BYTES = 8_000
"""All of them are far more than the data on its way to a reader that takes nothing."""
"""Rows of a kilobyte each: more than a stalled reader is sent ahead."""
WRONG = "ctd_0123456789abcdef_" + "W" * 43
_numbers = count()


@dataclass
class World:
    server: ServerProcess
    gateway: GatewayProcess
    admin: Client
    folder: Path
    tokens: list[str]

    def principal(self, *grants: tuple[str, str]) -> tuple[str, str]:
        """A new one's name and token."""
        name = f"p{next(_numbers)}"
        token = self.admin.admin.auth.create(name).token
        assert token is not None
        self.tokens.append(token.text)
        for role, resource in grants:
            self.admin.admin.auth.grant(name, role, resource)
        return name, token.text

    def audited(self) -> list[dict[str, Any]]:
        written = (self.server.data_dir / "audit" / "audit.log").read_text()
        found = [json.loads(each) for each in written.splitlines()]
        return [each for each in found if "lines_missing" not in each]

    def revoke(self, name: str, method: str) -> None:
        """Return once the node has ended the running calls."""
        self.admin.admin.auth.revoke(name)
        self.until_denied(name, method)

    def until_denied(self, name: str, method: str) -> None:
        wait_until(
            lambda: any(each["principal"] == name and each["method"] == method for each in self.audited()),
            f"{method} of {name} is denied",
            WAIT_S,
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("attacked")
    with running_server(folder / "data", "--log-level", "debug", "--slow-request-ms", "1") as server:
        with Client(server.endpoint) as anybody:
            anybody.create_database("shop")
            anybody.schemas.register("shop.rows", SCHEMA)
            anybody.create_table("shop.rows", key=["id"])
            anybody.table("shop.rows").put_many({"id": number, "text": "x" * ROW_BYTES} for number in range(ROWS))
            anybody.kv("carts").put(b"a", b"1")
            root = anybody.admin.auth.enable("root").token
        assert root is not None
        with (
            gateway_process(server.endpoint, folder) as gateway,
            Client(server.endpoint, token=root.text) as admin,
        ):
            yield World(server, gateway, admin, folder, [root.text, WRONG])


READER = ("reader", "table:shop.rows"), ("reader", "namespace:carts")


@pytest.mark.parametrize("taken", ["token", "grant"])
def test_a_scan_ends_where_its_right_does(world: World, taken: str) -> None:
    name, token = world.principal(*READER)
    with Client(world.server.endpoint, token=token) as reader:
        rows = reader.table("shop.rows").scan()
        next(iter(rows))
        if taken == "token":
            world.revoke(name, "Documents/Scan")
        else:
            world.admin.admin.auth.revoke_grant(name, "reader", "table:shop.rows")
            world.until_denied(name, "Documents/Scan")
        with pytest.raises((PermissionDenied, Unauthenticated)):
            for _ in rows:
                pass


def test_a_large_transaction_commits_nothing_behind_a_revocation(world: World) -> None:
    name, token = world.principal(("writer", "table:shop.rows"))
    with Client(world.server.endpoint, token=token) as writer:
        begun = writer.large_transactions.begin(["shop.rows"])
        with writer.large_transactions.staging(begun.transaction_id) as staging:
            staging.table("shop.rows").put_many({"id": number, "text": "staged"} for number in range(-200, 0))
            world.admin.admin.auth.revoke_grant(name, "writer", "table:shop.rows")
            with pytest.raises(PermissionDenied):
                staging.table("shop.rows").put_many([{"id": -300, "text": "late"}])
        for refused in (
            lambda: writer.large_transactions.commit(begun.transaction_id, {0: 0}),
            lambda: writer.large_transactions.abort(begun.transaction_id),
        ):
            with pytest.raises(PermissionDenied):
                refused()
    world.admin.large_transactions.abort(begun.transaction_id)
    assert world.admin.table("shop.rows").get(-1) is None


def _head(world: World, path: str, field: str) -> str:
    host = f"{world.gateway.host}:{world.gateway.port}"
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{field}\r\n"


def _streamed(world: World, path: str, accept: str, method: str) -> tuple[bytes, bytes]:
    """Return the bytes that the gateway sends before its caller's token is revoked, and after it."""
    name, token = world.principal(*READER)
    request = _head(world, path, f"Accept: {accept}")
    with world.gateway.connect(receive_bytes=4_096) as connection:
        connection.sendall(f"{request}Authorization: Bearer {token}\r\n\r\n".encode())
        before = b""
        while before.count(b"\n") < 20:
            before += (piece := connection.recv(4_096))
            assert piece, before
        world.revoke(name, method)
        behind = b""
        while piece := connection.recv(65_536):
            behind += piece
    assert before.startswith(b"HTTP/1.1 200")
    return before, behind


def test_lines_of_the_gateway_are_cut_off(world: World) -> None:
    before, behind = _streamed(world, "/v1/db/shop/rows", "application/x-ndjson", "Documents/Scan")
    assert before.count(b'"id"') + behind.count(b'"id"') < ROWS
    # It cannot be mistaken for a complete answer: the last chunk is missing.
    assert not behind.endswith(b"0\r\n\r\n")


def test_events_of_the_gateway_end_with_the_denial(world: World) -> None:
    _, behind = _streamed(world, "/v1/kv/carts:watch", "text/event-stream", "Watch/KeyValue")
    assert b"event: problem" in behind
    assert b"UNAUTHENTICATED" in behind


def _fails(call: Callable[[], object]) -> str:
    with pytest.raises(CortadoError) as failed:
        call()
    return repr(failed.value) + failed.value.message()


def test_no_token_is_in_anything_that_is_written(world: World) -> None:
    """Callers that are let in, and callers that are refused, over gRPC, HTTP and the command line."""
    _, token = world.principal(*READER)
    written: list[str] = []
    for shown in (token, WRONG):
        with Client(world.server.endpoint, token=shown) as client:
            written += [repr(client), repr(client._core._connection._channels._authorization), repr(vars(client._core))]
            written.append(_fails(lambda client=client: client.kv("others").put(b"k", b"v")))
            written.append(_fails(lambda client=client: list(client.kv("others").scan())))
            written.append(_fails(lambda client=client: client.status()))
        for header in (f"Bearer {shown}", f"Basic {shown}", f"bearer {shown}"):
            for path in ("/v1/kv/others/a", "/subjects", "/ui", f"/v1/kv/carts/a?token={shown[:4]}"):
                head = (
                    f"GET {path} HTTP/1.1\r\nHost: {world.gateway.host}:{world.gateway.port}\r\nConnection: close\r\n"
                )
                answer = world.gateway.send(f"{head}Authorization: {header}\r\n\r\n".encode())
                written.append(f"{answer.headers}{answer.body!r}")
        if shown == WRONG:
            continue
        bundle = world.folder / "bundle.tar.gz"
        for arguments in (
            ("kv", "get", "others", "a"),
            ("slow",),
            ("auth", "whoami"),
            ("auth", "grant", shown[:30], "reader", "cluster"),
            ("doctor", "--bundle", str(bundle)),
        ):
            ended = subprocess.run(
                [sys.executable, "-X", "dev", "-m", "cortado.store.cli", *arguments, "-e", world.server.endpoint],
                env={"PATH": "/usr/bin:/bin", "CORTADO_TOKEN": shown},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            written.append(ended.stdout + ended.stderr)
        with tarfile.open(bundle) as packed:
            written += [packed.extractfile(each).read().decode() for each in packed if each.isfile()]  # type: ignore[union-attr]
    files = [each for each in world.folder.rglob("*") if each.is_file()]
    assert any(each.name == "audit.log" for each in files)
    for secret in world.tokens:
        for text in written:
            assert secret[-43:] not in text
        for file in files:
            assert secret[-43:].encode() not in file.read_bytes(), file
