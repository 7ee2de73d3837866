"""A message above the limit ends its call alike over both fronts, and is not sent again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from cortado.errors import CortadoError, TooLarge
from cortado.proto.v1 import calls_pb2, documents_pb2, kv_pb2, tables_pb2
from cortado.store.client import Client
from cortado.store.client.link import ends
from cortado.store.h2.grpc import percent_encoded
from cortado.store.server.config import MESSAGE_BYTES_MAX
from support.faces import FACES, open_client
from support.fronts import FRONTS
from support.gateway_process import gateway_process
from support.grpc_errors import from_rpc_error, was_answered
from support.server_process import ServerProcess, running_server
from support.wire import Wire, table_name

pytestmark = pytest.mark.process

FIELDS = ({"name": "id", "type": "long"}, {"name": "text", "type": "string"})
LARGE = bytes(9 << 20)
WAIT_S = 60.0


@pytest.fixture(scope="module", params=FRONTS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("large") / "data", "--front", request.param) as server:
        wire = Wire(server.endpoint)
        wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="db"))
        wire.register("db.t", *FIELDS)
        wire.create_table("db", "t", ["id"])
        yield server
        assert "Traceback" not in server.log, server.log


def small(number: int) -> bytes:
    request = kv_pb2.KvPutRequest(namespace="n", key=b"small", value=b"v")
    call = calls_pb2.Call(id=number, method="cortado.v1.KeyValue/Put", request=request.SerializeToString())
    return calls_pb2.CallBatch(calls=[call]).SerializeToString()


def start() -> bytes:
    return documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=table_name("db.t"))).SerializeToString()


SENT: dict[str, Callable[[grpc.Channel], object]] = {
    "a unary call": lambda channel: channel.unary_unary("/cortado.v1.KeyValue/Put")(LARGE, timeout=WAIT_S),
    "a call with many replies": lambda channel: list(
        channel.unary_stream("/cortado.v1.Documents/Scan")(LARGE, timeout=WAIT_S)
    ),
    "the first message of many": lambda channel: list(
        channel.stream_stream("/cortado.v1.Documents/Bulk")(iter([LARGE]), timeout=WAIT_S)
    ),
    "a later message of many": lambda channel: list(
        channel.stream_stream("/cortado.v1.Documents/Bulk")(iter([start(), LARGE]), timeout=WAIT_S)
    ),
    "calls of the shared stream": lambda channel: list(
        channel.stream_stream("/cortado.v1.Calls/Exchange")(iter([small(1), LARGE]), timeout=WAIT_S)
    ),
}


def error_after(server: ServerProcess, sent: str) -> tuple[grpc.StatusCode, CortadoError | None]:
    with grpc.insecure_channel(server.endpoint) as channel, pytest.raises(grpc.RpcError) as ended:
        SENT[sent](channel)
    message = percent_encoded(str(ended.value.details()))
    fields = {b"grpc-status": b"%d" % ended.value.code().value[0], b"grpc-message": message}
    failure = None if was_answered(ended.value) else ends.of_trailers(fields)
    return ended.value.code(), from_rpc_error(ended.value) if failure is None else failure.error


@pytest.mark.parametrize("sent", SENT)
def test_it_is_told_with_its_size_and_the_limit_and_as_final(server: ServerProcess, sent: str) -> None:
    code, error = error_after(server, sent)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert isinstance(error, TooLarge)
    assert (error.field, error.length, error.limit) == ("request", len(LARGE), MESSAGE_BYTES_MAX)
    assert str(error) == f"request: has {len(LARGE)} bytes, a message may have {MESSAGE_BYTES_MAX}: send less at a time"
    wire = Wire(server.endpoint)
    assert wire.kv.Put(kv_pb2.KvPutRequest(namespace="n", key=b"k", value=b"v"), timeout=WAIT_S).etag


@pytest.fixture(params=FACES)
def client(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, timeout_s=WAIT_S) as client:
        yield client


def refusal(call: Callable[[], object]) -> CortadoError:
    with pytest.raises(CortadoError) as refused:
        call()
    return refused.value


def test_the_client_does_not_send_it_again(client: Client) -> None:
    """A repetition would end as OutcomeUnknown or ResourceExhausted, at the deadline."""
    error = refusal(lambda: client.kv("n").put(b"k", LARGE))
    assert isinstance(error, TooLarge)
    assert error.limit == MESSAGE_BYTES_MAX
    assert client.kv("n").put(b"k", b"v")


def test_a_bulk_load_ends_with_it(client: Client) -> None:
    batch = (1, LARGE, len(LARGE).to_bytes(4, "little"))
    error = refusal(lambda: client.table("db.t").put_batches([batch]))
    assert isinstance(error, TooLarge)
    assert error.limit == MESSAGE_BYTES_MAX


def test_the_gateway_tells_it_as_too_large(server: ServerProcess, tmp_path: Path) -> None:
    body = bytes(MESSAGE_BYTES_MAX)
    head = (
        "PUT /v1/kv/n/k HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with gateway_process(server.endpoint, tmp_path) as gateway:
        answer = gateway.send(head.encode(), body)
    assert answer.status == 413
    problem = json.loads(answer.body)
    assert (problem["reason"], problem["limit"]) == ("TOO_LARGE", MESSAGE_BYTES_MAX)
