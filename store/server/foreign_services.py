"""Services that others wrote, health and reflection: served with our bounds on requests, and our errors.

As their libraries register them, gRPC parses every request, and malformed bytes end as ``INTERNAL`` and fill the log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from inspect import isasyncgenfunction, iscoroutinefunction
from types import ModuleType
from typing import Any, Final, NoReturn

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError, Message

from cortado.errors import CortadoError, InvalidArgument
from cortado.proto import streams_of
from cortado.proto.bounds import MessageBounds
from cortado.store.server.call_context import Context, status_code
from cortado.store.server.replying import STRANGERS_BYTES, STRANGERS_SMALL_BYTES, Replying
from cortado.store.wire.rpc_errors import status_message, trailing_metadata

REQUEST_BYTES_MAX: Final = 4 << 10
"""A request of these services is a name."""


def foreign_handler(
    stubs: ModuleType, service: str, servicer: object, replying: Replying | None = None
) -> grpc.GenericRpcHandler:
    """Serve ``service`` of the library's ``stubs`` by its ``servicer``, without the methods that the servicer lacks.
    Replies that callers do not take are bounded by ``replying``."""
    replying = replying or Replying(STRANGERS_BYTES, STRANGERS_SMALL_BYTES)
    declared = stubs.DESCRIPTOR.services_by_name[service]
    handlers = {
        each.name: _handler(stubs, each, getattr(servicer, each.name), replying)
        for each in declared.methods
        if _is_served(getattr(servicer, each.name, None))
    }
    return grpc.method_handlers_generic_handler(declared.full_name, handlers)


def _is_served(behaviour: object) -> bool:
    """Return whether the library implements a method. The stub of one that it does not is no coroutine."""
    return iscoroutinefunction(behaviour) or isasyncgenfunction(behaviour)


def _handler(
    stubs: ModuleType, method: MethodDescriptor, behaviour: Callable[..., Any], replying: Replying
) -> grpc.RpcMethodHandler[Any, Any]:
    parse = _parse(stubs, method)
    streams = streams_of(method)
    if streams.client:

        async def exchange(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[Message]:
            try:
                async for reply in behaviour(_parsed(requests, parse), context):
                    with replying.sending(context, reply.ByteSize()):
                        yield reply
            except CortadoError as error:
                await _end(context, error)

        return grpc.stream_stream_rpc_method_handler(exchange, _as_it_is, _serialized)

    async def serve(request: bytes, context: Context) -> Any:
        try:
            parsed = parse(request)
        except CortadoError as error:
            await _end(context, error)
        reply = await behaviour(parsed, context)
        if reply is None:
            return None  # The replies of a stream were written.
        refusal = replying.refusal(context, reply.ByteSize())
        if refusal is not None:
            await _end(context, refusal)
        replying.send(context, reply.ByteSize())
        return reply

    make = grpc.unary_stream_rpc_method_handler if streams.server else grpc.unary_unary_rpc_method_handler
    return make(serve, _as_it_is, _serialized)


def _parse(stubs: ModuleType, method: MethodDescriptor) -> Callable[[bytes], Message]:
    message = getattr(stubs, method.input_type.name)
    bounds = MessageBounds(message, {}, bytes_max=REQUEST_BYTES_MAX)

    def parse(encoded: bytes) -> Message:
        bounds.check(encoded)
        try:
            found: Message = message.FromString(encoded)
        except DecodeError:
            raise InvalidArgument("request", f"is no serialized {method.input_type.full_name}") from None
        return found

    return parse


async def _parsed(requests: AsyncIterator[bytes], parse: Callable[[bytes], Message]) -> AsyncIterator[Message]:
    async for encoded in requests:
        yield parse(encoded)


def _as_it_is(encoded: bytes) -> bytes:
    return encoded


def _serialized(reply: Message) -> bytes:
    return reply.SerializeToString()


async def _end(context: Context, error: CortadoError) -> NoReturn:
    await context.abort(status_code(error), status_message(error), trailing_metadata(error))
    raise AssertionError("abort returned")
