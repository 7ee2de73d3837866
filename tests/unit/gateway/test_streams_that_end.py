"""What is left of a stream whose reader has hung up: nothing, also before the collector comes."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator

from starlette.types import Message

from cortado.store.gateway.bounds import Bounds
from cortado.store.gateway.limits import GatewayLimits
from cortado.store.gateway.streams import Stream


class Page:
    """Stands for one of some MiB."""


def test_a_page_is_not_kept_for_who_has_hung_up() -> None:
    pages: list[weakref.ref[Page]] = []
    sent: list[Message] = []

    async def pieces() -> AsyncGenerator[bytes, None]:
        page = Page()
        pages.append(weakref.ref(page))
        yield b"line\n"
        # For the next page.
        await asyncio.Event().wait()

    async def run() -> None:
        is_sent = asyncio.Event()

        async def receive() -> Message:
            await is_sent.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)
            if message.get("body"):
                is_sent.set()

        stream = Stream(Bounds(GatewayLimits()), pieces(), "application/x-ndjson")
        await stream({"type": "http", "method": "GET"}, receive, send)

    gc.collect()
    gc.disable()
    try:
        asyncio.run(run())
        assert [each.get("body") for each in sent] == [None, b"line\n"]
        assert [each() for each in pages] == [None]
    finally:
        gc.enable()
