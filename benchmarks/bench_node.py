"""The processor time of calls in a whole node, from a message of calls to a message of replies.

A node alone over LMDB and log files on the disk; messages of 32 calls, two of them under way, as the client's shared
stream sends them. No gRPC, no peers: the messages are given to the service as those would give them. The time is that
of the process: its loop, and its log and storage threads. Each kind of call is asked both ways, in turns: with its
plain calls together, as runs, and each by itself.

    python -m benchmarks.bench_node [kinds]
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
import uvloop
from google.protobuf.message import Message
from rich.console import Console

from benchmarks.loop_holds import SCHEMA, created, running
from benchmarks.report import Measurement, show
from cortado.proto.v1 import calls_pb2, common_pb2, documents_pb2, kv_pb2, transactions_pb2
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import kv_keys, namespace_key
from cortado.store.observe.requests import Requests
from cortado.store.server.calls_service import CallsService
from cortado.store.server.convert import timestamp_message
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.runs.methods import run_methods
from cortado.store.server.serving import SWITCH_INTERVAL_S
from cortado.store.server.transactions_service import TransactionsService
from cortado.store.transactions.footprint import Footprint

TITLE: Final = "A node in one process"
CALLS: Final = 32
MESSAGES: Final = 80
ROUNDS: Final = 5
PUT_KEYS: Final = 1_000_000
_STRIDE: Final = 618_033
"""Between keys that follow one another: it has no divisor in common with ``PUT_KEYS``."""
GET_KEYS: Final = 10_000
VALUE_BYTES: Final = 200
_SCHEMA: Final = fastavro.parse_schema(SCHEMA)
_TABLE: Final = documents_pb2.TableName(database="bench", table="readings")


def settings() -> str:
    """Return one line for the table's head: data and method."""
    return (
        f"calls a second of processor time; values of {VALUE_BYTES} bytes, documents of five fields; messages of "
        f"{CALLS}, two under way, synced; medians of {ROUNDS} rounds of {MESSAGES * CALLS:,}, both ways in turns"
    )


