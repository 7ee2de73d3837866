"""``cortado.v1.Calls``: many unary calls on one stream, each with the meaning of a gRPC call of its own.

::

    CallBatch ─► take(call) ─► the method's answer, driven at once until it first waits
                   │ refused here: too many in flight          │ done: its reply
                   ▼                                           ▼ waits: goes on as a task
                 replies ◄───────────────────────────────── finished, in any order
                   `─► a message takes all replies that are finished when it leaves

A gRPC call of its own costs a hundred and more microseconds of this process; a call in a batch costs only its own work.
All calls of a batch begin in one piece, in their order and before other work of the loop. So a batch of writes joins
one round of the node, and a batch of point reads needs no task at all. Plain calls of a batch are answered together, as
runs (:mod:`cortado.store.server.runs`).

Bounds. The calls in flight on a stream, and the bytes of their requests, are bounded; further calls are refused at once
with ``RESOURCE_EXHAUSTED``. The budget of the process refuses likewise; each call that waits counts in it. If the
caller does not take its replies, no more calls are read (:mod:`cortado.store.server.stream_replies`). A late or
cancelled call ends as a cancelled gRPC call does; its reply, if it has one, is dropped. A stream that breaks ends its
calls; a write that was evaluated goes on, as always. A server that stops ends each stream in order, once all calls that
it has begun are answered, late ones too: so its client knows that the others were never begun.

An answer runs in the task that reads the stream until it first waits (:mod:`cortado.store.server.driven`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor

from cortado.errors import (
    CortadoError,
    InvalidArgument,
    OutcomeUnknown,
    ResourceExhausted,
    Unavailable,
    Unsupported,
)
from cortado.proto.v1 import calls_pb2
from cortado.store.auth.caller import holder
from cortado.store.observe.requests import TRACEPARENT, Requests
from cortado.store.process.admission import Gate
from cortado.store.process.budget import CALL_BYTES, CALL_COST, Budget, Held, Share
from cortado.store.process.limits import NodeLimits
from cortado.store.server.authority import CREDENTIAL, Authority, credential_of
from cortado.store.server.driven import resumed
from cortado.store.server.rpc import UnaryMethod, unary_methods
from cortado.store.server.runs.gathering import CallRun, Gathered, Outcome, PlainCall, PlainMethod
from cortado.store.server.stream_replies import RETRY_DELAY_MS, StreamReplies


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
    - ``sweep_ms``: the time between two checks for calls that are past their deadlines. The caller knows its
      deadline better.
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
        runs: Mapping[str, PlainMethod] | None = None,
    ) -> None:
        """``requests`` measures the calls; those that wait take the bytes they hold from ``budget``. ``authority``
        checks callers; without one every caller is admitted. ``runs`` are the methods with plain calls that go
        together."""
        self._requests = requests or Requests()
        self._methods = unary_methods(services, self._requests, authority)
        self._runs = runs or {}
        self._limits = limits or CallsLimits()
        self._budget = budget or Budget(NodeLimits()).calls
        self._gate = Gate("streams of calls", count_max=self._limits.streams_max, holder=holder)
        self._streams: set[_Exchange] = set()
        self._is_stopping = False

    async def exchange(self, requests: AsyncIterator[calls_pb2.CallBatch]) -> AsyncGenerator[bytes, None]:
        """Yield the replies, in serialized batches. Raises ResourceExhausted, Unavailable before the first."""
        if self._is_stopping:
            raise Unavailable("the node is stopping", retry_delay_ms=RETRY_DELAY_MS)
        with self._gate.place():
            stream = _Exchange(self._methods, self._runs, self._limits, self._requests, self._budget)
            self._streams.add(stream)
            try:
                async for batch in stream.replies(requests):
                    yield batch
            finally:
                self._streams.discard(stream)
                await stream.close()

    def use(self) -> tuple[int, int]:
        """Return the numbers of open streams, and of calls in flight on all of them."""
        return len(self._streams), sum(stream.in_flight for stream in self._streams)

    def stop(self) -> None:
        """Read no further calls; each stream ends when its calls in flight are answered."""
        self._is_stopping = True
        for stream in self._streams:
            stream.stop()


@dataclass(slots=True, eq=False)
class _Running:
    """A call that waits, or several that wait together."""

    calls: list[PlainCall]
    held: Held
    deadline_s: float
    """The earliest deadline of the calls."""
    only_reads: bool
    began_s: float
    run: CallRun | None = None
    task: asyncio.Task[None] | None = None

    def call(self, call_id: int) -> PlainCall:
        """Return the call with this id."""
        return next(each for each in self.calls if each.call_id == call_id)

    def is_late(self, call_id: int, now_s: float) -> bool:
        """Return whether that call's deadline is over."""
        if now_s < self.deadline_s:
            return False
        timeout_ms = self.call(call_id).timeout_ms
        return 0 < timeout_ms <= (now_s - self.began_s) * 1_000


