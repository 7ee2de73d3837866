"""The map of all keys. Nothing is stored outside of it, and nothing else builds a key.

Logical keys, in their order (names in quotes are bytes, ``u32`` is big-endian, parts are encoded by the codec; a table
id is the database's number, two bytes, and the table's within it, two bytes)::

    "k"  namespace  u32 generation  user key                    the key-value API: a string part, a bytes part
    "m"  name ...  01                                           catalogue and cluster state: string and int64 parts
    "s"  the part after "t" of a row's or an entry's key        a large transaction's staged value for that key
    "t"  u32 table id  "i"  u32 index id  values  [primary key] an index entry; the payload of a unique one is the
                                                                primary key's parts, of any other nothing
    "t"  u32 table id  "r"  primary key                         a row

So all tables of a database lie in one range of keys, and a decision for a range can be one for a database.

A namespace that was never dropped has the *generation* 0. Pairs that are written after a drop have another one, and so
never meet dropped pairs (:mod:`cortado.store.catalog.namespaces`).

The primary key stands in an index entry's key if the index is not unique, and in a unique one if any value is null:
null does not collide with null, as in SQL. A cluster key may have any number of names, so it has an end byte (01, below
every tag), which keeps it from being a prefix of a longer one.

A key on disk is followed by 12 bytes, its version's timestamp with every byte inverted. LMDB's limit for a key is
ENGINE_KEY_BYTES_MAX, so a logical key may have LOGICAL_KEY_BYTES_MAX; a longer one is refused here, where it is built.

A range is a pair ``(start, end)`` of logical keys, half-open. A bound of rows or of an index is a prefix of parts: as
lower it means "from the first key with this prefix", as upper "up to, not including, the first key with this prefix".
Nothing lies between the two if ``end <= start``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final

from cortado.errors import DataLoss, InvalidArgument, KeyTooLong
from cortado.store.keys.codec import (
    END_OF_TEXT,
    ESCAPED_ZERO,
    TAGS,
    decode_part,
    encode_part,
    encode_parts,
    end_of_parts,
    successor_of_prefix,
)
from cortado.store.keys.types import KeyPart, KeyType, KeyValue, LogicalKey

ENGINE_KEY_BYTES_MAX: Final = 511
VERSION_BYTES: Final = 12
LOGICAL_KEY_BYTES_MAX: Final = ENGINE_KEY_BYTES_MAX - VERSION_BYTES
ID_MAX: Final = (1 << 32) - 1
NUMBER_MAX: Final = (1 << 16) - 1
"""The largest number of a database, and of a table within its database."""

KV_SPACE: Final = b"k"
META_SPACE: Final = b"m"
STAGED_SPACE: Final = b"s"
TABLE_SPACE: Final = b"t"
META_END: Final = b"\x01"
_NAMESPACE: Final = "namespace"

_ROW = struct.Struct(">cIc")
_INDEX = struct.Struct(">cIcI")
ROW_PREFIX_BYTES: Final = _ROW.size
INDEX_PREFIX_BYTES: Final = _INDEX.size
GENERATION_BYTES: Final = 4
ROW_HEAD_BYTES: Final = 4
"""The head of a row's payload: the id of its schema, before the document."""
_BYTES_TAG: Final = bytes([TAGS[KeyType.BYTES]])
_ENDS: Final = {END_OF_TEXT}
_end_of: Final[Callable[[bytes], bytes]] = itemgetter(slice(-2, None))

KeyRange = tuple[LogicalKey, LogicalKey]


def check_key_length(key: bytes, what: str) -> None:
    """Raise KeyTooLong, with ``what`` as its field, if a logical key does not fit the engine."""
    if len(key) > LOGICAL_KEY_BYTES_MAX:
        raise KeyTooLong(
            field=what,
            problem=f"the encoded key has {len(key)} bytes, the limit is {LOGICAL_KEY_BYTES_MAX}",
            length=len(key),
            limit=LOGICAL_KEY_BYTES_MAX,
        )


