"""Both faces of the client behind the synchronous names, so that one suite tests their common promises.

::

    @pytest.fixture(params=FACES)
    def client(server: FakeServer, request: pytest.FixtureRequest) -> Iterator[Client]:
        with open_client(request.param, server.endpoint) as opened:
            yield opened

:class:`Client` is used as it is. :class:`AsyncClient` lives on a loop in a thread of its own: a call is a task there
that the test waits for, an iterator is asked for one item after the other.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar, cast

from cortado.store.client import AsyncClient, Client
from cortado.store.client.blocking.drive import run

T = TypeVar("T")

FACES = ["sync", "async"]
_ENDED = object()


def open_client(face: str, *arguments: Any, **options: Any) -> Client:
    """Open a client of that face; arguments and options are those of :class:`Client`."""
    return Client(*arguments, **options) if face == "sync" else cast("Client", _OnLoop.opened(*arguments, **options))


def run_core(client: Client, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine of the client's core, run on that core's loop."""
    return cast("T", client._waited(work)) if isinstance(client, _OnLoop) else run(work)


def loop_of(client: Client) -> asyncio.AbstractEventLoop | None:
    """Return the loop of a client of asyncio; None for one of threads."""
    return client._loop if isinstance(client, _OnLoop) else None


class _OnLoop:
    """A part of the asyncio face, with the names of the synchronous one."""

    def __init__(self, part: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._core = part
        self._loop = loop

    @classmethod
    def opened(cls, *arguments: Any, **options: Any) -> _OnLoop:
        client = AsyncClient(*arguments, **options)
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="loop", daemon=True).start()
        return cls(client, loop)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._core, name)
        if inspect.iscoroutinefunction(found) and name == "descriptor":
            return self._waited(found())
        return self._called(found) if callable(found) else self._given(found)

    def _called(self, found: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            return self._given(found(*arguments, **options))

        return call

    def _given(self, found: Any) -> Any:
        if inspect.iscoroutine(found):
            return self._waited(found)
        if inspect.isasyncgen(found):
            return self._iterated(found)
        is_part = type(found).__module__.startswith("cortado.store.client") and type(found).__name__.startswith("Async")
        return _OnLoop(found, self._loop) if is_part else found

    def _waited(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _iterated(self, found: Any) -> Iterator[Any]:
        async def close() -> None:
            await found.aclose()

        try:
            yield from self._steps(found)
        finally:
            self._waited(close())

    def _steps(self, found: Any) -> Iterator[Any]:
        async def step() -> Any:
            return await anext(found, _ENDED)

        while (item := self._waited(step())) is not _ENDED:
            yield item

    def __iter__(self) -> Iterator[Any]:
        return self._steps(self._core)

    def __enter__(self) -> _OnLoop:
        self._waited(self._core.__aenter__())
        return self

    def __exit__(self, *ended: Any) -> None:
        self._waited(self._core.__aexit__(*ended))
        if isinstance(self._core, AsyncClient):
            self._loop.call_soon_threadsafe(self._loop.stop)
