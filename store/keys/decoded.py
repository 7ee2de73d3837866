"""Any stored key taken apart: which space it is of, its ids, its typed parts, its timestamp.

:mod:`~cortado.store.keys.dump` makes a line of a key, for errors and logs; this makes a value, for tools. It knows all
spaces of the engine, not only that of versions; their first bytes tell them apart::

    "k" "m" "s" "t" ...                        versions: a pair, the catalogue, staged values, a row or an index entry
    segment 4 (below 6b000000), request id 20  the remembered result of a request
    "applied" group id 4                       the applied state
    "installing" group id 4                    the mark that the data is no state
    "log reset" group id 4                     how the log is to be reset after a snapshot was installed
    "joined"                                   the mark that the directory joined a cluster
    "log file" segment 8, offset 8             a place in a log file: no stored key, but damage there is named by one

The bytes are those of ``docs/formats``: keys, raft, node, data-directory.

Ids become names if a :class:`KeyNames` is at hand. Errors name a key to its writer by :func:`shown_in_errors`: by
database, table and key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from cortado.errors import DataLoss, InvalidArgument
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.codec import INVERTED, decode_part, end_of_parts
from cortado.store.keys.dump import show_value
from cortado.store.keys.groups import SEGMENT_BYTES
from cortado.store.keys.keyspace import (
    INDEX_PREFIX_BYTES,
    KV_SPACE,
    META_END,
    META_SPACE,
    ROW_PREFIX_BYTES,
    STAGED_SPACE,
    TABLE_SPACE,
    key_of_staged,
    pair_of,
    show_table_id,
)
from cortado.store.keys.types import KeyType, KeyValue, LogicalKey

REQUEST_ID_BYTES: Final = 20
_NUMBER_BYTES: Final = 8
_JOINED: Final = b"joined"
_LET_IN: Final = b"let in by"
_LOG_FILE: Final = b"log file"
_GROUP_MARK: Final = re.compile(rb"(applied|installing|log reset)(.{4})", re.DOTALL)


class KeyKind(StrEnum):
    """The kinds of stored keys."""

    ROW = "row"
    INDEX_ENTRY = "index entry"
    PAIR = "kv"
    CATALOG = "catalogue"
    STAGED = "staged"
    """A large transaction's value for a row, or for an index entry if there is an index's id."""
    LOG_FILE = "log file"
    REQUEST = "request"
    APPLIED = "applied state"
    INSTALLING = "installation mark"
    LOG_RESET = "log reset"
    JOINED = "joined mark"
    LET_IN = "who let it in"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DecodedPart:
    """One part; ``type`` is None for null, which is of no type."""

    type: KeyType | None
    descending: bool
    value: KeyValue

    def __str__(self) -> str:
        return show_value(self.value, self.type) + (" desc" if self.descending else "")


@dataclass(frozen=True, slots=True)
class KeyNames:
    """Names of tables by their ids, and of indexes by theirs and their table's."""

    tables: Mapping[int, str] = field(default_factory=dict)
    indexes: Mapping[tuple[int, int], str] = field(default_factory=dict)


NO_NAMES: Final = KeyNames()
_MARKS: Final = {b"applied": KeyKind.APPLIED, b"installing": KeyKind.INSTALLING, b"log reset": KeyKind.LOG_RESET}


def log_file_key(segment: int, offset: int) -> bytes:
    """How a place in a log file is named among stored keys."""
    return _LOG_FILE + segment.to_bytes(_NUMBER_BYTES) + offset.to_bytes(_NUMBER_BYTES)


@dataclass(frozen=True, slots=True)
class DecodedKey:
    """A key taken apart. A field that does not belong to its kind is None or empty.

    ``parts`` are all typed parts in their order: of a row the primary key, of an index entry the indexed values and, if
    it holds one, the primary key, of a pair the namespace and the user's key, of the catalogue the names.
    ``generation`` is the one of a pair's namespace. ``ts`` is the version's, or of a request's id its beginning.
    """

    kind: KeyKind
    key: bytes
    table_id: int | None = None
    index_id: int | None = None
    parts: tuple[DecodedPart, ...] = ()
    ts: Timestamp | None = None
    group_id: int | None = None
    log_segment: int | None = None
    request_segment: int | None = None
    offset: int | None = None
    request_id: bytes = b""
    generation: int | None = None

    def text(self, names: KeyNames = NO_NAMES) -> str:
        """Return one line, such as ``row shop.orders ("UA", 7) @0.1763643600000.2``."""
        parts = f"({', '.join(map(str, self.parts))})"
        match self.kind:
            case KeyKind.ROW:
                named = f"row {self._shown_table(names)} {parts}"
            case KeyKind.INDEX_ENTRY:
                named = f"index {self._shown_index(names)} {parts}"
            case KeyKind.STAGED if self.index_id is None:
                named = f"staged row {self._shown_table(names)} {parts}"
            case KeyKind.STAGED:
                named = f"staged index {self._shown_index(names)} {parts}"
            case KeyKind.PAIR:
                of_generation = f" {self.generation}" if self.generation else ""
                named = f"kv{of_generation} {parts}"
            case KeyKind.CATALOG:
                named = f"meta {parts}"
            case KeyKind.LOG_FILE:
                named = f"log file {self.log_segment:016d} byte {self.offset}"
            case KeyKind.REQUEST:
                return f"request {self.request_id.hex()} of segment {self.request_segment}"
            case KeyKind.APPLIED | KeyKind.INSTALLING | KeyKind.LOG_RESET:
                named = f"{self.kind} of group {self.group_id}"
            case KeyKind.JOINED | KeyKind.LET_IN:
                named = str(self.kind)
            case KeyKind.UNKNOWN:
                named = f"raw {self.key.hex()}"
        return named if self.ts is None else f"{named} @{self.ts}"

    def table_name(self, names: KeyNames) -> str:
        """Return ``database.table``; empty if it is not known."""
        return "" if self.table_id is None else names.tables.get(self.table_id, "")

    def index_name(self, names: KeyNames) -> str:
        """Return the index's own name; empty if it is not known."""
        if self.table_id is None or self.index_id is None:
            return ""
        return names.indexes.get((self.table_id, self.index_id), "")

    def _shown_index(self, names: KeyNames) -> str:
        table, index = self.table_name(names), self.index_name(names)
        return f"{table}.{index}" if table and index else f"{self._shown_table(names)}/{self.index_id}"

    def _shown_table(self, names: KeyNames) -> str:
        """Return the table's name, or else its id, such as ``3.7``."""
        return self.table_name(names) or show_table_id(self.table_id or 0)


