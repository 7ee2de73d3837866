"""The basis of a transaction's operations while they are evaluated: the newest state, and the transaction's begin.

A refusal (a condition, a unique value, a document that is not there) rests on stored state. If the transaction could
have seen that, the refusal is final. If it was written after the transaction began, the transaction could not know, and
the refusal is a conflict: begun again, it may well succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, Never

from cortado.errors import ConditionFailed, CortadoError, InvalidArgument, ResourceExhausted, WriteConflict
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.decoded import NO_NAMES, KeyNames, shown_in_errors
from cortado.store.keys.keyspace import is_namespace_key, namespace_of
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Changed, Reader, Version

DECODING: Final = "decoding"
_NO_ROWS: Final[Mapping[LogicalKey, int]] = MappingProxyType({})

OWN: Timestamp = ZERO
"""The timestamp of the same transaction's earlier writes: no commit has it."""


def own_version(payload: bytes | None, expires_ms: int = 0) -> Version | None:
    """Return a transaction's own version of a key, None for a delete. It is there for the whole transaction, whenever
    it expires."""
    return None if payload is None else Version(OWN, payload, expires_ms)


def conflict_of(
    changed: Changed | None,
    start: Timestamp,
    kind: str,
    names: KeyNames = NO_NAMES,
    rows: Mapping[LogicalKey, int] = _NO_ROWS,
) -> None:
    """Raise WriteConflict if a key has changed since ``start``. ``names`` are the names of the keys' tables; ``rows``
    the places of the operations on the keys, from 0."""
    if changed is None:
        return
    shown = shown_in_errors(changed.key, names)
    if is_namespace_key(changed.key):
        kind, shown = "namespace", namespace_of(changed.key)
    raise WriteConflict(shown, str(start), str(changed.ts), row=rows.get(changed.key, 0), kind=kind)


class Origin:
    """The newest state, read through ``reader``, and the transaction's begin; ``start`` is None for one that rests on
    no earlier read."""

    def __init__(self, reader: Reader, start: Timestamp | None = None, decoded_bytes_max: int | None = None) -> None:
        """``decoded_bytes_max`` bounds the time: at most that many bytes of stored documents are decoded, or 256 times
        as many are read, which is that much quicker."""
        self.reader = reader
        self.start = start
        self._decoded_bytes_max = decoded_bytes_max
        self._decoded_bytes = 0

    def decode(self, size_bytes: int) -> None:
        """Count a stored document before it is decoded. Raises ResourceExhausted with the resource DECODING."""
        self._count(size_bytes)

    def read(self, live: Version | None) -> Version | None:
        """Count a version that was read, and return it. Raises as :meth:`decode`."""
        if live is not None:
            self._count(len(live.payload) >> 8)
        return live

    def _count(self, size_bytes: int) -> None:
        self._decoded_bytes += size_bytes
        limit = self._decoded_bytes_max
        if limit is not None and self._decoded_bytes > limit:
            problem = "what is stored there is too much to be read or decoded on the loop"
            raise ResourceExhausted(problem, resource=DECODING, limit=limit)

    def refuse(self, refusal: CortadoError, keys: Sequence[LogicalKey], show: Callable[[], str], row: int) -> Never:
        """Raise ``refusal``, which rests on the stored ``keys``, or a WriteConflict if one of them changed since the
        begin."""
        if self.start is not None:
            changed = self.reader.changed_since(keys, (), self.start)
            if changed is not None:
                raise WriteConflict(show(), str(self.start), str(changed.ts), row=row) from refusal
        raise refusal

    @contextmanager
    def resting_on(self, key: LogicalKey, show: Callable[[], str], row: int) -> Iterator[None]:
        """Treat refusals within as resting on the stored ``key``."""
        try:
            yield
        except (ConditionFailed, InvalidArgument) as refusal:
            self.refuse(refusal, [key], show, row)
