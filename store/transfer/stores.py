"""The destinations of rows: a table by its bulk stream, a namespace by batches, or nowhere, for a rehearsal.

Each takes chunks as they are read, sends them, and returns once every row is acknowledged or refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from cortado.errors import Conflict, CortadoError, DidNotHappen
from cortado.schema.documents import decode_document
from cortado.store.client import KeyValue, Put, Table
from cortado.store.client.put_mode import PutMode
from cortado.store.client.values import Expires
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.transfer.pairs import PAIR_SCHEMA
from cortado.store.transfer.rows import RowChunk

REFUSED_KEPT_MAX: Final = 1_000
"""So many refused rows come with their reasons from one call: no more than that may be bad, or be sent at a time."""


_BATCH_PAIRS: Final = 1_000
_BATCH_BYTES: Final = 2 << 20


@dataclass(slots=True)
class Stored:
    """The result of storing rows: how many were written and refused; ``errors`` by their place among all rows, from
    0."""

    written: int = 0
    refused: int = 0
    errors: list[tuple[int, CortadoError]] = field(default_factory=list)
    ts: Timestamp = ZERO


class Store(Protocol):
    """A place for rows."""

    def store(self, chunks: Iterable[RowChunk]) -> Stored: ...


class TableStore:
    """A table."""

    def __init__(self, table: Table, mode: PutMode, expires: Expires = None) -> None:
        self._table = table
        self._mode: PutMode = mode
        self._expires = expires

    def store(self, chunks: Iterable[RowChunk]) -> Stored:
        """Raises OutcomeUnknown, and other errors that end a bulk load."""
        result = self._table.put_batches(map(_batch, chunks), mode=self._mode, expires=self._expires)
        errors = [(each.row, each.error) for each in result.errors]
        return Stored(result.written, result.refused, errors, result.ts)


def _batch(chunk: RowChunk) -> tuple[int, bytes, bytes]:
    return chunk.schema_id, chunk.data, chunk.lengths


class PairStore:
    """A namespace. Pairs go in batches, each one commit; a refused batch is halved until the bad pair is alone."""

    def __init__(self, kv: KeyValue, mode: PutMode, expires: Expires = None) -> None:
        self._kv = kv
        self._expires = expires
        self._if_absent = mode == "insert"
        self._if_present = mode == "replace"

    def store(self, chunks: Iterable[RowChunk]) -> Stored:
        """Raises OutcomeUnknown, and other errors that refuse no pair."""
        return self.put(body for chunk in chunks for body in chunk.bodies())

    def put(self, bodies: Iterable[bytes]) -> Stored:
        """Stores pairs out of their bodies, as :meth:`store` does."""
        stored = Stored()
        row = 0
        for puts in self._batches(bodies):
            self._write(row, puts, stored)
            row += len(puts)
        return stored

    def _batches(self, bodies: Iterable[bytes]) -> Iterator[list[Put]]:
        """Cut if a key comes again, too: a batch may hold it once, and the last one is to stay."""
        puts: list[Put] = []
        keys: set[bytes] = set()
        size = 0
        for body in bodies:
            pair = decode_document(PAIR_SCHEMA, body)
            if pair["key"] in keys or len(puts) == _BATCH_PAIRS or size + len(body) > _BATCH_BYTES:
                yield puts
                puts, keys, size = [], set(), 0
            keys.add(pair["key"])
            size += len(body)
            put = Put(pair["key"], pair["value"], self._if_absent, self._if_present, expires=self._expires)
            puts.append(put)
        if puts:
            yield puts

    def _write(self, row: int, puts: list[Put], stored: Stored) -> None:
        try:
            etag = self._kv.batch(puts)
        except (DidNotHappen, Conflict) as error:
            if len(puts) == 1:
                stored.refused += 1
                stored.errors.append((row, error))
                return
            half = len(puts) // 2
            self._write(row, puts[:half], stored)
            self._write(row + half, puts[half:], stored)
            return
        stored.written += len(puts)
        stored.ts = max(stored.ts, Timestamp.parse(etag))


class Nowhere:
    """Counts what would be sent."""

    def store(self, chunks: Iterable[RowChunk]) -> Stored:
        return Stored(sum(map(len, chunks)))
