"""Calls as OpenTelemetry spans, sent to a collector. Imported if ``trace-endpoint`` names one, and never else.

::

    the caller's span, if its call brought a traceparent
      └─ cortado.v1.KeyValue/Put         server, from the request to the reply
           └─ queued, batching, commit   the stages of a write (:mod:`cortado.store.observe.stages`)

A span is made when its call is over, from times that the node keeps anyway. An unsampled call costs a look at the
caller's flag, and nothing hot knows of traces. If the caller says whether it records, that decides; of the other calls
a percentage is sampled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Final

import grpc
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from cortado.store.observe.requests import CALLER, OK, Ended
from cortado.store.observe.slow import names_in
from cortado.store.observe.stages import stages_of
from cortado.store.observe.traceparent import parse_traceparent
from cortado.version import __version__

SHUTDOWN_MS: Final = 2_000
_NS_OF_S: Final = 1_000_000_000
_NS_OF_MS: Final = 1_000_000


def otlp_exporter(endpoint: str) -> SpanExporter:
    """Return an exporter to the collector at ``endpoint``, http://HOST:PORT or https://HOST:PORT."""
    return OTLPSpanExporter(endpoint=endpoint, insecure=endpoint.startswith("http://"))


class CallTracer:
    """An :class:`~cortado.store.observe.requests.Observer` of all calls."""

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        node_id: str,
        cluster_id: str,
        percent: int,
        node_now_ms: Callable[[], float],
        chance: Random,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Of calls without a caller's decision, ``percent`` are sampled. ``node_now_ms`` is the node's clock."""
        resource = Resource.create(
            {
                "service.name": "cortado",
                "service.version": __version__,
                "service.instance.id": node_id,
                "cortado.cluster_id": cluster_id,
            }
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("cortado", __version__)
        self._percent = percent
        self._node_now_ms = node_now_ms
        self._chance = chance
        self._wall_ns = wall_ns

    def ended(self, ended: Ended) -> None:
        parent = parse_traceparent(ended.call.traceparent) if ended.call.traceparent else None
        if parent is None:
            if self._chance.random() * 100 < self._percent:
                self._record(ended, Context())
        elif parent.is_sampled:
            caller = SpanContext(parent.trace_id, parent.span_id, is_remote=True, trace_flags=TraceFlags(1))
            self._record(ended, set_span_in_context(NonRecordingSpan(caller), Context()))

    def shutdown(self) -> None:
        """Send the remaining spans. Blocks, for two seconds at most."""
        self._provider.force_flush(SHUTDOWN_MS)
        self._provider.shutdown()

    def _record(self, ended: Ended, within: Context) -> None:
        now_ns, now_ms = self._wall_ns(), self._node_now_ms()
        service, _, method = ended.call.method.rpartition("/")
        attributes: dict[str, str | int] = {
            "rpc.system": "grpc",
            "rpc.service": service,
            "rpc.method": method,
            "rpc.grpc.status_code": grpc.StatusCode[ended.code].value[0],
            "cortado.reply_bytes": ended.reply_bytes,
        }
        if ended.request is not None:
            attributes["cortado.request_bytes"] = ended.request.ByteSize()
            attributes |= {f"cortado.{name}": value for name, value in names_in(ended.request)}
        caller = CALLER.get()
        if caller is not None:
            attributes["client.address"] = caller.peer()
        write = ended.call.write
        if write is not None and write.request_id:
            attributes["cortado.request_id"] = write.request_id.hex()
        stages = list(stages_of(ended.call, now_ms))
        began = [now_ns - int((now_ms - each.began_ms) * _NS_OF_MS) for each in stages]
        # How long it took was read a moment before the time is read here: no part of it began before itself.
        call_began = min([now_ns - int(ended.seconds * _NS_OF_S), *began])
        span = self._tracer.start_span(ended.call.method, within, SpanKind.SERVER, attributes, start_time=call_began)
        contexts = {"": set_span_in_context(span, Context())}
        for stage, began_ns in zip(stages, began, strict=True):
            part = self._tracer.start_span(stage.name, contexts[stage.within], start_time=began_ns)
            contexts[stage.name] = set_span_in_context(part, Context())
            part.end(now_ns - int((now_ms - stage.ended_ms) * _NS_OF_MS))
        if ended.code != OK:
            span.set_status(Status(StatusCode.ERROR, ended.code))
        span.end(now_ns)
