"""Spans of a call: under the caller's if it brought one, sampled as it says, with the parts of a write below."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from cortado.proto.v1 import kv_pb2
from cortado.store.observe.call import Call
from cortado.store.observe.measures import EntryTimes
from cortado.store.observe.requests import Ended
from cortado.store.observe.traceparent import parse_traceparent, trace_id_of
from cortado.store.observe.tracing import CallTracer
from support.observed import Written

pytestmark = pytest.mark.slow

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
NOW_NS = 1_763_643_600 * 10**9


def traced(ended: Ended, *, percent: int = 0) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    tracer = CallTracer(
        exporter,
        node_id="n1",
        cluster_id="c",
        percent=percent,
        node_now_ms=lambda: 2_000.0,
        chance=Random(1),
        wall_ns=lambda: NOW_NS,
    )
    tracer.ended(ended)
    tracer.shutdown()
    return list(exporter.get_finished_spans())


def put(traceparent: str = "", code: str = "OK", write: Written | None = None) -> Ended:
    call = Call("cortado.v1.KeyValue/Put", 0.0, traceparent)
    call.write = write
    return Ended(call, code, kv_pb2.KvPutRequest(namespace="cards", key=b"SECRETKEY", value=b"SECRETVALUE"), 30, 1.9)


def test_a_span_stands_under_the_callers_and_has_the_calls_times() -> None:
    (span,) = traced(put(f"00-{TRACE_ID}-{SPAN_ID}-01"))
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE_ID, SPAN_ID)
    assert (span.start_time, span.end_time) == (NOW_NS - 1_900_000_000, NOW_NS)
    assert span.attributes is not None
    assert span.attributes["rpc.method"] == "Put"
    assert span.attributes["cortado.namespace"] == "cards"
    assert span.resource.attributes["service.instance.id"] == "n1"
    assert "SECRET" not in span.to_json()


def test_the_parts_of_a_write_stand_below_its_call() -> None:
    write = Written(entry=EntryTimes(appended_ms=108.0, stored_ms=130.0, committed_ms=1_500.0))
    spans = {each.name: each for each in traced(put(f"00-{TRACE_ID}-{SPAN_ID}-01", write=write))}
    assert set(spans) == {"cortado.v1.KeyValue/Put", "queued", "batching", "commit", "fsync"}

    def parent_of(name: str) -> int:
        parent = spans[name].parent
        assert parent is not None
        return parent.span_id

    call = spans["cortado.v1.KeyValue/Put"].context.span_id
    assert {parent_of(name) for name in ("queued", "batching", "commit")} == {call}
    assert parent_of("fsync") == spans["commit"].context.span_id
    # 2,000 ms of the node are now.
    assert spans["commit"].start_time == NOW_NS - (2_000 - 108) * 1_000_000
    assert spans["commit"].end_time == NOW_NS - 500 * 1_000_000


def test_no_part_of_a_call_begins_before_it_though_its_end_was_read_a_moment_before() -> None:
    write = Written(entry=EntryTimes(appended_ms=108.0, stored_ms=130.0, committed_ms=1_500.0))
    late = put(f"00-{TRACE_ID}-{SPAN_ID}-01", write=write)
    late.seconds = 1.8995
    spans = {each.name: each for each in traced(late)}
    began_ns = spans["cortado.v1.KeyValue/Put"].start_time
    assert began_ns == spans["queued"].start_time == NOW_NS - 1_900_000_000


@pytest.mark.parametrize(
    ("traceparent", "percent", "is_recorded"),
    [
        (f"00-{TRACE_ID}-{SPAN_ID}-00", 100, False),
        (f"00-{TRACE_ID}-{SPAN_ID}-01", 0, True),
        ("", 0, False),
        ("", 100, True),
        ("nonsense", 100, True),
    ],
)
def test_the_caller_decides_and_chance_where_it_says_nothing(traceparent: str, percent: int, is_recorded: bool) -> None:
    assert bool(traced(put(traceparent), percent=percent)) == is_recorded


def test_a_call_that_failed_is_an_error_with_its_code() -> None:
    (span,) = traced(put(code="UNAVAILABLE"), percent=100)
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes["rpc.grpc.status_code"] == 14


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"00-{TRACE_ID.upper()}-{SPAN_ID}-01",
        f"00-{'0' * 32}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{'0' * 16}-01",
        f"ff-{TRACE_ID}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{SPAN_ID}-01-more",
        f"00-{TRACE_ID}-{SPAN_ID}",
    ],
)
def test_what_is_no_traceparent_is_as_if_nothing_was_sent(text: str) -> None:
    assert parse_traceparent(text) is None
    assert trace_id_of(text) == ""


def test_a_later_version_may_say_more() -> None:
    parent = parse_traceparent(f"01-{TRACE_ID}-{SPAN_ID}-03-more")
    assert parent is not None
    assert parent.is_sampled


def test_a_server_that_does_not_trace_imports_nothing_of_it() -> None:
    code = "import sys, cortado.store.server.serving; print('opentelemetry' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert shown.stdout.strip() == "False"


def test_without_the_extra_the_start_is_refused_with_what_to_install(tmp_path: Path) -> None:
    arguments = ["server", "--data-dir", str(tmp_path / "d"), "--listen", "127.0.0.1:0"]
    arguments += ["--trace-endpoint", "http://127.0.0.1:1"]
    code = (
        "import sys; sys.modules['opentelemetry'] = None; from cortado.store.cli.app import run; "
        f"sys.exit(run({arguments!r}))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/", timeout=60
    )
    assert shown.returncode == 2
    assert "pip install 'cortadodb[tracing]'" in shown.stderr
    assert "Traceback" not in shown.stderr