def prefix_range(prefix: bytes) -> KeyRange:
    """Return all keys that begin with ``prefix``: whole parts behind the prefix of a row, an index or a space."""
    return LogicalKey(prefix), LogicalKey(successor_of_prefix(prefix))


# --- tables ----------------------------------------------------------------------------------------------------


def table_id_of(database_number: int, table_number: int) -> int:
    """Return a table's id: its database's number, from 1, above its own within the database, from 1."""
    for number, what in ((database_number, "database number"), (table_number, "table number")):
        if not 1 <= number <= NUMBER_MAX:
            raise InvalidArgument(what, f"must be between 1 and {NUMBER_MAX}", str(number))
    return database_number << 16 | table_number


def database_number_of(table_id: int) -> int:
    """Return the number of the table's database."""
    return table_id >> 16


def show_table_id(table_id: int) -> str:
    """Return both numbers of a table's id, such as ``3.7``: table 7 of database 3."""
    return f"{database_number_of(table_id)}.{table_id & NUMBER_MAX}"


def table_range(table_id: int) -> KeyRange:
    """Return all keys of a table: its rows, and the entries of all of its indexes."""
    return prefix_range(TABLE_SPACE + _checked_id(table_id, "table id").to_bytes(4, "big"))


def database_range(number: int) -> KeyRange:
    """Return all keys of a database's tables, those of dropped ones that are not cleared yet too."""
    return prefix_range(TABLE_SPACE + number.to_bytes(2, "big"))


# --- staged values ---------------------------------------------------------------------------------------------


def staged_key(key: LogicalKey) -> LogicalKey:
    """Return the key under which a value for ``key``, a row's or an entry's, is staged. It has the same length, and the
    same order."""
    return LogicalKey(STAGED_SPACE + key[len(TABLE_SPACE) :])


def staged_keys(keys: Sequence[LogicalKey]) -> list[LogicalKey]:
    """Return :func:`staged_key` of each."""
    return [LogicalKey(STAGED_SPACE + key[1:]) for key in keys]


def key_of_staged(staged: bytes) -> LogicalKey:
    """Return the inverse of :func:`staged_key`."""
    return LogicalKey(TABLE_SPACE + staged[len(STAGED_SPACE) :])


def staged_range(start: bytes, end: bytes) -> KeyRange:
    """Return the range of staged values for the keys of ``[start, end)``; an empty range if those are of no table."""
    first, behind = prefix_range(TABLE_SPACE)
    staged_behind = prefix_range(STAGED_SPACE)[1]
    if start >= behind or end <= first:
        return staged_behind, staged_behind
    return staged_key(LogicalKey(max(start, first))), staged_key(LogicalKey(end)) if end < behind else staged_behind


# --- rows ------------------------------------------------------------------------------------------------------


def row_prefix(table_id: int) -> bytes:
    """Return the prefix of every row's key of a table, ROW_PREFIX_BYTES long."""
    return _ROW.pack(TABLE_SPACE, _checked_id(table_id, "table id"), b"r")


def row_key(
    table_id: int, parts: Sequence[KeyPart], values: Sequence[KeyValue], *, what: str = "primary key"
) -> LogicalKey:
    """Return a row's key. Raises InvalidArgument for a missing, null or mistyped part, KeyTooLong with the field
    ``what``."""
    encoded = row_prefix(table_id) + encode_parts(values, parts)
    check_no_nulls(parts, values)
    check_key_length(encoded, what)
    return LogicalKey(encoded)


def check_no_nulls(parts: Sequence[KeyPart], values: Sequence[KeyValue]) -> None:
    """Raises InvalidArgument naming the first part of a primary key that is null."""
    for part, value in zip(parts, values, strict=True):
        if value is None:
            raise InvalidArgument(part.path, "must not be null in a primary key")


