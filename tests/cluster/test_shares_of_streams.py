"""One caller opens all the streams that it is let: another one finds a place at each gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from cortado.proto.v1 import calls_pb2, documents_pb2, kv_pb2, watch_pb2
from cortado.store.client import Client
from support.fronts import FRONTS
from support.server_process import ServerProcess, running_server
from support.wire import Wire, put_pair, table_name

pytestmark = pytest.mark.process

MOST = 8
LIMITS = [f"--limit.{name}-max={MOST}" for name in ("scans", "bulk-streams", "watches")]
CALLS_MOST = 1_024
WATCHES_MOST = 4_096
AT_ONCE = 32
"""Messages that a node receives at once: if those of many more come late, callers are refused."""
WAIT_S = 300.0
PACKAGE = "/cortado.v1."
SCAN = kv_pb2.KvScanRequest(namespace="t")
LOAD = documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=table_name("db.t")))
CHUNK = documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=1, json_rows=['{"a": 1}']))
WATCH = watch_pb2.WatchKeyValueRequest(namespace="t", options=watch_pb2.WatchOptions(resolved_interval_ms=100))
CALLS = calls_pb2.CallBatch(calls=[calls_pb2.Call(id=1, method="cortado.v1.KeyValue/Get")])


class Caller:
    """A caller with one or several connections, with a token or without."""

    def __init__(self, endpoint: str, connections: int = 1, token: str = "") -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        self._channels = [grpc.aio.insecure_channel(endpoint, options) for _ in range(connections)]
        self._metadata = (("authorization", f"Bearer {token}"),) if token else None
        self._streams: list[Any] = []

    async def open(self, method: str, *messages: Any) -> Any:
        """Open one more, and read the first of its replies alone. Returns the stream."""
        channel = self._channels[len(self._streams) % len(self._channels)]

        async def sent() -> AsyncIterator[bytes]:
            for message in messages:
                yield message.SerializeToString()
            await asyncio.Event().wait()

        stream = channel.stream_stream(PACKAGE + method)(sent(), metadata=self._metadata, timeout=WAIT_S)
        if await stream.read() is grpc.aio.EOF:
            raise AssertionError(f"{method} ended: {await stream.details()}")
        self._streams.append(stream)
        return stream

    async def fill(self, method: str, *messages: Any) -> int:
        """Open as many as there are places. Returns their number."""
        count = 0
        while True:
            try:
                await self.open(method, *messages)
            except grpc.aio.AioRpcError as error:
                if "Internal error from Core" in str(error.details()):
                    continue  # An error of the client's gRPC, whose write met the refusal: call again.
                assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
                return count
            count += 1

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()


async def one_fills_another_is_served(one: Caller, another: Caller) -> None:
    try:
        for method, messages, limit in (
            ("KeyValue/Scan", (SCAN,), MOST),
            ("Documents/Bulk", (LOAD, CHUNK), MOST),
            ("Watch/KeyValue", (WATCH,), MOST),
            ("Calls/Exchange", (CALLS,), CALLS_MOST),
        ):
            assert await one.fill(method, *messages) == limit // 2, method
            await another.open(method, *messages)
    finally:
        await one.close()
        await another.close()


def filled(server: ServerProcess) -> None:
    wire = Wire(server.endpoint)
    for start in range(0, 4_000, 1_000):
        wire.commit(*(put_pair("t", b"%06d" % i, bytes(4_000)) for i in range(start, start + 1_000)))
    with Client(server.endpoint) as client:
        client.create_database("db")
        client.schemas.register("db.t", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}')
        client.create_table("db.t", key=["a"])


def no_tokens(_endpoint: str) -> tuple[str, str]:
    """Roles are off: connections are told apart."""
    return "", ""


def tokens(endpoint: str) -> tuple[str, str]:
    """Switch roles on, and return the tokens of two writers."""
    with Client(endpoint) as client:
        root = client.admin.auth.enable("root").token
    assert root is not None
    made = []
    with Client(endpoint, token=root.text) as admin:
        for name in ("alice", "bob"):
            issued = admin.admin.auth.create(name).token
            assert issued is not None
            admin.admin.auth.grant(name, "writer", "cluster")
            made.append(issued.text)
    return made[0], made[1]


@pytest.mark.parametrize(("told_by", "connections"), [(no_tokens, 1), (tokens, 3)])
def test_a_caller_that_fills_every_gate_leaves_others_their_places(
    tmp_path: Path, told_by: Callable[[str], tuple[str, str]], connections: int
) -> None:
    with running_server(tmp_path / "data", *LIMITS) as server:
        filled(server)
        one, another = told_by(server.endpoint)

        async def scenario() -> None:
            endpoint = server.endpoint
            await one_fills_another_is_served(Caller(endpoint, connections, one), Caller(endpoint, 1, another))

        asyncio.run(scenario())


@pytest.mark.parametrize("front", FRONTS)
def test_callers_without_a_principal_have_one_share_of_the_streams_of_calls(front: str, tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--front", front) as server:
        _, token = tokens(server.endpoint)

        async def scenario() -> None:
            strangers, known = Caller(server.endpoint, 8), Caller(server.endpoint, 1, token)
            try:
                assert await strangers.fill("Calls/Exchange", CALLS) == CALLS_MOST // 2
                await known.open("Calls/Exchange", CALLS)
            finally:
                await strangers.close()
                await known.close()

        asyncio.run(scenario())


@pytest.mark.parametrize("front", FRONTS)
def test_a_connection_has_all_watches_of_its_share_and_may_cancel_them_at_once(front: str, tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--front", front) as server:

        async def scenario() -> None:
            one = Caller(server.endpoint)
            try:
                stays, *others = [
                    watch
                    for _ in range(WATCHES_MOST // 2 // AT_ONCE)
                    for watch in await asyncio.gather(*(one.open("Watch/KeyValue", WATCH) for _ in range(AT_ONCE)))
                ]
                assert await one.fill("Watch/KeyValue", WATCH) == 0
                await one.open("Calls/Exchange", CALLS)
                for each in others:
                    each.cancel()
                await one.open("Calls/Exchange", CALLS)
                await asyncio.to_thread(Wire(server.endpoint).commit, put_pair("t", b"written at last"))
                while b"written at last" not in (reply := await stays.read()):
                    assert reply is not grpc.aio.EOF
            finally:
                await one.close()

        asyncio.run(scenario())
