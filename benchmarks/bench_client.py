"""The cost of a put and a get to the Python client, in processor time of its process.

A node alone runs in a process of its own. 64 callers share one client: tasks of one loop, of asyncio or of uvloop, or
threads. The rates are calls a second of the client's processor time. A slower node gets larger messages, and then each
call costs less. So compare two clients in turns, on the same machine.

    python -m benchmarks.bench_client
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import uvloop
from rich.console import Console

from benchmarks.bench_grpc import SCHEMA, serving
from benchmarks.report import Measurement, show
from cortado.store.client import AsyncClient, Client

TITLE: Final = "The client"
CALLERS: Final = 64
CALLS: Final = 4_000
ROUNDS: Final = 3
KEYS: Final = 10_000
VALUE_BYTES: Final = 200
TABLE: Final = "bench.readings"
ROW: Final = {
    "sensor": "sensor-1",
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "value": 0.5,
    "low": None,
    "high": 1.5,
    "count": 1,
    "unit": "celsius",
    "ok": True,
    "note": None,
}

Ask = Callable[[Any, Any, random.Random], Any]


def settings() -> str:
    """Return the load, for the table's head."""
    return (
        f"calls a second of the client's processor time; {CALLERS} callers, values of {VALUE_BYTES} bytes, "
        f"the best of {ROUNDS} rounds of {CALLS:,} calls"
    )


def run() -> list[Measurement]:
    """Measure everything; takes about a minute."""
    with tempfile.TemporaryDirectory(prefix="cortado-bench-") as directory, serving("cortado", directory) as address:
        _create_table(address)
        of_tasks = [
            Measurement(f"{name}, {CALLERS} tasks{on}", rate, "calls")
            for on, loop_run in (("", asyncio.run), (" on uvloop", uvloop.run))
            for name, rate in loop_run(_by_tasks(address)).items()
        ]
        return of_tasks + _by_threads(address)


def _create_table(address: str) -> None:
    with Client(address) as client:
        client.create_database("bench")
        client.schemas.register(TABLE, SCHEMA)
        client.create_table(TABLE, ["id"])


def _put(kv: Any, _table: Any, draw: random.Random) -> Any:
    return kv.put(b"%05d" % draw.randrange(KEYS), draw.randbytes(VALUE_BYTES))


def _get(kv: Any, _table: Any, draw: random.Random) -> Any:
    return kv.get(b"%05d" % draw.randrange(KEYS))


def _put_document(_kv: Any, table: Any, draw: random.Random) -> Any:
    return table.put({**ROW, "id": draw.randrange(KEYS)})


def _get_document(_kv: Any, table: Any, draw: random.Random) -> Any:
    return table.get(draw.randrange(KEYS))


ASKS: Final[dict[str, Ask]] = {
    "put": _put,
    "get": _get,
    "put of a document": _put_document,
    "get of a document": _get_document,
}


async def _by_tasks(address: str) -> dict[str, float]:
    async with AsyncClient(address) as client:
        kv, table = client.kv("bench"), client.table(TABLE)

        async def calls(seed: int, ask: Callable[[Any, Any, random.Random], Awaitable[Any]]) -> None:
            draw = random.Random(seed)
            for _ in range(CALLS // CALLERS):
                await ask(kv, table, draw)

        async def round_of(ask: Ask) -> float:
            began_s = time.process_time()
            await asyncio.gather(*(calls(seed, ask) for seed in range(CALLERS)))
            return CALLS / (time.process_time() - began_s)

        return {name: max([await round_of(ask) for _ in range(ROUNDS)]) for name, ask in ASKS.items()}


def _by_threads(address: str) -> list[Measurement]:
    with Client(address) as client:
        kv, table = client.kv("bench"), client.table(TABLE)

        def calls(seed: int, ask: Ask) -> None:
            draw = random.Random(seed)
            for _ in range(CALLS // CALLERS):
                ask(kv, table, draw)

        def round_of(ask: Ask) -> float:
            began_s = time.process_time()
            threads = [threading.Thread(target=calls, args=(seed, ask)) for seed in range(CALLERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return CALLS / (time.process_time() - began_s)

        return [
            Measurement(f"{name}, {CALLERS} threads", max(round_of(ask) for _ in range(ROUNDS)), "calls")
            for name, ask in ASKS.items()
        ]


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
