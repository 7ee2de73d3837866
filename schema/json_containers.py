"""Arrays, maps and records of JSON, the same in both directions: only their leaves differ.

A container is checked for its form, then converted part by part. The encoder checks that every field is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from cortado.errors import InvalidDocument
from cortado.schema.fold import Fields, Fold
from cortado.schema.model import Array, Map, Record
from cortado.schema.walk import REFUSALS, Walk, located

Convert: TypeAlias = Callable[[Any, Walk], Any]
"""From JSON to a value, or from a value to JSON."""

_Check: TypeAlias = Callable[[Any], None]


class Containers(Fold[Convert]):
    """Made from two functions that raise InvalidDocument, in the words of their direction, for a value that is no list,
    or no dict."""

    def __init__(self, check_list: _Check, check_dict: _Check) -> None:
        super().__init__()
        self._check_list = check_list
        self._check_dict = check_dict

    def array(self, array: Array, item: Convert) -> Convert:  # noqa: ARG002
        check = self._check_list

        def convert(value: Any, walk: Walk) -> list[Any]:
            if type(value) is not list:
                check(value)
            walk.enter()
            items: list[Any] = []
            try:
                for each in value:
                    items.append(item(each, walk))  # noqa: PERF401 - its length is the error's path
            except REFUSALS as error:
                raise located(error, f"[{len(items)}]") from None
            walk.depth -= 1
            return items

        return convert

    def map(self, map_: Map, value: Convert) -> Convert:  # noqa: ARG002
        check, convert_entry = self._check_dict, value

        def convert(value: Any, walk: Walk) -> dict[str, Any]:
            if type(value) is not dict:
                check(value)
            walk.enter()
            entries: dict[str, Any] = {}
            key: Any = None
            try:
                for key, entry in value.items():
                    entries[key] = convert_entry(entry, walk)
            except REFUSALS as error:
                raise located(error, f"[{key!r}]") from None
            walk.depth -= 1
            return entries

        return convert

    def record(self, record: Record, fields: Fields[Convert]) -> Convert:  # noqa: ARG002
        check, convert_field = self._check_dict, fields.by_name

        def convert(value: Any, walk: Walk) -> dict[str, Any]:
            if type(value) is not dict:
                check(value)
            walk.enter()
            members: dict[str, Any] = {}
            name: Any = ""
            try:
                for name, member in value.items():
                    convert_member = convert_field.get(name)
                    if convert_member is None:
                        raise InvalidDocument("", "the schema has no such field")
                    members[name] = convert_member(member, walk)
            except REFUSALS as error:
                raise located(error, str(name)) from None
            walk.depth -= 1
            return members

        return convert
