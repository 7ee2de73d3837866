"""A call on the coalescing stream equals the unary call: the same reply, status, details and effect.

Against a real server, by raw stubs.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from cortado.errors import OutcomeUnknown, ResourceExhausted
from cortado.proto.v1 import (
    calls_pb2,
    calls_pb2_grpc,
    cluster_pb2,
    common_pb2,
    documents_pb2,
    kv_pb2,
    schemas_pb2,
    tables_pb2,
    transactions_pb2,
)
from cortado.store.client import Client
from cortado.store.client.blocking.drive import run
from cortado.store.client.request_ids import RANDOM_BYTES
from cortado.store.client.values import timestamp_of
from cortado.store.wire.rpc_errors import DETAILS_KEY
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process

_IDS = itertools.count(1)
_NUMBERS = itertools.count(1)


class Calls:
    """One stream of calls."""

    def __init__(self, endpoint: str) -> None:
        self.channel = grpc.insecure_channel(endpoint)
        self._outbox: SimpleQueue[calls_pb2.CallBatch | None] = SimpleQueue()
        stub = calls_pb2_grpc.CallsStub(self.channel)  # type: ignore[no-untyped-call]
        self._replies: Any = stub.Exchange(iter(self._outbox.get, None))

    def send(self, *calls: tuple[str, Message]) -> list[int]:
        """Sends these calls as one message, and returns their ids."""
        batch = calls_pb2.CallBatch(
            calls=[
                calls_pb2.Call(id=next(_IDS), method=f"cortado.v1.{name}", request=request.SerializeToString())
                for name, request in calls
            ]
        )
        self._outbox.put(batch)
        return [call.id for call in batch.calls]

    def receive(self, count: int) -> dict[int, calls_pb2.CallReply]:
        """The next replies, at least so many."""
        found: dict[int, calls_pb2.CallReply] = {}
        while len(found) < count:
            found |= {reply.id: reply for reply in next(self._replies).replies}
        return found

    def call(self, name: str, request: Message) -> calls_pb2.CallReply:
        [call_id] = self.send((name, request))
        return self.receive(1)[call_id]

    def close(self) -> None:
        self._outbox.put(None)
        self.channel.close()


@pytest.fixture
def calls(server: ServerProcess) -> Iterator[Calls]:
    opened = Calls(server.endpoint)
    yield opened
    opened.close()


def unary(channel: grpc.Channel, name: str, request: Message) -> calls_pb2.CallReply:
    """The outcome of the unary call, in the shape of a reply on the stream."""
    try:
        return calls_pb2.CallReply(reply=channel.unary_unary(f"/cortado.v1.{name}")(request.SerializeToString()))
    except grpc.RpcError as error:
        details = {item[0]: item[1] for item in error.trailing_metadata()}
        return calls_pb2.CallReply(status=details[DETAILS_KEY])


NAMESPACE = "calls"
KEY = common_pb2.Key(parts=[common_pb2.Value(int64=1)])
TABLE = documents_pb2.TableName(database="nowhere", table="t")
LATE = common_pb2.ReadAt(wall_ms=1 << 47)

# Each changes nothing that the other way would then see differently.
SAME = {
    "a key that is not there": ("KeyValue/Get", kv_pb2.KvGetRequest(namespace=NAMESPACE, key=b"nothing")),
    "a key that is there": ("KeyValue/Get", kv_pb2.KvGetRequest(namespace=NAMESPACE, key=b"there")),
    "a read in the future": ("KeyValue/Get", kv_pb2.KvGetRequest(namespace=NAMESPACE, key=b"k", at=LATE)),
    "a namespace that is no name": ("KeyValue/Put", kv_pb2.KvPutRequest(namespace="no name", key=b"k", value=b"v")),
    "a key that is too long": ("KeyValue/Put", kv_pb2.KvPutRequest(namespace=NAMESPACE, key=b"k" * 600)),
    "a condition that does not hold": (
        "KeyValue/Put",
        kv_pb2.KvPutRequest(namespace=NAMESPACE, key=b"there", condition=common_pb2.Condition(absent=True)),
    ),
    "a request id of a wrong length": (
        "KeyValue/Put",
        kv_pb2.KvPutRequest(namespace=NAMESPACE, key=b"k", request_id=b"short"),
    ),
    "an empty operation": ("Transactions/Commit", transactions_pb2.CommitRequest(operations=[{}])),
    "a database that is not there": ("Documents/Get", documents_pb2.GetDocumentRequest(table=TABLE, key=KEY)),
    "a schema that is none": ("Schemas/Check", schemas_pb2.CheckSchemaRequest(subject="s", schema="{")),
    "a subject that is not there": ("Schemas/ListVersions", schemas_pb2.ListVersionsRequest(subject="nothing")),
    "all databases": ("Tables/ListDatabases", tables_pb2.ListDatabasesRequest()),
    "a wrong epoch": ("Cluster/BumpEpoch", cluster_pb2.BumpEpochRequest(from_epoch=77)),
}


def without_time(outcome: calls_pb2.CallReply) -> calls_pb2.CallReply:
    """The outcome without its id, and without the server's clock, which goes on."""
    outcome = calls_pb2.CallReply(reply=outcome.reply, status=outcome.status)
    if b"TIMESTAMP_IN_FUTURE" in outcome.status:
        outcome.status = outcome.status[:64]
    return outcome


@pytest.mark.parametrize("what", SAME)
def test_an_outcome_is_the_same_byte_for_byte(client: Client, calls: Calls, what: str) -> None:
    client.kv(NAMESPACE).put(b"there", b"v")
    name, request = SAME[what]
    assert without_time(calls.call(name, request)) == without_time(unary(calls.channel, name, request))