def primary_key_of(row: LogicalKey) -> bytes:
    """Return the encoded parts of a row's key, which index entries hold."""
    return row[ROW_PREFIX_BYTES:]


def row_range(
    table_id: int,
    parts: Sequence[KeyPart],
    lower: Sequence[KeyValue] | None = None,
    upper: Sequence[KeyValue] | None = None,
) -> KeyRange:
    """Return rows in ``[lower, upper)``, each a prefix of the primary key; None or no values leave that side open."""
    return _bounded(row_prefix(table_id), parts, lower, upper, "primary key")


# --- indexes ---------------------------------------------------------------------------------------------------


def index_prefix(table_id: int, index_id: int) -> bytes:
    """Return the prefix of every entry's key of an index, INDEX_PREFIX_BYTES long."""
    checked = _checked_id(table_id, "table id"), _checked_id(index_id, "index id")
    return _INDEX.pack(TABLE_SPACE, checked[0], b"i", checked[1])


def is_of_rows(key: bytes) -> bool:
    """Return whether it is the key of a row, or a bound of them."""
    return key[:1] == TABLE_SPACE and key[ROW_PREFIX_BYTES - 1 : ROW_PREFIX_BYTES] == b"r"


def is_of_index(key: bytes) -> bool:
    """Return whether it is the key of an index's entry, or a bound of them."""
    return key[:1] == TABLE_SPACE and key[ROW_PREFIX_BYTES - 1 : ROW_PREFIX_BYTES] == b"i"


def rows_beside(entry: bytes) -> bytes:
    """Return the prefix of the rows' keys in the table of an index entry."""
    return entry[: ROW_PREFIX_BYTES - 1] + b"r"


def index_key(
    table_id: int,
    index_id: int,
    parts: Sequence[KeyPart],
    values: Sequence[KeyValue],
    primary_key: bytes,
    *,
    unique: bool,
    what: str = "index",
) -> LogicalKey:
    """Return the key of one row's entry; ``primary_key`` is the row's, encoded. KeyTooLong names the index as
    ``what``."""
    encoded = index_prefix(table_id, index_id) + encode_parts(values, parts)
    if not unique or None in values:
        encoded += primary_key
    check_key_length(encoded, what)
    return LogicalKey(encoded)


def index_payload(values: Sequence[KeyValue], primary_key: bytes, *, unique: bool) -> bytes:
    """Return an entry's payload: in a unique index the encoded primary key, else nothing."""
    del values  # An entry with a null names its row twice, so that all entries of an index read alike.
    return primary_key if unique else b""


def index_range(
    table_id: int,
    index_id: int,
    parts: Sequence[KeyPart],
    lower: Sequence[KeyValue] | None = None,
    upper: Sequence[KeyValue] | None = None,
) -> KeyRange:
    """Entries in ``[lower, upper)``, each a prefix of the indexed parts; None or no values leave that side open."""
    return _bounded(index_prefix(table_id, index_id), parts, lower, upper, "index")


def primary_key_of_entry(entry: LogicalKey, payload: bytes, part_count: int, *, unique: bool) -> bytes:
    """Return the encoded primary key that an index entry points to. Raises DataLoss for a malformed entry."""
    primary_key = payload if unique else entry[end_of_parts(entry, part_count, INDEX_PREFIX_BYTES) :]
    if not primary_key:
        raise DataLoss("index entry", f"no primary key in {entry.hex()}")
    return primary_key


# --- the key-value API -----------------------------------------------------------------------------------------


def kv_key(namespace: str, user_key: bytes, generation: int = 0) -> LogicalKey:
    """Return the key of a pair. Raises InvalidArgument for an empty namespace, KeyTooLong for a long key."""
    start = _pairs_prefix(namespace, generation)
    key = LogicalKey(start + _BYTES_TAG + user_key.replace(b"\0", ESCAPED_ZERO) + END_OF_TEXT)
    if len(key) > LOGICAL_KEY_BYTES_MAX:
        check_key_length(key, "key")
    return key