def decode_key(key: bytes) -> DecodedKey:
    """Take any stored key apart, with its timestamp or without. Never raises: a key of no known kind is UNKNOWN."""
    for decode in (_decode_other_space, _decode_logical, _decode_version):
        try:
            found = decode(key)
        except (DataLoss, InvalidArgument):
            continue
        if found is not None:
            return found
    return DecodedKey(KeyKind.UNKNOWN, key)


def shown_in_errors(key: LogicalKey, names: KeyNames = NO_NAMES) -> str:
    """Return a row as ``shop.orders("UA", 7)`` if its table's name is known; any other key as
    :meth:`DecodedKey.text`."""
    decoded = decode_key(key)
    table = decoded.table_name(names)
    if decoded.kind is not KeyKind.ROW or not table:
        return decoded.text(names)
    return f"{table}({', '.join(show_value(part.value, part.type) for part in decoded.parts)})"


def _decode_other_space(key: bytes) -> DecodedKey | None:
    if key == _JOINED:
        return DecodedKey(KeyKind.JOINED, key)
    if key == _LET_IN:
        return DecodedKey(KeyKind.LET_IN, key)
    if (mark := _GROUP_MARK.fullmatch(key)) is not None:
        return DecodedKey(_MARKS[mark[1]], key, group_id=int.from_bytes(mark[2]))
    if key.startswith(_LOG_FILE) and len(key) == len(_LOG_FILE) + 2 * _NUMBER_BYTES:
        segment, offset = key[-2 * _NUMBER_BYTES : -_NUMBER_BYTES], key[-_NUMBER_BYTES:]
        return DecodedKey(KeyKind.LOG_FILE, key, log_segment=int.from_bytes(segment), offset=int.from_bytes(offset))
    if key[:1] >= KV_SPACE:
        return None
    segment, rest = key[:SEGMENT_BYTES], key[SEGMENT_BYTES:]
    if len(rest) == REQUEST_ID_BYTES:
        ts = Timestamp.from_bytes(rest[:TIMESTAMP_BYTES])
        return DecodedKey(KeyKind.REQUEST, key, ts=ts, request_segment=int.from_bytes(segment), request_id=rest)
    return None


def _decode_version(key: bytes) -> DecodedKey:
    ts = Timestamp.from_bytes(key[-TIMESTAMP_BYTES:].translate(INVERTED))
    return _decode_logical(key[:-TIMESTAMP_BYTES], key, ts)


def _decode_logical(key: bytes, whole: bytes | None = None, ts: Timestamp | None = None) -> DecodedKey:
    whole = key if whole is None else whole
    if key[:1] == KV_SPACE:
        namespace, generation, user_key = pair_of(key)
        named = DecodedPart(KeyType.STRING, False, namespace), DecodedPart(KeyType.BYTES, False, user_key)
        return DecodedKey(KeyKind.PAIR, whole, parts=named, ts=ts, generation=generation)
    if key[:1] == META_SPACE and key[-1:] == META_END:
        return DecodedKey(KeyKind.CATALOG, whole, parts=_parts(key[1:-1]), ts=ts)
    table_id = int.from_bytes(key[1:5])
    if key[:1] == TABLE_SPACE and key[5:6] == b"r":
        return DecodedKey(KeyKind.ROW, whole, table_id, parts=_parts(key[ROW_PREFIX_BYTES:]), ts=ts)
    if key[:1] == TABLE_SPACE and key[5:6] == b"i" and len(key) >= INDEX_PREFIX_BYTES:
        index_id = int.from_bytes(key[6:INDEX_PREFIX_BYTES])
        return DecodedKey(KeyKind.INDEX_ENTRY, whole, table_id, index_id, parts=_parts(key[INDEX_PREFIX_BYTES:]), ts=ts)
    if key[:1] == STAGED_SPACE:
        return replace(_decode_logical(key_of_staged(key), whole, ts), kind=KeyKind.STAGED)
    raise DataLoss("key", "of no known space")


def _parts(encoded: bytes) -> tuple[DecodedPart, ...]:
    found: list[DecodedPart] = []
    start = 0
    while start < len(encoded):
        end = end_of_parts(encoded, 1, start)
        found.append(DecodedPart(*decode_part(encoded[start:end])))
        start = end
    return tuple(found)
