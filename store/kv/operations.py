"""Writes of the key-value API, as pure evaluations: put, delete, delete a range, and batches of them.

A key is 1 byte or more in a namespace; with the namespace, encoded, it must fit the engine. A value is any bytes, the
empty ones too. A pair's etag is the timestamp of the commit that wrote it. Everything here is all or nothing: a
refusal changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from cortado.errors import InvalidArgument, TooLarge
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key, kv_keys
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.ranges import KvRange, logical_range
from cortado.store.mvcc.evaluation import Condition, Evaluation, check_condition
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.names import check_namespace

_KEY_SHOWN_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class KvLimits:
    """The most that one request may hold; sizes in bytes. Beyond it, a request is refused with TooLarge.

    A batch's size counts its user keys and values. A range is deleted at once where it holds at most
    ``delete_range_keys_max`` keys, their stored keys fit into a batch, and keys and values together have at most
    ``delete_range_read_bytes_max``, since all of it is read.
    """

    value_bytes_max: int = 1 << 20
    batch_bytes_max: int = 4 << 20
    batch_operations_max: int = 10_000
    delete_range_keys_max: int = 10_000
    delete_range_read_bytes_max: int = 64 << 20


DEFAULT_LIMITS: Final = KvLimits()


@dataclass(frozen=True, slots=True)
class KvPair:
    """A live pair. ``etag`` is the timestamp of the commit that wrote it."""

    key: bytes
    value: bytes
    etag: Timestamp


@dataclass(frozen=True, slots=True)
class KvPut:
    """Write ``value``, where ``condition`` holds."""

    key: bytes
    value: bytes
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class KvDelete:
    """Delete ``key``, where ``condition`` holds. An absent key stays absent."""

    key: bytes
    condition: Condition | None = None


KvOperation: TypeAlias = KvPut | KvDelete


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
    """The live pair, or None. Raises InvalidArgument, KeyTooLong."""
    version = reader.get(_logical_key(check_namespace(namespace), key, "key"))
    return None if version is None else KvPair(key, version.payload, version.ts)


def evaluate_put(
    reader: Reader, commit_ts: Timestamp, namespace: str, put: KvPut, limits: KvLimits = DEFAULT_LIMITS
) -> Evaluation:
    """Replies KvWritten. Raises InvalidArgument, KeyTooLong, TooLarge, ConditionFailed."""
    logical_key = _logical_key(check_namespace(namespace), put.key, "key")
    _check_value(put.value, "value", limits)
    if put.condition is not None:
        check_condition(put.condition, _for_people(namespace, put.key), reader.get(logical_key))
    mutations = Mutations()
    mutations.put(logical_key, put.value)
    return Evaluation(mutations, KvWritten(commit_ts))


def evaluate_delete(reader: Reader, namespace: str, delete: KvDelete) -> Evaluation:
    """Replies KvDeleted. Raises InvalidArgument, KeyTooLong, ConditionFailed."""
    logical_key = _logical_key(check_namespace(namespace), delete.key, "key")
    version = reader.get(logical_key)
    check_condition(delete.condition, _for_people(namespace, delete.key), version)
    mutations = Mutations()
    if version is not None:
        mutations.delete(logical_key)
    return Evaluation(mutations, KvDeleted(existed=version is not None))


def evaluate_delete_range(
    reader: Reader, namespace: str, within: KvRange, limits: KvLimits = DEFAULT_LIMITS
) -> Evaluation:
    """Delete every key in a range at once; replies KvRangeDeleted.

    Raises InvalidArgument, KeyTooLong, and TooLarge where the range holds more keys than are deleted atomically.
    """
    start, end = logical_range(check_namespace(namespace), within)
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


def evaluate_batch(
    reader: Reader,
    commit_ts: Timestamp,
    namespace: str,
    operations: Sequence[KvOperation],
    limits: KvLimits = DEFAULT_LIMITS,
) -> Evaluation:
    """All operations, or none; replies KvWritten. All conditions are checked against the state before the batch.

    Raises InvalidArgument (a key twice, no operations), KeyTooLong, TooLarge, ConditionFailed with the operation's row.
    """
    check_namespace(namespace)
    _check_batch_size(operations, limits)
    logical_keys = _distinct_keys(namespace, operations)
    # A plain put needs no read; a delete of what is absent writes nothing.
    read = [i for i, each in enumerate(operations) if each.condition is not None or isinstance(each, KvDelete)]
    versions = dict(zip(read, reader.get_many([logical_keys[i] for i in read]), strict=True))
    mutations = Mutations()
    value_bytes_max = limits.value_bytes_max
    for i, (logical_key, operation) in enumerate(zip(logical_keys, operations, strict=True)):
        if operation.condition is not None:
            check_condition(operation.condition, _for_people(namespace, operation.key), versions[i], row=i)
        if isinstance(operation, KvPut):
            if len(operation.value) > value_bytes_max:
                _check_value(operation.value, f"operations[{i}].value", limits)
            mutations.put(logical_key, operation.value)
        elif versions[i] is not None:
            mutations.delete(logical_key)
    return Evaluation(mutations, KvWritten(commit_ts))


def _logical_key(namespace: str, key: bytes, field: str) -> LogicalKey:
    if not key:
        raise InvalidArgument(field, "must not be empty")
    return kv_key(namespace, key)


def _distinct_keys(namespace: str, operations: Sequence[KvOperation]) -> list[LogicalKey]:
    user_keys = [each.key for each in operations]
    if all(user_keys) and len(set(user_keys)) == len(user_keys):
        return kv_keys(namespace, user_keys)
    # Something is to be refused, in the order of the operations.
    first: dict[LogicalKey, int] = {}
    for i, operation in enumerate(operations):
        logical_key = _logical_key(namespace, operation.key, f"operations[{i}].key")
        earlier = first.setdefault(logical_key, i)
        if earlier != i:
            problem = f"is the key of operation {earlier} too: a key may appear once"
            raise InvalidArgument(f"operations[{i}].key", problem, repr(operation.key[:_KEY_SHOWN_MAX]))
    return list(first)


def _check_batch_size(operations: Sequence[KvOperation], limits: KvLimits) -> None:
    count, count_max = len(operations), limits.batch_operations_max
    if count == 0:
        raise InvalidArgument("operations", "must not be empty")
    if count > count_max:
        raise TooLarge("operations", f"must be at most {count_max}", str(count), count, count_max)
    size_bytes = sum([len(each.key) + (len(each.value) if isinstance(each, KvPut) else 0) for each in operations])
    if size_bytes > limits.batch_bytes_max:
        problem = f"must have at most {limits.batch_bytes_max} bytes of keys and values"
        raise TooLarge("operations", problem, f"{size_bytes} bytes", size_bytes, limits.batch_bytes_max)


def _check_range(size: int, limit: int, unit: str) -> None:
    if size > limit:
        problem = f"holds more than {limit} {unit}, the most that are deleted at once; nothing was deleted"
        raise TooLarge("range", problem, "", size, limit)


def _check_value(value: bytes, field: str, limits: KvLimits) -> None:
    length, limit = len(value), limits.value_bytes_max
    if length > limit:
        raise TooLarge(field, f"must have at most {limit} bytes", f"{length} bytes", length, limit)


def _for_people(namespace: str, key: bytes) -> str:
    """A key in an error: the namespace and the beginning of the key."""
    shown = repr(key[:_KEY_SHOWN_MAX])
    return f"{namespace}/{shown}" + ("..." if len(key) > _KEY_SHOWN_MAX else "")
