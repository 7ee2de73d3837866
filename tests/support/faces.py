"""Both faces of the client behind one set of names, so that a test of what both promise is written once.

::

    async def test_...(opened: Opened) -> None:
        client = opened(server.endpoint)
        assert await client.kv("n").get(b"k") is None
        async for pair in client.kv("n").scan(): ...

:class:`AsyncClient` is used as it is. :class:`Client` is wrapped: what it returns at once is given out by a coroutine, and
every call runs in a thread, as an application that has both would do it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeAlias

from cortado.store.client import AsyncClient, Client

Opened: TypeAlias = Callable[..., Any]
"""Makes a client of one face; its arguments are those of :class:`Client`."""

_END = object()
_SERVICES = ("kv", "table", "batch", "with_timeout", "at")
"""Calls that ask nobody, and give what is then asked."""


def open_async(*arguments: Any, **options: Any) -> Any:
    return AsyncClient(*arguments, **options)


def open_sync(*arguments: Any, **options: Any) -> Any:
    return _Awaited(Client(*arguments, **options))


FACES: dict[str, Opened] = {"sync": open_sync, "async": open_async}


class _Awaited:
    """A part of the synchronous face; its methods are coroutines, its iterators asynchronous ones."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not callable(found):
            return _Awaited(found) if type(found).__module__.startswith("cortado.store.client.blocking") else found
        if name in _SERVICES:
            return lambda *arguments, **options: _Awaited(found(*arguments, **options))
        returns = inspect.signature(found).return_annotation
        if str(returns).startswith("Iterator"):
            return lambda *arguments, **options: _iterated(found, arguments, options)
        return lambda *arguments, **options: asyncio.to_thread(found, *arguments, **options)

    async def __aenter__(self) -> _Awaited:
        self._part.__enter__()
        return self

    async def __aexit__(self, *ended: Any) -> None:
        await asyncio.to_thread(self._part.__exit__, *ended)


async def _iterated(found: Callable[..., Iterator[Any]], arguments: Any, options: Any) -> AsyncIterator[Any]:
    items = await asyncio.to_thread(found, *arguments, **options)
    try:
        while (item := await asyncio.to_thread(next, items, _END)) is not _END:
            yield item
    finally:
        await asyncio.to_thread(items.close)  # type: ignore[attr-defined]
