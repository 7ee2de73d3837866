"""Calls take the application's span along, on either way to a server; without OpenTelemetry nothing is looked up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from cortado.proto.v1 import calls_pb2
from cortado.store.client.call_queue import CallQueue
from cortado.store.client.traces import trace_metadata, traceparent
from cortado.store.observe.traceparent import parse_traceparent


@pytest.fixture
def span() -> Iterator[Any]:
    with TracerProvider(shutdown_on_exit=False).get_tracer("tests").start_as_current_span("application") as current:
        yield current


def test_the_current_span_is_written_as_servers_read_it(span: Any) -> None:
    parent = parse_traceparent(traceparent())
    assert parent is not None
    assert (parent.trace_id, parent.span_id) == (span.get_span_context().trace_id, span.get_span_context().span_id)
    assert parent.is_sampled
    assert trace_metadata() == (("traceparent", traceparent()),)


def test_without_a_span_there_is_nothing() -> None:
    assert traceparent() == ""
    assert trace_metadata() is None


def test_a_call_on_the_shared_stream_carries_it(span: Any) -> None:
    _, encoded = CallQueue[Any]().encode("cortado.v1.KeyValue/Get", b"", 1.0)
    (call,) = calls_pb2.CallBatch.FromString(encoded).calls
    assert call.traceparent == traceparent() != ""


def test_the_client_imports_no_opentelemetry() -> None:
    code = "import sys, cortado; cortado.Client; from cortado.store.client.traces import traceparent; traceparent(); "
    code += "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert shown.stdout.strip() == "[]"
