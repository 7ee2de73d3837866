"""What a put and a get cost a whole node, from a message of calls to a message of replies, in processor time.

A node alone over LMDB and log files on the disk; messages of 32 calls, two of them under way, as the client's shared
stream sends them. No gRPC, no peers: the messages are given to the service as they would come out of those. The time
is that of the process: its loop, and its log and storage threads.

    python -m benchmarks.bench_node
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import uvloop
from rich.console import Console

from benchmarks.loop_holds import running
from benchmarks.report import Measurement, show
from cortado.proto.v1 import calls_pb2, kv_pb2
from cortado.store.node.host import Host
from cortado.store.server.calls_service import CallsService
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.serving import SWITCH_INTERVAL_S

TITLE: Final = "A node in one process"
CALLS: Final = 32
MESSAGES: Final = 80
ROUNDS: Final = 7
PUT_KEYS: Final = 1_000_000
GET_KEYS: Final = 10_000
VALUE_BYTES: Final = 200


def settings() -> str:
    """What was measured, for the table's head."""
    return (
        f"calls a second of processor time; values of {VALUE_BYTES} bytes, messages of {CALLS} calls, two under way, "
        f"synced; the best of {ROUNDS} rounds of {MESSAGES * CALLS:,} calls"
    )


def run() -> list[Measurement]:
    """All measurements; takes some twenty seconds."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory(prefix="cortado-bench-") as name:
        return uvloop.run(_run(Path(name)))


async def _run(path: Path) -> list[Measurement]:
    async with running(path) as host:
        stream = _Stream(host)
        rates = {}
        for kind in ("put", "get"):
            await stream.round(kind)
            rates[kind] = max([await stream.round(kind) for _ in range(ROUNDS)])
        await stream.close()
        return [Measurement(kind, rate, "calls") for kind, rate in rates.items()]


class _Stream:
    """One client's stream of calls."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._random = random.Random(1)
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._last_id = 0
        service = kv_pb2.DESCRIPTOR.services_by_name["KeyValue"]
        self._replies = CallsService([(service, KeyValueService(host))]).exchange(self._requests())

    async def round(self, kind: str) -> float:
        """Calls a second of processor time."""
        messages = deque(self._message(kind) for _ in range(MESSAGES))
        began_s, left, under_way = time.process_time(), MESSAGES * CALLS, 0
        while left:
            while messages and under_way <= CALLS:
                self._messages.put_nowait(messages.popleft())
                under_way += CALLS
            replies = calls_pb2.ReplyBatch.FromString(await anext(self._replies)).replies
            assert not any(each.status for each in replies), replies[0].status
            left -= len(replies)
            under_way -= len(replies)
        return MESSAGES * CALLS / (time.process_time() - began_s)

    async def close(self) -> None:
        self._messages.put_nowait(None)
        async for _ in self._replies:
            raise AssertionError("a reply that nobody waits for")

    async def _requests(self) -> AsyncIterator[calls_pb2.CallBatch]:
        while (message := await self._messages.get()) is not None:
            yield calls_pb2.CallBatch.FromString(message)

    def _message(self, kind: str) -> bytes:
        batch, now = calls_pb2.CallBatch(), bytes(self._host.clock.now())
        for _ in range(CALLS):
            self._last_id += 1
            key = b"put-%07d" % self._random.randrange(PUT_KEYS if kind == "put" else GET_KEYS)
            if kind == "put":
                value, request_id = os.urandom(VALUE_BYTES), now + os.urandom(8)
                call = kv_pb2.KvPutRequest(namespace="bench", key=key, value=value, request_id=request_id)
                method, request = "cortado.v1.KeyValue/Put", call.SerializeToString()
            else:
                method = "cortado.v1.KeyValue/Get"
                request = kv_pb2.KvGetRequest(namespace="bench", key=key).SerializeToString()
            batch.calls.add(id=self._last_id, method=method, request=request, timeout_ms=10_000)
        return batch.SerializeToString()


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
