"""A gRPC server in this process, with answers that a test writes by hand.

A handler is a function of the request (or of the iterator of requests) and the context; it returns the reply, or yields
replies. :func:`refuse` ends a call as a Cortado server does, :func:`break_off` as a broken connection looks.

The same handlers serve unary calls and, as a real server does, the coalescing stream: each call of it in a thread.
There :func:`break_off` breaks the stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, NoReturn

import grpc
from google.protobuf.descriptor import MethodDescriptor

from cortado.errors import CortadoError, Unsupported
from cortado.proto import message_class, streams_of
from cortado.proto.v1 import (
    calls_pb2,
    cluster_pb2,
    collection_pb2,
    common_pb2,
    documents_pb2,
    kv_pb2,
    large_transactions_pb2,
    schemas_pb2,
    tables_pb2,
    transactions_pb2,
    watch_pb2,
)
from cortado.store.wire.rpc_errors import DETAILS_KEY, rpc_status, status_message, trailing_metadata
from support.grpc_errors import status_code

Handler = Callable[[Any, grpc.ServicerContext], Any]

_METHODS: dict[str, MethodDescriptor] = {
    f"{service.name}.{method.name}": method
    for module in (
        calls_pb2,
        cluster_pb2,
        collection_pb2,
        documents_pb2,
        kv_pb2,
        large_transactions_pb2,
        schemas_pb2,
        tables_pb2,
        transactions_pb2,
        watch_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


def header(wall_ms: int = 1_000, cluster_id: str = "fake", term: int = 1) -> common_pb2.Header:
    """Return the header of a reply."""
    timestamp = common_pb2.Timestamp(wall_ms=wall_ms)
    return common_pb2.Header(cluster_id=cluster_id, node_id="node", term=term, timestamp=timestamp)


def refuse(context: grpc.ServicerContext, error: CortadoError) -> NoReturn:
    """End the call with ``error`` in its status details."""
    context.set_trailing_metadata(trailing_metadata(error))
    context.abort(status_code(error), status_message(error))


def break_off(context: grpc.ServicerContext) -> NoReturn:
    """End the call without details, as a connection that broke after the request was sent."""
    context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")


class FakeServer:
    """Answers ``Service.Method`` with the handler of that name; remembers every request in ``requests``.

    ``merged`` names the methods of calls that came on the coalescing stream, in their order. ``given_up`` holds the ids
    of calls on it that the client cancelled.
    """

    def __init__(self, *, has_calls: bool = True, threads: int = 16) -> None:
        self.handlers: dict[str, Handler] = {"Cluster.Clock": _clock}
        self.requests: list[tuple[str, Any]] = []
        self.cancelled: list[str] = []
        self.merged: list[str] = []
        self.messages = 0
        self.given_up: list[int] = []
        self._pool = ThreadPoolExecutor(threads)
        if has_calls:
            self.handlers["Calls.Exchange"] = self._exchange
        self._server = grpc.server(self._pool)
        self._server.add_generic_rpc_handlers((_Router(self),))
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def calls(self, name: str) -> list[Any]:
        """Return the requests of one method so far."""
        return [request for called, request in self.requests if called == name]

    @contextmanager
    def running(self) -> Iterator[FakeServer]:
        self._server.start()
        try:
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        """End the server; every connection breaks. May be called again."""
        self._server.stop(None).wait()

    # --- the coalescing stream -----------------------------------------------------------------------------------

    def _exchange(self, batches: Iterator[calls_pb2.CallBatch], context: grpc.ServicerContext) -> Iterator[Any]:
        replies: SimpleQueue[calls_pb2.CallReply | BaseException | None] = SimpleQueue()

        def read() -> None:
            try:
                for batch in batches:
                    self.messages += 1
                    self.given_up += batch.cancelled
                    for call in batch.calls:
                        self._pool.submit(self._answer, call, replies)
            except Exception:  # The stream broke.
                pass
            replies.put(None)

        threading.Thread(target=read, daemon=True).start()
        while (reply := replies.get()) is not None:
            if isinstance(reply, BaseException):
                break_off(context)
            yield calls_pb2.ReplyBatch(replies=[reply])

    def _answer(self, call: calls_pb2.Call, replies: SimpleQueue[Any]) -> None:
        name = call.method.removeprefix("cortado.v1.").replace("/", ".")
        self.merged.append(name)
        context = _CallContext()
        if name not in self.handlers:
            status = rpc_status(Unsupported(f"the unary method {call.method!r}")).SerializeToString()
            replies.put(calls_pb2.CallReply(id=call.id, status=status))
            return
        try:
            request = message_class(_METHODS[name].input_type).FromString(call.request)
            self.requests.append((name, request))
            reply = self.handlers[name](request, context)  # type: ignore[arg-type]
            replies.put(calls_pb2.CallReply(id=call.id, reply=reply.SerializeToString()))
        except _Aborted:
            status = context.details.get(DETAILS_KEY)
            broken = RuntimeError("broken off")
            replies.put(broken if status is None else calls_pb2.CallReply(id=call.id, status=status))


class _Aborted(Exception):
    """A handler ended its call."""


class _CallContext:
    """The part of gRPC's context that handlers use, for a call on the stream."""

    def __init__(self) -> None:
        self.details: dict[str, bytes] = {}

    def set_trailing_metadata(self, metadata: tuple[tuple[str, bytes], ...]) -> None:
        self.details.update(metadata)

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise _Aborted(code, details)


class _Router(grpc.GenericRpcHandler):
    def __init__(self, server: FakeServer) -> None:
        self._server = server

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        name = handler_call_details.method.removeprefix("/cortado.v1.").replace("/", ".")
        handler = self._server.handlers.get(name)
        if handler is None:
            return None
        method = _METHODS[name]
        server = self._server

        def remembering(request: Any, context: grpc.ServicerContext) -> Any:
            context.add_callback(lambda: server.cancelled.append(name) if context.code() is None else None)
            if not streams_of(method).client:
                server.requests.append((name, request))
            return handler(request, context)

        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[streams_of(method)]
        return make(
            remembering,
            request_deserializer=message_class(method.input_type).FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )


def _clock(request: Any, context: grpc.ServicerContext) -> cluster_pb2.ClockResponse:
    return cluster_pb2.ClockResponse(header=header(), now=common_pb2.Timestamp(wall_ms=1_000), physical_ms=1_000)
