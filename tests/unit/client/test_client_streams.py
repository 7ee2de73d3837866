"""Streams in pages: items in order; at any end, the layers below are closed at once, by the stream itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any

import pytest

from cortado.store.client.blocking.drive import each, steps
from cortado.store.client.streams import any_of, items, opened


class Pages:
    """Three pages; ``is_closed`` tells whether they were closed. Held by the test, so that no collector closes them."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.is_closed = False
        self.generator = self._pages(problem)

    async def _pages(self, problem: Exception | None) -> AsyncGenerator[Iterable[int], None]:
        try:
            yield [1, 2]
            yield []
            if problem is not None:
                raise problem
            yield iter([3])
        finally:
            self.is_closed = True


async def taken(stream: AsyncGenerator[Any, None], count: int) -> list[Any]:
    found = []
    async with aclosing(stream):
        async for item in stream:
            found.append(item)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_items_come_in_order_and_pages_are_closed_where_they_are_left(count: int) -> None:
    over_asyncio, over_threads, late = Pages(), Pages(), Pages()
    expected = [1, 2, 3][:count]

    async def open_late() -> AsyncGenerator[Iterable[int], None]:
        return late.generator

    async def main() -> None:
        # Checked here, since a loop that ends closes open generators.
        assert await taken(items(over_asyncio.generator), count) == expected
        assert over_asyncio.is_closed
        assert await taken(items(opened(open_late)), count) == expected
        assert late.is_closed

    asyncio.run(main())
    found = each(over_threads.generator)
    assert [item for item, _ in zip(found, range(count), strict=False)] == expected
    found.close()  # type: ignore[attr-defined]
    assert over_threads.is_closed


def test_what_a_page_raises_comes_after_what_came_before_it() -> None:
    for read in (lambda pages: asyncio.run(taken(items(pages), 9)), lambda pages: list(each(pages))):
        pages = Pages(KeyError("page"))
        with pytest.raises(KeyError, match="page"):
            read(pages.generator)
        assert pages.is_closed


def test_a_stream_that_was_never_begun_is_closed_without_being_opened() -> None:
    pages = Pages()
    found = steps(pages.generator)
    found.close()
    assert not pages.is_closed
    assert list(each(pages.generator)) == [1, 2, 3]


def test_a_source_of_either_kind_gives_its_items() -> None:
    async def later() -> AsyncGenerator[int, None]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    assert asyncio.run(taken(any_of(later()), 9)) == asyncio.run(taken(any_of(range(3)), 9)) == [0, 1, 2]
