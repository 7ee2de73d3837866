"""The key range of a read: bounds in options, given the types that the key declares, and the parts that tasks read.

=====================  ===============================================================
key part               JSON
=====================  ===============================================================
int64, float64, bool   a number, a number, true or false
string                 text
timestamp              text, RFC 3339 with a zone: ``"2013-01-01T00:00:00Z"``
date                   text: ``"2013-01-01"``
decimal                text, or a whole number: ``"12.50"``
uuid                   text
bytes                  text, hexadecimal
=====================  ===============================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from cortado.errors import InvalidArgument, NotFound
from cortado.rfc3339 import Impossible, exact_instant, parse_date
from cortado.store.keys.types import KeyPart, KeyType
from pyspark_cortado.options import PARTITIONS_MAX, ReadOptions

if TYPE_CHECKING:
    from cortado.store.catalog.descriptors import TableDescriptor
    from cortado.store.client import Client, KeyRange, Table

PARTITION_BYTES: Final = 64 << 20
"""The stored keys and values of a partition. A task reads them in about a second, and costs Spark 50 ms more."""

KeyBounds: TypeAlias = tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]
"""A range of keys, the lower bound in it and the upper one not; None is an open end."""


@dataclass
class KeyRangePartition(InputPartition):
    """Rows of ``[lower, upper)``; None is an open end."""

    lower: tuple[Any, ...] | None
    upper: tuple[Any, ...] | None


def ranges_of(client: Client, options: ReadOptions) -> list[KeyBounds]:
    """Return the range of the read, cut into parts if it can be: one at least, since Spark would ask for a partition of
    its own."""
    lower, upper = read_bounds(client, options)
    if options.is_one_range:
        return [(lower, upper)]
    ranges = split(client.table(options.connection.table), options.partitions, lower, upper)
    return [(each.start, each.end) for each in ranges] or [(lower, upper)]


def split(table: Table[Any], partitions: int | None, lower: Any, upper: Any, *, at: Any = None) -> list[KeyRange]:
    """Return the range as so many parts with about equally many rows; None: as parts of a size that is worth a task."""
    if partitions is None:
        return table.split(PARTITIONS_MAX, lower, upper, part_bytes=PARTITION_BYTES, at=at)[1]
    return table.split(partitions, lower, upper, at=at)[1]


def read_bounds(client: Client, options: ReadOptions) -> KeyBounds:
    """Return the range that is read, of the key or of the index. Raises InvalidArgument, NotFound."""
    described = client.describe(options.connection.table)
    declared = described.key
    if options.index is not None:
        index = described.index(options.index)
        if index is None:
            names = ", ".join(each.name for each in described.indexes) or "none"
            raise NotFound("index", f"{options.index} of table {options.connection.table}; there are {names}")
        declared = index.parts
    return _bounds_of(declared, options.key_start, options.key_end)


def bounds_of_key(table: TableDescriptor, lower: tuple[Any, ...] | None, upper: tuple[Any, ...] | None) -> KeyBounds:
    """Bounds of a table's primary key out of JSON. Raises InvalidArgument."""
    return _bounds_of(table.key, lower, upper)


def _bounds_of(declared: Sequence[KeyPart], lower: tuple[Any, ...] | None, upper: tuple[Any, ...] | None) -> KeyBounds:
    first, last = _bound("option keyStart", declared, lower), _bound("option keyEnd", declared, upper)
    if first is not None and last is not None and _is_before(last, first, declared):
        order = ", ".join(f"{part.path} {'descending' if part.descending else 'ascending'}" for part in declared)
        raise InvalidArgument("option keyEnd", f"must not come before keyStart, in the order {order}", str([*last]))
    return first, last


def _bound(what: str, declared: Sequence[KeyPart], parts: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Key parts from JSON, with the types that the key declares."""
    if parts is None:
        return None
    if len(parts) > len(declared):
        names = ", ".join(part.path for part in declared)
        raise InvalidArgument(what, f"must have at most {len(declared)} parts ({names})", str(len(parts)))
    return tuple(key_part(value, part, what) for value, part in zip(parts, declared, strict=False))


def _is_before(bound: tuple[Any, ...], other: tuple[Any, ...], declared: Sequence[KeyPart]) -> bool:
    for mine, its, part in zip(bound, other, declared, strict=False):
        if mine != its:
            return bool(mine > its) if part.descending else bool(mine < its)
    return len(bound) < len(other)


def key_part(value: Any, part: KeyPart, what: str) -> Any:
    """One part of a key bound from JSON. Raises InvalidArgument that names ``what`` and the part."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match part.type:
        case KeyType.INT64 if is_number and isinstance(value, int) and -(2**63) <= value < 2**63:
            return value
        case KeyType.FLOAT64 if is_number:
            return float(value)
        case KeyType.DECIMAL if is_number and isinstance(value, int):
            return Decimal(value)
        case KeyType.BOOL if isinstance(value, bool):
            return value
        case KeyType.STRING if isinstance(value, str):
            return value
    if isinstance(value, str):
        try:
            return _from_text(value, part.type)
        except Impossible as impossible:
            problem = f"is no time of the calendar: {impossible}"
            raise InvalidArgument(f"{what}, part {part.path}", problem, repr(value)) from None
        except (ValueError, InvalidOperation):
            pass
    raise InvalidArgument(f"{what}, part {part.path}", f"must be of type {part.type}, as JSON carries it", repr(value))


def _from_text(text: str, kind: KeyType) -> Any:
    match kind:
        case KeyType.TIMESTAMP:
            return exact_instant(text)
        case KeyType.DATE:
            return parse_date(text)
        case KeyType.DECIMAL:
            return Decimal(text)
        case KeyType.UUID:
            return UUID(text)
        case KeyType.BYTES:
            return bytes.fromhex(text)
    raise ValueError(kind)
