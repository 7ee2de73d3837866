"""A gateway in this process before a node in this process: HTTP calls without a socket between them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from cortado.store.client import AsyncClient
from cortado.store.gateway.application import Application
from cortado.store.gateway.bounds import GatewayLimits
from support.memory_engine import MemoryEngine
from support.served_node import served_node

WAIT_S = 60.0


@dataclass
class Gateway:
    """``request`` makes a call as a program on this machine does; ``client`` is for what no call does."""

    loop: asyncio.AbstractEventLoop
    client: AsyncClient
    application: Application
    http: httpx.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        transport = httpx.ASGITransport(app=self.application)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://localhost:7629")

    def run(self, work: Any) -> Any:
        """What a coroutine returns, on the gateway's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_S)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        response: httpx.Response = self.run(self.http.request(method, path, **options))
        return response


@contextmanager
def gateway(limits: GatewayLimits | None = None) -> Iterator[Gateway]:
    """A gateway before a new, empty node."""
    with served_node(MemoryEngine()) as node, _loop() as loop:

        async def begin() -> Gateway:
            client = AsyncClient(node.endpoint, timeout_s=10)
            return Gateway(loop, client, Application(client, limits or GatewayLimits()))

        made: Gateway = asyncio.run_coroutine_threadsafe(begin(), loop).result(WAIT_S)
        try:
            yield made
        finally:
            made.run(made.client.close())


@contextmanager
def _loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()
