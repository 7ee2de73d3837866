"""A history of documents and pairs, from a seed: the history that a backup has to restore, version by version."""

from __future__ import annotations

import random
from collections.abc import Callable

from cortado.store.backup.runs import decode_run
from cortado.store.client import Client
from cortado.store.client.backups import Wanted
from cortado.store.client.kv import Delete, Put
from cortado.store.client.tables import Index
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.archive import archived_ranges

SCHEMA = """{"type": "record", "name": "Item", "fields": [
  {"name": "id", "type": "long"}, {"name": "name", "type": "string"}, {"name": "left", "type": "long", "default": 0}
]}"""
TABLE = "shop.items"

Versions = set[tuple[bytes, bytes, bytes]]


class RandomHistory:
    """Writes of a seed, a step at a time."""

    def __init__(self, client: Client, seed: int) -> None:
        self._client = client
        self._random = random.Random(seed)
        self._tables = 0
        client.create_database("shop")
        client.schemas.register(TABLE, SCHEMA)
        client.create_table(
            TABLE, ["id"], indexes=[Index("by_name", ("name",)), Index("one_left", ("left", "id"), True)]
        )

    def step(self) -> None:
        """Make one write, of one key or of many."""
        draw, client = self._random, self._client
        steps: list[Callable[[], object]] = [self._put, self._put, self._update, self._delete, self._pairs, self._pairs]
        steps += [self._make_table] if self._tables < 6 else []
        steps += [self._drop_or_truncate, self._undrop] if self._others() else []
        draw.choice(steps)()
        if draw.random() < 0.05:
            client.kv("log").delete_range(b"k%d" % draw.randrange(20))

    def _row(self) -> dict[str, object]:
        number = self._random.randrange(30)
        return {"id": number, "name": f"name {self._random.randrange(8)}", "left": self._random.randrange(5)}

    def _put(self) -> None:
        self._client.table(TABLE).put_many(self._row() for _ in range(self._random.randrange(1, 12)))

    def _update(self) -> None:
        row = self._row()
        if self._client.table(TABLE).get((row["id"],)) is not None:
            self._client.table(TABLE).update((row["id"],), {"name": row["name"]})

    def _delete(self) -> None:
        self._client.table(TABLE).delete((self._row()["id"],))

    def _pairs(self) -> None:
        keys = {b"k%d" % self._random.randrange(40) for _ in range(6)}
        is_put = self._random.random() < 0.7
        self._client.kv("log").batch(
            [Put(key, self._random.randbytes(30)) if is_put else Delete(key) for key in sorted(keys)]
        )

    def _make_table(self) -> None:
        self._tables += 1
        name = f"shop.more_{self._tables}"
        self._client.create_table(name, ["id"], subject=TABLE, indexes=[Index("by_name", ("name",))])
        self._client.table(name).put_many(self._row() for _ in range(5))

    def _others(self) -> list[str]:
        return [each.full_name for each in self._client.tables("shop") if each.full_name != TABLE]

    def _drop_or_truncate(self) -> None:
        name = self._random.choice(self._others())
        if self._random.random() < 0.5:
            self._client.drop_table(name)
        else:
            self._client.truncate_table(name)

    def _undrop(self) -> None:
        dropped = [each for each in self._client.dropped() if each.kind == "table"]
        if dropped:
            self._client.undrop_table(dropped[-1].name, as_name=f"back_{dropped[-1].number}")


def versions_of(client: Client, at: Timestamp, since: Timestamp) -> Versions:
    """Return all versions above ``since``, up to ``at``: key, timestamp, kind and payload."""
    found: Versions = set()
    for start, end in archived_ranges():
        for body in client.admin.backups.read(start, end, Wanted(at, since, history=True)):
            run = decode_run(body, "a reply")
            found |= set(zip(run.keys, run.timestamps, run.values, strict=True))
    return found


def state_of(client: Client, at: Timestamp) -> Versions:
    """Return the version of every key that a read at ``at`` finds."""
    found: Versions = set()
    for start, end in archived_ranges():
        for body in client.admin.backups.read(start, end, Wanted(at)):
            run = decode_run(body, "a reply")
            found |= set(zip(run.keys, run.timestamps, run.values, strict=True))
    return found
