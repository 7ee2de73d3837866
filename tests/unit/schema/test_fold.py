"""The fold over types: each record made once, before its fields, so that one finds itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

from cortado.schema.fold import Fields, Fold
from cortado.schema.model import Array, Enum, Fixed, Map, Primitive, Record, Union
from cortado.schema.names import branch_name
from cortado.schema.parse import parse_schema

Text: TypeAlias = Callable[[int], str]
"""A type in words, with records opened so many times."""


class _Texts(Fold[Text]):
    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []

    def leaf(self, leaf: Primitive | Fixed | Enum) -> Text:
        return lambda _depth: branch_name(leaf)

    def array(self, _array: Array, item: Text) -> Text:
        return lambda depth: f"[{item(depth)}]"

    def map(self, _map: Map, value: Text) -> Text:
        return lambda depth: f"{{{value(depth)}}}"

    def union(self, _union: Union, branches: list[Text]) -> Text:
        return lambda depth: "|".join(branch(depth) for branch in branches)

    def record(self, record: Record, fields: Fields[Text]) -> Text:
        self.made.append(record.name)
        assert not fields.parts  # They are filled in after.

        def text(depth: int) -> str:
            if not depth:
                return record.name
            assert fields.parts == list(fields.by_name.values()) == [part for _, part in fields.pairs]
            return f"{record.name}({', '.join(f'{name}: {part(depth - 1)}' for name, part in fields.pairs)})"

        return text


def _schema(declaration: object) -> Record:
    return parse_schema(json.dumps(declaration)).record


def test_a_record_that_holds_itself_is_made_once_and_finds_itself() -> None:
    texts = _Texts()
    tree = _schema(
        {
            "type": "record",
            "name": "Tree",
            "fields": [
                {"name": "size", "type": "long"},
                {"name": "below", "type": {"type": "array", "items": "Tree"}},
                {"name": "next", "type": ["null", "Tree"]},
            ],
        }
    )
    assert texts.of(tree)(2) == (
        "Tree(size: long, below: [Tree(size: long, below: [Tree], next: null|Tree)],"
        " next: null|Tree(size: long, below: [Tree], next: null|Tree))"
    )
    assert texts.made == ["Tree"]


def test_records_that_hold_each_other_are_made_once_wherever_the_walk_begins() -> None:
    odd = {
        "type": "record",
        "name": "Odd",
        "fields": [{"name": "even", "type": {"type": "map", "values": "Even"}}],
    }
    even = _schema({"type": "record", "name": "Even", "fields": [{"name": "odd", "type": ["null", odd]}]})
    texts = _Texts()
    assert texts.of(even)(3) == "Even(odd: null|Odd(even: {Even(odd: null|Odd)}))"
    assert texts.of(even) is texts.of(even)
    assert texts.made == ["Even", "Odd"]
