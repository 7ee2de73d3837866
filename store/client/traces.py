"""The application's current trace, if it uses OpenTelemetry: calls take it along, and a server goes on in it.

OpenTelemetry is looked up, never imported: without it a call pays for one look into a dictionary.
"""

from __future__ import annotations

import sys
from typing import Any, Final

HEADER: Final = "traceparent"


def traceparent() -> str:
    """Return the current span as W3C's Trace Context writes it; empty outside of a span."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return ""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def trace_metadata() -> tuple[tuple[str, str], ...] | None:
    """Return the same as the metadata of a gRPC call of its own."""
    current = traceparent()
    return ((HEADER, current),) if current else None
