"""A real server sends its part of a trace to a collector: below the span of the application that called it."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk.trace import TracerProvider

from cortado.store.client import Client
from support.server_process import ServerProcess, running_server

pytestmark = pytest.mark.process

PARTS = {"queued", "batching", "commit", "fsync"}


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps the spans that it is sent."""

    def __init__(self) -> None:
        self.spans: queue.Queue[Any] = queue.Queue()

    def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.put(span)
        return trace_service_pb2.ExportTraceServiceResponse()

    def all_spans(self) -> list[Any]:
        return list(self.spans.queue)


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    made = Collector()
    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(made, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield made, f"http://127.0.0.1:{port}"
    server.stop(0)


@pytest.mark.parametrize("coalesce", [True, False], ids=["shared stream", "own call"])
def test_a_servers_spans_stand_below_the_applications(
    collector: tuple[Collector, str], tmp_path: Path, coalesce: bool
) -> None:
    kept, endpoint = collector
    server = ServerProcess(tmp_path / "data", "--trace-endpoint", endpoint, "--trace-percent", "0").start()
    with Client(server.endpoint, coalesce=coalesce) as client:
        client.kv("n").put(b"SECRETKEY", b"SECRETVALUE")
        with TracerProvider(shutdown_on_exit=False).get_tracer("tests").start_as_current_span("application") as span:
            client.kv("n").put(b"SECRETKEY", b"SECRETVALUE")
            caller = span.get_span_context()
    assert server.stop() == 0
    spans = {each.name: each for each in kept.all_spans() if each.trace_id.hex() == f"{caller.trace_id:032x}"}
    assert set(spans) == {"cortado.v1.KeyValue/Put"} | PARTS
    assert len(kept.all_spans()) == len(spans), "nothing is sampled but what the application asked for"
    call = spans["cortado.v1.KeyValue/Put"]
    assert call.parent_span_id.hex() == f"{caller.span_id:016x}"
    for name in PARTS:
        assert call.start_time_unix_nano <= spans[name].start_time_unix_nano <= spans[name].end_time_unix_nano
    assert spans["fsync"].parent_span_id == spans["commit"].span_id
    assert "SECRET" not in str(kept.all_spans())


def test_a_collector_that_is_not_there_disturbs_nobody(tmp_path: Path) -> None:
    options = ("--trace-endpoint", "http://127.0.0.1:1", "--trace-percent", "100")
    with running_server(tmp_path / "data", *options) as server:
        with Client(server.endpoint) as client:
            client.kv("n").put(b"k", b"v")
            assert client.kv("n").get(b"k") is not None
        assert server.stop() == 0
