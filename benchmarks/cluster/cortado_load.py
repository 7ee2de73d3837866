"""Callers of Cortado by its own client: tasks of one loop of uvloop, which share one ``AsyncClient``.

    python -m benchmarks.cluster.cortado_load WORKLOAD CALLERS ENDPOINT,...

For ``put``, ``get``, ``batch``, ``range``, ``range_overwritten`` and ``txn_...`` the tasks call for a while uncounted,
and ``ready`` is printed. Each line of standard input then asks for a round of that many seconds. ``counting`` is
printed when the round's own warm-up is over, and at its end the result, as a line of JSON. The end of the input ends it
all.

``fill`` writes the pairs of gets and ranges. ``failover`` puts, each task through a client of its own, until it is
ended, and prints for each acknowledged put when it began and ended (wall clock, nanoseconds).
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final

import uvloop

from benchmarks.cluster.callers import Caller, answer_rounds
from benchmarks.cluster.workloads import (
    BATCH_KEY,
    BATCH_PUTS,
    FAILOVER_KEY,
    HOT_KEYS,
    KEYS,
    NAMESPACE,
    OVERWRITES,
    OVERWRITTEN_KEY,
    PUT_KEY,
    RANGE_KEYS,
    STORED,
    STORED_KEY,
    VALUE_BYTES,
)
from cortado.store.client import AsyncClient, AsyncKeyValue, AsyncTransaction
from cortado.store.client.kv import Put

FILLERS: Final = 16
TIMEOUT_S: Final = 10.0
FAILOVER_TIMEOUT_S: Final = 30.0

Ask = Callable[[AsyncClient, AsyncKeyValue, random.Random], Awaitable[None]]
"""One call. Raises ValueError for a wrong answer."""


async def _put(_client: AsyncClient, kv: AsyncKeyValue, draw: random.Random) -> None:
    await kv.put(PUT_KEY % draw.randrange(KEYS), draw.randbytes(VALUE_BYTES))


async def _get(_client: AsyncClient, kv: AsyncKeyValue, draw: random.Random) -> None:
    pair = await kv.get(STORED_KEY % draw.randrange(STORED))
    if pair is None or len(pair.value) != VALUE_BYTES:
        raise ValueError(f"a wrong answer: {pair!r:.80}")


async def _batch(_client: AsyncClient, kv: AsyncKeyValue, draw: random.Random) -> None:
    order, value = draw.randrange(KEYS), draw.randbytes(VALUE_BYTES)
    await kv.batch([Put(BATCH_KEY % (order, line), value) for line in range(BATCH_PUTS)])


def _range_of(format_: bytes) -> Ask:
    async def ask(_client: AsyncClient, kv: AsyncKeyValue, draw: random.Random) -> None:
        start = draw.randrange(STORED - RANGE_KEYS)
        found = 0
        # By the page: a step of an asynchronous iterator costs more than a pair.
        async for page in kv._scan_pages(format_ % start, format_ % (start + RANGE_KEYS), limit=RANGE_KEYS):
            found += len(list(page))
        if found != RANGE_KEYS:
            raise ValueError(f"a wrong answer: {found} keys")

    return ask


def _transaction_of(count: int, *, hot: bool, among: int = KEYS) -> Ask:
    """Make calls that read ``count`` keys, of the first ``among``, and write them; begin again after a conflict."""

    async def ask(client: AsyncClient, _kv: AsyncKeyValue, draw: random.Random) -> None:
        keys, value = _distinct(count, draw, hot=hot, among=among), draw.randbytes(VALUE_BYTES)

        async def move(transaction: AsyncTransaction) -> None:
            kv = transaction.kv(NAMESPACE)
            await kv.get_many(keys)
            for key in keys:
                await kv.put(key, value)

        await client.run(move)

    return ask


def _distinct(count: int, draw: random.Random, *, hot: bool, among: int) -> list[bytes]:
    """Draw keys. A hot key is, with a hundredth's chance, one of a few that all callers want."""
    chosen: dict[bytes, None] = {}
    while len(chosen) < count:
        is_hot = hot and draw.randrange(100) == 0
        chosen[PUT_KEY % draw.randrange(HOT_KEYS if is_hot else among)] = None
    return list(chosen)


WORKLOADS: Final[dict[str, Ask]] = {
    "put": _put,
    "get": _get,
    "batch": _batch,
    "range": _range_of(STORED_KEY),
    "range_overwritten": _range_of(OVERWRITTEN_KEY),
    "txn_1": _transaction_of(1, hot=False),
    "txn_1_hot": _transaction_of(1, hot=True),
    "txn_10": _transaction_of(10, hot=False),
    "txn_10_hot": _transaction_of(10, hot=True),
    "txn_row": _transaction_of(1, hot=False, among=1),
}


async def rounds(endpoints: str, ask: Ask, count: int) -> None:
    async with AsyncClient(endpoints, timeout_s=TIMEOUT_S) as client:
        kv = client.kv(NAMESPACE)
        await answer_rounds([Caller(partial(ask, client, kv, random.Random(seed))) for seed in range(count)])


async def fill(endpoints: str) -> None:
    """Write the pairs of gets and ranges."""
    async with AsyncClient(endpoints, timeout_s=TIMEOUT_S) as client:
        kv = client.kv(NAMESPACE)
        for format_ in (STORED_KEY, *(OVERWRITTEN_KEY,) * (1 + OVERWRITES)):
            starts = iter(range(0, STORED, BATCH_PUTS))
            await asyncio.gather(*(_fill(kv, format_, starts) for _ in range(FILLERS)))


async def _fill(kv: AsyncKeyValue, format_: bytes, starts: Iterator[int]) -> None:
    for start in starts:
        await kv.batch([Put(format_ % number, bytes(VALUE_BYTES)) for number in range(start, start + BATCH_PUTS)])


async def failover(endpoints: str, count: int) -> None:
    # A connection for each: no caller waits for another one's call.
    await asyncio.gather(*(_put_for_ever(endpoints, number) for number in range(count)))


async def _put_for_ever(endpoints: str, number: int) -> None:
    async with AsyncClient(endpoints, timeout_s=FAILOVER_TIMEOUT_S) as client:
        kv, count = client.kv(NAMESPACE), 0
        while True:
            began_ns = time.time_ns()
            count += 1
            try:
                await kv.put(FAILOVER_KEY % (number, count), bytes(VALUE_BYTES))
            except Exception as error:
                print(f"a put failed: {error!r}", file=sys.stderr)
                await asyncio.sleep(0.01)
            else:
                print(began_ns, time.time_ns(), flush=True)


def main(workload: str, callers: int, endpoints: str) -> None:
    if workload == "fill":
        uvloop.run(fill(endpoints))
    elif workload == "failover":
        uvloop.run(failover(endpoints, callers))
    else:
        uvloop.run(rounds(endpoints, WORKLOADS[workload], callers))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