def new_request_id(client: Client) -> bytes:
    connection = client._core._connection
    clock = run(connection.call(connection.stubs.cluster.Clock, cluster_pb2.ClockRequest(), timeout_s=5))
    return bytes(timestamp_of(clock.now)) + next(_NUMBERS).to_bytes(RANDOM_BYTES, "big")


@pytest.mark.parametrize("first", ["unary", "stream"])
def test_one_request_id_has_one_effect_whichever_way_it_comes(client: Client, calls: Calls, first: str) -> None:
    request = kv_pb2.KvPutRequest(
        namespace=NAMESPACE,
        key=b"once-" + first.encode(),
        value=b"v",
        condition=common_pb2.Condition(absent=True),
        request_id=new_request_id(client),
    )
    ways = [
        lambda: unary(calls.channel, "KeyValue/Put", request).reply,
        lambda: calls.call("KeyValue/Put", request).reply,
    ]
    outcomes = [way() for way in (ways if first == "unary" else reversed(ways))]
    assert outcomes[0] == outcomes[1] != b""


def test_a_batch_of_writes_is_stored_in_its_order(client: Client, calls: Calls) -> None:
    puts = [kv_pb2.KvPutRequest(namespace=NAMESPACE, key=b"same", value=b"%d" % number) for number in range(200)]
    ids = calls.send(*(("KeyValue/Put", put) for put in puts))
    replies = calls.receive(200)
    etags = [kv_pb2.KvPutResponse.FromString(replies[call_id].reply).etag for call_id in ids]
    parsed = [tuple(map(int, etag.split("."))) for etag in etags]
    assert parsed == sorted(parsed)
    assert len(set(parsed)) == 200
    found = client.kv(NAMESPACE).get(b"same")
    assert found is not None
    assert found.value == b"199"


def test_a_write_in_a_batch_is_seen_by_the_read_that_follows_its_answer(calls: Calls) -> None:
    for number in range(50):
        put = kv_pb2.KvPutRequest(namespace=NAMESPACE, key=b"seen", value=b"%d" % number)
        assert calls.call("KeyValue/Put", put).reply
        reply = calls.call("KeyValue/Get", kv_pb2.KvGetRequest(namespace=NAMESPACE, key=b"seen")).reply
        assert kv_pb2.KvGetResponse.FromString(reply).pair.value == b"%d" % number


def test_an_overloaded_server_refuses_calls_on_the_stream_as_it_refuses_others(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server:
        calls = Calls(server.endpoint)
        value = b"v" * 100_000
        puts = [kv_pb2.KvPutRequest(namespace="n", key=b"%d" % number, value=value) for number in range(400)]
        for start in range(0, 400, 40):
            calls.send(*(("KeyValue/Put", put) for put in puts[start : start + 40]))
        replies = calls.receive(400)
        refused = [reply for reply in replies.values() if reply.status]
        # Refusals carry a delay for the retry; everything else was stored.
        for reply in refused:
            assert b"RESOURCE_EXHAUSTED" in reply.status
        with Client(server.endpoint) as client:
            assert sum(1 for _ in client.kv("n").scan()) == 400 - len(refused)
        calls.close()


def test_a_stopped_server_ends_the_stream_when_it_has_answered(tmp_path: Path) -> None:
    """An open stream does not hold up a clean stop, and no caller is told a lie."""
    with running_server(tmp_path / "data") as server, Client(server.endpoint, timeout_s=1) as client:
        kv = client.kv("n")
        written: list[bytes] = []

        def put(thread: int) -> None:
            for number in range(10_000):
                key = b"%d-%d" % (thread, number)
                try:
                    kv.put(key, b"v")
                except Exception:
                    return
                written.append(key)

        with ThreadPoolExecutor(8) as pool:
            done = [pool.submit(put, thread) for thread in range(8)]
            wait_until(lambda: len(written) > 500, "writes are under way")
            assert server.stop() == 0
            for each in done:
                each.result()
        server.start()
        with Client(server.endpoint) as again:
            stored = {pair.key for pair in again.kv("n").scan()}
        assert set(written) <= stored
        assert len(stored) <= len(written) + 8


def test_merged_writes_outlive_a_crash_and_each_happens_once(tmp_path: Path) -> None:
    """Counters: each thread increments its own by compare-and-set, over a kill -9 of the server."""
    with (
        running_server(tmp_path / "data") as server,
        Client(server.endpoint, timeout_s=20) as client,
    ):
        kv = client.kv("n")
        progress = [0] * 8

        def count(thread: int) -> None:
            key = b"%d" % thread
            kv.put(key, b"0")
            for number in range(300):
                kv.put(key, b"%d" % (number + 1), if_value=b"%d" % number)
                progress[thread] += 1

        with ThreadPoolExecutor(8) as pool:
            done = [pool.submit(count, thread) for thread in range(8)]
            wait_until(lambda: sum(progress) > 300, "counting is under way")
            server.kill()
            server.start()
            for each in done:
                each.result()
        assert {pair.value for pair in kv.scan()} == {b"300"}


def test_calls_of_many_threads_are_not_refused_for_being_many(server: ServerProcess) -> None:
    with Client(server.endpoint, timeout_s=20) as client:
        kv = client.kv(NAMESPACE)
        refused: list[Exception] = []

        def work(thread: int) -> None:
            try:
                for number in range(20):
                    kv.put(b"many-%d" % thread, b"%d" % number)
            except (ResourceExhausted, OutcomeUnknown) as error:
                refused.append(error)

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(256)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert refused == []
        assert sum(1 for _ in kv.scan(prefix=b"many-")) == 256
