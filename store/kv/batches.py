"""Many puts and deletes of one namespace, in columns, as they travel.

If all operations are puts, a handful of calls evaluates them (:mod:`cortado.store.kv.stage`), without an object for
each and without a read.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from cortado.errors import InvalidArgument
from cortado.store.kv.operations import KvLimits, check_value
from cortado.store.mvcc.expiry import NEVER, Expiry


@dataclass(frozen=True, slots=True)
class KvBatch:
    """Operation ``i`` puts ``values[i]`` at ``keys[i]``. If ``i`` is among ``deletes``, it deletes that key, and its
    value is empty. All puts expire at one time."""

    keys: Sequence[bytes]
    values: Sequence[bytes]
    deletes: AbstractSet[int] = frozenset()
    expiry: Expiry = NEVER

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all keys and values."""
        return sum(map(len, self.keys)) + sum(map(len, self.values))


def check_batch(batch: KvBatch, limits: KvLimits, row: int = 0) -> None:
    """Raise InvalidArgument for an empty key, TooLarge for a value. Errors name ``[place]``, counted from ``row``."""
    if not all(batch.keys):
        place = next(i for i, key in enumerate(batch.keys) if not key)
        raise InvalidArgument(f"[{row + place}].key", "must not be empty")
    if max(map(len, batch.values), default=0) > limits.value_bytes_max:
        for i, value in enumerate(batch.values):
            check_value(value, f"[{row + i}].value", limits)
