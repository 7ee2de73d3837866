"""Pages of names: each begins behind the one before, and takes no more than it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cortado.store.clock.timestamp import Timestamp
from cortado.store.server.listing import behind, next_page

NOW = Timestamp(0, 1_000, 0)


@dataclass
class Request:
    page_size: int
    page_token: bytes = b""


def test_pages_together_are_the_list_and_none_takes_more_than_one_item_beyond_it() -> None:
    names, taken = [f"t{number:03}" for number in range(100)], []

    def items(_: Timestamp, after: str) -> Iterator[str]:
        for name in names:
            if name > after:
                taken.append(name)
                yield name

    found: list[str] = []
    request = Request(30)
    while True:
        _, page, request.page_token = next_page(request, newest=NOW, items=items, name=str)
        found += page
        if not request.page_token:
            break
    assert found == names
    assert len(taken) == len(names) + 3


def test_a_page_ends_before_it_is_over_its_bytes() -> None:
    _, page, token = next_page(
        Request(0), newest=NOW, items=lambda *_: "abcd", name=str, size_bytes=lambda _: 400 << 10
    )
    assert (page, bool(token)) == (["a", "b"], True)


def test_what_is_behind_a_name_is_in_order() -> None:
    assert behind("b", ["d", "a", "c", "b"], str) == ["c", "d"]
