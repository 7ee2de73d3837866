"""Evaluate operations on pairs one after another, and keep each key's last value. The pairs' twin of
:mod:`cortado.store.tables.stage`.

A counter is a value of 8 bytes, signed and big-endian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cortado.errors import ConditionFailed, InvalidArgument, WriteConflict
from cortado.store.catalog.catalog import Catalog
from cortado.store.keys.keyspace import kv_keys
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.batches import KvBatch, check_batch
from cortado.store.kv.operations import (
    DEFAULT_LIMITS,
    KvAdd,
    KvCheck,
    KvDelete,
    KvLimits,
    KvPut,
    check_value,
    checked_key,
    key_for_people,
)
from cortado.store.mvcc.counting import INT64, add_within
from cortado.store.mvcc.evaluation import Condition, check_condition
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Version, get_in_pieces
from cortado.store.mvcc.transacting import Origin, own_version

COUNTER_BYTES = 8


class PairStage:
    """Every method takes ``row``, the operation's place, which errors name."""

    def __init__(self, origin: Origin, catalog: Catalog, limits: KvLimits = DEFAULT_LIMITS) -> None:
        """``catalog`` knows the transaction's beginning, and the generation of each namespace's name there (T15)."""
        self._origin = origin
        self._catalog = catalog
        self._reader = origin.reader
        self._limits = limits
        self._values: dict[LogicalKey, bytes | None] = {}
        self._expiries: dict[LogicalKey, int] = {}

    def mutations(self) -> Mutations:
        """Return the writes of all operations: each key once."""
        return Mutations(list(self._values), list(self._values.values()), self._expiries)

    def put(self, namespace: str, put: KvPut, row: int = 0) -> LogicalKey:
        """Put a pair. Raises InvalidArgument, KeyTooLong, TooLarge, ConditionFailed, WriteConflict."""
        key = checked_key(namespace, put.key, self._generation(namespace, row))
        check_value(put.value, "value", self._limits)
        if put.condition is not None:
            self._check(put.condition, key, namespace, put.key, self._live(key), row)
        self._put([key], [put.value], put.expiry.expires_ms(self._reader))
        return key

    def delete(self, namespace: str, delete: KvDelete, row: int = 0) -> LogicalKey:
        """Delete a key; an absent key is no error. Raises as :meth:`put`."""
        key = checked_key(namespace, delete.key, self._generation(namespace, row))
        live = self._live(key)
        if delete.condition is not None:
            self._check(delete.condition, key, namespace, delete.key, live, row)
        self._remove(key, is_live=live is not None)
        return key

    def add(self, namespace: str, add: KvAdd, row: int = 0) -> int:
        """Return the sum. Raises as :meth:`put`, OutOfBounds, and InvalidArgument if the value is no counter."""
        key = checked_key(namespace, add.key, self._generation(namespace, row))
        live = self._live(key)
        payload = bytes(COUNTER_BYTES) if live is None else live.payload
        shown = key_for_people(namespace, add.key)
        with self._origin.resting_on(key, lambda: shown, row):
            if len(payload) != COUNTER_BYTES:
                raise InvalidArgument("key", f"holds {len(payload)} bytes, a counter has {COUNTER_BYTES}", shown)
            value = int.from_bytes(payload, signed=True)
            total = add_within(value, add.delta, (add.min, add.max), INT64, shown, row)
        expires_ms = 0 if live is None else live.expires_ms
        self._put([key], [total.to_bytes(COUNTER_BYTES, signed=True)], expires_ms)
        return total

    def check(self, namespace: str, check: KvCheck, row: int = 0) -> None:
        """Check a condition. Raises InvalidArgument, KeyTooLong, ConditionFailed, WriteConflict."""
        key = checked_key(namespace, check.key, self._generation(namespace, row))
        self._check(check.condition, key, namespace, check.key, self._live(key), row)

    def batch(self, namespace: str, batch: KvBatch, row: int = 0) -> list[LogicalKey]:
        """Evaluate a batch in its order; if it only puts, in a handful of calls. Raises as its operations do."""
        generation = self._generation(namespace, row)
        check_batch(batch, self._limits, row)
        keys = kv_keys(namespace, batch.keys, generation)
        expires_ms = batch.expiry.expires_ms(self._reader)
        if not batch.deletes:
            self._put(keys, batch.values, expires_ms)
            return keys
        stored = self._stored_of([keys[i] for i in sorted(batch.deletes)])
        for i, (key, value) in enumerate(zip(keys, batch.values, strict=True)):
            if i not in batch.deletes:
                self._put([key], [value], expires_ms)
            else:
                self._remove(key, is_live=self._values[key] is not None if key in self._values else key in stored)
        return keys

    def _generation(self, namespace: str, row: int) -> int:
        """Return the name's generation at the transaction's beginning (T15). Raises InvalidArgument, WriteConflict."""
        try:
            return self._catalog.generation_of(namespace)
        except WriteConflict as conflict:
            raise replace(conflict, row=row) from None

    def _put(self, keys: Sequence[LogicalKey], values: Sequence[bytes], expires_ms: int) -> None:
        self._values.update(zip(keys, values, strict=True))
        if expires_ms:
            self._expiries.update(dict.fromkeys(keys, expires_ms))
        elif self._expiries:
            for key in keys:
                self._expiries.pop(key, None)

    def _stored_of(self, keys: Sequence[LogicalKey]) -> set[LogicalKey]:
        """Return the keys that are stored. Their values, perhaps gigabytes, are released piece by piece."""
        stored: set[LogicalKey] = set()
        place = 0
        for piece in get_in_pieces(self._reader, keys):
            found = zip(keys[place:], map(self._origin.read, piece), strict=False)
            stored.update([key for key, live in found if live is not None])
            place += len(piece)
        return stored

    def _live(self, key: LogicalKey) -> Version | None:
        if key in self._values:
            return own_version(self._values[key], self._expiries.get(key, 0))
        return self._origin.read(self._reader.get(key))

    def _remove(self, key: LogicalKey, *, is_live: bool) -> None:
        """Remove a live key. A key that only this transaction has put is forgotten, and nothing is written of it."""
        if not is_live:
            return
        if key in self._values and self._reader.get(key) is None:
            del self._values[key]
        else:
            self._values[key] = None
        self._expiries.pop(key, None)

    def _check(
        self,
        condition: Condition,
        key: LogicalKey,
        namespace: str,
        user_key: bytes,
        live: Version | None,
        row: int,
    ) -> None:
        try:
            check_condition(condition, key_for_people(namespace, user_key), live, row=row)
        except ConditionFailed as refusal:
            self._origin.refuse(refusal, [key], partial(key_for_people, namespace, user_key), row)
