"""The footprint that a read rests on: the keys that it looked up, found or not, and the ranges that it read whole.

A footprint goes to the client with the reply and comes back with the commit; only the server reads it. If nothing in it
has a newer version, the read would have the same answer, and the transaction's view holds (Kung and Robinson, *On
Optimistic Methods for Concurrency Control*, 1981: backward validation)::

    get            the row's key, or the pair's
    scan           the range, up to and with the last row looked at
    scan by index  the range of its entries, and the key of each row that they name, also where the filter left it out

    ... with own adds  also the key of each row that is added to, where that moves entries of the index

It also holds the id that each table's name stood for: rows of a table that was dropped, truncated or renamed did not
change, and could not be found there.

A limited scan's range ends behind its last row: a row that comes in behind it would not have been returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import InvalidArgument, TooLarge
from cortado.proto.internal import footprint_pb2
from cortado.store.keys.decoded import KeyNames
from cortado.store.keys.keyspace import KV_SPACE, LOGICAL_KEY_BYTES_MAX, TABLE_SPACE, is_namespace_key
from cortado.store.keys.names import split_table_name
from cortado.store.keys.packing import LENGTH_BYTES, cut, join
from cortado.store.keys.types import LogicalKey
from cortado.store.transactions.limits import LARGEST, TransactionLimits

FORMAT: Final = 2
TABLES_MAX: Final = 1_000
_ID_BYTES: Final = 4
_SPACES: Final = (KV_SPACE, TABLE_SPACE)

Range = tuple[LogicalKey, LogicalKey]


@dataclass(frozen=True, slots=True)
class TableRead:
    """The table that a name stood for."""

    database: str
    name: str
    table_id: int

    def encode(self) -> bytes:
        return self.table_id.to_bytes(_ID_BYTES, "little") + f"{self.database}.{self.name}".encode()

    @classmethod
    def decode(cls, encoded: bytes) -> TableRead:
        """Raises ValueError, InvalidArgument."""
        database, name = split_table_name(encoded[_ID_BYTES:].decode())
        return cls(database, name, int.from_bytes(encoded[:_ID_BYTES], "little"))


@dataclass(frozen=True, slots=True)
class Footprint:
    """``ranges`` are half-open."""

    keys: Sequence[LogicalKey] = ()
    ranges: Sequence[Range] = ()
    tables: Sequence[TableRead] = ()

    def __bool__(self) -> bool:
        return bool(self.keys or self.ranges or self.tables)

    @property
    def names(self) -> KeyNames:
        """Return the names that the tables had, to name their keys in errors."""
        return KeyNames({each.table_id: f"{each.database}.{each.name}" for each in self.tables})

    def encode(self) -> bytes:
        """Opaque bytes, for the reply."""
        keys, key_lengths = join(self.keys)
        bounds, bound_lengths = join([bound for each in self.ranges for bound in each])
        tables, table_lengths = join([each.encode() for each in self.tables])
        return footprint_pb2.Footprint(
            format=FORMAT,
            keys=keys,
            key_lengths=key_lengths,
            bounds=bounds,
            bound_lengths=bound_lengths,
            tables=tables,
            table_lengths=table_lengths,
        ).SerializeToString()


def join_footprints(encoded: Iterable[bytes], limits: TransactionLimits = LARGEST) -> Footprint:
    """Return all that several reads rest on, each thing once.

    Raises InvalidArgument; TooLarge above ``limits`` and TABLES_MAX.
    """
    keys: dict[LogicalKey, None] = {}
    ranges: dict[Range, None] = {}
    tables: dict[TableRead, None] = {}
    for place, each in enumerate(encoded):
        field = f"footprints[{place}]"
        found = _decode(each, field, limits)
        keys.update(dict.fromkeys(found.keys))
        ranges.update(dict.fromkeys(found.ranges))
        tables.update(dict.fromkeys(found.tables))
        _check_counts("footprints", len(keys), len(ranges), len(tables), limits)
    return Footprint(list(keys), list(ranges), list(tables))


def _check_counts(field: str, keys: int, ranges: int, tables: int, limits: TransactionLimits) -> None:
    for what, count, most in (
        ("keys", keys, limits.footprint_keys_max),
        ("ranges", ranges, limits.footprint_ranges_max),
        ("tables", tables, TABLES_MAX),
    ):
        if count > most:
            raise TooLarge(field, f"a transaction may rest on {most} {what}", str(count), count, most)


def _decode(encoded: bytes, field: str, limits: TransactionLimits) -> Footprint:
    try:
        message = footprint_pb2.Footprint.FromString(encoded)
        if message.format != FORMAT:
            raise InvalidArgument(field, f"has format {message.format}, this server knows {FORMAT}")
        ranges_count = len(message.bound_lengths) // LENGTH_BYTES // 2
        tables_count = len(message.table_lengths) // LENGTH_BYTES
        _check_counts(field, len(message.key_lengths) // LENGTH_BYTES, ranges_count, tables_count, limits)
        keys = cut(message.keys, message.key_lengths)
        bounds = cut(message.bounds, message.bound_lengths)
        packed = cut(message.tables, message.table_lengths)
    except (DecodeError, ValueError):
        raise InvalidArgument(field, "is no footprint that a read returned") from None
    if len(bounds) % 2 or not all(map(_is_read, keys)) or not all(map(_is_data, bounds[::2])):
        raise InvalidArgument(field, "is no footprint that a read returned")
    ranges = list(zip(map(LogicalKey, bounds[::2]), map(LogicalKey, bounds[1::2]), strict=True))
    if any(start > end or (start[:1] != end[:1] and end != _end_of(start)) for start, end in ranges):
        raise InvalidArgument(field, "is no footprint that a read returned")
    try:
        tables = list(map(TableRead.decode, packed))
    except (ValueError, InvalidArgument):
        raise InvalidArgument(field, "is no footprint that a read returned") from None
    return Footprint(list(map(LogicalKey, keys)), ranges, tables)


def _is_read(key: bytes) -> bool:
    """Return whether the key is of a row, an entry or a pair, or says which namespace a name stands for."""
    return _is_data(key) or (is_namespace_key(key) and len(key) <= LOGICAL_KEY_BYTES_MAX)


def _is_data(key: bytes) -> bool:
    return key[:1] in _SPACES and len(key) <= LOGICAL_KEY_BYTES_MAX


def _end_of(start: LogicalKey) -> bytes:
    """Return the end of the space that a range begins in."""
    return bytes([start[0] + 1])