def kv_range(
    namespace: str, start: bytes = b"", end: bytes = b"", prefix: bytes = b"", *, generation: int = 0
) -> KeyRange:
    """User keys in ``[start, end)``, or all that begin with ``prefix``. An empty ``end`` is the namespace's end.

    Raises InvalidArgument if a prefix comes with a start or an end.
    """
    if prefix and (start or end):
        raise InvalidArgument("range.prefix", "excludes start and end", repr(prefix))
    if prefix:
        start = prefix
        end = successor_of_prefix(prefix) if prefix.strip(b"\xff") else b""
    # A prefix is a range of user keys: bytes of an encoding's beginning would depend on how zeros are escaped.
    all_pairs = _pairs_prefix(namespace, generation)
    upper = kv_key(namespace, end, generation) if end else LogicalKey(successor_of_prefix(all_pairs))
    return kv_key(namespace, start, generation), upper


@lru_cache(maxsize=1_024)
def namespace_range(namespace: str) -> KeyRange:
    """Return the keys of all pairs of a namespace, of all of its generations."""
    return prefix_range(_namespace_prefix(namespace))


def namespaces_range() -> KeyRange:
    """Return the keys of all pairs."""
    return prefix_range(KV_SPACE)


def kv_keys(namespace: str, user_keys: Sequence[bytes], generation: int = 0) -> list[LogicalKey]:
    """Return :func:`kv_key` of each."""
    start = _pairs_prefix(namespace, generation) + _BYTES_TAG
    keys = [LogicalKey(start + each.replace(b"\0", ESCAPED_ZERO) + END_OF_TEXT) for each in user_keys]
    if keys and max(map(len, keys)) > LOGICAL_KEY_BYTES_MAX:
        for key in keys:
            check_key_length(key, "key")
    return keys


def user_keys_of(namespace: str, keys: Sequence[LogicalKey]) -> list[bytes]:
    """Return :func:`user_key_of` of each; all are keys of one generation of ``namespace``."""
    if not keys:
        return []
    start = beginning_of_user_keys(namespace, keys[0])
    skipped = len(start)
    if not (min(keys).startswith(start) and max(keys).startswith(start) and set(map(_end_of, keys)) == _ENDS):
        return list(map(user_key_of, keys))
    # Without a zero there is nothing to unescape, and the only end is the one at the end.
    parts = list(map(itemgetter(slice(skipped, -2)), keys))
    if 0 in b"".join(parts):
        return [part if 0 not in part else user_key_of(key) for part, key in zip(parts, keys, strict=True)]
    return parts


def beginning_of_user_keys(namespace: str, key: LogicalKey) -> bytes:
    """What ``key``, a pair's of ``namespace``, has before the text that is the user's key."""
    return key[: len(_namespace_prefix(namespace)) + GENERATION_BYTES] + _BYTES_TAG


def user_key_of(key: LogicalKey) -> bytes:
    """Return the user's bytes in the key of a pair. Raises DataLoss if ``key`` is not one."""
    return pair_of(key)[2]


def pair_of(key: bytes) -> tuple[str, int, bytes]:
    """Return namespace, generation and user key in the key of a pair. Raises DataLoss if ``key`` is not one."""
    if key[:1] == KV_SPACE:
        end = end_of_parts(key, 1, len(KV_SPACE))
        _, descending, namespace = decode_part(key[len(KV_SPACE) : end])
        found, _, user_key = decode_part(key[end + GENERATION_BYTES :])
        if found is KeyType.BYTES and isinstance(user_key, bytes) and isinstance(namespace, str) and not descending:
            return namespace, int.from_bytes(key[end : end + GENERATION_BYTES]), user_key
    raise DataLoss("key", f"not of the key-value API: {key.hex()}")


