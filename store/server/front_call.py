"""A call that came through the native front, served by the same handlers as one of gRPC's.

::

    opened ──► its message is here? ── yes: driven at once, in the round of the loop that it came in ──► answered
                    │                          `─► waits: goes on as a task ────────────────────────────────► answered
                    `── no, or a stream: a task from the start, which asks for each message as it wants it ─► answered

Each call begins in a context of its own, so that no variable of the call before is taken for its own.

A message that a method waits for may come whole, beyond all windows. Other bytes stay with the caller, but for the
window of their stream. A message that was sent waits for its caller; :meth:`Call.write` returns once it is gone.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple, NoReturn, Protocol

import grpc

from cortado.errors import CortadoError, InvalidArgument
from cortado.store.h2.connection import Connection
from cortado.store.h2.fields import Head
from cortado.store.h2.grpc import (
    ACCEPTED_ENCODINGS,
    OK_TRAILERS,
    PREFIX_BYTES,
    RESPONSE_HEAD,
    Messages,
    prefixed,
    status_trailers,
)
from cortado.store.h2.limits import ErrorCode
from cortado.store.server.call_context import Here, status_code
from cortado.store.server.config import MESSAGE_BYTES_MAX
from cortado.store.server.driven import rest_of
from cortado.store.wire.rpc_errors import status_message, trailing_metadata

_LOG: Final = logging.getLogger(__name__)

_SAN: Final = "x509_subject_alternative_name"


class CallEnded(Exception):
    """The call is over, and was answered. Its method lets this error through."""


class Plan(NamedTuple):
    """The plan for a request with certain fields: its handler and its time limit, or its refusal."""

    handler: grpc.RpcMethodHandler[Any, Any] | None
    timeout_s: float | None = None
    refusal: bytes = b""


class Carrier(Protocol):
    """The connection of a call."""

    h2: Connection
    peer: str
    certificate: list[bytes]
    """The subject alternative names of the caller's certificate."""
    fresh: contextvars.Context
    """The context before the first call."""
    now_s: Callable[[], float]

    def flush_soon(self) -> None: ...

    def sweep_soon(self) -> None:
        """Check deadlines soon: there is a call with one."""

    def left(self, call: Call) -> None:
        """Record that a call is over."""

    def let_in(self) -> None:
        """Record that a service has admitted a call."""


