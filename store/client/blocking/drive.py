"""Runs the core's coroutines, which never suspend here: each is over after one step."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Generator, Iterable, Iterator
from contextlib import closing
from typing import Any, TypeVar

from cortado.store.client.public_faces import OURS

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of the core over the blocking runtime; return its result, or raise its error."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise AssertionError("a coroutine over the blocking runtime must not suspend")


def steps(stream: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Yield the items of a stream of the core. Closing it closes ``stream``."""
    with OURS:
        try:
            while True:
                try:
                    item = run(stream.__anext__())
                except StopAsyncIteration:
                    return
                yield item
        finally:
            run(stream.aclose())


def each(pages: AsyncGenerator[Iterable[T], None]) -> Iterator[T]:
    """Yield the items of all pages, one after the other. Closing it closes ``pages``."""
    with OURS, closing(steps(pages)) as stream:
        for page in stream:
            yield from page