@lru_cache(maxsize=1_024)
def _pairs_prefix(namespace: str, generation: int) -> bytes:
    """Return the prefix of the keys of a namespace's pairs, in one of its generations."""
    return _namespace_prefix(namespace) + _checked_id(generation, "generation").to_bytes(GENERATION_BYTES)


@lru_cache(maxsize=1_024)
def _namespace_prefix(namespace: str) -> bytes:
    if namespace == "":
        raise InvalidArgument("namespace", "must not be empty")
    encoded = KV_SPACE + encode_part(namespace, KeyType.STRING, path="namespace")
    check_key_length(encoded, "namespace")
    return encoded


# --- catalogue and cluster state -------------------------------------------------------------------------------


def meta_key(*names: str | int) -> LogicalKey:
    """Return the key of a piece of catalogue or cluster state, such as ``meta_key("table", 7)``."""
    key = LogicalKey(_meta_prefix(names) + META_END)
    check_key_length(key, "/".join(map(str, names)))
    return key


def meta_range(*names: str | int) -> KeyRange:
    """Return all keys whose names begin with ``names``, the one with exactly these included."""
    return prefix_range(_meta_prefix(names))


def names_of(key: LogicalKey) -> tuple[str | int, ...]:
    """Return the names in a key of :func:`meta_key`. Raises DataLoss if ``key`` is not one."""
    names: list[str | int] = []
    start = len(META_SPACE)
    while key[start : start + 1] not in (META_END, b""):
        end = end_of_parts(key, 1, start)
        _, _, name = decode_part(key[start:end])
        if not isinstance(name, str | int):
            raise DataLoss("key", f"not a name at byte {start} of {key.hex()}")
        names.append(name)
        start = end
    if key[:1] != META_SPACE or key[start:] != META_END:
        raise DataLoss("key", f"not of the catalogue: {key.hex()}")
    return tuple(names)


@lru_cache(maxsize=1_024)
def namespace_key(namespace: str) -> LogicalKey:
    """Return the key that holds a namespace's current generation."""
    return meta_key(_NAMESPACE, namespace)


def is_namespace_key(key: bytes) -> bool:
    """Return whether it is one of :func:`namespace_key`, or looks like one."""
    return key.startswith(_meta_prefix((_NAMESPACE,)))


def namespace_of(key: LogicalKey) -> str:
    """Return the name in a key of :func:`namespace_key`. Raises DataLoss if ``key`` is not one."""
    names = names_of(key)
    if len(names) != 2 or not isinstance(names[1], str):
        raise DataLoss("key", f"not of a namespace: {key.hex()}")
    return names[1]


def _meta_prefix(names: Sequence[str | int]) -> bytes:
    encoded = [
        encode_part(name, KeyType.STRING if isinstance(name, str) else KeyType.INT64, path="name") for name in names
    ]
    return META_SPACE + b"".join(encoded)


# --- shared ----------------------------------------------------------------------------------------------------


def _bounded(
    prefix: bytes,
    parts: Sequence[KeyPart],
    lower: Sequence[KeyValue] | None,
    upper: Sequence[KeyValue] | None,
    what: str,
) -> KeyRange:
    start = prefix + _bound(lower, parts, "start") if lower else prefix
    end = prefix + _bound(upper, parts, "end") if upper else successor_of_prefix(prefix)
    for bound, side in ((start, "start"), (end, "end")):
        check_key_length(bound, f"{side} of the {what}")
    return LogicalKey(start), LogicalKey(end)


def _bound(values: Sequence[KeyValue], parts: Sequence[KeyPart], side: str) -> bytes:
    if len(values) > len(parts):
        names = ", ".join(part.path for part in parts)
        raise InvalidArgument(side, f"must have at most {len(parts)} parts: {names}", f"{len(values)} parts")
    return encode_parts(values, parts[: len(values)])


def _checked_id(number: int, what: str) -> int:
    if not 0 <= number <= ID_MAX:
        raise InvalidArgument(what, f"must be between 0 and {ID_MAX}", str(number))
    return number
