"""Handlers that gRPC serves, made of methods that return messages or raise CortadoErrors.

A service is a class with one method per call of its ``.proto`` service, named in snake case::

    async def put(self, request: KvPutRequest) -> KvPutResponse | bytes        unary
    def scan(self, request: KvScanRequest) -> AsyncIterator[... | bytes]       one request, many replies
    def bulk(self, requests: AsyncIterator[...]) -> AsyncIterator[...]         both ways

:func:`rpc_handler` finds them by the service's descriptor, so that a declared call without a method is found when the
server starts. A reply may be bytes that are serialized already: the reply of a write is made once, and the request
table remembers the same bytes.

gRPC itself cancels a method if its caller went away or its deadline passed.

A unary method is an :data:`Answer`, from a request to the reply's bytes. A call of its own and a call on the coalescing
stream (:mod:`cortado.store.server.calls_service`) are two ways to the same one, see :func:`unary_methods`.

A :class:`~cortado.errors.CortadoError` ends a call with its code and details. Any other exception is a defect: it is
logged, and the caller gets ``INTERNAL`` without the details of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import DecodeError, Message

from cortado.errors import CortadoError, Internal, InvalidArgument, ResourceExhausted, TooLarge
from cortado.proto import message_class, streams_of
from cortado.store.auth.caller import CONNECTION
from cortado.store.observe.requests import CALLER, CANCELLED, OK, TRACEPARENT, MethodMeasures, Requests
from cortado.store.process.budget import Budget
from cortado.store.process.limits import NodeLimits
from cortado.store.server.authority import CREDENTIAL, Authority, OpenStream, credential_of_call
from cortado.store.server.call_context import Context, Here, status_code
from cortado.store.server.config import MESSAGE_BYTES_MAX, METADATA_BYTES_MAX
from cortado.store.server.opening import Openings
from cortado.store.server.permissions import CARRIERS, PACKAGE
from cortado.store.server.receiving import Receiving
from cortado.store.server.replying import PARTS, RESOURCE, Replying
from cortado.store.server.request_limits import bounds_of
from cortado.store.server.sending import Sending
from cortado.store.wire.api_level import check_api_level
from cortado.store.wire.rpc_errors import status_message, trailing_metadata

_LOG: Final = logging.getLogger(__name__)

METADATA: Final = frozenset({"authorization", "traceparent", "user-agent"})
"""The names of the metadata that are read."""

Reply: TypeAlias = Message | bytes
Answer: TypeAlias = "Callable[[Any], Coroutine[Any, Any, bytes]]"
"""A unary method: from the request to the reply's bytes. Raises CortadoError, and nothing else."""
Parse: TypeAlias = Callable[[bytes], Message]
"""From bytes to the request. Raises InvalidArgument if they are no request, or are beyond its limits."""


@dataclass(frozen=True, slots=True)
class UnaryMethod:
    """A unary method, for both ways of its calls. ``name`` is such as "cortado.v1.KeyValue/Put"; ``open`` raises if the
    caller is unknown, so that no message of the call is received."""

    name: str
    only_reads: bool
    open: Callable[[], None]
    parse: Parse
    answer: Answer


