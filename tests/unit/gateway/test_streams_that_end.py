"""The memory of a stream while its reader takes nothing, and its remains once the reader has hung up: nothing, also
before the collector comes."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator
from typing import cast

from starlette.types import Message

from cortado.store.client.watch import AsyncWatch, Changed
from cortado.store.clock.timestamp import ZERO
from cortado.store.gateway.bounds import Bounds
from cortado.store.gateway.elements import _pieces
from cortado.store.gateway.limits import GatewayLimits
from cortado.store.gateway.streams import SLICE_BYTES, Stream, begun
from cortado.store.gateway.watching import _events


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


def test_a_large_piece_goes_out_in_slices_and_the_next_one_waits_for_the_last_of_them() -> None:
    given, sent = 0, []
    pieces_bytes = [b"a" * (2 * SLICE_BYTES + 1), b"", b"b" * SLICE_BYTES]

    async def pieces() -> AsyncGenerator[bytes, None]:
        nonlocal given
        for each in pieces_bytes:
            given += 1
            yield each

    async def send(message: Message) -> None:
        sent.append((given, len(message.get("body", b"")), message.get("more_body")))

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    stream = Stream(Bounds(GatewayLimits()), pieces(), "application/x-ndjson")
    asyncio.run(stream({"type": "http", "method": "GET"}, receive, send))
    assert sent == [
        (0, 0, None),
        (1, SLICE_BYTES, True),
        (1, SLICE_BYTES, True),
        (1, 1, True),
        (3, SLICE_BYTES, True),
        (3, 0, False),
    ]


def test_a_page_is_kept_by_its_reader_alone() -> None:
    async def pages() -> AsyncGenerator[Page, None]:
        for _ in range(2):
            yield Page()

    async def run() -> None:
        left = await begun(pages())
        while (page := await anext(left, None)) is not None:
            kept = weakref.ref(page)
            page = None
            if not seen:
                assert kept() is None
            seen.append(kept)

    seen: list[weakref.ref[Page]] = []
    asyncio.run(run())
    assert len(seen) == 2


def test_an_element_is_kept_no_longer_than_until_it_is_a_line() -> None:
    class Element(dict[str, str]):
        pass

    made: list[weakref.ref[Element]] = []

    def element(text: str) -> Element:
        one = Element(text=text * (1 << 20))
        made.append(weakref.ref(one))
        return one

    pieces = _pieces(map(element, "ab"))
    for i in range(2):
        assert len(next(pieces)) > 1 << 20
        assert made[i]() is None


def test_a_change_is_kept_no_longer_than_until_it_is_text() -> None:
    class Put(Changed[bytes, bytes]):
        """Not in slots, so that it can be watched."""

    made: list[weakref.ref[Put]] = []

    class Watch:
        def __aiter__(self) -> Watch:
            return self

        async def __anext__(self) -> Put:
            put = Put(b"a", b"b", ZERO)
            made.append(weakref.ref(put))
            return put

        async def __aenter__(self) -> Watch:
            return self

        async def __aexit__(self, *_: object) -> None:
            pass

    async def run() -> None:
        events = await begun(_events(cast("AsyncWatch[bytes, bytes]", Watch()), lambda put: {"value": str(put.key)}))
        for _ in range(2):
            assert b"event: put" in await anext(events)
            assert made[-1]() is None
        await events.aclose()

    asyncio.run(run())
    assert len(made) == 2
