"""A gRPC server in this process whose answers a test writes by hand.

A handler is a function of the request (or of the iterator of requests) and the context; it returns the reply, or yields
replies. :func:`refuse` ends a call as a Cortado server does, :func:`break_off` as a broken connection looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from cortado.errors import CortadoError
from cortado.proto.v1 import cluster_pb2, common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2
from cortado.store.rpc_errors import status_code, status_message, trailing_metadata

Handler = Callable[[Any, grpc.ServicerContext], Any]

_METHODS: dict[str, MethodDescriptor] = {
    f"{service.name}.{method.name}": method
    for module in (cluster_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


def header(wall_ms: int = 1_000, cluster_id: str = "fake") -> common_pb2.Header:
    """The header of a reply."""
    return common_pb2.Header(cluster_id=cluster_id, node_id="node", timestamp=common_pb2.Timestamp(wall_ms=wall_ms))


def refuse(context: grpc.ServicerContext, error: CortadoError) -> NoReturn:
    """Ends the call with ``error`` in its status details."""
    context.set_trailing_metadata(trailing_metadata(error))
    context.abort(status_code(error), status_message(error))


def break_off(context: grpc.ServicerContext) -> NoReturn:
    """Ends the call without details, as a connection that broke after the request was sent."""
    context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")


class FakeServer:
    """Answers ``Service.Method`` with the handler of that name; remembers every request in ``requests``."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {"Cluster.Clock": _clock}
        self.requests: list[tuple[str, Any]] = []
        self.cancelled: list[str] = []
        self._server = grpc.server(ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers((_Router(self),))
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def calls(self, name: str) -> list[Any]:
        """The requests of one method so far."""
        return [request for called, request in self.requests if called == name]

    @contextmanager
    def running(self) -> Iterator[FakeServer]:
        self._server.start()
        try:
            yield self
        finally:
            self._server.stop(None).wait()


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
            if not method.client_streaming:
                server.requests.append((name, request))
            return handler(request, context)

        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[method.client_streaming, method.server_streaming]
        return make(
            remembering,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )


def _clock(request: Any, context: grpc.ServicerContext) -> cluster_pb2.ClockResponse:
    return cluster_pb2.ClockResponse(header=header(), now=common_pb2.Timestamp(wall_ms=1_000), physical_ms=1_000)
