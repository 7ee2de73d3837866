"""Callers of one workload, by one of the two ways: tasks of one loop, each with one call at a time.

    python -m benchmarks.http.load (http|grpc|fill) WORKLOAD CALLERS ADDRESS

They speak the protocol of :mod:`benchmarks.cluster.callers`. ``http``: a connection for each caller, kept, without a
library of HTTP: a request is one ready text, an answer is cut by its ``Content-Length`` and read as JSON, as an
application would. ``grpc``: all callers share one ``AsyncClient``, which merges their calls. Both run on uvloop.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, cast

import uvloop

from benchmarks.cluster.callers import Caller, answer_rounds
from benchmarks.http.workloads import (
    DATABASE,
    NAMESPACE,
    READINGS,
    SCHEMA,
    SENSORS,
    TABLE,
    VALUE_BYTES,
    pair_key,
    reading,
    sensor,
)
from cortado.store.client import AsyncClient, AsyncTable, Put

TIMEOUT_S: Final = 10.0
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "
_PATH: Final = "/v1/db/bench/readings"

Ask = Callable[[], Awaitable[None]]


# --- by HTTP -------------------------------------------------------------------------------------------------------


class HttpConnection(asyncio.Protocol):
    """One connection, one call at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the gateway closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(_HEAD_END)
        if not end:
            return
        length = int(head.partition(_LENGTH)[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        assert self._answer is not None
        self._received = body[length:]
        if head.startswith(b"HTTP/1.1 200"):
            self._answer.set_result(body[:length])
        else:
            self._answer.set_exception(ValueError(f"the gateway answered {head[:40]!r} {body[:200]!r}"))

    async def call(self, request: bytes) -> bytes:
        """Return the body of the answer. Raises ValueError for one that is no success, ConnectionError."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer


def http_call(workload: str, connection: HttpConnection, address: str, chance: random.Random) -> Ask:
    """Return a function that makes one call of the workload. It raises ValueError for a wrong answer."""

    def request(method: str, path: str, body: bytes = b"") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body

    async def document() -> None:
        of, number = chance.randrange(SENSORS), chance.randrange(READINGS)
        found = json.loads(await connection.call(request("GET", f"{_PATH}/{sensor(of)}/{number}")))
        check(found["sensor"] == sensor(of) and found["id"] == number, found)

    async def page() -> None:
        of = sensor(chance.randrange(SENSORS))
        found = json.loads(await connection.call(request("GET", f"{_PATH}/{of}?limit={READINGS}")))["elements"]
        check(len(found) == READINGS and found[-1]["value"]["sensor"] == of, found[-1:])

    async def pair() -> None:
        key = pair_key(chance.randrange(SENSORS * READINGS)).decode()
        found = await connection.call(request("GET", f"/v1/kv/{NAMESPACE}/{key}"))
        check(len(found) == VALUE_BYTES, found)

    async def put() -> None:
        of, number = chance.randrange(SENSORS), chance.randrange(READINGS)
        body = json.dumps(reading(of, number, chance.random())).encode()
        found = json.loads(await connection.call(request("PUT", f"{_PATH}/{sensor(of)}/{number}", body)))
        check("etag" in found, found)

    return {"document": document, "page": page, "pair": pair, "put": put}[workload]


def check(holds: bool, found: Any) -> None:
    """Raise ValueError if an answer is wrong."""
    if not holds:
        raise ValueError(f"a wrong answer: {found!r:.200}")


async def _by_http(workload: str, callers: int, address: str) -> None:
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    asks = []
    for seed in range(callers):
        _, connection = await loop.create_connection(HttpConnection, host, int(port))
        asks.append(http_call(workload, connection, address, random.Random(seed)))
    await answer_rounds([Caller(each) for each in asks])


# --- by gRPC -------------------------------------------------------------------------------------------------------


def grpc_call(workload: str, client: AsyncClient, chance: random.Random) -> Ask:
    """Return a function that makes one call of the workload. It raises ValueError for a wrong answer."""
    table, pairs = client.table(TABLE), client.kv(NAMESPACE)

    async def document() -> None:
        of, number = chance.randrange(SENSORS), chance.randrange(READINGS)
        found = await table.get((sensor(of), number))
        check(found is not None and found.value["id"] == number, found)

    async def page() -> None:
        of = sensor(chance.randrange(SENSORS))
        found = [each async for each in table.scan(prefix=of, limit=READINGS)]
        check(len(found) == READINGS and found[-1].value["sensor"] == of, found[-1:])

    async def pair() -> None:
        found = await pairs.get(pair_key(chance.randrange(SENSORS * READINGS)))
        check(found is not None and len(found.value) == VALUE_BYTES, found)

    return {"document": document, "page": page, "pair": pair, "put": partial(_put, table, chance)}[workload]


async def _put(table: AsyncTable, chance: random.Random) -> None:
    given = reading(chance.randrange(SENSORS), chance.randrange(READINGS), chance.random())
    await table.put(await table.codec.from_json(given))


async def _by_grpc(workload: str, callers: int, address: str) -> None:
    async with AsyncClient(address, timeout_s=TIMEOUT_S) as client:
        await answer_rounds([Caller(grpc_call(workload, client, random.Random(seed))) for seed in range(callers)])


async def fill(address: str) -> None:
    """Create the table and the namespace, and fill them."""
    async with AsyncClient(address, timeout_s=TIMEOUT_S) as client:
        await client.create_database(DATABASE)
        await client.schemas.register(TABLE, SCHEMA)
        await client.create_table(TABLE, ["sensor", "id"])
        rows = (reading(of, number, 0.5) for of in range(SENSORS) for number in range(READINGS))
        loaded = await client.table(TABLE).put_json(rows)
        check(loaded.written == SENSORS * READINGS, loaded)
        pairs = client.kv(NAMESPACE)
        for first in range(0, SENSORS * READINGS, 1_000):
            await pairs.batch([Put(pair_key(number), b"v" * VALUE_BYTES) for number in range(first, first + 1_000)])


def main(way: str, workload: str, callers: int, address: str) -> None:
    match way:
        case "http":
            uvloop.run(_by_http(workload, callers, address))
        case "grpc":
            uvloop.run(_by_grpc(workload, callers, address))
        case _:
            uvloop.run(fill(address))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