def run(kinds: Sequence[str] = ()) -> list[Measurement]:
    """Measure everything, or some kinds; takes some seconds for each."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory(prefix="cortado-bench-") as name:
        return uvloop.run(_run(Path(name), kinds or list(KINDS)))


async def _run(path: Path, kinds: Sequence[str]) -> list[Measurement]:
    async with running(path) as host:
        asking = _Asking(host, await created(host, {}))
        ways = {"": _Stream(host, runs=False), ", as runs": _Stream(host, runs=True)}
        found = []
        for kind in kinds:
            rates: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(1 + ROUNDS):
                for way, stream in ways.items():
                    rates[way].append(await stream.round(asking, kind))
            found += [Measurement(kind + way, statistics.median(each[1:]), "calls") for way, each in rates.items()]
        for stream in ways.values():
            await stream.close()
        return found


class _Asking:
    """Makes requests."""

    def __init__(self, host: Host, schema_id: int) -> None:
        self._host = host
        self._schema_id = schema_id
        self._written = 0
        self.random = random.Random(1)

    def request_id(self) -> bytes:
        return bytes(self._host.process.clock.last) + os.urandom(8)

    def put(self) -> Message:
        key = b"put-%07d" % self.random.randrange(PUT_KEYS)
        return kv_pb2.KvPutRequest(
            namespace="bench", key=key, value=os.urandom(VALUE_BYTES), request_id=self.request_id()
        )

    def get(self) -> Message:
        return kv_pb2.KvGetRequest(namespace="bench", key=b"put-%07d" % self.random.randrange(GET_KEYS))

    def delete(self) -> Message:
        key = b"put-%07d" % self.random.randrange(PUT_KEYS)
        return kv_pb2.KvDeleteRequest(namespace="bench", key=key, request_id=self.request_id())

    def multi_get(self, count: int) -> Message:
        keys = [b"put-%07d" % self.random.randrange(GET_KEYS) for _ in range(count)]
        return kv_pb2.KvMultiGetRequest(namespace="bench", keys=keys, may_stop_early=True)

    def commit(self, count: int, *, reads: bool = False) -> Message:
        """A transaction that began just now and puts pairs, as the client sends it. No two write one key."""
        request = transactions_pb2.CommitRequest(
            start=timestamp_message(self._host.meta.read_ts()), request_id=self.request_id()
        )
        keys = []
        for _ in range(count):
            self._written = (self._written + _STRIDE) % PUT_KEYS
            keys.append(b"put-%07d" % self._written)
            put = request.operations.add().put_pair
            put.namespace, put.key, put.value = "bench", keys[-1], os.urandom(VALUE_BYTES)
        if reads:
            request.isolation = transactions_pb2.ISOLATION_SERIALIZABLE
            request.footprints.append(Footprint([namespace_key("bench"), *kv_keys("bench", keys, 0)]).encode())
        return request

    def put_document(self) -> Message:
        body, chance = BytesIO(), self.random
        row = {
            "id": chance.randrange(GET_KEYS),
            "sensor": f"sensor-{chance.randrange(999)}",
            "at": chance.randrange(1 << 50),
        }
        fastavro.schemaless_writer(body, _SCHEMA, {**row, "value": chance.random(), "note": "n" * 40})
        document = common_pb2.Document(schema_id=self._schema_id, avro=body.getvalue())
        return documents_pb2.PutDocumentRequest(table=_TABLE, document=document, request_id=self.request_id())

    def get_document(self) -> Message:
        part = common_pb2.Value(int64=self.random.randrange(GET_KEYS))
        return documents_pb2.GetDocumentRequest(table=_TABLE, key=common_pb2.Key(parts=[part]))


def _commit(count: int, *, reads: bool = False) -> tuple[str, Callable[[_Asking], Message]]:
    return "Transactions/Commit", partial(_Asking.commit, count=count, reads=reads)


KINDS: Final[dict[str, tuple[str, Callable[[_Asking], Message]]]] = {
    "put": ("KeyValue/Put", _Asking.put),
    "get": ("KeyValue/Get", _Asking.get),
    "delete": ("KeyValue/Delete", _Asking.delete),
    "document put": ("Documents/Put", _Asking.put_document),
    "document get": ("Documents/Get", _Asking.get_document),
    "multi get of 1": ("KeyValue/MultiGet", partial(_Asking.multi_get, count=1)),
    "multi get of 10": ("KeyValue/MultiGet", partial(_Asking.multi_get, count=10)),
    "commit of 1": _commit(1),
    "commit of 10": _commit(10),
    "commit of 1, validated": _commit(1, reads=True),
}


class _Stream:
    """One client's stream of calls."""

    def __init__(self, host: Host, *, runs: bool) -> None:
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._last_id = 0
        requests = Requests()
        services: list[tuple[Any, object]] = [
            (kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], KeyValueService(host)),
            (documents_pb2.DESCRIPTOR.services_by_name["Documents"], DocumentsService(host)),
            (transactions_pb2.DESCRIPTOR.services_by_name["Transactions"], TransactionsService(host)),
        ]
        service = CallsService(services, requests=requests, runs=run_methods(host, requests) if runs else {})
        self._replies = service.exchange(self._requests())

    async def round(self, asking: _Asking, kind: str) -> float:
        """Return calls a second of processor time."""
        began_s, unsent, left, under_way = time.process_time(), MESSAGES, MESSAGES * CALLS, 0
        asking_s = 0.0
        while left:
            while unsent and under_way <= CALLS:
                asked_s = time.thread_time()
                self._messages.put_nowait(self._message(asking, kind))
                asking_s += time.thread_time() - asked_s
                unsent -= 1
                under_way += CALLS
            replies = calls_pb2.ReplyBatch.FromString(await anext(self._replies)).replies
            assert not any(each.status for each in replies), replies[0].status
            left -= len(replies)
            under_way -= len(replies)
        return MESSAGES * CALLS / (time.process_time() - began_s - asking_s)

    async def close(self) -> None:
        self._messages.put_nowait(None)
        async for _ in self._replies:
            raise AssertionError("a reply that nobody waits for")

    async def _requests(self) -> AsyncIterator[calls_pb2.CallBatch]:
        while (message := await self._messages.get()) is not None:
            yield calls_pb2.CallBatch.FromString(message)

    def _message(self, asking: _Asking, kind: str) -> bytes:
        batch, (method, request_of) = calls_pb2.CallBatch(), KINDS[kind]
        for _ in range(CALLS):
            self._last_id += 1
            request = request_of(asking).SerializeToString()
            batch.calls.add(id=self._last_id, method=f"cortado.v1.{method}", request=request, timeout_ms=10_000)
        return batch.SerializeToString()


if __name__ == "__main__":
    show(TITLE, settings(), run(sys.argv[1:]), Console())
