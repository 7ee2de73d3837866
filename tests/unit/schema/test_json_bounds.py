"""A JSON text that holds too much is refused by its bytes, before any of it becomes an object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cortado.errors import TooLarge
from cortado.schema import json_bounds
from cortado.schema.json_bounds import DEPTH_MAX, ITEMS_MAX, check_json_bounds


@pytest.mark.parametrize(
    "text",
    [
        b'{"operations":[' + b"{}," * ITEMS_MAX + b"{}]}",
        b"[" + b"1," * ITEMS_MAX + b"1]",
        b"[" + b'"",' * ITEMS_MAX + b'""]',
        b"[" + b'"\\"",' * ITEMS_MAX + b'""]',
        b"[" + b'"\\\\",' * ITEMS_MAX + b'""]',
        b"[" * 2 * ITEMS_MAX,
    ],
    ids=lambda text: text[:20].decode(),
)
def test_too_many_items_are_refused(text: bytes) -> None:
    with pytest.raises(TooLarge) as refused:
        check_json_bounds(text, "body")
    assert (refused.value.field, refused.value.limit) == ("body", ITEMS_MAX)
    assert refused.value.length == ITEMS_MAX + 1


@pytest.mark.parametrize("brackets", [b"[]", b"{}"])
def test_what_is_nested_too_deeply_is_refused(brackets: bytes) -> None:
    opening, closing = brackets[:1], brackets[1:]
    check_json_bounds(opening * DEPTH_MAX + closing * DEPTH_MAX, "body")
    with pytest.raises(TooLarge) as refused:
        check_json_bounds(opening * (DEPTH_MAX + 1) + closing * (DEPTH_MAX + 1), "body")
    assert (refused.value.length, refused.value.limit) == (DEPTH_MAX + 1, DEPTH_MAX)
    with pytest.raises(TooLarge):
        check_json_bounds(opening * 1_000, "body")


class CountedBytes(bytearray):
    """Counts how many of it are read one by one; other reads of it take all bytes, at each try."""

    read = 0

    def __iter__(self) -> Iterator[int]:
        for each in super().__iter__():
            self.read += 1
            yield each

    def replace(self, *_arguments: Any) -> Any:
        raise AssertionError("read all of it")


def test_the_depth_is_known_as_soon_as_it_is_reached_however_much_follows() -> None:
    """200,000 arrays in one another, in 400 KB, took a second: all brackets were read for each depth."""
    brackets = CountedBytes(b"[" * 200_000 + b"]" * 200_000)
    assert json_bounds._is_deeper(brackets, DEPTH_MAX)
    assert brackets.read == DEPTH_MAX + 1
    brackets = CountedBytes(b"[]" * 200_000)
    assert not json_bounds._is_deeper(brackets, DEPTH_MAX)
    assert brackets.read == len(brackets)


@pytest.mark.parametrize(
    "value",
    [
        [0] * (ITEMS_MAX - 1),
        ["," * 3 * ITEMS_MAX, '"[{' * ITEMS_MAX, "\\" * ITEMS_MAX, '\\"[' * ITEMS_MAX],
        [{"a,[{": "]},"}] * (ITEMS_MAX // 3),
        [[[]] * 5_000] * 5,
        "",
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_what_holds_no_more_passes_whatever_its_texts_are(value: Any) -> None:
    check_json_bounds(json.dumps(value).encode(), "body")


@pytest.mark.parametrize(
    "text",
    [b"", b'"', b"[" * DEPTH_MAX, b"]" * 1_000, b"[]]" + b"[" * 1_000, b"[}" * 1_000, b'["' + b"[" * 9_000, b"\xff"],
)
def test_what_is_no_json_is_left_to_the_parser(text: bytes) -> None:
    check_json_bounds(text, "body")
