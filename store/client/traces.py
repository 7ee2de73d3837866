"""The trace that an application is in, where it uses OpenTelemetry: calls take it along, and a server goes on in it.

OpenTelemetry is looked up, never imported: who does not use it pays for a look into a dictionary.
"""

from __future__ import annotations

import sys
from typing import Any, Final

HEADER: Final = "traceparent"


def traceparent() -> str:
    """The current span as W3C's Trace Context writes it; empty where there is none."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return ""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def trace_metadata() -> tuple[tuple[str, str], ...] | None:
    """The same, as what a gRPC call of its own carries beside its request."""
    current = traceparent()
    return ((HEADER, current),) if current else None
