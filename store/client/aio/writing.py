"""Writing on a stream of grpc.aio without losing how it ends."""

from __future__ import annotations

from typing import Any


async def write(call: Any, message: bytes) -> None:
    """Hand a message to gRPC. Raises any kind of error once the stream is over; the reader receives the reason.

    If a write fails because the server has just ended the stream, ``call.write`` replaces the server's reason by
    "Internal error from Core". Two of three refusals were lost by that. So this is the call below it, by its private
    name (``grpc/aio/_call.py``, ``_StreamRequestMixin._write``); a version that has no such name gets the public one.
    """
    await call.wait_for_connection()
    below = getattr(call, "_cython_call", None)
    send = getattr(below, "send_serialized_message", call.write)
    await send(message)
