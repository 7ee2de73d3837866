"""Streams of the core come in pages, since a step for every item would cost more than the item."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Protocol, TypeAlias, TypeVar

from cortado.store.client.public_faces import OURS

T = TypeVar("T")

Rows: TypeAlias = Iterable[T] | AsyncIterable[T]
"""A source of rows; the synchronous face takes iterables only."""


class ArrowStream(Protocol):
    """An object of Arrow's PyCapsule interface: a table, a reader, a data frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


async def items(pages: AsyncGenerator[Iterable[T], None]) -> AsyncGenerator[T, None]:
    """Yield the items of all pages, one after the other. Closing it closes ``pages``."""
    with OURS:
        async with aclosing(pages):
            async for page in pages:
                for item in page:
                    yield item


async def opened(open_stream: Callable[[], Awaitable[AsyncGenerator[T, None]]]) -> AsyncGenerator[T, None]:
    """Yield the items of a stream that is opened when the first one is asked for."""
    with OURS:
        async with aclosing(await open_stream()) as stream:
            async for item in stream:
                yield item


async def any_of(source: Rows[T]) -> AsyncGenerator[T, None]:
    """Yield the items of either kind of source."""
    if isinstance(source, AsyncIterable):
        async for item in source:
            yield item
    else:
        for item in source:
            yield item
