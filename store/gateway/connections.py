"""A connection, with the bounds that uvicorn's own has not: who is slow, or says nothing, is not waited for.

- the head of a call must have come within ``head_ms`` of the connection, or of the call's first byte;
- a reader that takes nothing of an answer for ``stalled_ms`` is cut off;
- one connection more than ``connections_max`` is answered 503, and closed;
- what is no HTTP is answered by a problem, as everything else is.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from cortado.errors import InvalidArgument, ResourceExhausted
from cortado.store.gateway.bounds import RETRY_MS, GatewayLimits
from cortado.store.gateway.problems import problem_response

_HEAD_PROBLEM: Final = "must be one of HTTP/1.1: a request line and headers, in at most 32 KiB"


class Connection(H11Protocol):
    """uvicorn's, bounded."""

    limits: GatewayLimits

    @classmethod
    def bounded(cls, limits: GatewayLimits) -> type[Connection]:
        """The class with these limits: uvicorn makes its connections itself."""
        return type("Connection", (cls,), {"limits": limits})

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections_max:
            limit = self.limits.connections_max
            problem = f"the gateway has {limit} connections, which is its limit"
            self._refuse(problem_response(ResourceExhausted(problem, RETRY_MS, resource="connections", limit=limit)))
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_within_call():
            self._stop_timer("_head_timer")
        elif self._head_timer is None and not self.transport.is_closing():
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer("_head_timer")
        self._stop_timer("_stall_timer")
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_timer("_stall_timer")
        self._stall_timer = self.loop.call_later(self.limits.stalled_ms / 1000, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_timer("_stall_timer")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """What uvicorn calls for what is no HTTP; ``msg`` says no more than that."""
        self._refuse(problem_response(InvalidArgument("request", _HEAD_PROBLEM)))

    def _is_within_call(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.head_ms / 1000, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self._is_within_call():
            self.transport.abort()

    def _refuse(self, response: Response) -> None:
        headers = [*response.raw_headers, (b"connection", b"close")]
        body = bytes(response.body)
        for event in (h11.Response(status_code=response.status_code, headers=headers), h11.Data(data=body)):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
        self.transport.close()

    def _stop_timer(self, name: str) -> None:
        timer: asyncio.TimerHandle | None = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)
