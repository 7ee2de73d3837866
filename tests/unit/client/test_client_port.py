"""Connections of the asyncio client: begun by a call, shared by a step of the loop, ended if nothing needs them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from cortado.errors import Unavailable
from cortado.proto.v1 import kv_pb2
from cortado.store.client import AsyncClient, Tls
from cortado.store.client.aio import port as ports
from cortado.store.client.aio.port import Port
from cortado.store.client.link import link
from support.certificates import Certifier
from support.fake_server import FakeServer, header

LOOPS = [asyncio.run, uvloop.run]


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(threads=64).running() as running:
        running.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(
            header=header(), pair=kv_pb2.KvPair(key=request.key)
        )
        yield running


def port_of(client: AsyncClient) -> Port:
    return client._connection.leader_channel()._wire._port  # type: ignore[union-attr,return-value]


class Counting:
    """A transport that counts its writes."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.writes = 0

    def write(self, data: bytes) -> None:
        self.writes += 1
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@pytest.mark.parametrize("coalesce", [False, True])
def test_calls_of_one_step_leave_in_one_write(server: FakeServer, run: Any, coalesce: bool) -> None:
    async def main() -> None:
        async with AsyncClient(server.endpoint, coalesce=coalesce) as client:
            kv = client.kv("n")
            await kv.get(b"k")
            await kv.get(b"k")
            port = port_of(client)
            port._transport = counting = Counting(port._transport)  # type: ignore[assignment]
            calls = [asyncio.create_task(kv.get(b"%d" % number)) for number in range(50)]
            await asyncio.sleep(0)
            assert counting.writes == 0
            await asyncio.sleep(0)
            assert counting.writes == 1
            await asyncio.gather(*calls)

    run(main())


def test_a_connection_without_calls_ends_and_the_next_call_makes_another(
    server: FakeServer, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "IDLE_S", 0.05)

    async def main() -> None:
        async with AsyncClient(server.endpoint, coalesce=False) as client:
            await client.kv("n").get(b"k")
            first = port_of(client)
            async with asyncio.timeout(20):
                while first._transport is not None:
                    await asyncio.sleep(0.01)
            assert await client.kv("n").get(b"k") is not None
            assert port_of(client) is not first

    run(main())


def test_all_addresses_of_a_host_are_tried(server: FakeServer, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def places(host: str, port: int) -> list[Any]:
        assert host == "n1.test"
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port)) for address in ("127.0.0.9", "127.0.0.1")]

    monkeypatch.setattr(ports, "_places", places)

    async def main() -> None:
        async with AsyncClient(f"n1.test:{server.endpoint.rpartition(':')[2]}") as client:
            assert await client.kv("n").get(b"k") is not None

    run(main())


def test_a_loop_that_ends_ends_the_connection_of_a_client_that_was_not_closed(server: FakeServer, run: Any) -> None:
    async def main() -> Port:
        client = AsyncClient(server.endpoint)
        await client.kv("n").get(b"k")
        return port_of(client)

    assert run(main())._transport is None


def test_a_file_that_is_gone_when_a_connection_is_made_is_named(tmp_path: Path, run: Any) -> None:
    files = Certifier(tmp_path / "certificates").client("app")

    async def main() -> None:
        async with AsyncClient("127.0.0.1:1", timeout_s=0.5, tls=Tls(files.ca, files.cert, files.key)) as client:
            with pytest.raises(Unavailable, match="nothing listens there"):
                await client.clock()
            files.ca.unlink()
            with pytest.raises(Unavailable, match=r"tls\.ca: cannot be read"):
                await client.clock()

    run(main())
