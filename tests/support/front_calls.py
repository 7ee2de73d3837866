"""A service for tests of fronts, and calls of it by hand."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable
from typing import Any

from cortado.errors import NotFound
from cortado.proto.v1 import kv_pb2
from support.http2 import field

WAIT_S = 20.0
GET, PUT, SCAN = (f"/cortado.v1.KeyValue/{name}" for name in ("Get", "Put", "Scan"))
SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="")


class Kv:
    """Gets answer with their request, at once; puts once the test says so; scans send the messages that the test
    gives."""

    def __init__(self) -> None:
        self.puts: list[asyncio.Future[bytes]] = []
        self.ended: list[str] = []
        self.replies: list[bytes] = []
        self.seen: list[str] = []

    async def get(self, request: kv_pb2.KvGetRequest) -> bytes:
        if request.namespace == "missing":
            raise NotFound("namespace", "50% of é\n")
        if request.namespace == "defect":
            raise RuntimeError("a secret")
        self.seen.append(SEEN.get())
        SEEN.set(request.namespace)
        return request.SerializeToString()

    async def put(self, _request: kv_pb2.KvPutRequest) -> bytes:
        answer = asyncio.get_running_loop().create_future()
        self.puts.append(answer)
        try:
            reply: bytes = await answer
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        return reply

    async def scan(self, _request: kv_pb2.KvScanRequest) -> AsyncGenerator[bytes, None]:
        try:
            for reply in self.replies:
                yield reply
            if not self.replies:
                await asyncio.Event().wait()
        finally:
            self.ended.append("scan")

    def __getattr__(self, name: str) -> Any:
        return self.get


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)


def fields(path: str = GET, method: bytes = b"POST", kind: bytes = b"application/grpc", *more: bytes) -> bytes:
    pseudo = ((b":method", method), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"x"))
    return b"".join(field(*each) for each in (*pseudo, (b"content-type", kind))) + b"".join(more)
