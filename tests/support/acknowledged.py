"""The changes that a server has acknowledged: the list that a dumb twin needs to answer every read of that server.

A part of the twin is a :class:`History`: the history of a namespace of pairs, or of a table. :func:`fill` writes the
same keys and values for the same seed; only the timestamps differ between runs. The times in ``marks`` lie between the
writes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from cortado.store.client import Client, Index
from cortado.store.clock.timestamp import Timestamp

K = TypeVar("K", bytes, tuple[Any, ...])
V = TypeVar("V")
Row = Mapping[str, Any]

NAMESPACE = "n"
BY_ID, BY_NAME = "d.by_id", "e.by_name"
"""Two tables of rows: one with a plain and a unique index; one with a long key, which lies close to its index."""
TABLES: Mapping[str, Sequence[str]] = {BY_ID: ["id"], BY_NAME: ["name", "id"]}
INDEXES = {
    BY_ID: [Index("by_group", ["group"]), Index("by_label", ["label"], unique=True)],
    BY_NAME: [Index("by_group", ["group", "id"])],
}
_FIELDS = {"id": "long", "name": "string", "label": "string", "group": "long", "text": "string"}
ROW_SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": name, "type": its_type} for name, its_type in _FIELDS.items()],
}
GROUPS = range(4)


@dataclass(frozen=True, slots=True)
class Change(Generic[K, V]):
    """``value`` is None for a delete; its ``ts`` is then one between the deletion and the next write."""

    ts: Timestamp
    key: K
    value: V | None


@dataclass(slots=True)
class History(Generic[K, V]):
    """Changes in the order of their timestamps."""

    changes: list[Change[K, V]] = field(default_factory=list)

    def put(self, etag: str, key: K, value: V) -> None:
        self.changes.append(Change(Timestamp.parse(etag), key, value))

    def delete(self, ts: Timestamp, key: K) -> None:
        self.changes.append(Change(ts, key, None))

    def keys(self) -> list[K]:
        """Return all keys that were ever written, in order."""
        return sorted({change.key for change in self.changes})

    def at(self, ts: Timestamp | None) -> dict[K, tuple[V, str]]:
        """Return the value and the etag of each live key, as of ``ts`` or, for None, now."""
        state: dict[K, tuple[V, str]] = {}
        for change in self.changes:
            if ts is not None and change.ts > ts:
                break
            if change.value is None:
                state.pop(change.key, None)
            else:
                state[change.key] = (change.value, str(change.ts))
        return state

    def after(self, ts: Timestamp) -> list[tuple[K, V | None]]:
        return [(change.key, change.value) for change in self.changes if change.ts > ts]


@dataclass(slots=True)
class Acknowledged:
    pairs: History[bytes, bytes] = field(default_factory=History)
    rows: dict[str, History[tuple[Any, ...], Row]] = field(default_factory=lambda: {name: History() for name in TABLES})
    marks: list[Timestamp] = field(default_factory=list)


def key_of(table: str, row: Row) -> tuple[Any, ...]:
    return tuple(row[part] for part in TABLES[table])


def fill(client: Client, seed: int) -> Acknowledged:
    """Write some 50 pairs and 30 rows a table, a large one among them; then change and delete some, with a mark after
    each."""
    draw, acknowledged = random.Random(seed), Acknowledged()
    for table, key in TABLES.items():
        client.create_database(table.partition(".")[0])
        client.schemas.register(table, ROW_SCHEMA)
        client.create_table(table, key, indexes=INDEXES[table])
    for number in range(50):
        _put_pair(client, acknowledged, number, draw.randbytes(draw.choice((6, 40))))
    for number in range(30):
        for table in TABLES:
            _put_row(client, acknowledged, table, number, group=number % 4, text="t" * (9_000 if number == 7 else 30))
    acknowledged.marks.append(client.now())
    for _ in range(25):
        number = draw.randrange(55)
        if draw.random() < 0.3:
            pair_key = b"k%02d" % number
            if client.kv(NAMESPACE).delete(pair_key):
                acknowledged.pairs.delete(client.now(), pair_key)
        else:
            _put_pair(client, acknowledged, number, draw.randbytes(12))
    acknowledged.marks.append(client.now())
    for _ in range(30):
        table, number = draw.choice(list(TABLES)), draw.randrange(33)
        if draw.random() < 0.3:
            row_key = key_of(table, {"id": number, "name": f"n{number}"})
            if client.table(table).delete(row_key):
                acknowledged.rows[table].delete(client.now(), row_key)
        else:
            label = draw.choice((f"l{number}", f"m{number}"))
            _put_row(client, acknowledged, table, number, group=draw.choice(GROUPS), text="changed", label=label)
    acknowledged.marks.append(client.now())
    return acknowledged


def _put_pair(client: Client, acknowledged: Acknowledged, number: int, value: bytes) -> None:
    key = b"k%02d" % number
    acknowledged.pairs.put(client.kv(NAMESPACE).put(key, value), key, value)


def _put_row(
    client: Client, acknowledged: Acknowledged, table: str, number: int, *, group: int, text: str, label: str = ""
) -> None:
    row = {"id": number, "name": f"n{number}", "label": label or f"l{number}", "group": group, "text": text}
    acknowledged.rows[table].put(client.table(table).put(row), key_of(table, row), row)
