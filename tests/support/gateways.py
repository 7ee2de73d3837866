"""A gateway in this process before a node in this process: HTTP calls without a socket between them."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from cortado.store.client import AsyncClient
from cortado.store.gateway.application import Application, all_operations
from cortado.store.gateway.limits import GatewayLimits
from cortado.store.gateway.openapi import document
from support.memory_engine import MemoryEngine
from support.served_node import served_node

WAIT_S = 60.0


@dataclass
class Gateway:
    """``request`` makes a call as a program on this machine does; ``client`` is for actions that no call does."""

    loop: asyncio.AbstractEventLoop
    client: AsyncClient
    application: Application
    http: httpx.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        transport = httpx.ASGITransport(app=self.application)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://localhost:7629")

    def run(self, work: Any) -> Any:
        """Return the result of a coroutine, run on the gateway's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_S)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request, and check that the OpenAPI document declares the answer."""
        response: httpx.Response = self.run(self.http.request(method, path, **options))
        self._check_declared(method, response)
        return response

    def _check_declared(self, method: str, response: httpx.Response) -> None:
        sent = response.request.url.raw_path.decode().partition("?")[0]
        found = next((each for each in SERVED if each.route.fullmatch(sent) and each.method == method), None)
        if found is None or response.status_code >= 400:
            kind = response.headers["Content-Type"]
            told = response.json()
            assert found is None or kind in found.refusals or not found.refusals, (method, sent, kind)
            assert told.get("status") == response.status_code or "error_code" in told, told
            return
        types = found.answers.get(str(response.status_code))
        assert types is not None, f"{method} {sent}: {response.status_code} is not in the document"
        assert not types or response.headers["Content-Type"].partition(";")[0] in types


@dataclass(frozen=True)
class Declared:
    """An operation of the OpenAPI document."""

    method: str
    route: re.Pattern[str]
    answers: dict[str, set[str]]
    refusals: set[str]


def _declared(path: str, method: str, told: Any) -> Declared:
    parts = re.split(r"(\{\w+\})", path)
    # The rest of a path has slashes, every other part has none.
    route = "".join(
        "(.*)" if each == "{key}" else "([^/]+)" if each.startswith("{") else re.escape(each) for each in parts
    )
    types = {status: set(answer.get("content", {})) for status, answer in told["responses"].items()}
    return Declared(method.upper(), re.compile(route), types, types.pop("default"))


SERVED = [
    _declared(path, method, told)
    for path, methods in document(all_operations())["paths"].items()
    for method, told in methods.items()
]


@contextmanager
def gateway(limits: GatewayLimits | None = None) -> Iterator[Gateway]:
    """Run a gateway before a new, empty node."""
    with served_node(MemoryEngine()) as node, gateway_before(node.endpoint, limits) as made:
        yield made


@contextmanager
def gateway_before(
    endpoint: str, limits: GatewayLimits | None = None, *, acts_without_roles: bool = False
) -> Iterator[Gateway]:
    """Run a gateway before an existing cluster."""
    with _loop() as loop:

        async def begin() -> Gateway:
            client = AsyncClient(endpoint, timeout_s=10)
            application = Application(client, limits or GatewayLimits(), acts_without_roles=acts_without_roles)
            return Gateway(loop, client, application)

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