class _Exchange:
    """One stream. Everything here runs on the loop."""

    def __init__(
        self,
        methods: Mapping[str, UnaryMethod],
        runs: Mapping[str, PlainMethod],
        limits: CallsLimits,
        requests: Requests,
        budget: Share,
    ) -> None:
        self._methods = methods
        self._runs = runs
        self._gathered = Gathered()
        self._limits = limits
        self._requests = requests
        self._budget = budget
        self._loop = asyncio.get_running_loop()
        self._credential = CREDENTIAL.get()
        self._running: dict[int, _Running] = {}
        self._running_bytes = 0
        self._replies = StreamReplies(
            requests, bytes_max=limits.reply_bytes_max, message_bytes_max=limits.message_bytes_max
        )
        self._finish = self._replies.finish
        self._reading: asyncio.Task[None] | None = None
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def in_flight(self) -> int:
        return len(self._running)

    # --- replies -----------------------------------------------------------------------------------------------

    async def replies(self, requests: AsyncIterator[calls_pb2.CallBatch]) -> AsyncGenerator[bytes, None]:
        """Yield batches of replies, until the caller has sent its last call and all are answered."""
        self._reading = self._loop.create_task(self._read(requests))
        self._reading.add_done_callback(self._replies.wake)
        while True:
            if not self._replies.is_empty:
                yield self._replies.take()
            elif self._reading.done() and not self._running:
                if not self._reading.cancelled():
                    self._reading.result()
                return
            else:
                await self._replies.news()

    # --- calls -------------------------------------------------------------------------------------------------

    async def _read(self, requests: AsyncIterator[calls_pb2.CallBatch]) -> None:
        async for batch in requests:
            for call_id in batch.cancelled:
                self._give_up(call_id)
            slice_ends_s = self._slice_ends_s()
            for call in batch.calls:
                if self._replies.is_full:
                    self._begin_gathered()
                    await self._replies.room()
                self._take(call)
                if self._loop.time() > slice_ends_s:
                    await asyncio.sleep(0)
                    slice_ends_s = self._slice_ends_s()
            self._begin_gathered()

    def _slice_ends_s(self) -> float:
        """Return when other work of the loop has its turn."""
        return self._loop.time() + self._limits.slice_ms / 1_000

    def _take(self, call: calls_pb2.Call) -> None:
        """Begin a call, or keep it for a run."""
        call_id, name, request = call.id, call.method, call.request  # Each look at a field of bytes makes a copy.
        authorization = call.authorization
        if call_id in self._gathered.call_ids:
            self._begin_gathered()
        method = self._methods.get(name)
        try:
            self._check(call_id, len(request))
            if method is None:
                raise Unsupported(f"the unary method {name[:200]!r}", "no service of this node has it")
            taken = PlainCall(call_id, method.parse(request), len(request), call.timeout_ms)
        except CortadoError as error:
            self._finish(call_id, error)
            return
        if self._requests.tracer is not None:
            TRACEPARENT.set(call.traceparent)
        elif (runs := self._runs.get(name)) is not None and (key := runs.key_of(taken)) is not None:
            before = self._gathered.add(runs, key, authorization, taken)
            if before is not None:
                self._begin_run(before)
            return
        if not method.only_reads:
            self._begin_gathered()
        self._show(authorization)
        self._begin(method, taken)

    def _check(self, call_id: int, request_bytes: int) -> None:
        """Check that there is room for one more. Raises ResourceExhausted, InvalidArgument."""
        limits, gathered_bytes, gathered = self._limits, self._gathered.size_bytes, len(self._gathered.call_ids)
        in_flight = len(self._running) + gathered
        if in_flight >= limits.calls_max:
            raise self._full(f"{limits.calls_max} calls are in flight on this stream", limits.calls_max)
        in_flight_bytes = self._running_bytes + gathered_bytes
        if in_flight and in_flight_bytes + request_bytes > limits.request_bytes_max:
            raise self._full(f"{in_flight_bytes} bytes of calls are in flight", limits.request_bytes_max)
        if not self._budget.has_room(_cost(gathered + 1, gathered_bytes + request_bytes), gathered + 1):
            raise self._refused(self._budget.refusal())
        if call_id in self._running:
            raise InvalidArgument("id", "is that of a call in flight on this stream", str(call_id))

    def _show(self, authorization: str) -> None:
        """Set the credential of the calls that begin now: this one, or else the stream's."""
        CREDENTIAL.set(credential_of(authorization) if authorization else self._credential)

    def _begin(self, method: UnaryMethod, call: PlainCall) -> None:
        """Begin a call: run it to its end, or until it first waits."""
        answer = method.answer(call.request)
        try:
            first = answer.send(None)
        except StopIteration as done:
            self._finish(call.call_id, done.value, only_reads=method.only_reads)
        except CortadoError as error:
            self._finish(call.call_id, error)
        except asyncio.CancelledError:
            self._finish(call.call_id, _dropped())
        else:
            self._run_on(self._rest, [call], method.only_reads, answer, first)

    def _begin_gathered(self) -> None:
        """Begin the gathered runs."""
        if self._gathered.call_ids:
            for run in self._gathered.take_all():
                self._begin_run(run)

    def _begin_run(self, run: CallRun) -> None:
        """Begin many calls together, as :meth:`_begin` does one; begin those by themselves that cannot go together."""
        self._show(run.authorization)
        for part in run.method.parts(run):
            if part.alone:
                self._begin_each(part.method, part.calls)
                continue
            answer = part.method.answer(part)
            try:
                first = answer.send(None)
            except StopIteration as done:
                self._end_run(part, done.value)
            except asyncio.CancelledError:
                self._end_run(part, [_dropped()] * len(part))
            else:
                only_reads = self._methods[part.method.name].only_reads
                self._run_on(self._rest_of_run, part.calls, only_reads, answer, first, part)

    def _begin_each(self, runs: PlainMethod, calls: Iterable[PlainCall]) -> None:
        for call in calls:
            self._begin(self._methods[runs.name], call)

    def _run_on(
        self,
        rest: Callable[[_Running, Any, Any], Coroutine[Any, Any, None]],
        calls: list[PlainCall],
        only_reads: bool,
        answer: Any,
        first: Any,
        run: CallRun | None = None,
    ) -> None:
        """Go on with an answer, which waits for ``first``, as a task: ``rest`` takes both."""
        now_s, count, call = self._loop.time(), len(calls), calls[0]
        size_bytes = (
            run.size_bytes if run is not None and len(run) == count else sum([each.size_bytes for each in calls])
        )
        timeout_ms = min([each.timeout_ms or math.inf for each in calls])
        held = self._budget.add(_cost(count, size_bytes), count)
        running = _Running(calls, held, now_s + timeout_ms / 1_000, only_reads, now_s, run)
        running.task = self._loop.create_task(rest(running, answer, first))
        if run is None:
            self._running[call.call_id] = running
        else:
            self._running.update(dict.fromkeys([each.call_id for each in calls], running))
        self._running_bytes += size_bytes
        if self._sweep is None:
            self._sweep = self._loop.call_later(self._limits.sweep_ms / 1_000, self._end_late)

    def _full(self, problem: str, limit: int) -> ResourceExhausted:
        problem = f"{problem}, the limit is {limit}"
        return self._refused(ResourceExhausted(problem, RETRY_DELAY_MS, "calls of a stream", limit))

    def _refused(self, error: ResourceExhausted) -> ResourceExhausted:
        self._requests.refused(error)
        return error

    async def _rest(self, running: _Running, answer: Coroutine[Any, Any, bytes], first: Any) -> None:
        call = running.calls[0]
        outcome: bytes | CortadoError
        try:
            outcome = await resumed(answer, first)
        except CortadoError as error:
            outcome = error
        except asyncio.CancelledError:
            if not self._left(running, call):
                raise  # Its caller gave it up.
            self._finish(call.call_id, _dropped())
            return
        if self._left(running, call):
            self._finish(call.call_id, outcome, only_reads=running.only_reads)

    async def _rest_of_run(self, running: _Running, answer: Coroutine[Any, Any, Sequence[Outcome]], first: Any) -> None:
        assert running.run is not None
        outcomes: Sequence[Outcome]
        try:
            outcomes = await resumed(answer, first)
        except asyncio.CancelledError:
            outcomes = [_dropped()] * len(running.calls)
        only_reads, left = running.only_reads, []
        for call, outcome in zip(running.calls, outcomes, strict=True):
            if outcome is None:
                left.append(call)
            elif self._left(running, call):
                self._finish(call.call_id, outcome, only_reads=only_reads)
        await self._rest_anew(running, left)

    async def _rest_anew(self, running: _Running, left: Sequence[PlainCall], _first: None = None) -> None:
        """Begin the calls ``left`` of a run anew."""
        try:
            await self._begin_anew(running, left)
        except asyncio.CancelledError:
            for call in left:
                if self._left(running, call):
                    self._finish(call.call_id, _dropped())
        finally:
            running.held.leave()

    async def _begin_anew(self, running: _Running, calls: Sequence[PlainCall]) -> None:
        """Begin calls of a run by themselves: writes at once and in their order, reads one after another, as there is
        room for their replies. Those are large, so all of them together would hold the loop, and be refused."""
        run = running.run
        assert run is not None
        for call in calls:
            if not running.only_reads:
                if self._left(running, call):
                    self._show(run.authorization)
                    self._begin(self._methods[run.method.name], call)
                continue
            await asyncio.sleep(0)
            await self._replies.room()
            if self._running.get(call.call_id) is running:
                self._show(run.authorization)
                outcome = await self._outcome(self._methods[run.method.name], call)
                if self._left(running, call):
                    self._finish(call.call_id, outcome, only_reads=True)

    async def _outcome(self, method: UnaryMethod, call: PlainCall) -> bytes | CortadoError:
        """Return the reply of a call, or its error."""
        try:
            return await method.answer(call.request)
        except CortadoError as error:
            return error

    def _left(self, running: _Running, call: PlainCall) -> bool:
        """Record that the call is over; return False if that was known."""
        if self._running.get(call.call_id) is not running:
            return False
        del self._running[call.call_id]
        self._running_bytes -= call.size_bytes
        if running.run is None:
            running.held.leave()
        return True

    def _end_run(self, run: CallRun, outcomes: Sequence[Outcome]) -> None:
        """Answer the calls of a run that waited for nothing; those without an outcome begin anew, by themselves: writes
        now, in the order of their message, and reads as a task, since their replies may be large."""
        only_reads, left = self._methods[run.method.name].only_reads, []
        for call, outcome in zip(run.calls, outcomes, strict=True):
            if outcome is None:
                left.append(call)
            else:
                self._finish(call.call_id, outcome, only_reads=only_reads)
        if left and only_reads:
            self._run_on(self._rest_anew, left, only_reads, left, None, run)
        elif left:
            self._show(run.authorization)
            self._begin_each(run.method, left)

    # --- ends --------------------------------------------------------------------------------------------------

    def _give_up(self, call_id: int) -> None:
        """Cancel a call: its caller does not wait for the answer any more."""
        running = self._running.get(call_id)
        if running is not None and self._left(running, running.call(call_id)):
            if running.run is not None:
                running.run.method.give_up(running.run)
            else:
                assert running.task is not None
                # Not before the task has begun to run: a task that is cancelled earlier never gets to clean up.
                self._loop.call_soon(running.task.cancel)
            self._replies.wake()

    def _end_late(self) -> None:
        self._sweep = None
        now_s = self._loop.time()
        for call_id in [call_id for call_id, running in self._running.items() if running.is_late(call_id, now_s)]:
            self._give_up(call_id)
            self._finish(call_id, _dropped())
        if self._running:
            self._sweep = self._loop.call_later(self._limits.sweep_ms / 1_000, self._end_late)

    def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def close(self) -> None:
        """Cancel all tasks that still run: the stream is over."""
        if self._sweep is not None:
            self._sweep.cancel()
        left = [running.task for running in dict.fromkeys(self._running.values()) if running.task is not None]
        if self._reading is not None:
            left.append(self._reading)
        for running in self._running.values():
            running.held.leave()
        for task in left:
            task.cancel()
        for task in left:
            with suppress(asyncio.CancelledError, Exception):
                await task


def _cost(calls: int, request_bytes: int) -> int:
    """Return the share of the budget that this number of calls takes."""
    return CALL_BYTES * calls + CALL_COST * request_bytes


def _dropped() -> OutcomeUnknown:
    """Return the error for a call that was cancelled within the node, as when it stops. To the caller the call
    broke."""
    return OutcomeUnknown("the node dropped the call")
