"""The calls of a message that go together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from cortado.errors import CortadoError

RUN_CALLS_MAX: Final = 256
"""Calls of one run: it is evaluated in one piece of some milliseconds."""

RUN_CALLS_MIN: Final = 2
"""A single call is begun by itself: a run of one costs more."""

Outcome: TypeAlias = bytes | CortadoError | None
"""A call's reply or error; None if it has to go the general way after all."""


class PlainCall(NamedTuple):
    """A call with its parsed request. ``size_bytes`` are the request's, ``timeout_ms`` is 0 for no end."""

    call_id: int
    request: Any
    size_bytes: int
    timeout_ms: int


class PlainMethod(Protocol):
    """Answers the plain calls of one method together."""

    @property
    def name(self) -> str:
        """The full name of the method, such as "cortado.v1.KeyValue/Put"."""

    @property
    def only_reads(self) -> bool:
        """Whether the method writes nothing. One run of writes is gathered at a time, of one method: so writes begin in
        the order of the message."""

    @property
    def calls_max(self) -> int:
        """The largest number of calls in one run."""

    @property
    def bytes_max(self) -> int:
        """The largest size of one run, each call with ``CALL_BYTES`` beside its request."""

    def key_of(self, call: PlainCall) -> Hashable | None:
        """Return the common key of all calls of a run; None for a call that is not plain."""

    def request_id_of(self, call: PlainCall) -> bytes:
        """Return the request id, which may stand in a run once; empty if the call has none."""

    def parts(self, run: CallRun) -> Sequence[CallRun]:
        """Return the pieces of the run, in order; the calls of pieces that go ``alone`` are begun one by one."""

    async def answer(self, run: CallRun) -> Sequence[Outcome]:
        """Return the outcome of each call. Raises nothing but CancelledError."""

    def give_up(self, run: CallRun) -> None:
        """Record that one caller of a run that is being answered waits no longer."""


CALL_BYTES: Final = 512
"""The bytes that a call takes of an entry beside its request, at most: its stored key, its record, overheads."""


class CallRun:
    """Calls of one message, all of one ``key``, that are answered together, or, if they go ``alone``, one by one."""

    __slots__ = (
        *("alone", "authorization", "calls", "given_up", "key", "method"),
        *("of", "prepared", "request_ids", "size_bytes"),
    )

    def __init__(self, method: PlainMethod, key: Any, authorization: str, *, alone: bool = False) -> None:
        self.method = method
        self.key = key
        self.authorization = authorization
        self.alone = alone
        self.calls: list[PlainCall] = []
        self.request_ids: dict[bytes, None] = {}
        self.size_bytes = 0
        """The bytes of all requests."""
        self.given_up = 0
        """The number of calls that their callers have given up."""
        self.of: Any = None
        """A value that the method keeps with the run."""
        self.prepared: Any = None
        """The method's own preparation of the calls; the pieces of a run share it."""

    def __len__(self) -> int:
        return len(self.calls)

    def add(self, call: PlainCall, request_id: bytes) -> None:
        """Add a call."""
        self.calls.append(call)
        self.size_bytes += call.size_bytes
        if request_id:
            self.request_ids[request_id] = None

    def takes(self, method: PlainMethod, key: Hashable, authorization: str, call: PlainCall, request_id: bytes) -> bool:
        """Return whether this call may be the next one."""
        if method is not self.method or key != self.key or authorization != self.authorization:
            return False
        if request_id in self.request_ids:
            return False
        count, size_bytes = len(self.calls) + 1, self.size_bytes + call.size_bytes
        return count <= self.method.calls_max and size_bytes + CALL_BYTES * count <= self.method.bytes_max

    def without(self, left_out: frozenset[bytes]) -> list[CallRun]:
        """Return the pieces of the run: calls that go together, and between them, alone, those of the requests
        ``left_out``."""
        parts: list[CallRun] = []
        for call, request_id in zip(self.calls, self.request_ids, strict=True):
            alone = request_id in left_out
            if not parts or parts[-1].alone != alone:
                parts.append(CallRun(self.method, self.key, self.authorization, alone=alone))
                parts[-1].prepared = self.prepared
            parts[-1].add(call, request_id)
        return parts


class Gathered:
    """The calls of a message that wait for company: at most one run of each method that reads, and one of writes."""

    def __init__(self) -> None:
        self._runs: dict[PlainMethod | None, CallRun] = {}
        """The runs by their methods; that of writes under None."""
        self.call_ids: set[int] = set()
        self.size_bytes = 0

    def add(self, method: PlainMethod, key: Hashable, authorization: str, call: PlainCall) -> CallRun | None:
        """Keep a call for a run. If it does not fit the present run, return that one: it is to begin before."""
        place = method if method.only_reads else None
        run, before = self._runs.get(place), None
        request_id = method.request_id_of(call)
        if run is None or not run.takes(method, key, authorization, call, request_id):
            before = run and self._take(place)
            run = self._runs[place] = CallRun(method, key, authorization)
        run.add(call, request_id)
        self.call_ids.add(call.call_id)
        self.size_bytes += call.size_bytes
        return before

    def _take(self, place: PlainMethod | None) -> CallRun:
        """Remove a run, and return it."""
        run = self._runs.pop(place)
        self.call_ids.difference_update([call.call_id for call in run.calls])
        self.size_bytes -= run.size_bytes
        return run

    def take_all(self) -> list[CallRun]:
        """Remove all runs, and return them in the order in which they began."""
        return [self._take(place) for place in list(self._runs)]
