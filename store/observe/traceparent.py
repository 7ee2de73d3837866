"""W3C Trace Context's ``traceparent``: version, trace id, the caller's span id, flags; lower-case hex with dashes.

::

    00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

HEADER: Final = "traceparent"
_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED: Final = 0x01


class TraceParent(NamedTuple):
    """``is_sampled``: the caller records its part of the trace."""

    trace_id: int
    span_id: int
    is_sampled: bool


def parse_traceparent(text: str) -> TraceParent | None:
    """Return the parsed header; None for an invalid one, which counts as not sent."""
    found = _FORM.fullmatch(text)
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    return TraceParent(trace_id, span_id, bool(int(found[4], 16) & _SAMPLED))


def trace_id_of(text: str) -> str:
    """Return the trace's id in hex, empty without a valid one."""
    parent = parse_traceparent(text) if text else None
    return "" if parent is None else f"{parent.trace_id:032x}"
