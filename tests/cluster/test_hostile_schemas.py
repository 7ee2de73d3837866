"""Schemas of the largest size that is taken: refused precisely, and never at the cost of other callers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import grpc
import pytest

from cortado import errors
from cortado.proto.v1 import cluster_pb2, schemas_pb2
from support.grpc_errors import from_rpc_error
from support.server_process import ServerProcess, running_server, wait_until
from support.wire import Wire, refused

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("hostile") / "data") as server:
        yield server
        assert "Traceback" not in server.log, server.log


@pytest.fixture(scope="module")
def wire(server: ServerProcess) -> Wire:
    return Wire(server.endpoint)


def record(*fields: object) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def register(wire: Wire, subject: str, text: str) -> None:
    wire.schemas.Register(schemas_pb2.RegisterSchemaRequest(subject=subject, schema=text), timeout=60)


class _Other:
    """Another caller, who asks for the time all the while, and counts the answers."""

    def __init__(self, wire: Wire) -> None:
        self.answers = 0
        self._wire = wire
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> _Other:
        self._thread.start()
        wait_until(lambda: self.answers > 0, "the first answer comes")
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._stopped.is_set():
            self._wire.cluster.Clock(cluster_pb2.ClockRequest(), timeout=60)
            self.answers += 1


def enum(letter: str) -> str:
    symbols = [f"{letter}{n}" for n in range(25_000)]
    return record({"name": "e", "type": {"type": "enum", "name": "E", "symbols": symbols}})


def union(letter: str) -> str:
    branches = [{"type": "fixed", "name": f"{letter}{n}", "size": 4} for n in range(4_000)]
    return record({"name": "u", "type": branches})


def wide(letter: str) -> str:
    return record(*({"name": f"{letter}{'x' * 90}{n}", "type": "string"} for n in range(1_500)))


@pytest.mark.parametrize(
    ("make", "error"),
    [(enum, errors.IncompatibleSchema), (union, errors.InvalidSchema), (wide, errors.IncompatibleSchema)],
)
def test_the_largest_schemas_are_compared_beside_other_calls(wire: Wire, make: object, error: type[Exception]) -> None:
    assert callable(make)
    subject = make.__name__
    register(wire, subject, make("S"))
    with _Other(wire) as other:
        before = other.answers
        found = refused(lambda: register(wire, subject, make("T")))
        meanwhile = other.answers - before
    assert isinstance(found, error)
    # One answer may be on its way already, and one call may wait until the loop is free.
    assert meanwhile > 2
    assert len(wire.schemas.ListVersions(schemas_pb2.ListVersionsRequest(subject=subject)).versions) == 1


def test_versions_that_fill_more_than_a_message_come_in_pages(wire: Wire) -> None:
    for n in range(36):
        doc = "d" * 250_000
        text = json.dumps({"type": "record", "name": "R", "doc": doc, "fields": [{"name": f"f{n}", "type": "null"}]})
        if n == 0:
            register(wire, "long", text)
            mode = schemas_pb2.COMPATIBILITY_MODE_NONE
            wire.schemas.SetCompatibility(schemas_pb2.SetCompatibilityRequest(subject="long", mode=mode))
        else:
            register(wire, "long", text)
    request = schemas_pb2.ListVersionsRequest(subject="long")
    pages = []
    while not pages or request.page_token:
        reply = wire.schemas.ListVersions(request)
        pages.append([each.version for each in reply.versions])
        assert reply.ByteSize() < 2 << 20
        request.page_token = reply.next_page_token
    assert [version for page in pages for version in page] == list(range(1, 37))
    assert len(wire.schemas.ListVersions(schemas_pb2.ListVersionsRequest(subject="long", page_size=2)).versions) == 2
    token = wire.schemas.ListVersions(request).next_page_token
    other = schemas_pb2.ListVersionsRequest(subject="wide", page_token=token)
    assert isinstance(refused(lambda: wire.schemas.ListVersions(other)), errors.InvalidPageToken)
    assert wire.schemas.Get(schemas_pb2.GetSchemaRequest(subject="long", version=36)).version.version == 36


def test_bytes_that_are_no_message_end_the_call_and_nothing_else(wire: Wire) -> None:
    send = wire.channel.unary_unary("/cortado.v1.Documents/Get", request_serializer=bytes)
    with pytest.raises(grpc.RpcError) as ended:
        send(b"\xff" * 100, timeout=10)
    assert str(from_rpc_error(ended.value)) == "request: is no serialized cortado.v1.GetDocumentRequest"
    wire.cluster.Clock(cluster_pb2.ClockRequest(), timeout=10)
