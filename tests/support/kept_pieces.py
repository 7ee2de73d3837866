"""Pieces that are kept of a table, without any content."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import row_range
from cortado.store.mvcc.kept import KeptPiece, KeptTable
from cortado.store.mvcc.store import VersionStore

TABLE = 65_537
START, END = row_range(TABLE, ())
PIECE_BYTES = 100


@dataclass(frozen=True, slots=True)
class EmptyPiece(KeptPiece):
    def with_those_of(self, other: EmptyPiece) -> EmptyPiece:
        return self


def opened(store: VersionStore, ts: Timestamp, table_id: int = TABLE) -> KeptTable | None:
    """Return the pieces for a second read of the table since its last write."""
    store.kept_table(table_id, b"reader", ts)
    return store.kept_table(table_id, b"reader", ts)


def keep(kept: KeptTable, ts: Timestamp) -> None:
    """Keep the whole table as one piece."""
    kept.keep(EmptyPiece(START, END, ts, frozenset(), PIECE_BYTES))


def is_found(kept: KeptTable, ts: Timestamp) -> bool:
    return kept.find(START, END, ts, frozenset())[0] is not None
