"""Calls that are given up at random moments leave nothing behind, over both fronts."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from cortado.proto.v1 import calls_pb2, documents_pb2, kv_pb2, watch_pb2
from cortado.store.client import Client
from support.fronts import FRONTS
from support.observed import scrape
from support.server_process import ServerProcess, running_server, wait_until
from support.wire import table_name

pytestmark = [pytest.mark.long, pytest.mark.process]

CALLS = 800
AT_ONCE = 40
WAIT_S = 120.0
TIMEOUTS_S = (0.002, 0.02, 0.1, WAIT_S)
OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
KEPT = ("cortado_streams_open", "cortado_watches_open", "cortado_queue_entries", "cortado_queue_bytes")
"""The measures of what calls take, which all give it back at their end."""
WATCH = watch_pb2.WatchKeyValueRequest(namespace="n", options=watch_pb2.WatchOptions(resolved_interval_ms=100))
START = documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=table_name("db.t")))


def put(source: random.Random) -> bytes:
    value = bytes(source.choice([1, 1_000, 100_000]))
    return kv_pb2.KvPutRequest(namespace="n", key=b"%d" % source.randrange(500), value=value).SerializeToString()


def batch(source: random.Random) -> bytes:
    calls = [
        calls_pb2.Call(
            id=source.randrange(1 << 30), method="cortado.v1.KeyValue/Put", request=put(source), timeout_ms=time
        )
        for time in source.choices([1, 10, 1_000], k=source.randrange(1, 10))
    ]
    return calls_pb2.CallBatch(calls=calls).SerializeToString()


def chunk(source: random.Random) -> bytes:
    rows = [json.dumps({"a": source.randrange(1_000)}) for _ in range(20)]
    return documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(json_rows=rows)).SerializeToString()


# Methods with the messages that they take: the first one, and those behind it.
METHODS: dict[str, tuple[Callable[[random.Random], bytes], Callable[[random.Random], bytes] | None]] = {
    "KeyValue/Put": (put, None),
    "KeyValue/Get": (lambda _source: kv_pb2.KvGetRequest(namespace="n", key=b"1").SerializeToString(), None),
    "KeyValue/Scan": (lambda _source: kv_pb2.KvScanRequest(namespace="n").SerializeToString(), None),
    "Watch/KeyValue": (lambda _source: WATCH.SerializeToString(), None),
    "Documents/Bulk": (lambda _source: START.SerializeToString(), chunk),
    "Calls/Exchange": (batch, batch),
    "Documents/Put": (lambda source: source.randbytes(100), None),
}


async def begun_and_given_up(channel: grpc.aio.Channel, source: random.Random) -> None:
    """Make a call, and end it in its midst: by its deadline, by cancelling it, or by closing half of it."""
    method = source.choice(list(METHODS))
    first, more = METHODS[method]
    closes, cancels_s, reads = source.random() < 0.5, source.random() * 0.1, source.randrange(4)

    async def sent() -> AsyncIterator[bytes]:
        yield first(source)
        for _ in range(source.randrange(4) if more is not None else 0):
            assert more is not None
            yield more(source)
        if not closes:
            await asyncio.Event().wait()

    call: Any = channel.stream_stream(f"/cortado.v1.{method}")(sent(), timeout=source.choice(TIMEOUTS_S))
    asyncio.get_running_loop().call_later(cancels_s, call.cancel)
    with suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
        for _ in range(reads):
            await call.read()
    call.cancel()


async def all_given_up(endpoint: str, source: random.Random) -> None:
    for _ in range(CALLS // AT_ONCE):
        async with grpc.aio.insecure_channel(endpoint, OPTIONS) as channel:
            calls: list[Awaitable[None]] = [begun_and_given_up(channel, source) for _ in range(AT_ONCE)]
            # The channel is closed with calls of it under way.
            await asyncio.wait(map(asyncio.ensure_future, calls), timeout=source.random())


def kept(server: ServerProcess) -> dict[str, float]:
    return {f"{name} {labels}": value for (name, labels), value in scrape(server).items() if name in KEPT and value}


@pytest.mark.parametrize("front", FRONTS)
def test_nothing_is_kept_of_calls_that_were_given_up(front: str, tmp_path: Path) -> None:
    source = random.Random(front)
    with running_server(tmp_path / "data", "--front", front, "--metrics-listen", "0") as server:
        with Client(server.endpoint) as client:
            client.create_database("db")
            schema = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}'
            client.schemas.register("db.t", schema)
            client.create_table("db.t", key=["a"])
        asyncio.run(all_given_up(server.endpoint, source))
        wait_until(lambda: not kept(server), "nothing is kept", WAIT_S)
        with Client(server.endpoint) as client:
            assert client.kv("n").put(b"k", b"v")
        assert "Traceback" not in server.log, server.log