class Call(Here):
    """A :class:`~cortado.store.server.call_context.Context`. Everything here runs on the loop."""

    __slots__ = (
        "_callbacks",
        "_has_head",
        "_has_message",
        "_head",
        "_is_answered",
        "_messages",
        "_of",
        "_plan",
        "_task",
        "_waiting",
        "asked_s",
        "deadline_s",
        "is_over",
        "stream_id",
    )

    def __init__(self, of: Carrier, stream_id: int, head: Head, plan: Plan) -> None:
        self.stream_id = stream_id
        self._of = of
        self._head = head
        self._plan = plan
        self._messages = Messages(MESSAGE_BYTES_MAX)
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._callbacks: list[Callable[[Any], None]] = []
        self._has_head = self._has_message = self._is_answered = False
        self.is_over = False
        self.deadline_s: float | None = None
        self.asked_s: float | None = None
        """The time since which it waits for its first message, by its connection's clock."""

    # --- for its connection ------------------------------------------------------------------------------------

    def arrived(self, data: bytes, *, is_last: bool) -> None:
        self._messages.add(data)
        self._messages.is_last = is_last
        self._wake()

    def start(self) -> None:
        """Serve the call until it first waits."""
        loop = asyncio.get_running_loop()
        if self._plan.timeout_s is not None:
            self.deadline_s = loop.time() + self._plan.timeout_s
        context = self._of.fresh.copy()
        serving: Coroutine[Any, Any, None] = self._serve()
        if self._is_whole():
            try:
                first = context.run(serving.send, None)
            except (StopIteration, asyncio.CancelledError):
                if self.deadline_s is not None and not self.is_over:
                    # Its answer waits for its caller, but not beyond the call's deadline.
                    self._of.sweep_soon()
                return
            serving = rest_of(serving, first)
        self._task = loop.create_task(serving, context=context)
        if self.deadline_s is not None:
            self._of.sweep_soon()

    def _is_whole(self) -> bool:
        """Return whether the whole request is one message, and here."""
        handler = self._plan.handler
        if handler is None or handler.response_streaming or not self._messages.is_last:
            return False
        try:
            return self._messages.missing == 0
        except CortadoError:
            return False

    def drained(self) -> None:
        """Go on: all replies were taken."""
        self._wake()
        if self._is_answered:
            self._over()

    def cancelled(self) -> None:
        """End the call: its caller has gone."""
        if not self.is_over:
            self._over()
            self._stop()

    def expired(self) -> None:
        """End the call: its deadline is over."""
        self.end(grpc.StatusCode.DEADLINE_EXCEEDED, "the deadline is over")

    def end(
        self, code: grpc.StatusCode, problem: str, trailing_metadata: Sequence[tuple[str, str | bytes]] = ()
    ) -> None:
        """End the call in any state. If it is answered, its caller has not taken the answer: drop it."""
        if self._is_answered:
            self.drop()
        else:
            self._fail(code, problem, trailing_metadata)
            self._stop()

    def drop(self) -> None:
        """End the call, and drop the replies that its caller does not take."""
        self._of.h2.reset(self.stream_id, ErrorCode.CANCEL)
        self._of.flush_soon()
        self.cancelled()

    def _stop(self) -> None:
        if self._task is not None:
            # Not before the task has begun to run: a task that is cancelled earlier never gets to clean up.
            asyncio.get_running_loop().call_soon(self._task.cancel)

    # --- for its method ----------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        try:
            reply = await self._served()
        except CallEnded:
            return
        except CortadoError as error:
            self._fail(status_code(error), status_message(error), trailing_metadata(error))
        except asyncio.CancelledError:
            self._fail(grpc.StatusCode.CANCELLED, "the node dropped the call")
            raise
        except Exception as defect:
            _LOG.error("a defect in %s", self._head.path.decode("ascii", "replace"), exc_info=defect)
            self._fail(grpc.StatusCode.INTERNAL, f"{type(defect).__name__}; see the server's log")
        else:
            self._answer(reply)

    async def _served(self) -> Any:
        """Return the reply, or None if all replies were written."""
        handler: Any = self._plan.handler
        if handler.request_streaming:
            serve, asked = handler.stream_stream or handler.stream_unary, self._arriving()
        else:
            serve, asked = handler.unary_stream or handler.unary_unary, await self.read()
            if asked is grpc.aio.EOF:
                raise InvalidArgument("request", "is missing")
        served = serve(asked, self)
        if not isinstance(served, AsyncIterator):
            return await served
        async with aclosing(served) as replies:  # type: ignore[type-var]
            async for reply in replies:
                await self.write(reply)
        return None

    async def _arriving(self) -> AsyncGenerator[bytes, None]:
        while (message := await self.read()) is not grpc.aio.EOF:
            yield message

    def whole_message(self) -> bytes | None:
        """Do as :meth:`Here.whole_message`. Raises Unsupported, MessageTooLarge, InvalidArgument."""
        message = self._messages.next()
        if message is not None:
            self._has_message, self.asked_s = True, None
            self._of.h2.consumed(self.stream_id, PREFIX_BYTES + len(message))
        return message

    def let_in(self) -> None:
        """Do as :meth:`Here.let_in`."""
        self._of.let_in()

    async def read(self) -> Any:
        """Do as :meth:`~cortado.store.server.call_context.Context.read`. Raises as :meth:`whole_message`."""
        while (message := self.whole_message()) is None:
            if self._messages.is_last:
                return grpc.aio.EOF
            if not self._has_message and self.asked_s is None:
                self.asked_s = self._of.now_s()
            self._of.h2.expect(self.stream_id, self._messages.missing)
            self._of.flush_soon()
            await self._woken()
        return message

    async def write(self, message: Any) -> None:
        """Do as :meth:`~cortado.store.server.call_context.Context.write`. Raises CallEnded."""
        if self.is_over or self._is_answered:
            raise CallEnded
        h2 = self._of.h2
        self._send_head()
        h2.send_data(self.stream_id, prefixed(self._serialized(message)))
        self._of.flush_soon()
        while h2.queued(self.stream_id):
            await self._woken()
        if self.is_over:
            raise CallEnded

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Sequence[tuple[str, str | bytes]] = ()
    ) -> NoReturn:
        """Do as :meth:`~cortado.store.server.call_context.Context.abort`."""
        self._fail(code, details, trailing_metadata)
        raise CallEnded

    def invocation_metadata(self) -> Any:
        return self._head.metadata

    def auth_context(self) -> Mapping[str, Any]:
        return {_SAN: self._of.certificate} if self._of.certificate else {}

    def peer(self) -> str:
        return self._of.peer

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        if self.is_over:
            callback(self)
        else:
            self._callbacks.append(callback)

    # --- its answer --------------------------------------------------------------------------------------------

    def _serialized(self, message: Any) -> bytes:
        handler = self._plan.handler
        serialize = None if handler is None else handler.response_serializer
        return message if serialize is None else serialize(message)

    def _send_head(self) -> None:
        if not self._has_head:
            self._has_head = True
            self._of.h2.send_head(self.stream_id, RESPONSE_HEAD)

    def _answer(self, reply: Any) -> None:
        if self.is_over or self._is_answered:
            return
        h2 = self._of.h2
        if reply is not None and not self._has_head:
            h2.send_reply(self.stream_id, RESPONSE_HEAD, prefixed(self._serialized(reply)), OK_TRAILERS)
        else:
            self._send_head()
            h2.send_end(self.stream_id, OK_TRAILERS)
        self._answered()

    def _fail(self, code: grpc.StatusCode, problem: str, metadata: Sequence[tuple[str, str | bytes]] = ()) -> None:
        """Answer with an error, unless the call was answered before. Replies that were not begun to be sent are
        dropped."""
        if self.is_over or self._is_answered:
            return
        trailers = status_trailers(code.value[0], problem, metadata)
        head = b"" if self._has_head else RESPONSE_HEAD
        if self._messages.is_compressed and head:
            head += ACCEPTED_ENCODINGS
        self._of.h2.send_end(self.stream_id, head + trailers, drops_unbegun=True)
        self._answered()

    def _answered(self) -> None:
        self._is_answered = True
        self._of.flush_soon()
        if not self._of.h2.queued(self.stream_id):
            self._over()

    def _over(self) -> None:
        self.is_over = True
        self._of.left(self)
        self._wake()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    async def _woken(self) -> None:
        """Wait until bytes have come, or gone."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def _wake(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                if not each.done():
                    each.set_result(None)
