"""Evaluate reads and writes of single keys and whole ranges of the key-value API, as pure functions.

A key has 1 byte or more; encoded with its namespace, it must fit the engine. A value is any bytes, or empty. A pair's
etag is the timestamp of the commit that wrote it. Every operation is atomic: a refusal changes nothing. Batches:
:mod:`cortado.store.kv.batches`.

Each operation looks up in its read state which pairs a namespace's name means
(:mod:`cortado.store.catalog.namespaces`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from cortado.errors import InvalidArgument, TooLarge
from cortado.store.catalog.stored import generation_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.ranges import KEY_SHOWN_MAX, KvRange, logical_range, shown
from cortado.store.mvcc.evaluation import Condition, Evaluation, check_condition
from cortado.store.mvcc.expiry import NEVER, Expiry
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, get_in_pieces


@dataclass(frozen=True, slots=True)
class KvLimits:
    """The most that one request may hold; sizes in bytes. A larger request is refused with TooLarge.

    A batch's size counts its user keys and values. A range may be deleted at once if it holds at most
    ``delete_range_keys_max`` keys and their stored keys fit into a batch. Since all of it is read, its keys and values
    together must have at most ``delete_range_read_bytes_max``.
    """

    value_bytes_max: int = 1 << 20
    batch_bytes_max: int = 4 << 20
    delete_range_keys_max: int = 10_000
    delete_range_read_bytes_max: int = 64 << 20


DEFAULT_LIMITS: Final = KvLimits()
PIECE_BYTES: Final = 1 << 20
"""Bytes that one piece of a reply reads."""


@dataclass(frozen=True, slots=True)
class KvPair:
    """A live pair. ``etag`` is the timestamp of the commit that wrote it. The pair expires at the wall time
    ``expires_ms``, 0 for never; a scan does not fill it in."""

    key: bytes
    value: bytes
    etag: Timestamp
    expires_ms: int = 0


@dataclass(frozen=True, slots=True)
class KvPut:
    """Write ``value`` if ``condition`` holds."""

    key: bytes
    value: bytes
    condition: Condition | None = None
    expiry: Expiry = NEVER


@dataclass(frozen=True, slots=True)
class KvDelete:
    """Delete ``key`` if ``condition`` holds. An absent key stays absent."""

    key: bytes
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class KvAdd:
    """Add ``delta`` to the counter under ``key``; an absent counter is 0. The sum must stay in [min, max], and keeps
    the counter's expiry."""

    key: bytes
    delta: int
    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class KvCheck:
    """Change nothing; ``condition`` must hold of ``key``."""

    key: bytes
    condition: Condition


@dataclass(frozen=True, slots=True)
class KvWritten:
    """The reply of a put or a batch: the etag of everything it wrote."""

    etag: Timestamp


@dataclass(frozen=True, slots=True)
class KvDeleted:
    """The reply of a delete."""

    existed: bool


@dataclass(frozen=True, slots=True)
class KvRangeDeleted:
    """The reply of a range's deletion: how many keys it held."""

    deleted: int


def get(reader: Reader, namespace: str, key: bytes) -> KvPair | None:
    """Return the live pair, or None. Raises InvalidArgument, KeyTooLong."""
    version = reader.get(checked_key(namespace, key, generation_of(reader, namespace)))
    return None if version is None else KvPair(key, version.payload, version.ts, version.expires_ms)


def get_many(reader: Reader, namespace: str, keys: Sequence[bytes]) -> Iterator[KvPair | None]:
    """Yield :func:`get` of each key, in the order asked, read piece by piece. Errors name ``keys[i]``."""
    generation = generation_of(reader, namespace)
    logical_keys = [checked_key(namespace, key, generation, f"keys[{place}]") for place, key in enumerate(keys)]
    versions = chain.from_iterable(get_in_pieces(reader, logical_keys, max_bytes=PIECE_BYTES))
    return (
        None if version is None else KvPair(key, version.payload, version.ts, version.expires_ms)
        for key, version in zip(keys, versions, strict=True)
    )


def evaluate_put(
    reader: Reader, commit_ts: Timestamp, namespace: str, put: KvPut, limits: KvLimits = DEFAULT_LIMITS
) -> Evaluation:
    """Put a pair; reply KvWritten. Raises InvalidArgument, KeyTooLong, TooLarge, ConditionFailed."""
    logical_key = checked_key(namespace, put.key, generation_of(reader, namespace))
    check_value(put.value, "value", limits)
    if put.condition is not None:
        check_condition(put.condition, key_for_people(namespace, put.key), reader.get(logical_key))
    mutations = Mutations()
    mutations.put(logical_key, put.value, put.expiry.expires_ms(reader))
    return Evaluation(mutations, KvWritten(commit_ts))


def evaluate_delete(reader: Reader, namespace: str, delete: KvDelete) -> Evaluation:
    """Delete a key; reply KvDeleted. Raises InvalidArgument, KeyTooLong, ConditionFailed."""
    logical_key = checked_key(namespace, delete.key, generation_of(reader, namespace))
    version = reader.get(logical_key)
    check_condition(delete.condition, key_for_people(namespace, delete.key), version)
    mutations = Mutations()
    if version is not None:
        mutations.delete(logical_key)
    return Evaluation(mutations, KvDeleted(existed=version is not None))


def evaluate_delete_range(
    reader: Reader, namespace: str, within: KvRange, limits: KvLimits = DEFAULT_LIMITS
) -> Evaluation:
    """Delete every key in a range at once; reply KvRangeDeleted.

    Raises InvalidArgument, KeyTooLong, and TooLarge if the range holds more than one atomic deletion may.
    """
    start, end = logical_range(namespace, within, generation_of(reader, namespace))
    mutations = Mutations()
    key_bytes = read_bytes = 0
    for logical_key, version in reader.scan(start, end, limit=limits.delete_range_keys_max + 1):
        mutations.delete(logical_key)
        key_bytes += len(logical_key)
        read_bytes += len(logical_key) + len(version.payload)
        _check_range(len(mutations), limits.delete_range_keys_max, "keys")
        _check_range(key_bytes, limits.batch_bytes_max, "bytes of keys")
        _check_range(read_bytes, limits.delete_range_read_bytes_max, "bytes of keys and values")
    return Evaluation(mutations, KvRangeDeleted(len(mutations)))


def checked_key(namespace: str, key: bytes, generation: int, field: str = "key") -> LogicalKey:
    """Return the stored key. Raises InvalidArgument, KeyTooLong."""
    if not key:
        raise InvalidArgument(field, "must not be empty")
    return kv_key(namespace, key, generation)


def _check_range(size: int, limit: int, unit: str) -> None:
    if size > limit:
        problem = f"holds more than {limit} {unit}, the most that are deleted at once; nothing was deleted"
        raise TooLarge("range", problem, "", size, limit)


def check_value(value: bytes, field: str, limits: KvLimits) -> None:
    """Raise TooLarge, naming ``field``, if the value is too large."""
    length, limit = len(value), limits.value_bytes_max
    if length > limit:
        raise TooLarge(field, f"must have at most {limit} bytes", f"{length} bytes", length, limit)


def key_for_people(namespace: str, key: bytes) -> str:
    """Return a key's text for an error: the namespace and the beginning of the key."""
    return f"{namespace}/{shown(key)}" + ("..." if len(key) > KEY_SHOWN_MAX else "")
