"""``cortado.v1.Calls``: many unary calls on one stream, each with the meaning of a gRPC call of its own.

::

    CallBatch ─► start(call) ─► the method's answer, driven at once until it first waits
                   │ refused here: too many in flight          │ done: its reply
                   ▼                                           ▼ waits: goes on as a task
                 replies ◄───────────────────────────────── finished, in any order
                   `─► everything that is finished when a message leaves goes into that message

A gRPC call of its own costs a hundred and more microseconds of this process; a call in a batch costs what it asks for.
All calls of a batch begin in one piece, in their order and before anything else of the loop, so a batch of writes comes
to stand in one round of the node, and a batch of point reads needs no task at all.

Bounds. A stream has so many calls in flight, and so many bytes of their requests, and refuses more at once with
``RESOURCE_EXHAUSTED``; so does the budget of the process, in which each call counts that waits for something. Where the
caller does not take its replies, no more calls are read, and large replies to what only reads become refusals
(:mod:`cortado.store.server.replying`). A call whose caller's time is over, or who took it back, ends as a cancelled
gRPC call does; its reply, if it has one, goes nowhere. A stream that breaks ends its calls; a write that was evaluated
goes on, as always. A server that stops ends each stream in order, once all calls that it has begun are answered, those
too whose time is over: so its client knows that the others were never begun.

An answer runs in the task that reads the stream until it first waits (:mod:`cortado.store.server.driven`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor import ServiceDescriptor

from cortado.errors import (
    CortadoError,
    InvalidArgument,
    OutcomeUnknown,
    ResourceExhausted,
    TooLarge,
    Unavailable,
    Unsupported,
)
from cortado.proto.v1 import calls_pb2
from cortado.store.auth.caller import holder
from cortado.store.node.admission import Gate
from cortado.store.node.budget import Budget, Held, Share
from cortado.store.node.limits import NodeLimits
from cortado.store.observe.requests import TRACEPARENT, Requests
from cortado.store.rpc_errors import rpc_status
from cortado.store.server.authority import CREDENTIAL, Authority, credential_of
from cortado.store.server.config import MESSAGE_BYTES_MAX
from cortado.store.server.driven import resumed
from cortado.store.server.receiving import call_cost
from cortado.store.server.replying import RESOURCE, SMALL_BYTES
from cortado.store.server.rpc import UnaryMethod, unary_methods

# A reply travels in an envelope (its id, and lengths), and the message as a whole has the bound of any message.
ENVELOPE_BYTES_MAX: Final = 64
REPLY_BYTES_MAX: Final = MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX

_RETRY_DELAY_MS: Final = 50
_HELD_PARTS: Final = 4
"""What was in flight when no more calls were read may bring so many times the replies that a stream should hold."""


@dataclass(frozen=True, slots=True)
class CallsLimits:
    """Bounds of the coalescing streams, and what happens past each.

    - ``streams_max``: open streams of a server, with a share for each caller; one more is refused, and its client
      makes single calls.
    - ``calls_max``, ``request_bytes_max``: calls of one stream in flight, and the bytes of their requests; a further
      call is refused.
    - ``reply_bytes_max``: replies that were not taken yet; above it no further call is read.
    - ``message_bytes_max``: about how much one message of replies holds, unless a single reply is larger.
    - ``slice_ms``: how long calls are begun before other work of the loop goes on.
    - ``sweep_ms``: how often calls are looked at whose time may be over. The caller knows its deadline better.
    """

    streams_max: int = 1_024
    calls_max: int = 2_048
    request_bytes_max: int = 32 << 20
    reply_bytes_max: int = 8 << 20
    message_bytes_max: int = 1 << 20
    slice_ms: float = 5.0
    sweep_ms: float = 50.0


class CallsService:
    """Serves the unary methods of ``services`` (each a descriptor and the object that serves it) on streams.

    Register it with :func:`~cortado.store.server.rpc.rpc_handler`, beside those services. A stream lives as long as its
    client likes, so a server that stops calls :meth:`stop`: every stream then ends when the calls are answered that it
    has in flight.
    """

    def __init__(
        self,
        services: Iterable[tuple[ServiceDescriptor, object]],
        *,
        limits: CallsLimits | None = None,
        requests: Requests | None = None,
        budget: Share | None = None,
        authority: Authority | None = None,
    ) -> None:
        """``requests`` measures the calls; those that wait take what they hold from ``budget``. ``authority`` says who
        may call: without one, everybody."""
        self._requests = requests or Requests()
        self._methods = unary_methods(services, self._requests, authority)
        self._limits = limits or CallsLimits()
        self._budget = budget or Budget(NodeLimits()).calls
        self._gate = Gate("streams of calls", count_max=self._limits.streams_max, holder=holder)
        self._streams: set[_Exchange] = set()
        self._is_stopping = False

    async def exchange(self, requests: AsyncIterator[calls_pb2.CallBatch]) -> AsyncGenerator[bytes, None]:
        """The replies, serialized batches of them. Raises ResourceExhausted, Unavailable before the first."""
        if self._is_stopping:
            raise Unavailable("the node is stopping", retry_delay_ms=_RETRY_DELAY_MS)
        with self._gate.place():
            stream = _Exchange(self._methods, self._limits, self._requests, self._budget)
            self._streams.add(stream)
            try:
                async for batch in stream.replies(requests):
                    yield batch
            finally:
                self._streams.discard(stream)
                await stream.close()

    def use(self) -> tuple[int, int]:
        """Open streams, and the calls in flight on all of them."""
        return len(self._streams), sum(stream.in_flight for stream in self._streams)

    def stop(self) -> None:
        """Read no further calls; each stream ends when what it has in flight is answered."""
        self._is_stopping = True
        for stream in self._streams:
            stream.stop()


@dataclass(slots=True, eq=False)
class _Running:
    """A call that waits for something."""

    call_id: int
    size_bytes: int
    held: Held
    deadline_s: float
    only_reads: bool
    task: asyncio.Task[None] | None = None


class _Exchange:
    """One stream. Everything here runs on the loop."""

    def __init__(
        self, methods: Mapping[str, UnaryMethod], limits: CallsLimits, requests: Requests, budget: Share
    ) -> None:
        self._methods = methods
        self._limits = limits
        self._requests = requests
        self._budget = budget
        self._loop = asyncio.get_running_loop()
        self._credential = CREDENTIAL.get()
        self._running: dict[int, _Running] = {}
        self._running_bytes = 0
        self._finished: list[bytes] = []
        self._finished_bytes = 0
        self._reading: asyncio.Task[None] | None = None
        self._has_replies: asyncio.Future[None] | None = None
        self._has_room: asyncio.Future[None] | None = None
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def in_flight(self) -> int:
        return len(self._running)

    # --- replies -----------------------------------------------------------------------------------------------

    async def replies(self, requests: AsyncIterator[calls_pb2.CallBatch]) -> AsyncGenerator[bytes, None]:
        """Batches of replies, until the caller has said its last call and all are answered."""
        self._reading = self._loop.create_task(self._read(requests))
        self._reading.add_done_callback(self._wake)
        while True:
            if self._finished:
                yield self._taken()
            elif self._reading.done() and not self._running:
                if not self._reading.cancelled():
                    self._reading.result()
                return
            else:
                self._has_replies = self._loop.create_future()
                await self._has_replies

    def _taken(self) -> bytes:
        """What is finished now, as one message, or as much of it as a message should hold."""
        taken, bytes_max = self._finished, self._limits.message_bytes_max
        count = len(taken)
        if self._finished_bytes > bytes_max:
            size_bytes = count = 0
            while count < len(taken) and (not count or size_bytes + len(taken[count]) <= bytes_max):
                size_bytes += len(taken[count])
                count += 1
        taken, self._finished = taken[:count], taken[count:]
        # Repeated fields that follow one another are one: serialized batches end to end are a serialized batch.
        message = b"".join(taken)
        self._finished_bytes -= len(message)
        if self._has_room is not None and not self._has_room.done():
            self._has_room.set_result(None)
        return message

    def _finish(self, call_id: int, outcome: bytes | CortadoError, *, only_reads: bool = False) -> None:
        if isinstance(outcome, bytes) and len(outcome) > REPLY_BYTES_MAX:
            problem = f"has {len(outcome)} bytes, a message may have {REPLY_BYTES_MAX}: ask for less at a time"
            outcome = TooLarge("reply", problem, length=len(outcome), limit=REPLY_BYTES_MAX)
        if isinstance(outcome, bytes) and only_reads and (refusal := self._not_taken(len(outcome))) is not None:
            outcome = self._refused(refusal)
        batch = calls_pb2.ReplyBatch()
        # Filled in, since a message that is given would be copied with all that it holds.
        if isinstance(outcome, bytes):
            batch.replies.add(id=call_id, reply=outcome)
        else:
            batch.replies.add(id=call_id, status=rpc_status(outcome).SerializeToString())
        encoded = batch.SerializeToString()
        self._finished.append(encoded)
        self._finished_bytes += len(encoded)
        self._wake()

    def _not_taken(self, size_bytes: int) -> ResourceExhausted | None:
        """Why a reply of a call that only reads is not given: those before it are not taken."""
        limit = _HELD_PARTS * self._limits.reply_bytes_max
        if size_bytes > SMALL_BYTES and self._finished and self._finished_bytes + size_bytes > limit:
            problem = f"{self._finished_bytes} bytes of replies are not taken from this stream, the limit is {limit}"
            return ResourceExhausted(problem, _RETRY_DELAY_MS, RESOURCE, limit)
        return None

    def _wake(self, _: object = None) -> None:
        if self._has_replies is not None and not self._has_replies.done():
            self._has_replies.set_result(None)

    # --- calls -------------------------------------------------------------------------------------------------

    async def _read(self, requests: AsyncIterator[calls_pb2.CallBatch]) -> None:
        async for batch in requests:
            for running in map(self._running.get, batch.cancelled):
                if running is not None:
                    self._give_up(running)
            slice_ends_s = self._loop.time() + self._limits.slice_ms / 1_000
            for call in batch.calls:
                if self._finished_bytes > self._limits.reply_bytes_max:
                    await self._room()
                self._start(call)
                if self._loop.time() > slice_ends_s:
                    await asyncio.sleep(0)
                    slice_ends_s = self._loop.time() + self._limits.slice_ms / 1_000

    async def _room(self) -> None:
        while self._finished_bytes > self._limits.reply_bytes_max:
            self._has_room = self._loop.create_future()
            await self._has_room

    def _start(self, call: calls_pb2.Call) -> None:
        """Begin a call: to its end, where it waits for nothing, and else as far as it gets."""
        call_id, request = call.id, call.request  # Each look at a field of bytes makes a copy.
        cost_bytes = call_cost(len(request))
        if self._requests.tracer is not None:
            TRACEPARENT.set(call.traceparent)
        authorization = call.authorization
        CREDENTIAL.set(credential_of(authorization) if authorization else self._credential)
        method = self._methods.get(call.method)
        only_reads = method is not None and method.only_reads
        try:
            answer = self._answer(call_id, call.method, method, request, cost_bytes)
            first = answer.send(None)
        except StopIteration as done:
            self._finish(call_id, done.value, only_reads=only_reads)
        except CortadoError as error:
            self._finish(call_id, error)
        except asyncio.CancelledError:
            self._finish(call_id, _dropped())
        else:
            deadline_s = self._loop.time() + call.timeout_ms / 1_000 if call.timeout_ms else float("inf")
            running = _Running(call_id, len(request), self._budget.add(cost_bytes), deadline_s, only_reads)
            running.task = self._loop.create_task(self._rest(running, answer, first))
            self._running[call_id] = running
            self._running_bytes += running.size_bytes
            if self._sweep is None:
                self._sweep = self._loop.call_later(self._limits.sweep_ms / 1_000, self._end_late)

    def _answer(
        self, call_id: int, name: str, method: UnaryMethod | None, request: bytes, cost_bytes: int
    ) -> Coroutine[Any, Any, bytes]:
        """The call's answer, not begun. Raises ResourceExhausted, Unsupported, InvalidArgument."""
        limits = self._limits
        if len(self._running) >= limits.calls_max:
            raise self._full(f"{limits.calls_max} calls are in flight on this stream", limits.calls_max)
        if self._running and self._running_bytes + len(request) > limits.request_bytes_max:
            raise self._full(f"{self._running_bytes} bytes of calls are in flight", limits.request_bytes_max)
        if not self._budget.has_room(cost_bytes):
            raise self._refused(self._budget.refusal())
        if call_id in self._running:
            raise InvalidArgument("id", "is that of a call in flight on this stream", str(call_id))
        if method is None:
            raise Unsupported(f"the unary method {name[:200]!r}", "no service of this node has it")
        return method.answer(method.parse(request))

    def _full(self, problem: str, limit: int) -> ResourceExhausted:
        problem = f"{problem}, the limit is {limit}"
        return self._refused(ResourceExhausted(problem, _RETRY_DELAY_MS, "calls of a stream", limit))

    def _refused(self, error: ResourceExhausted) -> ResourceExhausted:
        self._requests.refused(error)
        return error

    async def _rest(self, running: _Running, answer: Coroutine[Any, Any, bytes], first: Any) -> None:
        outcome: bytes | CortadoError
        try:
            outcome = await resumed(answer, first)
        except CortadoError as error:
            outcome = error
        except asyncio.CancelledError:
            if not self._left(running):
                raise  # Its caller gave it up.
            self._finish(running.call_id, _dropped())
            return
        if self._left(running):
            self._finish(running.call_id, outcome, only_reads=running.only_reads)

    def _left(self, running: _Running) -> bool:
        """The call is over; False where that was known."""
        if self._running.get(running.call_id) is not running:
            return False
        del self._running[running.call_id]
        self._running_bytes -= running.size_bytes
        running.held.leave()
        return True

    # --- ends --------------------------------------------------------------------------------------------------

    def _give_up(self, running: _Running) -> None:
        """Nobody waits for its answer any more."""
        if self._left(running):
            assert running.task is not None
            # Not before it has begun to run: what is cancelled earlier never gets to clean up.
            self._loop.call_soon(running.task.cancel)
            self._wake()

    def _end_late(self) -> None:
        self._sweep = None
        now_s = self._loop.time()
        for running in [each for each in self._running.values() if each.deadline_s <= now_s]:
            self._give_up(running)
            self._finish(running.call_id, _dropped())
        if self._running:
            self._sweep = self._loop.call_later(self._limits.sweep_ms / 1_000, self._end_late)

    def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def close(self) -> None:
        """The stream is over: whatever still runs is cancelled."""
        if self._sweep is not None:
            self._sweep.cancel()
        left = [running.task for running in self._running.values() if running.task is not None]
        if self._reading is not None:
            left.append(self._reading)
        for running in self._running.values():
            running.held.leave()
        for task in left:
            task.cancel()
        for task in left:
            with suppress(asyncio.CancelledError, Exception):
                await task


def _dropped() -> OutcomeUnknown:
    """Something within the node was cancelled, as when it stops: to the caller, a call that broke."""
    return OutcomeUnknown("the node dropped the call")
