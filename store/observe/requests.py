"""Every call that a server answers, measured in one place: how many, how they ended, how long they took, how large.

::

    call = method.begin()                        what logs below this belong to
    ...                                          the service answers
    method.end(call, "OK", request, reply_bytes)
         `─► longer than slow_s, or traced ──► the observers (slow log, tracer): only then is anything looked at

A unary call that comes alone and one on the coalescing stream are the same method, and count together.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final, Protocol

from google.protobuf.message import Message

from cortado.errors import CortadoError, ResourceExhausted
from cortado.store.observe.call import CURRENT, Call
from cortado.store.observe.measures import Histogram

OK: Final = "OK"
CANCELLED: Final = "CANCELLED"
NEVER_S: Final = float("inf")
# Names of resources are constants of ours. Should one ever come from a request, it must not fill the memory.
_RESOURCES_MAX: Final = 64

CALLER: Final[ContextVar[Any]] = ContextVar("cortado_caller", default=None)
"""gRPC's context of the call or stream that is served, from which its caller can be read."""
TRACEPARENT: Final[ContextVar[str]] = ContextVar("cortado_traceparent", default="")
"""The caller's trace context. Only set if there is a tracer."""


_make_current: Final = CURRENT.set


class Ended:
    """A unary call that is over, for those who look at some of them. ``seconds`` is how long it took until now."""

    __slots__ = ("call", "code", "reply_bytes", "request", "seconds")

    def __init__(self, call: Call, code: str, request: Message | None, reply_bytes: int, seconds: float) -> None:
        self.call = call
        self.code = code
        self.request = request
        self.reply_bytes = reply_bytes
        self.seconds = seconds


class Observer(Protocol):
    """Looks at calls. It must be quick, and must not fail."""

    def ended(self, ended: Ended) -> None: ...


class Requests:
    """All methods of a server, by name, and what refused their calls for want of a resource."""

    def __init__(self, monotonic_s: Callable[[], float] = time.perf_counter) -> None:
        self.monotonic_s = monotonic_s
        self.methods: dict[str, MethodMeasures] = {}
        self.refusals: Counter[str] = Counter()
        self.slow: Observer | None = None
        self.slow_s = NEVER_S
        """Calls that take so long are counted, and shown to ``slow``."""
        self.slow_calls = 0
        self.tracer: Observer | None = None
        """Shown every call, if there is one."""

    def method(self, name: str) -> MethodMeasures:
        """Return those of the method ``name``, such as "cortado.v1.KeyValue/Put"."""
        found = self.methods.get(name)
        if found is None:
            found = self.methods[name] = MethodMeasures(name, self)
        return found

    def received_bytes(self) -> int:
        """Return the bytes of all calls, since the start."""
        return sum(each.received_bytes for each in self.methods.values())

    def refused(self, error: CortadoError) -> None:
        """Count a refusal for lack of a resource."""
        if isinstance(error, ResourceExhausted):
            resource = error.resource or "other"
            known = resource in self.refusals or len(self.refusals) < _RESOURCES_MAX
            self.refusals[resource if known else "other"] += 1


class MethodMeasures:
    """One method. For a stream ``codes`` counts the ends, and ``durations`` stays empty: callers choose its length."""

    __slots__ = (
        "_counts",
        "_now_s",
        "_of",
        "codes",
        "durations",
        "is_stream",
        "name",
        "ok",
        "open",
        "received_bytes",
        "replies",
        "sent_bytes",
    )

    def __init__(self, name: str, of: Requests) -> None:
        self.name = name
        self.durations = Histogram()
        self._counts = self.durations.counts
        self.ok = 0
        self.codes: Counter[str] = Counter()
        """Ends by their codes, except OK, which is too frequent for a dictionary."""
        self.received_bytes = 0
        self.sent_bytes = 0
        self.is_stream = False
        self.open = 0
        self.replies = 0
        self._of = of
        self._now_s = of.monotonic_s

    def ends(self) -> Iterator[tuple[str, int]]:
        """Yield how many ended with each code."""
        if self.ok:
            yield OK, self.ok
        yield from self.codes.items()

    # --- unary calls -------------------------------------------------------------------------------------------

    def begin(self) -> Call:
        """Begin a call: later log lines and measures belong to it."""
        call = Call(self.name, self._now_s(), "" if self._of.tracer is None else TRACEPARENT.get())
        _make_current(call)
        return call

    def end(self, call: Call, code: str, request: Message, reply_bytes: int = 0) -> None:
        """End the call, with a canonical code's name."""
        seconds = self._now_s() - call.began_s
        durations = self.durations
        # As its observe() does, without the call: this is the hottest place that measures.
        self._counts[bisect_left(durations.bounds, seconds)] += 1
        durations.sum += seconds
        if code is OK:
            self.ok += 1
        else:
            self.codes[code] += 1
        self.sent_bytes += reply_bytes
        of = self._of
        if seconds >= of.slow_s or of.tracer is not None:
            self._show(Ended(call, code, request, reply_bytes, seconds))
        # The task's context outlives the call if many calls share it, and must not keep the written data.
        call.write = None
        call.is_over = True

    def is_shown(self, call: Call) -> bool:
        """Return whether the observers of single calls are to see this one, if it is over now."""
        return self._of.tracer is not None or self._now_s() - call.began_s >= self._of.slow_s

    def end_many(self, began: Call, code: str, calls: int, reply_bytes: int = 0) -> None:
        """So many calls that began together are over, and none of them is shown."""
        self.durations.observe(self._now_s() - began.began_s, calls)
        if code is OK:
            self.ok += calls
        else:
            self.codes[code] += calls
        self.sent_bytes += reply_bytes
        began.is_over = True

    def fail(self, call: Call, error: CortadoError, request: Message) -> None:
        """End the call with an error."""
        self._of.refused(error)
        self.end(call, error.code, request)

    def refuse(self, error: CortadoError) -> None:
        """Count a call that ended with an error before its request was received. There is nothing to show."""
        self._of.refused(error)
        self.codes[error.code] += 1

    def _show(self, ended: Ended) -> None:
        of = self._of
        if ended.seconds >= of.slow_s:
            of.slow_calls += 1
            if of.slow is not None:
                of.slow.ended(ended)
        if of.tracer is not None:
            of.tracer.ended(ended)

    # --- streams -----------------------------------------------------------------------------------------------

    def opened(self) -> None:
        self.open += 1

    def replied(self, reply_bytes: int) -> None:
        self.replies += 1
        self.sent_bytes += reply_bytes

    def closed(self, code: str, error: CortadoError | None = None) -> None:
        self.open -= 1
        if code is OK:
            self.ok += 1
        else:
            self.codes[code] += 1
        if error is not None:
            self._of.refused(error)
