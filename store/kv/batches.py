"""Batches of the key-value API: many operations, all or none of which happen.

A batch lies in columns, as it travels: its keys, its values, and, apart, the few operations that are deletes or have a
condition. One that only puts is evaluated by a handful of calls for all of it, without an object for each operation
and without a read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain

from cortado.errors import InvalidArgument, TooLarge
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_keys
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.operations import (
    DEFAULT_LIMITS,
    KvDelete,
    KvLimits,
    KvPut,
    KvWritten,
    check_value,
    key_for_people,
)
from cortado.store.kv.ranges import shown
from cortado.store.mvcc.evaluation import Condition, Evaluation, check_condition
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, get_in_pieces
from cortado.store.names import check_namespace


@dataclass(frozen=True, slots=True)
class KvBatch:
    """Operation ``i`` puts ``values[i]`` at ``keys[i]``, or deletes that key where ``i`` is among ``deletes``; its
    value is empty then. ``conditions[i]``, if there is one, must hold."""

    keys: Sequence[bytes]
    values: Sequence[bytes]
    deletes: AbstractSet[int] = frozenset()
    conditions: Mapping[int, Condition] = field(default_factory=dict)

    @classmethod
    def of(cls, operations: Sequence[KvPut | KvDelete]) -> KvBatch:
        """Operations in their order."""
        return cls(
            [each.key for each in operations],
            [each.value if isinstance(each, KvPut) else b"" for each in operations],
            {i for i, each in enumerate(operations) if isinstance(each, KvDelete)},
            {i: each.condition for i, each in enumerate(operations) if each.condition is not None},
        )


def evaluate_batch(
    reader: Reader, commit_ts: Timestamp, namespace: str, batch: KvBatch, limits: KvLimits = DEFAULT_LIMITS
) -> Evaluation:
    """All operations, or none; replies KvWritten. All conditions are checked against the state before the batch.

    Raises InvalidArgument (a key twice, no operations), KeyTooLong, TooLarge, ConditionFailed with the operation's row.
    """
    check_namespace(namespace)
    _check_size(batch, limits)
    logical_keys = _distinct_keys(namespace, batch.keys)
    if max(map(len, batch.values)) > limits.value_bytes_max:
        for i, value in enumerate(batch.values):
            check_value(value, f"operations[{i}].value", limits)
    if not batch.deletes and not batch.conditions:
        return Evaluation(Mutations(logical_keys, list(batch.values)), KvWritten(commit_ts))
    return Evaluation(_where_conditions_hold(reader, namespace, batch, logical_keys), KvWritten(commit_ts))


def check_operation_count(count: int, limits: KvLimits = DEFAULT_LIMITS) -> None:
    """Raises InvalidArgument, TooLarge."""
    count_max = limits.batch_operations_max
    if count == 0:
        raise InvalidArgument("operations", "must not be empty")
    if count > count_max:
        raise TooLarge("operations", f"must be at most {count_max}", str(count), count, count_max)


def _where_conditions_hold(
    reader: Reader, namespace: str, batch: KvBatch, logical_keys: Sequence[LogicalKey]
) -> Mutations:
    # A plain put needs no read; a delete of what is absent writes nothing.
    read = sorted(batch.deletes | batch.conditions.keys())
    versions = chain.from_iterable(get_in_pieces(reader, [logical_keys[i] for i in read]))
    absent = set()
    for i, version in zip(read, versions, strict=True):
        if i in batch.conditions:
            check_condition(batch.conditions[i], key_for_people(namespace, batch.keys[i]), version, row=i)
        if version is None:
            absent.add(i)
    mutations = Mutations()
    for i, (logical_key, value) in enumerate(zip(logical_keys, batch.values, strict=True)):
        if i not in batch.deletes:
            mutations.put(logical_key, value)
        elif i not in absent:
            mutations.delete(logical_key)
    return mutations


def _check_size(batch: KvBatch, limits: KvLimits) -> None:
    check_operation_count(len(batch.keys), limits)
    size_bytes = sum(map(len, batch.keys)) + sum(map(len, batch.values))
    if size_bytes > limits.batch_bytes_max:
        problem = f"must have at most {limits.batch_bytes_max} bytes of keys and values"
        raise TooLarge("operations", problem, f"{size_bytes} bytes", size_bytes, limits.batch_bytes_max)


def _distinct_keys(namespace: str, user_keys: Sequence[bytes]) -> list[LogicalKey]:
    if not all(user_keys) or len(set(user_keys)) < len(user_keys):
        # Something is to be refused, in the order of the operations.
        first: dict[bytes, int] = {}
        for i, key in enumerate(user_keys):
            if not key:
                raise InvalidArgument(f"operations[{i}].key", "must not be empty")
            earlier = first.setdefault(key, i)
            if earlier != i:
                problem = f"is the key of operation {earlier} too: a key may appear once"
                raise InvalidArgument(f"operations[{i}].key", problem, shown(key))
    return kv_keys(namespace, user_keys)