def rpc_handler(
    service: ServiceDescriptor,
    servicer: object,
    requests: Requests | None = None,
    receiving: Receiving | None = None,
    authority: Authority | None = None,
    replying: Replying | None = None,
) -> grpc.GenericRpcHandler:
    """Serve every call of ``service`` by the methods of ``servicer``, and measure them in ``requests``. ``receiving``
    counts the bytes of single requests; ``authority`` checks callers: without one, every caller is admitted.

    Raises AttributeError if a method is missing.
    """
    requests = requests or Requests()
    receiving = receiving or Receiving(Budget(NodeLimits()).calls)
    replying = replying or Replying(NodeLimits().in_flight_bytes_max // PARTS)
    handlers = {
        each.name: _handler(each, getattr(servicer, _snake_case(each.name)), requests, receiving, authority, replying)
        for each in service.methods
    }
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def unary_methods(
    services: Iterable[tuple[ServiceDescriptor, object]],
    requests: Requests | None = None,
    authority: Authority | None = None,
) -> dict[str, UnaryMethod]:
    """Return the unary methods of these services, by name: the same ones that :func:`rpc_handler` serves."""
    requests = requests or Requests()
    return {
        (method := _unary_method(each, getattr(servicer, _snake_case(each.name)), requests, authority)).name: method
        for service, servicer in services
        for each in service.methods
        if not each.client_streaming and not each.server_streaming
    }


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _full_name(method: MethodDescriptor) -> str:
    return f"{method.containing_service.full_name}/{method.name}"


def _handler(
    method: MethodDescriptor,
    behaviour: Callable[..., Any],
    requests: Requests,
    receiving: Receiving,
    authority: Authority | None,
    replying: Replying,
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return the handler of a method. If the caller sends one message, it is served as a stream of one, see
    :mod:`cortado.store.server.receiving`."""
    streams = streams_of(method)
    if not streams.server:
        unary = _unary_method(method, behaviour, requests, authority)
        serve = _unary(unary, requests, receiving, replying)
        return grpc.stream_unary_rpc_method_handler(serve, _as_it_is, _as_it_is)
    measures = requests.method(_full_name(method))
    measures.is_stream = True
    parse = _parse(method, measures)
    if measures.name.removeprefix(PACKAGE) in CARRIERS:
        begin = partial(_of_calls, parse, behaviour)
    elif streams.client:
        begin = partial(_of_many, receiving, parse, behaviour)
    else:
        begin = partial(_of_one, receiving, parse, behaviour)
    only_reads = method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    sending = partial(Sending, measures.name, replying=replying, only_reads=only_reads)
    streaming = _streaming(measures, begin, authority, receiving.openings, sending)
    return grpc.stream_stream_rpc_method_handler(streaming, _as_it_is, _as_it_is)


async def _of_one(
    receiving: Receiving,
    parse: Parse,
    behaviour: Callable[[Message], AsyncGenerator[Reply, None]],
    context: Context,
    stream: OpenStream,
) -> AsyncGenerator[Reply, None]:
    """Yield the replies to a single request."""
    encoded, held = await receiving.request(context)
    try:
        request = parse(encoded)
        stream.admit(request, len(encoded))
        del encoded
        replies = behaviour(request)
        del request
        async with aclosing(replies):
            async for reply in replies:
                yield reply
    finally:
        held.leave()


def _parse(method: MethodDescriptor, measures: MethodMeasures) -> Parse:
    """Return the function that parses a request, after it has checked the limits. gRPC does not parse: with it,
    malformed bytes end as ``INTERNAL``, and fill the log."""
    from_string = message_class(method.input_type).FromString
    check = bounds_of(method).check

    def parse(encoded: bytes) -> Message:
        measures.received_bytes += len(encoded)
        check(encoded)
        try:
            return from_string(encoded)
        except DecodeError:
            raise InvalidArgument("request", f"is no serialized {method.input_type.full_name}") from None

    return parse


def _of_calls(
    parse: Parse,
    behaviour: Callable[[AsyncIterator[Message]], AsyncGenerator[Reply, None]],
    context: Context,
    stream: OpenStream,
) -> AsyncGenerator[Reply, None]:
    return behaviour(_parsed(context, parse, stream))


async def _of_many(
    receiving: Receiving,
    parse: Parse,
    behaviour: Callable[[AsyncIterator[Message]], AsyncGenerator[Reply, None]],
    context: Context,
    stream: OpenStream,
) -> AsyncGenerator[Reply, None]:
    """Yield the replies to many messages. The first one names the stream's subject; until it is admitted, no resources
    are taken for the stream."""
    encoded, held = await receiving.request(context)
    try:
        first = [parse(encoded)]
    finally:
        held.leave()
    stream.admit(first[0], len(encoded))
    del encoded
    async with aclosing(behaviour(_first_and(first, _parsed(context, parse, stream)))) as replies:
        async for reply in replies:
            yield reply


async def _first_and(first: list[Message], others: AsyncIterator[Message]) -> AsyncIterator[Message]:
    """Yield all messages, and keep none of them while the method works on it, as :func:`_parsed`."""
    yield first.pop()
    async for message in others:
        given = [message]
        del message
        yield given.pop()


async def _parsed(context: Context, parse: Parse, stream: OpenStream) -> AsyncIterator[Message]:
    # gRPC's own iterator would hold a message's bytes until the next one is asked for.
    while (encoded := await context.read()) is not grpc.aio.EOF:
        message = [parse(encoded)]
        stream.admit(message[0], len(encoded))
        # While the method works on a message, nothing here holds it, nor the bytes that it came in.
        del encoded
        yield message.pop()
        await stream.pace()


def _serialized(reply: Reply) -> bytes:
    """Return the bytes of a reply. Raises TooLarge if no caller would take it."""
    encoded = reply if isinstance(reply, bytes) else reply.SerializeToString()
    if len(encoded) > MESSAGE_BYTES_MAX:
        problem = f"has {len(encoded)} bytes, a message may have {MESSAGE_BYTES_MAX}: ask for less at a time"
        raise TooLarge("reply", problem, length=len(encoded), limit=MESSAGE_BYTES_MAX)
    return encoded


def _as_it_is(encoded: bytes) -> bytes:
    return encoded


def _unary_method(
    method: MethodDescriptor,
    behaviour: Callable[[Any], Awaitable[Reply]],
    requests: Requests,
    authority: Authority | None,
) -> UnaryMethod:
    measures = requests.method(_full_name(method))
    if authority is not None:
        behaviour = authority.guarded(measures.name, behaviour, _serialized)

    def open_() -> None:
        if authority is None:
            return
        try:
            authority.check_known(measures.name)
        except CortadoError as error:
            measures.refuse(error)
            raise

    async def answer(request: Message) -> bytes:
        call = measures.begin()
        try:
            reply = _serialized(await behaviour(request))
        except CortadoError as error:
            measures.fail(call, error, request)
            raise
        except Exception as defect:
            internal = _defect(measures.name, defect)
            measures.fail(call, internal, request)
            raise internal from None
        except BaseException:
            measures.end(call, CANCELLED, request)
            raise
        measures.end(call, OK, request, len(reply))
        return reply

    only_reads = method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    return UnaryMethod(measures.name, only_reads, open_, _parse(method, measures), answer)


def _unary(
    method: UnaryMethod, requests: Requests, receiving: Receiving, replying: Replying
) -> Callable[[Any, Context], Awaitable[bytes]]:
    async def serve(_arriving: Any, context: Context) -> bytes:
        CALLER.set(context)
        try:
            metadata = _metadata(context)
            CREDENTIAL.set(credential_of_call(context, metadata.get("authorization", "")))
            CONNECTION.set(context.peer)
            if requests.tracer is not None:
                TRACEPARENT.set(metadata.get("traceparent", ""))
            check_api_level(metadata.get("user-agent", ""))
            method.open()
            if isinstance(context, Here):
                context.let_in()
            request, held = await receiving.request(context)
            try:
                answer = method.answer(method.parse(request))
                del request
                reply = await answer
            finally:
                held.leave()
            refusal = replying.refusal(context, len(reply)) if method.only_reads else None
            if refusal is None:
                replying.send(context, len(reply))
                return reply
            del reply
            raise refusal
        except CortadoError as error:
            ended = error
        if isinstance(ended, ResourceExhausted) and ended.resource in (receiving.calls.name, RESOURCE):
            requests.refused(ended)
        # gRPC keeps the exception of an abort, in a cycle with the call. No request or reply may hang on it until the
        # collector comes, neither by the frames of a traceback nor by this one: an overload would fill the memory.
        ended.__context__ = None
        return await _end(context, ended.with_traceback(None))

    return serve


def _metadata(context: Context) -> dict[str, str]:
    """Return the values of ``METADATA`` in a call's metadata, as far as they are text. Repeated values are joined, as
    HTTP joins them: two tokens are no token. Each name is joined once, since a caller may repeat one thousands of
    times.

    Raises InvalidArgument.
    """
    found: dict[str, list[str]] = {}
    for name, value in context.invocation_metadata() or ():
        if name in METADATA and isinstance(value, str):
            found.setdefault(name, []).append(value)
    joined = {name: ",".join(values) for name, values in found.items()}
    for name, text in joined.items():
        if len(text) > METADATA_BYTES_MAX:
            problem = f"has {len(text)} bytes, the limit is {METADATA_BYTES_MAX}: send it once, and shorter"
            raise InvalidArgument(f"metadata.{name}", problem)
    return joined


def _streaming(
    measures: MethodMeasures,
    behaviour: Callable[[Context, OpenStream], AsyncGenerator[Reply, None]],
    authority: Authority | None,
    openings: Openings,
    sending: Callable[[Context], Sending],
) -> Callable[[Any, Context], Awaitable[None]]:
    """Return a method that serves a stream. ``behaviour`` gets the call, to read its messages, and the stream, which
    admits each message."""

    is_carrier = measures.name.removeprefix(PACKAGE) in CARRIERS

    async def reply_all(context: Context, to_caller: Sending) -> None:
        CALLER.set(context)
        metadata = _metadata(context)
        CREDENTIAL.set(credential_of_call(context, metadata.get("authorization", "")))
        CONNECTION.set(context.peer)
        check_api_level(metadata.get("user-agent", ""))
        name, is_let_in = measures.name, True
        if authority is not None and is_carrier:
            is_let_in = authority.know_carrier()
        elif authority is not None:
            authority.check_known(name)
        if is_let_in and isinstance(context, Here):
            context.let_in()
        await openings.turn(context.peer())
        with nullcontext(OpenStream(name)) if authority is None else authority.stream(name) as stream:
            is_owed = False
            async with aclosing(behaviour(context, stream)) as replies:
                async for reply in stream.follow(replies):
                    encoded = _serialized(reply)
                    if is_owed:
                        await stream.pace()
                    measures.replied(len(encoded))
                    is_owed = stream.sent(len(encoded))
                    await to_caller.send(encoded)

    async def serve(_arriving: Any, context: Context) -> None:
        measures.opened()
        code, problem, to_caller = CANCELLED, None, sending(context)
        try:
            await reply_all(context, to_caller)
            code = OK
        except CortadoError as error:
            code, problem = error.code, error
        except Exception as defect:
            problem = _defect(measures.name, defect)
            code = problem.code
        finally:
            # An error may wait long behind replies that the caller does not take.
            measures.closed(code, problem)
            to_caller.close()
        if problem is not None:
            await to_caller.settle()
            await _end(context, problem)

    return serve


def _defect(name: str, defect: Exception) -> Internal:
    _LOG.error("a defect in %s", name, exc_info=defect)
    return Internal(f"{type(defect).__name__} in {name}; see the server's log")


async def _end(context: Context, error: CortadoError) -> NoReturn:
    await context.abort(status_code(error), status_message(error), trailing_metadata(error))
    raise AssertionError("abort returned")
