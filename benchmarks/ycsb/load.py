"""Callers of one workload: tasks of one loop, which share one ``AsyncClient``.

    python -m benchmarks.ycsb.load WORKLOAD RECORDS CALLERS ENDPOINT,...

They speak the protocol of :mod:`benchmarks.cluster.callers`. ``fill`` in the place of a workload makes the table and
its records instead.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final

from benchmarks.cluster.callers import Caller, answer_rounds
from benchmarks.ycsb.draws import Draw, Latest, Scattered, scattered
from benchmarks.ycsb.workloads import (
    FIELD_BYTES,
    FIELDS,
    SCAN_ROWS_MAX,
    SCHEMA,
    TABLE,
    WORKLOADS,
    Operation,
    Workload,
)
from cortado.store.client import AsyncClient, AsyncTable

TIMEOUT_S: Final = 10.0
_DRAWS: Final[dict[str, Callable[[], Draw]]] = {"zipfian": Scattered, "latest": Latest}


def key(number: int) -> str:
    """Return the key of the record with that number; neighbours in key order are no neighbours in time."""
    return f"user{scattered(number)}"


def record(number: int, chance: random.Random) -> dict[str, Any]:
    return {"id": key(number), **{name: chance.randbytes(FIELD_BYTES) for name in FIELDS}}


class Records:
    """The number of records. All callers draw a new one once its insert, and each before it, is acknowledged."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._next = count
        self._ahead: set[int] = set()

    def begin(self) -> int:
        """Return the number of a new record."""
        self._next += 1
        return self._next - 1

    def acknowledged(self, number: int) -> None:
        self._ahead.add(number)
        while self.count in self._ahead:
            self._ahead.remove(self.count)
            self.count += 1


class Asking:
    """The operations of one workload. Raises ValueError for a wrong answer."""

    def __init__(self, table: AsyncTable[dict[str, Any]], workload: Workload, records: Records) -> None:
        self._table = table
        self._operations = list(workload.mix)
        self._weights = list(workload.mix.values())
        self._draw = _DRAWS[workload.draws]()
        self._records = records
        self._does: dict[Operation, Callable[[random.Random], Awaitable[None]]] = {
            "read": self._read,
            "update": self._update,
            "insert": self._insert,
            "scan": self._scan,
            "modify": self._modify,
        }

    async def one(self, chance: random.Random) -> None:
        """Make one operation of the mix."""
        (operation,) = chance.choices(self._operations, self._weights)
        await self._does[operation](chance)

    async def _read(self, chance: random.Random) -> None:
        await self._found(self._any(chance))

    async def _update(self, chance: random.Random) -> None:
        await self._table.update(self._any(chance), self._change(chance))

    async def _insert(self, chance: random.Random) -> None:
        number = self._records.begin()
        # A new record in this run; if another run of the workload has inserted it, it is written again.
        await self._table.put(record(number, chance))
        self._records.acknowledged(number)

    async def _scan(self, chance: random.Random) -> None:
        first, limit = self._any(chance), chance.randint(1, SCAN_ROWS_MAX)
        rows = [row.value["id"] async for row in self._table.scan((first,), limit=limit)]
        if not rows or rows[0] != first or rows != sorted(rows) or len(rows) > limit:
            raise ValueError(f"a wrong answer: {len(rows)} rows, of at most {limit} from {first}")

    async def _modify(self, chance: random.Random) -> None:
        name = self._any(chance)
        await self._found(name)
        await self._table.update(name, self._change(chance))

    async def _found(self, name: str) -> None:
        found = await self._table.get(name)
        if found is None or len(found.value) != 1 + len(FIELDS):
            raise ValueError(f"a wrong answer for {name}: {found!r:.80}")

    def _any(self, chance: random.Random) -> str:
        return key(self._draw(chance, self._records.count))

    def _change(self, chance: random.Random) -> dict[str, bytes]:
        return {chance.choice(FIELDS): chance.randbytes(FIELD_BYTES)}


async def rounds(workload: Workload, count: int, callers: int, endpoints: str) -> None:
    async with AsyncClient(endpoints, timeout_s=TIMEOUT_S) as client:
        asking = Asking(client.table(TABLE), workload, Records(count))
        await answer_rounds([Caller(partial(asking.one, random.Random(seed))) for seed in range(callers)])


async def fill(count: int, endpoints: str) -> None:
    """Create the table, and its first records."""
    chance = random.Random(0)
    async with AsyncClient(endpoints, timeout_s=TIMEOUT_S) as client:
        await client.create_database(TABLE.partition(".")[0])
        await client.schemas.register(TABLE, SCHEMA)
        await client.create_table(TABLE, ["id"])
        made: Iterator[dict[str, Any]] = (record(number, chance) for number in range(count))
        result = await client.table(TABLE).put_many(made)
        if result.written != count:
            raise RuntimeError(f"{result.written} of {count} records were stored")


def main(workload: str, count: int, callers: int, endpoints: str) -> None:
    if workload == "fill":
        asyncio.run(fill(count, endpoints))
    else:
        asyncio.run(rounds(next(each for each in WORKLOADS if each.name == workload), count, callers, endpoints))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
