"""Properties of a type before any data is seen: whether a value can end, its fewest bytes, and how far it spreads.

These numbers make hostile input harmless. A count of items in a body is bounded by the bytes left over the fewest bytes
of an item; a schema whose thirty records each hold two of the next one is refused before anything walks its paths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, assert_never

from cortado.errors import InvalidSchema
from cortado.schema.limits import DEPTH_MAX, EXPANDED_FIELDS_MAX
from cortado.schema.model import Array, AvroType, Enum, Fixed, Kind, Map, Primitive, Record, Union
from cortado.schema.names import simple_name

_PRIMITIVE_BYTES_MIN: Final = {
    Kind.NULL: 0,
    Kind.BOOLEAN: 1,
    Kind.INT: 1,
    Kind.LONG: 1,
    Kind.FLOAT: 4,
    Kind.DOUBLE: 8,
    Kind.BYTES: 1,
    Kind.STRING: 1,
}


class Sizes:
    """The fewest bytes that a value takes, for any type reachable from ``root``."""

    def __init__(self, root: AvroType) -> None:
        self._records = _record_sizes(records_of(root))

    def min_bytes(self, avro_type: AvroType) -> int:
        return int(_min_bytes(avro_type, self._records))


def records_of(root: AvroType) -> list[Record]:
    """Return every record reachable from ``root``, each after the ones that it refers to, but for recursion."""
    finished: list[Record] = []
    seen: set[str] = set()
    path: list[tuple[Record | None, Iterator[Record]]] = [(None, iter(_direct_records([root])))]
    while path:
        record, references = path[-1]
        following = next((each for each in references if each.name not in seen), None)
        if following is not None:
            seen.add(following.name)
            path.append((following, iter(references_of(following))))
            continue
        path.pop()
        if record is not None:
            finished.append(record)
    return finished


def references_of(record: Record) -> list[Record]:
    """Return the records that a record's fields name, through unions, arrays and maps."""
    return _direct_records(field.type for field in record.fields)


def check_finite(root: AvroType) -> None:
    """Raise InvalidSchema for a record that has no finite value, because it always holds another one."""
    records = records_of(root)
    sizes = _record_sizes(records)
    for record in records:
        for position, field in enumerate(record.fields):
            if _min_bytes(field.type, sizes) == math.inf:
                problem = f"a {record.name} would never end: make {field.name} a union with null"
                raise InvalidSchema(f"{simple_name(record.name)}.fields[{position}].type", problem)


def check_expansion(root: AvroType, path: str) -> None:
    """Raise InvalidSchema if the type spreads or nests beyond the limits with every name expanded.

    A record in a cycle is expanded once: its paths have no end.
    """
    _Expansion(path, recursive_names(records_of(root))).visit(root, 1)


def recursive_names(records: Sequence[Record]) -> set[str]:
    """Return the names of the records with values that may hold another value of the same record, at any distance.

    ``records`` as from :func:`records_of`. Kosaraju's strongly connected components: a backward walk, in the reverse of
    the order in which a forward walk finished, reaches one component.
    """
    users: dict[str, list[Record]] = {record.name: [] for record in records}
    recursive: set[str] = set()
    for record in records:
        for used in references_of(record):
            users[used.name].append(record)
            if used is record:
                recursive.add(record.name)
    placed: set[str] = set()
    for root in reversed(records):
        component: list[str] = []
        waiting = [root]
        while waiting:
            record = waiting.pop()
            if record.name not in placed:
                placed.add(record.name)
                component.append(record.name)
                waiting.extend(users[record.name])
        if len(component) > 1:
            recursive.update(component)
    return recursive


class _Expansion:
    """A walk along every path of a type, which gives up as soon as a limit is passed."""

    def __init__(self, path: str, recursive: set[str]) -> None:
        self.path = path
        self.recursive = recursive
        self.expanded: set[str] = set()
        self.fields = 0

    def visit(self, avro_type: AvroType, depth: int) -> None:
        if isinstance(avro_type, Union):
            for branch in avro_type.branches:
                self.visit(branch, depth)
            return
        if isinstance(avro_type, Primitive | Enum | Fixed):
            return
        if depth > DEPTH_MAX:
            raise InvalidSchema(self.path, f"nested deeper than {DEPTH_MAX} records, arrays and maps")
        match avro_type:
            case Array(items=inner) | Map(values=inner):
                self.visit(inner, depth + 1)
            case Record():
                self._visit_record(avro_type, depth)

    def _visit_record(self, record: Record, depth: int) -> None:
        if record.name in self.recursive:
            if record.name in self.expanded:
                return
            self.expanded.add(record.name)
        self.fields += len(record.fields)
        if self.fields > EXPANDED_FIELDS_MAX:
            raise InvalidSchema(self.path, f"has more than {EXPANDED_FIELDS_MAX} fields with each named type expanded")
        for field in record.fields:
            self.visit(field.type, depth + 1)


def _direct_records(types: Iterable[AvroType]) -> list[Record]:
    found: list[Record] = []
    waiting = list(types)
    while waiting:
        match waiting.pop():
            case Array(items=inner) | Map(values=inner):
                waiting.append(inner)
            case Union(branches=branches):
                waiting.extend(branches)
            case Record() as record:
                found.append(record)
            case _:
                pass
    return found


def _record_sizes(records: Sequence[Record]) -> dict[str, float]:
    """Return the fewest bytes of each record, infinite for one that cannot end.

    A recursive record's size depends on itself: begin at infinity and lower, until nothing changes.
    """
    sizes: dict[str, float] = {record.name: math.inf for record in records}
    changed = True
    while changed:
        changed = False
        for record in records:
            size = sum(_min_bytes(field.type, sizes) for field in record.fields)
            if size < sizes[record.name]:
                sizes[record.name] = size
                changed = True
    return sizes


def _min_bytes(avro_type: AvroType, sizes: Mapping[str, float]) -> float:
    match avro_type:
        case Primitive(kind=kind):
            return _PRIMITIVE_BYTES_MIN[kind]
        case Fixed(size=size):
            return size
        case Enum() | Array() | Map():
            return 1
        case Union(branches=branches):
            return 1 + min(_min_bytes(branch, sizes) for branch in branches)
        case Record(name=name):
            return sizes[name]
        case _:
            assert_never(avro_type)
