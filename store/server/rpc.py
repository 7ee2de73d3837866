"""From methods that return messages or raise our errors to handlers that gRPC serves.

A service is a class with one method per call of its ``.proto`` service, named in snake case::

    async def put(self, request: KvPutRequest) -> KvPutResponse | bytes        unary
    def scan(self, request: KvScanRequest) -> AsyncIterator[... | bytes]       one request, many replies
    def bulk(self, requests: AsyncIterator[...]) -> AsyncIterator[...]         both ways

:func:`rpc_handler` finds them by the service's descriptor, so that a call that is declared and not served is found when
the server starts. A reply may be bytes that are serialized already: what a write is answered is made once, and the
request table remembers the same bytes.

gRPC itself cancels a method whose caller went away or whose deadline passed.

What a unary call does is an :data:`Answer`, from a request to the reply's bytes; a call of its own and a call on the
coalescing stream (:mod:`cortado.store.server.calls_service`) are two ways to the same one, see :func:`unary_methods`.

A :class:`~cortado.errors.CortadoError` ends a call with its code and details. Any other exception is a defect: it is
logged, and the caller gets ``INTERNAL`` without the details of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message

from cortado.errors import CortadoError, Internal, InvalidArgument, TooLarge
from cortado.proto import message_class, streams_of
from cortado.store.rpc_errors import status_code, status_message, trailing_metadata
from cortado.store.server.config import MESSAGE_BYTES_MAX

_LOG: Final = logging.getLogger(__name__)

Reply: TypeAlias = Message | bytes
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Answer: TypeAlias = "Callable[[Any], Coroutine[Any, Any, bytes]]"
"""What a unary method does: from the request to the reply's bytes. Raises CortadoError, and nothing else."""
Parse: TypeAlias = Callable[[bytes], Message]
"""From bytes to the request. Raises InvalidArgument where they are none."""


@dataclass(frozen=True, slots=True)
class UnaryMethod:
    """A unary method, however its calls come. ``name`` is such as "cortado.v1.KeyValue/Put"."""

    name: str
    parse: Parse
    answer: Answer


def rpc_handler(service: ServiceDescriptor, servicer: object) -> grpc.GenericRpcHandler:
    """Serve every call of ``service`` by the methods of ``servicer``. Raises AttributeError where one is missing."""
    handlers = {each.name: _handler(each, getattr(servicer, _snake_case(each.name))) for each in service.methods}
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def unary_methods(services: Iterable[tuple[ServiceDescriptor, object]]) -> dict[str, UnaryMethod]:
    """The unary methods of these services, by name: the same ones that :func:`rpc_handler` serves."""
    return {
        (method := _unary_method(each, getattr(servicer, _snake_case(each.name)))).name: method
        for service, servicer in services
        for each in service.methods
        if not each.client_streaming and not each.server_streaming
    }


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _handler(method: MethodDescriptor, behaviour: Callable[..., Any]) -> grpc.RpcMethodHandler[Any, Any]:
    streams = streams_of(method)
    if not streams.server:
        unary = _unary_method(method, behaviour)
        return grpc.unary_unary_rpc_method_handler(_unary(unary), _as_it_is, _as_it_is)
    parse = _parse(method)
    if streams.client:
        streaming = _streaming(method.full_name, lambda encoded: behaviour(_parsed(encoded, parse)))
        return grpc.stream_stream_rpc_method_handler(streaming, _as_it_is, _as_it_is)
    streaming = _streaming(method.full_name, lambda encoded: behaviour(parse(encoded)))
    return grpc.unary_stream_rpc_method_handler(streaming, _as_it_is, _as_it_is)


def _parse(method: MethodDescriptor) -> Parse:
    """Not gRPC's part: where it parses, bytes that are no message end as ``INTERNAL``, and fill the log."""
    from_string = message_class(method.input_type).FromString

    def parse(encoded: bytes) -> Message:
        try:
            return from_string(encoded)
        except DecodeError:
            raise InvalidArgument("request", f"is no serialized {method.input_type.full_name}") from None

    return parse


async def _parsed(requests: AsyncIterator[bytes], parse: Parse) -> AsyncIterator[Message]:
    async for encoded in requests:
        yield parse(encoded)


def _serialized(reply: Reply) -> bytes:
    """Raises TooLarge for what no caller would take."""
    encoded = reply if isinstance(reply, bytes) else reply.SerializeToString()
    if len(encoded) > MESSAGE_BYTES_MAX:
        problem = f"has {len(encoded)} bytes, a message may have {MESSAGE_BYTES_MAX}: ask for less at a time"
        raise TooLarge("reply", problem, length=len(encoded), limit=MESSAGE_BYTES_MAX)
    return encoded


def _as_it_is(encoded: bytes) -> bytes:
    return encoded


def _unary_method(method: MethodDescriptor, behaviour: Callable[[Any], Awaitable[Reply]]) -> UnaryMethod:
    async def answer(request: Message) -> bytes:
        try:
            return _serialized(await behaviour(request))
        except CortadoError:
            raise
        except Exception as defect:
            raise _defect(method.full_name, defect) from None

    service = method.containing_service.full_name
    return UnaryMethod(f"{service}/{method.name}", _parse(method), answer)


def _unary(method: UnaryMethod) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def serve(request: bytes, context: Context) -> bytes:
        try:
            return await method.answer(method.parse(request))
        except CortadoError as error:
            ended = error
        # gRPC keeps what an abort raises, in a cycle with the call. Nothing of what was sent may hang on that until the
        # collector comes, neither by the frames of a traceback nor by this one: an overload would fill the memory.
        del request
        ended.__context__ = None
        return await _end(context, ended.with_traceback(None))

    return serve


def _streaming(
    name: str, behaviour: Callable[[Any], AsyncGenerator[Reply, None]]
) -> Callable[[Any, Context], AsyncIterator[bytes]]:
    async def serve(request: Any, context: Context) -> AsyncIterator[bytes]:
        try:
            async with aclosing(behaviour(request)) as replies:
                async for reply in replies:
                    yield _serialized(reply)
        except CortadoError as error:
            await _end(context, error)
        except Exception as defect:
            await _end(context, _defect(name, defect))

    return serve


def _defect(name: str, defect: Exception) -> Internal:
    _LOG.error("a defect in %s", name, exc_info=defect)
    return Internal(f"{type(defect).__name__} in {name}; see the server's log")


async def _end(context: Context, error: CortadoError) -> NoReturn:
    await context.abort(status_code(error), status_message(error), trailing_metadata(error))
    raise AssertionError("abort returned")
