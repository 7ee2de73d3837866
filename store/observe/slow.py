"""The log of slow calls: the call, its time, and the stages of that; never written or read data.

::

    slow cortado.v1.KeyValue/Put: 1204 ms, OK (queued 2 ms, batching 4 ms, commit 1198 ms, fsync 1190 ms), 1048
    bytes for namespace sessions, from ipv4:127.0.0.1:51514, request 0000019a...

Names of namespaces, databases, tables and subjects are shown, keys and values are not. A node that is slow is slow for
thousands of callers at once: lines a second are bounded, and the next one says how many were left out. The last ones
are also kept for callers of ``cortado.v1.Statistics/ListSlowCalls``.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import Message

from cortado.store.observe.call import Call
from cortado.store.observe.requests import CALLER, Ended
from cortado.store.observe.stages import stages_of

_LOG: Final = logging.getLogger(__name__)

BURST: Final = 10
PER_S: Final = 2.0
KEPT: Final = 200
"""The number of calls kept: some hundred bytes each, for any request."""

_NAMED: Final = ("namespace", "database", "subject", "index", "name")
_NAME_CHARS_MAX: Final = 100


class RateLimit:
    """Lets ``burst`` through at once, and ``per_s`` a second from then on. Counts those that it holds back."""

    def __init__(self, monotonic_s: Callable[[], float], *, burst: int = BURST, per_s: float = PER_S) -> None:
        self._monotonic_s = monotonic_s
        self._burst = burst
        self._per_s = per_s
        self._left = float(burst)
        self._looked_s = monotonic_s()
        self._held_back = 0

    def take(self) -> int | None:
        """Return None if it is too much now; else how many were held back since the last one that was let through."""
        now_s = self._monotonic_s()
        self._left = min(self._left + (now_s - self._looked_s) * self._per_s, self._burst)
        self._looked_s = now_s
        if self._left < 1:
            self._held_back += 1
            return None
        self._left -= 1
        held_back, self._held_back = self._held_back, 0
        return held_back


@dataclass(frozen=True, slots=True)
class SlowCall:
    """A call that is over. ``about`` are names in its request, ``split_ms`` the parts of its time."""

    ended_ms: int
    """By the wall clock."""
    method: str
    duration_ms: float
    code: str
    split_ms: tuple[tuple[str, float], ...]
    request_bytes: int
    reply_bytes: int
    about: tuple[tuple[str, str], ...]
    peer: str
    request_id: bytes


class SlowLog:
    """An :class:`~cortado.store.observe.requests.Observer` of calls that took too long. ``last`` are the last of them,
    the oldest first."""

    def __init__(
        self, monotonic_s: Callable[[], float], node_now_ms: Callable[[], float], wall_s: Callable[[], float]
    ) -> None:
        """``node_now_ms`` is the clock of the node's own times, ``monotonic_s`` that of the rate."""
        self._node_now_ms = node_now_ms
        self._wall_s = wall_s
        self._rate = RateLimit(monotonic_s)
        self.last: deque[SlowCall] = deque(maxlen=KEPT)

    def ended(self, ended: Ended) -> None:
        slow = self._slow(ended)
        self.last.append(slow)
        held_back = self._rate.take()
        if held_back is None:
            return
        fields = _fields(slow)
        if held_back:
            fields["left_out"] = held_back
        _LOG.warning("%s", _sentence(fields), extra={"fields": fields})

    def _slow(self, ended: Ended) -> SlowCall:
        call, caller = ended.call, CALLER.get()
        return SlowCall(
            ended_ms=int(self._wall_s() * 1000),
            method=call.method,
            duration_ms=round(ended.seconds * 1000, 1),
            code=ended.code,
            split_ms=tuple(split_ms(call, self._node_now_ms())),
            request_bytes=0 if ended.request is None else ended.request.ByteSize(),
            reply_bytes=ended.reply_bytes,
            about=() if ended.request is None else tuple(names_in(ended.request)),
            peer="" if caller is None else caller.peer(),
            request_id=b"" if call.write is None else call.write.request_id,
        )


def _fields(slow: SlowCall) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "method": slow.method,
        "duration_ms": slow.duration_ms,
        "code": slow.code,
        "split_ms": dict(slow.split_ms),
        "request_bytes": slow.request_bytes,
        "reply_bytes": slow.reply_bytes,
        "of": dict(slow.about),
    }
    if slow.peer:
        fields["peer"] = slow.peer
    if slow.request_id:
        fields["request_id"] = slow.request_id.hex()
    return fields


def split_ms(call: Call, now_ms: float) -> Iterator[tuple[str, float]]:
    """Yield the known parts of a call's time: the stages of a write, and the round that a read waited for."""
    if call.read_wait_ms:
        yield "read_round", round(call.read_wait_ms, 1)
    for stage in stages_of(call, now_ms):
        yield stage.name, round(stage.ended_ms - stage.began_ms, 1)


def names_in(request: Message) -> Iterator[tuple[str, str]]:
    """Yield the names of things in a request, never its keys or values."""
    for field in request.DESCRIPTOR.fields:
        if field.name in _NAMED and field.type == field.TYPE_STRING:
            value = getattr(request, field.name)
            if value and isinstance(value, str):
                yield field.name, value[:_NAME_CHARS_MAX]
        elif field.name == "table":
            value = getattr(request, "table")  # noqa: B009
            if isinstance(value, Message):
                yield from names_in(value)
            elif value:
                yield "table", str(value)[:_NAME_CHARS_MAX]


def _sentence(fields: dict[str, Any]) -> str:
    split = ", ".join(f"{name.replace('_', ' ')} {ms:g} ms" for name, ms in fields["split_ms"].items())
    about = " ".join(f"{name} {value}" for name, value in fields["of"].items())
    parts = [
        f"slow {fields['method']}: {fields['duration_ms']:g} ms, {fields['code']}" + (f" ({split})" if split else ""),
        f"{fields['request_bytes']} bytes" + (f" for {about}" if about else ""),
        f"from {fields['peer']}" if "peer" in fields else "",
        f"request {fields['request_id']}" if "request_id" in fields else "",
        f"{fields['left_out']} more were left out" if "left_out" in fields else "",
    ]
    return ", ".join(part for part in parts if part)
